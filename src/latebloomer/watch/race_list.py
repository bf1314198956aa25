"""The races of a folder on a page, to be sorted, filtered and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from time import localtime, strftime
from urllib.parse import quote

from latebloomer.errors import LatebloomerError
from latebloomer.page.html_document import number_text
from latebloomer.page.parallel_coordinates import varying
from latebloomer.page.race_html import RaceDrawing
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING, RacePage
from latebloomer.page.race_sections import settings_table
from latebloomer.racing.journal.listing import (
    ListedRace,
    journal_files,
    listed_race,
    running_or_interrupted,
    written_at,
)
from latebloomer.watch.followed_race import FollowedRace

FIRST = (RUNNING, INTERRUPTED, FINISHED)  # in the list; then what cannot be read
COLORS = {RUNNING: "yes", INTERRUPTED: "no", FINISHED: "soft"}
HEAD = ("race", "state", "learners", "leader or winner", "score", "budget spent", "time left",
        "started")  # fmt: skip


class RaceFolder:
    """The journals of a folder, or a single one; journals that did not change are not read."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._known: dict[Path, tuple[float, ListedRace | None]] = {}
        self._followed: dict[Path, FollowedRace] = {}

    def journals(self) -> list[Path]:
        """Return the files that may be journals."""
        return journal_files(self.place) if self.place.is_dir() else [self.place]

    def races(self) -> list[ListedRace]:
        """Return the races that run, then the others, the latest first."""
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

    def page(self, path: Path) -> RacePage | None:
        """Return a race as far as its journal was read, a part each time; None if it cannot be."""
        race = self._followed.setdefault(path, FollowedRace(path))
        race.update()
        try:
            return race.page()
        except LatebloomerError:
            return None


def _place(state: str) -> int:
    return FIRST.index(state) if state in FIRST else len(FIRST)


def list_html(folder: RaceFolder) -> str:
    """Return a table of races, each with a link to its page."""
    races = folder.races()
    if not races:
        return "<p>No races yet. A race appears here as soon as it starts.</p>"
    lines = "".join(_line(race, folder.page(Path(race.path))) for race in races)
    head = "".join(f'<th scope="col">{text}</th>' for text in HEAD)
    return (
        f'<table class="learners races sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def _line(race: ListedRace, page: RacePage | None) -> str:
    name = Path(race.path).name
    best = page.learners[0] if page is not None and page.best is not None else None
    budget = race.budget if page is None else page.budget
    share = f" ({100 * race.pulls / budget:.0f} %)" if budget else ""
    started = None if page is None else page.started
    left = page.time_left.partition(";")[0] if page and race.state == RUNNING else ""
    cells = (
        (race.state, race.state, COLORS.get(race.state, "bad")),
        (f"{len(race.learners):,}", len(race.learners), "num"),
        (best.name if best else race.wrong or "–", "", ""),
        (number_text(best.score) if best else "–", best.score if best else "", "num"),
        (f"{race.pulls:,}{share}", race.pulls, "num"),
        (left or "–", "", ""),
        (strftime("%Y-%m-%d %H:%M", localtime(started)) if started else "–", started or 0, ""),
    )
    box = f'<input type="checkbox" name="race" value="{escape(name)}" aria-label="compare">'
    return (
        f'<tr><th scope="row" class="name">{box} <a href="race/{quote(name)}">{escape(name)}</a>'
        "</th>" + "".join(
            f'<td class="{css}" data-is="{column}" {f"data-sort={key!r}" if key else ""}>'
            f"{escape(text)}</td>"
            for column, (text, key, css) in zip(HEAD[1:], cells, strict=True)
        ) + "</tr>"
    )  # fmt: skip


def compare_html(pages: Mapping[str, RacePage]) -> str:
    """Return the best learners of several races in one chart, and the settings that differ."""
    if not pages:
        return "<p>Select races with a score in the list.</p>"
    views, curves = [], {}
    for arm, (name, page) in enumerate(pages.items()):
        best = page.learners[0]
        settings = {**page.settings, "learner": best.name}
        views.append(replace(best, arm=arm, name=name, settings=settings))
        curves[arm] = page.curves[best.arm]
    one = next(iter(pages.values()))
    whole = replace(
        one, state=FINISHED, learners=views, curves=curves, certainty=None, levels=(),
        horizon=max(page.horizon for page in pages.values()), trained_further=False,
    )  # fmt: skip
    table = settings_table(views, varying(views), "race")
    return f"{RaceDrawing(whole).curves()}<section><h2>Settings that differ</h2>{table}</section>"


def races_to_compare(folder: RaceFolder, names: Sequence[str]) -> dict[str, RacePage]:
    """Return the pages of journals of a folder that have a score, by file name."""
    paths = [path for path in folder.journals() if path.name in names]
    pages = {path.name: folder.page(path) for path in paths}
    return {name: page for name, page in pages.items() if page is not None and page.best}
