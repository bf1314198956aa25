"""States of learners: when one is saved, which can be restored, and how that is done.

A learner is restored from its latest checkpoint and then repeats the pulls that are not in it.

A generator cannot be restored: during a race it is trained again. But its model is all that the
verdict returns, so a pickle of that saves a resume of a finished race the training. A learner
without `save` and `load` is pickled if few learners may be in memory (`max_in_memory=`); a resume
with or without that reads the pickle. docs/security.md says when pickles are read.
"""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing import learner as learners
from latebloomer.racing.checkpoints.storage import Folder, Storage, model_place
from latebloomer.racing.learner import Entry, Learner, bare
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Event, Saved, SaveFailed, ScoreReported

MODEL = "model.pickle"
LEARNER = "latebloomer-learner.pickle"
MOST_LOST = 20.0  # seconds of training of one arm that may be lost, unless `every` is given
WORTH = 20.0  # and at least this many times the duration of a save
LEAST_KEPT = 1.0  # seconds of training of a released arm: less is trained again


class Restorable(NamedTuple):
    """What brings a learner to `done` pulls."""

    done: int
    saved: Saved | None  # its latest checkpoint
    recorded: Sequence[float]  # the scores of its counted pulls
    storage: Storage | None


class SavedStates:
    """Knows the newest state of each learner; it lies under `<journal>.checkpoints/<arm>/<n>`.

    With `RayRunner(storage=...)` it lies there, under the race's id.
    """

    def __init__(self, race: RaceState, journal: Path | None, full: bool = False) -> None:
        self._race, self._journal = race, journal
        self._full = full  # wait for the disk
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """Where the files are; a temporary folder where the journal is in memory."""
        if self._storage is None:
            if self._journal is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="latebloomer-")
                self._storage = Folder(self._temporary.name)
            else:
                self._storage = Folder(f"{self._journal}.checkpoints", self._full)
        return self._storage

    def move_to(self, storage: Storage) -> None:
        """Keep the files in another storage than next to the journal, under the race's id."""
        own = storage.under(self._race.id)
        self._storage = replace(own, full=self._full) if isinstance(own, Folder) else own

    def newest(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state of at most `upto` pulls by the journal.

        Whether its files are as they were saved is seen where they are loaded.
        """
        saved = self._race.checkpoints.get(arm)
        return saved if saved is not None and saved.n <= upto else None

    def available(self, arm: int, upto: int) -> Saved | None:
        """Return the latest state whose files are seen from here."""
        return self._if_seen(self.newest(arm, upto))

    def restorable(self, arm: int, done: int, seen: bool = True) -> Restorable:
        """Return what brings an arm to `done` pulls: by files that are `seen` here, or not."""
        if not done:
            return Restorable(0, None, (), None)
        saved = self.available(arm, done) if seen else self.newest(arm, done)
        scores = self._race.session.scores(arm)
        return Restorable(done, saved, scores, self.storage if saved else None)

    def model(self, arm: int, n: int) -> Saved | None:
        """Return a generator's model after exactly n pulls, if its file is seen from here."""
        saved = self._race.models.get(arm)
        return self._if_seen(saved if saved is not None and saved.n == n else None)

    def _if_seen(self, saved: Saved | None) -> Saved | None:
        return saved if saved is not None and self.storage.has(saved.folder) else None

    def sweep(self) -> None:
        """Remove what a kill left half-written."""
        if isinstance(self.storage, Folder):
            self.storage.drop_drafts()

    def follow(self, journal: Path) -> None:
        """Move the checkpoints that lie next to the journal to its new name."""
        before, self._journal = self._journal, journal
        beside = Folder(f"{before}.checkpoints", self._full)
        if self._storage == beside:
            self._storage = Folder(f"{journal}.checkpoints", self._full)
            if Path(beside.root).is_dir():
                Path(beside.root).rename(self._storage.root)

    def drop_older(self, saved: Saved) -> None:
        """Remove states that are older than one in the journal."""
        with suppress(OSError):  # of a network: what is not removed now is removed next time
            self.storage.drop_all_but(saved.folder)

    def close(self) -> None:
        """Remove what was temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()


# --- restoring a learner ---


def restore(
    entry: Entry, at: Restorable, pull: Callable[[Learner], Any] = lambda learner: learner.pull()
) -> tuple[Learner, list[str], int]:
    """Build a learner, load its state and repeat the pulls that are not in it.

    `pull` makes one pull. Returns the learner, what the verdict should mention, and how many pulls
    were repeated.
    """
    notes: list[str] = []
    learner, start = _from_checkpoint(entry, at, notes)
    if start is None:
        new = entry.rebuilds or not at.done
        start = 0 if new else learners.already_had(bare(learner), at.done)
    learners.stand_at(learner, start, at.recorded)
    for n in range(start, at.done):
        score, recorded = _pull_again(learner, pull, n, at.done), at.recorded[n]
        if score != recorded and not any("deterministic" in note for note in notes):
            notes.append(
                f"trained again, pull {n + 1} scored {score:.6g}, but {recorded:.6g} is recorded: "
                "the learner is not deterministic, or its function reuses a trained model. The "
                "recorded scores count"
            )
    return learner, notes, at.done - start


def _from_checkpoint(entry: Entry, at: Restorable, notes: list[str]) -> tuple[Any, int | None]:
    """Return the learner with its saved state, and its pulls; or a new learner and None."""
    saved = at.saved
    if saved is None or at.storage is None:
        return entry.build(), None
    with at.storage.fetched(saved.folder, saved.digest) as folder:
        if folder is not None and (folder / LEARNER).is_file():
            try:  # and build nothing next to it: memory may be short
                return pickle.loads((folder / LEARNER).read_bytes()), saved.n
            except Exception as error:  # its class has moved, or is not in this program
                why = f"could not be unpickled ({reason_of(error)}), so it was trained again"
                notes.append(f"its checkpoint of pull {saved.n} {why}")
                return entry.build(), None
        learner: Any = entry.build()
        if folder is not None and learners.can_save(learner):
            learner.load(folder)
            recorded = at.recorded[saved.n - 1]
            value = learners.wrong_evaluation(learner, recorded)
            if value is not None:  # it is not the one that was scored
                raise LearnerError(
                    f"its checkpoint of pull {saved.n} evaluates to {value:.6g}, but "
                    f"{recorded:.6g} is recorded: load() does not restore what save() wrote. "
                    "check_learner(...) shows the difference"
                )
            return learner, saved.n
    if folder is None:
        why = "the files are missing, or their digest differs from the journal's"
        notes.append(f"its checkpoint of pull {saved.n} was not loaded: {why}")
    return learner, None


def _pull_again(learner: Learner, pull: Callable[[Learner], Any], n: int, done: int) -> float:
    try:
        return learners.as_score(pull(learner))
    except StopIteration:
        raise LearnerError(f"trained again, it ended after {n} pulls, not {done}") from None


# --- pickles ---


def is_bare(learner: Any) -> bool:
    """Return whether this is a generator that yields only scores: it cannot be kept."""
    return isinstance(learner, Iterator) and not hasattr(learner, "pull")


def pickle_learner(learner: Any, folder: Path) -> None:
    """Write a learner without `save` and `load` into the folder of a checkpoint."""
    with (folder / LEARNER).open("wb") as file:
        pickle.dump(learner, file, pickle.HIGHEST_PROTOCOL)


def keep_model(storage: Storage, arm: int, n: int, model: Any) -> Saved | None:
    """Pickle a generator's model; None if it is none, or if that fails: it is trained again."""
    place = model_place(arm, n)
    if model is None or hasattr(model, "pull") or is_bare(model):  # not what a generator yielded
        return None
    try:
        data = pickle.dumps(model)
        stored = storage.keep(place, lambda folder: (folder / MODEL).write_bytes(data))
    except (Exception, SystemExit):  # of the model's own pickling, or of the disk
        return None
    return Saved(arm, n, place, *stored)


def fetch_model(storage: Storage, saved: Saved) -> tuple[Any, str]:
    """Return the model that was kept, if its file is the one that was written; or why not."""
    again = f"its model of pull {saved.n} was not loaded ({{}}): it is trained again"
    try:
        with storage.fetched(saved.folder, saved.digest) as folder:
            if folder is None:
                return None, again.format("the file is missing or another one")
            return pickle.loads((folder / MODEL).read_bytes()), ""
    except (Exception, SystemExit) as error:  # whatever the model's own code raises
        return None, again.format(reason_of(error))


# --- when a state is worth saving ---


class CheckpointSchedule:
    """Counts what would be lost of each arm; it listens to the events of a race.

    >>> schedule = CheckpointSchedule(every=None, arms=1)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=3)
    (None, False)
    >>> schedule.on_event(ScoreReported(0, 0.5, seconds=15.0)), schedule.is_due(0, n=4)
    (None, True)
    """

    def __init__(self, every: int | None, arms: int, timed: bool = True) -> None:
        self.every = every  # pulls of one arm between two checkpoints
        self._timed = timed  # whether the time that would be lost counts where `every` is None
        self._unsaved = [0.0] * arms  # seconds of training since the newest checkpoint
        self._took = [0.0] * arms  # what saving took last

    def on_event(self, event: Event) -> None:
        """Take notice of a pull, or of a state that was saved."""
        if type(event) is ScoreReported:
            self._unsaved[event.arm] += event.seconds
        elif isinstance(event, Saved | SaveFailed):
            self.note_saved(event.arm, getattr(event, "seconds", 0.0))

    def note_saved(self, arm: int, took: float) -> None:
        """Count from here; after a failed save too, which is not tried again immediately."""
        self._unsaved[arm], self._took[arm] = 0.0, took

    def is_behind(self, arm: int) -> bool:
        """Return whether the arm has trained since its latest checkpoint."""
        return self._unsaved[arm] > 0

    def is_worth_it(self, arm: int) -> bool:
        """Return whether saving took less than a quarter of the training that it would keep."""
        return self._unsaved[arm] >= 4 * self._took[arm]

    def is_worth_keeping(self, arm: int) -> bool:
        """Return whether to save an arm that is released: a larger budget may revive it."""
        if self.every is not None:
            return self.is_behind(arm)
        return self._timed and self._unsaved[arm] >= max(LEAST_KEPT, 4 * self._took[arm])

    def is_due(self, arm: int, n: int) -> bool:
        """Return whether to save an arm after its n-th pull."""
        if self.every is not None:
            return n % self.every == 0
        return self._timed and self._unsaved[arm] >= max(MOST_LOST, WORTH * self._took[arm])
