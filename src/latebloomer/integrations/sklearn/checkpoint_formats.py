"""How the state of a learner is written into a folder: as a pickle, or by skops without one.

A pickle can run any code when it is loaded. skops writes what a model consists of, and loads only
types that are trusted; the rest of the state is JSON.
"""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError, SettingError, extra, require
from latebloomer.integrations.sklearn.training import FoldState


class LearnerState(NamedTuple):
    """All that a checkpoint holds."""

    estimator: str  # its repr, to notice a checkpoint of another one
    rows: list[int]  # that each fold trains on
    folds: list[FoldState]


class CheckpointFormat(ABC):
    """Writes and reads the state of a learner."""

    name: ClassVar[str]  # in the setting `checkpoint_format`
    file: ClassVar[str]  # that a checkpoint of this format has

    @abstractmethod
    def write(self, state: LearnerState, folder: Path) -> None:
        """Write a state into an empty folder."""

    @abstractmethod
    def read(self, folder: Path) -> LearnerState:
        """Return the state that was written there."""

    def need_own(self, folder: Path) -> None:
        """Raise a `LearnerError` if a checkpoint is of another format: it is not opened."""
        if (folder / self.file).is_file():
            return
        others = [one.name for one in (PickleFormat, SkopsFormat) if (folder / one.file).is_file()]
        found = f"was saved with checkpoint_format={others[0]!r}" if others else "has no such file"
        raise LearnerError(
            f"checkpoint_format={self.name!r} reads {self.file}, but the checkpoint {found}: "
            "continue with the format that the race was started with"
        )


class PickleFormat(CheckpointFormat):
    """One pickle; only for folders that you trust."""

    name, file = "pickle", "sklearn.pickle"

    def write(self, state: LearnerState, folder: Path) -> None:
        # Without an object of a class of ours: a checkpoint outlives our names.
        (folder / self.file).write_bytes(pickle.dumps(tuple(state)))

    def read(self, folder: Path) -> LearnerState:
        return LearnerState(*pickle.loads((folder / self.file).read_bytes()))


# In addition to what skops trusts of scikit-learn: the optimizers of its nets are numbers and
# arrays. Trees are not listed: scikit-learn follows the indices in them without a check of bounds.
OPTIMIZERS = "sklearn.neural_network._stochastic_optimizers"
TRUSTED = (f"{OPTIMIZERS}.AdamOptimizer", f"{OPTIMIZERS}.SGDOptimizer")


@dataclass(frozen=True)
class SkopsFormat(CheckpointFormat):
    """A file of skops for each fold's model; the rest is JSON."""

    trusted: tuple[str, ...] = ()  # full names of types, in addition to `TRUSTED`

    name = "skops"
    file = "sklearn.json"

    def write(self, state: LearnerState, folder: Path) -> None:
        for k, (model, _) in enumerate(state.folds):
            (folder / f"model-{k}.skops").write_bytes(self._dumped(model))
        done = [progress for _, progress in state.folds]
        text = json.dumps({"estimator": state.estimator, "rows": state.rows, "folds": done})
        (folder / self.file).write_text(text, encoding="utf-8")

    def read(self, folder: Path) -> LearnerState:
        found = json.loads((folder / self.file).read_text(encoding="utf-8"))
        folds = [
            (self._loaded((folder / f"model-{k}.skops").read_bytes()), progress)
            for k, progress in enumerate(found["folds"])
        ]
        return LearnerState(found["estimator"], found["rows"], folds)

    def _dumped(self, model: Any) -> bytes:
        try:
            data = bytes(_skops().dumps(model))
        except Exception as error:  # also what an object's own code raises
            raise LearnerError(
                f"skops cannot save {type(model).__name__} ({reason_of(error)}): "
                "checkpoint_format='pickle' may be able to"
            ) from error
        self._need_trusted(data)  # now, rather than when the race is to be resumed
        return data

    def _loaded(self, data: bytes) -> Any:
        try:
            self._need_trusted(data)
            return _skops().loads(data, trusted=[*TRUSTED, *self.trusted])
        except LearnerError:
            raise
        except Exception as error:  # a lambda, for example, which skops saves by its name
            raise LearnerError(
                f"skops cannot load the model ({reason_of(error)}): without the race's "
                "checkpoints the learner is trained again"
            ) from error

    def _need_trusted(self, data: bytes) -> None:
        found = set(_skops().get_untrusted_types(data=data)) - {*TRUSTED, *self.trusted}
        if found:
            listed = sorted({*self.trusted, *found})
            raise LearnerError(
                f"the model holds {', '.join(sorted(found))}, which skops does not trust: if "
                f"only you can write checkpoints, set trusted={listed!r}"
            )


def _skops() -> Any:
    return extra("skops.io", "checkpoints without pickle", "skops")


def checkpoint_format_for(name: Any, trusted: Iterable[str | type] | None) -> CheckpointFormat:
    """Return the format that the settings `checkpoint_format` and `trusted` ask for.

    >>> checkpoint_format_for("skops", ["sklearn.tree._tree.Tree"])
    SkopsFormat(trusted=('sklearn.tree._tree.Tree',))
    """
    require(
        name in ("pickle", "skops"), "checkpoint_format", name, "'pickle' or 'skops'",
        "it is how checkpoints are written",
    )  # fmt: skip
    if name == "pickle" and trusted is not None:
        raise SettingError(
            f"trusted={trusted!r}, but checkpoint_format='pickle': a pickle may hold any type; "
            "set checkpoint_format='skops'"
        )
    if name == "pickle":
        return PickleFormat()
    _skops()  # raises an error before anything is trained
    types = [] if trusted is None or isinstance(trusted, str) else list(trusted)
    if isinstance(trusted, str) or not all(isinstance(one, str | type) for one in types):
        raise SettingError(
            f"trusted={trusted!r}, but trusted must be a list of types or of their full names, "
            "such as 'sklearn.tree._tree.Tree'"
        )
    full_names = (
        one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in types
    )
    return SkopsFormat(tuple(full_names))
