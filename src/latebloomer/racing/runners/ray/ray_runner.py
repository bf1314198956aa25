"""The runner that trains on Ray: it sends pulls to actors and reports what comes back."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar

from latebloomer.cluster import Cluster
from latebloomer.errors import ClusterError, LearnerError, need_whole, require
from latebloomer.racing.checkpoints.checkpoints import place_of
from latebloomer.racing.checkpoints.restore import Order, bring
from latebloomer.racing.checkpoints.storage import Stored, storage_at
from latebloomer.racing.journal.journal import Kept
from latebloomer.racing.learner import trained
from latebloomer.racing.runners.contract import (
    Note,
    Pulled,
    Report,
    Restored,
    Runner,
    Saved,
    Stage,
    TooLong,
    Trouble,
    Unsaved,
    Waiting,
    directly,
    reason_of,
)
from latebloomer.racing.runners.ray.actor import Batch, Ready
from latebloomer.racing.runners.ray.actor_pool import (
    BRING,
    LATE,
    SAVE,
    START,
    TRAIN,
    Call,
    Crew,
    Hand,
)
from latebloomer.racing.runners.ray.packing import recipes_of, unpacked
from latebloomer.racing.runners.ray.preflight import need_recipes, need_shared
from latebloomer.racing.runners.ray.slots import PATIENCE, Places, needed
from latebloomer.session.field import Field

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
    learners busy (as many as there is room for, if not given).
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
        self._storage = None if storage is None else storage_at(storage)
        if batch is not None:
            require(need_whole("batch", batch) >= 1, "batch", batch, "at least 1",
                    "it is how many learners are pulled at once")  # fmt: skip
        self._batch = batch
        self._places: Places | None = None

    # --- the start ---

    def start(self, stage: Stage) -> None:
        self.held, self._stage, self._places = False, stage, None
        self._pace = [0.0] * len(stage.entries)  # seconds of the newest pull
        self._heard = self._said = self._looked = monotonic()
        self._ray = self._cluster.open().ray
        self._recipes = recipes_of(stage.entries)
        self._cluster.need_same_version()
        sent = self._ray.put(self._recipes)  # once for each machine
        need_recipes(self._cluster, sent)
        if self._storage is not None:
            stage.checkpoints.move_to(self._storage.under(stage.checkpoints.race))
        need_shared(self._cluster, stage.checkpoints.storage)
        places = Places(self._cluster, self._wanted, len(stage.entries))
        self._places, self._crew = places, Crew(self._ray, places, stage, sent)
        places.open()
        self.lanes = places.lanes

    # --- the race ---

    def work(self, session: Field) -> Iterator[Report]:
        while not session.over and (self._crew.calls or not self.held):
            if not self.held:
                self._send(session)
            yield from self._hear(session)

    def hold(self) -> None:
        super().hold()
        for call in self._crew.calls:
            if call.kind in (START, BRING):  # nothing that would be lost
                self._crew.dismiss(call.arm)

    def _send(self, session: Field) -> None:
        """Give work to the racing learners that have none, the longest first."""
        crew, places = self._crew, self._all_places()
        places.look_for_more()
        crew.leave_lost_machines()
        self.lanes = max(1, places.lanes)
        if session.opens:
            session.top_up(self._batch or self.lanes)
        wanted = session.ask_phase(self._batch or self.lanes)
        crew.make_room(wanted)
        new = [arm for arm in wanted if arm not in crew.hands]
        for arm in new[: max(0, AHEAD * self.lanes - crew.starting())]:
            crew.hire(arm)
        idle = [arm for arm in wanted if crew.idle(arm)]
        idle.sort(key=lambda arm: (-wanted[arm] * self._expected(arm), arm))
        free = places.free(crew.training())
        for arm in idle:
            key = places.key(crew.hands[arm].slot)
            if free[key] > 0:
                free[key] -= 1
                self._give_work(session, arm, wanted[arm])

    def _give_work(self, session: Field, arm: int, wanted: int) -> None:
        if not self._crew.hands[arm].ready:
            self._crew.bring(arm, session.had(arm))
            return
        # A rule that reviews every sweep has phases of one pull: too short to save after each.
        phased = not session.opens and not session.policy.decides_after_sweeps()
        self._crew.train(arm, wanted, phased)

    def _expected(self, arm: int) -> float:
        """Seconds of its next pull: those of its newest, or of the others' at first."""
        known = [pace for pace in self._pace if pace]
        return self._pace[arm] or (sum(known) / len(known) if known else 1.0)

    # --- what comes back ---

    def _hear(self, session: Field) -> Iterator[Report]:
        if not self._crew.calls:
            yield self._nobody_works()
            return
        for call, ref in self._crew.returned(self._tick()):
            self._heard = monotonic()
            yield from self._answered(session, call, ref)
        if monotonic() - self._looked > self._tick():
            self._looked = monotonic()
            yield from self._overdue(session)
            yield Waiting(self._stragglers(session))

    def _tick(self) -> float:
        timeout = self._stage.timeout
        return TICK if timeout is None else min(TICK, timeout / 4)

    def _nobody_works(self) -> Waiting:
        """No machine has room for a learner: wait for one, but not for ever."""
        self._all_places().wait(TICK)
        if monotonic() - self._heard > PATIENCE:
            raise ClusterError(
                f"the Ray cluster has had no machine for any learner for {PATIENCE:g} s: the "
                "journal has all that was counted; resume(...) when there are machines again"
            )
        return Waiting(())

    def _answered(self, session: Field, call: Call, ref: Any) -> Iterator[Report]:
        arm, hand = call.arm, call.hand
        try:
            answer = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._lost(call)
            if session.takes(arm):
                what = f"its process was lost ({type(error).__name__})"
                yield Trouble(arm, "lost", what, str(error))
            return
        if call.kind == TRAIN:
            yield from self._batch_of(session, hand, answer)
        elif call.kind == SAVE:
            yield from _saved(arm, call.start, answer)
        elif isinstance(answer, Ready):
            hand.ready, hand.done = True, call.start
            yield from (Note(arm, text) for text in answer.notes)
            if call.start:
                yield Restored(arm, answer.seconds)
        elif isinstance(answer, Trouble):
            yield from self._trouble(session, answer)

    def _batch_of(self, session: Field, hand: Hand, batch: Batch) -> Iterator[Report]:
        arm = hand.arm
        for score, seconds in batch.pulls:
            if not session.takes(arm):  # the race was planned anew: these are not counted
                self.again(arm)
                return
            hand.done += 1
            self._pace[arm] = seconds
            yield Pulled(arm, score, seconds)
            if self._crew.hands.get(arm) is not hand:  # it is out
                return
        if isinstance(batch.end, Trouble):
            yield from self._trouble(session, batch.end)
        elif batch.end is not None and session.takes(arm):
            yield batch.end
        elif batch.due:
            self._crew.save(arm)

    def _trouble(self, session: Field, trouble: Trouble) -> Iterator[Report]:
        """A failure counts where the pull is still asked for; the process is of no use."""
        if session.takes(trouble.arm):
            yield trouble
        else:
            self.again(trouble.arm)

    # --- what does not come back ---

    def _lost(self, call: Call) -> None:
        """A process is gone: killed, out of memory, or its machine has left."""
        self._crew.once_more(call)
        self._all_places().look()

    def _overdue(self, session: Field) -> Iterator[Report]:
        timeout = self._stage.timeout
        for call in [] if timeout is None else self._crew.overdue(timeout):
            self._crew.once_more(call)
            if call.pulls == 1 and session.takes(call.arm):
                yield Trouble(call.arm, "timeout", str(TooLong(timeout or 0.0)))

    def _stragglers(self, session: Field) -> tuple[int, ...]:
        """Who is waited for, where others have had nothing to do for a while."""
        now, calls = monotonic(), self._crew.calls
        idle = len(calls) < min(self.lanes, len(session.movers))
        late = all(now - call.sent > LATE for call in calls)
        if not (calls and idle and late) or now - self._said < EVERY:
            return ()
        self._said = now
        return tuple(sorted(call.arm for call in calls))

    # --- what the driver asks for ---

    def again(self, arm: int) -> None:
        self._crew.dismiss(arm)

    def release(self, arm: int) -> None:
        self._crew.dismiss(arm)

    def save(self, pulls: Mapping[int, int]) -> Iterator[Report]:
        hands = self._crew.hands
        live = {arm: hands[arm] for arm in pulls if self._crew.idle(arm) and hands[arm].ready}
        calls = {
            arm: hand.actor.save.remote() for arm, hand in live.items() if hand.done == pulls[arm]
        }
        for arm, ref in calls.items():
            with suppress(self._ray.exceptions.RayError):  # lost: then there is nothing to save
                yield from _saved(arm, pulls[arm], self._get(ref, live[arm]))

    def learner(self, arm: int, pulls: int) -> Any:
        for left in reversed(range(TRIES)):
            try:
                return self._fetched(arm, pulls)
            except self._ray.exceptions.RayError:
                self.again(arm)
                self._all_places().look()
                if not left:
                    raise
        return None

    def _fetched(self, arm: int, pulls: int) -> Any:
        hand = self._standing(arm, pulls)
        answer = why = self._get(hand.actor.fetch.remote(), hand)
        if isinstance(answer, bytes):
            try:
                return pickle.loads(answer)  # of our own actor
            except Exception as error:  # of a GPU or a module that is not here
                why = reason_of(error)
        try:
            return self._by_load(hand)
        except LearnerError:
            text = (
                f"it was trained in another process and cannot be handed over ({why}): give it "
                "save(folder) and load(folder), or let a generator yield (score, model)"
            )
            self.notes.append(Note(arm, text))
            return None

    def _standing(self, arm: int, pulls: int) -> Hand:
        """The learner after `pulls` pulls: live where it stands there, else brought back."""
        hand = self._crew.hands.get(arm)
        if hand is not None and hand.ready and hand.done == pulls and self._crew.idle(arm):
            return hand
        self.again(arm)
        for other in list(self._crew.hands):  # nothing else is needed any more
            self.again(other)
        self._all_places().need_one()
        self._crew.hire(arm)
        hand = self._crew.hands[arm]
        answer = self._get(hand.actor.prepare.remote(*self._crew.where(arm, pulls)), hand)
        if isinstance(answer, Trouble):
            raise LearnerError(answer.reason)
        hand.ready, hand.done = True, pulls
        self._crew.forget_calls(hand)
        self.notes += [Note(arm, text) for text in answer.notes]
        return hand

    def _get(self, ref: Any, hand: Hand) -> Any:
        """Wait for an answer, as long as its machine is there."""
        while not self._ray.wait([ref], timeout=TICK)[0]:
            self._all_places().look()
            if hand.slot.node is None:
                raise self._ray.exceptions.RayActorError
        return self._ray.get(ref)

    def _by_load(self, hand: Hand) -> Any:
        """A winner that cannot be pickled, by its own save and load."""
        arm, pulls, checkpoints = hand.arm, hand.done, self._stage.checkpoints
        known = [kept for kept in checkpoints.listed(arm, pulls) if kept.n == pulls]
        if not known:
            stored = self._get(hand.actor.save.remote(), hand)
            if not isinstance(stored, Stored):
                raise LearnerError(stored or "it has no save and load")
            self.notes.append(Saved(arm, pulls, stored))
            known = [Kept(arm, pulls, place_of(arm, pulls), stored.digest)]
        entry = unpacked(self._recipes)[arm]  # a copy: an object that was given stays as it is
        order = Order(entry, pulls, known, self._stage.recorded(arm), checkpoints.storage)
        try:
            return trained(bring(order, directly, lambda learner: 0).learner)
        except Exception as error:  # the learner's own: what it needs is not on this machine
            raise LearnerError(reason_of(error)) from error

    # --- the end ---

    def stop(self) -> None:
        try:
            with suppress(Exception):  # the cluster may be gone, with all that is let go of here
                if self._places is not None:
                    for arm in list(self._crew.hands):
                        self.again(arm)
                    self._places.close()
        finally:
            with suppress(Exception):
                self._cluster.close()

    def _all_places(self) -> Places:
        if self._places is None:
            raise ClusterError("the Ray runner has not been started: race(..., runner=...) does")
        return self._places


def _saved(arm: int, n: int, stored: Stored | str | None) -> Iterator[Report]:
    """What came of saving; nothing where the learner cannot be saved."""
    if isinstance(stored, Stored):
        yield Saved(arm, n, stored)
    elif stored is not None:
        yield Unsaved(arm, stored)
