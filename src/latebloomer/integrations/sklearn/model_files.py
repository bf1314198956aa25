"""The formats of models in checkpoints: pickles, or files of skops."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError, extra, require

FORMATS = ("pickle", "skops")
# Types trusted in addition to those that skops trusts: the optimizers of scikit-learn's nets hold
# only numbers and arrays. Trees are not listed, because scikit-learn follows the indices in a tree
# without checking their bounds.
OPTIMIZERS = "sklearn.neural_network._stochastic_optimizers"
TRUSTED = (f"{OPTIMIZERS}.AdamOptimizer", f"{OPTIMIZERS}.SGDOptimizer")


class ModelFormat(NamedTuple):
    """The format of the models in a checkpoint: pickles, or files of skops.

    A pickle can run any code when it is loaded. skops writes the parts of a model, and loads only
    types that are trusted.
    """

    name: str = "pickle"
    trusted: tuple[str, ...] = ()  # full names of types, in addition to `TRUSTED`

    def need_own(self, folder: Path) -> None:
        """Raise a `LearnerError` if a checkpoint has another format, without opening its model."""
        saved = [name for name in FORMATS if (folder / f"model-0.{name}").is_file()]
        if self.name not in saved:
            other = f"was saved with checkpoint_format={saved[0]!r}" if saved else "has no such"
            raise LearnerError(
                f"checkpoint_format={self.name!r} reads model-0.{self.name}, but the checkpoint "
                f"{other}: continue with the format that the race was started with"
            )

    def write(self, model: Any, folder: Path, number: int) -> None:
        """Write the model of a fold."""
        if self.name == "pickle":
            data = pickle.dumps(model)
        else:
            with _skops_error(f"save {type(model).__name__}", "checkpoint_format='pickle' may"):
                data = bytes(_skops().dumps(model))
                self._need_trusted(data)  # checked now, so that a resume does not fail later
        (folder / f"model-{number}.{self.name}").write_bytes(data)

    def read(self, folder: Path, number: int) -> Any:
        """Return the model of a fold."""
        data = (folder / f"model-{number}.{self.name}").read_bytes()
        if self.name == "pickle":
            return pickle.loads(data)
        with _skops_error("load the model", "without its checkpoint the learner is trained again"):
            self._need_trusted(data)
            return _skops().loads(data, trusted=[*TRUSTED, *self.trusted])

    def _need_trusted(self, data: bytes) -> None:
        untrusted = set(_skops().get_untrusted_types(data=data)) - {*TRUSTED, *self.trusted}
        if untrusted:
            listed = sorted({*self.trusted, *untrusted})
            raise LearnerError(
                f"the model holds {', '.join(sorted(untrusted))}, which skops does not trust: "
                f"if only you can write checkpoints, set trusted={listed!r}"
            )


@contextmanager
def _skops_error(doing: str, advice: str) -> Iterator[None]:
    """Turn an error of skops into a `LearnerError`: skops cannot save a lambda, for example."""
    try:
        yield
    except LearnerError:
        raise
    except Exception as error:  # includes errors in an object's own code
        raise LearnerError(f"skops cannot {doing} ({reason_of(error)}): {advice}") from error


def _skops() -> Any:
    return extra("skops.io", "checkpoints without pickle", "skops")


def model_format(name: Any, trusted: Any) -> ModelFormat:
    """Return the format for the settings `checkpoint_format` and `trusted`.

    >>> model_format("skops", ["sklearn.tree._tree.Tree"])
    ModelFormat(name='skops', trusted=('sklearn.tree._tree.Tree',))
    """
    require(
        name in FORMATS,
        "checkpoint_format",
        name,
        "'pickle' or 'skops'",
        "it is how checkpoints are written",
    )
    if name == "skops":
        _skops()  # raises an error before anything is trained
    require(
        name == "skops" or trusted is None,
        "trusted",
        trusted,
        "omitted without checkpoint_format='skops'",
        "a pickle may hold any type",
    )
    types = list(trusted or ())
    require(
        not isinstance(trusted, str) and all(isinstance(kind, str | type) for kind in types),
        "trusted",
        trusted,
        "a list of types or of their full names",
        "such as 'sklearn.tree._tree.Tree'",
    )
    names = (
        kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}" for kind in types
    )
    return ModelFormat(name, tuple(names))
