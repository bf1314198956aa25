"""The runner that trains on Ray: it sends pulls to actors and reports what comes back."""

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

TICK = 1.0  # seconds between two looks at what has not come back
EVERY = 30.0  # seconds between two lines about who is waited for
AHEAD = 2  # processes that may start at a time, per lane: each takes a second of a core
RESUME = "the journal is complete; resume(...) when it runs again, or with another runner="
TRIES = 5  # at fetching the winner, should its process be lost again and again
ONE_CORE: Mapping[str, float] = {"num_cpus": 1, "num_gpus": 0}


@dataclass(eq=False, repr=False)
class RayRunner(Runner):
    """Train every learner in its own Ray actor, on this machine or on a cluster.

    Policies with phases train all remaining learners at the same time; policies that decide after
    every pull keep `batch` learners busy.

    Parameters
    ----------
    address : str | None
        Running Ray cluster: "auto", "ray://host:10001" or "host:6379"; it keeps running after the
        race. Default: `RAY_ADDRESS`, or start Ray here and end it with the race.
    resources : Mapping[str, float] | None
        What one pull takes: `num_cpus`, `num_gpus`, `memory`, or the cluster's own names. Default:
        one CPU.
    storage : str | os.PathLike[str] | None
        Checkpoint folder that all machines share, or a URL for pyarrow or fsspec. Default: next to
        the journal.
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take; then its process
        is ended. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed.
    checkpoint_every : int | None
        Save each learner every this many pulls. Default: once 20 s of its training, and 20 times
        the duration of its last save, are unsaved.
    max_in_memory : int | None
        Maximum number of actors; the other learners wait in checkpoints. Requires a policy with
        phases. Default: no limit.
    learner_resources : Mapping[str, Mapping[str, float]] | None
        What a pull of a single learner takes, by name: `{"big": {"num_gpus": 1}}`. Default:
        `resources`.
    batch : int | None
        Number of learners that a policy without phases keeps busy. Default: as many as fit.
    cores : int | None
        CPUs of a Ray that is started here. Default: all.

    Raises
    ------
    MissingExtra
        Ray is not installed.
    ClusterError
        There is no such cluster, or it lacks what is requested.
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
        self._bare: set[int] = set()  # learners that were warned of

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
        self._most = most if most is not None and most < count else None  # actors at a time
        self.held, self._context = False, context
        self._pace = [0.0] * count  # seconds of the newest pull
        self._heard = self._said = self._looked = monotonic()
        wanted = self._wanted([entry.name for entry in context.entries])
        self._closing.callback(self._cluster.close)
        with explained("nothing was trained; try again"):
            self._connect(context, wanted)

    def _connect(self, context: RunnerContext, wanted: list[dict[str, float]]) -> None:
        self._ray = self._cluster.open().ray
        self._packed = pack(context.entries)
        self._cluster.need_same_version()
        sent = self._ray.put(self._packed)  # once for each machine
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
        """Return what a pull of each learner takes."""
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
            if worker.call in (Call.START, Call.RESTORE):  # nothing that would be lost
                self._pool.end(worker.arm)

    def _send(self, orders: Orders) -> None:
        """Give work to the learners that have none, the longest first."""
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
        """Start processes for learners that have none, and end others where there is no room."""
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
        """Return the expected seconds of the next pull: by its latest, or by the others'."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    # --- what comes back ---

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
        """Wait for a machine that has room for a learner, but not for ever."""
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
        except self._ray.exceptions.RayError as error:  # killed, out of memory, or its machine
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
            if answer is None:  # it cannot be saved: not asked again before it trained as long
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
            if self._pool.workers.get(arm) is not worker:  # it is out, or was not wanted
                return
        complete = worker.ends_phase and len(batch.reports) == worker.pulls
        if schedule.is_due(arm, worker.done) or (complete and schedule.is_worth_it(arm)):
            worker.send(Call.SAVE, self._pool.save(worker))

    # --- what does not come back ---

    def _overdue(self) -> Iterator[Report]:
        for worker, kind, why in list(self._pool.overdue()):
            self._pool.end_and_retry(worker)
            if worker.pulls <= 1 or kind == events.INTERRUPTED:  # else which pull is not known
                took = monotonic() - worker.sent
                yield PullFailed(worker.arm, worker.done + 1, kind, why, seconds=took)

    def _stragglers(self, wanted: int) -> tuple[int, ...]:
        """Return the arms that the others wait for, if that has taken a while."""
        now, calling = monotonic(), self._pool.calling
        idle = len(calling) < min(self.parallel_pulls, max(wanted, 2))
        late = all(now - worker.sent > ray_actors.LATE for worker in calling)
        if not (calling and idle and late) or now - self._said < EVERY:
            return ()
        self._said = now
        return tuple(sorted(worker.arm for worker in calling))

    # --- what the driver asks for ---

    def discard(self, arm: int) -> None:
        self._pool.end(arm)

    release = discard

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
        workers = [self._pool.workers[arm] for arm in pulls if self._pool.idle(arm)]
        live = [worker for worker in workers if worker.ready and worker.done == pulls[worker.arm]]
        with explained(RESUME):
            for worker, ref in [(worker, self._pool.save(worker)) for worker in live]:
                with suppress(self._ray.exceptions.RayError):  # lost: nothing is left to save
                    saved = self._get(ref, worker)
                    if saved is not None:
                        yield saved

    def score_rows(self, arms: Iterable[int]) -> Iterator[Report]:
        for worker in [self._pool.workers[arm] for arm in arms if arm in self._pool.workers]:
            with suppress(self._ray.exceptions.RayError):  # lost: then there are none
                if worker.call is Call.SAVE:
                    self._get(worker.ref, worker)
                    yield from self._answered(worker)
                if worker.ready and not worker.call:
                    scored = self._get(worker.actor.score_rows.remote(), worker)
                    if scored is not None:
                        yield scored

    def learner(self, arm: int, pulls: int) -> HandedOver:
        """Return the trained learner, restored if it is not live."""
        for left in reversed(range(TRIES)):
            with explained(RESUME):
                try:
                    return self._fetched(arm, pulls)
                except self._ray.exceptions.RayError as error:
                    self.discard(arm)
                    self._slots.look()
                    if not left:
                        raise LearnerError(reason_of(error)) from error
        raise AssertionError

    def _fetched(self, arm: int, pulls: int) -> HandedOver:
        reports: list[Report] = []
        worker = self._pool.workers.get(arm)
        if worker is not None and worker.call:  # such as a save after the last pull
            self._get(worker.ref, worker)
            reports += self._answered(worker)
        if not (self._pool.idle(arm) and worker and worker.ready and worker.done == pulls):
            worker, notes = self._restored(arm, pulls)
            reports += [events.WarningNoted(arm, text) for text in notes]
        fetched = self._get(worker.actor.fetch.remote(), worker)
        entry = unpack(self._packed)[arm]  # a copy: an object that was given stays as it is
        saving = lambda: self._get(self._pool.save(worker), worker)  # noqa: E731
        return hand_over(self._context.states, entry, arm, pulls, fetched, saving, reports)

    def _restored(self, arm: int, pulls: int) -> tuple[Worker, list[str]]:
        """Return the learner in a new process after `pulls` pulls, and what to note."""
        self._pool.end_all()  # nothing else is needed any more
        self._slots.need_one(self._slots.kinds[arm])
        self._pool.start(arm, pulls)
        worker = self._pool.workers[arm]
        answer = self._get(self._pool.prepare(worker), worker)
        if isinstance(answer, PullFailed):
            raise LearnerError(answer.reason)
        worker.ready, worker.call = True, None
        return worker, answer.notes

    def _get(self, ref: Any, worker: Worker) -> Any:
        """Wait for an answer, as long as its machine is there."""
        while not self._ray.wait([ref], timeout=TICK)[0]:
            self._slots.look()
            if worker.slot.node is None:
                raise self._ray.exceptions.RayActorError
        return self._ray.get(ref)

    def stop(self) -> None:
        """End all processes and give the reservations back, as far as the cluster is there."""
        with suppress(Exception):
            self._closing.close()
