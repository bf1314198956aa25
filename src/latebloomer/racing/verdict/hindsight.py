"""Hindsight: which learner Successive Halving and ASHA would have kept on the recorded curves.

A race does not train every arm as far as another method would. So each method is replayed with the
largest budget for which all requested pulls were recorded, and the verdict states this budget.
Halving follows the plan of its policy, and ASHA the rule of its policy for rungs. ASHA is replayed
from rung to rung, because pull by pull, as in a session, it would take minutes for thousands of
learners.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, repeat, takewhile
from math import inf
from operator import mul

from latebloomer._util.text import quoted
from latebloomer.policies.rungs import is_cut
from latebloomer.policies.window_ratings import SuccessiveHalving
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.theory.curve_tests import Floats

ETA = 4  # ASHA's reduction factor in Ray Tune and Optuna
TRIES = 400  # number of budgets that are tried, evenly spaced
NEARLY = 0.95  # share of the race's pulls from which budgets count as equal


@dataclass(frozen=True)
class Hindsight:
    """The learner that another method keeps on the recorded curves."""

    rule: str
    pick: str | None  # None if the recorded curves do not suffice
    pulls: int  # number of pulls that the method spends
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Unknown(Exception):
    """A replay needs a value that was not recorded."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The recorded rewards of one arm, and how it left."""

    rewards: Floats
    departure: str | None

    def at(self, n: int) -> float:
        """Return the reward of pull n; after its end, the last one, or -inf if the arm failed."""
        if n <= len(self.rewards):
            return float(self.rewards[n - 1])
        if self.departure == FINISHED:
            return float(self.rewards[-1])
        if self.departure == FAILED:
            return -inf
        raise Unknown

    def cost(self, n: int) -> int:
        """Return the number of pulls needed to train the arm to n pulls."""
        return min(n, len(self.rewards)) if self.departure else n


def hindsight(
    names: Sequence[str], rewards: Sequence[Floats], budget: int, departures: Sequence[str | None]
) -> tuple[Hindsight, ...]:
    """Replay both methods on `rewards`, of which higher ones are better."""
    known = list(map(Curve, rewards, departures))
    return halving(names, known, budget), asha(names, known, budget)


def halving(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay Successive Halving by the latest value; arms are resumed, not restarted."""
    rule = SuccessiveHalving()

    def replay(total: int) -> tuple[int, int]:
        """Return the arm that is kept and the number of pulls spent."""
        plan = rule.plan(len(names), total)
        crew, level, pulls = list(range(len(known))), 0, 0
        for k, n in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
            if level:
                values = {i: known[i].at(level) for i in crew}
                crew = sorted(sorted(crew, key=lambda i: (-values[i], i))[:k])
            for i in crew:
                known[i].at(n)
                pulls += known[i].cost(n) - known[i].cost(level)
            level = n
        return crew[0], pulls

    totals = _downwards(rule.smallest_budget(len(names))[0], budget)
    return _largest("Successive Halving (eta 2)", names, budget, totals, replay)


def asha(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay ASHA with the defaults of tuners: one worker, arms in order, rungs at 1, 4, 16, ...

    At a rung, an arm continues if it is in the best quarter of the arms that have reached it.
    """
    label = f"ASHA (eta {ETA}, grace 1, one worker, learners in this order)"

    @cache  # all ends between the same two rungs have the same rungs
    def cuts(rungs: tuple[int, ...]) -> list[float] | None:
        """Return the rung at which each arm is stopped, or infinity; None if that is unknown."""
        seen: dict[int, list[float]] = {n: [] for n in rungs}  # sorted values at each rung
        try:
            return [_cut(curve, seen) for curve in known]
        except Unknown:
            return None

    def replay(end: int) -> tuple[int, int]:
        rungs = takewhile(lambda n: n < end, accumulate(repeat(ETA), mul, initial=1))
        limits = cuts(tuple(rungs))  # rungs 1, 4, 16, ... below the end
        if limits is None:
            raise Unknown
        stops = [(curve, int(min(end, cut))) for curve, cut in zip(known, limits, strict=True)]
        latest = [curve.at(n) for curve, n in stops]
        return latest.index(max(latest)), sum(curve.cost(n) for curve, n in stops)

    ends = _downwards(1, max(len(curve.rewards) for curve in known))
    return _largest(label, names, budget, ends, replay, ", each up to {},")


def _cut(curve: Curve, rungs: dict[int, list[float]]) -> float:
    for n, seen in rungs.items():
        value = curve.at(n)
        insort(seen, value)
        if is_cut(len(seen) - bisect_right(seen, value), len(seen), ETA):
            return n
    return inf


def _downwards(least: int, most: int) -> Iterable[int]:
    step = max(1, (most - least) // TRIES)
    return [*range(most, least, -step), least] if most >= least else []


def _largest(
    rule: str,
    names: Sequence[str],
    budget: int,
    sizes: Iterable[int],
    replay: Callable[[int], tuple[int, int]],
    each: str = "",
) -> Hindsight:
    """Return the hindsight of a method for the first size for which the curves suffice.

    `replay` returns the arm that is kept and the number of pulls for a size.
    """
    for size in sizes:
        with suppress(Unknown):
            pick, pulls = replay(size)
            if pulls > budget:
                continue
            nearly = pulls >= NEARLY * budget
            short = "" if nearly else f" of {budget:,} (as far as curves were recorded)"
            text = f"{rule} with {pulls:,} pulls{short}{each.format(size)} would have kept "
            return Hindsight(rule, names[pick], pulls, text + quoted(names[pick]))
    return Hindsight(rule, None, 0, f"{rule}: unknown, because it needs more than was recorded")
