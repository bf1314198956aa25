"""Checks a built site: every link within it leads somewhere, and no page loads from elsewhere.

python docs/tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}
NOT_LOADED = {"canonical", "search", "next", "prev", "index", "genindex"}


class Page(HTMLParser):
    """The links, the loaded files and the anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name, value in given.items():
            if (tag, name) in LOADED and given.get("rel") not in NOT_LOADED:
                self.loads.append(value)
            elif name == "href":
                self.links.append(value)


@cache
def page(file: Path) -> Page:
    return Page(file)


def broken(file: Path, link: str) -> str | None:
    """Why a link of a page leads nowhere, if it does."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.is_file():
        return f"{link}: there is no {target.name}"
    anchor = unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in page(target).anchors:
        return f"{link}: no such place in {target.name}"
    return None


def problems(root: Path) -> list[str]:
    found = []
    for file in sorted(root.resolve().rglob("*.html")):
        if "_static" in file.parts:
            continue
        where = file.relative_to(root.resolve())
        made = page(file)
        found += [f"{where}: loads {one}" for one in made.loads if urlsplit(one).netloc]
        told = (broken(file, link) for link in {*made.links, *made.loads})
        found += [f"{where}: {why}" for why in told if why]
    return found


def main(folder: str) -> None:
    found = problems(Path(folder))
    print(*found, sep="\n")
    pages = len(list(Path(folder).rglob("*.html")))
    if found or not pages:
        sys.exit(f"{len(found)} links of {pages} pages lead nowhere or out of the site")
    print(f"{pages} pages: every link leads somewhere, and nothing is loaded from elsewhere")


if __name__ == "__main__":
    main(sys.argv[1])
