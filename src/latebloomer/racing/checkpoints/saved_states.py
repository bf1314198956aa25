"""Saved states of learners: which can be restored, and how that is done.

A learner is restored from its latest checkpoint and then repeats the pulls that are not in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.kept_models import is_pickled, unpickled
from latebloomer.racing.checkpoints.storage import Folder, Storage, Stored, place_of
from latebloomer.racing.learner import (
    Entry,
    Learner,
    already_had,
    as_score,
    bare,
    can_save,
    stand_at,
    wrong_evaluation,
)
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Saved


def saved_event(arm: int, n: int, stored: Stored) -> Saved:
    """Return the event of a state whose files are complete."""
    return Saved(arm, n, place_of(arm, n), stored.digest, stored.size, stored.seconds)


class SavedStates:
    """Knows the newest state of each learner; it lies under `<journal>.checkpoints/<arm>/<n>`.

    With `RayRunner(storage=...)` it lies there, under the race's id.
    """

    def __init__(self, race: RaceState, journal: Path | None, full: bool = False) -> None:
        self._race, self._journal = race, journal
        self._full = full  # wait for the disk
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """Where the files are; a temporary folder where the journal is in memory."""
        if self._storage is None:
            if self._journal is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="latebloomer-")
                self._storage = Folder(self._temporary.name)
            else:
                self._storage = Folder(f"{self._journal}.checkpoints", self._full)
        return self._storage

    def move_to(self, storage: Storage) -> None:
        """Keep the files in another storage than next to the journal, under the race's id."""
        own = storage.under(self._race.id)
        self._storage = replace(own, full=self._full) if isinstance(own, Folder) else own

    def newest(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state of at most `upto` pulls by the journal.

        Whether its files are as they were saved is seen where they are loaded.
        """
        return self._race.checkpoint(arm, upto)

    def available(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state whose files are seen from here."""
        saved = self.newest(arm, upto)
        return saved if saved is not None and self.storage.has(saved.folder) else None

    def model(self, arm: int, n: int) -> Saved | None:
        """Return a generator's model after exactly n pulls, if its file is seen from here."""
        saved = self._race.model(arm, n)
        return saved if saved is not None and self.storage.has(saved.folder) else None

    def sweep(self) -> None:
        """Remove what a kill left half-written."""
        if isinstance(self.storage, Folder):
            self.storage.drop_drafts()

    def follow(self, journal: Path) -> None:
        """Move the checkpoints that lie next to the journal to its new name."""
        before, self._journal = self._journal, journal
        beside = Folder(f"{before}.checkpoints", self._full)
        if self._storage == beside:
            self._storage = Folder(f"{journal}.checkpoints", self._full)
            if Path(beside.root).is_dir():
                Path(beside.root).rename(self._storage.root)

    def drop_older(self, saved: Saved) -> None:
        """Remove states that are older than one in the journal."""
        with suppress(OSError):  # of a network: what is not removed now is removed next time
            self.storage.drop_all_but(saved.folder)

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()


# --- restoring a learner ---


def restore(
    entry: Entry,
    done: int,
    saved: Saved | None,
    recorded: Sequence[float],
    storage: Storage | None,
    pull: Callable[[Learner], Any] = lambda learner: learner.pull(),
) -> tuple[Learner, list[str], int]:
    """Build a learner, load its state and repeat the pulls that are not in it.

    `recorded` are the scores of its counted pulls; `pull` makes one pull. Returns the learner,
    what the verdict should mention, and how many pulls were repeated.
    """
    notes: list[str] = []
    learner, start = _from_checkpoint(entry, saved if done else None, recorded, storage, notes)
    if start is None:
        start = 0 if entry.rebuilds or not done else already_had(bare(learner), done)
    stand_at(learner, start, recorded)
    for n in range(start, done):
        score = _pull_again(learner, pull, n, done)
        if score != recorded[n] and not any("deterministic" in note for note in notes):
            notes.append(
                f"trained again, pull {n + 1} scored {score:.6g}, but {recorded[n]:.6g} is "
                "recorded: the learner is not deterministic; the recorded scores count"
            )
    return learner, notes, done - start


def _from_checkpoint(
    entry: Entry,
    saved: Saved | None,
    recorded: Sequence[float],
    storage: Storage | None,
    notes: list[str],
) -> tuple[Any, int | None]:
    """Return the learner with its saved state, and its pulls; or a new learner and None."""
    if saved is None or storage is None:
        return entry.build(), None
    with storage.fetched(saved.folder, saved.digest) as folder:
        if folder is not None and is_pickled(folder):
            try:  # and build nothing next to it: memory may be short
                return unpickled(folder), saved.n
            except Exception as error:  # its class has moved, or is not in this program
                notes.append(
                    f"its checkpoint of pull {saved.n} could not be unpickled "
                    f"({reason_of(error)}), so it was trained again"
                )
                return entry.build(), None
        learner: Any = entry.build()
        if folder is not None and can_save(learner):
            learner.load(folder)
            _need_same_evaluation(learner, saved.n, recorded[saved.n - 1])
            return learner, saved.n
    if folder is None:
        notes.append(
            f"its checkpoint of pull {saved.n} was not loaded: the files are missing or not those "
            "that were saved (their digest differs from the journal's)"
        )
    return learner, None


def _need_same_evaluation(learner: Any, n: int, recorded: float) -> None:
    """Raise a `LearnerError` if a restored learner is not the one that was scored."""
    value = wrong_evaluation(learner, recorded)
    if value is None:
        return
    raise LearnerError(
        f"its checkpoint of pull {n} evaluates to {value:.6g}, but {recorded:.6g} is recorded: "
        "load() does not restore what save() wrote. check_learner(...) shows the difference"
    )


def _pull_again(learner: Learner, pull: Callable[[Learner], Any], n: int, done: int) -> float:
    try:
        return as_score(pull(learner))
    except StopIteration:
        raise LearnerError(
            f"it ended after {n} pulls when it was trained again; it had {done} before"
        ) from None
