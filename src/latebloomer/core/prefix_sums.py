"""Prefix sums of a formula, made as far as they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FIRST_BLOCK = 1024  # sums made at first; each block after it doubles what is there


class PrefixSums(dict[int, float]):
    """The sums term(1) + ... + term(m) for m from 0 to `last`.

    Plain Python reads `sums[m]`, which costs no more than the largest m that was ever read,
    whatever `last` is. Compiled code takes them all at once, as `array()`.

    >>> halves = PrefixSums(lambda m: 0.5**m, last=10**15)
    >>> halves[0], halves[1], halves[2]
    (0.0, 0.5, 0.75)
    """

    def __init__(self, terms: Callable[[Any], Any], last: int) -> None:
        super().__init__({0: 0.0})
        self._terms, self.last = terms, last

    def __missing__(self, m: int) -> float:
        if not 0 <= m <= self.last:
            raise IndexError(f"sum {m}, but there are sums 0 to {self.last}")
        while m not in self:
            done = len(self) - 1
            end = min(self.last, 2 * done + FIRST_BLOCK)
            self.update(enumerate(self._sums(done, end).tolist(), start=done))
        return self[m]

    def _sums(self, done: int, end: int) -> Any:
        """The sums `done` to `end`, one added to the other as in one go from the beginning."""
        terms = self._terms(np.arange(done + 1.0, end + 1))
        return np.cumsum(np.concatenate([[self[done]], terms]))

    def array(self) -> Any:
        """All of them."""
        return self._sums(0, self.last)
