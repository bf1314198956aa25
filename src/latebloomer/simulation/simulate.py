"""Millions of runs of policies on a problem, and what they found: the call.

What it does is in `run_simulation.py`, which the first call loads, with all of the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from latebloomer.errors import SettingError

if TYPE_CHECKING:
    from latebloomer._util.atomic_files import File
    from latebloomer.policies.base import Policy
    from latebloomer.problems import Problem
    from latebloomer.simulation.results import Results

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
    from latebloomer.simulation import run_simulation as simulator

    if budgets is None:
        raise SettingError("budgets=None, but budgets must be a whole number, or a list of them")
    setting, players = simulator.problem_and_policies(problem, policies)
    simulator.check_run(runs, first_run, seed, target, method, threads, chunk)
    simulator.check_engine(engine, address)
    experiments = simulator.experiments_of(
        setting, players, budgets, horizon, seed, method, target, chunk
    )
    wanted = simulator.Wanted(setting, experiments, seed, target, first_run, first_run + runs)
    where = simulator.Where(threads, engine, address)
    return simulator.results_of(wanted, where, out, progress)
