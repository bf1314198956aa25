"""How the state of a learner is written, and how a learner is restored from it.

A learner is restored from its latest checkpoint and then repeats the pulls that are not in it.

A generator cannot be restored: during a race it is trained again. But its model is all that the
verdict returns, so a pickle of that saves a resume of a finished race the training. A learner
without `save` and `load` is pickled if few learners may be in memory (`max_in_memory=`); a resume
with or without that reads the pickle. docs/security.md says when pickles are read.
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
from latebloomer.racing.learners.entries import Entry, already_had
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
    """Build a learner, load its state and repeat the pulls that are not in it.

    `pull` makes one pull; `loaded` is called with the checkpoint's folder after the learner was
    loaded. Returns the learner, what the verdict should mention, and how many pulls were repeated.
    """
    notes: list[str] = []
    learner, start = _from_checkpoint(entry, at, notes, loaded)
    attempts = at.attempts[at.attempts_saved :]
    if start is None:
        new = entry.rebuilds or not at.done
        start = 0 if new else already_had(bare(learner), at.done)
        attempts = () if start else at.attempts  # an object that raced before has them
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
    """Return the learner with its saved state, and its pulls; or a new learner and None."""
    saved = at.saved
    if saved is None or at.storage is None:
        return entry.build(), None
    with at.storage.fetched(place_of(saved.arm, saved.n), saved.digest) as folder:
        if folder is not None and (folder / LEARNER).is_file():
            try:  # and build nothing next to it: memory may be short
                with in_own_process():
                    pickled = pickle.loads((folder / LEARNER).read_bytes())
                loaded(folder)
                return pickled, saved.n
            except Exception as error:  # its class has moved, or is not in this program
                why = f"could not be unpickled ({reason_of(error)}), so it was trained again"
                notes.append(f"its checkpoint of pull {saved.n} {why}")
                return entry.build(), None
        learner: Any = entry.build()
        if folder is not None and can_save(learner):
            with in_own_process():
                learner.load(folder)
            recorded = at.recorded[saved.n - 1]
            value = wrong_evaluation(learner, recorded)
            if value is not None:  # it is not the one that was scored
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
    """Repeat an attempt at a pull that has failed, for what it trains."""
    with suppress(Exception):  # of the learner's own code, as before
        pull(learner)
    stand_at(learner, n, at.recorded)


def _pull_again(learner: Learner, pull: Callable[[Learner], Any], n: int, done: int) -> float:
    try:
        return as_score(pull(learner))
    except StopIteration:
        raise LearnerError(f"trained again, it ended after {n} pulls, not {done}") from None


def is_bare(learner: Any) -> bool:
    """Return whether this is a generator that yields only scores: it cannot be kept."""
    return isinstance(learner, Iterator) and not hasattr(learner, "pull")


def pickle_learner(learner: Any, folder: Path) -> None:
    """Write a learner without `save` and `load` into the folder of a checkpoint."""
    with (folder / LEARNER).open("wb") as file:
        pickle.dump(learner, file, pickle.HIGHEST_PROTOCOL)


def keep_model(storage: Storage, arm: int, n: int, model: Any) -> ModelKept | None:
    """Pickle a generator's model; None if it is none, or if that fails: it is trained again."""
    place = model_place(arm, n)
    if model is None or hasattr(model, "pull") or is_bare(model):  # not what a generator yielded
        return None
    try:
        data = pickle.dumps(model)
        stored = storage.keep(place, lambda folder: (folder / MODEL).write_bytes(data))
    except (Exception, SystemExit):  # of the model's own pickling, or of the disk
        return None
    return ModelKept(arm, n, *stored)


def fetch_model(storage: Storage, kept: ModelKept) -> tuple[Any, str]:
    """Return the model that was kept, if its file is the one that was written; or why not."""
    again = f"its model of pull {kept.n} was not loaded ({{}}): it is trained again"
    try:
        with storage.fetched(model_place(kept.arm, kept.n), kept.digest) as folder:
            if folder is None:
                return None, again.format("the file is missing or another one")
            return pickle.loads((folder / MODEL).read_bytes()), ""
    except (Exception, SystemExit) as error:  # whatever the model's own code raises
        return None, again.format(reason_of(error))
