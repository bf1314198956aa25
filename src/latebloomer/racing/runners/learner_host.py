"""Hosts: objects that train one learner, in this process, a child process or a Ray actor.

A host answers calls with plain values and decides nothing. An exception of the learner is an
answer, too. Only the loss of a process and a call that takes too long are noticed from outside
(`time_limits.py`, `child_process.py`, `ray_actors.py`).
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import Enum
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from latebloomer._util.text import brief, printable, reason_of, shortened
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints import restored_learners
from latebloomer.racing.checkpoints.saved_states import Restorable, SavedStates
from latebloomer.racing.checkpoints.storage import Storage, place_of
from latebloomer.racing.journal.value_codec import NotPlain, decoded, encoded
from latebloomer.racing.learners.entries import Entry, note_pulls
from latebloomer.racing.learners.learner import (
    as_score,
    bare,
    can_save,
    count_again,
    details_of,
    row_scores_of,
    steps_of,
    trained,
)
from latebloomer.racing.runners.native_threads import NativeThreads
from latebloomer.racing.runners.own_objects import need_own_object
from latebloomer.racing.runners.packing import PackedLearners, dumps, unpack
from latebloomer.racing.runners.process_state import OwnStates, read_numbers, save_with_numbers
from latebloomer.racing.runners.runner import HandedOver, Report
from latebloomer.racing.runners.turns import TURNS
from latebloomer.session import events
from latebloomer.session.events import LOST, PullFailed, Saved, SaveFailed, ScoreReported
from latebloomer.theory.leads import sign_sums

LONGEST = 12_000  # maximum characters of a stored traceback
SLICE = 0.25  # seconds of pulls in one call of `train`: about 200 times the cost of a call on Ray
BARE = (
    "it yields only scores and trains in another process, so nothing of it can be returned if it "
    "wins. Let it yield (score, model)"
)


PullReport: TypeAlias = ScoreReported | events.LearnerLeft | PullFailed


class Ready(NamedTuple):
    """The answer that a learner is restored, with warnings for the verdict."""

    notes: list[str]
    repeated: int  # number of pulls that were repeated


class Batch(NamedTuple):
    """The answer with the pulls that were made in one call."""

    reports: list[PullReport]  # scores, and the reason why there are no more
    only_scores: bool  # whether the learner is a generator without a model


class Call(Enum):
    """The calls of a host: the name of the method, and words that describe the call."""

    START = "hello", "starting its process"
    RESTORE = "prepare", "building it"
    PULL = "pull", "a pull"
    TRAIN = "train", "a pull"
    SAVE = "save", "saving it"
    SCORE_ROWS = "score_rows", "scoring its rows"
    FETCH = "fetch", "fetching it"
    ASK_WHETHER_BARE = "yields_only_scores", "asking what it yields"

    @property
    def method(self) -> str:
        """Name of the host's method."""
        return self.value[0]

    @property
    def words(self) -> str:
        """Words that say what happens to the learner during the call."""
        return self.value[1]


class Host(ABC):
    """The place that trains one learner: a thread of this process, a child process or an actor."""

    arm: int
    done: int  # number of pulls that the learner has had
    lost: bool  # True if the host can no longer be used

    @abstractmethod
    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build the learner and restore it to its number of pulls."""

    @abstractmethod
    def pull(self) -> PullReport:
        """Make one pull."""

    @abstractmethod
    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        """Save the state; return None if the learner cannot save and must not be pickled."""

    @abstractmethod
    def score_rows(self) -> events.RowsScored | events.WarningNoted | None:
        """Return the sums of the learner's row scores to store; None if it has none."""

    @abstractmethod
    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be saved."""

    @abstractmethod
    def hand_over(self, states: SavedStates, pickled: bool, reports: list[Report]) -> HandedOver:
        """Return the trained learner in this process, and reports for the race to record."""

    @abstractmethod
    def note_pulls(self, pulls: int | None) -> None:
        """Store the number of pulls of an object of this process; None: stopped in a pull."""

    @abstractmethod
    def close(self) -> None:
        """Release the learner."""


class LearnerHost(Host):
    """Build a learner, train it and save it; packed learners are for another process."""

    def __init__(
        self,
        arm: int,
        source: Entry | PackedLearners,
        states: OwnStates | None = None,
        threads: NativeThreads | None = None,
    ) -> None:
        self.arm, self._source = arm, source
        self.apart = isinstance(source, PackedLearners)  # then Ctrl-C does not reach this code
        self._states = OwnStates() if states is None else states
        self._threads = NativeThreads(None) if threads is None else threads
        self.learner: Any = None
        self.seed = 0
        self.done = 0  # number of pulls that the learner has had
        self.lost = False  # True if the host can no longer be used

    def hello(self) -> None:
        """Do nothing: the answer shows that the process is running."""

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        return TURNS.during(partial(self._prepare, at))

    def _prepare(self, at: Restorable) -> Ready | PullFailed:
        try:
            if isinstance(self._source, PackedLearners):
                # The other learners are not needed here.
                self._source = unpack(self._source)[self.arm]
            self.seed, self.done = self._source.seed, at.saved.n if at.saved else 0
            self._threads.limit()
            with self._states.calling(self):
                self.learner, notes, repeated = restored_learners.restore(
                    self._source, at, self._pull_of, read_numbers
                )
                need_own_object(self.learner)
        except BaseException as error:  # error in the learner's code or its modules
            return self._failure(at.done + 1, error, "restore")
        self.done = at.done
        return Ready(notes, repeated)

    def _pull_of(self, learner: Any) -> Any:
        self._threads.limit()
        with self._states.calling(self):
            return learner.pull()

    def pull(self) -> PullReport:
        # Until the pull is counted: the learner's random numbers are kept by its arm and pulls.
        return TURNS.during(self._pull)

    def _pull(self) -> PullReport:
        self._threads.limit()
        began = perf_counter()
        try:
            with self._states.calling(self):
                began = perf_counter()  # the time when the learner got its turn
                value = self.learner.pull()
        except StopIteration:
            return self._finished()
        except BaseException as error:
            seconds = perf_counter() - began
            count_again(self.learner, self.done)
            return replace(self._failure(self.done + 1, error, "exception"), seconds=seconds)
        seconds = perf_counter() - began
        try:
            score, details = as_score(value), self._details()
        except LearnerError as error:
            count_again(self.learner, self.done)
            return PullFailed(self.arm, self.done + 1, "score", str(error), seconds=seconds)
        self.done += 1
        return ScoreReported(self.arm, score, seconds, steps_of(self.learner), details)

    def _details(self) -> Mapping[str, Any] | None:
        """Return a copy of what the learner reports besides its score, as the journal has it.

        The learner may change its own dict in later pulls.
        """
        details = details_of(self.learner)
        if details is None:
            return None
        for key in details:
            if not isinstance(key, str):
                said = f"score_details has the key {brief(key)}, but its keys must be text"
                raise LearnerError(said)
        try:
            kept: dict[str, Any] = decoded(encoded(dict(details), "score_details"))
        except NotPlain as error:
            raise LearnerError(str(error)) from None
        return kept

    def train(self, start: int, count: int) -> Batch:
        """Make up to `count` pulls within about `SLICE` seconds, after `start` earlier ones."""
        if self.done != start:
            text = f"it has had {self.done} pulls and should have had {start}"
            return Batch([PullFailed(self.arm, start + 1, LOST, text)], False)
        until = perf_counter() + SLICE
        reports = [self.pull()]
        while (
            len(reports) < count and type(reports[-1]) is ScoreReported and perf_counter() < until
        ):
            reports.append(self.pull())
        return Batch(reports, self.yields_only_scores())

    def _finished(self) -> events.LearnerLeft | PullFailed:
        n = self.done
        if n == 0:
            text = "it ended before its first score"
            return PullFailed(self.arm, 1, "score", text, final=True)
        why = f"finished after {n} pull{'s' * (n != 1)}"
        return events.LearnerLeft(self.arm, events.FINISHED, why)

    def _failure(self, n: int, error: BaseException, kind: str) -> PullFailed:
        """Return the failure for an exception in the learner's code; raise Ctrl-C again."""
        if isinstance(error, KeyboardInterrupt) and not self.apart:
            raise error
        details = printable(shortened("".join(traceback.format_exception(error)), LONGEST))
        final = isinstance(error, LearnerError) and error.final
        return PullFailed(self.arm, n, kind, reason_of(error), details, final=final)

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        learner, place = self.learner, place_of(self.arm, self.done)
        if not (pickled or can_save(learner)):
            return None
        own = (
            learner.save
            if can_save(learner)
            else partial(restored_learners.pickle_learner, learner)
        )

        try:
            with self._states.calling(self):
                stored = storage.keep(place, partial(save_with_numbers, own))
        except BaseException as error:  # error in the learner's own code or of the disk
            reason = self._failure(self.done + 1, error, "save").reason
            return SaveFailed(self.arm, self.done, reason)
        return Saved(self.arm, self.done, *stored)

    def score_rows(self) -> events.RowsScored | events.WarningNoted | None:
        try:
            with self._states.calling(self):
                folds = row_scores_of(self.learner)
                kept = None if folds is None else sign_sums(folds)
        except Exception as error:  # error in the learner's own code
            text = f"its row scores are left out ({reason_of(error)})"
            return events.WarningNoted(self.arm, text)
        return None if kept is None else events.RowsScored(self.arm, self.done, **asdict(kept))

    def fetch(self) -> bytes | str:
        """Return the trained learner as a pickle, or text that says why it cannot be pickled."""
        try:
            with self._states.calling(self):
                return dumps(trained(self.learner))
        except BaseException as error:  # error in the learner's own pickling
            return reason_of(error)

    def yields_only_scores(self) -> bool:
        return restored_learners.is_bare(trained(self.learner))

    def hand_over(self, states: SavedStates, pickled: bool, reports: list[Report]) -> HandedOver:
        return HandedOver(trained(self.learner), reports)

    def note_pulls(self, pulls: int | None) -> None:
        note_pulls(bare(self.learner), pulls)

    def give_up(self) -> str:
        """Let a learner end what its abandoned call waits for; return what it last printed."""
        give_up = getattr(bare(self.learner), "give_up", None)
        return f". {give_up()}" if callable(give_up) else ""

    def close(self) -> None:
        """Release the learner, with its own modes in force, because a generator ends them."""
        with self._states.calling(self):
            self.learner = None
