"""Any learner of a race again, as it was after its last pull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.learner import Entry, trained
from latebloomer.racing.progress import print_aside
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.learner_host import LearnerHost
from latebloomer.racing.runners.own_state import OwnStates
from latebloomer.session.events import PullFailed


@dataclass(frozen=True, eq=False)
class LearnerLoader:
    """Restore learners of a race that has ended, in this process."""

    race: RaceState
    entries: list[Entry]
    states: SavedStates

    def __call__(self, name: str) -> Any:
        """Return a learner with all of its pulls, and print how many were trained again."""
        arm = self.race.names.index(name)
        entry, done = self.entries[arm], self.race.session.pulls_of(arm)
        saved = self.states.available(arm, done) if done else None
        own, scores = OwnStates(), self.race.session.scores(arm)
        host = LearnerHost(arm, entry, own)
        try:
            found = host.prepare(done, saved, scores, self.states.storage if saved else None)
        finally:
            own.leave()
        if isinstance(found, PullFailed):
            error = LearnerError(f"learner {name!r} cannot be restored ({found.reason})")
            error.add_note(found.details)
            raise error
        again = f"; {found.repeated:,} of them were trained again" if found.repeated else ""
        print_aside(f"{name}: restored to its {done:,} pulls{again}")
        for note in found.notes:
            print_aside(f"{name}: {note}")
        return trained(host.learner)
