"""ASHA and Hyperband as in common tuners, for comparison: arms are stopped at rungs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from latebloomer.core.history import reward_at
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, RACERS, Ints, Ledger
from latebloomer.core.run_memory import NOTHING, REWARDS, Memory
from latebloomer.errors import need_whole
from latebloomer.policies.base import Policy, last_that, open_arms

STATE = 0  # cell of `Ledger.arm` of ASHA:
RUNNING, STOPPED = 0.0, 1.0
RUNG = 0  # cell of `Ledger.arm` for Hyperband: the rung to which an arm is or was trained last


@dataclass(frozen=True)
class ASHA(Policy):
    r"""Train arms one after the other; stop each at the first rung where it is not among the best.

    This is the usual policy to compare with: asynchronous Successive Halving (Li et al., MLSys
    2020) in its stopping form, with one worker by default. Arms start in the order of their
    indices; simulations draw a random order for each run. Rungs are at g, g eta, g eta^2, ...
    pulls below the horizon (g = `grace`). Let s be the number of arms that have reached a rung so
    far, including the current arm. The arm continues past the rung if fewer than :math:`\max(1,
    \lfloor s/\eta \rfloor)` of them were better there (the synchronous form is [Jamieson16]). A
    stopped arm never continues. The arm with the best latest value is recommended. The defaults
    are those of Ray Tune and Optuna.

    ASHA is not made for a fixed budget: the first arm is always trained to the horizon, a small
    budget ends before all arms have started, and a large budget is not used up. Pulls that are
    requested at the same time (`Session.ask_phase`) are like several workers.

    Parameters
    ----------
    eta : int
        One in eta arms continues past a rung; an integer >= 2.
    grace : int
        Number of pulls at the first rung, at least 1.
    workers : int
        Number of arms in training at the same time, at least 1; they are pulled in turn.

    Examples
    --------
    >>> ASHA().describe(arms=8, budget=100, horizon=50).phases[0].pulls
    100
    """

    eta: int = 4
    grace: int = 1
    workers: int = 1

    name: ClassVar[str] = "asha"
    treats_arms_in_order: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("Li20",)
    memory: ClassVar[Memory] = Memory(REWARDS, arm=("state",), kept=("state",))
    _examples = ({}, {"eta": 2, "grace": 2, "workers": 3})

    def __post_init__(self) -> None:
        need_whole("eta", self.eta, 2, "one in eta learners continues")
        need_whole("grace", self.grace, 1, "learners are compared by their scores")
        need_whole("workers", self.workers, 1, "at least one learner is trained at a time")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        n = ledger.n[i]
        ledger.rating[i] = ledger.last[i]
        if n < horizon and is_rung(n, self.grace, self.eta) and beaten(ledger, i, n, self.eta):
            ledger.arm[i][STATE] = STOPPED

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        running, behind, fresh = 0, OVER, OVER
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.arm[i][STATE] == RUNNING and ledger.n[i] < horizon:
                if ledger.n[i] == 0:
                    fresh = i if fresh == OVER else fresh
                else:
                    running += 1
                    if behind == OVER or ledger.n[i] < ledger.n[behind]:
                        behind = i
        return fresh if fresh != OVER and running < self.workers else behind

    def pick_batch(
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return the arms in training, then arms for free workers."""
        trainable = [
            i for i in open_arms(ledger, held, game.horizon) if ledger.arm[i][STATE] == RUNNING
        ]
        started = sorted(trainable, key=lambda i: (ledger.n[i] == 0, i))
        return [*held, *started[: count - len(held)]]


@kernel
def is_rung(n: int, grace: int, eta: int) -> bool:
    """Return whether n is one of grace, grace eta, grace eta^2, ...

    >>> [n for n in range(1, 100) if is_rung(n, grace=2, eta=3)]
    [2, 6, 18, 54]
    """
    rung = grace
    while rung < n:
        rung *= eta
    return rung == n


@kernel
def beaten(ledger: Ledger, i: int, n: int, eta: int) -> bool:
    """Return whether too many arms were better than arm i at pull n, so that it is stopped."""
    seen, better = 0, 0
    for j in range(len(ledger.n)):
        if ledger.n[j] >= n:
            seen += 1
            if reward_at(ledger, j, n) > reward_at(ledger, i, n):
                better += 1
    return is_cut(better, seen, eta)


@kernel
def is_cut(better: int, seen: int, eta: int) -> bool:
    """Return whether an arm with `better` arms ahead is not among the best of `seen` arms."""
    return better >= max(1, seen // eta)


class Numbers(NamedTuple):
    """The settings, which are `self` inside the kernels; a bracket is a block of arms."""

    bracket: Ints  # by arm
    upto: Ints  # pulls at rung k of bracket b, in cell b * width + k
    keep: Ints  # number of arms of bracket b at rung k
    width: int  # number of rungs of the longest bracket


class Bracket(NamedTuple):
    """Successive Halving of some arms: `keep[k]` arms are trained to `upto[k]` pulls each."""

    upto: tuple[int, ...]
    keep: tuple[int, ...]

    @property
    def cost(self) -> int:
        """Cost of the bracket, in pulls."""
        each = np.diff(self.upto, prepend=0).tolist()
        return sum(k * n for k, n in zip(self.keep, each, strict=True))


@dataclass(frozen=True)
class Hyperband(Policy):
    r"""Run several Successive Halvings next to each other, from early to late drops.

    This is the usual policy to compare with (Li et al., JMLR 2018; eta = 3), adapted to a fixed
    set of arms and a fixed budget. Bracket s = S, ..., 0 begins at :math:`R \eta^{-s}` pulls and
    keeps one in eta arms at each rung up to R, where :math:`S = \lfloor \log_\eta \min(H, T)
    \rfloor`. The original draws :math:`\lceil (S+1) \eta^s / (s+1) \rceil` new configurations for
    bracket s. Here the K arms are divided among the brackets in these proportions, in the order of
    their indices, as in Ray Tune and Optuna. R is the largest value up to H that the budget pays
    for; the rest of the budget is not spent. The arm with the best latest value is recommended.

    Parameters
    ----------
    eta : int
        One in eta arms continues past a rung; an integer >= 2.

    Examples
    --------
    >>> deal(arms=8, longest=52, eta=3)  # s = 3, 2, 1, 0
    [4, 2, 1, 1]
    >>> Hyperband().brackets(arms=8, budget=208, horizon=52)[:2]  # four arms and two
    [Bracket(upto=(1, 5, 16, 50), keep=(4, 1, 1, 1)), Bracket(upto=(5, 16, 50), keep=(2, 1, 1))]
    """

    eta: int = 3

    name: ClassVar[str] = "hyperband"
    treats_arms_in_order: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("Li18",)
    memory: ClassVar[Memory] = Memory(NOTHING, arm=("rung",), kept=("rung",))

    def __post_init__(self) -> None:
        need_whole("eta", self.eta, 2, "one in eta learners continues")

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    def brackets(self, arms: int, budget: int, horizon: int) -> list[Bracket]:
        """Return the brackets at the largest R that the budget pays for."""
        longest = min(budget, horizon)
        sizes = deal(arms, longest, self.eta)

        def fits(R: int) -> bool:
            return sum(bracket.cost for bracket in ladder(sizes, R, self.eta)) <= budget

        return ladder(sizes, last_that(fits, 1, longest) or 1, self.eta)

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        brackets = self.brackets(arms, budget, horizon)
        width = len(brackets[0].upto)
        upto, keep = np.zeros((2, len(brackets), width), np.int64)
        for b, bracket in enumerate(brackets):
            upto[b, : len(bracket.upto)], keep[b, : len(bracket.keep)] = bracket
        owner = np.repeat(np.arange(len(brackets)), [bracket.keep[0] for bracket in brackets])
        return Numbers(owner, upto.ravel(), keep.ravel(), width)

    def restricted(self, settings: Numbers, arms: Sequence[int]) -> Numbers:
        return settings._replace(bracket=[settings.bracket[arm] for arm in arms])

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
        self, settings: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return further arms that have not reached their rung."""
        others = [i for i in open_arms(ledger, held, game.horizon) if lacking(settings, ledger, i)]
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
    brackets = []
    for b, size in enumerate(sizes):
        if size:
            s = len(sizes) - 1 - b
            upto = tuple(max(1, R // eta ** (s - k)) for k in range(s + 1))
            keep = tuple(max(1, size // eta**k) for k in range(s + 1))
            brackets.append(Bracket(upto, keep))
    return brackets


# --- the rule ---


@kernel
def lacking(self: Numbers, ledger: Ledger, i: int) -> bool:
    """Return whether arm i has fewer pulls than its rung requires."""
    return ledger.n[i] < self.upto[self.bracket[i] * self.width + int(ledger.arm[i][RUNG])]


@kernel
def first_lacking(self: Numbers, ledger: Ledger) -> int:
    """Return the first arm with fewer pulls than its rung requires, or OVER."""
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
    """Return the highest rung of any arm of bracket b."""
    rung = 0
    for i in range(len(ledger.n)):
        if self.bracket[i] == b:
            rung = max(rung, int(ledger.arm[i][RUNG]))
    return rung


@kernel
def promote_best(self: Numbers, ledger: Ledger, b: int, rung: int) -> bool:
    """Promote the best racing arm at a rung of bracket b; the lowest index wins ties."""
    best = OVER
    for place in range(ledger.cursor[RACERS]):
        i = ledger.racing[place]
        if (self.bracket[i] == b and int(ledger.arm[i][RUNG]) == rung
                and (best == OVER or ledger.rating[i] > ledger.rating[best])):  # fmt: skip
            best = i
    if best == OVER:
        return False
    ledger.arm[best][RUNG] += 1.0
    return True
