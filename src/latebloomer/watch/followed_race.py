"""The page of a race, kept up to date while its journal is written."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter, time
from typing import Any

from latebloomer._util.text import quoted
from latebloomer.errors import JournalError, LatebloomerError
from latebloomer.page import race_page
from latebloomer.page.race_page import FINISHED, RUNNING, RacePage, ThinnedCurve
from latebloomer.racing.journal import races_folder
from latebloomer.racing.journal.schema import Entry
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.build import assess, build_verdict
from latebloomer.racing.verdict.page_data import page_data, resume_code, shown_settings
from latebloomer.session import events
from latebloomer.watch.journal_follower import JournalFollower

# Maximum events per read, so that a page of a long journal appears soon.
FIRST, CHUNK = 4_000, 20_000
GROWN = 1.25  # compute the certificate again after this growth of the number of pulls,
SHARE = 20  # unless that would take more than 1/20 of the time
MOST_EVENTS = 500
SHOWN = events.PullFailed | events.WinnerSelected | events.LearnerLeft | events.Extended
WAITS = 2.0  # seconds after which a pull is shown as long


class FollowedRace:
    """The page of a race, kept up to date by `update`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wrong = ""  # why the journal cannot be read
        self.caught_up = False
        self._stamp: list[tuple[int, int]] = []
        self._journal = JournalFollower(path, self._start, self._take)

    @property
    def state(self) -> RaceState | None:
        """The state of the race as far as it was read; None before its first event."""
        return self._journal.state

    # --- reading ---

    def update(self, most: int | None = None) -> bool:
        """Read a limited number of new events; return whether there were any."""
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
        """Prepare for a race, or for another race that has replaced it."""
        points = race_page.points_for(len(state.names))
        self._curves = defaultdict[int, ThinnedCurve](lambda: ThinnedCurve(points))
        # All events except drops, which are in the views.
        self._events: list[race_page.PageEvent] = []
        self._failures: dict[int, race_page.PageEvent] = {}  # latest failure of each arm
        self._assessment: dict[str, Any] = {}
        self._next_assessment = inf  # time of the next assessment; the first page has none
        self._finished: RacePage | None = None  # the final page, with the verdict

    def _take(self, entry: Entry) -> None:
        event, state = entry.event, self.state
        assert state is not None
        self._finished = None
        if isinstance(event, events.ScoreReported):
            self._curves[event.arm].add(event.score)
        elif isinstance(event, SHOWN):
            bad = isinstance(event, events.PullFailed)
            if isinstance(event, events.LearnerLeft) and event.how == events.FAILED:
                # The failure already says the same.
                bad, earlier = True, self._failures.get(event.arm)
                self._events = [event for event in self._events if event is not earlier]
            text = events.in_words(event, state.names.__getitem__)
            self._events.insert(0, race_page.PageEvent(state.session.spent, text, bad))
            del self._events[MOST_EVENTS:]
            if isinstance(event, events.PullFailed):
                self._failures[event.arm] = self._events[0]

    def _with_events(self, page: RacePage, **more: Any) -> RacePage:
        events = [*self._events, *(drop for drop in page.events if not drop.bad)]
        return replace(page, events=sorted(events, key=lambda event: -event.pull), **more)

    # --- the page ---

    def page(self) -> RacePage:
        """Return the page as it is now, or raise an error about the journal."""
        state = self.state
        if state is None:
            raise JournalError(self.wrong or f"no race has started in {self.path.name} yet")
        if state.verdict is not None and self.caught_up:
            if self._finished is None:
                page = page_data(build_verdict(state, self.path), FINISHED)
                self._finished = self._with_events(page)
            return self._finished
        session, stage = state.session, races_folder.running_or_interrupted(self.path)
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
            verdict = build_verdict(state, self.path, self._assessment)
            page = page_data(verdict, stage, self._curves)
        if not self.caught_up or self.wrong:
            reading = f"Reading the journal, up to pull {session.spent:,} so far."
            page = replace(page, why=self.wrong or reading)
        return self._with_events(
            page,
            seconds=elapsed,
            waiting=_waiting(state, waited),
            warnings=(),
            time_left=state.time_left(elapsed) or "computing the verdict",
            levels=session.levels_to_come,
        )

    def _assess(self, state: RaceState) -> None:
        """Compute certificate and hindsight from time to time, because both need all pulls."""
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
        words = {
            RUNNING: "The first pull is running.",
            race_page.ALL_FAILED: "No learner is left.",
        }
        return RacePage(
            state=stage,
            best=None,
            final=False,
            why=words.get(stage, "No pull was made."),
            learners=state.learners(),
            curves=self._curves,
            spent=session.spent,
            budget=max(1, session.budget),
            horizon=session.horizon,
            higher_is_better=session.maximize,
            started=state.started,
            seconds=state.elapsed,
            settings=shown_settings(settings.as_dict(), settings.rule),
            resume_code=resume_code(self.path, settings.runner),
        )


def _waiting(state: RaceState, waited: float) -> str:
    session = state.session
    if session.over or waited < WAITS:
        return ""
    arm = session.ask()
    pull = session.pulls_of(arm) + 1
    return f"waiting for {quoted(session.names[arm])} (its pull {pull:,}), {waited:.0f} s"


def _stamp(path: Path) -> list[tuple[int, int]]:
    """Return file data that change whenever a journal is written or replaced."""
    marks = []
    for file in (path, Path(f"{path}-wal"), Path(f"{path}.lock")):
        with suppress(OSError):
            status = file.stat()
            marks.append((status.st_mtime_ns, status.st_size))
    return marks
