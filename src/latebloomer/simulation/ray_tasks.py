"""Runs on the machines of a Ray cluster: a task is a range of runs of an experiment, on one core.

A run is a pure function of its number and counts are integers, so it matters neither which worker
simulates which runs, nor how often a range is started before it is finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from latebloomer.cluster import Cluster, first_line
from latebloomer.errors import ClusterError, SettingError
from latebloomer.simulation.counts import Counts
from latebloomer.simulation.experiment import CountedRuns, Experiment
from latebloomer.simulation.local_runs import play_chunk, players_of, threads_that_fit
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.tally import Tally
from latebloomer.version import __version__

RETRIES = 3  # times that Ray itself restarts a task whose worker or node died
RESENDS = 2  # times that the task is sent again after that
TASKS_PER_CORE = 2  # under way, so that no worker waits for the next
SECONDS = 3.0  # of work in a task: Ray's few ms do not count, and a retry loses little
SHORTEST = 0.3  # seconds of the last tasks, which end at about the same time
LONGEST = 60.0  # seconds of a task if counting the arriving ones takes long
FIRST = 0.5  # seconds of the first tasks, whose speed is a guess:
GUESS = {"cpu": 2e7, "gpu": 5e9, "python": 1.5e5}  # pulls per second
LOOK_AGAIN = 10.0  # seconds after which the size of the cluster is checked again


def count_on_ray(
    experiments: Sequence[Experiment], threads: int | None, address: str | None, bar: Progress
) -> CountedRuns:
    """Simulate experiments on a Ray cluster and yield counts in the order in which tasks end."""
    cluster = Cluster(address)
    if not experiments:
        return
    with cluster:
        _need_sendable(experiments, cluster.ray.cloudpickle.dumps)
        if not cluster.local:
            cluster.need_same_version()
        yield from TaskQueue(cluster, experiments, threads, bar).counted()


def play_range(
    experiment: Experiment, first: int, last: int, version: str
) -> tuple[Counts, float]:
    """Return the counts of the runs [first, last) and the seconds they took: a task."""
    if version != __version__:  # of a node that joined after the check at the start
        raise ClusterError(
            f"A node of the Ray cluster has latebloomer {__version__}, but {version} was sent. "
            "Install the same version on every node."
        )
    began, points = perf_counter(), experiment.breakpoints
    # An array of our own: those from Ray's store are read-only, for numba another type.
    points = None if points is None else np.array(points)
    mine = replace(experiment, breakpoints=points, first=first, last=last)
    threads_that_fit(mine)
    players, tally = players_of(mine, 1), Tally.of(mine)
    for start, count in mine.chunks():
        tally.add(start, *play_chunk(mine, players, start, count))
    return tally.counts(), perf_counter() - began


@dataclass(frozen=True)
class Task:
    """A range of runs that was sent."""

    experiment: Experiment
    sent: Any  # the whole experiment, in Ray's store
    deaths: int = 0  # how often Ray gave it up


class TaskQueue:
    """Keep every core of a cluster busy with ranges of runs."""

    def __init__(
        self,
        cluster: Cluster,
        experiments: Sequence[Experiment],
        threads: int | None,
        bar: Progress,
    ) -> None:
        self._cluster, self._threads, self._bar = cluster, threads, bar
        self._ray = cluster.ray
        gpus = 1.0 if experiments[0].target == "gpu" else 0.0
        self._wanted = {"CPU": 1.0, "GPU": gpus}
        self._play = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(play_range)
        self._unsent = sum(experiment.cost for experiment in experiments)
        self._new = self._tasks(experiments)
        self._again: deque[Task] = deque()  # of workers that died
        self._under_way: dict[Any, Task] = {}
        self._pulls_per_second: float | None = None
        self._counting = 0.0  # seconds that this process takes to count a task, on average
        self._cores, self._looked = cluster.room(self._wanted), monotonic()

    def counted(self) -> CountedRuns:
        """Yield what tasks find; on Ctrl-C, what has come in until then.

        Tasks that are under way then are left to end, within seconds. `ray.cancel` would stop
        them, but if it meets a task that is just ending, Ray (2.60) aborts this process: "Tried
        to complete task that was not pending".
        """
        try:
            while self._send():
                yield from self._receive(1, None)
        except KeyboardInterrupt:
            yield from self._receive(len(self._under_way), 0)
            raise
        finally:
            self._look_at_the_rest()

    def _look_at_the_rest(self) -> None:
        """Fetch errors that came in after the first: Ray prints each one that is not fetched."""
        if self._under_way and self._ray.is_initialized():
            refs = list(self._under_way)
            for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                with suppress(Exception):
                    self._ray.get(ref)

    # --- sending ---

    def _send(self) -> bool:
        """Send tasks until enough are under way; return False if all are done."""
        while len(self._under_way) < self._most():
            task = self._again.popleft() if self._again else next(self._new, None)
            if task is None:
                break
            part = task.experiment
            ref = self._play.remote(task.sent, part.first, part.last, __version__)
            self._under_way[ref] = task
        return bool(self._under_way)

    def _most(self) -> int:
        """Return how many tasks may be under way; a cluster may grow or shrink meanwhile."""
        if monotonic() - self._looked > LOOK_AGAIN:
            with suppress(ClusterError):  # no such node for the moment: Ray waits for one
                self._cores = self._cluster.room(self._wanted)
            self._looked = monotonic()
        most = TASKS_PER_CORE * self._cores
        return min(most, self._threads or most)

    def _tasks(self, experiments: Sequence[Experiment]) -> Iterator[Task]:
        """Yield tasks for all runs, each of a size that is decided when it is sent."""
        for experiment in experiments:
            sent, first = self._ray.put(experiment), experiment.first
            while first < experiment.last:
                last = min(experiment.last, first + self._size(experiment))
                task = Task(replace(experiment, first=first, last=last), sent)
                self._unsent -= task.experiment.cost
                first = last
                yield task

    def _size(self, experiment: Experiment) -> int:
        """Return how many runs the next task has."""
        if experiment.chunk:
            return experiment.chunk
        speed, seconds = self._pulls_per_second or GUESS[experiment.target], FIRST
        if self._pulls_per_second:  # and leave this process three quarters of its time
            seconds = max(SECONDS, min(LONGEST, 4 * self._cores * self._counting))
        fair = self._unsent / speed / (2 * self._cores)  # so that all cores end together
        return max(1, int(speed * max(SHORTEST, min(seconds, fair)) / experiment.cost_per_run))

    # --- receiving ---

    def _receive(self, count: int, timeout: float | None) -> CountedRuns:
        """Wait for `count` tasks, or until the time is up, and yield what those found."""
        if not self._under_way:
            return
        ready, _ = self._ray.wait(list(self._under_way), num_returns=count, timeout=timeout)
        for ref in ready:
            task = self._under_way.pop(ref)
            answer = self._answer(ref, task)
            if answer is not None:
                counts, seconds = answer
                began, cost = perf_counter(), task.experiment.cost
                self._pulls_per_second = cost / max(seconds, 1e-3)
                self._bar.advance(cost)
                yield task.experiment, counts
                self._counting += (perf_counter() - began - self._counting) / 10

    def _answer(self, ref: Any, task: Task) -> tuple[Counts, float] | None:
        """Return what a task found and its seconds; None if its worker died and it is resent."""
        failed = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except failed.RayTaskError as error:
            if isinstance(error.cause, failed.RaySystemError):
                raise ClusterError(
                    f"A worker cannot read what it was sent ({first_line(error.cause)}). Install "
                    "the module of the policy on every node, or define the policy in the program "
                    "itself."
                ) from error
            raise error.cause or error from error  # of the policy's code: as it is raised here
        except (failed.RuntimeEnvSetupError, failed.TaskUnschedulableError) as error:
            raise ClusterError(f"Ray cannot run tasks of a simulation: {error}") from error
        except failed.RayError as error:
            self._resend(task, error)
            return None

    def _resend(self, task: Task, error: Exception) -> None:
        if task.deaths == RESENDS:
            times, part = (1 + RETRIES) * (1 + RESENDS), task.experiment
            raise ClusterError(
                f"The worker for runs {part.first} to {part.last - 1} at budget {part.budget} "
                f"died {times} times in a row ({type(error).__name__}). If memory ran out, give a "
                "smaller chunk; otherwise look at the logs of the cluster."
            ) from error
        self._again.append(replace(task, deaths=task.deaths + 1))


def _need_sendable(experiments: Sequence[Experiment], dumps: Any) -> None:
    """Raise a `SettingError` if a policy or the noise cannot be sent, before anything is."""
    noise = experiments[0].noise
    things = {label: one for some in experiments for label, one in some.policies.items()}
    for name, thing in [*things.items(), (f"the noise {noise!r}", noise)]:
        try:
            dumps(thing)
        except Exception as error:  # whatever an object's own code raises
            raise SettingError(
                f"{name} cannot be sent to other processes ({type(error).__name__}: {error}). "
                "With engine='ray' it may hold no open files, locks, threads or connections."
            ) from error
