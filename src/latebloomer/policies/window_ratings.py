"""Policies that rate arms by a plain mean, of all rewards or of the latest ones.

The two base classes come first; `RisingSR` also uses the second one.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from latebloomer.core.formulas import window_length
from latebloomer.core.history import recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger
from latebloomer.core.phases import phase_lengths
from latebloomer.policies.base import Policy, check_choice, check_window


class ByAllSamples(Policy):
    """A policy that rates arms by the mean of all their rewards."""

    def rated_share(self) -> float:
        return 1.0

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])


class Numbers(NamedTuple):
    """The settings, which are `self` inside the kernels of `ByWindow`."""

    window: float  # 0: only the latest reward counts


class ByWindow(Policy):
    """A policy that rates arms by the mean of a share `window` of their rewards [Eq. (mu_hat)].

    The window has the latest h = max(1, floor(eps n)) rewards, because the paper does not say what
    an empty window means, which occurs while n < 1/eps. A window of 0 is the latest reward alone.
    """

    window: float

    def rated_share(self) -> float:
        """Return the window that the kernels use."""
        return self.window

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        return Numbers(float(self.rated_share()))

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, max(1, window_length(self.window, ledger.n[i])))


@dataclass(frozen=True)
class RoundRobin(ByAllSamples):
    """Pull the arms in turn until the budget is spent; recommend the largest mean of all rewards.

    >>> RoundRobin().plan(arms=3, budget=10)  # the first arm gets the tenth pull
    Plan(keep=array([3]), upto=array([4]))
    """

    name: ClassVar[str] = "rr"

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, -(-budget // arms))]


@dataclass(frozen=True)
class RoundRobinWindow(ByWindow):
    r"""Pull each arm equally often; recommend the arm with the best recent mean.

    Each arm gets :math:`N = \lfloor T/K \rfloor` pulls; the rest of the budget is not spent. The
    arm with the largest mean of its last :math:`\max(1, \lfloor\varepsilon N\rfloor)` rewards is
    recommended.

    Parameters
    ----------
    window : float
        Share of an arm's pulls, the latest ones, whose mean reward rates it.

    Examples
    --------
    >>> RoundRobinWindow().plan(arms=3, budget=10)
    Plan(keep=array([3]), upto=array([3]))
    """

    window: float = 0.25

    name: ClassVar[str] = "rr-sw"
    cites: ClassVar[tuple[str, ...]] = ("Mussi24",)

    def __post_init__(self) -> None:
        check_window(self.window)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, budget // arms)]


@dataclass(frozen=True)
class SuccessiveRejects(ByAllSamples):
    """Use the phases of `r-sr`, but drop the arm with the worst mean of *all* its rewards.

    >>> SuccessiveRejects().plan(arms=3, budget=12)
    Plan(keep=array([3, 2, 1]), upto=array([ 3,  4, 12]))
    """

    name: ClassVar[str] = "sr"
    cites: ClassVar[tuple[str, ...]] = ("Audibert10",)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        ends = phase_lengths(arms, budget)
        return [*zip(range(arms, 1, -1), ends, strict=True), (1, budget)]

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        return arms + 1, "with fewer pulls its first phase is empty"


@dataclass(frozen=True)
class SuccessiveHalving(ByWindow):
    r"""Keep the better half of the arms after each of several rounds of equal cost.

    There are :math:`\lceil \log_2 K \rceil` rounds. In each round, each of the remaining arms A
    gets :math:`\lfloor T/(|A| \lceil\log_2 K\rceil)\rfloor` more pulls, and the better
    :math:`\lceil |A|/2 \rceil` arms are kept. They are compared by the latest value, as in common
    tuners, or by the mean of a window of late rewards.

    Parameters
    ----------
    judge : str
        Value by which arms are rated: the "latest" reward, or the mean of a "window" of rewards.
    window : float
        Share of an arm's pulls, the latest ones, whose mean reward rates it; only for
        judge="window".

    Examples
    --------
    >>> SuccessiveHalving().plan(arms=5, budget=60)  # 3 rounds of 20: 5 x 4, 3 x 6, 2 x 10
    Plan(keep=array([5, 3, 2, 1]), upto=array([ 4, 10, 20, 20]))
    """

    judge: str = "latest"
    window: float = 0.25

    name: ClassVar[str] = "sh"
    cites: ClassVar[tuple[str, ...]] = ("Karnin13", "Jamieson16")
    _examples = ({}, {"judge": "window"})

    def __post_init__(self) -> None:
        choices = ("latest", "window")
        check_choice("judge", self.judge, choices, "it says by what the better half is chosen")
        check_window(self.window)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        rounds, remaining, pulls = rounds_of(arms), arms, 0
        levels = []
        for _ in range(rounds):
            pulls += budget // (remaining * rounds)
            levels.append((remaining, pulls))
            remaining = -(-remaining // 2)
        return [*levels, (1, pulls)]

    def rated_share(self) -> float:
        return self.window if self.judge == "window" else 0.0

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        rounds = rounds_of(arms)
        why = f"one pull of each learner in the first of {rounds} rounds of equal cost"
        return arms * rounds, why


def rounds_of(arms: int) -> int:
    """Return ceil(log2 K), computed exactly.

    >>> [rounds_of(arms) for arms in (2, 3, 4, 5, 8, 9)]
    [1, 2, 2, 3, 3, 4]
    """
    return (arms - 1).bit_length()
