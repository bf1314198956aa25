"""The process that starts, pauses, continues and ends all programs of a race.

It runs as a script, with the standard library alone. Requests arrive as lines of JSON on a socket;
each is answered by one line. When the other end of the socket is closed, however the race has
ended, it ends all programs and their descendants, and then itself.
"""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

if __name__ == "__main__":  # started by its path: its neighbor is found in the same folder
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from process_tree import (  # type: ignore[import-not-found]
        LINUX,
        descendants,
        is_stopped,
        started_at,
    )
else:
    from latebloomer.programs.process_tree import LINUX, descendants, is_stopped, started_at

MARK = "LATEBLOOMER_PROGRAM"  # variable by which descendants are known after their parent's end
GRACE = 2.0  # seconds between SIGTERM and SIGKILL
LOOK = 0.2 if LINUX else 1.0  # seconds between two looks at the race while a program runs
IDLE = 1.0  # seconds between two looks at programs that are all paused
ENDING = 0.05  # seconds between two looks at programs that are to end
ADOPT = 36  # Linux's PR_SET_CHILD_SUBREAPER: orphans become children of this process


class Program:
    """A program, with all processes that it has started."""

    def __init__(self, key: str, request: dict[str, Any], output: int) -> None:
        self.key = key
        env = {**request["env"], MARK: key}
        self.process = subprocess.Popen(
            request["words"],
            cwd=request["cwd"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.kill_at: float | None = None  # when SIGKILL follows SIGTERM
        self.paused = False  # by the race, between two pulls
        self.held = False  # by the guardian, because the race is stopped

    def members(self) -> set[int]:
        """Return all of its processes that live now."""
        root = self.process.pid
        roots = {root} | {pid for pid in orphans() if _mark_of(pid) == self.key}
        return {pid for pid in roots | descendants(roots) if pid != os.getpid()}

    def signal(self, which: signal.Signals) -> None:
        """Signal all of its processes, until no new one is found."""
        _to_group(self.process.pid, which)
        reached: set[int] = set()
        while new := self.members() - reached:
            for pid in new:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, which)
            reached |= new

    def pause(self) -> None:
        """Stop it until its next pull."""
        self.paused = True
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run for a pull."""
        self.paused = self.held = False
        self.signal(signal.SIGCONT)

    def follow(self, race_stopped: bool) -> None:
        """Stop it while the race is stopped, as by Ctrl-Z, and let it run after that."""
        if race_stopped and not (self.paused or self.held):
            self.held = True
            self.signal(signal.SIGSTOP)
        elif self.held and not race_stopped:
            self.held = False
            if not self.paused:
                self.signal(signal.SIGCONT)

    def end(self) -> None:
        """Let it end: SIGKILL follows if it does not."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + GRACE
            self.signal(signal.SIGTERM)
            self.signal(
                signal.SIGCONT
            )  # a stopped process handles SIGTERM only after it is continued

    def is_gone(self) -> bool:
        """Return whether all of its processes have ended; kill those that had their time."""
        alive = [pid for pid in self.members() if started_at(pid) is not None]
        if alive and self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.signal(signal.SIGKILL)
        return self.process.poll() is not None and not alive


def _to_group(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, which)


def _mark_of(pid: int) -> str | None:
    """Return the key of the program to which a process belongs, on Linux."""
    start = f"{MARK}=".encode()
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for variable in file.read().split(b"\0"):
            if variable.startswith(start):
                return variable[len(start) :].decode()
    return None


programs: dict[str, Program] = {}
ending: list[Program] = []


def orphans() -> set[int]:
    """Return adopted children of this process: a program started them, and has ended."""
    if not LINUX:
        return set()
    known = {one.process.pid for one in (*programs.values(), *ending)}
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(map(int, file.read().split())) - known
    return set()


def reap() -> None:
    """Take note of children that have ended, adopted ones included."""
    for one in (*programs.values(), *ending):
        one.process.poll()
    for pid in orphans():
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    ending[:] = [one for one in ending if not one.is_gone()]


def answer(request: dict[str, Any], files: list[int]) -> dict[str, Any]:
    """Carry out a request."""
    key, do = request["key"], request["do"]
    if do == "start":
        retire(key)
        try:
            programs[key] = Program(key, request, files[0])
        except OSError as error:
            return {"error": error.strerror or str(error), "file": error.filename}
        pid = programs[key].process.pid
        me = os.getpid()
        return {"pid": pid, "started": started_at(pid), "guardian": [me, started_at(me)]}
    if do == "leftovers":
        end_leftovers(request["programs"])
        return {}
    program = programs.get(key)
    if program is None:
        return {"code": None, "gone": not any(one.key == key for one in ending)}
    if do == "pause":
        program.pause()
    elif do == "continue":
        program.resume()
    elif do == "end":
        retire(key)
    return {"code": program.process.poll(), "gone": False}


def retire(key: str) -> None:
    """Begin to end a program."""
    if (program := programs.pop(key, None)) is not None:
        program.end()
        ending.append(program)


def end_leftovers(listed: list[tuple[int, str, str]]) -> None:
    """End programs of another guardian, which was killed, if they still run."""
    keys = [key for _, _, key in listed]
    roots = {pid for pid, since, _ in listed if started_at(pid) == since} | marked(keys)
    members = roots | descendants(roots)
    for which in (signal.SIGTERM, signal.SIGCONT):
        for root in roots:
            _to_group(root, which)
        signal_all(members, which)
    end = time.monotonic() + GRACE
    while any(started_at(pid) is not None for pid in members) and time.monotonic() < end:
        time.sleep(0.01)
    signal_all(members | marked(keys), signal.SIGKILL)


def signal_all(pids: set[int], which: signal.Signals) -> None:
    """Signal processes, those that have ended excepted."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, which)


def marked(keys: list[str]) -> set[int]:
    """Return all processes with the mark of a program in their environment, on Linux."""
    if not LINUX:
        return set()
    found = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid for pid in found if _mark_of(pid) in keys}


def follow_race(race: int) -> None:
    """Stop and continue the programs that run, as the race itself is stopped and continued."""
    running = [one for one in programs.values() if not one.paused or one.held]
    if running:
        stopped = is_stopped(race)
        for one in running:
            one.follow(stopped)


def time_to_next_look() -> float:
    """Return how many seconds to wait for a request."""
    if ending:
        return ENDING
    return IDLE if all(one.paused for one in programs.values()) else LOOK


def serve(line: socket.socket, race: int) -> None:
    """Answer requests until the other end is closed."""
    waiting, files = b"", []
    while True:
        ready, _, _ = select.select([line], [], [], time_to_next_look())
        if ending or not ready:
            reap()
        if not ready:
            follow_race(race)
            continue
        data, new, _, _ = socket.recv_fds(line, 1 << 16, 1)
        if not data:
            return
        files += new
        waiting += data
        while b"\n" in waiting:
            text, _, waiting = waiting.partition(b"\n")
            request = json.loads(text)
            own = [files.pop(0)] if request["do"] == "start" else []
            reply = answer(request, own)
            for file in own:
                os.close(file)
            line.sendall(json.dumps(reply).encode() + b"\n")


def main() -> None:
    """Guard programs until the race is over."""
    race = os.getppid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        # Its end is the end of the socket. A program would inherit SIG_IGN, but no function.
        signal.signal(number, lambda number, frame: None)
    if LINUX:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    line = socket.socket(fileno=int(sys.argv[1]))
    with suppress(OSError):
        serve(line, race)
    for key in list(programs):
        retire(key)
    while ending or orphans():
        reap()
        for pid in orphans():  # of programs that ended before
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
