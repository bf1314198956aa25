"""The runs behind the figures, played once for all that read them, and questions to their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from latebloomer.paper import as_published as published
from latebloomer.paper import as_written as written
from latebloomer.paper.experiments import (
    ALGORITHMS,
    AS_PUBLISHED,
    BUDGETS,
    IMDB,
    IMDB_BUDGETS,
    SETTING_A,
    SIGMAS,
    Setting,
)
from latebloomer.paper.figure import PUBLISHED_RUNS, Row, Workbench, select
from latebloomer.policies import Policy, RisingUCBE

FACTORS = {
    "R-UCBE 0.02": 0.02,
    "R-UCBE 0.1": 0.1,
    "R-UCBE": 1.0,
    "R-UCBE 10": 10.0,
    "R-UCBE 50": 50.0,
}
DETAIL = tuple(range(100, 251, 5))
DETAIL_RUNS = 1000  # as in the paper
RANDOM_ON_RECORDED = ("Prob-1", "Rest-Sure")  # the others do the same in every run without noise


def errors(bench: Workbench, setting: Setting, mode: str) -> list[Row]:
    """The nine algorithms at the 22 budgets."""
    runs = bench.runs
    name = f"{setting.name}-{setting.sigma:g}.{mode}.{runs}"

    def play(budget: int) -> list[Row]:
        if mode == AS_PUBLISHED:
            nine = {algorithm: (algorithm, 1.0) for algorithm in ALGORITHMS}
            return published.rows(setting, nine, budget, runs)
        policies = written.policies_of(setting, budget)
        return written.rows(setting.problem(), policies, budget, runs, bench.jobs)

    return bench.parts(name, BUDGETS, lambda row: row.T, play)


def noise(bench: Workbench, mode: str) -> list[Row]:
    """Setting A at six noise levels."""
    return [
        row._replace(panel=f"sigma={sigma:g}")
        for sigma in SIGMAS
        for row in errors(bench, replace(SETTING_A, sigma=sigma), mode)
    ]


def exploration(bench: Workbench, mode: str) -> list[Row]:
    """R-UCBE at multiples of a: a fine grid around the change of the best arm, and all budgets."""
    return [
        *_exploration(bench, mode, "detail", DETAIL, DETAIL_RUNS),
        *_exploration(bench, mode, "budgets", BUDGETS, bench.runs),
    ]


def _exploration(
    bench: Workbench, mode: str, panel: str, budgets: tuple[int, ...], runs: int
) -> list[Row]:
    def play(budget: int) -> list[Row]:
        if mode == AS_PUBLISHED:
            series = {name: ("R-UCBE", factor) for name, factor in FACTORS.items()}
            found = published.rows(SETTING_A, series, budget, runs)
        else:
            a, sigma = SETTING_A.exploration(budget), SETTING_A.sigma
            policies: dict[str, Policy] = {
                name: RisingUCBE(exploration=factor * a, noise=sigma)
                for name, factor in FACTORS.items()
            }
            found = written.rows(SETTING_A.problem(), policies, budget, runs, bench.jobs)
        return [row._replace(panel=panel, factor=FACTORS[row.algorithm]) for row in found]

    return bench.parts(f"exploration-{panel}.{mode}.{runs}", budgets, lambda row: row.T, play)


def imdb(bench: Workbench, mode: str) -> list[Row]:
    """The recorded curves at 11 budgets; one run where nothing is random."""
    IMDB.problem()  # raises at once where there is no data

    def play(budget: int) -> list[Row]:
        if mode == AS_PUBLISHED:
            drawn = {name: (name, 1.0) for name in ALGORITHMS if name in RANDOM_ON_RECORDED}
            rest = {name: (name, 1.0) for name in ALGORITHMS if name not in drawn}
            found = published.rows(IMDB, rest, budget, 1)
            found += published.rows(IMDB, drawn, budget, bench.runs)
            return sorted(found, key=lambda row: ALGORITHMS.index(row.algorithm))
        policies = written.policies_of(IMDB, budget)
        drawn_by_us = {"Prob-1": policies.pop("Prob-1")}
        found = written.rows(IMDB.problem(), policies, budget, 1, bench.jobs)
        return found + written.rows(IMDB.problem(), drawn_by_us, budget, bench.runs, bench.jobs)

    return bench.parts(f"imdb.{mode}.{bench.runs}", IMDB_BUDGETS, lambda row: row.T, play)


def with_published_runs(bench: Workbench) -> Workbench:
    """The same workbench with the paper's number of runs: what claims read as published."""
    return replace(bench, runs=PUBLISHED_RUNS)


# --- questions to the rows of a series ---


def at(rows: Sequence[Row], algorithm: str, budget: int) -> Row:
    """The row of an algorithm at a budget."""
    return select(rows, algorithm=algorithm, T=budget)[0]


def over(
    rows: Sequence[Row], algorithm: str, first: float = 0, last: float = float("inf")
) -> list[Row]:
    """The rows of an algorithm at budgets from `first` to `last`."""
    return [row for row in select(rows, algorithm=algorithm) if first <= row.T <= last]


def mean(rows: Sequence[Row], what: str = "error") -> float:
    """The mean of a column."""
    return sum(getattr(row, what) for row in rows) / len(rows)


def means(
    rows: Sequence[Row], what: str = "error", first: float = 0, last: float = float("inf")
) -> dict[str, float]:
    """The mean of each of the nine algorithms over budgets, the smallest first."""
    found = {name: mean(over(rows, name, first, last), what) for name in ALGORITHMS}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def largest(rows: Sequence[Row], what: str = "error") -> Row:
    """The row with the largest value."""
    return max(rows, key=lambda row: getattr(row, what))


def apart(low: Row, high: Row, what: str = "error") -> bool:
    """Whether the interval of `low` ends below that of `high`."""
    return bool(getattr(low, f"{what}_high") < getattr(high, f"{what}_low"))


def settles(rows: Sequence[Row], algorithm: str, limit: float) -> int | None:
    """The first budget from which the error stays below a limit."""
    start = None
    for row in over(rows, algorithm):
        if row.error >= limit:
            start = None
        elif start is None:
            start = row.T
    return start


def successes(rows: Sequence[Row], first: int = 0) -> dict[str, float]:
    """How many of the budgets each algorithm gets right, the most first; a mean where drawn."""
    found = {name: sum(1 - row.error for row in over(rows, name, first)) for name in ALGORITHMS}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
