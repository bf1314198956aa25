"""What learners of all training libraries share: pulls, a metric, checkpoints with a label."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from latebloomer._util.text import brief
from latebloomer.errors import (
    LearnerError,
    MissingExtra,
    SettingError,
    extra,
    need_whole,
    require,
)

LABEL = "learner.json"
LOWER = ("loss", "error", "mse", "mae", "rmse", "perplexity")
HIGHER = ("acc", "auc", "f1", "precision", "recall", "r2", "score", "bleu", "rouge")


class LibraryLearner(ABC):
    """Train something of a library step by step and score it.

    A subclass trains in `_train`, scores in `_value`, and writes and reads its state in `_write`
    and `_read`. What describes the learner is in `_settings`: a checkpoint is loaded only into a
    learner with equal settings.
    """

    package: ClassVar[str]  # the library, and the extra that installs it
    title: ClassVar[str]  # its name in messages
    harmless: ClassVar[frozenset[str]] = frozenset()  # settings that do not change the model
    full_steps: int | None = None
    steps: int = 0
    _sign = 1.0  # -1 for a metric that is better when lower
    _random: Any = None  # `RandomStates`, for libraries that draw from shared generators
    _settings: Any = None

    def _import(self, module: str | None = None) -> Any:
        """Import the library, or another that it needs."""
        return library(module or self.package, f"{self.title} learners", self.package)

    def _rank_by(
        self, metric: Any, maximize: bool | None, known: Callable[[str], bool] | None = None
    ) -> None:
        """Set the metric and whether it is negated; `known` decides by the metric's name."""
        if maximize is None:
            maximize = callable(metric) or (known or direction_of)(metric)
        self._metric, self._sign = metric, 1.0 if maximize else -1.0

    def _need_valid(self, valid: Any) -> None:
        """Raise a `LearnerError` if there is nothing to score on."""
        if valid is None:
            name = type(self).__name__
            raise LearnerError(
                f"{name} has no evaluation set, but a race compares scores on held-out rows: "
                f"{name}(..., train, valid, metric=...)"
            )

    def _logged(self, values: Mapping[str, Any]) -> Any:
        """Return the metric among reported values."""
        return need_reported(self._metric, values)

    def pull(self, steps: int = 1) -> float:
        """Train up to `steps` more steps and return the score: the metric, negated for a loss."""
        last = self.steps + steps_left(steps, self.steps, self.full_steps)
        value = self._train(last)
        self.steps = last
        return self._sign * float(value)

    def evaluate(self) -> float:
        """Return the score of the model as it is, without training."""
        return self._sign * float(self._value())

    def save(self, folder: Path) -> None:
        """Write the state in the library's own format, and a label next to it."""
        self._write(Path(folder))
        random = self._random
        label = {"learner": type(self).__name__, "settings": self._label(), "steps": self.steps,
                 "random": random and random.as_lists(random.state)}  # fmt: skip
        (Path(folder) / LABEL).write_text(json.dumps(label), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`."""
        label = json.loads((Path(folder) / LABEL).read_text(encoding="utf-8"))
        need_same_label(label, type(self).__name__, self._label())
        if self._random is not None:
            self._random.state = self._random.from_lists(label["random"])
        self._read(Path(folder), label["steps"])
        self.steps = label["steps"]

    def _label(self) -> Any:
        """Return the settings that decide what the model becomes, as JSON gives them back."""
        settings = self._settings
        if isinstance(settings, Mapping):
            settings = {k: v for k, v in settings.items() if k not in self.harmless}
        return json.loads(json.dumps(settings, default=_name_of, sort_keys=True))

    @abstractmethod
    def _train(self, last: int) -> Any:
        """Train until `last` steps are done and return the metric."""

    @abstractmethod
    def _value(self) -> Any:
        """Return the metric now."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the state."""

    @abstractmethod
    def _read(self, folder: Path, steps: int) -> None:
        """Restore the state of a learner that has done `steps` steps."""


def _name_of(value: Any) -> str:
    return getattr(value, "__qualname__", None) or re.sub(r" at 0x[0-9a-f]+", "", brief(value))


def need_same_label(label: Mapping[str, Any], kind: str, settings: Any) -> None:
    """Raise a `LearnerError` that names what differs between a checkpoint and its learner.

    >>> saved = {"learner": "XGBoostLearner", "settings": {"eta": 0.1, "max_depth": 2}}
    >>> need_same_label(saved, "XGBoostLearner", {"eta": 0.1, "max_depth": 3, "seed": 1})
    Traceback (most recent call last):
    latebloomer.errors.LearnerError: The checkpoint has max_depth=2 and no seed, but this ...
    """
    before, now = label["settings"], settings
    if label["learner"] != kind:
        before, now = {"learner": label["learner"]}, {"learner": kind}
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        names = [k for k in sorted({*before, *now}) if before.get(k, ...) != now.get(k, ...)]
        saved, given = (_words(names, one) for one in (before, now))
    else:
        saved, given = brief(before), brief(now)
    raise LearnerError(
        f"The checkpoint has {saved}, but this learner has {given}. Build the learner that was "
        "saved, or remove the checkpoint."
    )


def _words(names: Iterable[str], settings: Mapping[str, Any]) -> str:
    said = [f"{k}={brief(settings[k])}" if k in settings else f"no {k}" for k in names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)


# --- a library ---


def library(module: str, purpose: str, name: str) -> Any:
    """Import a library of an extra; raise a `MissingExtra` if it is missing or too old."""
    found = extra(module, purpose, name)
    package = module.partition(".")[0]
    try:
        asked, has = metadata.requires("latebloomer") or [], metadata.version(package)
    except metadata.PackageNotFoundError:  # one of them was not installed but is simply there
        return found
    least = next((one[1] for line in asked if (one := _bound(package, line))), has)
    if _numbers(has) < _numbers(least):
        raise MissingExtra(
            f"{purpose} need {package} {least} or newer, but {has} is installed: "
            f"pip install --upgrade 'latebloomer[{name}]'"
        )
    return found


def _bound(package: str, line: str) -> re.Match[str] | None:
    """Return the lower bound that a line of our requirements has for another package."""
    name = package.replace("_", "[-_]")
    return re.match(rf"{name}(?:\[.*\])?>=([\d.]+)", line)


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers to compare.

    >>> _numbers("2.13.0+cpu") > _numbers("2.4")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def own_folder(learner: Any) -> Path:
    """Make a folder that is removed with the learner, or when the process ends."""
    place = tempfile.mkdtemp(prefix="latebloomer-")
    weakref.finalize(learner, shutil.rmtree, place, ignore_errors=True)
    return Path(place)


# --- steps ---


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


def steps_left(steps: Any, done: int, full_steps: int | None) -> int:
    """Return how many of `steps` can be taken now; raise `StopIteration` after the last.

    >>> steps_left(5, done=18, full_steps=20), steps_left(5, done=18, full_steps=None)
    (2, 5)
    """
    wanted = at_least_1("steps", steps, "each pull must train something")
    left = wanted if full_steps is None else min(wanted, full_steps - done)
    if left < 1:
        raise StopIteration
    return left


# --- metrics ---


def direction_of(metric: str) -> bool:
    """Return whether the name that a user gave a metric says that higher is better.

    >>> direction_of("val_accuracy"), direction_of("val_loss")
    (True, False)
    >>> direction_of("val_speed")
    Traceback (most recent call last):
    latebloomer.errors.SettingError: metric='val_speed' does not say whether higher is better: ...
    """
    if any(word in metric.lower() for word in LOWER):
        return False
    if any(word in metric.lower() for word in HIGHER):
        return True
    raise SettingError(
        f"metric={metric!r} does not say whether higher is better: give maximize=True or False"
    )


def need_reported(name: str, values: Mapping[str, Any]) -> Any:
    """Return a reported value, or raise a `LearnerError` that lists the reported names."""
    if name not in values:
        names = ", ".join(sorted(values)[:12]) or "none"
        raise LearnerError(f"{name!r} is not reported. Reported are: {names}.")
    return values[name]


def need_kind(holds: bool, name: str, value: Any, needed: str) -> None:
    """Raise a `LearnerError` if a part of a learner has another type than is needed."""
    if not holds:
        raise LearnerError(f"{name}={brief(value)}, but {name} must be {needed}")
