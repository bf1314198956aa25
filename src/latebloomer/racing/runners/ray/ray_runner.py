"""The runner that trains on Ray: it sends pulls to actors and reports what comes back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, need_whole, require
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import Stored, storage_at
from latebloomer.racing.runners.contract import (
    Order,
    Orders,
    PullFailure,
    Report,
    Runner,
    RunnerContext,
    TooLong,
    Unsaved,
    Waiting,
)
from latebloomer.racing.runners.handover import BARE, hand_over
from latebloomer.racing.runners.memory_limit import cannot_let_go
from latebloomer.racing.runners.packing import pack, unpack
from latebloomer.racing.runners.ray.actor_pool import (
    LATE,
    RESTORE,
    SAVE,
    START,
    TRAIN,
    ActorPool,
    Call,
    Worker,
)
from latebloomer.racing.runners.ray.preflight import need_learners, need_shared
from latebloomer.racing.runners.ray.slots import PATIENCE, Slots, needed
from latebloomer.racing.runners.training_actor import Batch, Ready
from latebloomer.session.events import Restored, Saved, ScoreReported, WarningNoted

TICK = 1.0  # seconds between two looks at what has not come back
EVERY = 30.0  # seconds between two lines about who is waited for
AHEAD = 2  # processes that may start at a time, per lane: each takes a second of a core
TRIES = 5  # at fetching the winner, should its process be lost again and again
ONE_CORE = {"num_cpus": 1, "num_gpus": 0}


class RayRunner(Runner):
    """Trains every learner in an actor of its own, on this machine or on a cluster.

    Without an `address` a Ray is started here (with `cores` CPUs; all, if not given) and ended
    with the race; "auto" or "ray://host:10001" joins one that runs, and leaves it running.
    `resources` is what one pull needs. Checkpoints go to `storage`, a folder that all machines
    share or an address for pyarrow or fsspec; without one, beside the journal. Policies with
    phases train all racing learners at once; those that decide after every pull keep `batch`
    learners busy (as many as there is room for, if not given). With `race(..., max_in_memory=4)` there
    are no more than four actors at once.

    Parameters
    ----------
    address : str | None
        Of a Ray that runs: "auto", "ray://host:10001", "host:6379"; None starts one here, or joins
        what `RAY_ADDRESS` names.
    resources : Mapping[str, float]
        What one pull takes: `num_cpus`, `num_gpus`, `memory`, or the cluster's own names.
    storage : str | os.PathLike[str] | None
        Where checkpoints go: a folder that all machines share, or an address for pyarrow or
        fsspec; beside the journal if None.
    batch : int | None
        Learners that a policy without phases keeps busy; as many as there is room for if None.
    cores : int | None
        CPUs of a Ray that is started here; all if None.

    Raises
    ------
    MissingExtra
        Ray is not installed.
    ClusterError
        No cluster there, or it cannot do what is asked.
    """

    fragile: ClassVar[bool] = True
    in_phases: ClassVar[bool] = True

    def __init__(
        self,
        address: str | None = None,
        resources: Mapping[str, float] = ONE_CORE,
        storage: str | os.PathLike[str] | None = None,
        *,
        batch: int | None = None,
        cores: int | None = None,
    ) -> None:
        super().__init__()
        self._cluster = Cluster(address, cores)
        self._wanted = needed(resources)
        self._storage = None if storage is None else storage_at(storage)
        if batch is not None:
            require(need_whole("batch", batch) >= 1, "batch", batch, "at least 1",
                    "it is how many learners are pulled at once")  # fmt: skip
        self._batch = batch
        self._resident: int | None = None  # actors at once
        self._slots: Slots | None = None
        self._bare: set[int] = set()  # learners that were warned of

    def with_resident(self, max_in_memory: int) -> RayRunner:
        self._resident = max_in_memory
        return self

    @property
    def batch(self) -> int:
        return self._batch or self.lanes

    @property
    def busy(self) -> bool:
        return bool(self._pool.calls)

    # --- the start ---

    def start(self, stage: RunnerContext) -> None:
        stage = stage._replace(pickles=self._resident is not None)
        self.held, self._stage, self._slots = False, stage, None
        self._pace = [0.0] * len(stage.entries)  # seconds of the newest pull
        self._heard = self._said = self._looked = monotonic()
        self._ray = self._cluster.open().ray
        self._packed = pack(stage.entries)
        self._cluster.need_same_version()
        sent = self._ray.put(self._packed)  # once for each machine
        need_learners(self._cluster, sent)
        if self._storage is not None:
            stage.states.move_to(self._storage)
        need_shared(self._cluster, stage.states.storage)
        slots = Slots(self._cluster, self._wanted, len(stage.entries))
        self._slots, self._pool = slots, ActorPool(self._ray, slots, stage, sent)
        slots.open()
        self.lanes = slots.lanes

    # --- the race ---

    def work(self, orders: Orders) -> Iterator[Report]:
        if not self.held:
            self._send(orders)
        yield from self._hear(orders)

    def hold(self) -> None:
        super().hold()
        for call in self._pool.calls:
            if call.kind in (START, RESTORE):  # nothing that would be lost
                self._pool.end(call.arm)

    def _send(self, orders: Orders) -> None:
        """Give work to the learners that have none, the longest first."""
        pool, slots = self._pool, self._all_slots()
        slots.look_for_more()
        pool.leave_lost_machines()
        self.lanes = max(1, slots.lanes)
        pool.make_room(orders)
        new = [arm for arm in orders if arm not in pool.workers]
        room = AHEAD * self.lanes - pool.starting()
        if self._resident is not None:
            pool.let_go(orders, len(new) + len(pool.workers) - self._resident)
            room = min(room, self._resident - len(pool.workers))
        for arm in new[: max(0, room)]:
            pool.start(arm)
        idle = [arm for arm in orders if pool.idle(arm)]
        idle.sort(key=lambda arm: (-orders[arm].pulls * self._expected(arm), arm))
        free = slots.free(pool.busy_slots())
        for arm in idle:
            key = slots.key(pool.workers[arm].slot)
            if free[key] > 0:
                free[key] -= 1
                self._give_work(arm, orders[arm])

    def _give_work(self, arm: int, order: Order) -> None:
        if self._pool.workers[arm].ready:
            self._pool.train(arm, order.pulls, order.ends_phase)
        else:
            self._pool.restore(arm, order.done)

    def _expected(self, arm: int) -> float:
        """Seconds of its next pull: those of its newest, or of the others' at first."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    # --- what comes back ---

    def _hear(self, orders: Orders) -> Iterator[Report]:
        if not self._pool.calls:
            yield self._nobody_works()
            return
        for call, ref in self._pool.returned(self._tick()):
            self._heard = monotonic()
            yield from self._answered(call, ref)
        if monotonic() - self._looked > self._tick():
            self._looked = monotonic()
            yield from self._overdue()
            yield Waiting(self._stragglers(len(orders)))

    def _tick(self) -> float:
        timeout = self._stage.timeout
        return TICK if timeout is None else min(TICK, timeout / 4)

    def _nobody_works(self) -> Waiting:
        """No machine has room for a learner: wait for one, but not for ever."""
        self._all_slots().wait(TICK)
        if monotonic() - self._heard > PATIENCE:
            raise ClusterError(
                f"the Ray cluster has had no machine for any learner for {PATIENCE:g} s: the "
                "journal has all that was counted; resume(...) when there are machines again"
            )
        return Waiting(())

    def _answered(self, call: Call, ref: Any) -> Iterator[Report]:
        arm, worker = call.arm, call.worker
        try:
            answer = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._lost(call)
            what = f"its process was lost ({type(error).__name__})"
            yield PullFailure(arm, "lost", what, str(error), seconds=monotonic() - call.sent)
            return
        if call.kind == TRAIN:
            yield from self._batch_of(worker, answer)
        elif call.kind == SAVE:
            if self._resident is not None and isinstance(answer, str):
                raise LearnerError(cannot_let_go(self._stage.entries[arm].name, answer))
            yield from _saved(arm, call.start, answer)
        elif isinstance(answer, Ready):
            worker.ready, worker.done = True, call.start
            yield from (WarningNoted(arm, text) for text in answer.notes)
            yield Restored(arm, call.start, monotonic() - worker.since)
        elif isinstance(answer, PullFailure):
            yield answer

    def _batch_of(self, worker: Worker, batch: Batch) -> Iterator[Report]:
        arm = worker.arm
        for score, seconds, steps in batch.pulls:
            worker.done += 1
            self._pace[arm] = seconds
            yield ScoreReported(arm, score, seconds, steps)
            if batch.bare and arm not in self._bare:
                self._bare.add(arm)
                yield WarningNoted(arm, BARE)
            if self._pool.workers.get(arm) is not worker:  # it is out, or was not wanted
                return
        if batch.end is not None:
            yield batch.end
        elif batch.due:
            self._pool.save(arm)

    # --- what does not come back ---

    def _lost(self, call: Call) -> None:
        """A process is gone: killed, out of memory, or its machine has left."""
        self._pool.end_and_retry(call)
        self._all_slots().look()

    def _overdue(self) -> Iterator[Report]:
        timeout = self._stage.timeout
        for call in [] if timeout is None else self._pool.overdue(timeout):
            self._pool.end_and_retry(call)
            if call.pulls == 1:
                took = monotonic() - call.sent
                yield PullFailure(call.arm, "timeout", str(TooLong(timeout or 0.0)), seconds=took)

    def _stragglers(self, wanted: int) -> tuple[int, ...]:
        """Who is waited for, where others have had nothing to do for a while."""
        now, calls = monotonic(), self._pool.calls
        idle = len(calls) < min(self.lanes, max(wanted, 2))
        late = all(now - call.sent > LATE for call in calls)
        if not (calls and idle and late) or now - self._said < EVERY:
            return ()
        self._said = now
        return tuple(sorted(call.arm for call in calls))

    # --- what the driver asks for ---

    def discard(self, arm: int) -> None:
        self._pool.end(arm)

    def release(self, arm: int) -> None:
        self._pool.end(arm)

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | Unsaved]:
        workers = self._pool.workers
        live = {arm: workers[arm] for arm in pulls if self._pool.idle(arm) and workers[arm].ready}
        calls = {
            arm: worker.actor.save.remote()
            for arm, worker in live.items()
            if worker.done == pulls[arm]
        }
        for arm, ref in calls.items():
            with suppress(self._ray.exceptions.RayError):  # lost: then there is nothing to save
                yield from _saved(arm, pulls[arm], self._get(ref, live[arm]))

    def learner(self, arm: int, pulls: int) -> Any:
        for left in reversed(range(TRIES)):
            try:
                return self._fetched(arm, pulls)
            except self._ray.exceptions.RayError:
                self.discard(arm)
                self._all_slots().look()
                if not left:
                    raise
        return None

    def _fetched(self, arm: int, pulls: int) -> Any:
        worker = self._worker_at(arm, pulls)
        fetched = self._get(worker.actor.fetch.remote(), worker)
        entry = unpack(self._packed)[arm]  # a copy: an object that was given stays as it is

        def save() -> Any:
            return self._get(worker.actor.save.remote(), worker)

        found = hand_over(self._stage, entry, (arm, pulls), fetched, save)
        self.pending += found.events
        return found.learner

    def _worker_at(self, arm: int, pulls: int) -> Worker:
        """The learner after `pulls` pulls: live where it stands there, else restored."""
        worker = self._pool.workers.get(arm)
        if worker is not None and worker.ready and worker.done == pulls and self._pool.idle(arm):
            return worker
        self.discard(arm)
        for other in list(self._pool.workers):  # nothing else is needed any more
            self.discard(other)
        self._all_slots().need_one()
        self._pool.start(arm)
        worker = self._pool.workers[arm]
        answer = self._get(worker.actor.prepare.remote(*self._pool.where(arm, pulls)), worker)
        if isinstance(answer, PullFailure):
            raise LearnerError(answer.reason)
        worker.ready, worker.done = True, pulls
        self._pool.forget_calls(worker)
        self.pending += [WarningNoted(arm, text) for text in answer.notes]
        return worker

    def _get(self, ref: Any, worker: Worker) -> Any:
        """Wait for an answer, as long as its machine is there."""
        while not self._ray.wait([ref], timeout=TICK)[0]:
            self._all_slots().look()
            if worker.slot.node is None:
                raise self._ray.exceptions.RayActorError
        return self._ray.get(ref)

    # --- the end ---

    def stop(self) -> None:
        try:
            with suppress(Exception):  # the cluster may be gone, with all that is let go of here
                if self._slots is not None:
                    for arm in list(self._pool.workers):
                        self.discard(arm)
                    self._slots.close()
        finally:
            with suppress(Exception):
                self._cluster.close()

    def _all_slots(self) -> Slots:
        if self._slots is None:
            raise ClusterError("the Ray runner has not been started: race(..., runner=...) does")
        return self._slots


def _saved(arm: int, n: int, stored: Stored | str | None) -> Iterator[Saved | Unsaved]:
    """What came of saving; nothing where the learner cannot be saved."""
    if isinstance(stored, Stored):
        yield saved_event(arm, n, stored)
    elif stored is not None:
        yield Unsaved(arm, stored)
