"""Where the folders of checkpoints lie: on a disk, or at an address that every node can reach.

A storage is a plain value: it travels to the process that trains a learner, which saves and loads
there by itself. What was saved is known by the SHA-256 of its files; files that differ from it are
not loaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from latebloomer.errors import SettingError, extra

DRAFT = ".draft"  # what the name of an incomplete folder ends in


def place_of(arm: int, n: int) -> str:
    """Return the place in a storage of an arm's state after n pulls.

    >>> place_of(3, 57)
    '0003/57'
    """
    return f"{arm:04d}/{n}"


class Stored(NamedTuple):
    """What a storage says of a folder that is complete."""

    digest: str
    size: int
    seconds: float


class Storage(ABC):
    """Keeps folders under names such as `0003/57`."""

    @abstractmethod
    def under(self, name: str) -> Storage:
        """Return the part of the storage that belongs to one race."""

    @abstractmethod
    def keep(self, place: str, fill: Callable[[Path], None]) -> Stored:
        """Let `fill` write into an empty folder and keep that: complete, or not at all."""

    @abstractmethod
    def fetched(self, place: str, digest: str) -> Any:
        """Return a context in which the folder is here; None if it is not what was kept."""

    @abstractmethod
    def has(self, place: str) -> bool:
        """Return whether there is something at a place; its digest is not checked."""

    @abstractmethod
    def drop_all_but(self, place: str) -> None:
        """Remove everything next to `place`, in the same parent folder."""

    @abstractmethod
    def leave_mark(self, name: str) -> None:
        """Write a small file, to see whether that can be done."""

    @abstractmethod
    def has_mark(self, name: str, remove: bool = False) -> bool:
        """Return whether that file is seen here."""


@dataclass(frozen=True)
class Folder(Storage):
    """A folder of this machine, or one that all machines share."""

    root: str
    full: bool = False  # wait for the disk

    def __str__(self) -> str:
        return self.root

    def under(self, name: str) -> Folder:
        return Folder(f"{self.root}/{name}", self.full)

    def keep(self, place: str, fill: Callable[[Path], None]) -> Stored:
        final = Path(self.root) / place
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
        folder = Path(self.root) / place
        same = folder.is_dir() and digest_of(folder)[0] == digest
        yield folder if same else None

    def has(self, place: str) -> bool:
        return (Path(self.root) / place).is_dir()

    def drop_all_but(self, place: str) -> None:
        kept = Path(self.root) / place
        for folder in kept.parent.iterdir():
            if folder.name != kept.name:
                shutil.rmtree(folder, ignore_errors=True)

    def drop_drafts(self) -> None:
        """Remove folders that were never completed."""
        for draft in Path(self.root).glob(f"*/*{DRAFT}"):
            shutil.rmtree(draft, ignore_errors=True)

    def leave_mark(self, name: str) -> None:
        Path(self.root).mkdir(parents=True, exist_ok=True)
        (Path(self.root) / name).write_text(name)

    def has_mark(self, name: str, remove: bool = False) -> bool:
        file = Path(self.root) / name
        seen = file.is_file()
        if seen and remove:
            file.unlink()
        return seen


@dataclass(frozen=True)
class Remote(Storage):
    """An address for pyarrow or fsspec, such as s3://bucket/races.

    Such places cannot rename a folder in one step. A folder counts when it is in the journal,
    which is after its last file was written, and its digest is checked when it is loaded.
    """

    address: str

    def __str__(self) -> str:
        return self.address

    def under(self, name: str) -> Remote:
        return Remote(f"{self.address}/{name}")

    def keep(self, place: str, fill: Callable[[Path], None]) -> Stored:
        with tempfile.TemporaryDirectory(prefix="latebloomer-") as here:
            began = perf_counter()
            fill(Path(here))
            digest, size = digest_of(Path(here))
            files, root = self._open()
            target = f"{root}/{place}"
            if self.has(place):
                files.delete_dir(target)
            for file in sorted(path for path in Path(here).rglob("*") if path.is_file()):
                self._send(files, file, f"{target}/{file.relative_to(here).as_posix()}")
            return Stored(digest, size, perf_counter() - began)

    def _send(self, files: Any, file: Path, target: str) -> None:
        files.create_dir(target.rpartition("/")[0], recursive=True)
        with file.open("rb") as source, files.open_output_stream(target) as stream:
            shutil.copyfileobj(source, stream, 1 << 20)

    @contextmanager
    def fetched(self, place: str, digest: str) -> Iterator[Path | None]:
        with tempfile.TemporaryDirectory(prefix="latebloomer-") as here:
            files, root = self._open()
            origin = f"{root}/{place}"
            for name in self._names(files, origin):
                target = Path(here) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with files.open_input_stream(f"{origin}/{name}") as stream, target.open("wb") as f:
                    shutil.copyfileobj(stream, f, 1 << 20)
            yield Path(here) if digest_of(Path(here))[0] == digest else None

    def _names(self, files: Any, origin: str) -> list[str]:
        """Return the files under a folder, named from there."""
        fs = extra("pyarrow.fs", "addresses of storage", "storage")
        found = files.get_file_info(fs.FileSelector(origin, recursive=True, allow_not_found=True))
        inside = [info.path for info in found if info.type == fs.FileType.File]
        return [path[path.index(origin) + len(origin) + 1 :] for path in inside]

    def has(self, place: str) -> bool:
        files, root = self._open()
        return bool(self._names(files, f"{root}/{place}"))

    def drop_all_but(self, place: str) -> None:
        files, root = self._open()
        parent, _, kept = place.rpartition("/")
        origin = f"{root}/{parent}"
        for other in {name.partition("/")[0] for name in self._names(files, origin)} - {kept}:
            files.delete_dir(f"{origin}/{other}")

    def leave_mark(self, name: str) -> None:
        files, root = self._open()
        files.create_dir(root, recursive=True)
        with files.open_output_stream(f"{root}/{name}") as stream:
            stream.write(name.encode())

    def has_mark(self, name: str, remove: bool = False) -> bool:
        files, root = self._open()
        fs = extra("pyarrow.fs", "addresses of storage", "storage")
        seen = files.get_file_info(f"{root}/{name}").type == fs.FileType.File
        if seen and remove:
            files.delete_file(f"{root}/{name}")
        return bool(seen)

    def _open(self) -> tuple[Any, str]:
        """Return the file system and the path in it: pyarrow's own if it knows the address."""
        fs = extra("pyarrow.fs", "addresses of storage", "storage")
        try:
            files, path = fs.FileSystem.from_uri(self.address)
        except ValueError:  # not one of pyarrow's
            core = extra("fsspec.core", "addresses of storage", "storage")
            inner, path = core.url_to_fs(self.address)
            files = fs.PyFileSystem(fs.FSSpecHandler(inner))
        return files, path.rstrip("/")


def storage_at(address: str | os.PathLike[str], full: bool = False) -> Storage:
    """Return the storage of a folder, or of an address with `://`.

    >>> storage_at("s3://bucket/races")
    Remote(address='s3://bucket/races')
    """
    if not isinstance(address, str | os.PathLike) or not str(address).strip():
        raise SettingError(
            f"storage={address!r}, but storage must be a folder that every node sees, or an "
            "address such as s3://bucket/folder"
        )
    if "://" in str(address):
        return Remote(str(address).rstrip("/"))
    return Folder(str(Path(address).absolute()), full)


def without_password(address: str) -> str:
    """Return an address without the user and password that it may carry.

    >>> without_password("s3://key:secret@bucket/races"), without_password("/data/races")
    ('s3://bucket/races', '/data/races')
    """
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", address)


def digest_of(folder: Path) -> tuple[str, int]:
    """Return the SHA-256 of all names and contents, and their size in bytes."""
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
