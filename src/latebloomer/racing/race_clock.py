"""The time of a race: how much is over, how many pulls fit into the rest, and what that makes due.

The first sweep measures a pull; then the budget in pulls is `spent + time left / pull length`, and
it is set again when a phase ends or when the forecast is off by more than 2 %. Each new budget is
an event, so that a replay needs no clock. The time of earlier processes counts; the time that a
resume takes to restore learners does not.

What a pull takes is read from the seconds that the journal records (`PullTimes`), in earlier
processes too. So a race that was killed and resumed plans as if it had never stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import perf_counter

from latebloomer.racing.priced_plan import MEASURED, plans_by_price, priced_plan, prices_known
from latebloomer.racing.race_state import RaceState
from latebloomer.session.checked_inputs import whole_budget
from latebloomer.session.events import BudgetReplanned, Stopped

SLACK = 0.02  # a forecast this close to the time given stays
PAUSE = 0.01  # of the time given, at least, between two plans within a phase
TICK = 1e-7  # no pull is shorter, in seconds
LEAST_REVIEW = 8  # pulls of each learner, at least, between two waits for each other
GRACE = 0.1  # of the time given, after its end, until calls that can be interrupted are
LEAST_GRACE = 1.0  # seconds


def grace_of(seconds: float | None) -> float:
    """Return the seconds after the end of a time budget until running calls are interrupted."""
    return inf if seconds is None else max(LEAST_GRACE, GRACE * seconds)


class RaceClock:
    """Measures the time of a race, and says which event it makes due.

    Parameters
    ----------
    state : RaceState
        The race, with its settings and the seconds that it has recorded.
    parallel_pulls : int
        Number of pulls that can be made at the same time.
    now : Callable[[], float] | None
        Gives the seconds on a clock that is never set. Default: `time.perf_counter`.
    """

    def __init__(
        self,
        state: RaceState,
        parallel_pulls: int = 1,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.reserved = 0.0  # seconds kept for what comes after the race
        self._state, self._now = state, now or perf_counter
        self._tried = 0  # number of arms, once each of them has been tried
        self._review = 0  # pulls of each arm when the plan is looked at again
        self.start(parallel_pulls)

    def start(self, parallel_pulls: int = 1) -> None:
        """Let the time of the race run from here, after what is recorded."""
        self._parallel_pulls = parallel_pulls
        self._began = self._now() - self._state.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds of the race so far, over all processes that ran it."""
        return self._now() - self._began

    def exclude(self, seconds: float) -> None:
        """Take time out that is not the race's: restoring learners."""
        self._began += seconds

    def seconds_for_calls(self) -> float:
        """Return the seconds until calls that still run are interrupted."""
        seconds = self._state.settings.seconds
        if seconds is None or self._state.session.over:
            return inf
        return seconds + grace_of(seconds) - self.elapsed

    def pulls_until_review(self, wanted: Mapping[int, int]) -> Mapping[int, int]:
        """Return the wanted pulls that may be made before the plan in time is looked at again.

        Plans need learners with equally many pulls. So learners that are pulled at the same time
        wait for each other: after each sweep until prices are known, then when half of the pulls
        up to the next level are made.
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

    # --- what is due ---

    def event_due(self) -> BudgetReplanned | Stopped | None:
        """Return the new budget, or the end, that is due now; None if the plan stays."""
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
        """Return the total pulls if this arm has all time that is left; None without a limit."""
        seconds = self._state.settings.seconds
        return None if seconds is None else self._pulls_until(seconds, [arm])

    @property
    def _end(self) -> float:
        """Seconds of the race at which its current part, deciding or training, ends."""
        settings, selected = self._state.settings, self._state.session.winner is not None
        return (settings.seconds or inf) * (1.0 if selected else 1.0 - settings.winner_share)

    def _pulls_until(self, end: float, arms: Sequence[int]) -> int:
        """Return the total pulls if these arms are pulled until `end` seconds of the race."""
        left = end - self.reserved - self.elapsed
        return self._state.session.spent + max(0, round(left / self._pull_length(arms)))

    def _pull_length(self, arms: Sequence[int]) -> float:
        """Return the seconds per pull, with what is between pulls, over arms pulled evenly."""
        times, session = self._state.times, self._state.session
        pulls, together = max(1, session.spent), min(self._parallel_pulls, len(arms)) or 1
        prices = [times.price(i) / together for i in arms if session.pulls_of(i)]
        mean = times.training / self._parallel_pulls / pulls
        if prices:
            mean = sum(prices) / len(prices)
        return max(TICK, mean + self._between())

    def _between(self) -> float:
        """Return the seconds between two pulls."""
        times, pulls = self._state.times, max(1, self._state.session.spent)
        busy = (times.training + times.other) / self._parallel_pulls
        return max(0.0, (self.elapsed - busy) / pulls)

    def _is_out_of_time(self) -> bool:
        """Return whether another pull would end further from the end time than stopping now.

        Never if it is the first pull of an arm.
        """
        session = self._state.session
        due = session.ask()
        left = self._end - self.reserved - self.elapsed
        return session.pulls_of(due) > 0 and left < self._pull_length([due]) / 2

    def _new_budget(self) -> int | None:
        """Return the total pulls that fit, if the plan needs another number; else None."""
        session, latest = self._state.session, self._state.planned
        arms = session.trainable
        if session.over and latest is not None and latest.final and latest.spent == session.spent:
            return None  # it was stopped, or more pulls have not changed that it is over
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
        """Return the levels that recorded prices pay for, if they are not those in force."""
        state, session = self._state, self._state.session
        arms = session.trainable
        if len(arms) < 2 or not self._every_arm_was_tried() or not self._is_even(arms):
            return None
        in_force = session.levels_to_come[0][1] if session.levels_given else 0
        if in_force and not (self._is_new_phase() or self._has_waited()):
            return None
        left = self._end - self.reserved - self.elapsed
        plan = priced_plan(state, arms, left, self._between(), self._parallel_pulls)
        if abs(plan.levels[0] - in_force) <= SLACK * in_force:
            return None
        whole = whole_budget(plan.pulls, state.settings.winner_share)
        why = f"{left:.3g} s left of {self._end:g}"
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
        """Return whether to plan now: only where arms have had equally many pulls, or need not."""
        near = not self._has_waited() or abs(fits - planned) <= SLACK * fits
        if near and not self._is_new_phase():
            return False
        return self._state.session.decides_every_pull or self._is_even(arms)

    def _is_new_phase(self) -> bool:
        """Return whether no budget was set in this phase, or since prices are known."""
        latest, session = self._state.planned, self._state.session
        if latest is None or session.phase[0] != latest.phase:
            return True
        just_known = session.spent > latest.spent and prices_known(self._state)
        return just_known and all(session.pulls_of(i) == MEASURED for i in session.trainable)

    def _has_waited(self) -> bool:
        """Return whether the latest budget was set long enough ago for another one."""
        latest, seconds = self._state.planned, self._state.settings.seconds or 0.0
        return latest is None or self.elapsed - latest.elapsed >= PAUSE * seconds

    def _is_even(self, arms: Sequence[int]) -> bool:
        """Return whether these arms have had equally many pulls."""
        return len({*map(self._state.session.pulls_of, arms)}) <= 1
