"""Is a learner the same after save and load? Ask before a long race."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from latebloomer.errors import LearnerError, require
from latebloomer.racing.checkpoints.storage import digest_of
from latebloomer.racing.learner import (
    Entry,
    Given,
    Learner,
    as_score,
    bare,
    can_save,
    evaluation,
    same_evaluation,
    seed_of,
)


@dataclass(frozen=True)
class LearnerCheck:
    """What `check_learner` found. `print` it.

    Attributes
    ----------
    saves : bool
        It has save and load.
    exact : bool
        Restored (or trained again), its parameters and its evaluation are the same, as far as it
        offers them, and its next scores are the same bit for bit.
    expected : tuple[float, ...]
        Scores of the learner that was never interrupted.
    resumed : tuple[float, ...]
        Scores of the one that was saved and loaded.
    bytes : int
        Size of a checkpoint, in bytes.
    save_seconds : float
        Seconds that a save takes.
    sentence : str
        All of it in words.
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
    """Check that a learner is the same after save and load.

    `factory` builds a learner, as in `race`; two are built and each is pulled `2 * pulls` times.

    Parameters
    ----------
    factory : Given
        Builds a learner, as in `race`.
    pulls : int
        Before and after the save.
    seed : int
        For a factory with a parameter `seed`.

    Returns
    -------
    LearnerCheck
        What was found; `print` it.

    Raises
    ------
    LearnerError
        It cannot be trained pull by pull.

    Examples
    --------
    >>> import itertools
    >>> print(check_learner(lambda: itertools.count(0.5)))
    no save and load, but trained again it gives the same scores bit for bit: a resume repeats ...
    """
    require(pulls >= 1, "pulls", pulls, "at least 1", "there must be something to save")
    entry = Entry("the learner", factory, seed_of(seed, "the learner"))
    if not entry.rebuilds:
        raise LearnerError(
            f"{factory!r} is a learner, but check_learner needs a function that builds one: the "
            "saved state is loaded into a second, fresh learner"
        )
    first = entry.build()
    before = [_pull(first) for _ in range(pulls)]
    parameters = _parameters(first)
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        size, took = _save(first, Path(place))
        expected = tuple(_pull(first) for _ in range(pulls))
        second = _restored(entry, Path(place), pulls)
        wrong = _wrong_state(second, parameters, before[-1])
        resumed = tuple(_pull(second) for _ in range(pulls))
    exact, saves = expected == resumed and not wrong, can_save(first)
    sentence = wrong or _sentence(saves, exact, pulls, expected, resumed)
    return LearnerCheck(saves, exact, expected, resumed, size, took, sentence)


def _pull(learner: Learner) -> float:
    try:
        return as_score(learner.pull())
    except StopIteration:
        raise LearnerError("the learner ended before the check: ask for fewer pulls=") from None


def _save(learner: Learner, place: Path) -> tuple[int, float]:
    if not can_save(learner):
        return 0, 0.0
    began = perf_counter()
    learner.save(place)  # type: ignore[attr-defined]
    took = perf_counter() - began
    return digest_of(place)[1], took


def _restored(entry: Entry, place: Path, pulls: int) -> Learner:
    learner = entry.build()
    if can_save(learner):
        learner.load(place)  # type: ignore[attr-defined]
    else:
        for _ in range(pulls):
            _pull(learner)
    return learner


def _parameters(learner: Learner) -> list[Any]:
    """Return copies of the parameters of a learner's model, if it is one of Keras or PyTorch."""
    model: Any = getattr(bare(learner), "model", None)
    if hasattr(model, "get_weights"):
        return [np.array(value) for value in model.get_weights()]
    values = model.state_dict().values() if hasattr(model, "state_dict") else []
    return [np.array(value.cpu()) for value in values if hasattr(value, "cpu")]


def _wrong_state(learner: Learner, parameters: list[Any], score: float) -> str:
    """Return how a restored learner differs from the one that was saved; empty if it does not."""
    if not can_save(learner):
        return ""
    now = _parameters(learner)
    same = [np.array_equal(*pair) for pair in zip(parameters, now, strict=False)]
    if len(now) != len(parameters) or not all(same):
        return (
            f"loaded from its checkpoint, {len(parameters) - sum(same)} of {len(parameters)} "
            "arrays of parameters are not those that were saved: save() or load() leaves them out"
        )
    value = evaluation(learner)
    if value is None or same_evaluation(value, score) or evaluation(learner) != value:
        return ""
    return (
        f"loaded from its checkpoint, it evaluates to {value:.6g} instead of {score:.6g}: load() "
        "does not restore what save() wrote"
    )


def _sentence(
    saves: bool, exact: bool, pulls: int, expected: tuple[float, ...], resumed: tuple[float, ...]
) -> str:
    how = "loaded from its checkpoint it" if saves else "no save and load, but trained again it"
    if exact and saves:
        return f"{how} gives the same next {pulls} scores bit for bit: resume is exact and cheap"
    if exact:
        return (
            f"{how} gives the same scores bit for bit: a resume repeats all of its pulls and "
            "ends where it was; save and load would make that cheap"
        )
    k = next(k for k in range(pulls) if expected[k] != resumed[k])
    how = "loaded from its checkpoint" if saves else "without save and load, trained again"
    return (
        f"{how}, pull {pulls + k + 1} scores {resumed[k]!r} instead of {expected[k]!r}: after a "
        "resume the race continues with a learner that is not quite the one recorded. The "
        "journal's scores still count and no pull is lost, but the verdict may differ from the "
        "verdict of an undisturbed race. Save the state of every random generator too, or seed by "
        "pull number"
    )
