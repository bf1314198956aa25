"""Live pages, open in any number of tabs: each is drawn once and changed by small messages.

Each change has a number. A tab sends the number of the last change that it has received, and gets
the later ones; each message is written once for all tabs. A tab that is too far behind, or that
another server has drawn, gets the whole page.
"""

import json
from collections import deque
from threading import RLock
from time import perf_counter
from typing import Any, Protocol

INTERVAL = 0.5  # seconds between two reads of a journal
KEPT = 64  # number of stored messages, for tabs that reconnect
Message = dict[str, Any]


class Content(Protocol):
    """The content of a live page, and its changes."""

    @property
    def hurries(self) -> bool:
        """True if there is more to read without waiting."""

    def body(self) -> str:
        """Return the whole page."""

    def changes(self) -> Message | None:
        """Return the changes since the last call; None if there are none."""


class LivePage:
    """A page that numbers the changes of its content and stores the latest ones."""

    def __init__(self, content: Content, server: str) -> None:
        self.content = content
        self._server = server  # random name of this server
        self._number = 0
        self._messages: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._lock = RLock()
        self._due = 0.0  # time of the next check

    def update(self) -> None:
        """Check for changes of the content."""
        with self._lock:
            changes = self.content.changes()
            self._due = 0.0 if self.content.hurries else perf_counter() + INTERVAL
            if changes is not None:
                self._number += 1
                self._messages.append((self._number, json.dumps(changes, separators=(",", ":"))))

    def body(self) -> tuple[str, str]:
        """Return the page and the number of the last change in it."""
        with self._lock:
            self.update()
            return self.content.body(), f"{self._server}-{self._number}"

    def since(self, seen: str) -> tuple[list[str], str]:
        """Return the messages that a tab has not received, and the number of the last one."""
        with self._lock:
            if perf_counter() > self._due:
                self.update()
            server, _, number = seen.partition("-")
            last = int(number) if server == self._server and number.isdigit() else -1
            if last == self._number:
                return [], seen
            missing = [text for k, text in self._messages if k > last]
            if last < 0 or len(missing) != self._number - last:
                missing = [json.dumps({"whole": self.content.body()})]
            return missing, f"{self._server}-{self._number}"
