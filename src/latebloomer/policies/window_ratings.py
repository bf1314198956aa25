"""Ratings that several plans share: the mean of all rewards, or of the latest ones."""

from __future__ import annotations

from typing import NamedTuple

from latebloomer.core.estimators import recent_mean, window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger, remember_levels
from latebloomer.policies.base import Policy


class ByAllSamples(Policy):
    """A policy that rates arms by the mean of all their rewards."""

    remember = staticmethod(remember_levels)

    def rated_window(self, n: int) -> int:
        return n

    def running_window(self) -> tuple[float, bool]:
        return 0.0, False

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])


class Numbers(NamedTuple):
    """What `self` is inside the kernels of `ByWindow`."""

    window: float  # 0: only the latest reward counts


class ByWindow(Policy):
    """A policy that rates arms by the mean of a share `window` of their rewards [Eq. (mu_hat)].

    The window has h = max(1, floor(eps n)) of the latest rewards: the paper does not say what an
    empty window means, while n < 1/eps. A window of 0 is the latest reward alone.
    """

    window: float
    remember = staticmethod(remember_levels)

    def share(self) -> float:
        """Return the window that the kernels see."""
        return self.window

    def settings(self, arms: int, budget: int, horizon: int) -> Numbers:
        return Numbers(float(self.share()))

    def rated_window(self, n: int) -> int:
        return max(1, window_length(self.share(), n))

    def running_window(self) -> tuple[float, bool]:
        return self.share(), False

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, max(1, window_length(self.window, ledger.n[i])))
