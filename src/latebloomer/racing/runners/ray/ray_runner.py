"""The runner that trains on Ray: it sends pulls to actors and reports what comes back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar

from latebloomer._util.text import reason_of
from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, SettingError, need_whole, require
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import Stored, storage_at, without_password
from latebloomer.racing.runners.contract import (
    HandedOver,
    Order,
    Orders,
    Report,
    Runner,
    RunnerContext,
)
from latebloomer.racing.runners.learner_host import Ready
from latebloomer.racing.runners.memory_limit import cannot_let_go
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
from latebloomer.racing.runners.ray.training_actor import Batch
from latebloomer.racing.runners.transfer import BARE, hand_over, pack, unpack
from latebloomer.session.events import (
    INTERRUPTED,
    PullFailed,
    Restored,
    Saved,
    SaveFailed,
    Waiting,
    WarningNoted,
)

TICK = 1.0  # seconds between two looks at what has not come back
EVERY = 30.0  # seconds between two lines about who is waited for
AHEAD = 2  # processes that may start at a time, per lane: each takes a second of a core
TRIES = 5  # at fetching the winner, should its process be lost again and again
ONE_CORE = {"num_cpus": 1, "num_gpus": 0}


class RayRunner(Runner):
    """Train every learner in its own Ray actor, on this machine or on a cluster.

    Policies with phases train all remaining learners at the same time; policies that decide after
    every pull keep `batch` learners busy.

    Parameters
    ----------
    address : str | None
        Running Ray cluster: "auto", "ray://host:10001" or "host:6379"; it keeps running after the
        race. Default: `RAY_ADDRESS`, or start Ray here and end it with the race.
    resources : Mapping[str, float]
        What one pull takes: `num_cpus`, `num_gpus`, `memory`, or the cluster's own names.
    storage : str | os.PathLike[str] | None
        Checkpoint folder that all machines share, or a URL for pyarrow or fsspec. Default: next to
        the journal.
    learner_resources : Mapping[str, Mapping[str, float]] | None
        What a pull of a single learner takes, by name: `{"big": {"num_gpus": 1}}`. Default:
        `resources`.
    batch : int | None
        Number of learners that a policy without phases keeps busy. Default: as many as fit.
    cores : int | None
        CPUs of a Ray that is started here. Default: all.
    max_in_memory : int | None
        Maximum number of actors; the other learners wait in checkpoints. Requires a policy with
        phases. Default: no limit.
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take; then its process
        is ended. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed.
    checkpoint_every : int | None
        Save each learner every this many pulls. Default: once 20 s of its training, and 20 times
        the duration of its last save, are unsaved.

    Raises
    ------
    MissingExtra
        Ray is not installed.
    ClusterError
        There is no such cluster, or it lacks what is requested.
    """

    name: ClassVar[str] = "ray"
    fragile: ClassVar[bool] = True
    in_phases = True

    def __init__(
        self,
        address: str | None = None,
        resources: Mapping[str, float] = ONE_CORE,
        storage: str | os.PathLike[str] | None = None,
        *,
        learner_resources: Mapping[str, Mapping[str, float]] | None = None,
        batch: int | None = None,
        cores: int | None = None,
        max_in_memory: int | None = None,
        timeout: float | None = None,
        retries: int = 1,
        checkpoint_every: int | None = None,
    ) -> None:
        super().__init__(
            timeout=timeout, retries=retries, checkpoint_every=checkpoint_every,
            max_in_memory=max_in_memory,
        )  # fmt: skip
        self._cluster = Cluster(address, cores)
        needed(resources)
        single = learner_resources or {}
        if not isinstance(single, Mapping):
            raise SettingError(
                f"learner_resources={single!r}, but learner_resources must be a dict of names and "
                'resources such as {"big": {"num_gpus": 1}}'
            )
        for name, wanted in single.items():
            needed(wanted, f"learner_resources[{name!r}]")
        self._resources, self._single = dict(resources), {k: dict(v) for k, v in single.items()}
        self._storage = None if storage is None else storage_at(storage)
        if batch is not None:
            require(need_whole("batch", batch) >= 1, "batch", batch, "at least 1",
                    "it is how many learners are pulled at the same time")  # fmt: skip
        self._batch = batch
        self._given = {
            "address": address, "resources": self._resources, "batch": batch, "cores": cores,
            "learner_resources": self._single,
            "storage": None if storage is None else without_password(str(self._storage)),
        }  # fmt: skip
        self._resident: int | None = None  # actors at the same time
        self._slots: Slots | None = None
        self._bare: set[int] = set()  # learners that were warned of

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return super().as_dict() | self._given

    @property
    def batch(self) -> int:
        return self._batch or self.lanes

    @property
    def busy(self) -> bool:
        return bool(self._pool.calls)

    # --- the start ---

    def start(self, context: RunnerContext) -> None:
        """Connect to the cluster and reserve what the race needs."""
        stage, most = context, self.max_in_memory
        self._resident = most if most is not None and most < len(stage.entries) else None
        self.held, self._stage, self._slots = False, stage, None
        self._pace = [0.0] * len(stage.entries)  # seconds of the newest pull
        self._heard = self._said = self._looked = monotonic()
        wanted = self._wanted([entry.name for entry in stage.entries])
        self._ray = self._cluster.open().ray
        self._packed = pack(stage.entries)
        self._cluster.need_same_version()
        sent = self._ray.put(self._packed)  # once for each machine
        need_learners(self._cluster, sent)
        if self._storage is not None:
            stage.states.move_to(self._storage)
        need_shared(self._cluster, stage.states.storage)
        slots = Slots(self._cluster, wanted)
        self._slots, self._pool = slots, ActorPool(self._ray, slots, stage, sent, self)
        slots.open()
        self.lanes = slots.lanes

    def _wanted(self, names: list[str]) -> list[dict[str, float]]:
        """Return what a pull of each learner takes."""
        unknown = [name for name in self._single if name not in names]
        if unknown:
            raise SettingError(
                f"learner_resources names {', '.join(unknown)}, but the learners are "
                f"{', '.join(names)}"
            )
        return [needed({**self._resources, **self._single.get(name, {})}) for name in names]

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
            key = pool.workers[arm].slot.key
            if free[key] > 0:
                free[key] -= 1
                self._give_work(arm, orders[arm])

    def _give_work(self, arm: int, order: Order) -> None:
        if self._pool.workers[arm].ready:
            self._pool.train(arm, order.pulls, order.ends_phase)
        else:
            self._pool.restore(arm, order.done)

    def _expected(self, arm: int) -> float:
        """Return the expected seconds of the next pull: by its latest, or by the others'."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    # --- what comes back ---

    def _hear(self, orders: Orders) -> Iterator[Report]:
        if not self._pool.calls:
            yield self._wait_for_room()
            return
        for call, ref in self._pool.returned(self._tick()):
            self._heard = monotonic()
            yield from self._answered(call, ref)
        if monotonic() - self._looked > self._tick():
            self._looked = monotonic()
            yield from self._overdue()
            yield Waiting(self._stragglers(len(orders)))

    def _tick(self) -> float:
        return TICK if self.timeout is None else min(TICK, self.timeout / 4)

    def _wait_for_room(self) -> Waiting:
        """Wait for a machine that has room for a learner, but not for ever."""
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
            took = monotonic() - call.sent
            yield PullFailed(arm, worker.done + 1, "lost", what, str(error), took)
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
        elif isinstance(answer, PullFailed):
            yield answer

    def _batch_of(self, worker: Worker, batch: Batch) -> Iterator[Report]:
        arm = worker.arm
        for report in batch.reports:
            worker.done += 1
            self._pace[arm] = report.seconds
            yield report
            if batch.only_scores and arm not in self._bare:
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
        """End a process that is gone: killed, out of memory, or its machine has left."""
        self._pool.end_and_retry(call)
        self._all_slots().look()

    def _overdue(self) -> Iterator[Report]:
        for call, kind, why in self._pool.overdue():
            self._pool.end_and_retry(call)
            if call.pulls <= 1 or kind == INTERRUPTED:  # else it is not known which pull it is
                took = monotonic() - call.sent
                yield PullFailed(call.arm, call.worker.done + 1, kind, why, seconds=took)

    def _stragglers(self, wanted: int) -> tuple[int, ...]:
        """Return the arms that the others wait for, if that has taken a while."""
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

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
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

    def learner(self, arm: int, pulls: int) -> HandedOver:
        """Return the trained learner, restored if it is not live."""
        for left in reversed(range(TRIES)):
            try:
                return self._fetched(arm, pulls)
            except self._ray.exceptions.RayError as error:
                self.discard(arm)
                self._all_slots().look()
                if not left:
                    raise LearnerError(reason_of(error)) from error
        raise AssertionError

    def _fetched(self, arm: int, pulls: int) -> HandedOver:
        events: list[Report] = []
        for call, ref in self._pool.calls_of(arm):  # such as a save after the last pull
            self._get(ref, call.worker)
            events += self._answered(call, ref)
        worker, notes = self._worker_at(arm, pulls)
        events += [WarningNoted(arm, text) for text in notes]
        fetched = self._get(worker.actor.fetch.remote(), worker)
        entry = unpack(self._packed)[arm]  # a copy: an object that was given stays as it is

        def save() -> Any:
            return self._get(worker.actor.save.remote(), worker)

        found = hand_over(self._stage, entry, arm, pulls, fetched, save)
        return HandedOver(found.learner, [*events, *found.events])

    def _worker_at(self, arm: int, pulls: int) -> tuple[Worker, list[str]]:
        """Return the learner after `pulls` pulls, restored if it is not live, and what to note."""
        worker = self._pool.workers.get(arm)
        if worker is not None and worker.ready and worker.done == pulls and self._pool.idle(arm):
            return worker, []
        self.discard(arm)
        for other in list(self._pool.workers):  # nothing else is needed any more
            self.discard(other)
        slots = self._all_slots()
        slots.need_one(slots.kind_of(arm))
        self._pool.start(arm)
        worker = self._pool.workers[arm]
        answer = self._get(worker.actor.prepare.remote(*self._pool.where(arm, pulls)), worker)
        if isinstance(answer, PullFailed):
            raise LearnerError(answer.reason)
        worker.ready, worker.done = True, pulls
        self._pool.forget_calls(worker)
        return worker, answer.notes

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
            with suppress(Exception):  # the cluster may be gone, with all that is released here
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


def _saved(arm: int, n: int, stored: Stored | str | None) -> Iterator[Saved | SaveFailed]:
    """Yield the event of a save; none if the learner cannot be saved."""
    if isinstance(stored, Stored):
        yield saved_event(arm, n, stored)
    elif stored is not None:
        yield SaveFailed(arm, n, stored)
