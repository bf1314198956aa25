"""The runner that trains on Ray: it sends pulls to actors and reports their results."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass
from time import monotonic
from typing import Any, ClassVar

from latebloomer._util.text import reason_of
from latebloomer.cluster import Cluster
from latebloomer.cluster.connection import explained
from latebloomer.errors import ClusterError, LearnerError, SettingError, need_whole, require
from latebloomer.racing.checkpoints.storage import storage_at, without_password
from latebloomer.racing.runners import ray_actors, ray_node_checks, ray_slots
from latebloomer.racing.runners.learner_host import BARE, Batch, Call
from latebloomer.racing.runners.packing import hand_over, pack, unpack
from latebloomer.racing.runners.ray_actors import ActorPool, Worker
from latebloomer.racing.runners.ray_slots import Slots, needed
from latebloomer.racing.runners.runner import (
    HandedOver,
    Orders,
    Report,
    Runner,
    RunnerContext,
    cannot_let_go,
)
from latebloomer.racing.runners.time_limits import took_longer
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

TICK = 1.0  # seconds between two checks of calls without an answer
EVERY = 30.0  # seconds between two lines about learners that the race waits for
# Processes that may start at the same time, per pull that can be made in parallel: each needs a
# second of a core.
AHEAD = 2
RESUME = "the journal is complete; resume(...) when it runs again, or with another runner="
TRIES = 5  # attempts to fetch the winner if its process is lost repeatedly
ONE_CORE: Mapping[str, float] = {"num_cpus": 1, "num_gpus": 0}


@dataclass(eq=False, repr=False)
class RayRunner(Runner):
    """Train every learner in its own Ray actor, on this machine or on a cluster.

    With a policy with phases, all remaining learners are trained at the same time. With a policy
    that decides after every pull, `batch` learners are trained at the same time.

    Parameters
    ----------
    address : str | None
        Running Ray cluster: "auto", "ray://host:10001" or "host:6379"; it continues to run after
        the race. Default: the environment variable `RAY_ADDRESS`; without it, Ray is started on
        this machine and ended with the race.
    resources : Mapping[str, float] | None
        Resources of one pull: `num_cpus`, `num_gpus`, `memory`, or names of the cluster's own
        resources. Default: one CPU.
    storage : str | os.PathLike[str] | None
        Checkpoint folder that all machines share, or a URL for pyarrow or fsspec. Default: next to
        the journal.
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take. After that, its
        process is ended, and the call counts as failed. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed, at least 0.
        Default: 1.
    checkpoint_every : int | None
        Number of pulls between two checkpoints of a learner. Default: a learner is saved when the
        training not saved yet took at least 20 s and at least 20 times as long as its last save.
    max_in_memory : int | None
        Maximum number of actors; the other learners wait in checkpoints. Requires a policy with
        phases. Default: no limit.
    learner_resources : Mapping[str, Mapping[str, float]] | None
        Resources of a pull of single learners, by name, such as `{"big": {"num_gpus": 1}}`.
        Default: `resources` for all learners.
    batch : int | None
        Number of learners that a policy without phases trains at the same time. Default: as many
        as fit.
    cores : int | None
        Number of CPUs for Ray if it is started on this machine. Default: all.

    Raises
    ------
    MissingExtra
        Ray is not installed.
    ClusterError
        The cluster does not exist, or it lacks the requested resources.
    """

    address: str | None = None
    resources: Mapping[str, float] | None = None
    storage: str | os.PathLike[str] | None = None
    _: KW_ONLY
    learner_resources: Mapping[str, Mapping[str, float]] | None = None
    batch: int | None = None
    cores: int | None = None

    name: ClassVar[str] = "ray"
    can_lose_learners: ClassVar[bool] = True
    in_phases = interrupts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._cluster = Cluster(self.address, self.cores)
        self._resources = ONE_CORE if self.resources is None else self.resources
        needed(self._resources)
        self._single = self.learner_resources or {}
        require(
            isinstance(self._single, Mapping),
            "learner_resources",
            self._single,
            "a dict of names and resources",
            'such as {"big": {"num_gpus": 1}}',
        )
        for name, wanted in self._single.items():
            needed(wanted, f"learner_resources[{name!r}]")
        self._storage = None if self.storage is None else storage_at(self.storage)
        if self.batch is not None:
            need_whole("batch", self.batch, 1, "that many learners are pulled at the same time")
        self._closing = ExitStack()
        self._bare: set[int] = set()  # learners with a warning already

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        storage = None if self.storage is None else without_password(str(self._storage))
        return super().as_dict() | {"storage": storage}

    @property
    def batch_size(self) -> int:
        return self.batch or self.parallel_pulls

    @property
    def busy(self) -> bool:
        return bool(self._pool.calling)

    # --- the start ---

    def start(self, context: RunnerContext) -> None:
        """Connect to the cluster and reserve what the race needs."""
        most, count = self.max_in_memory, len(context.entries)
        # Maximum number of actors.
        self._most = most if most is not None and most < count else None
        self.held, self._context = False, context
        self._pace = [0.0] * count  # seconds of the latest pull, by arm
        self._heard = self._said = self._looked = monotonic()
        wanted = self._wanted([entry.name for entry in context.entries])
        self._closing.callback(self._cluster.close)
        with explained("nothing was trained; try again"):
            self._connect(context, wanted)

    def _connect(self, context: RunnerContext, wanted: list[dict[str, float]]) -> None:
        self._ray = self._cluster.open().ray
        self._packed = pack(context.entries)
        self._cluster.need_same_version()
        sent = self._ray.put(self._packed)  # sent once to each machine
        if self._storage is not None:
            context.states.move_to(self._storage)
        ray_node_checks.check_nodes(self._cluster, sent, context.states.storage)
        self._slots = Slots(self._cluster, wanted)
        self._closing.callback(self._slots.close)
        self._pool = ActorPool(self._ray, self._slots, context, sent, self)
        self._closing.callback(self._pool.end_all)
        self._slots.open()
        self.parallel_pulls = self._slots.parallel_pulls

    def _wanted(self, names: list[str]) -> list[dict[str, float]]:
        """Return the resources of a pull of each learner."""
        unknown, known = ", ".join({*self._single} - {*names}), ", ".join(names)
        if unknown:
            raise SettingError(f"learner_resources names {unknown}, but the learners are {known}")
        return [needed({**self._resources, **self._single.get(name, {})}) for name in names]

    # --- the race ---

    def work(self, orders: Orders) -> Iterator[Report]:
        with explained(RESUME):
            if not self.held:
                self._send(orders)
            yield from self._hear(orders)

    def hold(self) -> None:
        super().hold()
        for worker in self._pool.calling:
            if worker.call in (Call.START, Call.RESTORE):  # ending these calls loses nothing
                self._pool.end(worker.arm)

    def _send(self, orders: Orders) -> None:
        """Send pulls to idle learners, the longest pulls first."""
        pool, slots = self._pool, self._slots
        slots.look(now=False)
        pool.leave_lost_machines()
        self.parallel_pulls = max(1, slots.parallel_pulls)
        self._start_processes(orders)
        idle = [pool.workers[arm] for arm in orders if pool.idle(arm)]
        idle.sort(
            key=lambda worker: (-orders[worker.arm].pulls * self._expected(worker.arm), worker.arm)
        )
        free = slots.free(worker.slot for worker in pool.calling if worker.call is not Call.START)
        for worker in idle:
            if free[worker.slot.key] > 0:
                free[worker.slot.key] -= 1
                if worker.ready:
                    pool.train(worker, orders[worker.arm])
                else:
                    worker.send(Call.RESTORE, pool.prepare(worker))

    def _start_processes(self, orders: Orders) -> None:
        """Start processes for learners without one; end other processes if there is no room."""
        pool = self._pool
        spare = [
            worker
            for worker in pool.workers.values()
            if worker.arm not in orders and not worker.call
        ]
        new = [arm for arm in orders if arm not in pool.workers]
        if spare and any(self._slots.is_full(arm) for arm in new):
            pool.end(spare.pop().arm)
        room = AHEAD * self.parallel_pulls - sum(
            worker.call is Call.START for worker in pool.calling
        )
        if self._most is not None:
            pool.let_go(spare[: max(0, len(new) + len(pool.workers) - self._most)])
            room = min(room, self._most - len(pool.workers))
        for arm in new[: max(0, room)]:
            pool.start(arm, orders[arm].done)

    def _expected(self, arm: int) -> float:
        """Return the expected seconds of the next pull, from its latest pull or the others'."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    # --- answers ---

    def _hear(self, orders: Orders) -> Iterator[Report]:
        if not self.busy:
            yield self._wait_for_room()
            return
        tick = TICK if self.timeout is None else min(TICK, self.timeout / 4)
        for worker in self._pool.returned(tick):
            self._heard = monotonic()
            yield from self._answered(worker)
        if monotonic() - self._looked > tick:
            self._looked = monotonic()
            yield from self._overdue()
            yield events.Waiting(self._stragglers(len(orders)))

    def _wait_for_room(self) -> events.Waiting:
        """Wait for a machine with room for a learner; raise an error after a time."""
        self._slots.wait(TICK)
        if monotonic() - self._heard > ray_slots.PATIENCE:
            problem = (
                f"the Ray cluster had no machine for any learner for {ray_slots.PATIENCE:g} s"
            )
            raise ClusterError(f"{problem}: resume(...) when it has one; the journal is complete")
        return events.Waiting(())

    def _answered(self, worker: Worker) -> Iterator[Report]:
        arm, call = worker.arm, worker.call
        try:
            answer = self._ray.get(worker.ref)
        # Killed, out of memory, or its machine was lost.
        except self._ray.exceptions.RayError as error:
            self._pool.end_and_retry(worker)
            self._slots.look()
            what = f"its process was lost ({type(error).__name__})"
            took = monotonic() - worker.sent
            yield PullFailed(arm, worker.done + 1, events.LOST, what, str(error), took)
            return
        worker.call = None
        if call is Call.TRAIN:
            yield from self._batch_of(worker, answer)
        elif call is Call.SAVE:
            if self._most is not None and isinstance(answer, SaveFailed):
                raise cannot_let_go(self._context.entries[arm], answer.reason)
            if answer is None:  # it cannot be saved: wait as long as after a save
                self._context.schedule.note_saved(arm, 0.0)
            else:
                yield answer
        elif isinstance(answer, PullFailed):
            yield answer
        elif call is Call.RESTORE:
            worker.ready = True
            yield from (events.WarningNoted(arm, text) for text in answer.notes)
            yield events.Restored(arm, worker.done, monotonic() - worker.since)

    def _batch_of(self, worker: Worker, batch: Batch) -> Iterator[Report]:
        arm, schedule = worker.arm, self._context.schedule
        for report in batch.reports:
            if type(report) is not ScoreReported:
                yield report
                return
            if self.timeout is not None and report.seconds > self.timeout:
                kind, why = took_longer(Call.TRAIN, self.timeout)
                yield PullFailed(arm, worker.done + 1, kind, why, seconds=report.seconds)
                return
            worker.done += 1
            self._pace[arm] = report.seconds
            yield report
            if batch.only_scores and arm not in self._bare:
                self._bare.add(arm)
                yield events.WarningNoted(arm, BARE)
            # It left the race, or its pull is not needed.
            if self._pool.workers.get(arm) is not worker:
                return
        complete = worker.ends_phase and len(batch.reports) == worker.pulls
        if schedule.is_due(arm, worker.done) or (complete and schedule.is_worth_it(arm)):
            worker.send(Call.SAVE, self._pool.save(worker))

    # --- calls without an answer ---

    def _overdue(self) -> Iterator[Report]:
        for worker, kind, why in list(self._pool.overdue()):
            self._pool.end_and_retry(worker)
            # With several pulls, it is not known which one failed.
            if worker.pulls <= 1 or kind == events.INTERRUPTED:
                took = monotonic() - worker.sent
                yield PullFailed(worker.arm, worker.done + 1, kind, why, seconds=took)

    def _stragglers(self, wanted: int) -> tuple[int, ...]:
        """Return the arms that the others have been waiting for, after some time."""
        now, calling = monotonic(), self._pool.calling
        idle = len(calling) < min(self.parallel_pulls, max(wanted, 2))
        late = all(now - worker.sent > ray_actors.LATE for worker in calling)
        if not (calling and idle and late) or now - self._said < EVERY:
            return ()
        self._said = now
        return tuple(sorted(worker.arm for worker in calling))

    # --- requests of the driver ---

    def discard(self, arm: int) -> None:
        self._pool.end(arm)

    release = discard

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
        workers = [self._pool.workers[arm] for arm in pulls if self._pool.idle(arm)]
        live = [worker for worker in workers if worker.ready and worker.done == pulls[worker.arm]]
        with explained(RESUME):
            for worker, ref in [(worker, self._pool.save(worker)) for worker in live]:
                # Its process is lost: there is nothing to save.
                with suppress(self._ray.exceptions.RayError):
                    saved = self._get(ref, worker)
                    if saved is not None:
                        yield saved

    def score_rows(self, arms: Iterable[int]) -> Iterator[Report]:
        for worker in [self._pool.workers[arm] for arm in arms if arm in self._pool.workers]:
            # Its process is lost: there are no row scores.
            with suppress(self._ray.exceptions.RayError):
                if worker.call is Call.SAVE:
                    self._get(worker.ref, worker)
                    yield from self._answered(worker)
                if worker.ready and not worker.call:
                    scored = self._get(worker.actor.score_rows.remote(), worker)
                    if scored is not None:
                        yield scored

    def learner(self, arm: int, pulls: int) -> HandedOver:
        """Return the trained learner, restored if it is not live."""
        for tries_left in reversed(range(TRIES)):
            with explained(RESUME):
                try:
                    return self._fetched(arm, pulls)
                except self._ray.exceptions.RayError as error:
                    self.discard(arm)
                    self._slots.look()
                    if not tries_left:
                        raise LearnerError(reason_of(error)) from error
        raise AssertionError

    def _fetched(self, arm: int, pulls: int) -> HandedOver:
        reports: list[Report] = []
        worker = self._pool.workers.get(arm)
        if worker is not None and worker.call:  # a save after the last pull, for example
            self._get(worker.ref, worker)
            reports += self._answered(worker)
        if not (self._pool.idle(arm) and worker and worker.ready and worker.done == pulls):
            worker, notes = self._restored(arm, pulls)
            reports += [events.WarningNoted(arm, text) for text in notes]
        fetched = self._get(worker.actor.fetch.remote(), worker)
        entry = unpack(self._packed)[arm]  # a copy, so that the user's object is unchanged
        saving = lambda: self._get(self._pool.save(worker), worker)  # noqa: E731
        return hand_over(self._context.states, entry, arm, pulls, fetched, saving, reports)

    def _restored(self, arm: int, pulls: int) -> tuple[Worker, list[str]]:
        """Return the learner in a new process after `pulls` pulls, and warnings."""
        self._pool.end_all()  # no other process is needed any more
        self._slots.need_one(self._slots.kinds[arm])
        self._pool.start(arm, pulls)
        worker = self._pool.workers[arm]
        answer = self._get(self._pool.prepare(worker), worker)
        if isinstance(answer, PullFailed):
            raise LearnerError(answer.reason)
        worker.ready, worker.call = True, None
        return worker, answer.notes

    def _get(self, ref: Any, worker: Worker) -> Any:
        """Wait for an answer, as long as its machine is in the cluster."""
        while not self._ray.wait([ref], timeout=TICK)[0]:
            self._slots.look()
            if worker.slot.node is None:
                raise self._ray.exceptions.RayActorError
        return self._ray.get(ref)

    def stop(self) -> None:
        """End all processes and release the reservations, if the cluster still exists."""
        with suppress(Exception):
            self._closing.close()
