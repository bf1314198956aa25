"""A race that runs in another process, followed by its journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from latebloomer.errors import NoScoresYet
from latebloomer.racing.journal import Place, files
from latebloomer.racing.journal.journal import near
from latebloomer.racing.journal.names import journal_at
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict

EVERY = 1.0  # seconds between two looks, at least
SHARE = 0.1  # of the time at most goes into looking: a long race is looked at less often


def follow(journal: Place | None = None) -> Iterator[Verdict]:
    """The standings whenever there is something new, until no process has the race any more.

    Only what is new is read each time. The last one is the verdict, or how an interrupted race
    stands.
    """
    path = journal_at(journal)
    state: RaceState | None = None
    seen = 0
    with closing(files.read(path)) as opened:
        while True:
            held = files.is_held(path)  # before the look: what is written then is in the next one
            began = time.perf_counter()
            new = list(opened.read(after=seen))
            if state is None:
                state = RaceState.replayed(new)
            else:
                state.replay(new)
            seen = new[-1].number if new else seen
            if new and state.session.spent:
                yield build_verdict(state, opened.path)
            if not held:
                break
            time.sleep(max(EVERY, (time.perf_counter() - began) / SHARE))
    if not state.session.spent:
        raise NoScoresYet(
            f"the race of {near(path.absolute())} has begun, but no pull is finished"
        )
