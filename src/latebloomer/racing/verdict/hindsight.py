"""What Successive Halving and ASHA would have kept, as far as the recorded curves show.

A race does not train every arm as far as another method would have. So each method is replayed
with the largest budget for which all that it requests was recorded, and that budget is stated.
Halving follows its policy's plan and ASHA its policy's rule for rungs, from rung to rung: pull by
pull, as in a session, it would take minutes for thousands of learners.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, repeat, takewhile
from math import inf
from operator import mul

from latebloomer.policies.rungs import is_cut
from latebloomer.policies.window_ratings import SuccessiveHalving
from latebloomer.racing.verdict.history import Floats
from latebloomer.session.events import FAILED, FINISHED

ETA = 4  # ASHA's reduction factor in Ray Tune and Optuna
TRIES = 400  # budgets that are tried, evenly spaced
NEARLY = 0.95  # of the race's pulls: then the budgets count as equal


@dataclass(frozen=True)
class Hindsight:
    """What another method keeps on the recorded curves."""

    rule: str
    pick: str | None  # None if the recorded curves do not suffice
    pulls: int  # that it spends
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Unknown(Exception):
    """A value is needed that was not recorded."""


class Curve:
    """The recorded rewards of one arm, and how it left."""

    def __init__(self, rewards: Floats, left: str | None) -> None:
        self.rewards, self.left = rewards, left

    def at(self, n: int) -> float:
        """Return the reward of pull n; the last one of a finished arm, -inf of a failed one."""
        if n <= len(self.rewards):
            return float(self.rewards[n - 1])
        if self.left == FINISHED:
            return float(self.rewards[-1])
        if self.left == FAILED:
            return -inf
        raise Unknown

    def cost(self, n: int) -> int:
        """Return the pulls that training it to n takes."""
        return min(n, len(self.rewards)) if self.left else n


def hindsight(
    names: Sequence[str], rewards: Sequence[Floats], budget: int, left: Sequence[str | None]
) -> tuple[Hindsight, ...]:
    """Replay both methods; `rewards` are such that higher is better."""
    known = [Curve(x, word) for x, word in zip(rewards, left, strict=True)]
    return halving(names, known, budget), asha(names, known, budget)


def halving(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay Successive Halving by the latest value; arms are resumed, not restarted."""
    rule, label = SuccessiveHalving(), "Successive Halving (eta 2)"
    for total in _downwards(rule.smallest_budget(len(names))[0], budget):
        plan = rule.plan(len(names), total)
        try:
            played = _knockout(known, plan.keep.tolist(), plan.upto.tolist())
        except Unknown:
            continue
        return _found(label, names, played, budget)
    return _unknown(label)


def _knockout(known: Sequence[Curve], keep: list[int], upto: list[int]) -> tuple[int, int]:
    """Return the arm that is kept and the pulls that this takes."""
    crew, level, pulls = list(range(len(known))), 0, 0
    for k, n in zip(keep, upto, strict=True):
        if level:
            values = {i: known[i].at(level) for i in crew}
            crew = sorted(sorted(crew, key=lambda i: (-values[i], i))[:k])
        for i in crew:
            known[i].at(n)
            pulls += known[i].cost(n) - known[i].cost(level)
        level = n
    return crew[0], pulls


def asha(names: Sequence[str], known: Sequence[Curve], budget: int) -> Hindsight:
    """Replay ASHA as tuners ship it: one worker, arms in the given order, rungs at 1, 4, 16, ...

    At a rung an arm continues if it is in the top quarter of those that reached it so far.
    """
    label = f"ASHA (eta {ETA}, grace 1, one worker, learners in this order)"
    cuts = cache(partial(_cuts, known))  # ends between the same two rungs have the same ones
    for end in _downwards(1, max(len(curve.rewards) for curve in known)):
        try:
            pick, pulls = _asha(known, cuts(_rungs_below(end)), end)
        except Unknown:
            continue
        if pulls <= budget:
            return _found(label, names, (pick, pulls), budget, f", each up to {end},")
    return _unknown(label)


def _rungs_below(end: int) -> tuple[int, ...]:
    """Return 1, 4, 16, ... below `end`."""
    return tuple(takewhile(lambda n: n < end, accumulate(repeat(ETA), mul, initial=1)))


def _cuts(known: Sequence[Curve], rungs: tuple[int, ...]) -> list[int | None] | None:
    """Return the rung at which each arm is stopped, or None; None for all: unknown."""
    seen: dict[int, list[float]] = {n: [] for n in rungs}
    try:
        return [_cut(curve, seen) for curve in known]
    except Unknown:
        return None


def _asha(known: Sequence[Curve], cuts: list[int | None] | None, end: int) -> tuple[int, int]:
    if cuts is None:
        raise Unknown
    stops = [end if cut is None else cut for cut in cuts]
    latest = [curve.at(n) for curve, n in zip(known, stops, strict=True)]
    pulls = sum(curve.cost(n) for curve, n in zip(known, stops, strict=True))
    return max(range(len(latest)), key=lambda i: (latest[i], -i)), pulls


def _cut(curve: Curve, rungs: dict[int, list[float]]) -> int | None:
    """Return where ASHA stops an arm; `rungs` has the values seen at each, sorted."""
    for n, seen in rungs.items():
        value = curve.at(n)
        insort(seen, value)
        if is_cut(len(seen) - bisect_right(seen, value), len(seen), ETA):
            return n
    return None


def _downwards(least: int, most: int) -> list[int]:
    if most < least:
        return []
    step = max(1, (most - least) // TRIES)
    return [*range(most, least, -step), least]


def _found(
    rule: str, names: Sequence[str], played: tuple[int, int], budget: int, more: str = ""
) -> Hindsight:
    pick, pulls = played
    short = "" if pulls >= NEARLY * budget else f" of {budget} (as far as curves were recorded)"
    text = f"{rule} with {pulls} pulls{short}{more} would have kept {names[pick]}"
    return Hindsight(rule, names[pick], pulls, text)


def _unknown(rule: str) -> Hindsight:
    return Hindsight(rule, None, 0, f"{rule}: unknown, because it needs more than was recorded")
