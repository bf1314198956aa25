"""Any learner of a race again, as it was after its last pull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latebloomer.racing.checkpoints.restore import Target, restore
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.learner import Entry, Learner, bare, trained
from latebloomer.racing.live_display import print_aside
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.object_pulls import already_had


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
        storage = self.states.storage if saved is not None else None

        def pulls_had(learner: Learner) -> int:
            return 0 if entry.rebuilds or not done else already_had(bare(learner), done)

        target = Target(entry, done, saved, self.race.session.scores(arm), storage)
        learner, notes, repeated = restore(target, pulls_had)
        again = f"; {repeated:,} of them were trained again" if repeated else ""
        print_aside(f"{name}: restored to its {done:,} pulls{again}")
        for note in notes:
            print_aside(f"{name}: {note}")
        return trained(learner)
