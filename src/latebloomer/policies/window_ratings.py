"""Ratings that several plans share: the mean of all rewards, or of the newest ones."""

from __future__ import annotations

from latebloomer.core.estimators import recent_mean, window_length
from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import Ledger, remember_levels
from latebloomer.policies.base import Policy


class ByAllSamples(Policy):
    """Arms are rated by the mean of all their rewards."""

    remember = staticmethod(remember_levels)

    def rated_window(self, n: int) -> int:
        return n

    def running_window(self) -> float | None:
        return 0.0

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, ledger.n[i])


class ByWindow(Policy):
    """Arms are rated by the mean of a share `window` of their newest rewards [Eq. (mu_hat)].

    h = max(1, floor(eps n)): the paper leaves an empty window open while n < 1/eps. A window of 0
    means the newest reward alone.
    """

    window: float
    remember = staticmethod(remember_levels)

    def share(self) -> float:
        """The window that the kernels see."""
        return self.window

    def rated_window(self, n: int) -> int:
        return max(1, window_length(self.share(), n))

    def running_window(self) -> float | None:
        return self.share()

    @kernel
    def rating(self, ledger: Ledger, i: int, horizon: int) -> float:
        return recent_mean(ledger, i, max(1, window_length(self.window, ledger.n[i])))
