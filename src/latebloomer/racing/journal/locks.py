"""The lock of a race on its journal, and locks that keep SQLite's own files in place.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file:
a callback that copies the journal would unlock it. SQLite's locks are of that kind. Locks that
belong to an open file stay: `flock`, which is on a file next to the journal, and on Linux locks of
an open file description, which the SQLite of other processes takes for its own kind.
"""

import os
import struct
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

if sys.platform != "win32":
    import fcntl
else:
    import msvcrt

WAIT = 0.2  # seconds to wait for other processes that only check whether a lock is held
PAUSE = 0.01  # seconds between two attempts to take a lock

# The bytes that SQLite's readers lock: as long as they are, no other process removes or empties
# the -wal or the -shm. They are part of SQLite's file format (os.h and os_unix.c).
SHARED_BYTES = 0x40000002, 510  # of the journal
IN_USE_BYTE = 128, 1  # of the -shm
HAS_LOCKS_OF_OPEN_FILES = sys.platform == "linux"
LAYOUT = "hhqqi4x"  # of a struct flock on Linux: type, whence, start, length, process

_open_locks: "weakref.WeakSet[RaceLock | FilesInPlace]" = weakref.WeakSet()


class RaceLock:
    """The exclusive lock of the process that races: it ends when the process does.

    Raises
    ------
    BlockingIOError
        Another process has it.
    """

    def __init__(self, file: Path) -> None:
        self._handle = -1
        until = monotonic() + WAIT
        while not self._taken(f"{file}.lock"):
            if monotonic() > until:
                raise BlockingIOError(f"{file}.lock is held")
            sleep(PAUSE)
        _open_locks.add(self)

    def _taken(self, path: str) -> bool:
        """Take the lock if it is free, on the file that has this name now."""
        handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        if _lock(handle, exclusive=True) and _is_at(handle, path):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def close(self) -> None:
        """Release the lock."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def leave_to_parent(self) -> None:
        """Close the copy of a child process: else the lock would outlive the race's process."""
        self.close()


def is_locked(file: Path) -> bool:
    """Return whether a process holds the lock of a race. Nothing is written."""
    try:
        handle = os.open(f"{file}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(handle, exclusive=False)
    finally:
        os.close(handle)


def _is_at(handle: int, path: str) -> bool:
    """Return whether an open file still has that name: it may have been removed meanwhile."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


def _lock(handle: int, exclusive: bool) -> bool:
    """Lock an open file without waiting; return whether that was possible."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class FilesInPlace:
    """Keeps the -wal and the -shm of a journal that this process writes, and sees if they go.

    On Linux no other process's SQLite can remove them, also after this process has lost SQLite's
    own locks. Elsewhere, and if a user removes the files, the number of links of `wal` and of
    `shm` tells.
    """

    def __init__(self, file: Path) -> None:
        self._wal_path = f"{file}-wal"
        self.wal = self.shm = -1  # handles; -1 where nothing is to be seen
        self._handles: list[int] = []
        if sys.platform != "win32":  # there, nobody can remove a file that is open
            self.wal = os.open(self._wal_path, os.O_RDONLY)
        if HAS_LOCKS_OF_OPEN_FILES:
            for path, (start, length) in (
                (str(file), SHARED_BYTES),
                (f"{file}-shm", IN_USE_BYTE),
            ):
                self._hold(path, start, length)
            self.shm = self._handles[-1]
        _open_locks.add(self)

    def _hold(self, path: str, start: int, length: int) -> None:
        handle = os.open(path, os.O_RDONLY)
        self._handles.append(handle)
        with suppress(OSError):  # a file system without such locks
            _lock_bytes(handle, fcntl.F_RDLCK, start, length)

    def wal_is_in_place(self) -> bool:
        """Return whether the -wal has still its name."""
        return self.wal < 0 or _is_at(self.wal, self._wal_path)

    def release(self) -> None:
        """Let SQLite remove its files, as it does when the last connection is closed."""
        for handle in self._handles:
            with suppress(OSError):
                _lock_bytes(handle, fcntl.F_UNLCK, 0, 0)

    def close(self) -> None:
        """Close the files: SQLite must have closed its own before, or it loses its locks."""
        handles, self._handles = [*self._handles, self.wal], []
        self.wal = self.shm = -1
        for handle in handles:
            if handle >= 0:
                os.close(handle)

    def leave_to_parent(self) -> None:
        """Close the copies of a child process."""
        self.close()


def _lock_bytes(handle: int, kind: int, start: int, length: int) -> None:
    if sys.platform == "linux":  # so that type checkers know the name
        wanted = struct.pack(LAYOUT, kind, os.SEEK_SET, start, length, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)


def _leave_to_parent() -> None:
    for lock in list(_open_locks):
        lock.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
