"""A race that is read from its journal while another process writes it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from math import inf, isnan, nan
from pathlib import Path
from time import perf_counter, time

from latebloomer._util.text import span_of_time
from latebloomer.errors import JournalError, LatebloomerError
from latebloomer.page.race_page import (
    FINISHED,
    INTERRUPTED,
    RUNNING,
    Certainty,
    ForecastFan,
    LearnerOnPage,
    Level,
    PageEvent,
    RacePage,
)
from latebloomer.page.thinned_curve import ThinnedCurve, points_for
from latebloomer.racing.journal import files
from latebloomer.racing.journal.schema import Entry
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.page_data import (
    certainty_of,
    page_data,
    resume_code,
    shown_settings,
)
from latebloomer.racing.verdict.sentences import why_it_stands_there
from latebloomer.session.events import (
    FAILED,
    Created,
    Decided,
    Event,
    Extended,
    LearnerLeft,
    PullFailed,
    ScoreReported,
    WinnerSelected,
)
from latebloomer.session.reasons import Standing

FIRST, CHUNK = 4_000, 20_000  # events taken in at once: a long journal shows something soon
GROWN = 1.25  # times as many pulls as before, and it is asked again how sure all this is,
SHARE = 20  # but for no more than one part in so many of the time
MOST_HAPPENINGS = 500
WAITS = 2.0  # seconds from which a pull is called long
Stamp = tuple[int, ...]


class FollowedRace:
    """What a page shows of a race, kept up to date by `update`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start_over()

    def _start_over(self) -> None:
        self.state: RaceState | None = None
        self.wrong = ""  # why it cannot be read
        self.caught_up = False
        self._stamp: Stamp = ()
        self._number = 0  # of the newest event
        self._newest = 0.0  # when it was, in seconds since 1970
        self._curves: list[ThinnedCurve] = []
        self._last: list[float] = []  # each learner's newest score
        self._racing: set[int] = set()  # who raced when last looked at
        self._happenings: list[PageEvent] = []
        self._failure: tuple[int, PageEvent] | None = None  # the newest, by arm
        self._certainty: Certainty | None = None
        self._intervals: dict[int, tuple[float, float]] = {}
        self._asked_at, self._asked_again = 0, inf  # pulls then; not before this time
        self._versions: dict[str, str] = {}
        self._reasons: dict[int, tuple[object, str]] = {}  # why an arm is out, as of when
        self._finished: tuple[Decided, RacePage] | None = None

    # --- reading ---

    def update(self, most: int | None = None) -> bool:
        """Take in what was written since, but not too much at once; whether there was anything."""
        most = most or (FIRST if self.state is None else CHUNK)
        stamp = _stamp(self.path)
        if self.caught_up and stamp == self._stamp:
            return False
        wrong, taken = self.wrong, 0
        try:
            taken = self._read(most)
            self.wrong = ""
        except LatebloomerError as error:
            self.wrong = str(error)
        self.caught_up = taken < most
        self._stamp = stamp
        return taken > 0 or self.wrong != wrong

    def _read(self, most: int) -> int:
        """Take in what is new, and how much that is."""
        with closing(files.read(self.path, brief=True)) as journal:
            with closing(first_entries(journal.read(), 1)) as entries:
                first = next(entries, None)
            if first is None:
                return 0
            if self.state is None or _race_of(first) != self.state.id:
                self._begin(first)
            state, before = self.state, self._number
            assert state is not None
            with closing(first_entries(journal.read(before), most)) as entries:
                state.replay(self._noted(entries))
        self._note_drops(state)
        return self._number - before

    def _begin(self, first: Entry) -> None:
        """A race is there, or another one has taken its place."""
        self._start_over()
        self.state = RaceState.replayed([first])
        self._note(first)
        self._make_room(self.state)
        self._racing = set(self.state.session.racing)

    def _make_room(self, state: RaceState) -> None:
        """A curve for each learner; there may be newcomers."""
        for _ in range(len(state.names) - len(self._curves)):
            self._curves.append(ThinnedCurve(points_for(len(state.names))))
            self._last.append(nan)

    def _noted(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The same; each is noted when the race has taken it in."""
        for entry in entries:
            yield entry
            self._note(entry)
            event = entry.event
            if type(event) is ScoreReported:
                self._curves[event.arm].add(event.score)
                self._last[event.arm] = event.score
            else:
                self._take(event)

    def _take(self, event: Event) -> None:
        assert self.state is not None
        self._make_room(self.state)
        if isinstance(event, PullFailed | LearnerLeft | WinnerSelected):
            self._happen(event)
        elif isinstance(event, Extended):
            self._add(PageEvent(self.state.session.spent, event.why))

    def _note(self, entry: Entry) -> None:
        self._number, self._newest = entry.number, entry.at

    def _happen(self, event: PullFailed | LearnerLeft | WinnerSelected) -> None:
        assert self.state is not None
        session, name = self.state.session, self.state.names[event.arm]
        if isinstance(event, PullFailed):
            text = f"{name}: pull {event.n} failed, {event.reason}"
        elif isinstance(event, WinnerSelected):
            text = f"{name} is named the best and trained on"
        else:
            text = f"{name}: {event.why}"
            self._forget_failure(event.arm)
        bad = isinstance(event, PullFailed) or getattr(event, "how", "") == FAILED
        happening = PageEvent(session.spent, text, bad)
        self._add(happening)
        if isinstance(event, PullFailed):
            self._failure = event.arm, happening

    def _forget_failure(self, arm: int) -> None:
        """Why a learner is out says which pull failed, and how often."""
        if self._failure is not None and self._failure[0] == arm:
            self._happenings = [one for one in self._happenings if one is not self._failure[1]]

    def _note_drops(self, state: RaceState) -> None:
        session = state.session
        racing = set(session.racing)
        gone, self._racing = self._racing - racing, racing
        dropped = [arm for arm in gone if arm not in state.departures]
        for told in sorted((session.explain(arm) for arm in dropped), key=lambda told: told.at):
            text = f"{told.name}: {why_it_stands_there(session, told.arm)}"
            self._add(PageEvent(told.at, text))

    def _add(self, happening: PageEvent) -> None:
        self._happenings.insert(0, happening)
        self._happenings.sort(key=lambda one: -one.pull)  # drops are noticed a little late
        del self._happenings[MOST_HAPPENINGS:]

    # --- what is shown ---

    @property
    def stage(self) -> str:
        """RUNNING, INTERRUPTED or FINISHED."""
        if self.state is not None and self.state.verdict is not None:
            return FINISHED
        return RUNNING if files.is_held(self.path) else INTERRUPTED

    def page(self) -> RacePage:
        """The page as it stands; raises what is wrong with the journal."""
        state = self.state
        if state is None:
            raise JournalError(self.wrong or f"no race has begun in {self.path.name} yet")
        if state.verdict is not None and self.caught_up:
            return self._final_page(state, state.verdict)
        if self._asked_again < inf:
            self._ask_how_sure(state)
        else:  # the first sight of a race does not wait for that
            self._asked_again = 0.0
        return self._live_page(state)

    def _final_page(self, state: RaceState, decided: Decided) -> RacePage:
        if self._finished is None or self._finished[0] is not decided:
            page = page_data(build_verdict(state, self.path), FINISHED)
            self._finished = decided, replace(page, happenings=list(self._happenings))
        return self._finished[1]

    def _ask_how_sure(self, state: RaceState) -> None:
        """Certificate and hindsight look at all pulls: now and then is enough."""
        spent, now = state.session.spent, perf_counter()
        if not self.caught_up or now < self._asked_again or spent < GROWN * self._asked_at + 1:
            return
        try:
            verdict = build_verdict(state, self.path)
        except LatebloomerError:  # every learner has failed
            return
        self._certainty, self._asked_at = certainty_of(verdict), spent
        self._intervals = {k: (arm.lower, arm.upper) for k, arm in enumerate(verdict.learners)}
        self._versions = dict(verdict.versions)
        took = perf_counter() - now
        self._asked_again = now + took + SHARE * took

    def _live_page(self, state: RaceState) -> RacePage:
        session, settings = state.session, state.settings
        stage = self.stage
        known = session.spent > 0 and any(session.pulls_of(i) for i in session.racing)
        best = session.best_arm if known else None
        elapsed = state.elapsed + (max(0.0, time() - self._newest) if stage == RUNNING else 0.0)
        learners = self._learners(state, best)
        return RacePage(
            state=stage,
            best=None if best is None else session.names[best],
            final=session.winner is not None,
            why=self._why(state, learners, stage),
            learners=learners,
            spent=session.spent,
            budget=max(1, session.budget),
            horizon=session.horizon,
            higher_is_better=session.maximize,
            started=state.started,
            seconds=elapsed,
            time_left=self._time_left(state, elapsed),
            named=None if session.winner is None else _named(state),
            trained_on=session.winner is not None,
            levels=[Level(k, n) for k, n in session.levels_to_come],
            belief=_belief(learners, state),
            certainty=self._certainty,
            happenings=list(self._happenings),
            settings=shown_settings(settings.as_dict(), settings.rule),
            versions=self._versions,
            resume_code=resume_code(self.path),
        )

    def _learners(self, state: RaceState, best: int | None) -> list[LearnerOnPage]:
        rows = state.session.standings()
        rows.sort(key=lambda row: row.arm != best)  # it may have finished, or be named
        failed = {row.arm for row in rows if state.session.departure(row.arm) == FAILED}
        rows.sort(key=lambda row: row.arm in failed)
        failures: dict[int, list[str]] = {}
        for one in state.failures:
            failures.setdefault(one.arm, []).append(f"pull {one.n} failed: {one.reason}")
        return [
            replace(self._learner(state, row, row.arm == best), failures=failures.get(row.arm, ()))
            for row in rows
        ]

    def _learner(self, state: RaceState, row: Standing, is_best: bool) -> LearnerOnPage:
        session, arm = state.session, row.arm
        left = session.departure(arm)
        lower, upper = self._intervals.get(arm, (-inf, inf))
        racing = arm in session.racing
        why = "leads" if is_best else "races"
        if session.winner == arm:
            why = "named the best, is trained on"
        elif not racing or left is not None:
            why = self._reason(state, row)
        return LearnerOnPage(
            arm=arm, name=row.name, state=left or row.state, pulls=row.pulls,
            score=self._last[arm], estimate=row.estimate, seconds=state.seconds[arm], why=why,
            curve=self._curves[arm], dropped=not racing and left is None, failed=left == FAILED,
            lower=lower, upper=upper, fan=_fan(state, arm, row),
            steps=state.steps[arm] if state.shares else None,
        )  # fmt: skip

    def _reason(self, state: RaceState, row: Standing) -> str:
        """Why an arm is out; that stays, so it is looked up once."""
        arm = row.arm
        when = (row.left_at, state.departures.get(arm))
        if row.left_at is None or arm not in self._reasons or self._reasons[arm][0] != when:
            text = why_it_stands_there(state.session, arm, when[1])
            self._reasons[arm] = when, text
        return self._reasons[arm][1]

    def _why(self, state: RaceState, learners: list[LearnerOnPage], stage: str) -> str:
        session = state.session
        if not self.caught_up:
            return f"Reading the journal, up to pull {session.spent:,} so far."
        if self.wrong:
            return self.wrong
        known = [one for one in learners if not isnan(one.estimate) and not one.failed]
        if not known:
            return "The first pull is under way." if stage == RUNNING else "No pull was made."
        text = f"It leads with {known[0].estimate:.4g}"
        if session.winner is not None:
            text = f"Named the best with {known[0].estimate:.4g}"
        text += f", against {known[1].estimate:.4g} of {known[1].name}" if known[1:] else ""
        return f"{text}; {len(session.racing):,} of {len(learners):,} learners still race."

    def _time_left(self, state: RaceState, elapsed: float) -> str:
        session, settings = state.session, state.settings
        if session.over:
            return "the verdict comes"
        if settings.seconds is not None:
            left = f"{span_of_time(max(0.0, settings.seconds - elapsed))} left"
        elif session.spent:
            pace = state.elapsed / session.spent
            left = f"about {span_of_time(pace * (session.budget - session.spent))} left"
        else:
            left = "time left unknown"
        waited = time() - self._newest
        if waited < WAITS:
            return left
        arm = session.ask()
        pull = session.pulls_of(arm) + 1
        return f"{left}; waiting for {session.names[arm]} (its pull {pull:,}), {waited:.0f} s"


def first_entries(entries: Iterator[Entry], most: int) -> Generator[Entry, None, None]:
    """The first so many; closed, it lets go of the journal too."""
    try:
        yield from islice(entries, most)
    finally:
        entries.close()  # type: ignore[attr-defined]


def _race_of(first: Entry) -> str:
    return first.event.race if isinstance(first.event, Created) else ""


def _stamp(path: Path) -> Stamp:
    """What changes when a journal is written or replaced."""
    marks: list[int] = []
    for file in (path, Path(f"{path}-wal"), Path(f"{path}.lock")):
        try:
            found = file.stat()
            marks += [found.st_mtime_ns, found.st_size]
        except OSError:
            marks += [0, 0]
    return tuple(marks)


def _fan(state: RaceState, arm: int, row: Standing) -> ForecastFan | None:
    seen = state.session.forecast(arm)
    if seen is None or seen.ahead <= row.pulls or not seen.gain:
        return None
    believed = seen.belief * seen.gain
    level = row.estimate - believed
    return ForecastFan(row.pulls, level, seen.ahead, level + seen.gain, level + believed)


def _belief(learners: list[LearnerOnPage], state: RaceState) -> str:
    """How far forecasts have proved right, in a sentence."""
    found = (state.session.forecast(one.arm) for one in learners if not one.dropped)
    seen = next((forecast for forecast in found if forecast is not None), None)
    if seen is None:
        return ""
    return f"Forecasts explained {seen.belief:.0%} of what happened up to pull {seen.tested:,}."


def _named(state: RaceState) -> tuple[float, int]:
    naming = state.session.selection
    return naming.estimates[naming.arm], naming.pulls
