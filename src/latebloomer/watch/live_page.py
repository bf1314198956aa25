"""Pages that are open in any number of tabs: drawn once, and changed by small messages.

Each change has a number. A tab sends the last one it has received and gets those after it, written
once for all tabs. A tab that is too far behind, or comes from another server, gets the whole page.
"""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from html import escape
from math import inf
from pathlib import Path
from threading import RLock
from time import localtime, perf_counter, strftime, time
from typing import Any
from urllib.parse import quote

from latebloomer.errors import JournalError, LatebloomerError
from latebloomer.page import race_page, svg
from latebloomer.page.race_html import RaceDrawing, settings_table, sortable
from latebloomer.page.race_page import FINISHED, INTERRUPTED, RUNNING, RacePage, ThinnedCurve
from latebloomer.racing.journal import listing
from latebloomer.racing.journal.journal import Entry
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.run_race import JournalFollower
from latebloomer.racing.verdict import build, pictures
from latebloomer.session import events

INTERVAL = 0.5  # seconds between two reads of a journal
KEPT = 64  # messages for tabs that come back
MOST_ROWS = 100  # of the table of learners
Message = dict[str, Any]


class LivePage:
    """Number the changes of a content and keep the latest."""

    def __init__(self, content: "RaceContent | RaceFolder", server: str) -> None:
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

    def __init__(self, race: "FollowedRace") -> None:
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

COLORS = {RUNNING: "yes", INTERRUPTED: "no", FINISHED: "soft"}  # in this order; then the others
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
        found = []
        for path in self.journals():
            race = self._glance(path, listing.written_at(path))
            if race is not None and race.state in (RUNNING, INTERRUPTED):  # a kill writes nothing
                race = replace(race, state=listing.running_or_interrupted(path))
            found += [race] if race is not None else []
        places = {state: place - len(COLORS) for place, state in enumerate(COLORS)}
        return sorted(found, key=lambda race: (places.get(race.state, 0), -race.written))

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
        read = {one.name: self.page(one) for one in self.journals() if one.name in names}
        found = {name: page for name, page in read.items() if page and page.best is not None}
        if not found:
            return "<p>Select races with a score in the list.</p>"
        views, curves, pages = [], {}, list(found.values())
        for k, (name, page) in enumerate(found.items()):
            settings, best = {**page.settings, "learner": page.best}, page.learners[0]
            views.append(replace(best, arm=k, name=name, settings=settings))
            curves[k] = page.curves[best.arm]
        whole = replace(
            pages[0], state=FINISHED, learners=views, curves=curves, assessed_at=0, levels=(),
            horizon=max(page.horizon for page in pages), trained_further=False,
        )  # fmt: skip
        table = settings_table(views, svg.varying(views), "race")
        picture = RaceDrawing(whole).curves()
        return f"{picture}<section><h2>Settings that differ</h2>{table}</section>"


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
        (f"{race.pulls:,} pull{'s' * (race.pulls != 1)}{share}", race.pulls, "num"),
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


FIRST, CHUNK = 4_000, 20_000  # events read at once: a long journal shows something soon
GROWN = 1.25  # times as many pulls as before: then the certificate is computed again,
SHARE = 20  # unless that would take more than one part in 20 of the time
MOST_EVENTS = 500
SHOWN = events.PullFailed | events.WinnerSelected | events.LearnerLeft | events.Extended
WAITS = 2.0  # seconds after which a pull is called long


class FollowedRace:
    """What a page shows of a race, kept up to date by `update`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wrong = ""  # why it cannot be read
        self.caught_up = False
        self._stamp: list[tuple[int, int]] = []
        self._journal = JournalFollower(path, self._start, self._take)

    @property
    def state(self) -> RaceState | None:
        """The race as far as it was read; None before its first event."""
        return self._journal.state

    # --- reading ---

    def update(self, most: int | None = None) -> bool:
        """Read what is new, but not too much at once, and return whether anything was."""
        most = most or (FIRST if self.state is None else CHUNK)
        stamp = _stamp(self.path)
        if self.caught_up and stamp == self._stamp:
            return False
        wrong, taken = self.wrong, 0
        try:
            taken = self._journal.read(most)
            self.wrong = ""
        except LatebloomerError as error:
            self.wrong = str(error)
        self.caught_up = taken < most
        self._stamp = stamp
        return taken > 0 or self.wrong != wrong

    def _start(self, state: RaceState) -> None:
        """Prepare for a race, or for another one that has taken its place."""
        points = race_page.points_for(len(state.names))
        self._curves = defaultdict[int, ThinnedCurve](lambda: ThinnedCurve(points))
        self._events: list[race_page.PageEvent] = []  # all but drops, which the views have
        self._failures: dict[int, race_page.PageEvent] = {}  # the latest of each arm
        self._assessment: dict[str, Any] = {}
        self._next_assessment = inf  # not before this time; the first page does not wait for one
        self._finished: RacePage | None = None  # with the verdict

    def _take(self, entry: Entry) -> None:
        event, state = entry.event, self.state
        assert state is not None
        self._finished = None
        if isinstance(event, events.ScoreReported):
            self._curves[event.arm].add(event.score)
        elif isinstance(event, SHOWN):
            bad = isinstance(event, events.PullFailed)
            if isinstance(event, events.LearnerLeft) and event.how == events.FAILED:
                bad, said = True, self._failures.get(event.arm)  # which says the same
                self._events = [one for one in self._events if one is not said]
            text = events.in_words(event, state.names.__getitem__)
            self._events.insert(0, race_page.PageEvent(state.session.spent, text, bad))
            del self._events[MOST_EVENTS:]
            if isinstance(event, events.PullFailed):
                self._failures[event.arm] = self._events[0]

    def _with_events(self, page: RacePage, **more: Any) -> RacePage:
        found = [*self._events, *(drop for drop in page.events if not drop.bad)]
        return replace(page, events=sorted(found, key=lambda one: -one.pull), **more)

    # --- what is shown ---

    def page(self) -> RacePage:
        """Return the page as it is now, or raise what is wrong with the journal."""
        state = self.state
        if state is None:
            raise JournalError(self.wrong or f"no race has started in {self.path.name} yet")
        if state.verdict is not None and self.caught_up:
            if self._finished is None:
                page = pictures.page_data(build.build_verdict(state, self.path), FINISHED)
                self._finished = self._with_events(page)
            return self._finished
        session, stage = state.session, listing.running_or_interrupted(self.path)
        if state.verdict is not None:
            stage = FINISHED
        elif state.every_learner_failed:
            stage = race_page.ALL_FAILED
        waited = max(0.0, time() - self._journal.latest) if stage == RUNNING else 0.0
        elapsed = state.elapsed + waited
        if not session.has_best:
            page = self._page_without_scores(state, stage)
        else:
            self._assess(state)
            verdict = build.build_verdict(state, self.path, self._assessment)
            page = pictures.page_data(verdict, stage, self._curves)
        if not self.caught_up or self.wrong:
            reading = f"Reading the journal, up to pull {session.spent:,} so far."
            page = replace(page, why=self.wrong or reading)
        return self._with_events(
            page, seconds=elapsed, waiting=_waiting(state, waited), warnings=(),
            time_left=state.time_left(elapsed) or "computing the verdict",
            levels=session.levels_to_come,
        )  # fmt: skip

    def _assess(self, state: RaceState) -> None:
        """Certify and replay now and then: both need all pulls."""
        spent, now = state.session.spent, perf_counter()
        if self._next_assessment == inf:
            self._next_assessment = 0.0
            return
        grown = spent >= GROWN * self._assessment.get("assessed_at", 0) + 1
        if self.caught_up and now >= self._next_assessment and grown:
            self._assessment = build.assess(state)
            self._next_assessment = now + (1 + SHARE) * (perf_counter() - now)

    def _page_without_scores(self, state: RaceState, stage: str) -> RacePage:
        session, settings = state.session, state.settings
        words = {RUNNING: "The first pull is running.",
                 race_page.ALL_FAILED: "No learner is left."}  # fmt: skip
        return RacePage(
            state=stage, best=None, final=False, why=words.get(stage, "No pull was made."),
            learners=state.learners(), curves=self._curves, spent=session.spent,
            budget=max(1, session.budget), horizon=session.horizon,
            higher_is_better=session.maximize, started=state.started, seconds=state.elapsed,
            settings=pictures.shown_settings(settings.as_dict(), settings.rule),
            resume_code=pictures.resume_code(self.path),
        )  # fmt: skip


def _waiting(state: RaceState, waited: float) -> str:
    session = state.session
    if session.over or waited < WAITS:
        return ""
    arm = session.ask()
    pull = session.pulls_of(arm) + 1
    return f"waiting for {session.names[arm]} (its pull {pull:,}), {waited:.0f} s"


def _stamp(path: Path) -> list[tuple[int, int]]:
    """Return what changes when a journal is written or replaced."""
    marks = []
    for file in (path, Path(f"{path}-wal"), Path(f"{path}.lock")):
        with suppress(OSError):
            found = file.stat()
            marks.append((found.st_mtime_ns, found.st_size))
    return marks
