"""What a simulation found, with intervals, and how to show, merge, compare and store it.

The results file is one JSON object, compressed if its name ends in .gz:

======== =======================================================================================
format   "latebloomer results"
edition  1; another number means other fields
origin   problem (label), arms (names), noise, opening (sha256 of the first means), seed
versions of the library that made the runs
targets  on which they ran
changes  [horizon, arm that is best from there on]
cells    one for each policy and budget, see below
pairs    one for each two policies that had the same runs, at each budget
======== =======================================================================================

Cells and pairs have the fields of `Cell` and `Pair` in `tally.py`. All counts and sums are exact
integers, some beyond 2^53; regrets are in units of 2^unit. `ranges` lists [first, last) of the
runs covered; `pulls` lists for each arm [pulls, number of runs that had that many]. Equal results
are equal bytes, whatever chunks, machines or merges they came from.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from latebloomer._util.atomic_files import File, write_csv, write_file
from latebloomer._util.text import aligned, data_frame, html_table
from latebloomer.core.statistics import Estimate, mcnemar
from latebloomer.errors import LatebloomerError, ResultsError, extra, require, unknown
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of, make_policy
from latebloomer.problems.problem import Problem
from latebloomer.simulation import tally
from latebloomer.simulation.experiment import MeanTable
from latebloomer.simulation.tally import Cell, Pair
from latebloomer.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = dict[str, Any]
Changes: TypeAlias = tuple[tuple[int, int], ...]  # (horizon, arm that is best from there on)

FIRST_PULLS = 1024  # of each arm: their means tell two problems of one label apart
FORMAT, EDITION = "latebloomer results", 1


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

    @classmethod
    def empty(cls, problem: Problem, seed: int, target: str = "cpu") -> Results:
        """Return results without runs; what agrees in them is what can be merged."""
        first = min(FIRST_PULLS, problem.length or FIRST_PULLS)
        opening = MeanTable(problem, first, first).summary.digest
        names, noise = tuple(problem.names), repr(problem.noise)
        origin = Origin(problem.label, names, noise, opening, int(seed))
        return cls(origin, (__version__,), (target,), (), (), ())

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
        return {(cell.policy, cell.budget): cell for cell in self.cells}.get((label, budget))

    def label(self, policy: str | Policy) -> str:
        """Return the label under which these results have a policy."""
        if isinstance(policy, str) and policy in self.policies:
            return policy
        try:
            label = label_of(make_policy(policy))
        except LatebloomerError:  # perhaps a policy from elsewhere, which has no name here
            label = str(policy)
        if label not in self.policies:
            raise unknown("policy in these results", label, self.policies)
        return label

    def rows(self) -> list[Row]:
        """Return the tidy table: a row per policy and budget; None if there is no interval."""
        return [
            {
                "policy": cell.policy,
                "budget": cell.budget,
                "runs": cell.runs,
                **_interval_columns("error", cell.error()),
                **_interval_columns("regret", cell.regret()),
                "pulls": [tally.mean_of(arm) for arm in cell.pulls],
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
            for cell in self.cells
        ]

    def quantiles(self, policy: str | Policy, budget: int, q: Sequence[float] | float) -> Any:
        """Return the pulls of each arm that a share `q` of the runs does not exceed, by q."""
        pulls, shares = self.cell(policy, budget).pulls, np.atleast_1d(q).tolist()
        found = [[tally.quantile(arm, float(share)) for arm in pulls] for share in shares]
        return found[0] if np.ndim(q) == 0 else found

    def compare(
        self, first: str | Policy, second: str | Policy, budget: int | None = None
    ) -> Comparison:
        """Compare two policies in the same runs, at one budget or all: errors and regrets."""
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
        return Comparison(*labels, tuple(map(_comparison_row, sides)))

    # --- putting together ---

    def merge(self, other: Results) -> Results:
        """Return both: other runs, budgets or policies on the same problem and seed."""
        tally.need_same("results", vars(self.origin), vars(other.origin))
        both: dict[str, Any] = {
            name: tuple(sorted({*getattr(self, name), *getattr(other, name)}))
            for name in ("versions", "targets", "changes")
        }
        cells, pairs = _union(self.cells, other.cells), _union(self.pairs, other.pairs)
        return replace(self, cells=cells, pairs=pairs, **both)

    __add__ = merge

    # --- showing and writing ---

    def __str__(self) -> str:
        return f"{self._title()}\n{_lines(COLUMNS, self.rows())}"

    def _repr_html_(self) -> str:
        """Return the same table for a notebook."""
        head, *shown = _table(COLUMNS, self.rows())
        return html_table(self._title(), head, shown)

    def _title(self) -> str:
        origin = self.origin
        return f"{origin.problem}, {len(origin.arms)} arms, {origin.noise}, seed {origin.seed}"

    def _made(self) -> dict[str, str]:
        return {"target": "+".join(self.targets), "version": "+".join(self.versions)}

    def to_json(self) -> str:
        """Return one JSON object: where the results come from, and `rows`."""
        found = vars(self.origin) | self._made() | {"rows": self.rows()}
        return json.dumps(found, allow_nan=False)

    def to_csv(self, path: File) -> None:
        """Write the tidy table; lists are written as JSON."""
        rows = self.rows()
        lines = ([_flat(value) for value in row.values()] for row in rows)
        write_csv(path, [list(rows[0]) if rows else [], *lines])

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

        The file is complete or not there: its fields are in `simulation/results.py`.
        """
        data = json.dumps(self.as_document(), separators=(",", ":")).encode()
        write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)

    def as_document(self) -> dict[str, Any]:
        """Return what `save` writes, as plain lists and dictionaries."""
        cells = [
            vars(cell) | {"pulls": [sorted(arm.items()) for arm in cell.pulls]}
            for cell in self.cells
        ]
        content = {"origin": vars(self.origin), "cells": cells, "pairs": [*map(vars, self.pairs)]}
        return {"format": FORMAT, "edition": EDITION} | vars(self) | content

    @classmethod
    def load(cls, path: File) -> Results:
        """Return the results in a file that `save` wrote."""
        data = Path(path).read_bytes()
        try:
            document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
            if document["format"] != FORMAT:
                raise ValueError("`Results.save` did not write it")
        except (ValueError, EOFError, OSError, TypeError, KeyError) as error:
            raise ResultsError(f"{path} is not a results file: {error}") from error
        if document.get("edition") != EDITION:
            raise ResultsError(
                f"{path} has edition {document.get('edition')} of the results format, but this "
                f"version reads {EDITION}. Install the latebloomer that wrote it."
            )
        try:
            return _from_document(document)
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"{path} is damaged: {type(error).__name__} {error}") from error

    def plot(
        self, path: File | None = None, what: str = "error", log: bool = False, ax: Any = None
    ) -> Axes | tuple[Axes, ...]:
        """Draw "error", "regret" or "both" against the budget; names stand where lines end.

        With one budget only, each policy is a point with its interval. `log` makes the error
        logarithmic; where no error occurred an open marker shows the upper end of the interval.
        """
        from latebloomer.simulation.plots import plot

        return plot(self, path, what, log, ax)


def _union(ours: Iterable[Any], theirs: Iterable[Any]) -> tuple[Any, ...]:
    """Return cells or pairs of both, those of one key merged, in the order of their keys."""
    found = {one.key: one for one in ours}
    for new in theirs:
        found[new.key] = found[new.key].merge(new) if new.key in found else new
    return tuple(found[key] for key in sorted(found))


def _from_document(document: dict[str, Any]) -> Results:
    """Return the results of which `Results.as_document` made the document."""
    origin = document["origin"]
    return Results(
        Origin(**origin | {"arms": tuple(origin["arms"])}),
        tuple(document["versions"]),
        tuple(document["targets"]),
        _pairs(document["changes"]),
        tuple(map(_cell, document["cells"])),
        tuple(Pair(**pair | {"ranges": _ranges(pair)}) for pair in document["pairs"]),
    )


def _cell(found: dict[str, Any]) -> Cell:
    read = {
        "ranges": _ranges(found),
        "recommendations": tuple(found["recommendations"]),
        "pulls": tuple(Counter(dict(_pairs(arm))) for arm in found["pulls"]),
    }
    cell = Cell(**found | read)
    totals = {cell.runs, sum(cell.recommendations), *(arm.total() for arm in cell.pulls)}
    if len(totals) > 1:
        raise ValueError(f"the counts of {cell.policy} at budget {cell.budget} do not add up")
    return cell


def _ranges(found: dict[str, Any]) -> tally.Ranges:
    return tally.join_ranges(_pairs(found["ranges"]), (), "a results file")


def _pairs(given: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(one), int(other)) for one, other in given)


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
        about = f"{self.first} minus {self.second}, the same runs"
        columns = (*COUNTED, "error_difference", "p", "regret_difference")
        return f"{about}\n{_lines(columns, self.rows)}"


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

COLUMNS = ("policy", "budget", "runs", "error", "regret")
COUNTED = ("budget", "runs", "only_first_errs", "only_second_errs")


def _interval_columns(name: str, estimate: Estimate) -> dict[str, float | None]:
    """Return a value and the ends of its interval; None if a single run has none."""
    ends = [value if isfinite(value) else None for value in estimate]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _table(columns: Sequence[str], rows: Sequence[Row]) -> list[list[str]]:
    """Return the titles, then the rows as text, with an interval after each error and regret."""
    titles = [name.removesuffix("_difference").replace("_", " ") for name in columns]
    shown: list[list[str]] = [[] for _ in range(1 + len(rows))]
    for title, name in zip(titles, columns, strict=True):
        estimated = title in ("error", "regret")
        shown[0] += [title, "95 %"] if estimated else [title]
        for row, cells in zip(rows, shown[1:], strict=True):
            cells.append(_text(row[name]))
            if estimated:
                cells.append(f"[{_text(row[f'{name}_low'])}, {_text(row[f'{name}_high'])}]")
    return shown


def _text(value: float | str | None) -> str:
    """Return four digits of a number that is not whole, or a dash for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _lines(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the table as lines: the first column to the left, the others to the right."""
    shown = _table(columns, rows)
    return "\n".join(aligned(shown, "<".ljust(len(shown[0]), ">")))


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value
