"""The races of a folder on a page: which run, which were interrupted, which are over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from time import localtime, strftime

from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING
from latebloomer.racing.journal.listing import ListedRace, listed_race, running_or_interrupted
from latebloomer.racing.journal.names import journal_files, written_at

FIRST = (RUNNING, INTERRUPTED, FINISHED)  # in the list; then what cannot be read
COLOURS = {RUNNING: "yes", INTERRUPTED: "no", FINISHED: "soft"}


class RaceFolder:
    """The journals of a folder, or a single one; those that did not change are not read again."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._known: dict[Path, tuple[float, ListedRace | None]] = {}

    def journals(self) -> list[Path]:
        """The files that may be journals."""
        return journal_files(self.place) if self.place.is_dir() else [self.place]

    def races(self) -> list[ListedRace]:
        """Those that run first, then the newest."""
        found = [race for path in self.journals() if (race := self._listed(path)) is not None]
        return sorted(found, key=lambda race: (_place(race.state), -race.written))

    def _listed(self, path: Path) -> ListedRace | None:
        written = written_at(path)
        if path not in self._known or self._known[path][0] != written:
            self._known[path] = written, listed_race(path)
        race = self._known[path][1]
        if race is not None and race.state in (RUNNING, INTERRUPTED):  # a kill writes nothing
            return replace(race, state=running_or_interrupted(path))
        return race


def _place(state: str) -> int:
    return FIRST.index(state) if state in FIRST else len(FIRST)


def list_html(races: list[ListedRace], links: Mapping[str, str]) -> str:
    """A table of races, each with the way to its page."""
    if not races:
        return "<p>There is no race here yet. This page shows one as soon as it begins.</p>"
    lines = "".join(_line(race, links[race.path]) for race in races)
    head = "".join(
        f'<th scope="col">{text}</th>' for text in ("race", "state", "best", "pulls", "written")
    )
    return (
        f'<table class="learners races"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>'
        "</table>"
    )


def _line(race: ListedRace, link: str) -> str:
    pulls = f"{race.pulls:,}" + ("" if race.budget is None else f" of {race.budget:,}")
    written = strftime("%Y-%m-%d %H:%M", localtime(race.written))
    name = escape(Path(race.path).name)
    return (
        f'<tr><th scope="row" class="name"><a href="{escape(link)}">{name}</a></th>'
        f'<td class="{COLOURS.get(race.state, "bad")}">{race.state}</td>'
        f'<td data-is="best">{escape(race.winner or race.wrong or "–")}</td>'
        f'<td data-is="pulls">{pulls}</td><td data-is="written">{written}</td></tr>'
    )
