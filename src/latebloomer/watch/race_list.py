"""The races of a folder: which run, which were interrupted, which are over."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from html import escape
from pathlib import Path
from time import localtime, strftime
from typing import NamedTuple

from latebloomer.core.text import span_of_time
from latebloomer.errors import JournalError
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal import Glance

ORDER = {RUNNING: 0, INTERRUPTED: 1, FINISHED: 2}
ENDINGS = ("*.db", "*.sqlite", "*.sqlite3")


class Race(NamedTuple):
    """One journal, at a glance."""

    path: Path
    state: str
    glance: Glance


class RaceFolder:
    """The journals of a folder, or a single one; those that did not change are not read again."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._known: dict[Path, tuple[tuple[int, int], Glance | None]] = {}

    def journals(self) -> list[Path]:
        """The files that may be journals."""
        if not self.place.is_dir():
            return [self.place]
        return sorted({path for ending in ENDINGS for path in self.place.glob(ending)})

    def races(self) -> list[Race]:
        """Those that run first, then the newest."""
        found = []
        for path in self.journals():
            glance = self._glance(path)
            if glance is not None:
                found.append(Race(path, _state(path, glance), glance))
        return sorted(found, key=lambda race: (ORDER[race.state], -race.glance.newest))

    def _glance(self, path: Path) -> Glance | None:
        try:
            mark = (_written(path), _written(Path(f"{path}-wal")))
        except OSError:
            return None
        if path not in self._known or self._known[path][0] != mark:
            self._known[path] = mark, _look(path)
        return self._known[path][1]


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _look(path: Path) -> Glance | None:
    """What is in a file; None where it is no journal, or none yet."""
    try:
        with closing(files.read(path, brief=True)) as journal:
            return journal.glance()
    except JournalError:
        return None


def _state(path: Path, glance: Glance) -> str:
    if glance.decided is not None:
        return FINISHED
    return RUNNING if files.is_held(path) else INTERRUPTED


def list_html(races: list[Race], links: Mapping[Path, str]) -> str:
    """A table of races, each with the way to its page."""
    if not races:
        return "<p>There is no race here yet. This page shows one as soon as it begins.</p>"
    lines = "".join(_line(race, links[race.path]) for race in races)
    head = "".join(
        f'<th scope="col">{text}</th>' for text in ("race", "state", "best", "pulls", "when")
    )
    return (
        f'<table class="learners races"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>'
        "</table>"
    )


def _line(race: Race, link: str) -> str:
    glance = race.glance
    best = "–" if glance.decided is None else str(glance.decided.summary.get("name", "–"))
    budget = glance.created.settings.get("budget")
    pulls = f"{glance.pulls:,}" + (f" of {budget:,}" if isinstance(budget, int) else "")
    started = strftime("%Y-%m-%d %H:%M", localtime(glance.started))
    css = {RUNNING: "yes", INTERRUPTED: "no"}.get(race.state, "soft")
    return (
        f'<tr><th scope="row" class="name"><a href="{escape(link)}">{escape(race.path.name)}</a>'
        f'</th><td class="{css}">{race.state}</td><td data-is="best">{escape(best)}</td>'
        f'<td data-is="pulls">{pulls}</td>'
        f'<td data-is="began">{started}, {span_of_time(glance.elapsed)}</td></tr>'
    )
