"""Millions of runs of policies on a problem, and what they found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from latebloomer.core.atomic_files import File
from latebloomer.core.random import RUNS, key
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.policies import Policy, make_policy
from latebloomer.policies.registry import is_auto, label_of
from latebloomer.problems import Problem
from latebloomer.problems import problem as problem_of
from latebloomer.simulation.experiment import CountedRuns, MissingRuns, experiment_of
from latebloomer.simulation.local_runs import count_here
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.results import Results
from latebloomer.simulation.results_file import GrowingResults
from latebloomer.simulation.run_memory import threads_that_fit

TARGETS = ("cpu", "gpu", "python")
METHODS = ("auto", "pulls", "sums")
ENGINES = ("local", "ray")
POLICIES = ("r-ucbe", "r-sr", "sh")  # the paper's two and the one they are usually compared with


def simulate(
    problem: Problem | str,
    policies: Policy | str | Sequence[Policy | str] = POLICIES,
    budgets: int | Sequence[int] | None = None,
    runs: int = 1000,
    seed: int = 0,
    *,
    horizon: int | None = None,
    target: str = "cpu",
    method: str = "auto",
    threads: int | None = None,
    progress: bool = True,
    chunk: int | None = None,
    first_run: int = 0,
    out: File | None = None,
    engine: str = "local",
    address: str | None = None,
) -> Results:
    """Play `runs` runs of every policy at every budget; errors, regrets and pulls with intervals.

    Rewards are pure functions of (seed, run, arm, pull): the results depend neither on threads,
    chunks, the order of policies nor the target, all policies meet the same luck, and results of
    other runs (`first_run`) can be merged.

    `method` "pulls" plays every pull. "sums" draws the window sums that the policies look at
    directly, which has the same distribution and costs the same for any budget; it needs Gaussian
    noise and policies with a fixed plan and window means. "auto" takes it where all allow it.
    Ctrl-C stops after the chunk that is being played; what is done is returned.

    `out` keeps the results in a file while they are made. Where the file exists, what it lacks is
    played and the whole file is returned; it must be of the same problem, seed and settings.

    `engine` "ray" plays run ranges as tasks of one core each, or one GPU, on a Ray cluster, with
    the same results: at `address` ("auto" for one that runs here, "ray://host:10001"), or on this
    machine where none is given. `threads` is then how many tasks may run at a time, and `chunk`
    the runs of a task.

    Parameters
    ----------
    problem : Problem | str
        A problem or its name.
    policies : Policy | str | Sequence[Policy | str]
        Policies or their names.
    budgets : int | Sequence[int] | None
        One or several.
    runs : int
        Of every policy at every budget.
    seed : int
        Of all luck.
    horizon : int | None
        The pull at which arms are compared; each budget itself if None.
    target : str
        "cpu", "gpu" or "python".
    method : str
        "auto", "pulls" or "sums".
    threads : int | None
        At most so many, all cores if None.
    progress : bool
        Whether it is shown.
    chunk : int | None
        Runs played at a time.
    first_run : int
        The number of the first run.
    out : File | None
        A file that is written while it grows.
    engine : str
        "local" or "ray".
    address : str | None
        Of a Ray cluster.

    Returns
    -------
    Results
        Errors, regrets and pulls with intervals; `print` it.

    Raises
    ------
    BudgetError
        A budget is too small for a policy.
    MissingExtra
        Numba is not installed.
    NoDevice
        No GPU can be used.
    ChunkError
        A run does not fit into memory.
    ResultsError
        `out` holds other results.

    Examples
    --------
    >>> results = simulate("paper-a", ["r-sr", "sh"], [400, 800], runs=20, target="python",
    ...                    method="sums", progress=False)
    >>> [(row["policy"], row["budget"], row["error"]) for row in results.rows()]
    [('r-sr', 400, 1.0), ('r-sr', 800, 0.0), ('sh', 400, 1.0), ('sh', 800, 0.55)]
    """
    if budgets is None:
        raise SettingError("budgets=None, but budgets must be a whole number, or a list of them")
    setting = problem if isinstance(problem, Problem) else problem_of(problem)
    players = _policies(policies)
    _check_run(runs, first_run, seed, target, method, threads, chunk)
    _check_engine(engine, address)
    experiments = [
        experiment_of(setting, players, budget, horizon, key(seed), method, target, chunk)
        for budget in _budgets(budgets)
    ]
    if engine == "local":
        for experiment in experiments:  # before anything is looked at or made
            threads_that_fit(experiment, runs)
    growing = GrowingResults(Results.of(setting, seed, [], target), out)
    missing = growing.missing(experiments, first_run, first_run + runs)
    with Progress(sum(some.cost for some in missing), "pulls", shown=progress) as bar:
        try:
            with closing(_counted(missing, threads, engine, address, bar)) as counted:
                growing.gather(counted)
        except KeyboardInterrupt:
            bar.interrupted()
    return growing.results


def _counted(
    missing: list[MissingRuns],
    threads: int | None,
    engine: str,
    address: str | None,
    bar: Progress,
) -> CountedRuns:
    if engine == "local":
        return count_here(missing, threads, bar)
    from latebloomer.simulation.ray_tasks import count_on_ray

    return count_on_ray(missing, threads, address, bar)


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


def _check_run(
    runs: int, first: int, seed: int, target: str, method: str, threads: Any, chunk: Any
) -> None:
    for name, value in (("runs", runs), ("chunk", chunk or 1), ("threads", threads or 1)):
        require(need_whole(name, value) >= 1, name, value, "at least 1", "it counts something")
    require(0 <= need_whole("first_run", first) <= RUNS - runs, "first_run", first,
            f"from 0 to {RUNS - runs}", "runs are numbered below 2^48")  # fmt: skip
    key(seed)
    for name, value, known in (("target", target, TARGETS), ("method", method, METHODS)):
        require(value in known, name, value, f"one of {', '.join(known)}", "no other is known")


def _check_engine(engine: str, address: str | None) -> None:
    require(
        engine in ENGINES, "engine", engine, f"one of {', '.join(ENGINES)}", "no other is known"
    )
    if address is not None and engine != "ray":
        raise SettingError(
            f"address={address!r} with engine={engine!r}, but an address is that of a Ray "
            "cluster: add engine='ray', or leave it out"
        )
