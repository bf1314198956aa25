"""The results of a simulation, with intervals: to show, merge, compare and store."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latebloomer._util.atomic_files import File, write_csv, write_file
from latebloomer._util.text import data_frame, html_table
from latebloomer.errors import LatebloomerError, ResultsError, extra, require, unknown
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of, make_policy
from latebloomer.problems.problem import Problem
from latebloomer.simulation.mean_table import MeanTable
from latebloomer.simulation.results.comparison import (
    COLUMNS,
    Comparison,
    Row,
    comparison_row,
    interval_columns,
    lines,
    table,
)
from latebloomer.simulation.results.counts import (
    Cell,
    Changes,
    Origin,
    Pair,
    mean_of,
    need_same,
    quantile,
)
from latebloomer.simulation.results.results_file import document_of, fields_in_file, flat
from latebloomer.simulation.results.success_rate import SuccessRates, success_rate_of
from latebloomer.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST_PULLS = 1024  # pulls of each arm whose means distinguish two problems with the same label


@dataclass(frozen=True)
class Results:
    """Errors, regrets and pulls of policies at several budgets on one problem, over many runs.

    Attributes
    ----------
    origin : Origin
        Problem, noise and seed.
    versions : tuple[str, ...]
        Versions of the library that made the runs.
    targets : tuple[str, ...]
        Targets on which the runs were made.
    changes : Changes
        Pairs (horizon, arm): from this horizon on, this arm is the best one.
    cells : tuple[Cell, ...]
        Counts by policy and budget.
    pairs : tuple[Pair, ...]
        Counts of two policies in the same runs, by budget.
    asked : tuple[str, ...]
        Labels in the order of the call, which is also the order of rows and of lines in plots.

    Examples
    --------
    >>> from latebloomer import simulate
    >>> results = simulate("paper-a", ["r-sr", "sh"], 800, runs=20, target="python",
    ...                    progress=False)
    >>> [(row["policy"], row["budget"], row["errors"], row["runs"]) for row in results.rows()]
    [('r-sr', 800, 0, 20), ('sh', 800, 11, 20)]
    >>> results.compare("sh", "r-sr").rows[0]["error_difference"]
    0.55
    """

    origin: Origin
    versions: tuple[str, ...]
    targets: tuple[str, ...]
    changes: Changes
    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]
    asked: tuple[str, ...] = ()

    @classmethod
    def empty(cls, problem: Problem, seed: int, target: str = "cpu") -> Results:
        """Return results without runs, to which results of the same origin can be merged."""
        first = min(FIRST_PULLS, problem.length or FIRST_PULLS)
        opening = MeanTable(problem, first, first).summary.digest
        names, noise = tuple(problem.names), repr(problem.noise)
        origin = Origin(problem.label, names, noise, opening, int(seed))
        return cls(origin, (__version__,), (target,), (), (), ())

    # --- reading ---

    @property
    def policies(self) -> list[str]:
        """The labels of the policies."""
        known = dict.fromkeys(cell.policy for cell in self.cells)
        return [label for label in self.asked if label in known] + [
            label for label in known if label not in self.asked
        ]

    @property
    def budgets(self) -> list[int]:
        """The budgets."""
        return sorted({cell.budget for cell in self.cells})

    def cell(self, policy: str | Policy, budget: int) -> Cell:
        """Return the counts of one policy at one budget."""
        label = self.label(policy)
        cell = self.find_cell(label, budget)
        if cell is None:
            have = ", ".join(str(cell.budget) for cell in self.cells if cell.policy == label)
            raise ResultsError(f"no runs of {label} at budget {budget}, but at {have}")
        return cell

    def find_cell(self, label: str, budget: int) -> Cell | None:
        """Return the counts of a policy, by its label, at one budget; None if there are none."""
        return {(cell.policy, cell.budget): cell for cell in self.cells}.get((label, budget))

    def label(self, policy: str | Policy) -> str:
        """Return the label under which these results have a policy."""
        if isinstance(policy, str) and policy in self.policies:
            return policy
        try:
            label = label_of(make_policy(policy))
        except LatebloomerError:  # perhaps a policy that is not part of this library
            label = str(policy)
        if label not in self.policies:
            raise unknown("policy in these results", label, self.policies)
        return label

    def rows(self) -> list[Row]:
        """Return the tidy table: a row per policy and budget, with None for missing intervals."""
        return [
            {
                "policy": cell.policy,
                "budget": cell.budget,
                "runs": cell.runs,
                **interval_columns("error", cell.error()),
                **interval_columns("regret", cell.regret()),
                **interval_columns("learning_regret", cell.learning_regret()),
                "pulls": [mean_of(arm) for arm in cell.pulls],
                "errors": cell.errors,
                "recommendations": list(cell.recommendations),
                "problem": self.origin.problem,
                "noise": self.origin.noise,
                "horizon": cell.horizon,
                "seed": self.origin.seed,
                "run_ranges": [list(ends) for ends in cell.ranges],
                "settings": cell.settings,
                "method": cell.method,
                **self._made(),
            }
            for cell in sorted(self.cells, key=lambda cell: self.policies.index(cell.policy))
        ]

    def quantiles(self, policy: str | Policy, budget: int, q: Sequence[float] | float) -> Any:
        """Return quantiles of the pulls of each arm: a share `q` of runs has no more."""
        pulls, shares = self.cell(policy, budget).pulls, np.atleast_1d(q).tolist()
        by_share = [[quantile(arm, float(share)) for arm in pulls] for share in shares]
        return by_share[0] if np.ndim(q) == 0 else by_share

    def compare(
        self, first: str | Policy, second: str | Policy, budget: int | None = None
    ) -> Comparison:
        """Compare errors and regrets of two policies in the same runs, at one budget or all."""
        labels = self.label(first), self.label(second)
        require(labels[0] != labels[1], "second", second, "another policy than the first",
                "a policy does not differ from itself")  # fmt: skip
        both = (pair for pair in self.pairs if set(pair.labels) == set(labels))
        pairs = [pair for pair in both if budget in (None, pair.budget)]
        if not pairs:
            at = "any budget" if budget is None else f"budget {budget}"
            why = f"{labels[0]} and {labels[1]} were not simulated together at {at}"
            raise ResultsError(f"{why}. Simulate them in one call.")
        sides = [pair if pair.first == labels[0] else pair.swapped() for pair in pairs]
        return Comparison(*labels, tuple(map(comparison_row, sides)))

    def success_rate(self) -> SuccessRates:
        """Return each policy's recommended arms, and the share of budgets at which they are best.

        It is the measure of [Mussi24, App. H] for a single run of recorded curves, whose errors
        have no interval.
        """
        by_policy: dict[str, list[Cell]] = {label: [] for label in self.policies}
        for cell in sorted(self.cells, key=lambda cell: cell.budget):
            by_policy[cell.policy].append(cell)
        names = self.origin.arms
        return SuccessRates(
            tuple(success_rate_of(label, cells, names) for label, cells in by_policy.items())
        )

    # --- merging ---

    def merge(self, other: Results) -> Results:
        """Return the union of both: runs, budgets or policies on the same problem and seed."""
        need_same("results", vars(self.origin), vars(other.origin))
        both: dict[str, Any] = {
            name: tuple(sorted({*getattr(self, name), *getattr(other, name)}))
            for name in ("versions", "targets", "changes")
        }
        cells, pairs = _union(self.cells, other.cells), _union(self.pairs, other.pairs)
        asked = tuple(dict.fromkeys((*self.asked, *other.asked)))
        return replace(self, cells=cells, pairs=pairs, asked=asked, **both)

    __add__ = merge

    # --- showing and writing ---

    def __str__(self) -> str:
        return f"{self._title()}\n{lines(COLUMNS, self.rows())}"

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        head, *shown = table(COLUMNS, self.rows())
        return html_table(self._title(), head, shown)

    def _title(self) -> str:
        origin = self.origin
        return f"{origin.problem}, {len(origin.arms)} arms, {origin.noise}, seed {origin.seed}"

    def _made(self) -> dict[str, str]:
        return {"target": "+".join(self.targets), "version": "+".join(self.versions)}

    def to_json(self) -> str:
        """Return one JSON object with the origin of the results and `rows`."""
        document = vars(self.origin) | self._made() | {"rows": self.rows()}
        return json.dumps(document, allow_nan=False)

    def to_csv(self, path: File) -> None:
        """Write the tidy table; lists are written as JSON."""
        rows = self.rows()
        lines = ([flat(value) for value in row.values()] for row in rows)
        write_csv(path, [list(rows[0]) if rows else [], *lines])

    def to_parquet(self, path: File) -> None:
        """Write the tidy table; lists stay lists."""
        arrow = extra("pyarrow", "Parquet files", "parquet")
        parquet = extra("pyarrow.parquet", "Parquet files", "parquet")
        data = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(self.rows()), data)
        write_file(path, data.getvalue())

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """Return the tidy table as a pandas data frame; `index` names columns for its index."""
        return data_frame(self.rows(), index)

    def save(self, path: File) -> None:
        """Write all counts exactly, as JSON, compressed if the name ends in .gz.

        The file is either complete or not written. `simulation/results/results_file.py` describes
        its fields.
        """
        data = json.dumps(self.as_document(), separators=(",", ":")).encode()
        write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)

    def as_document(self) -> dict[str, Any]:
        """Return the content of the file that `save` writes, as plain lists and dictionaries."""
        return document_of({name: value for name, value in vars(self).items() if name != "asked"})

    @classmethod
    def load(cls, path: File) -> Results:
        """Return the results in a file that `save` wrote."""
        return cls(**fields_in_file(path))

    def plot(
        self, path: File | None = None, what: str = "error", log: bool = False, ax: Any = None
    ) -> Axes | tuple[Axes, ...]:
        """Draw "error", "regret", "both" or "learning_regret" against the budget, or "pulls".

        Names are at the ends of the lines. "pulls" has a panel for each policy, with the mean
        pulls of each arm.

        With one budget only, each policy is a point with its interval. `log` makes the axis of
        errors logarithmic; if no error occurred, an open marker shows the upper end of the
        interval.
        """
        from latebloomer.simulation.results.plots import plot

        return plot(self, path, what, log, ax)


def _union(ours: Iterable[Any], theirs: Iterable[Any]) -> tuple[Any, ...]:
    """Return cells or pairs of both, sorted by key; those with equal keys are merged."""
    by_key = {counted.key: counted for counted in ours}
    for new in theirs:
        by_key[new.key] = by_key[new.key].merge(new) if new.key in by_key else new
    return tuple(by_key[key] for key in sorted(by_key))
