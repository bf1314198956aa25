"""ASHA as tuners ship it, for comparison: arms one after the other, stopped at rungs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, RACERS, Ledger, remember_rewards
from latebloomer.errors import need_whole, require
from latebloomer.policies.base import Policy

RUNNING, STOPPED = 0.0, 1.0  # in `Ledger.memo`


@dataclass(frozen=True)
class ASHA(Policy):
    r"""Train one arm after the other; stop each at the first rung where it is not among the best.

    The comparator in common use: asynchronous Successive Halving (Li et al., MLSys 2020) in its
    stopping form, on one worker, arms arriving in index order. Rungs are at g, g eta, g eta^2, ...
    pulls below the horizon (g = `grace`). An arm continues past a rung if, of the s arms that have
    reached it so far including this one, fewer than :math:`\max(1, \lfloor s/\eta \rfloor)` did
    better there (the synchronous form is [Jamieson16]). A stopped arm is never considered again.
    The recommendation is the best latest value. The defaults are Ray Tune's and Optuna's.

    ASHA is not made for a fixed budget: the first arm is always trained to the horizon, a small
    budget ends before all arms were tried, and a large one is not used up. Several pulls at the
    same time (`Session.ask_phase`) are several workers.

    Parameters
    ----------
    eta : int
        At a rung, one in eta arms continues.
    grace : int
        Pulls before the first rung.
    workers : int
        Arms in training at the same time, pulled in turn.

    Examples
    --------
    >>> ASHA().describe(arms=8, budget=100, horizon=50).phases[0].pulls
    100
    """

    eta: int = 4
    grace: int = 1
    workers: int = 1

    name: ClassVar[str] = "asha"
    cites: ClassVar[tuple[str, ...]] = ("Li20",)
    remember = staticmethod(remember_rewards)

    def __post_init__(self) -> None:
        checks = (("eta", 2, "one in eta learners continues"),
                  ("grace", 1, "learners are compared by their scores"),
                  ("workers", 1, "at least one learner is trained at a time"))  # fmt: skip
        for name, least, why in checks:
            value = need_whole(name, getattr(self, name))
            require(value >= least, name, value, f"at least {least}", why)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(ANY, horizon)]

    @kernel
    def update_rating(self, ledger: Ledger, i: int, horizon: int) -> None:
        n = ledger.n[i]
        ledger.rating[i] = ledger.last[i]
        if n < horizon and is_rung(n, self.grace, self.eta) and beaten(ledger, i, n, self.eta):
            ledger.memo[i] = STOPPED

    @kernel
    def pick(self, ledger: Ledger, pulled: int, horizon: int, seed: int, run: int) -> int:
        running, behind, fresh = 0, OVER, OVER
        for place in range(ledger.cursor[RACERS]):
            i = ledger.racing[place]
            if ledger.memo[i] == RUNNING and ledger.n[i] < horizon:
                if ledger.n[i] == 0:
                    fresh = i if fresh == OVER else fresh
                else:
                    running += 1
                    if behind == OVER or ledger.n[i] < ledger.n[behind]:
                        behind = i
        return fresh if fresh != OVER and running < self.workers else behind

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(eta=2, grace=2, workers=3)]

    def pick_batch(
        self, rule: Any, ledger: Ledger, held: list[int], count: int, game: Any
    ) -> list[int]:
        """Return the arms in training first, then arms for the workers that are free."""
        racing = ledger.racing[: ledger.cursor[RACERS]]
        trainable = [
            i for i in racing
            if i not in held and ledger.memo[i] == RUNNING and ledger.n[i] < game.horizon
        ]  # fmt: skip
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
    """Return whether too many of the arms that have had n pulls were better at that pull."""
    seen, better = 0, 0
    for j in range(len(ledger.n)):
        if ledger.n[j] >= n:
            seen += 1
            if ledger.Q[j][n] > ledger.Q[i][n]:
                better += 1
    return is_cut(better, seen, eta)


@kernel
def is_cut(better: int, seen: int, eta: int) -> bool:
    """Return whether one of `seen` arms, with `better` arms ahead, is not among one in eta."""
    return better >= max(1, seen // eta)
