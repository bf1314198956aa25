"""Runs on the machines of a Ray cluster: a task is a range of runs of an experiment, on one core.

A run is a pure function of its number and counts are whole numbers, so it matters neither which
worker plays which runs, nor how often a range is begun before it is finished.
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
from latebloomer.simulation.experiment import CountedRuns, Experiment, MissingRuns
from latebloomer.simulation.local_runs import play_chunk, players_of
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.run_memory import threads_that_fit
from latebloomer.version import __version__

RETRIES = 3  # times that Ray itself begins a task again whose worker or node died
RESENDS = 2  # times that the task is sent anew after that
TASKS_PER_CORE = 2  # under way, so that no worker waits for the next
SECONDS = 3.0  # of work in a task: Ray's few ms do not count, and a retry loses little
SHORTEST = 0.3  # seconds of the last tasks, which end at about the same time
LONGEST = 60.0  # seconds of a task where so many come in that counting them takes long
FIRST = 0.5  # seconds of the first tasks, whose speed is a guess:
GUESS = {"cpu": 2e7, "gpu": 5e9, "python": 1.5e5}  # pulls per second
LOOK_AGAIN = 10.0  # seconds after which the size of the cluster is looked at again


def count_on_ray(
    missing: Sequence[MissingRuns], threads: int | None, address: str | None, bar: Progress
) -> CountedRuns:
    """Play all missing runs on a Ray cluster; counts come in the order in which tasks end."""
    cluster = Cluster(address)
    if not missing:
        return
    with cluster:
        _need_sendable(missing, cluster.ray.cloudpickle.dumps)
        if not cluster.local:
            cluster.need_same_version()
        yield from TaskQueue(cluster, missing, threads, bar).counted()


def play_range(
    experiment: Experiment, first: int, last: int, version: str
) -> tuple[Counts, float]:
    """The task: the counts of runs [first, last), on one core of the worker, and its seconds."""
    if version != __version__:  # of a node that joined later than the check at the start
        raise ClusterError(
            f"a node of the Ray cluster has latebloomer {__version__}, and {version} was sent: "
            "install the same on every node"
        )
    began, mine = perf_counter(), _writable(experiment)
    threads_that_fit(mine, last - first)
    players, tally = players_of(mine, 1), mine.tally()
    for start, count in mine.chunks(first, last):
        tally.add(start, *play_chunk(mine, players, start, count))
    return tally.counts(), perf_counter() - began


def _writable(experiment: Experiment) -> Experiment:
    """With arrays of our own: those from Ray's store are read-only, for numba another type."""
    points = experiment.breakpoints
    return replace(experiment, breakpoints=None if points is None else np.array(points))


@dataclass(frozen=True)
class Task:
    """A range of runs that was sent out."""

    runs: MissingRuns
    sent: Any  # the experiment, in Ray's store
    deaths: int = 0  # how often Ray gave it up


class TaskQueue:
    """Keeps every core of a cluster busy with ranges of runs."""

    def __init__(
        self, cluster: Cluster, missing: Sequence[MissingRuns], threads: int | None, bar: Progress
    ) -> None:
        self._cluster, self._threads, self._bar = cluster, threads, bar
        self._ray = cluster.ray
        gpus = 1.0 if missing[0].experiment.target == "gpu" else 0.0
        self._wanted = {"CPU": 1.0, "GPU": gpus}
        self._play = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(play_range)
        self._unsent = sum(runs.cost for runs in missing)
        self._new = self._tasks(missing)
        self._again: deque[Task] = deque()  # of workers that died
        self._under_way: dict[Any, Task] = {}
        self._pulls_per_second: float | None = None
        self._counting = 0.0  # seconds in which this process counts a task, on average
        self._cores, self._looked = cluster.room(self._wanted), monotonic()

    def counted(self) -> CountedRuns:
        """What the tasks find; on Ctrl-C what has come in until then.

        Tasks that are under way then are left to end, within seconds. `ray.cancel` would stop
        them, but where it meets a task that is just ending, Ray (2.60) aborts this process:
        "Tried to complete task that was not pending".
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
        """Look at what came in after an error: Ray prints each one that nobody looked at."""
        if self._under_way and self._ray.is_initialized():
            refs = list(self._under_way)
            for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                with suppress(Exception):
                    self._ray.get(ref)

    # --- sending ---

    def _send(self) -> bool:
        """Send tasks until enough are under way; False where all is done."""
        while len(self._under_way) < self._most():
            task = self._again.popleft() if self._again else next(self._new, None)
            if task is None:
                break
            runs = task.runs
            ref = self._play.remote(task.sent, runs.first, runs.last, __version__)
            self._under_way[ref] = task
        return bool(self._under_way)

    def _most(self) -> int:
        """How many tasks may be under way; a cluster may grow or shrink meanwhile."""
        if monotonic() - self._looked > LOOK_AGAIN:
            with suppress(ClusterError):  # no such node for the moment: Ray waits for one
                self._cores = self._cluster.room(self._wanted)
            self._looked = monotonic()
        most = TASKS_PER_CORE * self._cores
        return min(most, self._threads or most)

    def _tasks(self, missing: Sequence[MissingRuns]) -> Iterator[Task]:
        """Tasks for all runs, each of a size that is decided when it is sent."""
        for runs in missing:
            sent, first = self._ray.put(runs.experiment), runs.first
            while first < runs.last:
                last = min(runs.last, first + self._size(runs.experiment))
                task = Task(replace(runs, first=first, last=last), sent)
                self._unsent -= task.runs.cost
                first = last
                yield task

    def _size(self, experiment: Experiment) -> int:
        """How many runs the next task has."""
        if experiment.chunk:
            return experiment.chunk
        speed, seconds = self._pulls_per_second or GUESS[experiment.target], FIRST
        if self._pulls_per_second:  # and leave this process three quarters of its time
            seconds = max(SECONDS, min(LONGEST, 4 * self._cores * self._counting))
        fair = self._unsent / speed / (2 * self._cores)  # so that all cores end together
        return max(1, int(speed * max(SHORTEST, min(seconds, fair)) / experiment.cost_per_run))

    # --- receiving ---

    def _receive(self, count: int, timeout: float | None) -> CountedRuns:
        """Wait for `count` tasks, or until the time is up, and take in those that ended."""
        if not self._under_way:
            return
        ready, _ = self._ray.wait(list(self._under_way), num_returns=count, timeout=timeout)
        for ref in ready:
            task = self._under_way.pop(ref)
            answer = self._answer(ref, task)
            if answer is not None:
                counts, seconds = answer
                began = perf_counter()
                self._pulls_per_second = task.runs.cost / max(seconds, 1e-3)
                self._bar.advance(task.runs.cost)
                yield task.runs, counts
                self._counting += (perf_counter() - began - self._counting) / 10

    def _answer(self, ref: Any, task: Task) -> tuple[Counts, float] | None:
        """What a task found and its seconds; None where its worker died and it is sent again."""
        failed = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except failed.RayTaskError as error:
            if isinstance(error.cause, failed.RaySystemError):
                raise ClusterError(
                    f"a worker cannot read what it was sent ({first_line(error.cause)}): install "
                    "the module of the policy on every node, or define the policy in the program "
                    "itself"
                ) from error
            raise error.cause or error from error  # of the policy's code: as it is raised here
        except (failed.RuntimeEnvSetupError, failed.TaskUnschedulableError) as error:
            raise ClusterError(f"Ray cannot run tasks of a simulation: {error}") from error
        except failed.RayError as error:
            self._resend(task, error)
            return None

    def _resend(self, task: Task, error: Exception) -> None:
        if task.deaths == RESENDS:
            times, runs = (1 + RETRIES) * (1 + RESENDS), task.runs
            raise ClusterError(
                f"runs {runs.first} to {runs.last - 1} at budget {runs.experiment.budget}: the "
                f"worker that played them died each time, {times} times in all "
                f"({type(error).__name__}). If memory ran out, give a smaller chunk; a cluster of "
                "your own has logs to look at"
            ) from error
        self._again.append(replace(task, deaths=task.deaths + 1))


def _need_sendable(missing: Sequence[MissingRuns], dumps: Any) -> None:
    """Raise where a policy or the noise cannot travel, before anything is sent."""
    noise = missing[0].experiment.noise
    things = {label: one for runs in missing for label, one in runs.experiment.policies.items()}
    for name, thing in [*things.items(), (f"the noise {noise!r}", noise)]:
        try:
            dumps(thing)
        except Exception as error:  # whatever an object's own code raises
            raise SettingError(
                f"{name} cannot be sent to other processes ({type(error).__name__}: {error}): "
                "with engine='ray' it may hold no open files, locks, threads or connections"
            ) from error
