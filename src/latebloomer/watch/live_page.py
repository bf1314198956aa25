"""Pages that are open in any number of tabs: drawn once, and changed by small messages.

Each change has a number. A tab sends the last one it has received and gets those after it, written
once for all tabs. A tab that is too far behind, or comes from another server, gets the whole page.
"""

import json
from collections import deque
from threading import RLock
from time import perf_counter
from typing import Any, Protocol

INTERVAL = 0.5  # seconds between two reads of a journal
KEPT = 64  # messages for tabs that come back
Message = dict[str, Any]


class Content(Protocol):
    """What a page shows, and how it changes."""

    @property
    def hurries(self) -> bool:
        """True if there is more to read immediately."""

    def body(self) -> str:
        """Return the whole page."""

    def changes(self) -> Message | None:
        """Return what has changed since the last call; None if nothing has."""


class LivePage:
    """Number the changes of a content and keep the latest."""

    def __init__(self, content: Content, server: str) -> None:
        self.content = content
        self._server = server  # a name that another server does not have
        self._number = 0
        self._messages: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._lock = RLock()
        self._due = 0.0  # when to look again

    def update(self) -> None:
        """Look for changes."""
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
