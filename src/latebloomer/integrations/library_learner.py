"""The common part of all library learners: pulls, a metric, random states, checkpoints."""

import json
import random
import re
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from latebloomer._util.text import brief, plain_repr
from latebloomer.errors import (
    LearnerError,
    MissingExtra,
    SettingError,
    extra,
    install_command,
    need_whole,
    require,
)
from latebloomer.integrations.part_owners import TrainedParts
from latebloomer.racing.same_race import differences

LABEL = "learner.json"
LOWER = ("loss", "error", "mse", "mae", "rmse", "perplexity")
HIGHER = ("acc", "auc", "f1", "precision", "recall", "r2", "score", "bleu", "rouge")


class LibraryLearner(ABC):
    """Train a model of a library step by step and score it.

    A subclass trains in `_train`, scores in `_value`, and writes and reads its state in `_write`
    and `_read`. `_settings` describes the learner: a checkpoint is only loaded into a learner with
    equal settings.
    """

    package: ClassVar[str]  # name of the library and of the extra that installs it
    title: ClassVar[str]  # the library's name in messages
    harmless: ClassVar[frozenset[str]] = frozenset()  # settings that do not change the model
    full_steps: int | None = None
    steps: int = 0
    _sign = 1.0  # -1 for a metric that is better when lower
    _cut = False  # whether the training has ended before the race ended it
    _random: Any = None  # `RandomStates`, if the library draws from shared generators
    _settings: dict[str, Any]

    _trains: TrainedParts | None = None  # the user's objects that it trains

    def _import(self, module: str | None = None) -> Any:
        """Import the library, or another module that the learner needs."""
        return library(module or self.package, f"{self.title} learners", self.package)

    def _rank_by(self, metric: Any, maximize: bool | None) -> None:
        """Set the metric, and negate it if lower is better."""
        usable = callable(metric) or (isinstance(metric, str) and metric != "")
        require(usable, "metric", metric, "a name or a function", "a race has one score")
        known = maximize is None or isinstance(maximize, bool)
        require(known, "maximize", maximize, "True or False", "it says which values are better")
        if maximize is None:
            maximize = callable(metric) or self._higher_is_better(metric)
        self._metric, self._sign = metric, 1.0 if maximize else -1.0

    def _higher_is_better(self, metric: str) -> bool:
        """Return whether higher is better, as the metric's name tells."""
        name = metric.lower()
        lower, higher = (any(word in name for word in words) for words in (LOWER, HIGHER))
        if re.search("(^|_)(neg|negative)_", name):  # as in neg_log_loss
            lower, higher = higher, lower
        if lower != higher:
            return higher
        problem = f"metric={metric!r} does not say whether higher is better"
        raise SettingError(f"{problem}: give maximize=True or False")

    def _need_valid(self, valid: Any) -> None:
        """Raise a `LearnerError` if there is nothing to score on."""
        if valid is None:
            raise LearnerError(f"{type(self).__name__} has no evaluation set: give rows to score")

    def pull(self, steps: int = 1) -> float:
        """Train up to `steps` more steps and return the score: the metric, negated for a loss."""
        last = self.steps + at_least_1("steps", steps, "each pull must train something")
        last = min(last, self.full_steps or last)
        if last <= self.steps:
            raise StopIteration
        if self._trains is None:
            self._trains = TrainedParts()
        self._trains.claim(self._trained_parts())
        value = self._train(last)
        self.steps = min(last, self.full_steps or last)
        return self._sign * float(value)

    def _end_at(self, steps: int) -> None:
        """Note that the training ended early; raise `StopIteration` if no step was done."""
        if steps <= self.steps:
            raise StopIteration
        self.full_steps, self._cut = steps, True

    def evaluate(self) -> float:
        """Return the score of the model without further training."""
        return self._sign * float(self._value())

    def save(self, folder: Path) -> None:
        """Write the state in the library's own format, and a label for the learner."""
        self._write(Path(folder))
        label = self._label() | {"steps": self.steps, "cut": self._cut}
        label["random"] = self._random and self._random.state
        (Path(folder) / LABEL).write_text(json.dumps(label), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`."""
        label = json.loads((Path(folder) / LABEL).read_text(encoding="utf-8"))
        other = differences(label, self._label())
        if other:
            raise LearnerError(f"The checkpoint is of another learner: {'; '.join(other)}")
        if self._random is not None:
            self._random.state = label["random"]
        self._read(Path(folder), label["steps"])
        self.steps, self._trains = label["steps"], TrainedParts()
        self._trains.restored(self._trained_parts())
        if label["cut"]:
            self.full_steps, self._cut = self.steps, True

    def _label(self) -> dict[str, Any]:
        """Return all settings that influence the model, as they are read from JSON."""
        settings = {k: v for k, v in self._settings.items() if k not in self.harmless}
        label = {"learner": type(self).__name__, "settings": settings}
        return dict(json.loads(json.dumps(label, default=_name_of, sort_keys=True)))

    def _trained_parts(self) -> list[Any]:
        """Return the user's objects that a pull changes."""
        return []

    @abstractmethod
    def _train(self, last: int) -> Any:
        """Train until `last` steps are done, and return the metric."""

    @abstractmethod
    def _value(self) -> Any:
        """Return the metric of the model as it is now."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the state."""

    @abstractmethod
    def _read(self, folder: Path, steps: int) -> None:
        """Restore the state of a learner that has done `steps` steps."""


class AveragingLearner(LibraryLearner):
    """Train a model and score it, or score an average of its weights.

    A subclass sets `_average` if there is an average, copies it in `_averaged`, and scores the
    model with either weights in `_scored`.
    """

    _average: Any = None  # the average, in whatever form the subclass stores it; None without one

    @property
    def averages(self) -> bool:
        """True if the score is computed with averaged weights."""
        return self._average is not None

    @property
    def averaged_model(self) -> Any:
        """The model with averaged weights; None without an average."""
        return self._averaged() if self.averages else None

    @property
    def last_scores(self) -> dict[str, float]:
        """Scores now: of the trained weights, and of their average if there is one."""
        kinds = {"model": False} | ({"averaged_model": True} if self.averages else {})
        return {name: self._sign * float(self._scored(kind)) for name, kind in kinds.items()}

    def _value(self) -> Any:
        return self._scored(self.averages)

    @abstractmethod
    def _averaged(self) -> Any:
        """Return the model with averaged weights."""

    @abstractmethod
    def _scored(self, averaged: bool) -> Any:
        """Return the metric with the averaged weights, or with the trained ones."""


def average_of(torch: Any, model: Any, ema: float, steps: float) -> Any:
    """Return a running average of weights over about the fraction `ema` of all `steps`."""
    require(0 < ema < 1, "ema", ema, "in (0, 1)", "it is a fraction of the full training")
    tools = torch.optim.swa_utils
    rule = tools.get_ema_multi_avg_fn(max(0.0, 1 - 1 / (ema * steps)))
    return tools.AveragedModel(model, multi_avg_fn=rule)


def _name_of(value: Any) -> str:
    return getattr(value, "__qualname__", None) or plain_repr(value)[:200]


class RandomStates:
    """The states of the generators of Python, NumPy and (if passed) PyTorch for one learner.

    Learners in one process share these generators. Inside `with states.in_use():` they continue
    from where they were when the learner's last such block ended, whatever was drawn in between.
    After the block they are as if nothing had been drawn inside it. A state consists of lists of
    numbers and texts, which every file format can store.

    >>> random.seed(0)
    >>> mine = RandomStates()
    >>> with mine.in_use():
    ...     first = random.random()
    >>> with mine.in_use():
    ...     second = random.random()
    >>> [first, second] == [random.random(), random.random()]
    True
    """

    def __init__(self, torch: Any = None, *loaders: Any) -> None:
        self._torch = torch
        # Generators of the loaders, which learners may share, and of their samplers.
        generators = [
            getattr(part, "generator", None) for loader in loaders for part in _parts_of(loader)
        ]
        kept = [
            generator
            for generator in generators
            if torch and isinstance(generator, torch.Generator)
        ]
        self._own = list({id(generator): generator for generator in kept}.values())
        self.state = self.now()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Use this learner's generators inside the block."""
        others = self.now()
        self.apply(self.state)
        try:
            yield
        finally:
            self.state = self.now()
            self.apply(others)

    def now(self) -> list[Any]:
        """Return the current states of the generators."""
        numpy: Any = np.random.get_state(legacy=True)
        torch = [generator.get_state().numpy().tobytes().hex() for generator in self._torchs()]
        return [random.getstate(), [numpy[0], numpy[1].tolist(), *numpy[2:]], torch]

    def apply(self, state: list[Any]) -> None:
        """Set the generators to a state."""
        (version, numbers, gauss), numpy, texts = state
        random.setstate((version, tuple(numbers), gauss))
        np.random.set_state(tuple(numpy))
        for generator, text in zip(self._torchs(), texts, strict=False):
            kind = self._torch.uint8
            generator.set_state(self._torch.frombuffer(bytearray.fromhex(text), dtype=kind))

    def _torchs(self) -> list[Any]:
        """Return PyTorch's generators: of the CPU, of the loaders, and of the GPUs in use."""
        if self._torch is None:
            return []
        cuda = self._torch.cuda
        cards = cuda.default_generators if cuda.is_initialized() else ()
        return [self._torch.default_generator, *self._own, *cards]


def _parts_of(loader: Any) -> list[Any]:
    """Return a PyTorch loader and its samplers."""
    batches = getattr(loader, "batch_sampler", None)
    return [loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None)]


# --- a library ---


def library(module: str, purpose: str, name: str) -> Any:
    """Import a library of an extra; raise a `MissingExtra` if it is missing or too old."""
    loaded = extra(module, purpose, name)
    package = module.partition(".")[0]
    try:
        asked, has = metadata.requires("latebloomer") or [], Version(metadata.version(package))
    # Installed without metadata: its version is unknown.
    except (metadata.PackageNotFoundError, InvalidVersion):
        return loaded
    for requirement in map(Requirement, asked):
        same = canonicalize_name(requirement.name) == canonicalize_name(package)
        if same and not requirement.specifier.contains(has, prereleases=True):
            cure = install_command(name, upgrade=True)
            raise MissingExtra(
                f"{purpose} need {package}{requirement.specifier}, not {has}: {cure}"
            )
    return loaded


def base_class(module: str, name: str) -> Any:
    """Return a library's class to derive from, or a class whose objects raise `MissingExtra`."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return object


def own_folder(learner: Any) -> Path:
    """Create a folder that is removed when the learner is deleted or the process ends."""
    place = tempfile.mkdtemp(prefix="latebloomer-")
    weakref.finalize(learner, shutil.rmtree, place, ignore_errors=True)
    return Path(place)


# --- checks of arguments ---


def checked_full(full_steps: Any) -> int | None:
    """Return the steps of a full training; None if training has no end.

    >>> checked_full(0)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: full_steps=0, but full_steps must be at least 1: it is ...
    """
    why = "it is the length of a full training"
    return None if full_steps is None else at_least_1("full_steps", full_steps, why)


def at_least_1(name: str, value: Any, why: str) -> int:
    """Return an integer, or raise a `SettingError` if it is below 1."""
    number = need_whole(name, value)
    require(number >= 1, name, value, "at least 1", why)
    return number


def need_reported(name: str, values: Mapping[str, Any]) -> Any:
    """Return a reported value, or raise a `LearnerError` that lists the reported names."""
    if name not in values:
        names = ", ".join(sorted(values)[:12]) or "none"
        raise LearnerError(f"{name!r} is not reported. Reported are: {names}.")
    return values[name]


def need_no_stopping(callbacks: Iterable[Any], *kinds: str) -> None:
    """Raise a `SettingError` if a callback is of one of `kinds`, which stop the training early."""
    for name in {kind.__name__ for callback in callbacks for kind in type(callback).__mro__} & {
        *kinds
    }:
        why = "counts from 0 in each pull, and in a race the policy decides when a learner stops"
        raise SettingError(f"{name} is given, but it {why}: remove it")


def need_kind(holds: bool, name: str, value: Any, needed: str) -> None:
    """Raise a `LearnerError` unless `holds`: a part of a learner must have the `needed` type."""
    if not holds:
        raise LearnerError(f"{name}={brief(value)}, but {name} must be {needed}")
