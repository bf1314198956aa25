"""A race with its journal: events are first written and then applied.

Everything that happens is an event. It is written to the journal before the session receives it,
so no decision depends on a pull that could be lost, and a pull that was not written does not
count. Races and the trials of other tools are recorded only here. Recording calls no callbacks or
displays.
"""

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import time

import numpy as np

from latebloomer._util.own_process import end_fork
from latebloomer._util.text import near
from latebloomer.errors import JournalError
from latebloomer.racing.journal import recovery
from latebloomer.racing.journal.event_log import EventLog
from latebloomer.racing.journal.schema import Entry
from latebloomer.racing.race_clock import RaceClock
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Event, ProcessStarted, WarningNoted
from latebloomer.version import __version__


class RecordedRace:
    """Write the events of one race, and keep its state and its clock.

    Parameters
    ----------
    state : RaceState
        State of the race from its journal.
    journal : EventLog
        Log to which the events are written.
    now : Callable[[], float] | None
        Gives the seconds on a clock that is never set. Default: `time.perf_counter`.
    """

    def __init__(
        self, state: RaceState, journal: EventLog, now: Callable[[], float] | None = None
    ) -> None:
        self.state, self.journal = state, journal
        self.clock = RaceClock(state, now=now)
        self._process = os.getpid()

    def record(self, *happened: Event) -> list[Event]:
        """Write events to the journal, then apply them to the race.

        Return the drops and revivals that follow from them.
        """
        if os.getpid() != self._process:
            end_fork()
        elapsed = self.clock.elapsed
        self.journal.append(*happened, elapsed=elapsed)
        self.state.elapsed = elapsed
        return [news for event in happened for news in self.state.apply(event)]

    def events(self) -> Iterator[Event]:
        """Yield all events so far, in order, including those of earlier processes."""
        return (entry.event for entry in self.journal.read())

    def move_if_lost(self) -> WarningNoted | None:
        """Continue in a new file next to the journal if the journal was deleted or replaced.

        Return a warning about what has happened to the journal, if anything has.
        """
        note = self.journal.take_note()
        if note:
            return WarningNoted(None, note)
        if self.journal.is_in_place():
            return None
        lost = self.journal
        self.journal = rescued = recovery.rescue(lost, self._known_entries())
        lost.close()
        old, new = near(lost.path or rescued.path), near(rescued.path)
        text = f"the journal {old} was deleted or replaced during the race: all of it is in {new}"
        return WarningNoted(None, text)

    def _known_entries(self) -> list[Entry]:
        """Return all entries of a lost journal, whose file is still open."""
        with suppress(JournalError):
            return list(self.journal.read())
        now, elapsed = time(), self.state.elapsed  # the times of the events are lost
        known = enumerate((self.state.created, *self.state.session.events), 1)
        return [Entry(number, now, elapsed, event) for number, event in known]

    def close(self) -> None:
        """Close the journal; the state can still be read."""
        self.journal.close()


def process_started() -> ProcessStarted:
    """Return the event for a process that starts or resumes a race."""
    return ProcessStarted(f"process {os.getpid()} on {platform.node()}", versions())


def versions() -> dict[str, str]:
    """Return the versions of Python and the libraries that the race uses."""
    return {
        "latebloomer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sqlite": sqlite3.sqlite_version,
        "platform": f"{platform.system()} {platform.machine()}",
        "byteorder": sys.byteorder,
    }
