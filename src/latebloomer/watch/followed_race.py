"""A race that is read from its journal while another process writes it, as a page shows it."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter, time
from typing import Any

from latebloomer._util.text import span_of_time
from latebloomer.errors import JournalError, LatebloomerError
from latebloomer.page import race_page
from latebloomer.page.race_page import PageEvent, RacePage, ThinnedCurve, points_for
from latebloomer.racing.following import JournalFollower
from latebloomer.racing.journal.journal import Entry
from latebloomer.racing.journal.listing import running_or_interrupted
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.build import assess, build_verdict
from latebloomer.racing.verdict.pictures import page_data, resume_code, shown_settings
from latebloomer.session import events

FIRST, CHUNK = 4_000, 20_000  # events read at once: a long journal shows something soon
GROWN = 1.25  # times as many pulls as before: then the certificate is computed again,
SHARE = 20  # unless that would take more than one part in 20 of the time
MOST_EVENTS = 500
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
        self._curves: dict[int, ThinnedCurve] = defaultdict(
            lambda: ThinnedCurve(points_for(len(state.names)))
        )
        self._events: list[PageEvent] = []  # all but drops, which the views have
        self._failures: dict[int, PageEvent] = {}  # the latest of each arm
        self._assessment: dict[str, Any] = {}
        self._next_assessment = inf  # not before this time; the first page does not wait for one
        self._finished: tuple[events.Decided, RacePage] | None = None

    def _take(self, entry: Entry) -> None:
        event, state = entry.event, self.state
        if type(event) is events.ScoreReported:
            self._curves[event.arm].add(event.score)
        elif state is not None:
            self._note(event, state.names, state.session.spent)

    def _note(self, event: events.Event, names: tuple[str, ...], spent: int) -> None:
        match event:
            case events.PullFailed():
                text = f"{names[event.arm]}: pull {event.n} failed, {event.reason}"
                self._failures[event.arm] = self._add(spent, text, bad=True)
            case events.WinnerSelected():
                self._add(spent, f"{names[event.arm]} is selected and trained further")
            case events.LearnerLeft():
                failed = event.how == events.FAILED
                if failed:  # why it failed says the same as its last failed pull
                    said = self._failures.get(event.arm)
                    self._events = [one for one in self._events if one is not said]
                self._add(spent, f"{names[event.arm]}: {event.why}", bad=failed)
            case events.Extended():
                self._add(spent, event.why)

    def _add(self, pull: int, text: str, bad: bool = False) -> PageEvent:
        self._events = [PageEvent(pull, text, bad), *self._events[: MOST_EVENTS - 1]]
        return self._events[0]

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
            return self._final_page(state, state.verdict)
        session, stage = state.session, running_or_interrupted(self.path)
        if state.verdict is not None:
            stage = race_page.FINISHED
        elif state.every_learner_failed:
            stage = race_page.ALL_FAILED
        waited = max(0.0, time() - self._journal.latest) if stage == race_page.RUNNING else 0.0
        elapsed = state.elapsed + waited
        if not any(session.pulls_of(i) for i in session.racing):
            page = self._page_without_scores(state, stage)
        else:
            self._assess(state)
            verdict = build_verdict(state, self.path, self._assessment)
            page = page_data(verdict, stage, self._curves)
        if not self.caught_up or self.wrong:
            reading = f"Reading the journal, up to pull {session.spent:,} so far."
            page = replace(page, why=self.wrong or reading)
        return self._with_events(
            page, seconds=elapsed, time_left=_time_left(state, elapsed),
            waiting=_waiting(state, waited), levels=session.levels_to_come, warnings=(),
        )  # fmt: skip

    def _final_page(self, state: RaceState, decided: events.Decided) -> RacePage:
        if self._finished is None or self._finished[0] is not decided:
            page = page_data(build_verdict(state, self.path), race_page.FINISHED)
            self._finished = decided, self._with_events(page)
        return self._finished[1]

    def _assess(self, state: RaceState) -> None:
        """Certify and replay now and then: both need all pulls."""
        spent, now = state.session.spent, perf_counter()
        if self._next_assessment == inf:
            self._next_assessment = 0.0
            return
        grown = spent >= GROWN * self._assessment.get("assessed_at", 0) + 1
        if self.caught_up and now >= self._next_assessment and grown:
            self._assessment = assess(state)
            self._next_assessment = now + (1 + SHARE) * (perf_counter() - now)

    def _page_without_scores(self, state: RaceState, stage: str) -> RacePage:
        session, settings = state.session, state.settings
        words = {race_page.RUNNING: "The first pull is running.",
                 race_page.ALL_FAILED: "No learner is left."}  # fmt: skip
        return RacePage(
            state=stage, best=None, final=False, why=words.get(stage, "No pull was made."),
            learners=state.learners(), curves=self._curves, spent=session.spent,
            budget=max(1, session.budget), horizon=session.horizon,
            higher_is_better=session.maximize, started=state.started, seconds=state.elapsed,
            settings=shown_settings(settings.as_dict(), settings.rule),
            resume_code=resume_code(self.path),
        )  # fmt: skip


def _time_left(state: RaceState, elapsed: float) -> str:
    session, seconds = state.session, state.settings.seconds
    if session.over:
        return "computing the verdict"
    if seconds is not None:
        return f"{span_of_time(max(0.0, seconds - elapsed))} left"
    if not session.spent:
        return "time left unknown"
    pace = state.elapsed / session.spent
    return f"about {span_of_time(pace * (session.budget - session.spent))} left"


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
