"""The runner that trains on Ray: it sends pulls to actors and reports what comes back."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar

from latebloomer.engine.cluster import Cluster
from latebloomer.errors import need_whole, require
from latebloomer.race.bringing import Order, bring
from latebloomer.race.checkpoints import place_of
from latebloomer.race.errors import LearnerError, TooLong
from latebloomer.race.field import Field
from latebloomer.race.journal import Kept
from latebloomer.race.learner import trained
from latebloomer.race.remote.checks import need_recipes, need_shared
from latebloomer.race.remote.places import Places, Slot, needed
from latebloomer.race.remote.recipes import recipes_of
from latebloomer.race.remote.trainer import HELLO, SLICE, Batch, Ready, Setup, Trainer
from latebloomer.race.runner import (
    Note,
    Pulled,
    Report,
    Restored,
    Runner,
    Saved,
    Stage,
    Trouble,
    Unsaved,
    Waiting,
    directly,
)
from latebloomer.race.storage import Folder, Stored, storage_at

TICK = 1.0  # seconds between two looks at what has not come back
GRACE = 2.0  # seconds that a call may be under way besides training
LATE = 10.0  # seconds for which the others must have nothing to do before that is said
EVERY = 30.0  # seconds between two such lines
TRIES = 5  # at fetching the winner, should its process be lost again and again
ONE_CORE = {"num_cpus": 1, "num_gpus": 0}


@dataclass(eq=False)
class Hand:
    """An actor: a learner in a process somewhere."""

    actor: Any
    slot: Slot
    up: bool = False  # its process answers
    ready: bool = False  # its learner is built
    done: int = 0  # pulls that it has had, as far as the race knows


@dataclass(frozen=True)
class Call:
    """A call that is under way."""

    hand: Hand
    arm: int
    sent: float
    pulls: int = 0  # to be made; 0: its process starts, or it is brought to `start` pulls
    start: int = 0

    @property
    def trains(self) -> bool:
        """Whether it takes a lane; a process that starts does not."""
        return self.hand.up


class RayRunner(Runner):
    """Trains every learner in an actor of its own, on this machine or on a cluster.

    Without an `address` a Ray is started here (with `cores` CPUs; all, if not given) and ended
    with the race; "auto" or "ray://host:10001" joins one that runs, and leaves it running.
    `resources` is what one pull needs. Checkpoints go to `storage`, a folder that all machines
    share or an address for pyarrow or fsspec; without one, beside the journal. Policies with
    phases train all racing learners at once; of those that decide after every pull, `batch`
    learners (as many as there is room for, if not given) are pulled before the next decision.
    """

    fragile: ClassVar[bool] = True

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
        self._given = None if storage is None else os.fspath(storage)
        if storage is not None:
            storage_at(storage)  # says what is wrong with it
        if batch is not None:
            require(need_whole("batch", batch) >= 1, "batch", batch, "at least 1",
                    "it is how many learners are pulled at once")  # fmt: skip
        self._batch = batch

    # --- the start ---

    def start(self, stage: Stage) -> None:
        self.held, self._stage = False, stage
        self._hands: dict[int, Hand] = {}
        self._calls: dict[Any, Call] = {}
        self._careful: dict[int, int] = {}  # arm: up to which pull it makes one per call
        self._fled: dict[int, Slot] = {}  # where a lost one was
        self._pace = [0.0] * len(stage.entries)  # seconds of the newest pull
        self._heard = self._said = monotonic()
        self._ray = self._cluster.open().ray
        self._places = Places(self._cluster, self._wanted, len(stage.entries))
        recipes = recipes_of(stage.entries)
        self._cluster.need_same_version()
        self._recipes = self._ray.put(recipes)  # once for each machine
        need_recipes(self._cluster, self._recipes)
        self._share_storage()
        self._places.open()
        self.lanes = self._places.lanes

    def _share_storage(self) -> None:
        checkpoints = self._stage.checkpoints
        if self._given is not None:
            root = storage_at(self._given)
            checkpoints.move_to(
                Folder(f"{root.root}/{checkpoints.race}") if isinstance(root, Folder)
                else storage_at(f"{self._given.rstrip('/')}/{checkpoints.race}")
            )  # fmt: skip
        need_shared(self._cluster, checkpoints.storage, self._given)

    # --- the race ---

    def work(self, session: Field) -> Iterator[Report]:
        while not session.over and (self._calls or not self.held):
            if not self.held:
                self._send(session)
            yield from self._hear(session)

    def _send(self, session: Field) -> None:
        """Give work to the racing learners that have none, the longest first."""
        self._places.look_for_more()
        self.lanes = max(1, self._places.lanes)
        if session.opens:
            session.top_up(self._batch or self.lanes)
        wanted = session.ask_phase(self._batch or self.lanes)
        starting = sum(not call.trains for call in self._calls.values())
        for arm in [arm for arm in wanted if arm not in self._hands][: self.lanes - starting]:
            self._hire(arm)
        busy = {call.arm for call in self._calls.values()}
        idle = [arm for arm in wanted if arm in self._hands and arm not in busy]
        idle.sort(key=lambda arm: (-wanted[arm] * self._expected(arm), arm))
        training = [call.hand.slot for call in self._calls.values() if call.trains]
        free = self._places.free(training)
        for arm in idle:
            hand = self._hands[arm]
            if free[self._places.key(hand.slot)] <= 0:
                continue
            free[self._places.key(hand.slot)] -= 1
            if hand.ready:
                careful = hand.done < self._careful.get(arm, 0)
                count = 1 if careful else wanted[arm]
                self._train(arm, hand, count, not session.opens and count == wanted[arm])
            else:
                self._prepare(arm, hand, session.had(arm))

    def _expected(self, arm: int) -> float:
        """Seconds of its next pull: those of its newest, or of the others' at first."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    def _hire(self, arm: int) -> None:
        """Start a process for a learner, where there is a machine."""
        slot = self._places.settle(arm, self._fled.pop(arm, None))
        if slot is None:
            return
        stage = self._stage
        setup = Setup(arm, stage.checkpoints.storage, stage.saving.every, stage.timeout)
        kind = self._ray.remote(max_restarts=0, max_task_retries=0)(Trainer)
        made = kind.options(**self._places.options(slot)).remote(setup, self._recipes)
        hand = self._hands[arm] = Hand(made, slot)
        self._calls[made.hello.remote()] = Call(hand, arm, monotonic())

    def _prepare(self, arm: int, hand: Hand, done: int) -> None:
        ref = hand.actor.prepare.remote(*self._where(arm, done))
        self._calls[ref] = Call(hand, arm, monotonic(), start=done)

    def _where(self, arm: int, done: int) -> tuple[int, list[Kept], list[float]]:
        """What brings a learner to `done` pulls."""
        if not done:
            return 0, [], []
        return done, self._stage.checkpoints.known(arm, done), self._stage.recorded(arm)

    def _train(self, arm: int, hand: Hand, count: int, ends_phase: bool) -> None:
        ref = hand.actor.train.remote(hand.done, count, ends_phase)
        self._calls[ref] = Call(hand, arm, monotonic(), count, hand.done)

    # --- what comes back ---

    def _hear(self, session: Field) -> Iterator[Report]:
        if not self._calls:
            self._places.need_one()
            return
        ready, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=self._tick())
        for ref in ready:
            self._heard = monotonic()
            yield from self._answered(session, self._calls.pop(ref), ref)
        if not ready:
            yield from self._overdue()
            self._move_from_lost_machines()
            yield Waiting(self._stragglers(session))

    def _tick(self) -> float:
        timeout = self._stage.timeout
        return TICK if timeout is None else min(TICK, timeout / 4)

    def _answered(self, session: Field, call: Call, ref: Any) -> Iterator[Report]:
        arm = call.arm
        try:
            answer = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            yield self._lost(call, error)
            return
        if isinstance(answer, Batch):
            yield from self._batch_of(session, call, answer)
        elif answer == HELLO:
            call.hand.up = True
        elif isinstance(answer, Ready):
            call.hand.ready, call.hand.done = True, call.start
            yield from (Note(arm, text) for text in answer.notes)
            if call.start:
                yield Restored(arm, answer.seconds)
        else:
            yield answer

    def _batch_of(self, session: Field, call: Call, batch: Batch) -> Iterator[Report]:
        arm, hand = call.arm, call.hand
        for score, seconds in batch.pulls:
            if not session.takes(arm):  # the race was planned anew: these are not counted
                self.again(arm)
                return
            hand.done += 1
            self._pace[arm] = seconds
            yield Pulled(arm, score, seconds)
            if self._hands.get(arm) is not hand:  # it is out
                return
        if batch.end is not None:
            yield batch.end
        elif isinstance(batch.stored, Stored):
            yield Saved(arm, hand.done, batch.stored)
        elif batch.stored is not None:
            yield Unsaved(arm, batch.stored)

    # --- what does not come back ---

    def _lost(self, call: Call, error: Exception) -> Trouble:
        """A process is gone: killed, out of memory, or its machine has left."""
        arm = call.arm
        self._fled[arm] = call.hand.slot
        self._once_more(call)
        self._look()
        return Trouble(arm, "lost", f"its process was lost ({type(error).__name__})", str(error))

    def _once_more(self, call: Call) -> None:
        """End a process. Its pulls are made again one by one, to know in which it goes wrong."""
        self.again(call.arm)
        self._careful[call.arm] = call.start + call.pulls

    def _look(self) -> None:
        self._places.look()
        self.lanes = max(1, self._places.lanes)

    def _overdue(self) -> Iterator[Report]:
        """End pulls that take longer than `timeout`; a process can be ended, unlike a thread."""
        timeout = self._stage.timeout
        if timeout is None:
            return
        limit = timeout + SLICE + GRACE
        late = [call for call in self._calls.values()
                if call.pulls and monotonic() - call.sent > limit]  # fmt: skip
        for call in late:
            self._once_more(call)
            if call.pulls == 1:
                yield Trouble(call.arm, "timeout", str(TooLong(timeout)))

    def _move_from_lost_machines(self) -> None:
        """A learner that is to be built on a machine that has left is built elsewhere."""
        waits = [call for call in self._calls.values() if not call.hand.ready]
        if any(monotonic() - call.sent > LATE for call in waits):
            self._look()
            for call in waits:
                if call.hand.slot.node is None:
                    self.again(call.arm)

    def _stragglers(self, session: Field) -> tuple[int, ...]:
        """Who is waited for, where others have had nothing to do for a while."""
        now = monotonic()
        idle = len(self._calls) < min(self._places.lanes, len(session.movers))
        if not idle or now - self._heard < LATE or now - self._said < EVERY:
            return ()
        self._said = now
        return tuple(sorted(call.arm for call in self._calls.values()))

    # --- what the driver asks for ---

    def again(self, arm: int) -> None:
        hand = self._hands.pop(arm, None)
        if hand is None:
            return
        self._calls = {ref: call for ref, call in self._calls.items() if call.hand is not hand}
        self._places.leave(arm)
        with suppress(Exception):  # it may be dead already, or its machine
            self._ray.kill(hand.actor)

    release = again

    def save(self, pulls: Mapping[int, int]) -> Iterator[Report]:
        busy = {call.arm for call in self._calls.values()}
        calls = {
            arm: self._hands[arm].actor.save.remote()
            for arm, n in pulls.items()
            if arm in self._hands and arm not in busy and self._hands[arm].done == n
        }
        for arm, call in calls.items():
            with suppress(self._ray.exceptions.RayError):  # lost: then there is nothing to save
                stored = self._ray.get(call)
                if isinstance(stored, Stored):
                    yield Saved(arm, pulls[arm], stored)
                elif stored is not None:
                    yield Unsaved(arm, stored)

    def learner(self, arm: int, pulls: int) -> Any:
        for left in reversed(range(TRIES)):
            try:
                hand = self._standing(arm, pulls)
                answer = self._ray.get(hand.actor.fetch.remote())
                break
            except self._ray.exceptions.RayError:
                self.again(arm)
                self._look()
                if not left:
                    raise
        if isinstance(answer, bytes):
            return pickle.loads(answer)  # of our own actor
        return self._by_checkpoint(arm, pulls, hand, answer)

    def _standing(self, arm: int, pulls: int) -> Hand:
        """The learner after `pulls` pulls: live where it stands there, else brought back."""
        hand = self._hands.get(arm)
        busy = any(call.arm == arm for call in self._calls.values())
        if hand is not None and hand.ready and hand.done == pulls and not busy:
            return hand
        self.again(arm)
        self._places.need_one()
        self._hire(arm)
        hand = self._hands[arm]
        answer = self._ray.get(hand.actor.prepare.remote(*self._where(arm, pulls)))
        self._calls = {ref: call for ref, call in self._calls.items() if call.hand is not hand}
        if isinstance(answer, Trouble):
            raise LearnerError(answer.reason)
        hand.ready, hand.done = True, pulls
        self.notes += [Note(arm, text) for text in answer.notes]
        return hand

    def _by_checkpoint(self, arm: int, pulls: int, hand: Hand, why: str) -> Any:
        """A winner that cannot be pickled: by its own save and load, or not at all."""
        stage = self._stage
        stored = self._ray.get(hand.actor.save.remote())
        if isinstance(stored, Stored):
            known = [Kept(arm, pulls, place_of(arm, pulls), stored.digest)]
            order = Order(
                stage.entries[arm], pulls, known, stage.recorded(arm), stage.checkpoints.storage
            )
            return trained(bring(order, directly, lambda learner: 0).learner)
        text = (
            f"it was trained in another process and cannot be handed over ({why}): give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        self.notes.append(Note(arm, text))
        return None

    def stop(self) -> None:
        if getattr(self, "_ray", None) is None:  # it never started
            self._cluster.close()
            return
        with suppress(Exception):  # the cluster may be gone, with all that is let go of here
            for arm in list(self._hands):
                self.again(arm)
            self._places.close()
        self._cluster.close()
