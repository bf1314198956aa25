"""What learners of other libraries share: a full training, a metric, a label on saved states."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from latebloomer._util.text import brief
from latebloomer.errors import (
    LearnerError,
    MissingExtra,
    SettingError,
    extra,
    need_whole,
    require,
)

Metric: TypeAlias = str | Callable[[Any, Any], float]  # by name, or a function (model, valid)

LABEL = "learner.json"


def library(module: str, purpose: str, name: str) -> Any:
    """Import a library of an extra; a `MissingExtra` where it is missing or too old."""
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
    """The lower bound that a line of the package's requirements has for another package."""
    name = package.replace("_", "[-_]")
    return re.match(rf"{name}(?:\[.*\])?>=([\d.]+)", line)


def _numbers(version: str) -> tuple[int, ...]:
    """A version to compare by.

    >>> _numbers("2.13.0+cpu") > _numbers("2.4")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def checked_full(full_steps: Any) -> int | None:
    """The steps of a full training; None where a learner can always be trained on.

    >>> checked_full(0)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: full_steps=0, but full_steps must be at least 1: it is how many steps ...
    """
    if full_steps is None:
        return None
    number = need_whole("full_steps", full_steps)
    require(
        number >= 1,
        "full_steps",
        full_steps,
        "at least 1",
        "it is how many steps a full training has",
    )
    return number


def full_said_once(full_steps: Any, params: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """The steps of a full training, from `full_steps` or from the library's own setting.

    >>> full_said_once(None, {"n_estimators": 40}, ["num_iterations", "n_estimators"])
    40
    """
    own = next((params[name] for name in names if name in params), None)
    if full_steps is not None and own not in (None, full_steps):
        raise SettingError(f"full_steps={full_steps}, but params has {own} rounds: say it once")
    return checked_full(own if full_steps is None else full_steps)


def steps_left(steps: Any, done: int, full_steps: int | None) -> int:
    """How many of `steps` can be taken now; `StopIteration` where the training is over.

    >>> steps_left(5, done=18, full_steps=20), steps_left(5, done=18, full_steps=None)
    (2, 5)
    """
    wanted = need_whole("steps", steps)
    require(wanted >= 1, "steps", steps, "at least 1", "each pull must train something")
    left = wanted if full_steps is None else min(wanted, full_steps - done)
    if left < 1:
        raise StopIteration
    return left


# --- a metric, named once ---


def metric_named_once(metric: Any, params: Mapping[str, Any], names: Iterable[str]) -> Metric:
    """The metric, from `metric` or from the library's own setting of one of the `names`.

    >>> metric_named_once(None, {"eval_metric": "auc"}, ["eval_metric"])
    'auc'
    """
    own = next(((name, params[name]) for name in names if params.get(name) is not None), None)
    if metric is None and own is None:
        raise SettingError("metric=None, but a race needs a score: name a metric, as metric='auc'")
    if metric is not None and own is not None and own[1] != metric:
        raise SettingError(
            f"metric={brief(metric)}, but params has {own[0]}={brief(own[1])}: name it once"
        )
    found = metric if own is None else own[1]
    if not (isinstance(found, str) and found) and not callable(found):
        raise SettingError(
            f"metric={brief(found)}, but metric must be one name, or a function of (model, valid) "
            "that returns a number: a race has one score"
        )
    return found


def sign(metric: Any, maximize: bool | None, known: Callable[[str], bool]) -> float:
    """What makes higher better: 1 for an accuracy, -1 for a loss; `known` knows names."""
    if maximize is not None or callable(metric):
        return 1.0 if maximize in (None, True) else -1.0
    return 1.0 if known(metric) else -1.0


LOWER = ("loss", "error", "mse", "mae", "rmse", "perplexity")
HIGHER = ("acc", "auc", "f1", "precision", "recall", "r2", "score", "bleu", "rouge")


def direction_of(metric: str) -> bool:
    """Whether a name that a user made is of something that is better when higher.

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
        f"metric={metric!r} does not say whether higher is better: say maximize=True or False"
    )


def need_logged(metric: str, logged: Mapping[str, Any]) -> Any:
    """The value of a metric, or a `LearnerError` that says which there are."""
    if metric not in logged:
        raise LearnerError(
            f"metric={metric!r}, but what is reported is {', '.join(sorted(logged)) or 'nothing'}"
        )
    return logged[metric]


def need_valid(learner: Any, valid: Any) -> None:
    """Raise a `LearnerError` where there is nothing to score on."""
    if valid is None:
        name = type(learner).__name__
        raise LearnerError(
            f"{name} has no evaluation set, but a race compares scores on rows held out: "
            f"{name}(..., train, valid, metric=...)"
        )


# --- a folder, and a label on saved states ---


def own_folder(learner: Any) -> Path:
    """A folder that goes when the learner does, or the process."""
    place = tempfile.mkdtemp(prefix="latebloomer-")
    weakref.finalize(learner, shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def write_label(folder: Path, learner: Any, settings: Any, steps: int) -> None:
    """Say beside a saved state whose it is."""
    said = {"learner": type(learner).__name__, "settings": _plain(settings), "steps": steps}
    (Path(folder) / LABEL).write_text(json.dumps(said, indent=1), encoding="utf-8")


def read_label(folder: Path, learner: Any, settings: Any) -> int:
    """The steps in a saved state; a `LearnerError` where it is not of such a learner."""
    said = json.loads((Path(folder) / LABEL).read_text(encoding="utf-8"))
    own = {"learner": type(learner).__name__, "settings": _plain(settings)}
    for name, value in own.items():
        if said.get(name) != value:
            raise LearnerError(
                f"the checkpoint's {name} is {brief(said.get(name))}, but this learner's is "
                f"{brief(value)}: give the learner that was saved"
            )
    return int(said["steps"])


def _plain(settings: Any) -> Any:
    """As JSON gives it back; what JSON does not know by its name or its text."""
    return json.loads(json.dumps(settings, default=_named, sort_keys=True))


def _named(value: Any) -> str:
    return getattr(value, "__qualname__", None) or brief(value)
