"""Who is waited for, when a pull made in this process is long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from types import TracebackType

from latebloomer.session.events import PullStarted

LONG = 10.0  # seconds after which a pull is worth a word
TICK = 0.5  # seconds between two looks


class LongPulls:
    """Looks from a thread of its own, because the race's is in the pull."""

    def __init__(
        self, newest: Callable[[], PullStarted | None], say: Callable[[PullStarted], None]
    ) -> None:
        self._newest, self._say = newest, say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(TICK):
            pull = self._newest()
            if pull is not None and monotonic() - pull.at >= LONG:
                self._say(pull)
