"""Tables of numbers with intervals, and two policies compared in the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from latebloomer._util.text import aligned
from latebloomer.core.statistics import Estimate, mcnemar
from latebloomer.simulation.results.counts import Pair

Row: TypeAlias = dict[str, Any]


# --- two policies compared ---


@dataclass(frozen=True)
class Comparison:
    """The first policy minus the second, a row per budget; negative is better; `print` it.

    `p` is the p-value of McNemar's exact test that both policies err equally often, for each
    budget separately.

    Attributes
    ----------
    first : str
        Label of the first policy.
    second : str
        Label of the second policy.
    rows : tuple[Row, ...]
        One row for each budget.
    """

    first: str
    second: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        about = f"{self.first} minus {self.second}, the same runs"
        columns: tuple[str, ...] = (*COUNTED, "error_difference", "p", "regret_difference")
        if any(row["learning_regret_difference"] is not None for row in self.rows):
            columns += ("learning_regret_difference",)
        return f"{about}\n{lines(columns, self.rows)}"


def comparison_row(pair: Pair) -> Row:
    """Return the difference of a pair of policies (first minus second), with intervals."""
    return {
        "first": pair.first,
        "second": pair.second,
        "budget": pair.budget,
        "runs": pair.runs,
        "only_first_errs": pair.only_first,
        "only_second_errs": pair.only_second,
        **interval_columns("error_difference", pair.error()),
        "p": mcnemar(pair.only_first, pair.only_second),
        **interval_columns("regret_difference", pair.regret()),
        **interval_columns("learning_regret_difference", pair.learning_regret()),
    }


# --- tables of numbers with intervals ---

COLUMNS = ("policy", "budget", "runs", "error", "regret", "learning_regret", "pulls")
MOST_ARMS = 6  # maximum number of arms whose pulls are in the printed table
COUNTED = ("budget", "runs", "only_first_errs", "only_second_errs")


def interval_columns(name: str, estimate: Estimate) -> dict[str, float | None]:
    """Return a value and the ends of its interval, which are None for a single run."""
    ends = [value if isfinite(value) else None for value in estimate]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def table(columns: Sequence[str], rows: Sequence[Row]) -> list[list[str]]:
    """Return the titles and the rows as text, with an interval after each error and regret."""
    titles = [name.removesuffix("_difference").replace("_", " ") for name in columns]
    shown: list[list[str]] = [[] for _ in range(1 + len(rows))]
    for title, name in zip(titles, columns, strict=True):
        estimated = title in ("error", "regret", "learning regret")
        shown[0] += [title, "95 %"] if estimated else [title]
        for row, cells in zip(rows, shown[1:], strict=True):
            cells.append(_cell_text(row[name]))
            if estimated:
                cells.append(
                    f"[{_cell_text(row[f'{name}_low'])}, {_cell_text(row[f'{name}_high'])}]"
                )
    return shown


def _cell_text(value: float | str | list[float] | None) -> str:
    """Return a cell as text: numbers with four digits unless they are integers; None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, list):
        cut = " ..." if len(value) > MOST_ARMS else ""
        return " ".join(f"{number:.4g}" for number in value[:MOST_ARMS]) + cut
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def lines(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the table as lines; all columns but the first are right-aligned."""
    shown = table(columns, rows)
    return "\n".join(aligned(shown, "<".ljust(len(shown[0]), ">")))
