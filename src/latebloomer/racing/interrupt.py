"""Ctrl-C during a race: the first finishes the running pull, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from latebloomer.racing.live_display import print_aside


class Interrupt:
    """While it is open, the first SIGINT only sets `wanted`."""

    def __init__(self) -> None:
        self.wanted = False
        self._before: Any = None
        self._ours = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may set handlers; a program's own handler is left alone.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._before = signal.signal(signal.SIGINT, self._note)
            self._ours = True
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True
        print_aside("\nstopping after the running pull; Ctrl-C again stops at once")

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)
