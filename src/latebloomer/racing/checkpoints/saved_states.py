"""Which states of learners exist, and where they are."""

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
    """What brings a learner to `done` pulls."""

    done: int
    saved: Saved | None  # its latest checkpoint
    recorded: Sequence[float]  # the scores of its counted pulls
    storage: Storage | None
    # Numbers of pulls that failed at first, where the learner kept what the attempt had trained.
    attempts: Sequence[int] = ()
    attempts_saved: int = 0  # how many of them, the first ones, its checkpoint includes


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
        saved = self._race.checkpoints.get(arm)
        return saved if saved is not None and saved.n <= upto else None

    def available(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state whose files are seen from here."""
        saved = self.newest(arm, upto)
        seen = saved is not None and self.storage.has(place_of(arm, saved.n))
        return saved if seen else None

    def restorable(self, arm: int, done: int, seen: bool = True) -> Restorable:
        """Return what brings an arm to `done` pulls: by files that are `seen` here, or not."""
        attempts = self._race.kept_attempts(arm)
        if not done:
            return Restorable(0, None, (), None, attempts)
        saved = self.available(arm, done) if seen else self.newest(arm, done)
        scores, storage = self._race.session.scores(arm), self.storage if saved else None
        included = self._race.kept_attempts_saved(arm) if saved else 0
        return Restorable(done, saved, scores, storage, attempts, included)

    def model(self, arm: int, n: int) -> ModelKept | None:
        """Return a generator's model after exactly n pulls, if its file is seen from here."""
        kept = self._race.models.get(arm)
        if kept is None or kept.n != n or not self.storage.has(model_place(arm, n)):
            return None
        return kept

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

    def drop_older(self, saved: Saved | ModelKept) -> None:
        """Remove states, or models, of a learner that are older than one in the journal."""
        place = place_of if isinstance(saved, Saved) else model_place
        with suppress(OSError):  # of a network: what is not removed now is removed next time
            self.storage.drop_all_but(place(saved.arm, saved.n))

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()
