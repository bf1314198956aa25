"""Checks that enough memory is free before large objects are created."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from latebloomer.errors import ChunkError

SMALL = 2**26  # requests up to 64 MiB skip the check
MEMINFO = Path("/proc/meminfo")
OWN_GROUPS, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Files of version 2 and of version 1: limit, used memory, and memory that can be freed.
GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


class FreeMemory(NamedTuple):
    """Free memory in bytes, and the source of this number."""

    size: int
    told_by: str


def need_memory(needed: int, what: str, advice: str, free: FreeMemory | None = None) -> None:
    """Raise a `ChunkError` unless `needed` bytes are free.

    >>> need_memory(2**60, "a table of 2^30 x 2^27 numbers", "give fewer arms")
    Traceback (most recent call last):
    latebloomer.errors.ChunkError: a table of 2^30 x 2^27 numbers takes 1,152,921,504,606,846,976
    bytes, but ... are free (...): give fewer arms
    """
    if needed <= SMALL:
        return
    free = free_memory() if free is None else free
    if needed > free.size:
        raise ChunkError(
            f"{what} takes {needed:,} bytes, but {free.size:,} are free ({free.told_by}): {advice}"
        )


def free_memory() -> FreeMemory:
    """Return the free memory: the minimum for the machine, containers and this process."""
    known = [*_of_the_machine(), *_of_containers(), *_of_this_process()]
    return min(known, default=FreeMemory(sys.maxsize, "the limit of this system is unknown"))


def _of_the_machine() -> Iterator[FreeMemory]:
    try:
        lines = MEMINFO.read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        kilobytes = int(sizes["MemAvailable"].split()[0])
        yield FreeMemory(1024 * kilobytes, "MemAvailable, /proc/meminfo")
    # Not Linux: use all memory of the machine, whether free or not.
    except (OSError, KeyError, ValueError):
        names = getattr(os, "sysconf_names", {})
        if "SC_PHYS_PAGES" in names:
            size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            yield FreeMemory(size, "the memory of this machine")


def _of_containers() -> Iterator[FreeMemory]:
    """Yield the free memory of this and outer control groups; cached files count as free."""
    lines = OWN_GROUPS.read_text().splitlines() if OWN_GROUPS.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        root = GROUPS / controllers
        own = root / path.strip("/")
        most, used, files = GROUP_FILES.get(controllers, ("", "", ""))
        for folder in (own, *own.parents):
            with suppress(OSError, KeyError, ValueError):  # no such file or no limit ("max")
                limit, taken = (int((folder / name).read_text()) for name in (most, used))
                stat = (folder / "memory.stat").read_text().splitlines()
                free = limit - taken + int(dict(line.split() for line in stat)[files])
                yield FreeMemory(max(0, free), f"{folder / most} less what is used")


def _of_this_process() -> Iterator[FreeMemory]:
    with suppress(ImportError, OSError, ValueError):  # no such limit on this system
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            taken = pages * os.sysconf("SC_PAGE_SIZE")
            yield FreeMemory(max(0, limit - taken), f"RLIMIT_AS of {limit:,} less what is used")
