"""The actors of a race and the calls that are under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from latebloomer.racing.journal.journal import Kept
from latebloomer.racing.runners.contract import Stage
from latebloomer.racing.runners.ray.actor import SLICE, Setup, Trainer
from latebloomer.racing.runners.ray.slots import Places, Slot

START, BRING, TRAIN, SAVE = "start", "bring", "train", "save"  # kinds of call
GRACE = 2.0  # seconds that a call may be under way besides training
LATE = 10.0  # seconds after which a learner that is not built yet may be on a lost machine


@dataclass(eq=False)
class Hand:
    """An actor: a learner in a process somewhere."""

    arm: int
    actor: Any
    slot: Slot
    ready: bool = False  # its learner is built
    done: int = 0  # pulls that it has had, as far as the race knows


@dataclass(frozen=True)
class Call:
    """A call that is under way."""

    hand: Hand
    kind: str
    sent: float
    pulls: int = 0  # to be made
    start: int = 0  # pulls that the learner has had before, or is brought to

    @property
    def arm(self) -> int:
        return self.hand.arm


class Crew:
    """Starts processes, calls them, and ends them; each has one call at a time."""

    def __init__(self, ray: Any, places: Places, stage: Stage, recipes: Any) -> None:
        self._ray, self._places, self._stage, self._recipes = ray, places, stage, recipes
        self.hands: dict[int, Hand] = {}
        self._calls: dict[Any, Call] = {}
        self._fled: dict[int, Slot] = {}  # where one that was lost had been
        self._careful: dict[int, int] = {}  # arm: up to which pull it makes one per call

    # --- what is under way ---

    @property
    def calls(self) -> list[Call]:
        return list(self._calls.values())

    def idle(self, arm: int) -> bool:
        """Whether an arm has a process that can be called."""
        return arm in self.hands and all(call.arm != arm for call in self.calls)

    def starting(self) -> int:
        """Processes that do not answer yet; they take no lane."""
        return sum(call.kind == START for call in self.calls)

    def training(self) -> Iterator[Slot]:
        """The slot of each call that takes a lane."""
        return (call.hand.slot for call in self.calls if call.kind != START)

    def returned(self, timeout: float) -> list[tuple[Call, Any]]:
        """Calls that have ended, with what to get; none after `timeout` seconds."""
        if not self._calls:
            return []
        ready, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=timeout)
        return [(self._calls.pop(ref), ref) for ref in ready]

    # --- calling ---

    def hire(self, arm: int) -> None:
        """Start a process for a learner, where there is a machine."""
        slot = self._places.settle(arm, self._fled.pop(arm, None))
        if slot is None:
            return
        stage = self._stage
        setup = Setup(arm, stage.checkpoints.storage, stage.saving.every, stage.timeout)
        kind = self._ray.remote(max_restarts=0, max_task_retries=0)(Trainer)
        actor = kind.options(**self._places.options(slot)).remote(setup, self._recipes)
        hand = self.hands[arm] = Hand(arm, actor, slot)
        self._sent(actor.hello.remote(), Call(hand, START, monotonic()))

    def bring(self, arm: int, done: int) -> None:
        """Let a learner be built and brought to `done` pulls."""
        hand = self.hands[arm]
        ref = hand.actor.prepare.remote(*self.where(arm, done))
        self._sent(ref, Call(hand, BRING, monotonic(), start=done))

    def where(self, arm: int, done: int) -> tuple[int, list[Kept], list[float]]:
        """What brings a learner to `done` pulls."""
        if not done:
            return 0, [], []
        return done, self._stage.checkpoints.listed(arm, done), self._stage.recorded(arm)

    def train(self, arm: int, wanted: int, phased: bool) -> None:
        """Let a learner make pulls, `wanted` of them where all goes well."""
        hand = self.hands[arm]
        count = 1 if hand.done < self._careful.get(arm, 0) else wanted
        ref = hand.actor.train.remote(hand.done, count, phased and count == wanted)
        self._sent(ref, Call(hand, TRAIN, monotonic(), count, hand.done))

    def save(self, arm: int) -> None:
        """Let a learner save its state."""
        hand = self.hands[arm]
        self._sent(hand.actor.save.remote(), Call(hand, SAVE, monotonic(), start=hand.done))

    def _sent(self, ref: Any, call: Call) -> None:
        self._calls[ref] = call

    def forget_calls(self, hand: Hand) -> None:
        """Whoever waits for this hand does that elsewhere."""
        self._calls = {ref: call for ref, call in self._calls.items() if call.hand is not hand}

    # --- ending ---

    def dismiss(self, arm: int) -> None:
        """End a learner's process; what it was doing is not heard of any more."""
        hand = self.hands.pop(arm, None)
        if hand is None:
            return
        self.forget_calls(hand)
        self._places.leave(arm)
        with suppress(Exception):  # it may be dead already, or its machine
            self._ray.kill(hand.actor)

    def once_more(self, call: Call) -> None:
        """End a process. Its pulls are made again one by one, to know in which it goes wrong."""
        self.dismiss(call.arm)
        self._fled[call.arm] = call.hand.slot
        if call.kind == TRAIN:
            self._careful[call.arm] = call.start + call.pulls

    def overdue(self, timeout: float) -> list[Call]:
        """Pulls that take longer than allowed; a process can be ended, unlike a thread."""
        limit = timeout + SLICE + GRACE
        now = monotonic()
        return [call for call in self.calls if call.kind == TRAIN and now - call.sent > limit]

    def leave_lost_machines(self) -> None:
        """End what is on machines that have left, unless it has a call that will say so.

        An idle learner has none, and one that is to be built there would wait for ever.
        """
        calls = {call.arm: call for call in self.calls}
        for arm, hand in list(self.hands.items()):
            call = calls.get(arm)
            waits = call is not None and call.kind in (START, BRING)
            if hand.slot.node is None and (
                call is None or (waits and monotonic() - call.sent > LATE)
            ):
                self.dismiss(arm)

    def make_room(self, wanted: dict[int, int]) -> None:
        """Where a learner finds no place, end one that has nothing to do in this phase."""
        homeless = [arm for arm in wanted if arm not in self.hands]
        spare = [arm for arm in self.hands if arm not in wanted and self.idle(arm)]
        if homeless and spare and self._places.full():
            self.dismiss(spare[0])
