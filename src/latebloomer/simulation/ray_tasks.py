"""Simulation on a Ray cluster: a task is a range of runs of an experiment, on one core.

A run is a pure function of its number, and counts are integers. So the results do not depend on
which worker simulates which runs, or on how often a range is started before it finishes.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import inf
from time import monotonic, perf_counter
from typing import Any

from latebloomer._util.text import reason_of
from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, SettingError
from latebloomer.simulation.experiment import Experiment
from latebloomer.simulation.local_runs import Advance, Experiments, count_chunks
from latebloomer.simulation.results.counts import Counts
from latebloomer.simulation.results.tally import CountedRuns
from latebloomer.version import __version__

RETRIES = 11  # number of times that Ray restarts a task if its worker or node died
TASKS_PER_CORE = 2  # tasks under way per core, so that no worker waits for the next task
SECONDS = 3.0  # duration of a task: long compared with Ray's few ms, and a retry loses little
SHORTEST = 0.3  # seconds of the last tasks, so that all end at about the same time
LONGEST = 60.0  # maximum seconds of a task, if counting the finished tasks takes long
FIRST = 0.5  # seconds of the first tasks, for which the speed is a guess:
GUESS = {"cpu": 2e7, "gpu": 5e9, "python": 1.5e5}  # pulls per second
LOOK_AGAIN = 10.0  # seconds after which the size of the cluster is checked again


def count_on_ray(
    experiments: Experiments, threads: int | None, address: str | None, advance: Advance
) -> CountedRuns:
    """Simulate experiments on a Ray cluster and yield counts in the order in which tasks end."""
    cluster = Cluster(address)
    if not experiments:
        return
    with cluster:
        if not cluster.local:
            cluster.need_same_version()
        yield from TaskQueue(cluster, experiments, threads, advance).counted()


def play_range(
    experiment: Experiment, first: int, last: int, version: str
) -> tuple[Counts, float]:
    """Return the counts of the runs [first, last) and their duration in seconds: one task."""
    if version != __version__:  # this node joined after the check at the start
        raise ClusterError(
            f"A node of the Ray cluster has latebloomer {__version__}, but {version} was sent. "
            "Install the same version on every node."
        )
    began, mine = perf_counter(), replace(experiment, first=first, last=last)
    (counts,) = count_chunks(mine, 1, lambda _: None, inf)
    return counts, perf_counter() - began


class TaskQueue:
    """Keep every core of a cluster busy with ranges of runs."""

    def __init__(
        self, cluster: Cluster, experiments: Experiments, threads: int | None, advance: Advance
    ) -> None:
        self._cluster, self._threads, self._advance = cluster, threads, advance
        self._ray = cluster.ray
        gpus = 1.0 if experiments[0].target == "gpu" else 0.0
        self._wanted = {"CPU": 1.0, "GPU": gpus}
        self._play = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(play_range)
        self._unsent = sum(experiment.cost for experiment in experiments)
        self._new = self._tasks(experiments)
        self._under_way: dict[Any, Experiment] = {}
        self._pulls_per_second: float | None = None
        self._counting = 0.0  # average seconds that this process needs to count a task
        self._cores, self._looked = cluster.room(self._wanted), monotonic()

    def counted(self) -> CountedRuns:
        """Yield the counts of tasks; on Ctrl-C, the counts that have arrived until then.

        Tasks under way at that time are not canceled; they end within seconds. `ray.cancel` would
        stop them, but if a task is just ending, Ray (2.60) aborts this process with "Tried to
        complete task that was not pending".
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
        """Fetch errors that arrived after the first one, because Ray prints errors not fetched."""
        if self._under_way and self._ray.is_initialized():
            refs = list(self._under_way)
            for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                with suppress(Exception):
                    self._ray.get(ref)

    # --- sending tasks ---

    def _send(self) -> bool:
        """Send tasks until enough are under way; return False if all are done."""
        while len(self._under_way) < self._most() and (task := next(self._new, None)):
            sent, part = task
            ref = self._play.remote(sent, part.first, part.last, __version__)
            self._under_way[ref] = part
        return bool(self._under_way)

    def _most(self) -> int:
        """Return how many tasks may be under way; the cluster may have grown or shrunk."""
        if monotonic() - self._looked > LOOK_AGAIN:
            with suppress(ClusterError):  # there is no such node now: Ray waits for one
                self._cores = self._cluster.room(self._wanted)
            self._looked = monotonic()
        most = TASKS_PER_CORE * self._cores
        return min(most, self._threads or most)

    def _tasks(self, experiments: Experiments) -> Iterator[tuple[Any, Experiment]]:
        """Yield tasks: an experiment in Ray's store, and a range of its runs.

        The size of a task is decided when it is sent.
        """
        for experiment in experiments:
            sent, first = self._stored(experiment), experiment.first
            while first < experiment.last:
                last = min(experiment.last, first + self._size(experiment))
                part = replace(experiment, first=first, last=last)
                self._unsent -= part.cost
                first = last
                yield sent, part

    def _stored(self, experiment: Experiment) -> Any:
        try:
            return self._ray.put(experiment)
        except Exception as error:  # an object's own code may raise anything
            raise SettingError(
                f"{', '.join(experiment.policies)} or {experiment.noise} cannot be sent to other "
                f"processes ({reason_of(error)}). Open files, locks and threads cannot be sent."
            ) from error

    def _size(self, experiment: Experiment) -> int:
        """Return the number of runs in the next task."""
        if experiment.chunk:
            return experiment.chunk
        speed, seconds = self._pulls_per_second or GUESS[experiment.target], FIRST
        # And let counting take at most a quarter of this process's time.
        if self._pulls_per_second:
            seconds = max(SECONDS, min(LONGEST, 4 * self._cores * self._counting))
        fair = self._unsent / speed / (2 * self._cores)  # so that all cores end at the same time
        pulls = speed * max(SHORTEST, min(seconds, fair))
        return max(1, int(pulls * experiment.runs / experiment.cost))

    # --- receiving counts ---

    def _receive(self, count: int, timeout: float | None) -> CountedRuns:
        """Wait for `count` tasks, at most `timeout` seconds; yield counts of finished ones."""
        if not self._under_way:
            return
        ready, _ = self._ray.wait(list(self._under_way), num_returns=count, timeout=timeout)
        for ref in ready:
            part = self._under_way.pop(ref)
            counts, seconds = self._answer(ref, part)
            began = perf_counter()
            self._pulls_per_second = part.cost / max(seconds, 1e-3)
            self._advance(part.cost)
            yield part, counts
            self._counting += (perf_counter() - began - self._counting) / 10

    def _answer(self, ref: Any, part: Experiment) -> tuple[Counts, float]:
        """Return the counts of a task and its duration in seconds."""
        failed = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except failed.RayTaskError as error:
            if isinstance(error.cause, failed.RaySystemError):
                raise ClusterError(
                    f"A worker cannot read what it was sent ({reason_of(error.cause)}). Install "
                    "the policy's module on every node, or define the policy in the program."
                ) from error
            # An error in the policy's code, raised as in a local run.
            raise error.cause or error from error
        except (failed.RuntimeEnvSetupError, failed.TaskUnschedulableError) as error:
            raise ClusterError(f"Ray cannot run tasks of a simulation: {error}") from error
        except failed.RayError as error:
            raise ClusterError(
                f"A worker for runs {part.first} to {part.last - 1} at budget {part.budget} died "
                f"{1 + RETRIES} times ({type(error).__name__}). Give a smaller chunk, or see logs."
            ) from error
