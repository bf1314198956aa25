"""`race(..., watch=True)`: the live page in a separate process, which outlives the race."""

from __future__ import annotations

import atexit
import subprocess
import sys
import warnings
from pathlib import Path
from threading import Thread

from latebloomer.errors import SettingError
from latebloomer.racing.journal.journal import near
from latebloomer.racing.live_display import print_aside

STAYS = 600  # seconds that the page stays after the race has ended and the last tab was closed
PATIENCE = 20.0  # seconds to wait for the page; after that the race starts without it
_CHILDREN: list[subprocess.Popen[str]] = []


@atexit.register
def _let_go() -> None:
    """Leave the pages running when this process ends, without a warning."""
    for child in _CHILDREN:
        if child.poll() is None:
            child.returncode = 0


def need_journal(watch: bool, journal: object) -> None:
    """Raise an error before the race if there is no journal to watch."""
    if watch and journal is None:
        raise SettingError(
            "watch=True, but journal=None: the live page reads the journal. Pass journal=..., or "
            "omit watch."
        )


def start_watching(journal: Path | None) -> subprocess.Popen[str] | None:
    """Start `latebloomer watch` and print its address once; warn if it does not start."""
    if journal is None:
        return None
    _CHILDREN[:] = [child for child in _CHILDREN if child.poll() is None]
    words = ["-m", "latebloomer", "watch", str(journal), "--exit-after-idle", str(STAYS)]
    try:
        child = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        _warn(str(error), journal)
        return None
    _CHILDREN.append(child)
    line = _first_line(child)
    address = next((word for word in line.split() if word.startswith("http://")), "")
    if address:
        print_aside(f"Watch the race at {address}")
        return child
    child.kill()
    _warn(line.strip() or "it did not come up", journal)
    return None


def _first_line(child: subprocess.Popen[str]) -> str:
    """Return the first line it prints: its address, or what is missing."""
    said: list[str] = []
    assert child.stdout is not None
    reader = Thread(target=lambda: said.append(child.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(PATIENCE)
    if said:
        child.stdout.close()
    return said[0] if said else ""


def _warn(why: str, journal: Path) -> None:
    warnings.warn(
        f"The race runs, but cannot be watched ({why}). Try later: latebloomer watch "
        f"{near(journal)}",
        RuntimeWarning,
        stacklevel=4,
    )
