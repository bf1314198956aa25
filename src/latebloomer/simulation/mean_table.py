"""A problem's means: as far as runs can come, and what results say of them up to the horizon."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer._util.memory import need_memory
from latebloomer.problems.problem import Problem

Floats: TypeAlias = npt.NDArray[np.float64]
Changes: TypeAlias = tuple[tuple[int, int], ...]  # (horizon, arm that is best from there on)


class Summary(NamedTuple):
    """Of the means up to the horizon."""

    digest: str  # their sha256, as little-endian doubles arm by arm
    largest: float  # in size
    final: Floats  # (arms,): those at the horizon


class MeanTable:
    """The means of the first `longest` pulls of each arm, to which runs can come, and no more.

    Means beyond, up to the horizon, are only looked through, in blocks. The table is made when it
    is first read and stays until `release`: so a simulation at many budgets holds one at a time.
    Pickled, it is the numbers, without the problem's curves.

    >>> late = MeanTable(Problem([[0.1, 0.5, 0.9], [0.4, 0.4, 0.4]]), longest=2, horizon=3)
    >>> late.table.tolist(), late.summary.final.tolist(), late.changes
    ([[0.1, 0.5], [0.4, 0.4]], [0.9, 0.4], ((2, 0),))
    """

    def __init__(self, problem: Problem, longest: int, horizon: int) -> None:
        self.arms, self.longest, self.horizon = problem.arms, longest, horizon
        problem.need_pulls("budget", horizon)
        what = f"the table of the means of {self.arms} arms up to pull {longest}"
        need_memory(self.size, what, "set a smaller budget or horizon, or give fewer arms")
        problem.need_means("horizon", horizon)
        self._problem = problem
        self._table: Floats | None = None

    @property
    def size(self) -> int:
        """Bytes of the table."""
        return 8 * self.arms * self.longest

    @property
    def is_made(self) -> bool:
        """Whether the table takes its memory already."""
        return self._table is not None

    @property
    def table(self) -> Floats:
        """``table[i, n - 1]`` is the mean of the n-th pull of arm i."""
        if self._table is None:
            self._table = self._made()
        return self._table

    def _made(self) -> Floats:
        return self._problem.means(self.longest)

    def release(self) -> None:
        """Give the table's memory back; it can be made again."""
        self._table = None

    @cached_property
    def summary(self) -> Summary:
        """What results say of the means up to the horizon."""
        digest, largest, pull = hashlib.sha256(), 0.0, 0
        final: list[Floats] = []
        for block in self._problem.mean_rows(self.horizon):
            digest.update(np.ascontiguousarray(block, dtype="<f8").data)
            largest = max(largest, float(block.max()), -float(block.min()))
            pull = (pull + block.shape[1]) % self.horizon
            if pull == 0:  # the block ends at the horizon
                final.append(block[:, -1].copy())
        return Summary(digest.hexdigest(), largest, np.concatenate(final))

    @cached_property
    def changes(self) -> Changes:
        """Where the best arm changes, up to the horizon."""
        return self._problem.changes(self.horizon)[1:]

    def __getstate__(self) -> dict[str, Any]:
        table = self._made() if self._table is None else self._table  # here nobody reads it yet
        state = {name: value for name, value in vars(self).items() if name != "_problem"}
        return state | {"_table": table, "summary": self.summary}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # An array of our own: those from Ray's store are read-only, for numba another type.
        vars(self).update(state | {"_table": np.array(state["_table"])})
