"""Which states of learners can be restored: by the journal, and by the files that are there."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from latebloomer.racing.checkpoints.storage import Folder, Storage, Stored, place_of
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Saved


def saved_event(arm: int, n: int, stored: Stored) -> Saved:
    """What a state becomes in the journal, once its files are complete."""
    return Saved(arm, n, place_of(arm, n), stored.digest, stored.size, stored.seconds)


class SavedStates:
    """Knows the newest state of each learner; it lies under `<journal>.checkpoints/<arm>/<n>`.

    Where a race is given a storage of its own, it lies there, under the race's id.
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
        """Keep the files in another storage than beside the journal, under the race's id."""
        own = storage.under(self._race.id)
        self._storage = replace(own, full=self._full) if isinstance(own, Folder) else own

    def newest(self, arm: int, upto: int) -> Saved | None:
        """The newest state of at most `upto` pulls by the journal.

        Whether its files are as they were saved is seen where they are loaded.
        """
        return self._race.checkpoint(arm, upto)

    def available(self, arm: int, upto: int) -> Saved | None:
        """The same, where its files are seen from here."""
        saved = self.newest(arm, upto)
        return saved if saved is not None and self.storage.has(saved.folder) else None

    def model(self, arm: int, n: int) -> Saved | None:
        """The model of a generator after just so many pulls, where its file is seen from here."""
        saved = self._race.model(arm, n)
        return saved if saved is not None and self.storage.has(saved.folder) else None

    def sweep(self) -> None:
        """Remove what a kill left half-written."""
        if isinstance(self.storage, Folder):
            self.storage.drop_drafts()

    def follow(self, journal: Path) -> None:
        """The journal has another name now: what lies beside it moves along."""
        before, self._journal = self._journal, journal
        beside = Folder(f"{before}.checkpoints", self._full)
        if self._storage == beside:
            self._storage = Folder(f"{journal}.checkpoints", self._full)
            if Path(beside.root).is_dir():
                Path(beside.root).rename(self._storage.root)

    def drop_older(self, saved: Saved) -> None:
        """Older states than one that is in the journal are not needed any more."""
        with suppress(OSError):  # of a network: what is not removed now is removed next time
            self.storage.drop_all_but(saved.folder)

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()
