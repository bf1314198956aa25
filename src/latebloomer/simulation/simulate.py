"""The function `simulate`: many runs of policies on a problem, and their results."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from latebloomer._util.atomic_files import File
from latebloomer.core.ledger import RUNS
from latebloomer.core.policy_moves import key
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import is_auto, label_of, make_policy
from latebloomer.problems import Problem
from latebloomer.problems import problem as problem_of
from latebloomer.simulation.experiment import experiment_of
from latebloomer.simulation.growing_results import GrowingResults
from latebloomer.simulation.local_runs import count_here, progress_bar
from latebloomer.simulation.players import threads_that_fit
from latebloomer.simulation.ray_tasks import count_on_ray
from latebloomer.simulation.results.results import Results

POLICIES = ("r-ucbe", "r-sr", "sh")  # the paper's two policies and the usual one to compare with


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
    """Simulate every policy at every budget; return errors, regrets and pulls with intervals.

    Rewards are pure functions of (seed, run, arm, pull). So the results do not depend on threads,
    chunks, the order of policies or the target; all policies get the same random rewards; and
    results of other runs (`first_run`) can be merged. Ctrl-C stops the simulation after the
    current chunk: the complete runs are in the file `out` and in the attribute `results` of the
    exception.

    Parameters
    ----------
    problem : Problem | str
        Problem or its name.
    policies : Policy | str | Sequence[Policy | str]
        Policies or their names.
    budgets : int | Sequence[int] | None
        Total number of pulls of a run: one budget or several. Required.
    runs : int
        Number of runs of every policy at every budget.
    seed : int
        Seed for rewards and random policies.
    horizon : int | None
        Number of pulls per arm at which arms are compared. Default: each budget.
    target : str
        Target of the simulation: "cpu" (compiled code), "gpu" or "python" (slow).
    method : str
        "pulls" draws every reward. "sums" draws the window sums that policies use; results have
        the same distribution, and the cost does not depend on the budget. It needs Gaussian noise
        and policies with a fixed plan and window means. "auto" uses sums if all policies allow it.
    threads : int | None
        Maximum number of threads, or of Ray tasks at a time. Default: all cores.
    progress : bool
        Whether to show a progress bar.
    chunk : int | None
        Number of runs that are simulated and counted together, or that a Ray task has. Default:
        chosen by cost.
    first_run : int
        Number of the first run.
    out : File | None
        Results file, which is written from time to time. If it exists, only missing runs are
        simulated, and all results in it are returned; its problem, seed and settings must be the
        same. Default: no file.
    engine : str
        "local" (this process), or "ray" (tasks with one core or one GPU each on a Ray cluster).
    address : str | None
        Address of a Ray cluster: "auto" for one on this machine, or "ray://host:10001". Default:
        start Ray on this machine.

    Returns
    -------
    Results
        Errors, regrets and pulls with 95 % intervals; `print` it.

    Raises
    ------
    BudgetError
        A budget is too small for a policy.
    ContractError
        A policy's kernel uses what compiled code cannot contain.
    MissingExtra
        Numba is not installed.
    NoDevice
        There is no GPU that can be used.
    ChunkError
        A run does not fit into memory.
    ResultsError
        The results file `out` holds other results.
    Interrupted
        Ctrl-C was pressed; the attribute `results` has the complete runs.

    Examples
    --------
    >>> results = simulate("paper-a", ["r-sr", "sh"], [400, 800], runs=20, target="python",
    ...                    method="sums", progress=False)
    >>> [(row["policy"], row["budget"], row["error"]) for row in results.rows()]
    [('r-sr', 400, 1.0), ('r-sr', 800, 0.0), ('sh', 400, 1.0), ('sh', 800, 0.55)]
    """
    for name, value, known in (
        ("target", target, ("cpu", "gpu", "python")),
        ("method", method, ("auto", "pulls", "sums")),
        ("engine", engine, ("local", "ray")),
    ):
        require(value in known, name, value, f"one of {', '.join(known)}", "no other is known")
    for name, count in (("runs", runs), ("chunk", chunk or 1), ("threads", threads or 1)):
        need_whole(name, count, 1, "it counts something")
    require(0 <= need_whole("first_run", first_run) <= RUNS - runs, "first_run", first_run,
            f"from 0 to {RUNS - runs}", "runs are numbered below 2^48")  # fmt: skip
    if address is not None and engine != "ray":
        raise SettingError(f"address={address!r} is for Ray. Add engine='ray', or omit address.")
    setting, by_label = problem_of(problem), _by_label(policies)
    where = {"chunk": chunk, "first": first_run, "last": first_run + runs}
    experiments = [
        experiment_of(setting, by_label, budget, horizon, key(seed), method, target, **where)
        for budget in _budgets(budgets)
    ]
    if engine == "local":
        for experiment in experiments:  # checked before any table of means is computed
            threads_that_fit(experiment)
    blank = replace(Results.empty(setting, seed, target), asked=tuple(by_label))
    growing = GrowingResults(blank, out)
    missing = growing.missing(experiments)
    with progress_bar(sum(part.cost for part in missing), "pulls", progress) as advance:
        if engine == "local":
            counted = count_here(missing, threads, advance)
        else:
            counted = count_on_ray(missing, threads, address, advance)
        try:
            with closing(counted):
                for part, counts in counted:
                    growing.add(part, counts)
        except KeyboardInterrupt:
            raise growing.interrupted(sum(experiment.runs for experiment in experiments)) from None
        finally:
            growing.save()  # whatever ends the simulation, the file gets all counts so far
    return growing.results


def _by_label(policies: Policy | str | Iterable[Policy | str]) -> dict[str, Policy | str]:
    """Return policies by label; "auto" is replaced by a policy when the budget is known."""
    several = [policies] if isinstance(policies, Policy | str) else list(policies)
    ready = [policy if is_auto(policy) else make_policy(policy) for policy in several]
    labels = [policy if isinstance(policy, str) else label_of(policy) for policy in ready]
    require(len(labels) > 0, "policies", labels, "at least one", "nothing else can be simulated")
    twice = sorted({label for label in labels if labels.count(label) > 1})
    require(not twice, "policies", labels, "all different", f"{', '.join(twice)} appears twice")
    return dict(zip(labels, ready, strict=True))


def _budgets(budgets: int | Sequence[int] | None) -> list[int]:
    if budgets is None:
        raise SettingError(
            "budgets is missing. Give the total number of pulls of a run, for example 800, or "
            "several: [200, 800]."
        )
    if isinstance(budgets, str) or not isinstance(budgets, Sequence | np.ndarray):
        budgets = [budgets]
    checked = [need_whole("budgets", budget) for budget in budgets]
    require(len(checked) > 0, "budgets", checked, "at least one", "a run spends a budget")
    return sorted(set(checked))
