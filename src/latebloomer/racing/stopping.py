r"""When a race ends before its plan: its time is over, or its winner is certified.

Time
----
The first sweep measures a pull; then the budget in pulls is `spent + time left / pull length`, and
it is set again when a phase ends or when the forecast is off by more than 2 %. Each new budget is
an event, so that a replay needs no clock. The time of earlier processes counts; the time that a
resume takes to restore learners does not.

Certificates
------------
`stop="certified"` ends a race once its winner is certified. Looking again and again until the
answer pleases is a way to be wrong more often than one says. So what is said holds for all looks
together.

- Looks are at pull counts that are fixed before the first pull: after three pulls of each learner,
  and then whenever the count has grown by a tenth. So a look costs little (all of them together
  about eleven times what the last one does), and at most a tenth of the pulls is spent in vain.
- A certificate's intervals hold for all pull counts up to its horizon together, at any check
  (`theory/certificate.py`), as long as neither the horizon nor the largest count depends on
  rewards. Here they are those of the budget that was given, however early the race ends. The noise
  level is estimated again at each check: the share of delta for that is divided among the checks.
- In a time-based race without a horizon, the horizon moves with the budget. There the k-th check
  has the delta :math:`\delta / (k (k + 1))`, which sums up to less than delta.
- If the test of assumptions contradicts a curve, the race continues: the certificate assumes
  what that test doubts.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from math import ceil, inf
from time import perf_counter

from latebloomer.errors import SettingError
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.history import History, check_curves
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.events import Event, PullFailed, Restored, ScoreReported
from latebloomer.session.session import Session
from latebloomer.theory.certificate import DELTA, Certificate

PROVISIONAL = 1000  # pulls per arm, until the first sweep has been measured
SLACK = 0.02  # a forecast this close to the time given stays
PAUSE = 0.01  # of the time given, at least, between two plans within a phase
TICK = 1e-7  # no pull is shorter, in seconds
NEWEST = 8  # latest pulls of an arm that tell how long its next one takes
GRACE = 0.1  # of the time given, after its end, until calls that can be interrupted are
LEAST_GRACE = 1.0  # seconds
GROWTH = 1.1  # from one look to the next
FIRST = 3  # pulls of each learner: fewer tell nothing about the noise

# --- the time ---


def grace_of(seconds: float | None) -> float:
    """Return the seconds after the end of a time budget until running calls are interrupted."""
    return inf if seconds is None else max(LEAST_GRACE, GRACE * seconds)


class Stopwatch:
    """Seconds of a race, over all processes that took it up, by a clock that is never set."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before  # spent by earlier processes
        self._began = perf_counter()

    @property
    def here(self) -> float:
        """Seconds in this process."""
        return perf_counter() - self._began

    @property
    def elapsed(self) -> float:
        """Seconds of the race so far."""
        return self._before + (perf_counter() - self._began)

    def pause(self, seconds: float) -> None:
        """Take time out that is not the race's: restoring learners."""
        self._began += seconds


class TimeBudget:
    """Measures pulls and decides when to plan again or to stop."""

    def __init__(self, seconds: float, arms: int, watch: Stopwatch, lanes: int = 1) -> None:
        self.seconds, self.watch = seconds, watch
        self.reserved = 0.0  # seconds kept for what comes after the race
        self._lanes = lanes  # pulls that can be made at the same time
        self._length = [0.0] * arms
        self._count = [0] * arms
        self._pulling = self._not_pulling = 0.0
        self._pulls = 0
        self._all_tried = False
        self._planned_at = -seconds
        self._phase: tuple[int, int] | None = None

    def until(self, seconds: float) -> None:
        """Set a new end time and re-plan from now on."""
        self.seconds, self._planned_at, self._phase = seconds, -seconds, None

    def recall(self, arm: int, seconds: float, count: int) -> None:
        """Take over what an earlier process has measured."""
        self._length[arm], self._count[arm] = seconds, count

    def on_event(self, event: Event) -> None:
        """Learn from pulls; building and failing are time spent, not the price of a pull.

        The first pull of an arm is often slow, so the second replaces it.
        """
        if type(event) is ScoreReported:
            arm, seconds = event.arm, event.seconds
            count = self._count[arm] = self._count[arm] + 1
            share = 1.0 if count <= 2 else max(1 / NEWEST, 1 / (count - 1))
            self._length[arm] += share * (seconds - self._length[arm])
            self._pulling += seconds / self._lanes
            self._pulls += 1
        elif isinstance(event, PullFailed | Restored):
            self._not_pulling += event.seconds / self._lanes

    def pull_length(self, arms: list[int]) -> float:
        """Return the seconds per pull, with what is between pulls, over arms pulled evenly."""
        lanes, pulls = min(self._lanes, len(arms)) or 1, max(1, self._pulls)
        known = [self._length[i] / lanes for i in arms if self._count[i]]
        mean = sum(known) / len(known) if known else self._pulling / pulls
        between = (self.watch.here - self._pulling - self._not_pulling) / pulls
        return max(TICK, mean + max(0.0, between))

    def left(self) -> float:
        """Return the seconds until the end."""
        return self.seconds - self.reserved - self.watch.elapsed

    def out_of_time(self, session: Session) -> bool:
        """Return whether another pull would end further from the end time than stopping now.

        Never before each arm has had its first pull, or has failed.
        """
        if not self._swept(session):
            return False
        arms = session.trainable if session.over else [session.ask()]
        return self.left() < self.pull_length(arms) / 2

    def budget(self, session: Session) -> int | None:
        """Return the total pulls that fit, if the plan needs another number; else None."""
        arms = session.trainable
        if not arms or not (self._swept(session) or session.winner is not None):
            return None
        fits = self.forecast(session, arms)
        if session.over:
            return fits if fits > session.spent else None
        planned = session.deciding_budget if session.winner is None else session.budget
        if not self._due(session, fits, planned):
            return None
        self._planned_at, self._phase = self.watch.elapsed, session.phase
        return None if fits == planned else max(fits, session.spent)

    def forecast(self, session: Session, arms: list[int]) -> int:
        """Return the total pulls if these arms have the time that is left."""
        return session.spent + max(0, round(self.left() / self.pull_length(arms)))

    def _swept(self, session: Session) -> bool:
        """Return whether each arm has had a pull, or has failed."""
        arms = range(len(session.names))
        tried = (session.pulls_of(i) or session.departure(i) for i in arms)
        self._all_tried = self._all_tried or all(tried)
        return self._all_tried

    def _due(self, session: Session, fits: int, planned: int) -> bool:
        """Return whether to plan now: only where arms have had equally many pulls, or need not."""
        if self._phase is not None and session.phase[0] == self._phase[0]:
            waited = self.watch.elapsed - self._planned_at >= PAUSE * self.seconds
            if not waited or abs(fits - planned) <= SLACK * fits:
                return False
        return session.decides_every_pull or len({*map(session.pulls_of, session.trainable)}) <= 1


# --- certificates ---


def looks(arms: int) -> Iterator[int]:
    """Yield the numbers of pulls after which the race is checked, without end.

    >>> from itertools import islice
    >>> list(islice(looks(arms=2), 8))
    [6, 7, 8, 9, 10, 11, 13, 15]
    """
    pulls = FIRST * arms
    while True:
        yield pulls
        pulls = max(pulls + 1, ceil(GROWTH * pulls))


def certificate_of(session: Session, settings: Settings) -> Certificate | None:
    """Return what is proved now; None if no arm has the three rewards for a noise estimate."""
    bounds, budget = settings.score_bounds, settings.horizon  # the maximum pulls of an arm
    if settings.budget is not None:
        budget = max(settings.budget, session.budget)
    last = session.spent - 1 if budget is None else budget
    count = sum(1 for _ in takewhile(lambda pulls: pulls <= last, looks(len(session.names)))) + 1
    try:
        if settings.stop is None:
            return session.certificate(score_range=bounds)
        if budget is not None:
            return session.certificate(score_range=bounds, budget=budget, looks=count)
        delta = DELTA / (count * (count + 1))
        return replace(session.certificate(delta=delta, score_range=bounds), delta=DELTA)
    except SettingError:
        return None


class StopWhenSure:
    """Says when a race may end; nothing of it needs to be kept in a journal."""

    def __init__(self, session: Session, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._looks = looks(len(session.names))
        self._next = next(n for n in self._looks if n >= session.spent)

    def reason(self, elapsed: float) -> str | None:
        """Return why to stop now; None if no check is due, or nothing is certain."""
        session, settings = self._session, self._settings
        if session.spent < self._next or session.over or session.winner is not None:
            return None
        self._next = next(n for n in self._looks if n > session.spent)
        proof = certificate_of(session, settings)
        if proof is None or not proof.certified(session.best_arm):
            return None
        found = check_curves(session.names, History.of(session).rewards())
        if any(finding.contradicts for finding in found):
            return None
        kept = set_aside(session.budget, settings.winner_share)
        left = f"{session.budget - session.spent - kept:,} of {session.budget:,} pulls"
        if settings.seconds is not None:
            left = f"{max(0.0, settings.seconds - elapsed):.3g} s of {settings.seconds:g}"
        name = session.names[session.best_arm]
        return f"{name} is certified the best, {left} were not needed"
