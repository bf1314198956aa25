"""The Ray actors of a race, and the call that each actor is making.

Each learner keeps its own process, even if there are more learners than slots (`ray_slots.py`): an
actor requests a small share of its slot, and the runner ensures that a machine never makes more
pulls at the same time than it has slots. So a waiting learner stays in memory, and a learner whose
machine is lost can move to another one.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from latebloomer.racing.runners.learner_host import SLICE, Call, LearnerHost
from latebloomer.racing.runners.ray_slots import Slot, Slots
from latebloomer.racing.runners.runner import Order, Runner, RunnerContext
from latebloomer.racing.runners.time_limits import OUT_OF_TIME, took_longer
from latebloomer.session.events import INTERRUPTED

GRACE = 2.0  # seconds that a call may take in addition to the timeout
LATE = 10.0  # after this many seconds, a learner that is not built yet may be on a lost machine


@dataclass(eq=False)
class Worker:
    """A learner in an actor, and its current call; it makes one call at a time."""

    arm: int
    actor: Any
    slot: "Slot"
    done: int  # number of pulls that it has had, or to which it is being restored
    ready: bool = False  # whether its learner is built
    since: float = field(default_factory=monotonic)  # time when its process was requested
    call: Call | None = None  # under way
    ref: Any = None  # reference to the result of the call
    sent: float = 0.0
    pulls: int = 0  # number of pulls in the call
    ends_phase: bool = False  # whether a phase ends with the last of these pulls

    def send(self, call: Call, ref: Any, pulls: int = 0, ends_phase: bool = False) -> None:
        """Store a call that was made."""
        self.call, self.ref, self.sent = call, ref, monotonic()
        self.pulls, self.ends_phase = pulls, ends_phase


class ActorPool:
    """Start actors, call them, and end them."""

    def __init__(
        self, ray: Any, slots: "Slots", context: RunnerContext, packed: Any, runner: Runner
    ) -> None:
        self._ray, self._slots, self._context, self._packed = ray, slots, context, packed
        self._timeout, self._pickles = runner.timeout, runner.max_in_memory is not None
        self.workers: dict[int, Worker] = {}
        self._avoid: dict[int, Slot] = {}  # slots of lost processes, by arm
        self._careful: dict[int, int] = {}  # by arm: up to this pull, it makes one pull per call

    # --- calls under way ---

    @property
    def calling(self) -> list[Worker]:
        """The workers with a call under way."""
        return [worker for worker in self.workers.values() if worker.call]

    def idle(self, arm: int) -> bool:
        """Return whether an arm has a process that can be called."""
        return arm in self.workers and not self.workers[arm].call

    def returned(self, timeout: float) -> list[Worker]:
        """Return a list of one worker whose call has ended; empty after `timeout` seconds."""
        refs = {worker.ref: worker for worker in self.calling}
        ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=timeout)
        return [refs[ref] for ref in ready]

    # --- making calls ---

    def start(self, arm: int, done: int) -> None:
        """Start a process for a learner with `done` pulls, if a machine is available."""
        slot = self._slots.assign(arm, self._avoid.pop(arm, None))
        if slot is not None:
            kind = self._ray.remote(max_restarts=0, max_task_retries=0)(LearnerHost)
            actor = kind.options(**self._slots.options(slot)).remote(arm, self._packed)
            worker = self.workers[arm] = Worker(arm, actor, slot, done)
            worker.send(Call.START, actor.hello.remote())

    def prepare(self, worker: Worker) -> Any:
        """Call to build and restore a learner; return the reference to the answer."""
        at = self._context.states.restorable(worker.arm, worker.done, seen=False)
        return worker.actor.prepare.remote(at)

    def train(self, worker: Worker, order: Order) -> None:
        """Call a learner to make the pulls of an order, up to the next checkpoint."""
        count, every = order.pulls, self._context.schedule.every
        if worker.done < self._careful.get(worker.arm, 0):
            count = 1
        elif every is not None:
            count = min(count, every - worker.done % every)
        ref = worker.actor.train.remote(worker.done, count)
        worker.send(Call.TRAIN, ref, count, order.ends_phase and count == order.pulls)

    def save(self, worker: Worker) -> Any:
        """Call a learner to save its state; return the reference to the answer."""
        return worker.actor.save.remote(self._context.states.storage, self._pickles)

    # --- ending actors ---

    def end(self, arm: int) -> None:
        """End a learner's process; the result of its call is ignored."""
        worker = self.workers.pop(arm, None)
        if worker is not None:
            self._slots.vacate(arm)
            with suppress(Exception):  # the process or its machine may already be dead
                self._ray.kill(worker.actor)

    def end_all(self) -> None:
        """End all processes."""
        for arm in list(self.workers):
            self.end(arm)

    def end_and_retry(self, worker: Worker) -> None:
        """End a process; its pulls are repeated one by one, to find the pull that fails."""
        self.end(worker.arm)
        self._avoid[worker.arm] = worker.slot
        if worker.call is Call.TRAIN:
            self._careful[worker.arm] = worker.done + worker.pulls

    def overdue(self) -> Iterator[tuple[Worker, str, str]]:
        """Yield workers whose call takes too long, with the kind of failure and its reason."""
        out_of_time, timeout = self._context.seconds_left() < 0, self._timeout
        for worker in self.calling:
            if worker.call is None or worker.call is Call.START:
                continue
            took = monotonic() - worker.sent
            again = worker.done if worker.call is Call.RESTORE else 0
            own = 1 + again  # each repeated pull has its own timeout
            if timeout is not None and took > timeout * own + SLICE + GRACE:
                yield worker, *took_longer(worker.call, timeout)
            elif out_of_time and took > self._context.grace:
                yield worker, INTERRUPTED, OUT_OF_TIME

    def leave_lost_machines(self) -> None:
        """End workers on machines that have left the cluster, unless their call will fail.

        An idle learner has no call, and a learner to be built there would wait forever.
        """
        for arm, worker in list(self.workers.items()):
            waits = worker.call in (Call.START, Call.RESTORE) and monotonic() - worker.sent > LATE
            if worker.slot.node is None and (waits or not worker.call):
                self.end(arm)

    def let_go(self, spare: Collection[Worker]) -> None:
        """End processes that have nothing to do in this phase, after they are saved."""
        for worker in spare:
            saved = self._context.states.newest(worker.arm, worker.done)
            if not worker.ready or (saved is not None and saved.n == worker.done):
                self.end(worker.arm)
            else:
                worker.send(Call.SAVE, self.save(worker))
