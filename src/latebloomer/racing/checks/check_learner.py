"""A check that a learner is unchanged by save and load."""

import tempfile
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer.errors import LearnerError, need_whole
from latebloomer.racing.checkpoints.storage import Folder, Stored
from latebloomer.racing.learners.entries import Entry, need_learner, seed_of
from latebloomer.racing.learners.learner import (
    Given,
    Learner,
    as_score,
    bare,
    can_save,
    wrong_evaluation,
)
from latebloomer.racing.runners.process_state import OwnStates, read_numbers, save_with_numbers

STATE = "state"  # place of the checkpoint in the storage


@dataclass(frozen=True)
class LearnerCheck:
    """The result of `check_learner`; `print` it.

    Attributes
    ----------
    saves : bool
        Whether the learner has save and load.
    exact : bool
        Whether the restored learner (or one trained again) has the same next scores, bit for bit,
        and the same parameters and evaluation, if it has these.
    expected : tuple[float, ...]
        Scores of the learner that was never interrupted.
    resumed : tuple[float, ...]
        Scores of the learner that was saved and loaded.
    bytes : int
        Size of a checkpoint, in bytes.
    save_seconds : float
        Duration of a save, in seconds.
    sentence : str
        The result as text.
    """

    saves: bool
    exact: bool
    expected: tuple[float, ...]
    resumed: tuple[float, ...]
    bytes: int
    save_seconds: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def check_learner(factory: Given, pulls: int = 3, seed: int = 0) -> LearnerCheck:
    """Check that a learner is unchanged by save and load.

    Two learners are built, and each is pulled `2 * pulls` times.

    Parameters
    ----------
    factory : Given
        Function that builds a learner, as in `race`.
    pulls : int
        Number of pulls before the save, and again after it.
    seed : int
        Seed for a factory with a parameter `seed`.

    Returns
    -------
    LearnerCheck
        The result; `print` it.

    Raises
    ------
    LearnerError
        The learner cannot be trained pull by pull.

    Examples
    --------
    >>> import itertools
    >>> print(check_learner(lambda: itertools.count(0.5)))
    no save and load, but trained again it gives the same scores bit for bit: a resume repeats ...
    """
    pulls = need_whole("pulls", pulls, 1, "there must be something to save")
    need_learner("factory", factory)
    entry = Entry("the learner", factory, seed_of(seed, "the learner"))
    if not entry.rebuilds:
        raise LearnerError(
            f"{factory!r} is a learner, but check_learner needs a function that builds one: the "
            "saved state is loaded into a second, fresh learner"
        )
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        with closing(Attempt(entry)) as first:
            saves, before = can_save(first.learner), [first.pull() for _ in range(pulls)]
            parameters = _parameters(first.learner)
            kept = first.save(Folder(place)) if saves else Stored("", 0, 0.0)
            expected = tuple(first.pull() for _ in range(pulls))
        with closing(Attempt(entry)) as second:
            wrong = ""
            if saves:
                wrong = second.load(Path(place, STATE), pulls, parameters, before[-1])
            else:
                for _ in range(pulls):
                    second.pull()
            resumed = tuple(second.pull() for _ in range(pulls))
    exact = expected == resumed and not wrong
    sentence = wrong or _sentence(saves, expected, resumed)
    return LearnerCheck(saves, exact, expected, resumed, kept.size, kept.seconds, sentence)


class Attempt:
    """A learner with its own random numbers, as in a race."""

    def __init__(self, entry: Entry) -> None:
        self.arm, self.done, self.seed = 0, 0, entry.seed
        self._states = OwnStates()
        with self.calling():
            self.learner: Any = entry.build()

    def calling(self) -> AbstractContextManager[None]:
        """Return a context in which the learner is called."""
        return self._states.calling(self)

    def pull(self) -> float:
        """Make one pull."""
        try:
            with self.calling():
                score = as_score(self.learner.pull())
        except StopIteration:
            text = "the learner ended before the check: ask for fewer pulls="
            raise LearnerError(text) from None
        self.done += 1
        return score

    def save(self, storage: Folder) -> Stored:
        """Save the learner and its random numbers."""
        with self.calling():
            return storage.keep(STATE, partial(save_with_numbers, self.learner.save))

    def load(self, folder: Path, pulls: int, parameters: list[Any], score: float) -> str:
        """Load the learner and its random numbers; return how it differs from the saved one."""
        with self.calling():
            self.learner.load(folder)
            wrong = _wrong_state(self.learner, parameters, score)
            read_numbers(folder)
        self.done = pulls
        return wrong

    def close(self) -> None:
        """Restore the program's own random numbers."""
        self._states.leave()


def _parameters(learner: Learner) -> list[Any]:
    """Return copies of the parameters of a learner's model, if it is a Keras or PyTorch model."""
    model: Any = getattr(bare(learner), "model", None)
    if hasattr(model, "get_weights"):
        return [np.array(value) for value in model.get_weights()]
    values = model.state_dict().values() if hasattr(model, "state_dict") else []
    return [np.array(value.cpu()) for value in values if hasattr(value, "cpu")]


def _wrong_state(learner: Learner, parameters: list[Any], score: float) -> str:
    """Return how a restored learner differs from the saved one; empty if it does not."""
    now = _parameters(learner)
    same = [np.array_equal(*pair) for pair in zip(parameters, now, strict=False)]
    if len(now) != len(parameters) or not all(same):
        return (
            f"loaded from its checkpoint, {len(parameters) - sum(same)} of {len(parameters)} "
            "arrays of parameters are not those that were saved: save() or load() leaves them out"
        )
    value = wrong_evaluation(learner, score)
    if value is None:
        return ""
    return (
        f"loaded from its checkpoint, it evaluates to {value:.6g} instead of {score:.6g}: load() "
        "does not restore what save() wrote"
    )


def _sentence(saves: bool, expected: tuple[float, ...], resumed: tuple[float, ...]) -> str:
    how = "loaded from its checkpoint" if saves else "no save and load, but trained again"
    pairs = enumerate(zip(expected, resumed, strict=True), len(expected) + 1)
    for n, (wanted, score) in pairs:
        if score != wanted:
            return (
                f"{how}, pull {n} scores {score!r} instead of {wanted!r}: after a resume the race "
                "continues with a learner that is not quite the one recorded, and the verdict may "
                "differ. Save the state of its own random generators too, or seed by pull number"
            )
    if saves:
        scores = f"the same next {len(expected)} scores"
        return f"{how} it gives {scores} bit for bit: resume is exact and cheap"
    return (
        f"{how} it gives the same scores bit for bit: a resume repeats all of its pulls and ends "
        "where it was; save and load would make that cheap"
    )
