"""The race's end of the guardian: requests to start, pause, continue and end programs."""

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

SCRIPT = Path(__file__).with_name("guardian_process.py")


class Started(NamedTuple):
    """A program that runs."""

    output: int  # file descriptor from which its output is read
    pid: int
    since: str | None  # when it was started, as the system tells it


class Guardian:
    """Starts one guardian process and sends requests to it, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._read: Any = None

    def start(
        self, key: str, words: Sequence[str], env: Mapping[str, str], folder: str | None
    ) -> Started:
        """Start a program; one of the same key is ended. Raise a `LearnerError` if it cannot."""
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
            raise LearnerError(
                f"the program {words[0]!r} cannot be started{place} ({reply['error']}): "
                "check its name and its path"
            )
        return Started(reading, reply["pid"], reply["started"])

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
        with suppress(LearnerError):  # then the guardian has ended it
            self._ask("end", key)

    def is_gone(self, key: str) -> bool:
        """Return whether all processes of a program that was told to end have ended."""
        return bool(self._ask("code", key)["gone"])

    def end_leftover(self, pid: int, since: str) -> bool:
        """End a program that an earlier process of the race has left; return whether it ran."""
        return bool(self._ask("leftover", "", {"pid": pid, "started": since})["ended"])

    def close(self) -> None:
        """End all programs; the guardian needs up to two seconds for it."""
        with self._lock:
            if self._line is not None:
                self._read.close()
                self._line.close()
                self._line = None
            if self._process is not None:
                self._process.wait()
                self._process = None

    def forget(self) -> None:
        """Close the line in a forked process: the race that started the guardian keeps it."""
        if self._line is not None:
            self._read.close()
            self._line.close()
        self.__init__()  # type: ignore[misc]

    def _ask(
        self, do: str, key: str, request: dict[str, Any] | None = None, files: Sequence[int] = ()
    ) -> Any:
        text = json.dumps({"do": do, "key": key} | (request or {})).encode() + b"\n"
        with self._lock:
            if self._line is None:
                self._open()
            assert self._line is not None
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
            self._line.close()
            self._line = None  # the next request starts another guardian
        raise LearnerError(
            "the process that guards the programs of this race has ended, and the programs with "
            "it: the next attempt starts them again"
        )

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
