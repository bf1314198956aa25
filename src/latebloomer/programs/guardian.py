"""Send a race's requests to the guardian: start, pause, continue and end programs."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.programs.process_tree import started_at

SCRIPT = Path(__file__).with_name("guardian_process.py")


class Started(NamedTuple):
    """A program that runs."""

    output: int  # file descriptor from which its output is read
    process: "ProcessMark"


class ProcessMark(NamedTuple):
    """A program's process, by which it is recognized after its guardian has ended."""

    pid: int
    since: str | None  # start time, as text from the system
    key: str  # in the environment of the program and of its descendants
    guardian: int  # process that started it
    guardian_since: str | None

    @property
    def is_running(self) -> bool:
        """Whether the process runs, and is still this program's."""
        return started_at(self.pid) == self.since

    @property
    def is_left(self) -> bool:
        """Whether its guardian has ended, which ends all programs unless it is killed."""
        return started_at(self.guardian) != self.guardian_since


class Guardian:
    """Starts one guardian process and sends requests to it, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._read: Any = None
        self._running: dict[str, ProcessMark] = {}

    def start(
        self, key: str, words: Sequence[str], env: Mapping[str, str], folder: str | None
    ) -> Started:
        """Start a program, and end an earlier one with its key.

        A `LearnerError` says why a program cannot be started.
        """
        reading, writing = os.pipe()
        try:
            request = {"words": [*words], "env": {**env}, "cwd": folder}
            reply = self._ask("start", key, request, [writing])
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        if "error" in reply:
            os.close(reading)
            place = f" in the folder {folder}" if folder else ""
            error = LearnerError(
                f"the program {words[0]!r} cannot be started{place} ({reply['error']}): "
                "check its name and its path"
            )
            error.final = True  # it will not be there at another attempt
            raise error
        mark = self._running[key] = ProcessMark(
            reply["pid"], reply["started"], key, *reply["guardian"]
        )
        return Started(reading, mark)

    def pause(self, key: str) -> None:
        """Stop a program and all its descendants until it is continued."""
        self._ask("pause", key)

    def resume(self, key: str) -> None:
        """Continue a program where it was stopped."""
        self._ask("continue", key)

    def code(self, key: str) -> int | None:
        """Return the exit code of a program, None while it runs."""
        reply = self._ask("code", key)
        if reply["gone"]:
            raise LearnerError("the program was ended from outside its pull")
        return None if reply["code"] is None else int(reply["code"])

    def end(self, key: str) -> None:
        """Let a program end, within two seconds."""
        self._running.pop(key, None)
        with suppress(LearnerError):  # the guardian itself has ended, and the program with it
            self._ask("end", key)

    def is_gone(self, key: str) -> bool:
        """Return whether all processes of a program that was told to end have ended."""
        return bool(self._ask("code", key)["gone"])

    def end_leftovers(self, marks: Sequence[ProcessMark]) -> None:
        """End programs that an earlier process of the race has left, not those that run now."""
        left = [mark[:3] for mark in marks if mark.key not in self._running]
        if left:
            self._ask("leftovers", "", {"programs": left})

    def close(self) -> None:
        """End all programs; the guardian needs up to two seconds for it."""
        with self._lock:
            self._running.clear()
            self._forget_guardian()

    def forget(self) -> None:
        """Close the socket in a forked process: the guardian belongs to the race's own process."""
        if self._line is not None:
            self._read.close()
            self._line.close()
        self.__init__()  # type: ignore[misc]

    def _ask(
        self, do: str, key: str, request: dict[str, Any] | None = None, files: Sequence[int] = ()
    ) -> Any:
        whole = {"do": do, "key": key} | (request or {})
        with self._lock:
            if self._line is None:
                self._open()
            reply = self._exchange(whole, files)
            if reply is not None:
                return reply
            self._end_what_it_guarded()
        raise LearnerError(
            "the process that guards the programs of this race has ended, and the programs with "
            "it: the next attempt starts them again"
        )

    def _exchange(self, request: dict[str, Any], files: Sequence[int] = ()) -> Any:
        """Send a request and return the reply; None if the guardian has ended."""
        assert self._line is not None
        text = json.dumps(request).encode() + b"\n"
        try:
            if files:
                sent = socket.send_fds(self._line, [text], [*files])
                self._line.sendall(text[sent:])
            else:
                self._line.sendall(text)
            reply = self._read.readline()
        except OSError:
            reply = b""
        if reply:
            return json.loads(reply)
        self._forget_guardian()  # the next request starts another one
        return None

    def _forget_guardian(self) -> None:
        """Close the line to the guardian, and wait for its end."""
        if self._line is not None:
            self._read.close()
            self._line.close()
            self._line = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _end_what_it_guarded(self) -> None:
        """Let another guardian end the programs of one that was killed."""
        left = [mark[:3] for mark in self._running.values()]
        self._running.clear()
        if left:
            self._open()
            self._exchange({"do": "leftovers", "key": "", "programs": left})

    def _open(self) -> None:
        mine, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SCRIPT), str(its.fileno())],
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._line, self._read = mine, mine.makefile("rb")


_guardian = Guardian()


def guardian() -> Guardian:
    """Return the guardian of this process's programs."""
    return _guardian


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guardian.forget)
