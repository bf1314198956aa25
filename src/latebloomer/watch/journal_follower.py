"""A reader of a journal that another process is writing."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from latebloomer._util.text import near
from latebloomer.errors import NoScoresYet
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal_file import Place
from latebloomer.racing.journal.races_folder import journal_at
from latebloomer.racing.journal.schema import Entry
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict

EVERY = 1.0  # minimum number of seconds between two reads
SHARE = 0.1  # maximum share of the time for reading, so a long race is read less often


class JournalFollower:
    """The state of a race, kept up to date by `read`.

    `on_start` is called when the first event of a race is read; the race may be a new one that has
    replaced another. `on_entry` is called after each event has changed the state.
    """

    def __init__(
        self,
        path: Path,
        on_start: Callable[[RaceState], None] = lambda state: None,
        on_entry: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        self.path = path
        self.state: RaceState | None = None
        self.latest = 0.0  # time of the latest event, in seconds since 1970
        self._on_start, self._on_entry = on_start, on_entry
        self._number = 0  # number of the latest event

    def read(self, most: int | None = None) -> int:
        """Read up to `most` new events and return their number."""
        with closing(files.read(self.path, brief=True)) as journal:
            with closing(journal.read()) as entries:  # type: ignore[type-var]
                first = next(entries, None)
            if first is None:
                return 0
            if self.state is None or getattr(first.event, "race", "") != self.state.id:
                self.state = RaceState.replayed([first])
                self._number, self.latest = first.number, first.at
                self._on_start(self.state)
            before = self._number
            with closing(journal.read(before)) as entries:  # type: ignore[type-var]
                self.state.replay(self._noted(islice(entries, most)))
        return self._number - before

    def _noted(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            yield entry
            self._number, self.latest = entry.number, entry.at
            self._on_entry(entry)


def follow(journal: Place | None = None) -> Iterator[Verdict]:
    """Yield the standings after every change, until no process runs the race.

    The last one is the verdict, or the standings of an interrupted race.
    """
    path = journal_at(journal)
    race = JournalFollower(path)
    while True:
        held = files.is_held(path)  # before the read: later events are in the next read
        began = time.perf_counter()
        new = race.read()
        if new and race.state is not None and race.state.session.spent:
            yield build_verdict(race.state, path.absolute())
        if not held:
            break
        time.sleep(max(EVERY, (time.perf_counter() - began) / SHARE))
    if race.state is None or not race.state.session.spent:
        raise NoScoresYet(f"the race of {near(path.absolute())} has started but has no score yet")
