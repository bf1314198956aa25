"""Functions that write the state of a learner and restore a learner from it.

A learner is restored from its latest checkpoint and then repeats the pulls after that checkpoint.

A generator cannot be restored: during a race it is trained again. But the verdict returns only its
model, so with a pickle of the model, a finished race can be resumed without training. A learner
without `save` and `load` is pickled if the number of learners in memory is limited
(`max_in_memory=`); a resumed race reads the pickle with or without this limit. docs/security.md
says when pickles are read.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from latebloomer._util.own_process import in_own_process
from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.saved_states import Restorable
from latebloomer.racing.checkpoints.storage import Storage, model_place, place_of
from latebloomer.racing.learners.entries import Entry, already_had, trained_before
from latebloomer.racing.learners.learner import (
    Learner,
    as_score,
    bare,
    can_save,
    stand_at,
    wrong_evaluation,
)
from latebloomer.session.events import ModelKept

MODEL = "model.pickle"
LEARNER = "latebloomer-learner.pickle"


def restore(
    entry: Entry,
    at: Restorable,
    pull: Callable[[Learner], Any] = lambda learner: learner.pull(),
    loaded: Callable[[Path], None] = lambda folder: None,
) -> tuple[Learner, list[str], int]:
    """Build a learner, load its state and repeat the pulls after that state.

    `pull` makes one pull; `loaded` is called with the folder of the checkpoint after the learner
    was loaded. Return the learner, warnings for the verdict, and the number of repeated pulls.
    """
    notes: list[str] = []
    learner, start = _from_checkpoint(entry, at, notes, loaded)
    attempts = at.attempts[at.attempts_saved :]
    if start is None:
        new = entry.rebuilds or not at.done
        start = 0 if new else already_had(bare(learner), at.done)
        if new and not entry.rebuilds:
            notes += trained_before(bare(learner))
        # An object that raced before already includes them.
        attempts = () if start else at.attempts
    stand_at(learner, start, at.recorded)
    for n in range(start, at.done + 1):
        for _ in range(attempts.count(n + 1)):
            _attempt_again(learner, pull, at, n)
        if n == at.done:
            break
        score, recorded = _pull_again(learner, pull, n, at.done), at.recorded[n]
        if score != recorded and not any("deterministic" in note for note in notes):
            notes.append(
                f"trained again, pull {n + 1} scored {score:.6g}, but {recorded:.6g} is recorded: "
                "the learner is not deterministic, or its function reuses a trained model. The "
                "recorded scores count"
            )
    return learner, notes, at.done - start


def _from_checkpoint(
    entry: Entry, at: Restorable, notes: list[str], loaded: Callable[[Path], None]
) -> tuple[Any, int | None]:
    """Return the learner with its saved state and pulls, or a new learner and None."""
    saved = at.saved
    if saved is None or at.storage is None:
        return entry.build(), None
    with at.storage.fetched(place_of(saved.arm, saved.n), saved.digest) as folder:
        if folder is not None and (folder / LEARNER).is_file():
            try:  # build no learner in addition: memory may be short
                with in_own_process():
                    pickled = pickle.loads((folder / LEARNER).read_bytes())
                loaded(folder)
                return pickled, saved.n
            except Exception as error:  # its class was moved, or is not in this program
                why = f"could not be unpickled ({reason_of(error)}), so it was trained again"
                notes.append(f"its checkpoint of pull {saved.n} {why}")
                return entry.build(), None
        learner: Any = entry.build()
        if folder is not None and can_save(learner):
            with in_own_process():
                learner.load(folder)
            recorded = at.recorded[saved.n - 1]
            value = wrong_evaluation(learner, recorded)
            if value is not None:  # the restored learner is not the one that was scored
                raise LearnerError(
                    f"its checkpoint of pull {saved.n} evaluates to {value:.6g}, but "
                    f"{recorded:.6g} is recorded: load() does not restore what save() wrote. "
                    "check_learner(...) shows the difference"
                )
            loaded(folder)
            return learner, saved.n
    if folder is None:
        why = "the files are missing, or their digest differs from the journal's"
        notes.append(f"its checkpoint of pull {saved.n} was not loaded: {why}")
    return learner, None


def _attempt_again(
    learner: Learner, pull: Callable[[Learner], Any], at: Restorable, n: int
) -> None:
    """Repeat a failed attempt at a pull, because the learner kept what the attempt trained."""
    with suppress(Exception):  # the learner's own code fails again
        pull(learner)
    stand_at(learner, n, at.recorded)


def _pull_again(learner: Learner, pull: Callable[[Learner], Any], n: int, done: int) -> float:
    try:
        return as_score(pull(learner))
    except StopIteration:
        raise LearnerError(f"trained again, it ended after {n} pulls, not {done}") from None


def is_bare(learner: Any) -> bool:
    """Return whether this is a generator that yields only scores, so it cannot be saved."""
    return isinstance(learner, Iterator) and not hasattr(learner, "pull")


def pickle_learner(learner: Any, folder: Path) -> None:
    """Pickle a learner without `save` and `load` into the folder of a checkpoint."""
    with (folder / LEARNER).open("wb") as file:
        pickle.dump(learner, file, pickle.HIGHEST_PROTOCOL)


def keep_model(storage: Storage, arm: int, n: int, model: Any) -> ModelKept | None:
    """Pickle a generator's model; return None if that fails or it has none: train it again."""
    place = model_place(arm, n)
    # It is not the model of a generator.
    if model is None or hasattr(model, "pull") or is_bare(model):
        return None
    try:
        data = pickle.dumps(model)
        stored = storage.keep(place, lambda folder: (folder / MODEL).write_bytes(data))
    except (Exception, SystemExit):  # an error of the model's pickling or of the disk
        return None
    return ModelKept(arm, n, *stored)


def fetch_model(storage: Storage, kept: ModelKept) -> tuple[Any, str]:
    """Return a saved model, or a sentence that says why its file cannot be used."""
    again = f"its model of pull {kept.n} was not loaded ({{}}): it is trained again"
    try:
        with storage.fetched(model_place(kept.arm, kept.n), kept.digest) as folder:
            if folder is None:
                return None, again.format("the file is missing or another one")
            return pickle.loads((folder / MODEL).read_bytes()), ""
    except (Exception, SystemExit) as error:  # the model's own code may raise anything
        return None, again.format(reason_of(error))
