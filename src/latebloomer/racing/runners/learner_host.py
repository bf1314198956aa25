"""One learner where it is trained: in this process, in a child process or in a Ray actor.

A host answers calls with plain values and never decides anything. An exception of the learner is
an answer too. Only the loss of a process, and a call that takes too long, are seen from outside:
`LimitedHost` makes answers of these.

To other processes go the functions that build learners, pickled, with the folders of their
modules. Back comes the trained winner: pickled, or by its save and load. Pickles go from the
driver to its own processes and back, never to or from anyone else.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from latebloomer._util.text import printable, reason_of, shortened
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints import saved_states
from latebloomer.racing.checkpoints.saved_states import Restorable, SavedStates
from latebloomer.racing.checkpoints.storage import Storage, place_of
from latebloomer.racing.learner import Entry, already_had, as_score, can_save, steps_of, trained
from latebloomer.racing.runners.contract import HandedOver, Report
from latebloomer.racing.runners.own_state import OwnStates
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

LONGEST = 12_000  # characters of a traceback that are kept
SLICE = 0.25  # seconds of pulls in one call of `train`: some 200 times what a call costs on Ray
BARE = (
    "it yields only scores and trains in another process, so nothing of it can be returned if it "
    "wins. Let it yield (score, model)"
)
Saving: TypeAlias = Callable[[], Saved | SaveFailed | None]
PullReport: TypeAlias = ScoreReported | events.LearnerLeft | PullFailed


class Ready(NamedTuple):
    """The learner is restored; the verdict should mention the notes."""

    notes: list[str]
    repeated: int  # pulls that were trained again


class Batch(NamedTuple):
    """Pulls that were made in one call."""

    reports: list[PullReport]  # scores, and why there are no more
    only_scores: bool  # whether the learner is a generator without a model


class LearnerHost:
    """Builds a learner, trains it and saves it; packed learners, in its own process."""

    def __init__(
        self, arm: int, given: Entry | PackedLearners, states: OwnStates | None = None
    ) -> None:
        self.arm, self._given = arm, given
        self.apart = isinstance(given, PackedLearners)  # Ctrl-C does not arrive here
        self._states = OwnStates() if states is None else states
        self.learner: Any = None
        self.seed = 0
        self.done = 0  # pulls that it has had
        self.lost = False  # whether it cannot be used any more

    def hello(self) -> None:
        """Answer that the process is running."""

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build the learner and bring it to its pulls."""
        try:
            if isinstance(self._given, PackedLearners):
                self._given = unpack(self._given)[self.arm]  # the others are not needed here
            self.seed, self.done = self._given.seed, at.saved.n if at.saved else 0
            self._states.enter(self)
            self.learner, notes, repeated = saved_states.restore(self._given, at, self._pull_of)
        except BaseException as error:  # in the learner's code or its modules
            return self._failure(at.done + 1, error, "restore")
        self.done = at.done
        return Ready(notes, repeated)

    def _pull_of(self, learner: Any) -> Any:
        self._states.enter(self)
        return learner.pull()

    def pull(self) -> PullReport:
        """Make one pull."""
        self._states.enter(self)
        began = perf_counter()
        try:
            value = self.learner.pull()
        except StopIteration:
            return self._finished()
        except BaseException as error:
            seconds = perf_counter() - began
            return replace(self._failure(self.done + 1, error, "exception"), seconds=seconds)
        seconds = perf_counter() - began
        try:
            score = as_score(value)
        except LearnerError as error:
            return PullFailed(self.arm, self.done + 1, "score", str(error), seconds=seconds)
        self.done += 1
        return ScoreReported(self.arm, score, seconds, steps_of(self.learner))

    def train(self, start: int, count: int) -> Batch:
        """Make up to `count` pulls within about `SLICE` seconds, after `start` earlier ones."""
        if self.done != start:
            text = f"it has had {self.done} pulls and should have had {start}"
            return Batch([PullFailed(self.arm, start + 1, "lost", text)], False)
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
        return events.LearnerLeft(
            self.arm, events.FINISHED, f"finished after {n} pull{'s' * (n != 1)}"
        )

    def _failure(self, n: int, error: BaseException, kind: str) -> PullFailed:
        """Return the failure that an exception in the learner's code is; Ctrl-C is none."""
        if isinstance(error, KeyboardInterrupt) and not self.apart:
            raise error
        details = shortened("".join(traceback.format_exception(error)), LONGEST)
        return PullFailed(self.arm, n, kind, reason_of(error), printable(details))

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        """Save the state; None if there is no save and load, and it is not to be pickled."""
        learner, place = self.learner, place_of(self.arm, self.done)
        if not (pickled or can_save(learner)):
            return None
        self._states.enter(self)
        own = learner.save if can_save(learner) else partial(saved_states.pickle_learner, learner)
        try:
            stored = storage.keep(place, own)
        except BaseException as error:  # of the learner's own code, or of the disk
            reason = self._failure(self.done + 1, error, "save").reason
            return SaveFailed(self.arm, self.done, reason)
        return Saved(self.arm, self.done, place, *stored)

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why it cannot be pickled."""
        try:
            return dumps(trained(self.learner))
        except BaseException as error:  # of the learner's own pickling
            return reason_of(error)

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return saved_states.is_bare(trained(self.learner))

    def close(self) -> None:
        """Free the learner."""
        self.learner = None


# --- to other processes ---


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes | Sequence[Entry]  # one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules


def pack(entries: Sequence[Entry], copied: bool = False) -> PackedLearners:
    """Return the learners for other processes; raise an error that names one that cannot be sent.

    For processes that are a copy of this one they are not pickled.
    """
    for entry in entries:
        if not entry.rebuilds:
            already_had(entry.given, 0)  # one that was trained here does not begin there
    if copied:
        return PackedLearners(entries, ())
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            try:
                dumps(entry)
            except Exception as error:
                raise LearnerError(
                    f"learner {entry.name!r} cannot be sent to another process "
                    f"({type(error).__name__}: {error}): give a function that makes what it needs "
                    "(files, locks, connections, models on a GPU) when it is called"
                ) from error
        raise


def dumps(value: object) -> bytes:
    """Return a pickle; by cloudpickle if it is installed, which takes interactive functions."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return bytes(import_module(module).dumps(value))
    return pickle.dumps(value)


def unpack(packed: PackedLearners) -> Sequence[Entry]:
    """Return the learners in the process that builds them; search the driver's folders too."""
    if not isinstance(packed.entries, bytes):
        return packed.entries
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    entries: list[Entry] = pickle.loads(packed.entries)
    return entries


# --- and back ---


def hand_over(
    states: SavedStates, entry: Entry, arm: int, pulls: int, fetched: bytes | str, save: Saving
) -> HandedOver:
    """Return the learner from what its process answered: its pickle, or why there is none.

    `save` lets its process save it now.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), [])  # written by our own process
        except Exception as error:  # of a GPU or a module that is not here
            why = reason_of(error)
    reports: list[Report] = []
    try:
        at = states.restorable(arm, pulls, seen=False)
        if at.saved is None or at.saved.n != pulls:
            saved = save()
            if not isinstance(saved, Saved):
                raise LearnerError("it cannot be saved")
            reports.append(saved)
            at = at._replace(saved=saved, storage=states.storage)
        learner, _, _ = saved_states.restore(entry, at)
        return HandedOver(trained(learner), reports)
    except Exception:  # the learner's own: what it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*reports, events.WarningNoted(arm, text)])
