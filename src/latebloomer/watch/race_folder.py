"""The races of a folder as the content of a live page, on which they can be compared."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from html import escape
from pathlib import Path
from time import localtime, strftime
from urllib.parse import quote

from latebloomer._util.text import score_text
from latebloomer.page.race_html import RaceDrawing
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING, RacePage
from latebloomer.page.tables import settings_table, sortable
from latebloomer.racing.journal import races_folder
from latebloomer.session.arm_views import varying_settings
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import Message

# Order of the states; others follow.
COLORS = {RUNNING: "yes", INTERRUPTED: "no", FINISHED: "soft"}
HEAD = ("race", "state", "learners", "leader or winner", "score", "budget spent", "time left",
        "started")  # fmt: skip


class RaceFolder:
    """The journals of a folder, or a single one; unchanged journals are not read again."""

    hurries = False

    def __init__(self, place: Path) -> None:
        self.place = place
        # A journal is read again only if it was written in between.
        self._glance = lru_cache(2000)(lambda path, written: races_folder.listed_race(path))
        self._followed: dict[Path, FollowedRace] = {}
        self._text = ""

    def journals(self) -> list[Path]:
        """Return the files that may be journals."""
        return races_folder.journal_files(self.place) if self.place.is_dir() else [self.place]

    def races(self) -> list[races_folder.ListedRace]:
        """Return running races, then the others, the latest first."""
        listed = []
        for path in self.journals():
            race = self._glance(path, races_folder.written_at(path))
            # After a kill, the file is unchanged: check the process.
            if race is not None and race.state in (RUNNING, INTERRUPTED):
                race = replace(race, state=races_folder.running_or_interrupted(path))
            listed += [race] if race is not None else []
        places = {state: place - len(COLORS) for place, state in enumerate(COLORS)}
        return sorted(listed, key=lambda race: (places.get(race.state, 0), -race.written))

    def page(self, path: Path) -> RacePage | None:
        """Return the page of a race, after reading a part of its journal; None if unreadable."""
        race = self._followed.setdefault(path, FollowedRace(path))
        with suppress(Exception):  # an unreadable file must not hide the other races
            race.update()
            return race.page()
        return None

    def body(self) -> str:
        """Return the list of races."""
        return f'<div id="races">{self._text}</div>'

    def changes(self) -> Message | None:
        """Return the list of races if it has changed since the last call."""
        before, self._text = self._text, self.list_html()
        return None if self._text == before else {"html": {"races": self._text}}

    def list_html(self) -> str:
        """Return a table of races, each with a link to its page."""
        races = self.races()
        if not races:
            return "<p>No races yet. A race appears here as soon as it starts.</p>"
        lines = "".join(_line(race, self.page(Path(race.path))) for race in races)
        return sortable("learners races ", ((text, "") for text in HEAD), lines)

    def compare_html(self, names: Sequence[str]) -> str:
        """Return the best learners of some races in one chart, and the settings that differ."""
        read = {path.name: self.page(path) for path in self.journals() if path.name in names}
        readable = {name: page for name, page in read.items() if page and page.best is not None}
        if not readable:
            return "<p>Select races with a score in the list.</p>"
        views, curves, pages = [], {}, list(readable.values())
        for k, (name, page) in enumerate(readable.items()):
            settings, best = {**page.settings, "learner": page.best}, page.learners[0]
            views.append(replace(best, arm=k, name=name, settings=settings))
            curves[k] = page.curves[best.arm]
        whole = replace(
            pages[0],
            state=FINISHED,
            learners=views,
            curves=curves,
            assessed_at=0,
            levels=(),
            horizon=max(page.horizon for page in pages),
            trained_further=False,
        )
        table = settings_table(views, varying_settings(views), "race")
        picture = RaceDrawing(whole).curves()
        return f"{picture}<section><h2>Settings that differ</h2>{table}</section>"


def _line(race: races_folder.ListedRace, page: RacePage | None) -> str:
    name = Path(race.path).name
    best = page.learners[0] if page is not None and page.best is not None else None
    budget = race.budget if page is None else page.budget
    share = f" ({100 * race.pulls / budget:.0f} %)" if budget else ""
    started = None if page is None else page.started
    remaining = page.time_left.removesuffix(" left") if page and race.state == RUNNING else ""
    cells = (
        (race.state, race.state, COLORS.get(race.state, "bad")),
        (f"{len(race.learners):,}", len(race.learners), "num"),
        (best.name if best else race.wrong or "–", "", ""),
        (score_text(best.score) if best else "–", best.score if best else "", "num"),
        (f"{race.pulls:,} pull{'s' * (race.pulls != 1)}{share}", race.pulls, "num"),
        (remaining or "–", "", ""),
        (strftime("%Y-%m-%d %H:%M", localtime(started)) if started else "–", started or 0, ""),
    )
    box = f'<input type="checkbox" name="race" value="{escape(name)}" aria-label="compare">'
    return (
        f'<tr><th scope="row" class="name">{box} <a href="race/{quote(name)}">{escape(name)}</a>'
        "</th>"
        + "".join(
            f'<td class="{css}" data-is="{column}" {f"data-sort={key!r}" if key else ""}>'
            f"{escape(text)}</td>"
            for column, (text, key, css) in zip(HEAD[1:], cells, strict=True)
        )
        + "</tr>"
    )
