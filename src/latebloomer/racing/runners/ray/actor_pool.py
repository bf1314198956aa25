"""The actors of a race and the calls that are under way."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from latebloomer.racing.runners.contract import Runner, RunnerContext
from latebloomer.racing.runners.learner_host import DOES, OUT_OF_TIME
from latebloomer.racing.runners.ray.slots import Slot, Slots
from latebloomer.racing.runners.ray.training_actor import SLICE, TrainingActor
from latebloomer.session.events import INTERRUPTED, TIMEOUT, Saved

START, RESTORE, TRAIN, SAVE = "start", "restore", "train", "save"  # kinds of call
METHODS = {RESTORE: "prepare", TRAIN: "pull", SAVE: "save"}
GRACE = 2.0  # seconds that a call may take in addition to training
LATE = 10.0  # seconds after which a learner that is not built yet may be on a lost machine


@dataclass(eq=False)
class Worker:
    """A learner in a process somewhere."""

    arm: int
    actor: Any
    slot: Slot
    ready: bool = False  # its learner is built
    since: float = field(default_factory=monotonic)  # when its process was asked for
    done: int = 0  # pulls that it has had, as far as the race knows


@dataclass(frozen=True)
class Call:
    """A call that is under way."""

    worker: Worker
    kind: str
    sent: float
    pulls: int = 0  # to be made
    start: int = 0  # pulls that the learner has had before, or is brought to

    @property
    def arm(self) -> int:
        return self.worker.arm


class ActorPool:
    """Starts processes, calls them, and ends them; each has one call at a time."""

    def __init__(
        self, ray: Any, slots: Slots, stage: RunnerContext, packed: Any, runner: Runner
    ) -> None:
        self._ray, self._slots, self._stage, self._packed = ray, slots, stage, packed
        self._timeout, self._pickles = runner.timeout, runner.max_in_memory is not None
        self.workers: dict[int, Worker] = {}
        self._calls: dict[Any, Call] = {}
        self._avoid: dict[int, Slot] = {}  # where one that was lost had been
        self._careful: dict[int, int] = {}  # arm: up to which pull it makes one per call

    # --- what is under way ---

    @property
    def calls(self) -> list[Call]:
        return list(self._calls.values())

    def calls_of(self, arm: int) -> list[tuple[Call, Any]]:
        """Return the calls of an arm that are under way, and forget them."""
        found = [(call, ref) for ref, call in self._calls.items() if call.arm == arm]
        for _, ref in found:
            del self._calls[ref]
        return found

    def idle(self, arm: int) -> bool:
        """Return whether an arm has a process that can be called."""
        return arm in self.workers and all(call.arm != arm for call in self.calls)

    def starting(self) -> int:
        """Return the number of processes that do not answer yet; they take no lane."""
        return sum(call.kind == START for call in self.calls)

    def busy_slots(self) -> Iterator[Slot]:
        """Return the slot of each call that takes a lane."""
        return (call.worker.slot for call in self.calls if call.kind != START)

    def returned(self, timeout: float) -> list[tuple[Call, Any]]:
        """Return calls that have ended, with what to get; none after `timeout` seconds."""
        if not self._calls:
            return []
        ready, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=timeout)
        return [(self._calls.pop(ref), ref) for ref in ready]

    # --- calling ---

    def start(self, arm: int) -> None:
        """Start a process for a learner, where there is a machine."""
        slot = self._slots.assign(arm, self._avoid.pop(arm, None))
        if slot is None:
            return
        kind = self._ray.remote(max_restarts=0, max_task_retries=0)(TrainingActor)
        actor = kind.options(**self._slots.options(slot)).remote(
            self._packed, arm, self._stage.states.storage, self._stage.schedule.every,
            self._timeout, self._pickles,
        )  # fmt: skip
        worker = self.workers[arm] = Worker(arm, actor, slot)
        self._sent(actor.hello.remote(), Call(worker, START, monotonic()))

    def restore(self, arm: int, done: int) -> None:
        """Let a learner be built and brought to `done` pulls."""
        worker = self.workers[arm]
        ref = worker.actor.prepare.remote(*self.where(arm, done))
        self._sent(ref, Call(worker, RESTORE, monotonic(), start=done))

    def where(self, arm: int, done: int) -> tuple[int, Saved | None, list[float]]:
        """Return what brings a learner to `done` pulls."""
        if not done:
            return 0, None, []
        return done, self._stage.states.newest(arm, done), self._stage.recorded(arm)

    def train(self, arm: int, wanted: int, ends_phase: bool) -> None:
        """Let a learner make pulls, `wanted` of them where all goes well."""
        worker = self.workers[arm]
        count = 1 if worker.done < self._careful.get(arm, 0) else wanted
        ref = worker.actor.train.remote(worker.done, count, ends_phase and count == wanted)
        self._sent(ref, Call(worker, TRAIN, monotonic(), count, worker.done))

    def save(self, arm: int) -> None:
        """Let a learner save its state."""
        worker = self.workers[arm]
        self._sent(worker.actor.save.remote(), Call(worker, SAVE, monotonic(), start=worker.done))

    def _sent(self, ref: Any, call: Call) -> None:
        self._calls[ref] = call

    def forget_calls(self, worker: Worker) -> None:
        """Forget the calls of a worker."""
        self._calls = {ref: call for ref, call in self._calls.items() if call.worker is not worker}

    # --- ending ---

    def end(self, arm: int) -> None:
        """End a learner's process; what it was doing is not heard of any more."""
        worker = self.workers.pop(arm, None)
        if worker is None:
            return
        self.forget_calls(worker)
        self._slots.vacate(arm)
        with suppress(Exception):  # it may be dead already, or its machine
            self._ray.kill(worker.actor)

    def end_and_retry(self, call: Call) -> None:
        """End a process. Its pulls are made again one by one, to know in which it goes wrong."""
        self.end(call.arm)
        self._avoid[call.arm] = call.worker.slot
        if call.kind == TRAIN:
            self._careful[call.arm] = call.start + call.pulls

    def overdue(self) -> list[tuple[Call, str, str]]:
        """Return calls that take longer than allowed, with the kind of failure and why."""
        late, now, found = self._stage.seconds_left() < 0, monotonic(), []
        for call in self.calls:
            limit, took = self._limit(call), now - call.sent
            if limit is not None and took > limit:
                text = f"{DOES[METHODS[call.kind]]} took longer than timeout={self._timeout:g} s"
                found.append((call, TIMEOUT, text))
            elif late and call.kind != START and took > self._stage.grace:
                found.append((call, INTERRUPTED, OUT_OF_TIME))
        return found

    def _limit(self, call: Call) -> float | None:
        """Return the seconds that a call may be under way; a repeated pull has its own time."""
        if self._timeout is None or call.kind == START:
            return None
        repeated = call.start if call.kind == RESTORE else 0
        return self._timeout * (1 + repeated) + SLICE + GRACE

    def leave_lost_machines(self) -> None:
        """End what is on machines that have left, unless it has a call that will say so.

        An idle learner has none, and one that is to be built there would wait for ever.
        """
        calls = {call.arm: call for call in self.calls}
        for arm, worker in list(self.workers.items()):
            call = calls.get(arm)
            waits = call is not None and call.kind in (START, RESTORE)
            if worker.slot.node is None and (
                call is None or (waits and monotonic() - call.sent > LATE)
            ):
                self.end(arm)

    def let_go(self, wanted: Collection[int], count: int) -> None:
        """End up to `count` processes that have nothing to do in this phase, once saved."""
        spare = [arm for arm in self.workers if arm not in wanted and self.idle(arm)]
        for arm in spare[: max(0, count)]:
            worker = self.workers[arm]
            saved = self._stage.states.newest(arm, worker.done)
            if not worker.ready or (saved is not None and saved.n == worker.done):
                self.end(arm)
            else:
                self.save(arm)

    def make_room(self, wanted: Collection[int]) -> None:
        """End a process without work in this phase if a learner finds no place."""
        placeless = [arm for arm in wanted if arm not in self.workers]
        spare = [arm for arm in self.workers if arm not in wanted and self.idle(arm)]
        for arm in placeless:
            same = [one for one in spare if self._slots.kind_of(one) == self._slots.kind_of(arm)]
            if same and self._slots.is_full(arm):
                self.end(same[0])
                return
