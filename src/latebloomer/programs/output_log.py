"""What a program has printed: its last lines in memory, all of it in a file of limited size."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from latebloomer._util.text import one_line

LARGEST = 10 << 20  # bytes of a log; beyond that its older half goes
KEPT = 20  # lines in memory


class OutputLog:
    """Writes an output to a file, if there is one; a full disk loses lines, never a pull."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.last: deque[str] = deque(maxlen=KEPT)
        self.echo: Callable[[str], object] | None = None  # also gets each line

    def begin(self) -> None:
        """Make the folder of the file."""
        if self.path is not None:
            with suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, data: bytes) -> None:
        """Append an output as it came."""
        if self.path is None:
            return
        with suppress(OSError), self.path.open("ab") as file:
            if file.tell() + len(data) > LARGEST:
                self._cut()
            file.write(data[-LARGEST // 2 :])

    def _cut(self) -> None:
        assert self.path is not None
        with self.path.open("r+b") as file:
            file.seek(-(LARGEST // 2), 2)
            newer = file.read()
            file.seek(0)
            file.write(b"[older lines were removed: this log has reached 10 MB]\n" + newer)
            file.truncate()

    def note(self, line: str) -> None:
        """Remember a line."""
        self.last.append(one_line(line)[:300])
        if self.echo is not None:
            self.echo(line)

    def ends(self, lines: int = 5) -> str:
        """Return the last lines, indented, to be shown in a message."""
        shown = list(self.last)[-lines:]
        return "\n".join(f"  | {line}" for line in shown) if shown else "  (it printed nothing)"
