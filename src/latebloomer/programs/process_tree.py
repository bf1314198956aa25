"""Find processes and their descendants, and tell a process from a later one with its number.

Standard library alone, because the guardian runs this without the rest of the package.
"""

import os
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from typing import NamedTuple

LINUX = sys.platform.startswith("linux")


def started_at(pid: int) -> str | None:
    """Return the start time of a process as text from the system; None if it does not exist.

    Systems give numbers of ended processes to new ones: number and start together are unique.
    """
    if LINUX:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                after_name = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return None if after_name[0] in "ZX" else after_name[19]  # a zombie has ended
    said = _ps("-o", "state=,lstart=", "-p", str(pid)).strip()
    return None if not said or said.startswith("Z") else said.partition(" ")[2].strip()


def descendants(roots: set[int]) -> set[int]:
    """Return the descendants of processes, which may have been started after one another."""
    children = _children_on_linux if LINUX else _family().__getitem__
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        new = set(children(waiting.pop())) - found - roots
        found |= new
        waiting.extend(new)
    return found


class OpenFile(NamedTuple):
    """A file that a process has open: with its inode, since a path may get another file."""

    path: str
    inode: int


def written_files(pids: set[int]) -> list[OpenFile]:
    """Return the files that processes have open for writing; none where Linux's /proc is not."""
    found: list[OpenFile] = []
    for pid in pids:
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                place = f"/proc/{pid}/fd/{number}"
                with suppress(OSError), open(f"/proc/{pid}/fdinfo/{number}") as info:
                    flags = next(line for line in info if line.startswith("flags:")).split()[1]
                    if int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
                        found.append(OpenFile(os.readlink(place), os.stat(place).st_ino))
    return found


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal, as by Ctrl-Z."""
    if not LINUX:
        return _ps("-o", "state=", "-p", str(pid)).strip().startswith("T")
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"
    return False


def _children_on_linux(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                suppress(OSError),
                open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file,
            ):
                found += map(int, file.read().split())
    return found


def _family() -> dict[int, list[int]]:
    children: dict[int, list[int]] = defaultdict(list)
    for line in _ps("-axo", "pid=,ppid=").splitlines():
        pid, parent = map(int, line.split())
        children[parent].append(pid)
    return children


def _ps(*words: str) -> str:
    return subprocess.run(["ps", *words], capture_output=True, text=True, check=False).stdout
