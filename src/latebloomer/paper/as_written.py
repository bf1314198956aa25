"""Plays the library's own policies, which follow the text, for `as-written`."""

from __future__ import annotations

from collections.abc import Mapping

from latebloomer.core.statistics import Estimate, mean
from latebloomer.paper.experiments import THEORY, Setting
from latebloomer.paper.figure import Row
from latebloomer.paper.modes import AS_WRITTEN
from latebloomer.policies.base import Policy
from latebloomer.policies.explore_then_commit import ExploreThenCommit
from latebloomer.policies.prob_one import ProbOne
from latebloomer.policies.registry import label_of
from latebloomer.policies.rest_sure import RestSure
from latebloomer.policies.rising_sr import RisingSR
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.policies.round_robin import RoundRobin
from latebloomer.policies.round_robin_window import RoundRobinWindow
from latebloomer.policies.successive_rejects import SuccessiveRejects
from latebloomer.policies.ucbe import UCBE
from latebloomer.problems import Gaussian, Problem
from latebloomer.simulation.counts import Histogram
from latebloomer.simulation.simulate import simulate


def the_nine(sigma: float, exploration: float | str) -> dict[str, Policy]:
    """The nine algorithms in the paper's order; UCB-E is told the gaps by `simulate`."""
    return {
        "RR": RoundRobin(),
        "RR-SW": RoundRobinWindow(),
        "UCB-E": UCBE(),
        "R-UCBE": RisingUCBE(exploration=exploration, noise=sigma),
        "SR": SuccessiveRejects(),
        "R-SR": RisingSR(),
        "Prob-1": ProbOne(),
        "ETC": ExploreThenCommit(),
        "Rest-Sure": RestSure(),
    }


def policies_of(setting: Setting, budget: int) -> dict[str, Policy]:
    """The nine with the authors' a, and R-UCBE with the a at which its bound is .05."""
    nine = the_nine(setting.sigma, setting.exploration(budget))
    return nine | {THEORY: RisingUCBE(exploration="theory", noise=setting.sigma)}


def rows(
    problem: Problem,
    policies: Mapping[str, Policy],
    budget: int,
    runs: int,
    jobs: int,
    panel: str = "",
) -> list[Row]:
    """The tidy rows of one budget."""
    results = simulate(
        problem, list(policies.values()), budget, runs, threads=jobs, progress=False
    )
    if len(results.cells) < len(policies) or any(cell.runs < runs for cell in results.cells):
        raise KeyboardInterrupt  # Ctrl-C ended `simulate` early; it ends the reproduction too
    best = problem.best(budget)
    sigma = problem.noise.sd if isinstance(problem.noise, Gaussian) else 0.0
    made = []
    for series, policy in policies.items():
        cell = results.cell(label_of(policy), budget)
        often = cell.recommendations.index(max(cell.recommendations))
        pulls, low, high = _mean_pulls(cell.pulls[best])
        measured = (*cell.error(), *cell.regret(), cell.runs, AS_WRITTEN, pulls, best, often)
        made.append(Row(series, budget, sigma, *measured, 1.0, panel, low, high))  # type: ignore[arg-type]
    return made


def _mean_pulls(pulls: Histogram) -> Estimate:
    pairs = pulls.pairs()
    return mean(sum(n * k for n, k in pairs), sum(n * n * k for n, k in pairs), pulls.count())
