"""The clock of a race: time spent, pulls that fit into the rest, and events that are due.

The first sweep measures the length of a pull. Then the budget in pulls is `spent + time left /
pull length`. It is computed again when a phase ends, or when the number of pulls that fit differs
from the plan by more than 2 %. Each new budget is an event, so that a replay needs no clock. The
time of earlier processes counts; the time in which a resume restores learners does not.

The length of a pull is computed from the seconds in the journal (`PullTimes`), including those of
earlier processes. So a race that was killed and resumed plans as if it had never stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import perf_counter

from latebloomer.racing.priced_plan import MEASURED, plans_by_price, priced_plan, prices_known
from latebloomer.racing.race_state import RaceState
from latebloomer.session.checked_inputs import whole_budget
from latebloomer.session.events import BudgetReplanned, Stopped

SLACK = 0.02  # re-plan only if the number of pulls that fit is off by more than 2 %
PAUSE = 0.01  # minimum share of the time budget between two plans within a phase
TICK = 1e-7  # seconds: shortest pull that is assumed
# Minimum pulls of each learner between two points where learners wait for each other.
LEAST_REVIEW = 8
# Grace period after the end, as a share of the time budget: then calls are interrupted.
GRACE = 0.1
LEAST_GRACE = 1.0  # seconds


def grace_of(seconds: float | None) -> float:
    """Return the seconds after the end of a time budget until running calls are interrupted."""
    return inf if seconds is None else max(LEAST_GRACE, GRACE * seconds)


class RaceClock:
    """Measure the time of a race, and return the event that is due because of it.

    Parameters
    ----------
    state : RaceState
        State of the race, with its settings and recorded seconds.
    parallel_pulls : int
        Number of pulls that can be made at the same time.
    now : Callable[[], float] | None
        Function that returns the seconds of a clock that is never set. Default:
        `time.perf_counter`.
    """

    def __init__(
        self,
        state: RaceState,
        parallel_pulls: int = 1,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.reserved = 0.0  # seconds reserved for work after the race
        self._state, self._now = state, now or perf_counter
        self._tried = 0  # number of arms, when each of them has been tried
        self._review = 0  # pulls of each arm at which the plan is checked again
        self.start(parallel_pulls)

    def start(self, parallel_pulls: int = 1) -> None:
        """Start the clock; recorded time of earlier processes is added."""
        self._parallel_pulls = parallel_pulls
        self._began = self._now() - self._state.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds of the race so far, over all processes that ran it."""
        return self._now() - self._began

    def exclude(self, seconds: float) -> None:
        """Exclude time that does not count, such as the time to restore learners."""
        self._began += seconds

    def seconds_for_calls(self) -> float:
        """Return the seconds until running calls are interrupted."""
        seconds = self._state.settings.seconds
        if seconds is None or self._state.session.over:
            return inf
        return seconds + grace_of(seconds) - self.elapsed

    def pulls_until_review(self, wanted: Mapping[int, int]) -> Mapping[int, int]:
        """Return the wanted pulls that may be made before the plan is checked again.

        A new plan needs learners with equally many pulls. So learners that are pulled at the same
        time wait for each other: until prices are known, after each sweep, and then after half of
        the pulls up to the next level.
        """
        state, session = self._state, self._state.session
        if state.settings.seconds is None or session.decides_every_pull or len(wanted) < 2:
            return wanted
        level = max(session.pulls_of(i) + n for i, n in wanted.items())
        fewest = min(map(session.pulls_of, wanted))
        if not fewest < self._review <= level:
            half = max(LEAST_REVIEW, (level - fewest + 1) // 2)
            self._review = min(level, fewest + (half if prices_known(state) else 1))
        room = {i: min(n, self._review - session.pulls_of(i)) for i, n in wanted.items()}
        return {i: n for i, n in room.items() if n > 0}

    # --- events that are due ---

    def event_due(self) -> BudgetReplanned | Stopped | None:
        """Return the event that is due now, a new budget or the end; None if the plan stays."""
        session, seconds = self._state.session, self._state.settings.seconds
        if seconds is None or not session.spent:
            return None
        due = self._priced_plan_due() if plans_by_price(self._state) else None
        if due is not None:
            return due
        pulls = self._new_budget()
        if pulls is not None and pulls > session.spent:
            whole, deciding = pulls, session.deciding_budget
            if session.winner is None:
                whole, deciding = whole_budget(pulls, self._state.settings.winner_share), pulls
            why = f"{self._end - self.reserved - self.elapsed:.3g} s left of {self._end:g}"
            return BudgetReplanned(whole, deciding, why)
        if not session.over and self._is_out_of_time():
            return Stopped(f"{self.elapsed:.3g} s of {self._end:g} are over")
        return None

    def budget_with_winner(self, arm: int) -> int | None:
        """Return the total pulls if this arm gets all remaining time; None without a limit."""
        seconds = self._state.settings.seconds
        return None if seconds is None else self._pulls_until(seconds, [arm])

    @property
    def _end(self) -> float:
        """Seconds of the race at which its current part, deciding or training, ends."""
        settings, selected = self._state.settings, self._state.session.winner is not None
        return (settings.seconds or inf) * (1.0 if selected else 1.0 - settings.winner_share)

    def _pulls_until(self, end: float, arms: Sequence[int]) -> int:
        """Return the total pulls if these arms are pulled until second `end` of the race."""
        remaining = end - self.reserved - self.elapsed
        return self._state.session.spent + max(0, round(remaining / self._pull_length(arms)))

    def _pull_length(self, arms: Sequence[int]) -> float:
        """Return the mean seconds per pull of these arms, including the time between pulls."""
        times, session = self._state.times, self._state.session
        pulls, together = max(1, session.spent), min(self._parallel_pulls, len(arms)) or 1
        prices = [times.price(i) / together for i in arms if session.pulls_of(i)]
        mean = times.training / self._parallel_pulls / pulls
        if prices:
            mean = sum(prices) / len(prices)
        return max(TICK, mean + self._between())

    def _between(self) -> float:
        """Return the mean seconds between two pulls."""
        times, pulls = self._state.times, max(1, self._state.session.spent)
        busy = (times.training + times.other) / self._parallel_pulls
        return max(0.0, (self.elapsed - busy) / pulls)

    def _is_out_of_time(self) -> bool:
        """Return whether stopping now is closer to the end time than one more pull.

        The result is False if the next pull is the first one of an arm.
        """
        session = self._state.session
        due = session.ask()
        remaining = self._end - self.reserved - self.elapsed
        return session.pulls_of(due) > 0 and remaining < self._pull_length([due]) / 2

    def _new_budget(self) -> int | None:
        """Return the total number of pulls that fit, if the plan must be changed; else None."""
        session, latest = self._state.session, self._state.planned
        arms = session.trainable
        if session.over and latest is not None and latest.final and latest.spent == session.spent:
            return None  # stopped, or already over in spite of more pulls
        if not session.over and plans_by_price(self._state) and len(arms) > 1:
            return None
        if not arms or not (self._every_arm_was_tried() or session.winner is not None):
            return None
        fits = self._pulls_until(self._end, arms)
        if session.over:
            return fits if fits > session.spent else None
        planned = session.deciding_budget if session.winner is None else session.budget
        if fits == planned or not self._is_plan_due(arms, fits, planned):
            return None
        return max(fits, session.spent)

    def _priced_plan_due(self) -> BudgetReplanned | None:
        """Return the levels for the recorded prices, if they differ from those in force."""
        state, session = self._state, self._state.session
        arms = session.trainable
        if len(arms) < 2 or not self._every_arm_was_tried() or not self._is_even(arms):
            return None
        in_force = session.levels_to_come[0][1] if session.levels_given else 0
        if in_force and not (self._is_new_phase() or self._has_waited()):
            return None
        remaining = self._end - self.reserved - self.elapsed
        plan = priced_plan(state, arms, remaining, self._between(), self._parallel_pulls)
        if abs(plan.levels[0] - in_force) <= SLACK * in_force:
            return None
        whole = whole_budget(plan.pulls, state.settings.winner_share)
        why = f"{remaining:.3g} s left of {self._end:g}"
        return BudgetReplanned(max(whole, plan.pulls), plan.pulls, why, plan.levels, plan.prices)

    def _every_arm_was_tried(self) -> bool:
        """Return whether each arm has had a pull, or has failed."""
        arms = len(self._state.session.names)
        if self._tried < arms and all(map(self._was_tried, range(self._tried, arms))):
            self._tried = arms
        return self._tried == arms

    def _was_tried(self, arm: int) -> bool:
        session = self._state.session
        return session.pulls_of(arm) > 0 or session.departure(arm) is not None

    def _is_plan_due(self, arms: Sequence[int], fits: int, planned: int) -> bool:
        """Return whether to plan now: arms must have equal pulls, unless the policy picks."""
        near = not self._has_waited() or abs(fits - planned) <= SLACK * fits
        if near and not self._is_new_phase():
            return False
        return self._state.session.decides_every_pull or self._is_even(arms)

    def _is_new_phase(self) -> bool:
        """Return whether no budget was set yet in this phase, or since prices are known."""
        latest, session = self._state.planned, self._state.session
        if latest is None or session.phase[0] != latest.phase:
            return True
        just_known = session.spent > latest.spent and prices_known(self._state)
        return just_known and all(session.pulls_of(i) == MEASURED for i in session.trainable)

    def _has_waited(self) -> bool:
        """Return whether enough time has passed since the latest budget was set."""
        latest, seconds = self._state.planned, self._state.settings.seconds or 0.0
        return latest is None or self.elapsed - latest.elapsed >= PAUSE * seconds

    def _is_even(self, arms: Sequence[int]) -> bool:
        """Return whether these arms have had equally many pulls."""
        return len({*map(self._state.session.pulls_of, arms)}) <= 1
