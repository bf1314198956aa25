"""Hyperband on a fixed set of arms and a fixed budget, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, RACERS, Ints, Ledger, remember_nothing
from latebloomer.errors import need_whole, require
from latebloomer.policies.base import Policy


class Numbers(NamedTuple):
    """What `self` is inside the kernels; brackets are blocks of arms."""

    bracket: Ints  # by arm
    upto: Ints  # pulls at rung k of bracket b, in cell b * width + k
    keep: Ints  # arms of bracket b that play rung k
    width: int  # rungs of the longest bracket


class Bracket(NamedTuple):
    """Successive Halving over some arms: `keep[k]` of them are trained to `upto[k]` pulls."""

    upto: tuple[int, ...]
    keep: tuple[int, ...]

    @property
    def cost(self) -> int:
        """Number of pulls."""
        return sum(
            k * (n - before)
            for k, n, before in zip(self.keep, self.upto, (0, *self.upto), strict=False)
        )


@dataclass(frozen=True)
class Hyperband(Policy):
    r"""Run several Successive Halvings side by side, from early to late drops.

    The comparator in common use (Li et al., JMLR 2018; eta = 3), fitted to a fixed set of arms
    and a fixed budget. Bracket s = S, ..., 0 begins at :math:`R \eta^{-s}` pulls and keeps one in
    eta at each rung up to R, :math:`S = \lfloor \log_\eta \min(H, T) \rfloor`. The original draws
    :math:`\lceil (S+1) \eta^s / (s+1) \rceil` new configurations for it; here the K arms are dealt
    out in these proportions, in index order, each to one bracket, as Ray Tune and Optuna do. R is
    the largest value up to H that the budget pays for; the rest is not spent. The recommendation
    is the best latest value.

    Parameters
    ----------
    eta : int
        At a rung, one in eta arms continues.

    Examples
    --------
    >>> deal(arms=8, longest=52, eta=3)  # s = 3, 2, 1, 0
    [4, 2, 1, 1]
    >>> Hyperband().brackets(arms=8, budget=208, horizon=52)[:2]  # four arms and two
    [Bracket(upto=(1, 5, 16, 50), keep=(4, 1, 1, 1)), Bracket(upto=(5, 16, 50), keep=(2, 1, 1))]
    """

    eta: int = 3

    name: ClassVar[str] = "hyperband"
    cites: ClassVar[tuple[str, ...]] = ("Li18",)
    remember = staticmethod(remember_nothing)

    def __post_init__(self) -> None:
        require(need_whole("eta", self.eta) >= 2, "eta", self.eta, "at least 2",
                "one in eta learners continues")  # fmt: skip

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    def brackets(self, arms: int, budget: int, horizon: int) -> list[Bracket]:
        """Return the brackets at the largest R that the budget pays for."""
        longest = min(budget, horizon)
        sizes = deal(arms, longest, self.eta)
        low, high = 1, longest
        while low < high:
            R = (low + high + 1) // 2
            fits = sum(bracket.cost for bracket in ladder(sizes, R, self.eta)) <= budget
            low, high = (R, high) if fits else (low, R - 1)
        return ladder(sizes, low, self.eta)

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        brackets = self.brackets(arms, budget, horizon)
        width = len(brackets[0].upto)
        upto, keep = np.zeros((2, len(brackets), width), np.int64)
        for b, bracket in enumerate(brackets):
            upto[b, : len(bracket.upto)], keep[b, : len(bracket.keep)] = bracket
        owner = np.repeat(np.arange(len(brackets)), [bracket.keep[0] for bracket in brackets])
        return Numbers(owner, upto.ravel(), keep.ravel(), width)

    def restricted(self, rule: Numbers, arms: Sequence[int]) -> Numbers:
        return rule._replace(bracket=[rule.bracket[arm] for arm in arms])

    @kernel
    def update_rating(self: Any, ledger: Ledger, i: int, horizon: int) -> None:
        ledger.rating[i] = ledger.last[i]

    @kernel
    def pick(self: Any, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        if pulled != ANY and lacking(self, ledger, pulled):
            return pulled
        due = first_lacking(self, ledger)
        while due == OVER and promote_all(self, ledger):
            due = first_lacking(self, ledger)
        return due

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return other arms that have not reached their rung."""
        racing = ledger.racing[: ledger.cursor[RACERS]]
        others = [i for i in racing if i not in held and lacking(rule, ledger, i)]
        return [*held, *others[: count - len(held)]]


def deal(arms: int, longest: int, eta: int) -> list[int]:
    """Return the sizes of brackets S, ..., 0 in Hyperband's proportions, by largest remainder."""
    S = 0
    while eta ** (S + 1) <= longest:
        S += 1
    wanted = [-(-(S + 1) * eta**s // (s + 1)) for s in range(S, -1, -1)]
    shares = [arms * n / sum(wanted) for n in wanted]
    sizes = [int(share) for share in shares]
    by_remainder = sorted(range(len(sizes)), key=lambda b: (sizes[b] - shares[b], b))
    for b in by_remainder[: arms - sum(sizes)]:
        sizes[b] += 1
    return sizes


def ladder(sizes: list[int], R: int, eta: int) -> list[Bracket]:
    """Return the brackets that have arms, with the last rung at R pulls."""
    found = []
    for b, size in enumerate(sizes):
        if size:
            s = len(sizes) - 1 - b
            upto = tuple(max(1, R // eta ** (s - k)) for k in range(s + 1))
            keep = tuple(max(1, size // eta**k) for k in range(s + 1))
            found.append(Bracket(upto, keep))
    return found


# --- the rule; `Ledger.memo` holds the rung that an arm has reached or is trained to ---


@kernel
def lacking(self: Numbers, ledger: Ledger, i: int) -> bool:
    """Return whether arm i has not had the pulls of its rung."""
    return ledger.n[i] < self.upto[self.bracket[i] * self.width + int(ledger.memo[i])]


@kernel
def first_lacking(self: Numbers, ledger: Ledger) -> int:
    """Return the first arm that has not had the pulls of its rung, or OVER."""
    for place in range(ledger.cursor[RACERS]):
        if lacking(self, ledger, ledger.racing[place]):
            return ledger.racing[place]
    return OVER


@kernel
def promote_all(self: Numbers, ledger: Ledger) -> bool:
    """Promote the best arms of each bracket's highest rung; return False if there are none."""
    moved = False
    for b in range(len(self.upto) // self.width):
        rung = highest_rung(self, ledger, b)
        cell = b * self.width + rung + 1
        if rung + 1 < self.width and self.upto[cell] > 0:
            for _ in range(self.keep[cell]):
                if promote_best(self, ledger, b, rung):
                    moved = True
    return moved


@kernel
def highest_rung(self: Numbers, ledger: Ledger, b: int) -> int:
    """Return the highest rung that an arm of bracket b has."""
    rung = 0
    for i in range(len(ledger.n)):
        if self.bracket[i] == b:
            rung = max(rung, int(ledger.memo[i]))
    return rung


@kernel
def promote_best(self: Numbers, ledger: Ledger, b: int, rung: int) -> bool:
    """Promote the best racing arm at this rung of bracket b; the lowest index among equals."""
    best = OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if (self.bracket[i] == b and int(ledger.memo[i]) == rung
                and (best == OVER or ledger.rating[i] > ledger.rating[best])):  # fmt: skip
            best = i
    if best == OVER:
        return False
    ledger.memo[best] += 1.0
    return True
