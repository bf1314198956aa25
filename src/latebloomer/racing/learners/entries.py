"""The learners of a call: names, seeds, declared attributes, and pulls that objects have had."""

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

ADAPTERS = {  # libraries whose objects are not learners, and the classes that wrap them
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
    """One learner as it was passed, and the seed with which it is built."""

    name: str
    passed: Any
    seed: int
    share: Share | None = None  # fraction of its full training per pull; None: a pull is one step
    logs: Path | None = None  # folder for the logs of learners, next to the journal, if any

    @property
    def rebuilds(self) -> bool:
        """True if a new learner can be built at any time."""
        return not _is_object(self.passed)

    def build(self) -> Learner:
        """Return the learner: the object itself, or the object that the function returns."""
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
        """Return the result of the function, which may need the entry itself to build."""
        if hasattr(self.passed, "build_in_race"):  # a program, for example, writes a log
            return self.passed.build_in_race(self.seed, self.name, self.logs)
        return self.passed(seed=self.seed) if _takes_seed(self.passed) else self.passed()


def entries_of(learners: Mapping[str, Given], seed: int) -> list[Entry]:
    """Return the learners of a race, checked but not built yet.

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
            raise LearnerError(  # the object would be trained twice per sweep
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
    """Return whether a function has a parameter `seed` that is not bound already."""
    function = inspect.unwrap(learner) if callable(learner) else learner
    bound = function.keywords if isinstance(function, partial) else {}
    return takes(learner, "seed") and "seed" not in bound


def need_learners(learners: Any) -> None:
    """Raise a `SettingError` if `learners` is not a dict."""
    if not isinstance(learners, Mapping):
        raise SettingError(
            f"learners={brief(learners)}, but learners must be a dict of names and learners: "
            'race({"forest": Forest(), "net": make_net}, budget=2000)'
        )


def with_shares(entries: Sequence[Entry], shares: Mapping[str, Share]) -> list[Entry]:
    """Return the learners with the share of a full training that is one pull of each."""
    return [entry._replace(share=shares.get(entry.name)) for entry in entries]


def with_logs(entries: Sequence[Entry], journal: Path | None) -> list[Entry]:
    """Return the learners with the folder `<journal>.logs`; learners that use it create it."""
    logs = None if journal is None else logs_next_to(journal)
    return [entry._replace(logs=logs) for entry in entries]


def need_learner(name: str, learner: Any) -> None:
    """Raise a `LearnerError` unless `learner` is an object with `pull` or a function."""
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
    """Return text about the class that wraps an object of another library, or None.

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
    """Return the seed of a learner from its name, so that the order of learners does not matter.

    >>> seed_of(0, "net"), seed_of(1, "net")
    (1945099854, 3996520328)
    """
    text = f"{seed}/{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def _is_object(learner: Any) -> bool:
    return hasattr(learner, "pull") and not inspect.isclass(learner)


def declared_range(learners: Mapping[str, Any]) -> tuple[float | None, float | None] | None:
    """Return the range of all scores, if every learner has an attribute `score_range`."""
    ranges = [getattr(learner, "score_range", None) for learner in learners.values()]
    if not ranges or any(limits is None or isinstance(limits, property) for limits in ranges):
        return None
    lows, highs = zip(*map(range_of_scores, ranges), strict=True)
    return None if None in lows else min(lows), None if None in highs else max(highs)


def range_of_scores(limits: Any) -> tuple[float | None, float | None]:
    """Return a range as two numbers, with None for no limit; raise a `SettingError` if invalid."""
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
    """Return the attribute `settings` of each learner that has one, as read from a journal."""
    pairs = learners.items() if isinstance(learners, Mapping) else ()
    by_name = {name: getattr(learner, "settings", None) for name, learner in pairs}
    return {
        name: {str(key): plain_or_text(value) for key, value in settings.items()}
        for name, settings in by_name.items()
        if isinstance(settings, Mapping)
    }


# Number of pulls that each object has had, by its id; None if it was stopped in the middle of a
# pull. Suppose that a learner is passed as an object and cannot load a checkpoint. When the race
# is resumed, the object is either new or the one that raced before, as in a notebook after Ctrl-C.
# Both look the same, but an object that raced before must not be trained again.
_had: dict[int, tuple[weakref.ref[Any], int | None]] = {}


def note_pulls(learner: Any, pulls: int | None) -> None:
    """Store how many pulls an object has had, as long as the object exists."""
    place = id(learner)
    with suppress(TypeError):  # no weak reference is possible, so nothing can be stored
        _had[place] = weakref.ref(learner, lambda _: _had.pop(place, None)), pulls


def trained_before(learner: Any) -> list[str]:
    """Return a warning if an object that begins a race has raced before in this process."""
    ref, pulls = _had.get(id(learner), (None, 0))
    if ref is None or ref() is not learner or pulls == 0:
        return []
    had = "was stopped in the middle of a pull" if pulls is None else f"has had {pulls} pulls"
    return [
        f"the object {had} in an earlier race, and its scores continue from there: give a "
        "function that builds a new one"
    ]


def already_had(learner: Any, needed: int) -> int:
    """Return the number of pulls that an object already has: 0 if it is new, or `needed`."""
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
