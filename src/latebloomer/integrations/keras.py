"""Keras 3: a learner that goes on with `fit(initial_epoch=...)`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.full_training import (
    checked_full,
    direction_of,
    library,
    need_logged,
    need_valid,
    read_label,
    sign,
    steps_left,
    write_label,
)
from latebloomer.integrations.random_states import RandomStates

__all__ = ["KerasLearner"]

WEIGHTS, SEEDS, RANDOM = "keras.weights.h5", "seeds.npz", "random.json"
OWN = ("x", "y", "epochs", "initial_epoch", "validation_data")  # of what `fit` takes


class KerasLearner:
    """A compiled model: a step is an epoch, the score a metric of the validation data.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`.
    Weights, optimiser, seeds of layers and random states are saved in Keras' own format: with the
    backend torch a resumed learner is the same bit for bit. What callbacks remember is not saved.

    Parameters
    ----------
    model : Any
        A `keras.Model`, compiled and built.
    train : Any
        What is trained on: `(x, y)` or what else `fit` takes.
    valid : Any
        What is scored on, in the same form.
    metric : str
        A name as `fit` reports it, such as "val_accuracy".
    maximize : bool | None
        Whether the metric is better when higher; by its name if None.
    full_steps : int | None
        Epochs of a full training: set a learning-rate schedule to it. Without end if None.
    fitting : Any
        All other settings go to `fit`: `batch_size`, `callbacks`, `class_weight`.

    Raises
    ------
    MissingExtra
        Keras is not installed, or too old.
    LearnerError
        The model is none of Keras', not compiled or not built, or there is nothing to score on.
    SettingError
        A setting of `fit` is the learner's own, or the metric's name does not say which way is
        better.

    Examples
    --------
    ::

        import keras
        import numpy as np
        from latebloomer import race
        from latebloomer.integrations.keras import KerasLearner

        X = np.random.default_rng(0).normal(size=(300, 4)).astype("float32")
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
        train, valid = (X[:200], y[:200]), (X[200:], y[200:])

        def net(width):
            def build(seed):
                keras.utils.set_random_seed(seed)
                dense = keras.layers.Dense
                model = keras.Sequential([keras.Input((4,)), dense(width, "relu"), dense(2)])
                loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                model.compile("adam", loss, metrics=["accuracy"])
                return KerasLearner(
                    model, train, valid, metric="val_accuracy", full_steps=10, batch_size=64
                )

            return build

        verdict = race({"narrow": net(2), "wide": net(32)}, budget=12)
    """

    def __init__(
        self,
        model: Any,
        train: Any,
        valid: Any = None,
        *,
        metric: str = "val_loss",
        maximize: bool | None = None,
        full_steps: int | None = None,
        **fitting: Any,
    ) -> None:
        self._keras = library("keras", "Keras learners", "keras")
        _check(self._keras, model, fitting)
        need_valid(self, valid)
        self.model, self.full_steps = model, checked_full(full_steps)
        self._metric = metric
        self._sign = sign(metric, maximize, direction_of)
        data = {"x": train[0], "y": train[1]} if isinstance(train, tuple) else {"x": train}
        self._fitting = {"verbose": 0} | fitting | data | {"validation_data": valid}
        torch = self._keras.backend.backend() == "torch"
        self._random = RandomStates(library("torch", "Keras learners", "keras") if torch else None)
        self.epochs = 0

    def pull(self, steps: int = 1) -> float:
        """Train on by epochs; the metric after the last."""
        last = self.epochs + steps_left(steps, self.epochs, self.full_steps)
        with self._random.in_use():
            said = self.model.fit(initial_epoch=self.epochs, epochs=last, **self._fitting)
        if len(said.epoch) < last - self.epochs:  # a callback of the user's has ended it
            raise StopIteration
        self.epochs = last
        return self._sign * float(need_logged(self._metric, said.history)[-1])

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write weights and optimiser in Keras' own format, and the random states."""
        self.model.save_weights(Path(folder) / WEIGHTS)
        np.savez(Path(folder) / SEEDS, *[np.asarray(seed) for seed in self._seeds()])
        said = json.dumps(self._random.state)
        (Path(folder) / RANDOM).write_text(said, encoding="utf-8")
        write_label(folder, self, self._metric, self.epochs)

    def load(self, folder: Path) -> None:
        """Become what was saved."""
        self.epochs = read_label(folder, self, self._metric)
        if self.epochs:
            self._build()
        self.model.load_weights(Path(folder) / WEIGHTS)
        with np.load(Path(folder) / SEEDS, allow_pickle=False) as seeds:
            for k, seed in enumerate(self._seeds()):
                seed.assign(seeds[f"arr_{k}"])
        self._random.state = json.loads((Path(folder) / RANDOM).read_text(encoding="utf-8"))

    def _build(self) -> None:
        """Have all parts there, as after a `fit`: the next one then draws no number for that."""
        if not self.model.optimizer.built:  # else its part of a file is passed over
            self.model.optimizer.build(self.model.trainable_variables)
        valid = self._fitting["validation_data"]
        data = {"x": valid[0], "y": valid[1]} if isinstance(valid, tuple) else {"x": valid}
        with self._random.in_use():
            self.model.evaluate(**data, steps=1, verbose=0)

    def _seeds(self) -> list[Any]:
        """The states of the layers' random generators, which Keras does not count as weights."""
        others = {id(one) for one in (*self.model.weights, *self.model.metrics_variables)}
        return [one for one in self.model.variables if id(one) not in others]


def _check(keras: Any, model: Any, fitting: dict[str, Any]) -> None:
    """Raise a `LearnerError` or a `SettingError` for what cannot be trained."""
    if not isinstance(model, keras.Model):
        raise LearnerError(f"model={brief(model)}, but model must be a keras.Model")
    if not model.compiled or not model.built:
        raise LearnerError(
            "the model is not compiled or not built: begin it with keras.Input, and compile it "
            "with an optimiser and a loss"
        )
    for name in OWN:
        if name in fitting:
            raise SettingError(f"{name} is given to fit by the learner itself: leave it out")
