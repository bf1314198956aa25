"""Runs on the machines of a Ray cluster: a task is a range of runs of one round, on one core.

A run is a pure function of its number and counts are whole numbers, so it matters neither which
worker plays which runs, nor how often a range is begun before it is finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np

from latebloomer.cluster import Cluster, first_line
from latebloomer.errors import ClusterError, SettingError
from latebloomer.simulation.counts import Cell, Pair
from latebloomer.simulation.progress_bar import Progress
from latebloomer.simulation.rounds import How, Leg, Part, Round
from latebloomer.version import __version__

RETRIES = 3  # times that Ray itself begins a task again whose worker or node died
AGAIN = 2  # times that the task is sent anew after that
AHEAD = 2  # tasks under way for each core, so that no worker waits for the next
SECONDS = 3.0  # of work in a task: Ray's few ms do not count, and a retry loses little
SHORTEST = 0.3  # seconds of the last tasks, which end at about the same time
LONGEST = 60.0  # seconds of a task where so many come in that counting them takes long
FIRST = 0.5  # seconds of the first tasks, whose speed is a guess:
GUESS = {"cpu": 2e7, "gpu": 5e9, "python": 1.5e5}  # pulls per second
LOOK = 10.0  # seconds after which the size of the cluster is looked at again


def remote_parts(
    legs: Sequence[Leg], how: How, address: str | None, bar: Progress
) -> Iterator[Part]:
    """Play all legs on a Ray cluster; parts come in the order in which tasks end."""
    cluster = Cluster(address)
    if not legs:
        return
    with cluster:
        _need_sendable(legs, cluster.ray.cloudpickle.dumps)
        if not cluster.local:
            cluster.need_same_version()
        yield from Fleet(cluster, legs, how, bar).parts()


class Answer(NamedTuple):
    """What a task found, and the seconds that it took."""

    cells: list[Cell]
    pairs: list[Pair]
    seconds: float


def play_range(round_: Round, first: int, last: int, how: How, version: str) -> Answer:
    """The task: play runs [first, last) of a round on one core of the worker."""
    if version != __version__:  # of a node that joined later than the check at the start
        raise ClusterError(
            f"a node of the Ray cluster has latebloomer {__version__}, and {version} was sent: "
            "install the same on every node"
        )
    began, mine = perf_counter(), _writable(round_)
    players, tally = mine.players(how.target, 1), mine.tally()
    for start, count in mine.chunks(first, last, how):
        tally.add(start, *mine.play(players, start, count))
    return Answer(tally.cells(), tally.pairs(), perf_counter() - began)


def _writable(round_: Round) -> Round:
    """With arrays of our own: those from Ray's store are read-only, for numba another type."""
    one = round_.tasks[0]
    means = np.array(one.means)
    points = None if one.points is None else np.array(one.points)
    tasks = (replace(task, means=means, points=points) for task in round_.tasks)
    return Round(round_.labels, tuple(tasks))


@dataclass(frozen=True)
class Order:
    """A range of runs that was sent out."""

    leg: Leg
    sent: Any  # the round, in Ray's store
    first: int
    last: int
    deaths: int = 0  # how often Ray gave it up

    @property
    def cost(self) -> int:
        """Pulls, or gains that stand for them."""
        return self.leg.round.cost * (self.last - self.first)


class Fleet:
    """Keeps every core of a cluster busy with ranges of runs."""

    def __init__(self, cluster: Cluster, legs: Sequence[Leg], how: How, bar: Progress) -> None:
        self._cluster, self._how, self._bar = cluster, how, bar
        self._ray = cluster.ray
        self._wanted = {"CPU": 1.0, "GPU": 1.0 if how.target == "gpu" else 0.0}
        self._task = self._ray.remote(
            num_cpus=1, num_gpus=self._wanted["GPU"], max_retries=RETRIES
        )(play_range)
        self._left = sum(leg.cost for leg in legs)  # not sent yet
        self._orders = self._cut(legs)
        self._again: deque[Order] = deque()  # of workers that died
        self._under_way: dict[Any, Order] = {}
        self._pulls_per_second: float | None = None
        self._counting = 0.0  # seconds in which this process counts a task, on average
        self._cores, self._looked = cluster.room(self._wanted), monotonic()

    def parts(self) -> Iterator[Part]:
        """What the tasks find; on Ctrl-C what has come in until then.

        Tasks that are under way then are left to end, within seconds. `ray.cancel` would stop
        them, but where it meets a task that is just ending, Ray (2.60) aborts this process:
        "Tried to complete task that was not pending".
        """
        try:
            while self._send():
                yield from self._ended(1, None)
        except KeyboardInterrupt:
            yield from self._ended(len(self._under_way), 0)
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        """Look at what came in after an error: Ray prints each one that nobody looked at."""
        if self._under_way and self._ray.is_initialized():
            refs = list(self._under_way)
            for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                with suppress(Exception):
                    self._ray.get(ref)

    # --- sending ---

    def _send(self) -> bool:
        """Send ranges until enough are under way; False where all is done."""
        while len(self._under_way) < self._most():
            order = self._again.popleft() if self._again else next(self._orders, None)
            if order is None:
                break
            how = (self._how._replace(threads=1), __version__)
            ref = self._task.remote(order.sent, order.first, order.last, *how)
            self._under_way[ref] = order
        return bool(self._under_way)

    def _most(self) -> int:
        """How many tasks may be under way; a cluster may grow or shrink meanwhile."""
        if monotonic() - self._looked > LOOK:
            with suppress(ClusterError):  # no such node for the moment: Ray waits for one
                self._cores = self._cluster.room(self._wanted)
            self._looked = monotonic()
        return min(AHEAD * self._cores, self._how.threads or AHEAD * self._cores)

    def _cut(self, legs: Sequence[Leg]) -> Iterator[Order]:
        """Orders for all runs, each of a size that is decided when it is sent."""
        for leg in legs:
            sent, first = self._ray.put(leg.round), leg.first
            while first < leg.last:
                last = min(leg.last, first + self._runs(leg))
                order = Order(leg, sent, first, last)
                self._left -= order.cost
                first = last
                yield order

    def _runs(self, leg: Leg) -> int:
        """How many runs the next task has."""
        if self._how.chunk:
            return self._how.chunk
        speed, seconds = self._pulls_per_second or GUESS[self._how.target], FIRST
        if self._pulls_per_second:  # and leave this process three quarters of its time
            seconds = max(SECONDS, min(LONGEST, 4 * self._cores * self._counting))
        fair = self._left / speed / (2 * self._cores)  # so that all cores end together
        return max(1, int(speed * max(SHORTEST, min(seconds, fair)) / leg.round.cost))

    # --- receiving ---

    def _ended(self, count: int, timeout: float | None) -> Iterator[Part]:
        """Wait for `count` tasks, or until the time is up, and take in those that ended."""
        if not self._under_way:
            return
        ready, _ = self._ray.wait(list(self._under_way), num_returns=count, timeout=timeout)
        for ref in ready:
            order = self._under_way.pop(ref)
            answer = self._answer(ref, order)
            if answer is not None:
                began = perf_counter()
                self._pulls_per_second = order.cost / max(answer.seconds, 1e-3)
                self._bar.advance(order.cost)
                yield Part(order.leg, answer.cells, answer.pairs)
                self._counting += (perf_counter() - began - self._counting) / 10

    def _answer(self, ref: Any, order: Order) -> Answer | None:
        """What a task found; None where its worker died and it is sent again."""
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
            self._died(order, error)
            return None

    def _died(self, order: Order, error: Exception) -> None:
        if order.deaths == AGAIN:
            times = (1 + RETRIES) * (1 + AGAIN)
            raise ClusterError(
                f"runs {order.first} to {order.last - 1} at budget {order.leg.round.budget}: the "
                f"worker that played them died each time, {times} times in all "
                f"({type(error).__name__}). Look at the logs of the cluster; if memory ran out, "
                "give a smaller chunk"
            ) from error
        self._again.append(replace(order, deaths=order.deaths + 1))


def _need_sendable(legs: Sequence[Leg], dumps: Any) -> None:
    """Raise where a policy or the noise cannot travel, before anything is sent."""
    one = legs[0].round.tasks[0]
    things = {label: task.policy for leg in legs for label, task in _labelled(leg.round)}
    for name, thing in [*things.items(), (f"the noise {one.noise!r}", one.noise)]:
        try:
            dumps(thing)
        except Exception as error:  # whatever an object's own code raises
            raise SettingError(
                f"{name} cannot be sent to other processes ({type(error).__name__}: {error}): "
                "with engine='ray' it may hold no open files, locks, threads or connections"
            ) from error


def _labelled(round_: Round) -> Any:
    return zip(round_.labels, round_.tasks, strict=True)
