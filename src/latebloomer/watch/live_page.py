"""Pages that are open in any number of tabs: drawn once, and changed by small messages.

Each change has a number. A tab sends the last one it has received and gets those after it, written
once for all tabs. A tab that is too far behind, or comes from another server, gets the whole page.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from html import escape
from pathlib import Path
from threading import RLock
from time import localtime, perf_counter, strftime
from typing import Any
from urllib.parse import quote

from latebloomer.errors import LatebloomerError
from latebloomer.page import svg
from latebloomer.page.race_html import RaceDrawing, settings_table, sortable
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING, RacePage
from latebloomer.racing.journal import listing
from latebloomer.session.learner_view import LearnerView
from latebloomer.watch.followed_race import FollowedRace

INTERVAL = 0.5  # seconds between two reads of a journal
KEPT = 64  # messages for tabs that come back
MOST_ROWS = 100  # of the table of learners
Message = dict[str, Any]


class LivePage:
    """Number the changes of a content and keep the latest."""

    def __init__(self, content: RaceContent | RaceFolder, server: str) -> None:
        self.content = content
        self._server = server  # a name that another server does not have
        self._number = 0
        self._messages: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._lock = RLock()
        self._due = 0.0  # when to look again

    def update(self) -> None:
        """Look for changes."""
        with self._lock:
            changes = self.content.changes()
            self._due = 0.0 if self.content.hurries else perf_counter() + INTERVAL
            if changes is not None:
                self._number += 1
                self._messages.append((self._number, json.dumps(changes, separators=(",", ":"))))

    def body(self) -> tuple[str, str]:
        """Return the page and the number of the last change in it."""
        with self._lock:
            self.update()
            return self.content.body(), f"{self._server}-{self._number}"

    def since(self, seen: str) -> tuple[list[str], str]:
        """Return the messages that a tab has not received, and the number of the last one."""
        with self._lock:
            if perf_counter() > self._due:
                self.update()
            server, _, number = seen.partition("-")
            last = int(number) if server == self._server and number.isdigit() else -1
            if last == self._number:
                return [], seen
            missing = [text for k, text in self._messages if k > last]
            if last < 0 or len(missing) != self._number - last:
                missing = [json.dumps({"whole": self.content.body()})]
            return missing, f"{self._server}-{self._number}"


# --- one race ---


class RaceContent:
    """A race, drawn; or why it cannot be read."""

    def __init__(self, race: FollowedRace) -> None:
        self.race = race
        self._drawn: RaceDrawing | None = None
        self._sent: Message = {}  # what tabs have
        self._grown: dict[int, tuple[int, int]] = {}  # of each curve: width and points
        self._wrong = ""

    def body(self) -> str:
        """Return the whole page."""
        if self._drawn is None:
            return f"<h1>Nothing to show</h1><p>{escape(self._wrong)}</p>"
        return self._drawn.body()

    @property
    def hurries(self) -> bool:
        """True if there is more to read immediately."""
        return not self.race.caught_up and not self.race.wrong

    def changes(self) -> Message | None:
        """Return what has changed since the last call; None if nothing has."""
        self.race.update()
        if self.race.state is None:
            changed, self._wrong = self.race.wrong != self._wrong, self.race.wrong
            return {"whole": self.body()} if changed else None
        before, page = self._drawn, self.race.page()
        if before is not None and before.page is page:  # it is over
            return None
        drawn = self._drawn = RaceDrawing(page, before, MOST_ROWS)
        rows = drawn.rows()
        shown: Message = {
            "html": drawn.pieces() | drawn.marks(),
            "rows": {arm: dict(enumerate(cells)) for arm, cells in rows.items()},
            "look": drawn.looks,
            "order": list(rows),
            "box": drawn.view.box,
            "label": svg.describe_curves(page),
        }
        message = _different(shown, self._sent) | self._curves(drawn)
        self._sent = shown
        if before is None:
            return {"whole": drawn.body()}
        return {name: value for name, value in message.items() if value} or None

    def _curves(self, drawn: RaceDrawing) -> Message:
        """Return points to add to curves, and curves to draw again because they were thinned."""
        grow: dict[int, list[str]] = {}
        draw: dict[int, str] = {}
        for one in drawn.page.learners:
            arm, curve = one.arm, drawn.page.curves[one.arm]
            width, points = self._grown.get(arm, (0, 0))
            if (width, points) == (curve.width, len(curve)):
                continue
            if width != curve.width or points < 2:
                draw[arm] = svg.curve_paths(one, curve, drawn.view, drawn.looks[arm], drawn.raw)
            else:
                faint = svg.path_of(curve.raw(points), drawn.view, more=True) if drawn.raw else ""
                grow[arm] = [svg.path_of(curve.smoothed(points), drawn.view, more=True), faint]
            self._grown[arm] = curve.width, len(curve)
        return {"grow": grow, "draw": draw}


def _different(new: Mapping[Any, Any], old: Mapping[Any, Any]) -> Message:
    """Return what is new or changed in nested dicts.

    >>> _different({"a": {1: "x", 2: "y"}, "b": "z"}, {"a": {1: "x", 2: "w"}, "b": "z"})
    {'a': {2: 'y'}}
    """
    return {
        key: _different(value, old.get(key, {})) if isinstance(value, dict) else value
        for key, value in new.items()
        if key not in old or old[key] != value
    }


# --- the races of a folder, to be sorted, filtered and compared ---

FIRST = (RUNNING, INTERRUPTED, FINISHED)  # in the list; then what cannot be read
COLORS = {RUNNING: "yes", INTERRUPTED: "no", FINISHED: "soft"}
HEAD = ("race", "state", "learners", "leader or winner", "score", "budget spent", "time left",
        "started")  # fmt: skip


class RaceFolder:
    """The journals of a folder, or a single one; journals that did not change are not read."""

    hurries = False

    def __init__(self, place: Path) -> None:
        self.place = place
        # A journal is read again only if it was written since.
        self._glance = lru_cache(2000)(lambda path, written: listing.listed_race(path))
        self._followed: dict[Path, FollowedRace] = {}
        self._text = ""

    def journals(self) -> list[Path]:
        """Return the files that may be journals."""
        return listing.journal_files(self.place) if self.place.is_dir() else [self.place]

    def races(self) -> list[listing.ListedRace]:
        """Return the races that run, then the others, the latest first."""
        found = [race for path in self.journals() if (race := self._listed(path)) is not None]
        places = {state: place for place, state in enumerate(FIRST)}
        return sorted(found, key=lambda race: (places.get(race.state, len(FIRST)), -race.written))

    def _listed(self, path: Path) -> listing.ListedRace | None:
        race = self._glance(path, listing.written_at(path))
        if race is not None and race.state in (RUNNING, INTERRUPTED):  # a kill writes nothing
            return replace(race, state=listing.running_or_interrupted(path))
        return race

    def page(self, path: Path) -> RacePage | None:
        """Return a race as far as its journal was read, a part each time; None if it cannot be."""
        race = self._followed.setdefault(path, FollowedRace(path))
        race.update()
        with suppress(LatebloomerError):
            return race.page()
        return None

    def body(self) -> str:
        """Return the list."""
        return f'<div id="races">{self._text}</div>'

    def changes(self) -> Message | None:
        """Return the list if it has changed since the last call."""
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
        views: list[LearnerView] = []
        pages: list[RacePage] = []
        for path in self.journals():
            page = self.page(path) if path.name in names else None
            if page is not None and page.best is not None:
                settings = {**page.settings, "learner": page.best}
                view = replace(page.learners[0], arm=len(pages), name=path.name, settings=settings)
                views.append(view)
                pages.append(page)
        if not pages:
            return "<p>Select races with a score in the list.</p>"
        whole = replace(
            pages[0], state=FINISHED, learners=views, assessed_at=0, levels=(),
            curves={k: page.curves[page.learners[0].arm] for k, page in enumerate(pages)},
            horizon=max(page.horizon for page in pages), trained_further=False,
        )  # fmt: skip
        table = settings_table(views, svg.varying(views), "race")
        table = f"<section><h2>Settings that differ</h2>{table}</section>"
        return f"{RaceDrawing(whole).curves()}{table}"


def _line(race: listing.ListedRace, page: RacePage | None) -> str:
    name = Path(race.path).name
    best = page.learners[0] if page is not None and page.best is not None else None
    budget = race.budget if page is None else page.budget
    share = f" ({100 * race.pulls / budget:.0f} %)" if budget else ""
    started = None if page is None else page.started
    left = page.time_left if page and race.state == RUNNING else ""
    cells = (
        (race.state, race.state, COLORS.get(race.state, "bad")),
        (f"{len(race.learners):,}", len(race.learners), "num"),
        (best.name if best else race.wrong or "–", "", ""),
        (svg.number_text(best.score) if best else "–", best.score if best else "", "num"),
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
