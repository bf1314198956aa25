"""Pickles in checkpoints: a generator's model, and learners without their own `save`.

A generator cannot be restored: during a race it is trained again. But its model is all that the
verdict returns, so a pickle of that saves a resume of a finished race the training. A learner
without `save` and `load` is pickled if few learners may be in memory (`max_in_memory=`); a resume
with or without that reads the pickle. docs/security.md says when pickles are read.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from latebloomer._util.text import reason_of
from latebloomer.racing.checkpoints.storage import Storage, place_of
from latebloomer.session.events import Saved

FILE = "model.pickle"
PICKLE = "latebloomer-learner.pickle"


def model_place(arm: int, n: int) -> str:
    """Return the place in a storage of an arm's model after n pulls.

    >>> model_place(3, 57)
    '0003/57.model'
    """
    return f"{place_of(arm, n)}.model"


def is_model(learner: Any) -> bool:
    """Return whether a winner is what a generator yielded, not a learner or the generator."""
    return learner is not None and not hasattr(learner, "pull") and not is_bare(learner)


def is_bare(learner: Any) -> bool:
    """Return whether this is a generator that yields only scores: it cannot be kept."""
    return isinstance(learner, Iterator) and not hasattr(learner, "pull")


def keep_model(storage: Storage, arm: int, n: int, model: Any) -> Saved | None:
    """Pickle a model; None where that cannot be done: then a resume trains it again."""
    place = model_place(arm, n)
    try:
        data = pickle.dumps(model)
        stored = storage.keep(place, lambda folder: _write(folder / FILE, data))
    except (Exception, SystemExit):  # of the model's own pickling, or of the disk
        return None
    return Saved(arm, n, place, stored.digest, stored.size, stored.seconds)


def _write(file: Any, data: bytes) -> None:
    file.write_bytes(data)


def fetch_model(storage: Storage, saved: Saved) -> tuple[Any, str]:
    """Return the model that was kept, if its file is the one that was written; or why not."""
    again = f"its model of pull {saved.n} was not loaded ({{}}): it is trained again"
    try:
        with storage.fetched(saved.folder, saved.digest) as folder:
            if folder is None:
                return None, again.format("the file is missing or another one")
            return pickle.loads((folder / FILE).read_bytes()), ""
    except (Exception, SystemExit) as error:  # whatever the model's own code raises
        return None, again.format(reason_of(error))


# --- learners without `save` and `load` ---


def pickling(learner: Any) -> Callable[[Path], None]:
    """Return a function that writes a learner into the folder of a checkpoint."""

    def fill(folder: Path) -> None:
        with (folder / PICKLE).open("wb") as file:
            pickle.dump(learner, file, pickle.HIGHEST_PROTOCOL)

    return fill


def is_pickled(folder: Path) -> bool:
    """Return whether a checkpoint is a pickled learner."""
    return (folder / PICKLE).is_file()


def unpickled(folder: Path) -> Any:
    """Return the learner of a checkpoint."""
    with (folder / PICKLE).open("rb") as file:
        return pickle.load(file)
