"""UCB-E [Audibert10], made for arms that do not change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple, Self

from latebloomer.core.estimators import recent_mean
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, Ledger, remember_levels
from latebloomer.errors import SettingError, require
from latebloomer.policies.base import Policy, check_not_negative


class Numbers(NamedTuple):
    """What `self` is inside the kernels."""

    exploration: float


@dataclass(frozen=True)
class UCBE(Policy):
    r"""Pull the arm with the largest mean plus bonus; recommend the largest *mean*.

    .. math:: B_i = \bar X_i + \sqrt{a / n_i}, \qquad a = \frac{25 (T-K)}{36 H_1}, \qquad
              H_1 = \sum_{i \ne i^*} \Delta_i^{-2}

    The prescribed :math:`a` needs the gaps (at the horizon), so give either `exploration`, a
    number, or `gaps`, one per arm with 0 for the best.

    Parameters
    ----------
    exploration : float | None
        The number a. Give either this or `gaps`.
    gaps : tuple[float, ...] | None
        Gaps of the arms at the horizon, 0 for the best: a is then as prescribed.

    Examples
    --------
    >>> UCBE(gaps=(0, 0.5, 0.5)).settings(arms=3, budget=75, horizon=75)  # 25 * 72 / (36 * 8)
    Numbers(exploration=6.25)
    """

    exploration: float | None = None
    gaps: tuple[float, ...] | None = None

    name: ClassVar[str] = "ucb-e"
    picks_by_rating: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("Audibert10",)
    remember = staticmethod(remember_levels)

    def __post_init__(self) -> None:
        if self.exploration is not None:
            check_not_negative("exploration", self.exploration, "the bonus grows with it")
        if self.gaps is not None:
            object.__setattr__(self, "gaps", _gaps(self.gaps))

    def levels(self, arms: int, budget: int, horizon: int) -> list[tuple[int, int]]:
        return [(arms, 1), (ANY, horizon)]

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        if self.exploration is not None:
            return Numbers(float(self.exploration))
        behind = [gap for gap in self.gaps or () if gap > 0]
        if self.gaps is None or len(self.gaps) != arms or not behind:
            raise SettingError(
                f"UCBE(exploration=None, gaps={self.gaps}) cannot be used with {arms} learners. "
                f"Give exploration, a number, or gaps, {arms} numbers of which some are positive: "
                "the prescribed exploration is 25 (T - K) / (36 H_1), and H_1 follows from gaps."
            )
        return Numbers(25 * (budget - arms) / (36 * sum(gap**-2 for gap in behind)))

    def running_window(self) -> tuple[float, bool]:
        return 0.0, False

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(exploration=0.5)]

    @kernel
    def rating(self: Numbers, ledger: Ledger, i: int, horizon: int) -> float:  # type: ignore[misc]
        return recent_mean(ledger, i, ledger.n[i]) + sqrt(self.exploration / ledger.n[i])

    @kernel
    def final_rating(self, ledger: Ledger, i: int, budget: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])


def _gaps(given: Any) -> tuple[float, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SettingError(f"gaps={given!r} must be a sequence of numbers, one per learner.")
    gaps = tuple(given)
    for gap in gaps:
        check_not_negative("gaps", gap, "it is how far each learner is below the best")
        square = gap == 0 or 1e-100 < gap < 1e100
        require(square, "gaps", gap, "0 or within 1e-100 and 1e100", "H_1 adds inverse squares")
    return tuple(map(float, gaps))
