"""What a program has printed: its latest lines in memory, all of it in a file of limited size."""

import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from latebloomer._util.text import one_line

LARGEST = 10 << 20  # bytes of a log; a larger log loses its older half
KEPT = 20  # lines in memory
SHOWN = 300  # characters of a line in a message
MOST_WAITING = 1 << 20  # characters of lines after the last counted score; older lines go


class OutputLog:
    """Writes an output to a file, if there is one; a full disk loses lines, never a pull."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: int | None = None  # stays open: opening it for each write takes longer
        self.last: deque[str] = deque(maxlen=KEPT)
        self.lines = 0  # so far
        self._waiting: deque[str] = deque()  # lines after that of the last counted score
        self._characters = 0  # of these lines
        self._echo: Callable[[str], object] | None = None

    def begin(self) -> None:
        """Make the folder of the file."""
        if self.path is not None:
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, data: bytes) -> None:
        """Append an output as it came."""
        if self.path is None or not data:
            return
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                weakref.finalize(self, os.close, self._file)
            if os.fstat(self._file).st_size + len(data) > LARGEST:
                self._cut()
            os.write(self._file, data[-LARGEST // 2 :])

    def _cut(self) -> None:
        assert self.path is not None
        with self.path.open("r+b") as file:
            file.seek(-(LARGEST // 2), 2)
            newer = file.read()
            file.seek(0)
            file.write(b"[older lines were removed: this log has reached 10 MB]\n" + newer)
            file.truncate()

    def note(self, line: str) -> None:
        """Remember a line; write it to where `echo` says."""
        self.lines += 1
        if line.strip():
            self.last.append(line.strip()[:SHOWN])
        if self._echo is not None:
            self._echo(line)
            return
        self._waiting.append(line)
        self._characters += len(line)
        while self._characters > MOST_WAITING:
            self._forget_first()

    def forget(self, line: int) -> None:
        """Forget the lines up to this one, the line of a score that counts now."""
        while self._waiting and self.lines - len(self._waiting) < line:
            self._forget_first()

    def _forget_first(self) -> None:
        self._characters -= len(self._waiting.popleft())

    @property
    def waiting(self) -> Sequence[str]:
        """Lines after that of the last counted score."""
        return self._waiting

    def restore(self, lines: int, waiting: Sequence[str]) -> None:
        """Set the number of lines so far, and those after the last counted score."""
        self.lines, self._waiting = lines, deque(waiting)
        self._characters = sum(map(len, waiting))

    def echo(self, write: Callable[[str], object]) -> None:
        """Write the lines after the last counted score, and from now on each line that comes."""
        self._echo = write
        while self._waiting:
            line = self._waiting[0]
            self._forget_first()
            write(line)

    def ends(self, lines: int = 5) -> str:
        """Return the last lines, indented, to be shown in a message."""
        shown = list(self.last)[-lines:]
        return (
            "\n".join(f"  | {one_line(line)}" for line in shown)
            if shown
            else "  (it printed nothing)"
        )
