"""End the processes of Ray that a program has left; run as `watchdog.py PID FOLDER`.

When a program is killed, the kernel ends the processes that it has started directly (at Ray's
request), but not the processes started by these: workers run for seconds, and Ray's agents for a
minute. All of them, and processes that learners have started in a worker, can be recognized by the
output files of Ray's processes, which they have open for writing. These files are in the folder of
this Ray, which only its user can enter. The program itself and its forked processes do not have
them open.

This script uses only the standard library, so that it starts in 20 ms.
"""

import os
import select
import shutil
import signal
import sys
from contextlib import suppress

LONG = 10.0  # seconds to wait for the end of a killed process
ROUNDS = 5  # rounds, because a process may start another one before it is ended


def main(driver: int, folder: str) -> None:
    """Wait until the program ends or gives a sign; then end its Ray and remove the folder."""
    wait_for_end(driver)
    if sys.platform == "linux":
        end_writers(f"{os.path.realpath(folder)}/", spare=driver)
    shutil.rmtree(folder, ignore_errors=True)


def wait_for_end(driver: int) -> None:
    """Return when the program has ended or has given the sign.

    Waiting for the end of the input is not enough, because processes that the program forks hold
    its other end, too.
    """
    if sys.platform != "linux":
        sys.stdin.buffer.read(1)
        return
    ends = [sys.stdin.fileno()]
    with suppress(OSError):  # an old kernel, or the process has already ended
        ends.append(os.pidfd_open(driver))
    if os.getppid() == driver:
        select.select(ends, [], [])


def end_writers(folder: str, spare: int = 0) -> None:
    """End every process that writes into the folder, and wait until they have ended."""
    for _ in range(ROUNDS):
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {spare}
        handles = [opened for pid in pids if (opened := _handle(pid, folder)) is not None]
        if not handles:
            return
        for handle in handles:
            with suppress(OSError):  # the process has ended meanwhile
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        for handle in handles:
            select.select([handle], [], [], LONG)
            os.close(handle)


def _handle(pid: int, folder: str) -> int | None:
    """Return a handle of a process if it writes into the folder, else None."""
    # It has ended, belongs to another user, or the kernel is older than 5.3.
    with suppress(OSError):
        numbers, handle = os.listdir(f"/proc/{pid}/fd"), os.pidfd_open(pid)
        if any(_is_output(pid, number, folder) for number in numbers):
            return handle
        os.close(handle)
    return None


def _is_output(pid: int, number: str, folder: str) -> bool:
    """Return whether a process writes to one of Ray's output files in the folder."""
    with suppress(OSError):  # the file was closed meanwhile
        path = os.readlink(f"/proc/{pid}/fd/{number}")
        if path.startswith(folder) and path.endswith((".out", ".err")):
            with open(f"/proc/{pid}/fdinfo/{number}") as file:
                flags = next(line for line in file if line.startswith("flags:"))
            return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
