"""The runs behind the figures, played once for all that read them, and questions to their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from latebloomer.paper import as_published as published
from latebloomer.paper import as_written as written
from latebloomer.paper import evidence
from latebloomer.paper.evidence import Quantity, measured
from latebloomer.paper.experiments import (
    ALGORITHMS,
    BUDGETS,
    IMDB,
    IMDB_BUDGETS,
    SETTING_A,
    SIGMAS,
    THEORY,
    Setting,
)
from latebloomer.paper.figure import Row, Workbench, select
from latebloomer.paper.modes import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS
from latebloomer.policies.rising_ucbe import RisingUCBE

FACTORS = {
    "R-UCBE 0.02": 0.02,
    "R-UCBE 0.1": 0.1,
    "R-UCBE": 1.0,
    "R-UCBE 10": 10.0,
    "R-UCBE 50": 50.0,
}
DETAIL = tuple(range(100, 251, 5))
DETAIL_RUNS = 1000  # as in the paper
# The others do the same in every run without noise; as written Rest-Sure does too.
RANDOM_ON_RECORDED = {AS_WRITTEN: ("Prob-1",), AS_PUBLISHED: ("Prob-1", "Rest-Sure")}


def play(
    setting: Setting, mode: str, names: Iterable[str], budget: int, runs: int, jobs: int
) -> list[Row]:
    """Some series of a setting at one budget: algorithms, or R-UCBE at multiples of its a."""
    if mode == AS_PUBLISHED:
        made = {name: _multiple(name) for name in names}
        return published.rows(setting, made, budget, runs)
    a = setting.exploration(budget)
    policies = written.policies_of(setting, budget) | {
        name: RisingUCBE(exploration=factor * a, noise=setting.sigma)
        for name, factor in FACTORS.items()
    }
    wanted = {name: policies[name] for name in names}
    found = written.rows(setting.problem(), wanted, budget, runs, jobs)
    return [row._replace(factor=_multiple(row.algorithm)[1]) for row in found]


def _multiple(name: str) -> tuple[str, float]:
    """The algorithm of a series and the factor of its a."""
    return ("R-UCBE", FACTORS[name]) if name in FACTORS else (name, 1.0)


def errors(bench: Workbench, setting: Setting, mode: str) -> list[Row]:
    """The nine algorithms at the 22 budgets; as written R-UCBE with the theory's a too."""
    names = ALGORITHMS if mode == AS_PUBLISHED else (*ALGORITHMS, THEORY)
    return bench.parts(
        f"{setting.name}-{setting.sigma:g}.{mode}.{bench.runs}",
        BUDGETS,
        lambda row: row.T,
        lambda budget: play(setting, mode, names, budget, bench.runs, bench.jobs),
    )


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
    def played(budget: int) -> list[Row]:
        found = play(SETTING_A, mode, FACTORS, budget, runs, bench.jobs)
        return [row._replace(panel=panel) for row in found]

    return bench.parts(f"exploration-{panel}.{mode}.{runs}", budgets, lambda row: row.T, played)


def imdb(bench: Workbench, mode: str) -> list[Row]:
    """The recorded curves at 11 budgets; one run, without intervals, where nothing is random."""
    IMDB.problem()  # raises at once where there is no data
    names = ALGORITHMS if mode == AS_PUBLISHED else (*ALGORITHMS, THEORY)
    drawn = [name for name in names if name in RANDOM_ON_RECORDED[mode]]
    fixed = [name for name in names if name not in drawn]

    def played(budget: int) -> list[Row]:
        found = [_exact(row) for row in play(IMDB, mode, fixed, budget, 1, bench.jobs)]
        found += play(IMDB, mode, drawn, budget, bench.runs, bench.jobs)
        return sorted(found, key=lambda row: names.index(row.algorithm))

    return bench.parts(f"imdb.{mode}.{bench.runs}", IMDB_BUDGETS, lambda row: row.T, played)


def _exact(row: Row) -> Row:
    """The row without intervals: another run would be the same."""
    return row._replace(
        error_low=row.error, error_high=row.error, regret_low=row.regret, regret_high=row.regret,
        pulls_low=row.pulls_best, pulls_high=row.pulls_best,
    )  # fmt: skip


def more_runs(
    bench: Workbench, setting: Setting, mode: str, rows: Sequence[Row], runs: int
) -> list[Row]:
    """These rows of a setting played so often; the folder keeps them as it keeps the others."""
    wanted = {(row.algorithm, row.T, row.sigma): row for row in rows}

    def played(key: tuple[str, int, float]) -> list[Row]:
        name, budget, sigma = key
        noisy = replace(setting, sigma=sigma or setting.sigma)
        return play(noisy, mode, [name], budget, runs, bench.jobs)

    name = f"more-{setting.name}.{mode}.{runs}"
    found = bench.parts(name, list(wanted), lambda row: (row.algorithm, row.T, row.sigma), played)
    by_key = {(row.algorithm, row.T, row.sigma): row for row in found}
    return [by_key[row.algorithm, row.T, row.sigma]._replace(panel=row.panel) for row in rows]


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


def means(
    rows: Sequence[Row], what: str = "error", first: float = 0, last: float = float("inf")
) -> dict[str, Quantity]:
    """The mean of each of the nine algorithms over budgets, the smallest first."""
    found = {
        name: evidence.mean([measured(row, what) for row in over(rows, name, first, last)])
        for name in ALGORITHMS
    }
    return dict(sorted(found.items(), key=lambda item: item[1].value))


def largest(rows: Sequence[Row], what: str = "error") -> Row:
    """The row with the largest value."""
    return max(rows, key=lambda row: getattr(row, what))


def settles(rows: Sequence[Row], algorithm: str, limit: float) -> int | None:
    """The first budget from which the error stays below a limit."""
    start = None
    for row in over(rows, algorithm):
        if row.error >= limit:
            start = None
        elif start is None:
            start = row.T
    return start


def successes(rows: Sequence[Row], first: int = 0) -> dict[str, Quantity]:
    """How many of the budgets each algorithm gets right, the most first; a mean where drawn."""
    found = {
        name: evidence.total([_right(row) for row in over(rows, name, first)])
        for name in ALGORITHMS
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].value))


def _right(row: Row) -> Quantity:
    return Quantity(1 - row.error, 1 - row.error_high, 1 - row.error_low, (row,))
