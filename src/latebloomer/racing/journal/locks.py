"""The lock of a race, and locks that prevent the removal of SQLite's own files.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file: a
callback that copies the journal would unlock it. SQLite's locks are of this kind. Locks that
belong to an open file are not dropped. These are `flock`, which is used on a file next to the
journal, and on Linux locks of an open file description, which SQLite in other processes treats
like its own locks.
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

WAIT = 0.2  # seconds to wait for a lock, because other processes may only check it
PAUSE = 0.01  # seconds between two attempts to take a lock

# Ranges of bytes that SQLite's readers lock. As long as they are locked, no other process removes
# or empties the -wal or the -shm. They are part of SQLite's file format (os.h and os_unix.c).
SHARED_BYTES = 0x40000002, 510  # bytes of the journal
IN_USE_BYTE = 128, 1  # byte of the -shm
HAS_LOCKS_OF_OPEN_FILES = sys.platform == "linux"
LAYOUT = "hhqqi4x"  # layout of a struct flock on Linux: type, whence, start, length, process

_open_locks: "weakref.WeakSet[RaceLock | FilesInPlace]" = weakref.WeakSet()


class RaceLock:
    """The exclusive lock of the process that runs a race; it is released when the process ends.

    Raises
    ------
    BlockingIOError
        Another process holds the lock.
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
        """Take the lock on the file that is at this path now; return whether that was possible."""
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
        """Close a child process's copy, so that the lock ends with the race's own process."""
        self.close()


def is_locked(file: Path) -> bool:
    """Return whether a process holds the lock of a race, without writing anything."""
    try:
        handle = os.open(f"{file}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(handle, exclusive=False)
    finally:
        os.close(handle)


def _is_at(handle: int, path: str) -> bool:
    """Return whether an open file is still at a path; it may have been removed."""
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
    """Keep the -wal and the -shm of a journal in place, and notice if they are removed.

    On Linux no other process's SQLite can remove them, also after this process has lost SQLite's
    own locks. Elsewhere, and if a user removes the files, the number of links of `wal` and of
    `shm` tells.
    """

    def __init__(self, file: Path) -> None:
        self._wal_path = f"{file}-wal"
        self.wal = self.shm = -1  # handles; -1 where nothing is to be seen
        self._handles: list[int] = []
        if sys.platform != "win32":  # on Windows, an open file cannot be removed
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
        """Return whether the -wal is still at its path."""
        return self.wal < 0 or _is_at(self.wal, self._wal_path)

    def release(self) -> None:
        """Release the locks, so that SQLite can remove its files after the last connection."""
        for handle in self._handles:
            with suppress(OSError):
                _lock_bytes(handle, fcntl.F_UNLCK, 0, 0)

    def close(self) -> None:
        """Close the files; SQLite's connection must be closed before, else it loses its locks."""
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
