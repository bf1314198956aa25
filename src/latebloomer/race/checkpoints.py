"""Checkpoints: folders beside the journal, complete or absent, checked before they are loaded."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from latebloomer.race.journal import Journal, Kept


class Checkpoints:
    """Saves learners' states under `<journal>.checkpoints/<arm>/<n>`; the newest is kept."""

    def __init__(self, journal: Journal, full: bool = False) -> None:
        self._journal = journal
        self._full = full  # wait for the disk
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._root: Path | None = None

    @property
    def root(self) -> Path:
        """The folder of all checkpoints; a temporary one where the journal is in memory."""
        if self._root is None:
            if self._journal.path is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="latebloomer-")
                self._root = Path(self._temporary.name)
            else:
                self._root = Path(f"{self._journal.path}.checkpoints")
        return self._root

    def store(self, arm: int, n: int, save: Callable[[Path], None]) -> None:
        """Save a learner: under another name first, renamed when complete, then in the journal."""
        place = Path(f"{arm:04d}") / str(n)
        final, draft = self.root / place, self.root / f"{arm:04d}" / f"{n}.draft"
        for leftover in (draft, final):
            shutil.rmtree(leftover, ignore_errors=True)
        draft.mkdir(parents=True)
        began = time.perf_counter()
        save(draft)
        digest, size = digest_of(draft)
        if self._full:
            _sync(draft)
        draft.rename(final)
        took = time.perf_counter() - began
        self._journal.checkpoint(Kept(arm, n, place.as_posix(), digest), size, took)
        self._drop_older(arm, n)

    def _drop_older(self, arm: int, n: int) -> None:
        for kept in self._journal.checkpoints(arm):
            if kept.n < n:
                self._journal.forget(arm, kept.n)
        for folder in (self.root / f"{arm:04d}").iterdir():
            if folder.name != str(n):
                shutil.rmtree(folder, ignore_errors=True)

    def newest(self, arm: int, upto: int) -> tuple[int, Path] | None:
        """The newest checkpoint of at most `upto` pulls whose files are as they were saved."""
        for kept in self._journal.checkpoints(arm):
            folder = self.root / kept.folder
            if kept.n <= upto and folder.is_dir() and digest_of(folder)[0] == kept.digest:
                return kept.n, folder
        return None

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()


def digest_of(folder: Path) -> tuple[str, int]:
    """SHA-256 of all names and contents, and the bytes in all."""
    digest, size = hashlib.sha256(), 0
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        size += file.stat().st_size
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest(), size


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir() and os.name == "nt":
            continue  # Windows has no such call for folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
