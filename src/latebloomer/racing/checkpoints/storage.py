"""Storage of the folders of checkpoints: on a disk, or at an address that all nodes can reach.

A storage is a plain value that is sent to the process that trains a learner; this process saves
and loads the files. A checkpoint is identified by the SHA-256 of its files; files with another
digest are not loaded.
"""

import hashlib
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from latebloomer.errors import SettingError, extra

DRAFT = ".draft"  # ending of the name of an incomplete folder


def place_of(arm: int, n: int) -> str:
    """Return the place in a storage of an arm's state after n pulls.

    >>> place_of(3, 57)
    '0003/57'
    """
    return f"{arm:04d}/{n}"


def model_place(arm: int, n: int) -> str:
    """Return the place in a storage of the model that a generator had yielded after n pulls.

    Models have a separate folder, because older states are removed.

    >>> model_place(3, 57)
    '0003-model/57'
    """
    return f"{arm:04d}-model/{n}"


class Stored(NamedTuple):
    """The digest and size of a complete folder."""

    digest: str
    size: int
    seconds: float


class Storage(ABC):
    """Store folders under names such as `0003/57`."""

    @abstractmethod
    def under(self, name: str) -> "Storage":
        """Return the part of the storage that belongs to one race."""

    @abstractmethod
    def keep(self, place: str, fill: Callable[[Path], object]) -> Stored:
        """Let `fill` write into an empty folder, and store this folder."""

    @abstractmethod
    def fetched(self, place: str, digest: str) -> AbstractContextManager[Path | None]:
        """Return a context in which a folder is on this machine; None if its digest changed."""

    @abstractmethod
    def has(self, place: str) -> bool:
        """Return whether a folder exists at a place, without a check of its digest."""

    @abstractmethod
    def drop(self, place: str) -> None:
        """Remove a folder."""

    @abstractmethod
    def drop_all_but(self, place: str) -> None:
        """Remove all other folders with the same parent as `place`."""


@dataclass(frozen=True)
class Folder(Storage):
    """A folder of this machine, or one that all machines share."""

    root: str
    full: bool = False  # whether to wait until data are on the disk

    def __str__(self) -> str:
        return self.root

    def under(self, name: str) -> "Folder":
        return Folder(f"{self.root}/{name}", self.full)

    def keep(self, place: str, fill: Callable[[Path], object]) -> Stored:
        """Store the folder completely or not at all."""
        final = Path(self.root, place)
        draft = final.with_name(f"{final.name}.{os.urandom(4).hex()}{DRAFT}")
        draft.mkdir(parents=True)
        began = perf_counter()
        try:
            fill(draft)
            digest, size = digest_of(draft)
            if self.full:
                _sync(draft)
            shutil.rmtree(final, ignore_errors=True)
            draft.rename(final)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return Stored(digest, size, perf_counter() - began)

    @contextmanager
    def fetched(self, place: str, digest: str) -> Iterator[Path | None]:
        folder = Path(self.root, place)
        yield folder if folder.is_dir() and digest_of(folder)[0] == digest else None

    def has(self, place: str) -> bool:
        return Path(self.root, place).is_dir()

    def drop(self, place: str) -> None:
        shutil.rmtree(Path(self.root, place), ignore_errors=True)

    def drop_all_but(self, place: str) -> None:
        kept = Path(self.root, place)
        for folder in kept.parent.iterdir():
            if folder.name != kept.name:
                shutil.rmtree(folder, ignore_errors=True)

    def drop_drafts(self) -> None:
        """Remove incomplete folders."""
        for draft in Path(self.root).glob(f"*/*{DRAFT}"):
            shutil.rmtree(draft, ignore_errors=True)


@dataclass(frozen=True)
class Remote(Storage):
    """An address for pyarrow or fsspec, such as s3://bucket/races.

    Such places cannot rename a folder in one step. A folder only counts if it is in the journal,
    which is written after the last file of the folder; its digest is checked when it is loaded.
    """

    address: str

    def __str__(self) -> str:
        return self.address

    def under(self, name: str) -> "Remote":
        return Remote(f"{self.address}/{name}")

    def keep(self, place: str, fill: Callable[[Path], object]) -> Stored:
        with tempfile.TemporaryDirectory(prefix="latebloomer-") as here:
            began = perf_counter()
            fill(Path(here))
            digest, size = digest_of(Path(here))
            self.drop(place)
            fs, files, root = self._open()
            files.create_dir(f"{root}/{place}", recursive=True)
            fs.copy_files(here, f"{root}/{place}", fs.LocalFileSystem(), files)
            return Stored(digest, size, perf_counter() - began)

    @contextmanager
    def fetched(self, place: str, digest: str) -> Iterator[Path | None]:
        with tempfile.TemporaryDirectory(prefix="latebloomer-") as here:
            fs, files, root = self._open()
            if self.has(place):
                fs.copy_files(f"{root}/{place}", here, files, fs.LocalFileSystem())
            yield Path(here) if digest_of(Path(here))[0] == digest else None

    def has(self, place: str) -> bool:
        fs, files, root = self._open()
        return bool(files.get_file_info(f"{root}/{place}").type == fs.FileType.Directory)

    def drop(self, place: str) -> None:
        _, files, root = self._open()
        if self.has(place):
            files.delete_dir(f"{root}/{place}")

    def drop_all_but(self, place: str) -> None:
        fs, files, root = self._open()
        parent, _, kept = place.rpartition("/")
        selector = fs.FileSelector(f"{root}/{parent}", allow_not_found=True)
        for other in {info.base_name for info in files.get_file_info(selector)} - {kept}:
            files.delete_dir(f"{root}/{parent}/{other}")

    def _open(self) -> tuple[Any, Any, str]:
        """Return pyarrow.fs, the file system for the address, and the path in it."""
        fs = extra("pyarrow.fs", "addresses of storage", "storage")
        try:
            files, path = fs.FileSystem.from_uri(self.address)
        except ValueError:  # not an address of pyarrow
            core = extra("fsspec.core", "addresses of storage", "storage")
            inner, path = core.url_to_fs(self.address)
            files = fs.PyFileSystem(fs.FSSpecHandler(inner))
        return fs, files, path.rstrip("/")


def storage_at(address: str | os.PathLike[str]) -> Storage:
    """Return the storage of a folder, or of an address with `://`.

    >>> storage_at("s3://bucket/races")
    Remote(address='s3://bucket/races')
    """
    if not isinstance(address, str | os.PathLike) or not str(address).strip():
        needed = "a folder that every node sees, or an address such as s3://bucket/folder"
        raise SettingError(f"storage={address!r}, but storage must be {needed}")
    if "://" in str(address):
        return Remote(str(address).rstrip("/"))
    return Folder(str(Path(address).absolute()))


def without_password(address: str) -> str:
    """Return an address without a user and password in it.

    >>> without_password("s3://key:secret@bucket/races"), without_password("/data/races")
    ('s3://bucket/races', '/data/races')
    """
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", address)


def digest_of(folder: Path) -> tuple[str, int]:
    """Return the SHA-256 of all names and contents of a folder, and their size in bytes."""
    digest, size = hashlib.sha256(), 0
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        size += file.stat().st_size
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)  # updates the digest
    return digest.hexdigest(), size


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        if path.is_file() or os.name != "nt":  # Windows cannot sync folders
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
