"""Checkpoints: which states of learners are kept, by the journal; the files are in a storage."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace

from latebloomer.racing.checkpoints.storage import Folder, Storage, Stored
from latebloomer.racing.journal.journal import Journal, Kept


def place_of(arm: int, n: int) -> str:
    """Where in a storage the state of an arm after n pulls lies.

    >>> place_of(3, 57)
    '0003/57'
    """
    return f"{arm:04d}/{n}"


class Checkpoints:
    """Knows the newest state of each learner; it lies under `<journal>.checkpoints/<arm>/<n>`.

    Where a race is given a storage of its own, it lies there, under the race's id.
    """

    def __init__(self, journal: Journal, full: bool = False) -> None:
        self._journal = journal
        self._full = full  # wait for the disk
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """Where the files are; a temporary folder where the journal is in memory."""
        if self._storage is None:
            if self._journal.path is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="latebloomer-")
                self._storage = Folder(self._temporary.name)
            else:
                self._storage = Folder(f"{self._journal.path}.checkpoints", self._full)
        return self._storage

    def move_to(self, storage: Storage) -> None:
        """Keep the files in another storage than beside the journal."""
        self._storage = (
            replace(storage, full=self._full) if isinstance(storage, Folder) else storage
        )

    @property
    def race(self) -> str:
        """What tells this race from others in the same storage."""
        return self._journal.id

    def enter(self, arm: int, n: int, stored: Stored) -> None:
        """Enter a complete state into the journal; older ones are not needed any more."""
        entry = Kept(arm, n, place_of(arm, n), stored.digest)
        self._journal.checkpoint(entry, stored.size, stored.seconds)
        self._drop_older(arm, n)

    def _drop_older(self, arm: int, n: int) -> None:
        for kept in self._journal.checkpoints(arm):
            if kept.n < n:
                self._journal.forget(arm, kept.n)
        with suppress(OSError):  # of a network: what is not removed now is removed next time
            self.storage.drop_all_but(place_of(arm, n))

    def listed(self, arm: int, upto: int) -> list[Kept]:
        """States of at most `upto` pulls by the journal, the newest first.

        Whether their files are as they were saved is seen where they are loaded.
        """
        return [kept for kept in self._journal.checkpoints(arm) if kept.n <= upto]

    def known(self, arm: int, upto: int) -> list[Kept]:
        """Those of them whose files are seen from here."""
        return [kept for kept in self.listed(arm, upto) if self.storage.has(kept.folder)]

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()
