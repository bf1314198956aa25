"""The README as PyPI shows it: links and pictures by absolute addresses, from LATEBLOOMER_HOME.

LATEBLOOMER_HOME is the address of the repository, such as https://github.com/OWNER/latebloomer. It
is read when a wheel or an sdist is built; without it the README is as it stands, and
`make release-check` says what is missing.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def absolute(text: str, home: str) -> str:
    """Markdown whose links lead to the repository at `home`; without one, as it is.

    >>> absolute("[a](docs/a.md) ![b](docs/b.png)", "https://host/it")
    '[a](https://host/it/blob/HEAD/docs/a.md) ![b](https://host/it/raw/HEAD/docs/b.png)'
    """

    def replaced(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({home}/{kind}/HEAD/{path})"

    return LINK.sub(replaced, text) if home else text


class HomeHook(MetadataHookInterface):
    """Hatchling asks it for what pyproject.toml calls dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        home = os.environ.get("LATEBLOOMER_HOME", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, home)}
        metadata["urls"] = (
            {"Repository": home, "Changelog": f"{home}/blob/HEAD/CHANGELOG.md"} if home else {}
        )
