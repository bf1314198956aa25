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

import hashlib
import inspect
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isclose
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, RewardError, SettingError, require
from latebloomer.racing.checkpoints.storage import Folder, Stored
from latebloomer.session import checked_inputs as inputs
from latebloomer.session.checked_inputs import LARGEST

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


class Share(NamedTuple):
    """What part of its full training a learner's pull is.

    >>> Share(250, 100).steps_after(1), Share(250, 100).steps_of(2)
    (3, 2)
    """

    full_steps: int  # steps of this learner's full training
    pulls: int  # pulls of a full training, the same for all learners

    def steps_after(self, n: int) -> int:
        """Return the steps after n pulls: round(n * full / pulls), but the first pull trains."""
        return max(min(n, 1), (2 * n * self.full_steps + self.pulls) // (2 * self.pulls))

    def steps_of(self, n: int) -> int:
        """Return the steps of the n-th pull; 0 if it adds none."""
        return self.steps_after(n) - self.steps_after(n - 1)

    @property
    def repeats_scores(self) -> bool:
        """True if some pulls add no step and repeat the last score."""
        return self.full_steps < self.pulls


class ShareLearner:
    """A learner whose pull is a share of its full training."""

    def __init__(self, learner: Any, share: Share) -> None:
        self.learner, self.share = learner, share
        self.steps = 0  # of the newest pull
        self.pulls = 0
        self.score: Any = None  # the latest
        self._ended = False
        self._at_once = _takes(learner.pull, "steps")
        for name in ("save", "load"):
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))

    def pull(self) -> Any:
        """Train the steps of the next pull; one that adds none repeats the last score."""
        steps = self.share.steps_of(self.pulls + 1)
        if steps and self._ended:
            raise StopIteration
        self.steps = self._train(steps) if steps else 0
        self.pulls += 1
        return self.score

    def _train(self, steps: int) -> int:
        """Train the steps, or those that are left, and return their number."""
        if self._at_once:
            self.score = self.learner.pull(steps=steps)
            return steps
        for made in range(steps):
            try:
                self.score = self.learner.pull()
            except StopIteration:
                if made == 0:
                    raise
                self._ended = True
                return made
        return steps


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
        made = self.given
        if self.rebuilds:
            made = self.given(seed=self.seed) if _takes(self.given, "seed") else self.given()
            if not hasattr(made, "pull"):
                if not isinstance(made, Iterator):
                    raise LearnerError(
                        f"the function for learner {self.name!r} returned {brief(made)}, but it "
                        "must return an object with a method pull(), or yield scores"
                    )
                made = ScoreStream(made)
        return made if self.share is None else ShareLearner(made, self.share)


def entries_of(learners: Mapping[str, Given], seed: int) -> list[Entry]:
    """Return the learners of a race, checked; nothing is built yet.

    >>> entries_of({"a": lambda: iter([0.5])}, seed=0)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: 1 learner was given, but a race needs at least 2.
    """
    need_learners(learners)
    first: dict[int, str] = {}
    entries = []
    for name, given in learners.items():
        require(isinstance(name, str) and bool(name.strip()), "learners", [name], "named by text",
                "the verdict names the winner")  # fmt: skip
        if _is_object(given) and first.setdefault(id(given), name) != name:
            raise LearnerError(  # it would be trained twice per sweep
                f"learners {first[id(given)]!r} and {name!r} are the same object, but each name "
                "must have its own: build two, or give a function that builds one"
            )
        _need_learner(name, given)
        entries.append(Entry(name, given, seed_of(seed, name)))
    if len(learners) < 2:
        count = "1 learner was" if learners else "0 learners were"
        raise SettingError(f"{count} given, but a race needs at least 2.")
    return entries


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


def _need_learner(name: str, given: Any) -> None:
    adapter = None if hasattr(given, "pull") else adapter_for(given)
    if adapter is not None:
        wrong = f"is of another library: {adapter}"
    elif _is_object(given) and not callable(given.pull):
        wrong = f"has pull={brief(given.pull)}, but pull must be a method"
    elif _is_object(given) or callable(given):
        return
    elif isinstance(given, Iterator):
        wrong = (
            "is a generator or iterator, which a race cannot restart. Pass the generator function "
            "itself, without calling it"
        )
    else:
        wrong = (
            f"is {brief(given)}, but a learner needs a method pull() that trains one more unit "
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
    found = next((home for home in homes if home in ADAPTERS), None)
    if found is None:
        return None
    pages = {"sklearn": "docs/scikit-learn.md", "optuna": "docs/tuners.md"}
    page = pages.get(found, "docs/training-libraries.md")
    return f"{kind.__name__}: use {ADAPTERS[found]}, as {page} shows"


def seed_of(seed: int, name: str) -> int:
    """Return the seed of a learner, by its name, so that the order does not matter.

    >>> seed_of(0, "net"), seed_of(1, "net")
    (1945099854, 3996520328)
    """
    text = f"{seed}/{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def as_score(value: Any) -> float:
    """Return a pull's result as a finite number; raise a `LearnerError` if it is none."""
    if type(value) is float and -LARGEST <= value <= LARGEST:  # most are
        return value
    try:
        return inputs.as_score(value)
    except RewardError:
        needed = f"a finite number of at most {LARGEST:g}: check the metric"
        raise LearnerError(f"the score is {brief(value)}, but it must be {needed}") from None


def evaluation(learner: Any) -> float | None:
    """Return the score of a learner's `evaluate()`, which is optional; None without one."""
    evaluate = getattr(bare(learner), "evaluate", None)
    try:
        inspect.signature(evaluate).bind()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # there is none, or the user's own method takes arguments
        return None
    try:
        value = evaluate()  # type: ignore[misc]
    except LearnerError:  # it has no score without training, such as the loss on training rows
        return None
    return as_score(value) if isinstance(value, Real) else None


def wrong_evaluation(learner: Any, score: float) -> float | None:
    """Return the evaluation of a restored learner if it is not its recorded score, else None.

    Nor is it wrong if it differs by rounding, as on other machines, or whenever it is made.
    """
    value = evaluation(learner)
    if value is None or isclose(value, score, rel_tol=1e-4, abs_tol=1e-6):
        return None
    return value if evaluation(learner) == value else None


def can_save(learner: Any) -> TypeGuard[CanSave]:
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
        learner.pulls, learner.score = pulls, recorded[pulls - 1]


def _is_object(given: Any) -> bool:
    return hasattr(given, "pull") and not inspect.isclass(given)


def _takes(function: Any, name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
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


# --- is a learner the same after save and load? ---


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
    saves = can_save(first)
    before = [_pull(first) for _ in range(pulls)]
    parameters = _parameters(first)
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        kept = Folder(place).keep("state", first.save) if can_save(first) else Stored("", 0, 0.0)
        expected = tuple(_pull(first) for _ in range(pulls))
        second = entry.build()
        if can_save(second):
            second.load(Path(place, "state"))
        else:
            for _ in range(pulls):
                _pull(second)
        wrong = _wrong_state(second, parameters, before[-1]) if saves else ""
        resumed = tuple(_pull(second) for _ in range(pulls))
    exact = expected == resumed and not wrong
    sentence = wrong or _sentence(saves, expected, resumed)
    return LearnerCheck(saves, exact, expected, resumed, kept.size, kept.seconds, sentence)


def _pull(learner: Learner) -> float:
    try:
        return as_score(learner.pull())
    except StopIteration:
        raise LearnerError("the learner ended before the check: ask for fewer pulls=") from None


def _parameters(learner: Learner) -> list[Any]:
    """Return copies of the parameters of a learner's model, if it is one of Keras or PyTorch."""
    model: Any = getattr(bare(learner), "model", None)
    if hasattr(model, "get_weights"):
        return [np.array(value) for value in model.get_weights()]
    values = model.state_dict().values() if hasattr(model, "state_dict") else []
    return [np.array(value.cpu()) for value in values if hasattr(value, "cpu")]


def _wrong_state(learner: Learner, parameters: list[Any], score: float) -> str:
    """Return how a restored learner differs from the one that was saved; empty if it does not."""
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
                "differ. Save the state of every random generator too, or seed by pull number"
            )
    if saves:
        scores = f"the same next {len(expected)} scores"
        return f"{how} it gives {scores} bit for bit: resume is exact and cheap"
    return (
        f"{how} it gives the same scores bit for bit: a resume repeats all of its pulls and ends "
        "where it was; save and load would make that cheap"
    )
