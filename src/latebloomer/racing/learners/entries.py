"""Learners as they were passed: their names, seeds, what they declare, and the pulls they had."""

import hashlib
import inspect
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer._util.text import brief, plain_or_text
from latebloomer.errors import LearnerError, SettingError, require
from latebloomer.racing.learners.learner import (
    Given,
    Learner,
    ScoreStream,
    Share,
    ShareLearner,
    takes,
)
from latebloomer.racing.learners.log_files import logs_next_to

ADAPTERS = {  # libraries whose objects are not learners, and the class that makes learners of them
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


class Entry(NamedTuple):
    """One learner as it was given, and the seed that it is built with."""

    name: str
    passed: Any
    seed: int
    share: Share | None = None  # of its full training that a pull is; None: one step
    logs: Path | None = None  # folder next to the journal for what learners write, if any

    @property
    def rebuilds(self) -> bool:
        """True if a new learner can be built at any time."""
        return not _is_object(self.passed)

    def build(self) -> Learner:
        """Return the learner: the object itself, or what the function returns."""
        learner = self._built() if self.rebuilds else self.passed
        return learner if self.share is None else ShareLearner(learner, self.share)

    def _built(self) -> Learner:
        """Return a learner of what the function returns: an object, or a generator of scores."""
        returned = self._called()
        if hasattr(returned, "pull"):
            return returned
        if isinstance(returned, Iterator):
            return ScoreStream(returned)
        raise LearnerError(
            f"the function for learner {self.name!r} returned {brief(returned)}, but it must "
            "return an object with a method pull(), or yield scores"
        )

    def _called(self) -> Any:
        """Return what the function returns, which may ask for its place in the race."""
        if hasattr(self.passed, "build_in_race"):  # such as a program, which writes a log
            return self.passed.build_in_race(self.seed, self.name, self.logs)
        return self.passed(seed=self.seed) if _takes_seed(self.passed) else self.passed()


def entries_of(learners: Mapping[str, Given], seed: int) -> list[Entry]:
    """Return the learners of a race, checked; nothing is built yet.

    >>> entries_of({"a": lambda: iter([0.5])}, seed=0)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: 1 learner was given, but a race needs at least 2.
    """
    need_learners(learners)
    first: dict[int, str] = {}
    entries = []
    for name, learner in learners.items():
        require(
            isinstance(name, str) and bool(name.strip()),
            "learners",
            [name],
            "named by text",
            "the verdict names the winner",
        )
        if _is_object(learner) and first.setdefault(id(learner), name) != name:
            raise LearnerError(  # it would be trained twice per sweep
                f"learners {first[id(learner)]!r} and {name!r} are the same object, but each name "
                "must have its own: build two, or give a function that builds one"
            )
        need_learner(name, learner)
        entries.append(Entry(name, learner, seed_of(seed, name)))
    if len(learners) < 2:
        count = "1 learner was" if learners else "0 learners were"
        raise SettingError(f"{count} given, but a race needs at least 2.")
    return entries


def _takes_seed(learner: Any) -> bool:
    """Return whether a function has a parameter `seed` to which it was not bound already."""
    function = inspect.unwrap(learner) if callable(learner) else learner
    bound = function.keywords if isinstance(function, partial) else {}
    return takes(learner, "seed") and "seed" not in bound


def need_learners(learners: Any) -> None:
    """Raise a `SettingError` if learners are not named by a dict."""
    if not isinstance(learners, Mapping):
        raise SettingError(
            f"learners={brief(learners)}, but learners must be a dict of names and learners: "
            'race({"forest": Forest(), "net": make_net}, budget=2000)'
        )


def with_shares(entries: Sequence[Entry], shares: Mapping[str, Share]) -> list[Entry]:
    """Return the learners with what a pull of each is: a share of its full training."""
    return [entry._replace(share=shares.get(entry.name)) for entry in entries]


def with_logs(entries: Sequence[Entry], journal: Path | None) -> list[Entry]:
    """Return the learners with the folder `<journal>.logs`, which is made by those that use it."""
    logs = None if journal is None else logs_next_to(journal)
    return [entry._replace(logs=logs) for entry in entries]


def need_learner(name: str, learner: Any) -> None:
    """Raise a `LearnerError` unless this is an object with `pull` or a function."""
    adapter = None if hasattr(learner, "pull") else adapter_for(learner)
    if adapter is not None:
        wrong = f"is of another library: {adapter}"
    elif _is_object(learner) and not callable(learner.pull):
        wrong = f"has pull={brief(learner.pull)}, but pull must be a method"
    elif _is_object(learner) or callable(learner):
        return
    elif isinstance(learner, Iterator):
        wrong = (
            "is a generator or iterator, which a race cannot restart. Pass the generator function "
            "itself, without calling it"
        )
    else:
        wrong = (
            f"is {brief(learner)}, but a learner needs a method pull() that trains one more unit "
            "and returns the score; or give a function that returns such an object, or one that "
            "yields scores"
        )
    raise LearnerError(f"learner {name!r} {wrong}")


def adapter_for(thing: Any) -> str | None:
    """Return which class makes a learner of another library's object, as text, or None.

    >>> from fractions import Fraction
    >>> adapter_for(Fraction(1, 2)), adapter_for(len)
    (None, None)
    """
    kind = thing if inspect.isclass(thing) else type(thing)
    homes = [base.__module__.partition(".")[0] for base in kind.__mro__]
    library = next((home for home in homes if home in ADAPTERS), None)
    if library is None:
        return None
    pages = {"sklearn": "docs/scikit-learn.md", "optuna": "docs/tuners.md"}
    page = pages.get(library, "docs/training-libraries.md")
    return f"{kind.__name__}: use {ADAPTERS[library]}, as {page} shows"


def seed_of(seed: int, name: str) -> int:
    """Return the seed of a learner, by its name, so that the order does not matter.

    >>> seed_of(0, "net"), seed_of(1, "net")
    (1945099854, 3996520328)
    """
    text = f"{seed}/{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def _is_object(learner: Any) -> bool:
    return hasattr(learner, "pull") and not inspect.isclass(learner)


def declared_range(learners: Mapping[str, Any]) -> tuple[float | None, float | None] | None:
    """Return the range that holds all scores, if every learner has an attribute `score_range`."""
    ranges = [getattr(learner, "score_range", None) for learner in learners.values()]
    if not ranges or any(limits is None or isinstance(limits, property) for limits in ranges):
        return None
    lows, highs = zip(*map(range_of_scores, ranges), strict=True)
    return None if None in lows else min(lows), None if None in highs else max(highs)


def range_of_scores(limits: Any) -> tuple[float | None, float | None]:
    """Return a range as two numbers, None for an open end; raise a `SettingError` if wrong."""
    try:
        low, high = (end if end is None else float(end) for end in limits)
        right = (-inf if low is None else low) < (inf if high is None else high)
    except (TypeError, ValueError):
        right = False
    if not right:
        raise SettingError(
            f"score_range={brief(limits)}, but score_range must be (low, high), as (0, 1) for an "
            "accuracy or (None, 1) for an R2"
        )
    return low, high


def described(learners: Any) -> dict[str, dict[str, Any]]:
    """Return the attribute `settings` of each learner that has one, as a journal returns it."""
    pairs = learners.items() if isinstance(learners, Mapping) else ()
    by_name = {name: getattr(learner, "settings", None) for name, learner in pairs}
    return {
        name: {str(key): plain_or_text(value) for key, value in settings.items()}
        for name, settings in by_name.items()
        if isinstance(settings, Mapping)
    }


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
