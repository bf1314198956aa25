"""Two policies compared on the runs that both played."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from latebloomer.core.statistics import Estimate, mcnemar
from latebloomer.simulation.counts import Pair
from latebloomer.simulation.text_tables import align, number, span


@dataclass(frozen=True)
class Comparison:
    """A row for each budget: the first policy minus the second, so negative is better; `print` it.

    `p` is McNemar's exact test of 'both err equally often', of each budget by itself.
    """

    first: str
    second: str
    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        head = ["budget", "runs", "only first errs", "only second", "error", "95 %", "p"]
        head += ["regret", "95 %"]
        return "\n".join(
            [
                f"{self.first} minus {self.second}, the same runs",
                align([head, *map(_shown, self.rows)]),
            ]
        )


def comparison_row(pair: Pair) -> dict[str, Any]:
    """What a comparison says at one budget."""
    return {
        "first": pair.first,
        "second": pair.second,
        "budget": pair.budget,
        "runs": pair.runs,
        "only_first_errs": pair.only_first,
        "only_second_errs": pair.only_second,
        **_named("error_difference", pair.error()),
        "p": mcnemar(pair.only_first, pair.only_second),
        **_named("regret_difference", pair.regret()),
    }


def _named(name: str, estimate: Estimate) -> dict[str, float | None]:
    ends = [value if isfinite(value) else None for value in estimate]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _shown(row: dict[str, Any]) -> list[str]:
    whole = [str(row[name]) for name in ("budget", "runs", "only_first_errs", "only_second_errs")]
    error, regret = (_difference(row, f"{what}_difference") for what in ("error", "regret"))
    return [*whole, *error, number(row["p"]), *regret]


def _difference(row: dict[str, Any], name: str) -> tuple[str, str]:
    return number(row[name]), span(row[f"{name}_low"], row[f"{name}_high"])
