"""What `simulate` does: the experiments that are asked for, and the runs that they lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from latebloomer._util.atomic_files import File
from latebloomer.core.random import RUNS
from latebloomer.core.seed_key import key
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import is_auto, label_of, make_policy
from latebloomer.problems import Problem
from latebloomer.problems import problem as problem_of
from latebloomer.simulation.experiment import (
    CountedRuns,
    Experiment,
    MissingRuns,
    experiment_of,
)
from latebloomer.simulation.local_runs import count_here
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.results import Results
from latebloomer.simulation.results_file import GrowingResults
from latebloomer.simulation.run_memory import threads_that_fit

TARGETS = ("cpu", "gpu", "python")
METHODS = ("auto", "pulls", "sums")
ENGINES = ("local", "ray")


class Wanted(NamedTuple):
    """The runs [first, last) of experiments on a problem."""

    problem: Problem
    experiments: list[Experiment]
    seed: int
    target: str
    first: int
    last: int


class Where(NamedTuple):
    """Where runs are played."""

    threads: int | None
    engine: str
    address: str | None


def results_of(wanted: Wanted, where: Where, out: File | None, shown: bool) -> Results:
    """Play what `out` lacks, or all; Ctrl-C stops after the chunk that is being played."""
    experiments, first, last = wanted.experiments, wanted.first, wanted.last
    if where.engine == "local":
        for experiment in experiments:  # before anything is looked at or made
            threads_that_fit(experiment, last - first)
    growing = GrowingResults(Results.of(wanted.problem, wanted.seed, [], wanted.target), out)
    missing = growing.missing(experiments, first, last)
    with Progress(sum(some.cost for some in missing), "pulls", shown=shown) as bar:
        try:
            with closing(_counted(missing, where, bar)) as counted:
                growing.gather(counted)
        except KeyboardInterrupt:
            bar.interrupted()
    return growing.results


def _counted(missing: list[MissingRuns], where: Where, bar: Progress) -> CountedRuns:
    if where.engine == "local":
        return count_here(missing, where.threads, bar)
    from latebloomer.simulation.ray_tasks import count_on_ray

    return count_on_ray(missing, where.threads, where.address, bar)


# --- what is asked for ---


def problem_and_policies(
    problem: Problem | str, policies: Policy | str | Iterable[Policy | str]
) -> tuple[Problem, dict[str, Policy | str]]:
    """The problem, and the policies by label."""
    setting = problem if isinstance(problem, Problem) else problem_of(problem)
    return setting, _policies(policies)


def experiments_of(
    problem: Problem,
    policies: Mapping[str, Policy | str],
    budgets: int | Sequence[int],
    horizon: int | None,
    seed: int,
    *others: Any,
) -> list[Experiment]:
    """One for each budget, the smallest first; `others` are those of `experiment_of`."""
    return [
        experiment_of(problem, policies, budget, horizon, key(seed), *others)
        for budget in _budgets(budgets)
    ]


def _policies(given: Policy | str | Iterable[Policy | str]) -> dict[str, Policy | str]:
    """By label; "auto" is made a policy when the budget is known."""
    several = [given] if isinstance(given, Policy | str) else list(given)
    policies = [policy if is_auto(policy) else make_policy(policy) for policy in several]
    labels = [policy if isinstance(policy, str) else label_of(policy) for policy in policies]
    require(len(labels) > 0, "policies", labels, "at least one", "nothing else can be played")
    twice = sorted({label for label in labels if labels.count(label) > 1})
    require(not twice, "policies", labels, "all different", f"{', '.join(twice)} stands twice")
    return dict(zip(labels, policies, strict=True))


def _budgets(given: int | Sequence[int]) -> Iterator[int]:
    several = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    budgets = [need_whole("budgets", budget) for budget in several]
    require(len(budgets) > 0, "budgets", budgets, "at least one", "a run spends a budget")
    return iter(sorted(set(budgets)))


def check_run(
    runs: int, first: int, seed: int, target: str, method: str, threads: Any, chunk: Any
) -> None:
    """Raise a `SettingError` unless these are numbers and names that runs can be played with."""
    for name, value in (("runs", runs), ("chunk", chunk or 1), ("threads", threads or 1)):
        require(need_whole(name, value) >= 1, name, value, "at least 1", "it counts something")
    require(0 <= need_whole("first_run", first) <= RUNS - runs, "first_run", first,
            f"from 0 to {RUNS - runs}", "runs are numbered below 2^48")  # fmt: skip
    key(seed)
    for name, value, known in (("target", target, TARGETS), ("method", method, METHODS)):
        require(value in known, name, value, f"one of {', '.join(known)}", "no other is known")


def check_engine(engine: str, address: str | None) -> None:
    """Raise a `SettingError` unless runs can be played there."""
    require(
        engine in ENGINES, "engine", engine, f"one of {', '.join(ENGINES)}", "no other is known"
    )
    if address is not None and engine != "ray":
        raise SettingError(
            f"address={address!r} with engine={engine!r}, but an address is that of a Ray "
            "cluster: add engine='ray', or leave it out"
        )
