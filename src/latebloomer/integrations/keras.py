"""Keras 3: a learner that continues with `fit(initial_epoch=...)`."""

from pathlib import Path
from typing import Any

import numpy as np

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations import library_learner as base

__all__ = ["KerasLearner"]

WEIGHTS, SEEDS = "keras.weights.h5", "seeds.npz"
# Arguments of `fit` that the learner sets, or that cannot work if each pull calls `fit` for whole
# epochs.
OWN = {"x", "y", "epochs", "initial_epoch", "validation_data", "SwapEMAWeights", "steps_per_epoch",
       "validation_steps", "validation_batch_size", "validation_freq"}  # fmt: skip


class KerasLearner(base.AveragingLearner):
    """Wrap a compiled Keras model as a learner. One step is an epoch.

    The score is a metric of the validation data, negated for a loss, so that higher is better:
    race with `maximize=True`. Weights, optimizer, seeds of layers and random states are saved in
    Keras' own format: with the backend torch, a restored learner continues bit for bit like the
    original. The state of callbacks is not saved.

    If the optimizer averages the weights (`use_ema=True`), the score is the score of the average.
    The average shows early how good the model will be after a learning rate that decays to zero
    within the full training. Set `ema_momentum` to 1 - 1 / (0.01 * optimizer steps of a full
    training). `model` has the trained weights; `averaged_model` is a copy with the average, and is
    not compiled.

    Parameters
    ----------
    model : Any
        A `keras.Model`, compiled and built.
    train : Any
        Rows to train on: `(x, y)`, or anything else that `fit` accepts.
    valid : Any
        Rows to score on, in one of the same forms.
    metric : str
        Name of the metric as `fit` reports it, such as "val_accuracy".
    maximize : bool | None
        Whether higher metric values are better. Default: derived from the metric's name.
    full_steps : int | None
        Number of epochs in a full training; make a learning-rate schedule that long. Default: no
        limit.
    fitting : Any
        All other arguments are passed to `fit`, such as `batch_size`, `callbacks` and
        `class_weight`.

    Raises
    ------
    MissingExtra
        Keras is not installed, or too old.
    LearnerError
        The model is not a Keras model, or is not compiled or built, or there is nothing to score
        on.
    SettingError
        The learner itself sets an argument of `fit`, or the metric's name does not tell whether
        higher is better.

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

    package, title = "keras", "Keras"

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
        keras = self._import()
        base.need_kind(isinstance(model, keras.Model), "model", model, "a keras.Model")
        if not model.compiled or not model.built:
            raise LearnerError("The model is not compiled or built: use keras.Input and compile")
        callbacks = fitting.get("callbacks") or []
        base.need_no_stopping(callbacks, "EarlyStopping", "ReduceLROnPlateau")
        for name in {*fitting, *(type(callback).__name__ for callback in callbacks)} & OWN:
            raise SettingError(
                f"{name} is set by the learner, which trains whole epochs: remove it"
            )
        self._need_valid(valid)
        self.model, self.full_steps = model, base.checked_full(full_steps)
        if not model.optimizer.built:  # else its part of a checkpoint would not be loaded
            model.optimizer.build(model.trainable_variables)
        self._average = keras.callbacks.SwapEMAWeights if _averages(model.optimizer) else None
        self._settings = {"metric": metric, "ema": self.averages}
        self._rank_by(metric, maximize)
        self._valid = _named(valid) | {"batch_size": fitting.get("batch_size"), "verbose": 0}
        self._fitting = {"verbose": 0} | fitting | _named(train) | {"validation_data": valid}
        torch = self._import("torch") if keras.backend.backend() == "torch" else None
        self._random = base.RandomStates(torch, train, valid)

    def _trained_parts(self) -> list[Any]:
        return [*self.model.trainable_variables, self.model.optimizer]

    def _train(self, last: int) -> Any:
        for callback in self._fitting.get("callbacks") or ():
            if isinstance(callback, self._import().callbacks.CSVLogger) and self.steps:
                # Each pull calls `fit`, which would overwrite the file.
                callback.append = True
        fitting, optimizer = dict(self._fitting), self.model.optimizer
        if self._average is not None:
            fitting["callbacks"] = [*(fitting.get("callbacks") or ()), self._average()]
            # `fit` calls this method at its end; it would replace the weights by their average.
            optimizer.finalize_variable_values = lambda variables: None
        with self._random.in_use():
            history = self.model.fit(initial_epoch=self.steps, epochs=last, **fitting)
        vars(optimizer).pop("finalize_variable_values", None)
        if self.model.stop_training:  # a callback of the user has ended the training
            self._end_at(self.steps + len(history.epoch))
        return base.need_reported(self._metric, history.history)[-1]

    def _averaged(self) -> Any:
        copied, swap = self._import().models.clone_model(self.model), self._average()
        swap.set_model(self.model)
        if self.steps:  # there is no average before the first step
            swap.on_test_begin()
        copied.set_weights(self.model.get_weights())
        swap.on_test_end()
        return copied

    def _scored(self, averaged: bool) -> Any:
        swap = [self._average()] if averaged and self.steps else []
        measured = self.model.evaluate(**self._valid, callbacks=swap, return_dict=True)
        reported = {f"val_{name}": value for name, value in measured.items()}
        return base.need_reported(self._metric, reported)

    def _write(self, folder: Path) -> None:
        self.model.save_weights(folder / WEIGHTS)
        np.savez(folder / SEEDS, *[np.asarray(seed) for seed in self._seeds()])

    def _read(self, folder: Path, steps: int) -> None:
        # Build all parts, as after a `fit`: else the next `fit` would draw random numbers to build
        # them.
        if steps:
            self.model.evaluate(**self._valid, steps=1)
        self.model.load_weights(folder / WEIGHTS)
        with np.load(folder / SEEDS, allow_pickle=False) as seeds:
            for k, seed in enumerate(self._seeds()):
                seed.assign(seeds[f"arr_{k}"])

    def _seeds(self) -> list[Any]:
        """Return the states of the layers' random generators, which weights do not include."""
        others = {
            id(variable) for variable in (*self.model.weights, *self.model.metrics_variables)
        }
        return [variable for variable in self.model.variables if id(variable) not in others]


def _averages(optimizer: Any) -> bool:
    """Return whether an optimizer, or one inside it, averages the weights."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return any(getattr(part, "use_ema", False) for part in getattr(inner, "optimizers", [inner]))


def _named(data: Any) -> dict[str, Any]:
    """Return rows as keyword arguments of `fit` and `evaluate`."""
    names = ("x", "y", "sample_weight")
    return dict(zip(names, data, strict=False)) if isinstance(data, tuple) else {"x": data}
