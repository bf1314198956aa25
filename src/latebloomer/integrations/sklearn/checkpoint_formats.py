"""How the state of a learner is written into a folder: as a pickle, or by skops without one.

A pickle can run any code when it is loaded. skops writes what a model consists of, and loads only
types that are trusted; the rest of the state is JSON and plain arrays.
"""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError, SettingError, extra, require

# As `FoldModel.state` gives it: model, batches, and how far it is (in older ones, its steps).
FoldState: TypeAlias = tuple[Any, dict[str, Any], dict[str, Any] | int]


class LearnerState(NamedTuple):
    """All that a checkpoint holds."""

    estimator: str  # in words, to notice a checkpoint of another one
    rows: list[int]  # that each fold trains on
    folds: list[FoldState]


class CheckpointFormat(ABC):
    """Writes and reads states."""

    name: ClassVar[str]  # as the setting has it
    file: ClassVar[str]  # by which a checkpoint of this format is known

    @abstractmethod
    def write(self, state: LearnerState, folder: Path) -> None:
        """Into an empty folder."""

    @abstractmethod
    def read(self, folder: Path) -> LearnerState:
        """What was written there."""

    def need_own(self, folder: Path) -> None:
        """Raise a `LearnerError` where a checkpoint is of another format: it is not opened."""
        if (folder / self.file).is_file():
            return
        others = [one.name for one in (PickleFormat, SkopsFormat) if (folder / one.file).is_file()]
        found = f"was saved with checkpoint_format={others[0]!r}" if others else "has no such file"
        raise LearnerError(
            f"checkpoint_format={self.name!r} reads {self.file}, but the checkpoint {found}: go "
            "on with the format that the race began with"
        )


# --- pickles ---


class PickleFormat(CheckpointFormat):
    """One pickle; only for folders that you trust."""

    name = "pickle"
    file = "sklearn.pickle"

    def write(self, state: LearnerState, folder: Path) -> None:
        # Without an object of a class of ours: a checkpoint outlives our names.
        (folder / self.file).write_bytes(pickle.dumps(tuple(state)))

    def read(self, folder: Path) -> LearnerState:
        with (folder / self.file).open("rb") as file:
            return LearnerState(*CheckpointUnpickler(file).load())


OLD_BATCHES = ("latebloomer.race.adapters.trainee", "Batches")


class OldBatches(dict[str, Any]):
    """What older checkpoints hold of a model's batches: the attributes of an object."""

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.update({name.lstrip("_"): value for name, value in attributes.items()})


class CheckpointUnpickler(pickle.Unpickler):
    """Reads checkpoints; in older ones the batches are an object of a class that is gone."""

    def find_class(self, module: str, name: str) -> Any:
        return OldBatches if (module, name) == OLD_BATCHES else super().find_class(module, name)


# --- skops ---

# Beside what skops trusts of scikit-learn: what its nets train with, which is numbers and arrays.
# Trees are not in it: scikit-learn follows the indices in them without looking at their bounds.
OPTIMIZERS = "sklearn.neural_network._stochastic_optimizers"
TRUSTED = (f"{OPTIMIZERS}.AdamOptimizer", f"{OPTIMIZERS}.SGDOptimizer")
BATCHES = "batches.npz"


@dataclass(frozen=True)
class SkopsFormat(CheckpointFormat):
    """A file of skops for each fold's model; the rest is JSON and arrays."""

    trusted: tuple[str, ...] = ()  # types beside those of skops and `TRUSTED`, by full names

    name = "skops"
    file = "sklearn.json"

    def write(self, state: LearnerState, folder: Path) -> None:
        folds = []
        for k, (model, batches, done) in enumerate(state.folds):
            (folder / f"model-{k}.skops").write_bytes(self._dumped(model))
            random = batches["rng"].bit_generator.state
            numbers = {"rows": batches["rows"], "size": batches["size"], "random": random}
            folds.append({"done": done, **numbers})
        np.savez(folder / BATCHES, *(batches["left"] for _, batches, _ in state.folds))
        said = {"estimator": state.estimator, "rows": state.rows, "folds": folds}
        (folder / self.file).write_text(json.dumps(said, indent=1), encoding="utf-8")

    def read(self, folder: Path) -> LearnerState:
        said = json.loads((folder / self.file).read_text(encoding="utf-8"))
        states: list[FoldState] = []
        with np.load(folder / BATCHES, allow_pickle=False) as left:
            for k, fold in enumerate(said["folds"]):
                batches = {"rows": fold["rows"], "size": fold["size"], "left": left[f"arr_{k}"]}
                batches["rng"] = _generator(fold["random"])
                model = self._loaded((folder / f"model-{k}.skops").read_bytes())
                states.append((model, batches, fold["done"]))
        return LearnerState(said["estimator"], said["rows"], states)

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
        except Exception as error:  # a lambda, say, which skops saves by its name
            raise LearnerError(
                f"skops cannot load the model ({reason_of(error)}): without the race's "
                "checkpoints the learner is trained again"
            ) from error

    def _need_trusted(self, data: bytes) -> None:
        found = set(_skops().get_untrusted_types(data=data)) - {*TRUSTED, *self.trusted}
        if found:
            listed = sorted({*self.trusted, *found})
            raise LearnerError(
                f"the model holds {', '.join(sorted(found))}, which skops does not trust: where "
                f"only you can write checkpoints, set trusted={listed!r}"
            )


def _generator(state: dict[str, Any]) -> np.random.Generator:
    generator = np.random.default_rng()
    generator.bit_generator.state = state
    return generator


def _skops() -> Any:
    return extra("skops.io", "checkpoints without pickle", "skops")


# --- the settings ---


def checkpoint_format_for(name: Any, trusted: Iterable[str | type] | None) -> CheckpointFormat:
    """The format that `checkpoint_format` and `trusted` ask for.

    >>> checkpoint_format_for("skops", ["sklearn.tree._tree.Tree"])
    SkopsFormat(trusted=('sklearn.tree._tree.Tree',))
    """
    require(
        name in ("pickle", "skops"), "checkpoint_format", name, "'pickle' or 'skops'",
        "it is what checkpoints are written by",
    )  # fmt: skip
    if name == "skops":
        _skops()  # says what to install, before anything is trained
        return SkopsFormat(tuple(map(_type_name, _listed(trusted))))
    if trusted is not None:
        raise SettingError(
            f"trusted={trusted!r}, but checkpoint_format='pickle': a pickle may hold any type; "
            "set checkpoint_format='skops'"
        )
    return PickleFormat()


def _listed(trusted: Any) -> list[Any]:
    types = [] if trusted is None or isinstance(trusted, str) else list(trusted)
    if isinstance(trusted, str) or not all(isinstance(one, str | type) for one in types):
        raise SettingError(
            f"trusted={trusted!r}, but trusted must be a list of types or of their full names, "
            "such as 'sklearn.tree._tree.Tree'"
        )
    return types


def _type_name(one: str | type) -> str:
    return one if isinstance(one, str) else f"{one.__module__}.{one.__name__}"
