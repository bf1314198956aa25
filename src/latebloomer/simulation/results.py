"""What a simulation found, with intervals, and how to show, merge and compare it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from latebloomer._util.atomic_files import File, write_csv, write_file
from latebloomer._util.tables import data_frame, html_table
from latebloomer.core.statistics import Estimate, mcnemar
from latebloomer.errors import LatebloomerError, ResultsError, extra, require, unknown
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of, make_policy, rank
from latebloomer.problems.problem import Problem
from latebloomer.simulation.counts import Cell, Counts, Pair, Ranges, missing_ranges, need_same
from latebloomer.simulation.experiment import Changes, MeanTable
from latebloomer.simulation.tally import Tally
from latebloomer.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = dict[str, Any]

FIRST_PULLS = 1024  # of each arm: their means tell two problems of one label apart


@dataclass(frozen=True)
class Origin:
    """Where results come from; those of another origin are not merged."""

    problem: str  # its label
    arms: tuple[str, ...]  # their names
    noise: str
    opening: str  # sha256 of the means of the first pulls
    seed: int


@dataclass(frozen=True)
class Results:
    """Policies x budgets on one problem: errors, regrets and pulls, over a set of runs.

    Attributes
    ----------
    origin : Origin
        Problem, seed and horizon.
    versions : tuple[str, ...]
        Versions of the library that made them.
    targets : tuple[str, ...]
        Targets on which they were made.
    changes : Changes
        Horizons from which another arm is best.
    cells : tuple[Cell, ...]
        Counts by policy and budget.
    pairs : tuple[Pair, ...]
        Counts of two policies in the same runs, by budget.

    Examples
    --------
    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> from latebloomer.policies.window_ratings import RoundRobin
    >>> problem = Problem([[0.25, 0.5], [0.5, 0.75]])
    >>> tally = Tally({"r-sr": RisingSR(), "rr": RoundRobin()}, problem.means(2), budget=2)
    >>> tally.add(0, np.array([[1, 0, 1], [0, 0, 1]]), np.ones((2, 3, 2), int))
    >>> results = Results.of(problem, 0, [tally])
    >>> [(row["policy"], row["budget"], row["errors"], row["runs"]) for row in results.rows()]
    [('r-sr', 2, 1, 3), ('rr', 2, 2, 3)]
    >>> results.compare("rr", "r-sr").rows[0]["error_difference"]
    0.333...
    """

    origin: Origin
    versions: tuple[str, ...]
    targets: tuple[str, ...]
    changes: Changes
    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]

    @classmethod
    def of(
        cls, problem: Problem, seed: int, tallies: Iterable[Tally], target: str = "cpu"
    ) -> Results:
        """Return the results in these tallies; one without runs adds nothing."""
        made = cls(origin_of(problem, seed), (__version__,), (target,), (), (), ())
        for tally in tallies:
            if tally.ranges:
                made = made.with_counts(tally.counts(), tally.means.changes)
        return made

    # --- what is known ---

    @property
    def policies(self) -> list[str]:
        """The labels of the policies."""
        return list(dict.fromkeys(cell.policy for cell in self.cells))

    @property
    def budgets(self) -> list[int]:
        """The budgets."""
        return sorted({cell.budget for cell in self.cells})

    def cell(self, policy: str | Policy, budget: int) -> Cell:
        """Return the counts of one policy at one budget."""
        label = self.label(policy)
        found = self.find_cell(label, budget)
        if found is None:
            have = ", ".join(str(cell.budget) for cell in self.cells if cell.policy == label)
            raise ResultsError(f"no runs of {label} at budget {budget}, but at {have}")
        return found

    def find_cell(self, label: str, budget: int) -> Cell | None:
        """Return the counts of a policy, by its label, at one budget; None if there are none."""
        found = (cell for cell in self.cells if cell.policy == label)
        return next((cell for cell in found if cell.budget == budget), None)

    def find_pairs(self, one: str, other: str) -> list[Pair]:
        """Return the counts of two policies, by label, in the same runs: one for each budget."""
        labels = tuple(sorted((one, other), key=rank))
        return [pair for pair in self.pairs if (pair.first, pair.second) == labels]

    def label(self, policy: str | Policy) -> str:
        """Return the label under which these results have a policy."""
        label = self._label(policy)
        if label not in self.policies:
            raise unknown("policy in these results", label, self.policies)
        return label

    def rows(self) -> list[Row]:
        """Return the tidy table: a row per policy and budget; None if there is no interval."""
        return [self._row(cell) for cell in self.cells]

    def quantiles(self, policy: str | Policy, budget: int, q: Sequence[float] | float) -> Any:
        """Return the pulls of each arm that a share `q` of the runs does not exceed, by q."""
        pulls = self.cell(policy, budget).pulls
        found = [[arm.quantile(float(share)) for arm in pulls] for share in np.atleast_1d(q)]
        return found[0] if np.ndim(q) == 0 else found

    def compare(
        self, first: str | Policy, second: str | Policy, budget: int | None = None
    ) -> Comparison:
        """Compare two policies in the same runs, at one budget or all: errors and regrets."""
        labels = self.label(first), self.label(second)
        require(labels[0] != labels[1], "second", second, "another policy than the first",
                "a policy does not differ from itself")  # fmt: skip
        pairs = [pair for pair in self.find_pairs(*labels) if budget in (None, pair.budget)]
        if not pairs:
            at = "any budget" if budget is None else f"budget {budget}"
            raise ResultsError(
                f"{labels[0]} and {labels[1]} were not simulated in the same runs at {at}. "
                "Simulate them in one call, with the same method."
            )
        sides = [pair if pair.first == labels[0] else pair.swapped() for pair in pairs]
        return Comparison(*labels, tuple(map(_comparison_row, sides)))

    def missing(self, policy: str | Policy, budget: int, runs: int) -> Ranges:
        """Return which of the runs 0 to `runs` - 1 are missing: what is left to simulate."""
        found = self.find_cell(self._label(policy), budget)
        return missing_ranges(() if found is None else found.ranges, 0, runs)

    # --- putting together ---

    def merge(self, other: Results) -> Results:
        """Return both: other runs, budgets or policies on the same problem and seed."""
        need_same("results", asdict(self.origin), asdict(other.origin))
        made = replace(
            self,
            versions=tuple(sorted({*self.versions, *other.versions})),
            targets=tuple(sorted({*self.targets, *other.targets})),
        )
        return made.with_counts(Counts(other.cells, other.pairs), other.changes)

    def __add__(self, other: Results) -> Results:
        return self.merge(other)

    def with_counts(self, counts: Counts, changes: Changes) -> Results:
        """Return these and what was found in other runs, with their changes of the best arm."""
        return replace(
            self,
            changes=tuple(sorted({*self.changes, *changes})),
            cells=_union(self.cells, counts.cells),
            pairs=_union(self.pairs, counts.pairs),
        )

    # --- showing and writing ---

    def __str__(self) -> str:
        about, table = self._shown()
        return "\n".join([about, aligned(table)])

    def _repr_html_(self) -> str:
        """Return the same table for a notebook."""
        about, (head, *shown) = self._shown()
        return html_table(about, head, shown)

    def _shown(self) -> tuple[str, list[list[str]]]:
        """Return what the results are about, and the table with its head."""
        shown = [
            [
                row["policy"],
                str(row["budget"]),
                str(row["runs"]),
                *_with_interval(row, "error"),
                *_with_interval(row, "regret"),
            ]
            for row in self.rows()
        ]
        head = ["policy", "budget", "runs", "error", "95 %", "regret", "95 %"]
        origin = self.origin
        about = f"{origin.problem}, {len(origin.arms)} arms, {origin.noise}, seed {origin.seed}"
        return about, [head, *shown]

    def to_json(self) -> str:
        """Return one JSON object: where the results come from, and `rows`."""
        provenance = asdict(self.origin) | {"version": self._version(), "target": self._target()}
        return json.dumps(provenance | {"rows": self.rows()}, allow_nan=False)

    def to_csv(self, path: File) -> None:
        """Write the tidy table; lists are written as JSON."""
        rows = [{name: _flat(value) for name, value in row.items()} for row in self.rows()]
        write_csv(path, [list(rows[0]) if rows else [], *(row.values() for row in rows)])

    def to_parquet(self, path: File) -> None:
        """Write the tidy table; lists stay lists."""
        arrow = extra("pyarrow", "Parquet files", "parquet")
        parquet = extra("pyarrow.parquet", "Parquet files", "parquet")
        data = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(self.rows()), data)
        write_file(path, data.getvalue())

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """Return the tidy table as a pandas data frame; `index` names columns to find rows by."""
        return data_frame(self.rows(), index)

    def save(self, path: File) -> None:
        """Write all counts exactly, as JSON, compressed if the name ends in .gz.

        The file is complete or not there: its fields are in `simulation/results_file.py`.
        """
        from latebloomer.simulation.results_file import write

        write(self, path)

    @classmethod
    def load(cls, path: File) -> Results:
        """Return the problem recorded in a file; the ending of its name tells the layout."""
        from latebloomer.simulation.results_file import read

        return read(path)

    def plot(
        self, path: File | None = None, what: str = "error", log: bool = False, ax: Any = None
    ) -> Axes | tuple[Axes, ...]:
        """Draw "error", "regret" or "both" against the budget; names stand where lines end.

        With one budget only, each policy is a point with its interval. `log` makes the error
        logarithmic; where no error occurred an open marker shows the upper end of the interval.
        """
        from latebloomer.simulation.plots import plot

        return plot(self, path, what, log, ax)

    def _label(self, policy: str | Policy) -> str:
        if isinstance(policy, str) and policy in self.policies:
            return policy
        try:
            return label_of(make_policy(policy))
        except LatebloomerError:  # perhaps a policy from elsewhere, which has no name here
            return str(policy)

    def _row(self, cell: Cell) -> Row:
        return {
            "policy": cell.policy,
            "budget": cell.budget,
            "runs": cell.runs,
            **_interval_columns("error", cell.error()),
            **_interval_columns("regret", cell.regret()),
            "pulls": [arm.mean() for arm in cell.pulls],
            "errors": cell.errors,
            "recommendations": list(cell.recommendations),
            "problem": self.origin.problem,
            "noise": self.origin.noise,
            "horizon": cell.horizon,
            "seed": self.origin.seed,
            "run_ranges": [list(ends) for ends in cell.ranges],
            "settings": cell.settings,
            "method": cell.method,
            "target": self._target(),
            "version": self._version(),
        }

    def _version(self) -> str:
        return "+".join(self.versions)

    def _target(self) -> str:
        return "+".join(self.targets)


def origin_of(problem: Problem, seed: int) -> Origin:
    """Return what must agree for results to be merged."""
    first = min(FIRST_PULLS, problem.length or FIRST_PULLS)
    digest = MeanTable(problem, first, first).summary.digest
    return Origin(problem.label, tuple(problem.names), repr(problem.noise), digest, int(seed))


def _union(ours: Iterable[Any], theirs: Iterable[Any]) -> tuple[Any, ...]:
    """Return cells or pairs of both, those of one key merged, in the order of their keys."""
    found = {one.key: one for one in ours}
    for new in theirs:
        found[new.key] = found[new.key].merge(new) if new.key in found else new
    return tuple(found[key] for key in sorted(found))


# --- two policies compared ---


@dataclass(frozen=True)
class Comparison:
    """A row for each budget: the first policy minus the second, so negative is better; `print` it.

    `p` is McNemar's exact test of 'both err equally often', for each budget separately.

    Attributes
    ----------
    first : str
        Label of a policy.
    second : str
        Label of another policy.
    rows : tuple[Row, ...]
        One row for each budget.
    """

    first: str
    second: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        whole = ("budget", "runs", "only_first_errs", "only_second_errs")
        shown = [
            [
                *(str(row[name]) for name in whole),
                *_with_interval(row, "error_difference"),
                number(row["p"]),
                *_with_interval(row, "regret_difference"),
            ]
            for row in self.rows
        ]
        head = ["budget", "runs", "only first errs", "only second", "error", "95 %", "p"]
        about = f"{self.first} minus {self.second}, the same runs"
        return "\n".join([about, aligned([[*head, "regret", "95 %"], *shown])])


def _comparison_row(pair: Pair) -> Row:
    return {
        "first": pair.first,
        "second": pair.second,
        "budget": pair.budget,
        "runs": pair.runs,
        "only_first_errs": pair.only_first,
        "only_second_errs": pair.only_second,
        **_interval_columns("error_difference", pair.error()),
        "p": mcnemar(pair.only_first, pair.only_second),
        **_interval_columns("regret_difference", pair.regret()),
    }


# --- tables of numbers with intervals ---


def _interval_columns(name: str, estimate: Estimate) -> dict[str, float | None]:
    """Return a value and the ends of its interval; None if a single run has none."""
    ends = [value if isfinite(value) else None for value in estimate]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _with_interval(row: Row, name: str) -> tuple[str, str]:
    return number(row[name]), f"[{number(row[f'{name}_low'])}, {number(row[f'{name}_high'])}]"


def number(value: float | None) -> str:
    """Return four digits, or a dash for None.

    >>> number(0.0123456), number(3e-06), number(None)
    ('0.01235', '3e-06', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines: the first column to the left, the others to the right.

    >>> print(aligned([["policy", "error"], ["r-sr", "0.5"]]))
    policy  error
    r-sr      0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value
