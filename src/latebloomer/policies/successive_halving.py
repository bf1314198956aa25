"""Successive Halving [Karnin13, Jamieson16]: what every tuner ships."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from latebloomer.policies.base import check_choice, check_window
from latebloomer.policies.window_ratings import ByWindow


@dataclass(frozen=True)
class SuccessiveHalving(ByWindow):
    r"""Keep the better half of the arms after each of several rounds of equal cost.

    There are :math:`\lceil \log_2 K \rceil` rounds. Each pulls each of the remaining arms A
    :math:`\lfloor T/(|A| \lceil\log_2 K\rceil)\rfloor`
    more times and keeps the better :math:`\lceil |A|/2 \rceil`, by the latest value (the form
    that tuners ship) or by the mean of a window of late rewards.

    Parameters
    ----------
    judge : str
        Value that arms are rated by: the "latest" one, or the mean of a "window".
    window : float
        With judge="window": share of its pulls that an arm is rated by, the latest ones.

    Examples
    --------
    >>> SuccessiveHalving().plan(arms=5, budget=60)  # 3 rounds of 20: 5 x 4, 3 x 6, 2 x 10
    Plan(keep=array([5, 3, 2, 1]), upto=array([ 4, 10, 20, 20]))
    """

    judge: str = "latest"
    window: float = 0.25

    name: ClassVar[str] = "sh"
    cites: ClassVar[tuple[str, ...]] = ("Karnin13", "Jamieson16")

    def __post_init__(self) -> None:
        check_choice(
            "judge", self.judge, ("latest", "window"), "it says by what the better half is chosen"
        )
        check_window(self.window)

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        rounds, left, pulls = rounds_of(arms), arms, 0
        levels = []
        for _ in range(rounds):
            pulls += budget // (left * rounds)
            levels.append((left, pulls))
            left = -(-left // 2)
        return [*levels, (1, pulls)]

    def share(self) -> float:
        return self.window if self.judge == "window" else 0.0

    def smallest_budget(self, arms: int) -> tuple[int, str]:
        rounds = rounds_of(arms)
        return (
            arms * rounds,
            f"one pull of each learner in the first of {rounds} rounds of equal cost",
        )

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(judge="window")]


def rounds_of(arms: int) -> int:
    """Return ceil(log2 K), exactly.

    >>> [rounds_of(arms) for arms in (2, 3, 4, 5, 8, 9)]
    [1, 2, 2, 3, 3, 4]
    """
    return (arms - 1).bit_length()
