"""What can race: an object with `pull`, a function that makes one, or a generator of scores.

The shortest learner is a generator function::

    def net(seed):
        model = make_model(seed)
        while True:
            train_one_epoch(model)
            yield accuracy(model), model     # or only the score

A `pull` trains one more step and returns the score now. It raises `StopIteration`, as a generator
does at its end, when there is nothing left to train: the arm keeps its last score. A learner may
offer `pull(steps=1)`: if a pull of the race is many of its steps, all of them are requested
together, and it is scored once.
"""

from __future__ import annotations

import hashlib
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isclose, isfinite
from numbers import Complex, Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from latebloomer._util.text import brief, reason_of
from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.training_share import Share, ShareLearner

LARGEST = 1e100  # what a session takes
ADAPTERS = {  # whose objects are no learners themselves, and what makes one of them
    "xgboost": "latebloomer.integrations.xgboost.XGBoostLearner",
    "lightgbm": "latebloomer.integrations.lightgbm.LightGBMLearner",
    "catboost": "latebloomer.integrations.catboost.CatBoostLearner",
    "lightning": "latebloomer.integrations.lightning.LightningLearner",
    "pytorch_lightning": "latebloomer.integrations.lightning.LightningLearner",
    "transformers": "latebloomer.integrations.transformers.HuggingFaceLearner",
    "keras": "latebloomer.integrations.keras.KerasLearner",
    "torch": "latebloomer.integrations.torch.TorchLearner",
    "sklearn": "latebloomer.integrations.sklearn.SklearnLearner",
    "optuna": "latebloomer.integrations.optuna.TunerLearner",
}


@runtime_checkable
class Learner(Protocol):
    """An arm that really trains. `save(folder)` and `load(folder)` are optional."""

    def pull(self) -> float:
        """Train one more unit and return the score now."""


@runtime_checkable
class CanSave(Protocol):
    """A learner whose state outlives the process."""

    def save(self, folder: Path) -> None:
        """Write the state into an empty folder."""

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`."""


Given: TypeAlias = Learner | Callable[..., Any]


class ScoreStream:
    """A generator of scores, or of (score, model), as a learner."""

    def __init__(self, scores: Iterator[Any]) -> None:
        self.scores = scores
        self.model: Any = None  # what came with the newest score

    def pull(self) -> float:
        item = next(self.scores)
        if isinstance(item, tuple) and len(item) == 2:
            item, self.model = item
        return item


class Entry(NamedTuple):
    """One learner as it was given, and the seed that it is built with."""

    name: str
    given: Any
    seed: int
    share: Share | None = None  # of its full training that a pull is; None: one step

    @property
    def rebuilds(self) -> bool:
        """True if a new learner can be built at any time."""
        return not _is_object(self.given)

    def build(self) -> Learner:
        """Return the learner: the object itself, or what the function returns."""
        made = self._build()
        return made if self.share is None else ShareLearner(made, self.share)

    def _build(self) -> Learner:
        if not self.rebuilds:
            return self.given
        made = self.given(seed=self.seed) if _takes_seed(self.given) else self.given()
        if hasattr(made, "pull"):
            return made
        if isinstance(made, Iterator):
            return ScoreStream(made)
        raise LearnerError(
            f"the function for learner {self.name!r} returned {brief(made)}, but it must return "
            "an object with a method pull(), or yield scores"
        )


def entries_of(learners: Mapping[str, Given], seed: int) -> list[Entry]:
    """Return the learners of a race, checked; nothing is built yet.

    >>> entries_of({"a": lambda: iter([0.5])}, seed=0)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: learners=['a'], but learners must be at least 2: with one ...
    """
    if not isinstance(learners, Mapping):
        raise SettingError(
            f"learners={brief(learners)}, but learners must be a dict of names and learners: "
            'race({"forest": Forest(), "net": make_net}, budget=2000)'
        )
    for name in learners:
        if not isinstance(name, str) or not name.strip():
            raise SettingError(
                f"learners=[{brief(name)}], but learners must be named by text: the verdict names "
                "the winner"
            )
    if len(learners) < 2:
        raise SettingError(
            f"learners={list(learners)}, but learners must be at least 2: with one there is "
            "nothing to choose"
        )
    _once(learners)
    return [_entry(name, given, seed) for name, given in learners.items()]


def with_shares(entries: Iterable[Entry], shares: Mapping[str, Share]) -> list[Entry]:
    """Return the learners with what a pull of each is: a share of its full training."""
    return [entry._replace(share=shares.get(entry.name)) for entry in entries]


def _entry(name: str, given: Any, seed: int) -> Entry:
    if _is_object(given) and not callable(given.pull):
        raise LearnerError(
            f"learner {name!r} has pull={brief(given.pull)}, but pull must be a method"
        )
    adapter = None if hasattr(given, "pull") else adapter_for(given)
    if adapter is not None:
        raise LearnerError(f"learner {name!r} is of another library: {adapter}")
    if _is_object(given) or callable(given):
        return Entry(name, given, seed_of(seed, name))
    if isinstance(given, Iterator):
        raise LearnerError(
            f"Learner {name!r} is a generator or iterator, which a race cannot restart. Pass the "
            "generator function itself, without calling it."
        )
    raise LearnerError(
        f"learner {name!r} is {brief(given)}, but a learner needs a method pull() that trains "
        "one more unit and returns the score; or give a function that returns such an object, or "
        "one that yields scores"
    )


def adapter_for(thing: Any) -> str | None:
    """Return which class makes a learner of another library's object, as text, or None.

    >>> from fractions import Fraction
    >>> adapter_for(Fraction(1, 2)), adapter_for(len)
    (None, None)
    """
    kind = thing if inspect.isclass(thing) else type(thing)
    homes = [base.__module__.partition(".")[0] for base in kind.__mro__]
    found = next((home for home in homes if home in ADAPTERS), None)
    if found is None:
        return None
    own_page = {"sklearn": "scikit-learn.md", "optuna": "optuna.md"}
    page = own_page.get(found, "training-libraries.md")
    return f"{kind.__name__}: use {ADAPTERS[found]}, five lines, docs/{page}"


def _once(learners: Mapping[str, Any]) -> None:
    """Raise an error if one object has two names: it would be trained twice per sweep."""
    first: dict[int, str] = {}
    for name, given in learners.items():
        if _is_object(given) and first.setdefault(id(given), name) != name:
            raise LearnerError(
                f"learners {first[id(given)]!r} and {name!r} are the same object, but each name "
                "must have its own: build two, or give a function that builds one"
            )


def seed_of(seed: int, name: str) -> int:
    """Return the seed of a learner, by its name, so that the order does not matter.

    >>> seed_of(0, "net"), seed_of(1, "net")
    (1945099854, 3996520328)
    """
    return int.from_bytes(
        hashlib.sha256(f"{seed}/{name}".encode("utf-8", "surrogatepass")).digest()[:4], "big"
    )


def as_score(value: Any) -> float:
    """Return a pull's result as a finite number; raise a `LearnerError` if it is none."""
    if type(value) is float and -LARGEST <= value <= LARGEST:  # most are
        return value
    imaginary = isinstance(value, Complex) and not isinstance(value, Real)
    if isinstance(value, str | bytes) or value is None or imaginary:
        raise LearnerError(f"pull() returned {brief(value)}, but a score must be a number")
    try:
        score = float(value)
    except Exception as error:  # whatever the value's own code raises
        raise LearnerError(
            f"pull() returned {brief(value)}, but a score must be a number ({reason_of(error)})"
        ) from None
    if not isfinite(score) or abs(score) > LARGEST:
        raise LearnerError(
            f"pull() returned {score}, but a score must be a finite number of at most {LARGEST:g}"
        )
    return score


def evaluation(learner: Any) -> float | None:
    """Return the score of a learner's `evaluate()`, which is optional; None without one."""
    evaluate = getattr(bare(learner), "evaluate", None)
    try:
        inspect.signature(evaluate).bind()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # there is none, or the user's own method takes arguments
        return None
    value = evaluate()  # type: ignore[misc]
    return as_score(value) if isinstance(value, Real) else None


def same_evaluation(value: float, score: float) -> bool:
    """Return whether an evaluation is a recorded score, apart from rounding on other machines."""
    return isclose(value, score, rel_tol=1e-4, abs_tol=1e-6)


def can_save(learner: Any) -> bool:
    """Return whether a learner can save and load."""
    return callable(getattr(learner, "save", None)) and callable(getattr(learner, "load", None))


def trained(learner: Any) -> Any:
    """Return what the user gets: the object, or a generator's model if it yields one."""
    learner = bare(learner)
    if isinstance(learner, ScoreStream):
        return learner.scores if learner.model is None else learner.model
    return learner


def bare(learner: Any) -> Any:
    """Return the learner that was built, without what makes its pulls shares."""
    return learner.learner if isinstance(learner, ShareLearner) else learner


def steps_of(learner: Any) -> int | None:
    """Return the steps of the latest pull, if a pull is a share of a full training."""
    return learner.steps if isinstance(learner, ShareLearner) else None


def stand_at(learner: Any, pulls: int, recorded: Sequence[float]) -> None:
    """Tell a learner that counts its pulls how many it has had."""
    if isinstance(learner, ShareLearner) and pulls:
        learner.stand_at(pulls, recorded[pulls - 1])


def _is_object(given: Any) -> bool:
    return hasattr(given, "pull") and not inspect.isclass(given)


def _takes_seed(function: Any) -> bool:
    try:
        return "seed" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


# --- objects that were trained in this process before ---

# By id, how many pulls an object has had; None: it was stopped in the middle of one. A learner
# that is passed as an object and cannot load a checkpoint is, on resume, either new or still the
# one that was raced before, as in a notebook after Ctrl-C. From outside they look the same;
# training the latter again would train it twice.
_had: dict[int, tuple[weakref.ref[Any], int | None]] = {}


def note_pulls(learner: Any, pulls: int | None) -> None:
    """Remember how many pulls an object has had, for as long as it lives."""
    place = id(learner)
    with suppress(TypeError):  # it cannot be referred to weakly: nothing is known of it
        _had[place] = weakref.ref(learner, lambda _: _had.pop(place, None)), pulls


def already_had(learner: Any, needed: int) -> int:
    """Return the pulls that an object needs no more: none if it is new, all if it raced."""
    ref, pulls = _had.get(id(learner), (None, 0))
    if ref is None or ref() is not learner or pulls == 0:
        return 0
    if pulls == needed:
        return needed
    state = "was stopped in the middle of a pull" if pulls is None else f"has had {pulls} pulls"
    raise LearnerError(
        f"the object {state} in this process, and the race needs it at {needed}: give a fresh "
        "one, a function that builds one, or save and load"
    )
