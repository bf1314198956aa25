"""Ends what a program leaves of its Ray: a script next to the program, `watchdog.py PID FOLDER`.

The kernel ends the processes that a killed program has started itself (Ray asks it to), but not
those that these have started: workers run for seconds, Ray's agents for a minute. All of them,
and what learners have started in a worker, are known by the output of Ray's processes, which they
have open for writing: files in the folder of this Ray, which only its user can enter. The program
itself and what it has forked have none of them.

The standard library only, so that it takes 20 ms to start.
"""

import os
import select
import shutil
import signal
import sys
from contextlib import suppress

LONG = 10.0  # seconds in which a killed process must be gone, unless its disk hangs
ROUNDS = 5  # a process may start another one before it is ended; that one writes there too


def main(driver: int, folder: str) -> None:
    """Wait for the end of the program, or for its word; then end its Ray and remove the folder."""
    wait_for_end(driver)
    if sys.platform == "linux":
        end_writers(f"{os.path.realpath(folder)}/", spare=driver)
    shutil.rmtree(folder, ignore_errors=True)


def wait_for_end(driver: int) -> None:
    """Return when the program has ended, or says so.

    The end of our input is not enough: processes that the program forks hold its other end, too.
    """
    if sys.platform != "linux":
        sys.stdin.buffer.read(1)
        return
    ends = [sys.stdin.fileno()]
    with suppress(OSError):  # an old kernel, or no such process any more
        ends.append(os.pidfd_open(driver))
    if os.getppid() == driver:
        select.select(ends, [], [])


def end_writers(folder: str, spare: int = 0) -> None:
    """End every process whose output goes into the folder, and wait until they are gone."""
    for _ in range(ROUNDS):
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {spare}
        handles = [opened for pid in pids if (opened := _handle(pid, folder)) is not None]
        if not handles:
            return
        for handle in handles:
            with suppress(OSError):  # it has ended meanwhile
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        for handle in handles:
            select.select([handle], [], [], LONG)
            os.close(handle)


def _handle(pid: int, folder: str) -> int | None:
    """Return a handle on a process that writes into the folder, else None."""
    with suppress(OSError):  # it has ended, is another user's, or the kernel is older than 5.3
        numbers, handle = os.listdir(f"/proc/{pid}/fd"), os.pidfd_open(pid)
        if any(_is_output(pid, number, folder) for number in numbers):
            return handle
        os.close(handle)
    return None


def _is_output(pid: int, number: str, folder: str) -> bool:
    """Return whether a process writes to one of Ray's output files in the folder."""
    with suppress(OSError):  # it is closed meanwhile
        path = os.readlink(f"/proc/{pid}/fd/{number}")
        if path.startswith(folder) and path.endswith((".out", ".err")):
            with open(f"/proc/{pid}/fdinfo/{number}") as file:
                flags = next(line for line in file if line.startswith("flags:"))
            return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
