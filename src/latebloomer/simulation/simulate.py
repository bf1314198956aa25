"""Millions of runs of policies on a problem, and what they found."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from latebloomer._util.atomic_files import File, need_writable
from latebloomer.core.moves import key
from latebloomer.core.random import RUNS
from latebloomer.errors import ResultsError, SettingError, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import is_auto, label_of, make_policy, rank
from latebloomer.problems import Problem
from latebloomer.problems import problem as problem_of
from latebloomer.simulation import tally
from latebloomer.simulation.experiment import Experiment, experiment_of
from latebloomer.simulation.local_runs import count_here, progress_bar, threads_that_fit
from latebloomer.simulation.ray_tasks import count_on_ray
from latebloomer.simulation.results import Results

POLICIES = ("r-ucbe", "r-sr", "sh")  # the paper's two and the one they are usually compared with
EVERY = 15.0  # seconds of work that a kill may cost
SHARE = 20  # work this many times as long as the last save took: at most 5 % for large results


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

    Rewards are pure functions of (seed, run, arm, pull): the results depend neither on threads,
    chunks, the order of policies nor the target, all policies see the same random rewards, and
    results of other runs (`first_run`) can be merged. Ctrl-C stops after the current chunk and
    returns the runs that are complete.

    Parameters
    ----------
    problem : Problem | str
        Problem or its name.
    policies : Policy | str | Sequence[Policy | str]
        Policies or their names.
    budgets : int | Sequence[int] | None
        Total pulls of a run: one budget or several. Required.
    runs : int
        Number of runs of every policy at every budget.
    seed : int
        Seed for rewards and random policies.
    horizon : int | None
        Number of pulls per arm at which arms are compared. Default: each budget.
    target : str
        Where code runs: "cpu" (compiled), "gpu" or "python".
    method : str
        "pulls" draws every reward. "sums" draws the window sums that policies look at, which has
        the same distribution and costs the same for any budget; it needs Gaussian noise and
        policies with a fixed plan and window means. "auto" uses sums if all policies allow it.
    threads : int | None
        Maximum number of threads, or of Ray tasks at a time. Default: all cores.
    progress : bool
        Whether to show a progress bar.
    chunk : int | None
        Runs that are simulated and counted at a time, or runs of a Ray task. Default: chosen by
        cost.
    first_run : int
        Number of the first run.
    out : File | None
        Results file, written while results grow. If it exists, only missing runs are simulated
        and all results in it are returned; problem, seed and settings must agree.
    engine : str
        "local", or "ray": tasks of one core each, or one GPU, on a Ray cluster.
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
        No GPU can be used.
    ChunkError
        A run does not fit into memory.
    ResultsError
        The results file `out` holds other results.

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
    setting, given = problem_of(problem), _by_label(policies)
    where = {"chunk": chunk, "first": first_run, "last": first_run + runs}
    experiments = [
        experiment_of(setting, given, budget, horizon, key(seed), method, target, **where)
        for budget in _budgets(budgets)
    ]
    if engine == "local":
        for experiment in experiments:  # before any table of means is made
            threads_that_fit(experiment)
    growing = GrowingResults(Results.empty(setting, seed, target), out)
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
            if progress:
                print("Stopped. The complete runs are kept.", file=sys.stderr)
        finally:
            growing.save()  # whatever ends it early, the file has all that came
    return growing.results


def _by_label(given: Policy | str | Iterable[Policy | str]) -> dict[str, Policy | str]:
    """Return policies by label; "auto" becomes a policy when the budget is known."""
    several = [given] if isinstance(given, Policy | str) else list(given)
    policies = [policy if is_auto(policy) else make_policy(policy) for policy in several]
    labels = [policy if isinstance(policy, str) else label_of(policy) for policy in policies]
    require(len(labels) > 0, "policies", labels, "at least one", "nothing else can be simulated")
    twice = sorted({label for label in labels if labels.count(label) > 1})
    require(not twice, "policies", labels, "all different", f"{', '.join(twice)} is there twice")
    return dict(zip(labels, policies, strict=True))


def _budgets(given: int | Sequence[int] | None) -> list[int]:
    several = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    budgets = [need_whole("budgets", budget) for budget in several]
    require(len(budgets) > 0, "budgets", budgets, "at least one", "a run spends a budget")
    return sorted(set(budgets))


# --- results that grow ---


class GrowingResults:
    """Hold what a simulation has found so far, in memory and, if `out` is given, in a file.

    If the file exists, only the runs that it lacks are simulated.
    """

    def __init__(self, blank: Results, out: File | None) -> None:
        self.results = self._blank = blank
        self._path = None if out is None else Path(out)
        if self._path is not None and self._path.is_file():
            self.results = Results.load(self._path)
            what = f"this simulation with {self._path}"
            tally.need_same(what, vars(blank.origin), vars(self.results.origin))
        self._saved = self.results
        self._next_save = monotonic() + EVERY

    def missing(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Return the experiments that are left; raise an error if the file has other settings."""
        for experiment in experiments if self.results.cells else ():
            self._check(experiment)
        missing = [part for one in experiments for part in self._missing(one)]
        if missing and self._path is not None:
            need_writable(self._path)  # rather than after hours of work
        return missing

    def add(self, experiment: Experiment, counts: tally.Counts) -> None:
        """Add the counts of runs that are not known yet; write them when it is time."""
        if counts.cells:
            known, ((run, _), *_) = self._known(experiment.budget), counts.cells[0].ranges
            new: Any = {
                name: tuple(one for one in some if not _covers(known.get(one.labels, ()), run))
                for name, some in counts._asdict().items()
            }
            made = replace(self._blank, changes=experiment.means.changes, **new)
            self.results = self.results.merge(made)
        if monotonic() > self._next_save:
            self.save()

    def save(self) -> None:
        """Write the file, unless it has all that is known."""
        if self._path is not None and self.results is not self._saved:
            began, new = monotonic(), self.results
            new.save(self._path)
            self._saved = new
            self._next_save = monotonic() + max(EVERY, SHARE * (monotonic() - began))

    def _known(self, budget: int) -> dict[tuple[str, ...], tally.Ranges]:
        """Return the ranges of runs of each policy and each pair, by labels."""
        found = (*self.results.cells, *self.results.pairs)
        return {one.labels: one.ranges for one in found if one.budget == budget}

    def _missing(self, experiment: Experiment) -> Iterator[Experiment]:
        """Yield ranges of runs that some policy lacks, alone or in a pair."""
        labels, known = sorted(experiment.policies, key=rank), self._known(experiment.budget)
        holes = [
            tally.missing_ranges(known.get(some, ()), experiment.first, experiment.last)
            for some in [*((label,) for label in labels), *combinations(labels, 2)]
        ]
        ends = {end for ranges in holes for ends in ranges for end in ends}
        for first, last in pairwise(sorted(ends)):
            if any(_covers(ranges, first) for ranges in holes):
                yield replace(experiment, first=first, last=last)

    def _check(self, experiment: Experiment) -> None:
        """Raise a `ResultsError` unless the file has the same settings for these policies."""
        for new in tally.Tally(experiment).cells():
            old = self.results.find_cell(new.policy, new.budget)
            if old is not None:
                what = f"{new.policy} at budget {new.budget} with {self._path}"
                new.need_same_settings(old, what)
                self._need_company(old, experiment)

    def _need_company(self, old: tally.Cell, experiment: Experiment) -> None:
        """Raise unless the policies are the same: by sums the draws depend on all of them."""
        pairs = (pair.labels for pair in self.results.pairs if pair.budget == old.budget)
        met = {old.policy}.union(*(labels for labels in pairs if old.policy in labels))
        if old.method == "sums" and met != set(experiment.policies):
            raise ResultsError(
                f"{self._path} has {', '.join(sorted(met, key=rank))} at budget {old.budget} by "
                f"sums, but this call has {', '.join(sorted(experiment.policies, key=rank))}. By "
                "sums, draws depend on all policies: give the same ones, or another file."
            )


def _covers(ranges: tally.Ranges, run: int) -> bool:
    return any(first <= run < last for first, last in ranges)
