"""Measured noise: each reward is the mean plus a residual that is drawn from a table."""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.random import uniform
from latebloomer.errors import SettingError
from latebloomer.problems.curves import Floats
from latebloomer.problems.noise import Noise


class ResidualNumbers(NamedTuple):
    """The numbers of `Residuals`, which are `self` inside its `reward`."""

    values: Floats  # shape (1 or arms, residuals)


@dataclass(frozen=True, eq=False, repr=False)
class Residuals(Noise):
    """Noise that is drawn from measured residuals: differences of rewards to their means.

    Each pull draws one of the residuals of its arm, with equal probabilities and with replacement.
    The mean of an arm's residuals is subtracted from them, so that the curve is the mean of the
    rewards.

    Parameters
    ----------
    values : Any
        A list of residuals for all arms, or a table with a row of residuals for each arm.

    Examples
    --------
    >>> Residuals([-0.5, 0.5]).level(arms=2)
    0.5
    >>> Residuals([[-0.1, 0.1], [-0.2, 0.2], [0.0, 0.0]])
    Residuals(3 arms with 2 values each, sha256 ...)
    """

    values: Any

    def __post_init__(self) -> None:
        try:
            table = np.array(self.values, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError):
            raise SettingError(
                "values must be numbers: a list of residuals for all arms, or a table with a row "
                "of equal length for each arm. Cut longer rows to the length of the shortest."
            ) from None
        if table.ndim != 2 or table.shape[1] < 2 or not np.all(np.isfinite(table)):
            raise SettingError(
                f"values has shape {np.shape(self.values)}, but Residuals needs at least 2 finite "
                "residuals, in a list for all arms or in a row for each arm."
            )
        table -= table.mean(axis=1, keepdims=True)
        table.flags.writeable = False
        object.__setattr__(self, "values", table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Residuals) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __repr__(self) -> str:
        arms, each = self.values.shape
        digest = hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()[:12]
        whose = "all arms" if arms == 1 else f"{arms} arms"
        return f"Residuals({whose} with {each} values each, sha256 {digest})"

    def numbers(self, arms: int) -> ResidualNumbers:
        rows = len(self.values)
        if rows not in (1, arms):
            raise SettingError(
                f"Residuals has rows for {rows} arms, but the problem has {arms}. Give one row "
                "for each arm, or one list for all."
            )
        # A copy, because a read-only array has another type in numba.
        return ResidualNumbers(np.array(self.values))

    @kernel
    def reward(self: Any, mean: float, seed: int, run: int, arm: int, pull: int) -> float:
        row = self.values[arm % len(self.values)]  # one row for all arms, or one per arm
        return mean + row[int(len(row) * uniform(seed, run, arm, pull))]

    def level(self, arms: int) -> float:
        """Return half of the widest range of residuals: the level by Hoeffding's lemma."""
        return float(np.ptp(self.numbers(arms).values, axis=1).max()) / 2
