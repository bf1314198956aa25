"""The saved states of learners, and their places."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from latebloomer.racing.checkpoints.storage import Folder, Storage, model_place, place_of
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import ModelKept, Saved


class Restorable(NamedTuple):
    """The data to restore a learner to `done` pulls."""

    done: int
    saved: Saved | None  # its latest checkpoint
    recorded: Sequence[float]  # the scores of its counted pulls
    storage: Storage | None
    # Numbers of pulls with a failed attempt of which the learner kept the training.
    attempts: Sequence[int] = ()
    # Number of these attempts, from the first, that the checkpoint includes.
    attempts_saved: int = 0


class SavedStates:
    """Find the latest state of each learner, in `<journal>.checkpoints/<arm>/<n>`.

    With `RayRunner(storage=...)`, states are in that storage under the ID of the race.
    """

    def __init__(self, race: RaceState, journal: Path | None, full: bool = False) -> None:
        self._race, self._journal = race, journal
        self._full = full  # whether to wait until data are on the disk
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """Place of the files; a temporary folder if the journal is in memory."""
        if self._storage is None:
            if self._journal is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="latebloomer-")
                self._storage = Folder(self._temporary.name)
            else:
                self._storage = Folder(f"{self._journal}.checkpoints", self._full)
        return self._storage

    def move_to(self, storage: Storage) -> None:
        """Use another storage than the folder next to the journal, under the ID of the race."""
        own = storage.under(self._race.id)
        self._storage = replace(own, full=self._full) if isinstance(own, Folder) else own

    def newest(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state with at most `upto` pulls, according to the journal.

        The process that loads its files checks whether they are unchanged.
        """
        saved = self._race.checkpoints.get(arm)
        return saved if saved is not None and saved.n <= upto else None

    def available(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state whose files exist for this process."""
        saved = self.newest(arm, upto)
        seen = saved is not None and self.storage.has(place_of(arm, saved.n))
        return saved if seen else None

    def restorable(self, arm: int, done: int, seen: bool = True) -> Restorable:
        """Return the data to restore an arm to `done` pulls; if `seen`, files must be here."""
        attempts = self._race.kept_attempts(arm)
        if not done:
            return Restorable(0, None, (), None, attempts)
        saved = self.available(arm, done) if seen else self.newest(arm, done)
        scores, storage = self._race.session.scores(arm), self.storage if saved else None
        included = self._race.kept_attempts_saved(arm) if saved else 0
        return Restorable(done, saved, scores, storage, attempts, included)

    def model(self, arm: int, n: int) -> ModelKept | None:
        """Return a generator's saved model after exactly n pulls, if its file exists here."""
        kept = self._race.models.get(arm)
        if kept is None or kept.n != n or not self.storage.has(model_place(arm, n)):
            return None
        return kept

    def sweep(self) -> None:
        """Remove incomplete files that a kill has left."""
        if isinstance(self.storage, Folder):
            self.storage.drop_drafts()

    def follow(self, journal: Path) -> None:
        """Rename the folder of checkpoints after the journal was renamed."""
        before, self._journal = self._journal, journal
        beside = Folder(f"{before}.checkpoints", self._full)
        if self._storage == beside:
            self._storage = Folder(f"{journal}.checkpoints", self._full)
            if Path(beside.root).is_dir():
                Path(beside.root).rename(self._storage.root)

    def drop_older(self, saved: Saved | ModelKept) -> None:
        """Remove states or models of a learner that are older than `saved`."""
        place = place_of if isinstance(saved, Saved) else model_place
        with suppress(OSError):  # network error: files not removed now are removed next time
            self.storage.drop_all_but(place(saved.arm, saved.n))

    def close(self) -> None:
        """Remove the temporary folder, if any."""
        if self._temporary is not None:
            self._temporary.cleanup()
