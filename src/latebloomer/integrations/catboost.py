"""CatBoost: a learner that pauses CatBoost's own training between pulls."""

import shutil
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.boosters import BoosterLearner
from latebloomer.integrations.library_learner import own_folder

__all__ = ["CatBoostLearner"]

SNAPSHOT, MODEL = "catboost.snapshot", "catboost.cbm"
MOST = 1000  # iterations of a full training, CatBoost's own default
NEVER = 10**9  # seconds between snapshots: one is written when a training ends
FEATURES = ("cat_features", "text_features", "embedding_features")
QUIET = ("verbose", "logging_level", "silent", "verbose_eval")


class CatBoostLearner(BoosterLearner):
    """Wrap a CatBoost model as a learner. One step is one boosting round.

    The score is the metric on `valid`, negated for a loss, so that higher is better: race with
    `maximize=True`. CatBoost's training waits between pulls in a separate thread. After `save`,
    `load` and every use of `model` it continues from CatBoost's snapshot. One long training, many
    pulls and a restored learner give the same model bit for bit, even if rows or columns are
    sampled. A metric that is a function needs the model after each pull, which is slower than one
    of CatBoost's metrics.

    Parameters
    ----------
    params : Mapping[str, Any]
        CatBoost's settings. `loss_function` may be an object, as CatBoost allows; `cat_features`
        applies to `(X, y)`.
    train : Any
        Rows to train on: a `Pool`, `(X, y)` or `(X, y, weights)`. Columns of a pandas frame with
        dtype category are categorical features.
    valid : Any
        Rows to score on, in one of the same forms.
    metric : Metric | None
        One of CatBoost's metrics, with its options ("AUC:type=Mu"), or a function
        `(model, valid)` that returns a number and gets `valid` unchanged. Default: `eval_metric`
        of the params.
    maximize : bool | None
        Whether higher metric values are better. Default: what CatBoost says of its own metrics,
        True for a function.
    full_steps : int | None
        Number of rounds in a full training; CatBoost's own learning rate depends on it. Default:
        `iterations` of the params, else 1000.

    Raises
    ------
    MissingExtra
        CatBoost is not installed, or too old.
    LearnerError
        `train` or `valid` is missing, or has another form.
    SettingError
        There is no metric, there are two metrics, or the metric is unknown; `full_steps` and the
        params differ; the params have a setting for early stopping, or their learning rate is a
        function.

    Examples
    --------
    ::

        import numpy as np
        from latebloomer import race
        from latebloomer.integrations.catboost import CatBoostLearner

        X = np.random.default_rng(0).normal(size=(300, 4))
        y = X[:, 0] + X[:, 1] * X[:, 2] > 0
        train, valid = (X[:200], y[:200].astype(int)), (X[200:], y[200:].astype(int))
        learners = {
            f"depth {depth}": CatBoostLearner(
                {"depth": depth, "loss_function": "Logloss"}, train, valid, metric="AUC",
                full_steps=20,
            )
            for depth in (2, 4, 6)
        }
        verdict = race(learners, trainings=2)
    """

    package, title, dataset = "catboost", "CatBoost", "Pool"

    def _start(self) -> None:
        if self._rate is not None:
            why = "CatBoost's rate is one number for the whole training: give a number, or none"
            raise SettingError(f"learning_rate is a function, but {why}")
        self.full_steps = self.full_steps or MOST
        self._settings = self._settings | {"iterations": self.full_steps}
        self._folder = own_folder(self)
        quiet = {} if talks(self._params) else {"logging_level": "Silent"}
        self._params = quiet | {k: v for k, v in self._params.items() if k not in FEATURES}
        self._params |= {
            "iterations": self.full_steps,
            "use_best_model": False,
            "metric_period": 1,
            "train_dir": str(self._folder),
            "allow_writing_files": True,
        }
        if isinstance(self._metric, str):
            self._params["eval_metric"] = self._metric
        self._key = str(self._metric)  # the metric's name in CatBoost, as far as it is known
        self._done: Any = None  # the model of the latest training that ended
        self._values: Mapping[str, Any] = {}  # values of all metrics after the latest round
        self._training: PausedTraining | None = None

    @property
    def model(self) -> Any:
        """The model trained so far; None before the first pull. Reading it ends the thread."""
        if self._training is not None:
            training, self._training = self._training, None
            self._done = training.end()
        return self._done

    def _round(self, number: int) -> None:
        if self._training is None:
            fit = partial(
                self._library.CatBoost(self._params).fit,
                self._train_rows,
                eval_set=self._valid_rows,
                save_snapshot=True,
                snapshot_interval=NEVER,
                snapshot_file=str(self._folder / SNAPSHOT),  # CatBoost continues from this file
            )
            self._training = PausedTraining(fit, self)
        try:
            self._values = self._training.advance()
        except KeyboardInterrupt:
            self.steps = self.model.tree_count_
            raise

    def _named_value(self) -> float:
        values = self._values or self._evaluated()
        # CatBoost may write the options of a name differently from the user.
        if self._key not in values:
            same = [key for key in values if key.partition(":")[0] == self._key.partition(":")[0]]
            (self._key,) = same if len(same) == 1 else self._evaluated()
        return float(values[self._key][-1])

    def _evaluated(self) -> Mapping[str, Any]:
        """Return the value of the metric now, by its name in CatBoost."""
        if self.model is None:
            raise LearnerError("CatBoostLearner has no model to evaluate before its first pull")
        every = {"metrics": [self._metric], "eval_period": self.steps}
        return dict(self.model.eval_metrics(self._valid_rows, **every))

    def _higher_is_better(self, metric: str) -> bool:
        # The name with its options may not fit one class.
        for name in (metric, metric.partition(":")[0]):
            with suppress(self._library.CatBoostError):
                return bool(self._library.core.is_maximizable_metric(name))
        raise SettingError(f"metric={metric!r}, but CatBoost's are 'AUC', 'Logloss', 'RMSE', ...")

    def _made_rows(self, X: Any, y: Any, weight: Any = None) -> Any:
        features = {k: self._params[k] for k in FEATURES if k in self._params}
        if hasattr(X, "select_dtypes"):
            features.setdefault("cat_features", list(X.select_dtypes("category").columns))
        return self._library.Pool(X, y, weight=weight, **features)

    def _write(self, folder: Path) -> None:
        if self.model is not None:
            shutil.copy(self._folder / SNAPSHOT, folder / SNAPSHOT)
            self.model.save_model(str(folder / MODEL))

    def _read(self, folder: Path, steps: int) -> None:
        if self.model is not None:  # reading the model has ended its training
            self._done, self._values = None, {}
        (self._folder / SNAPSHOT).unlink(missing_ok=True)
        if steps:
            shutil.copy(folder / SNAPSHOT, self._folder / SNAPSHOT)
            self._done = self._library.CatBoost(self._params).load_model(str(folder / MODEL))


class PausedTraining:
    """A training by CatBoost in a thread that waits after each round.

    Without the thread, `fit` could stop and continue only by a snapshot. It would then read all
    rows again: a pull on 100,000 rows would take 350 ms instead of 50 ms. Only one of the two
    threads runs at a time.
    """

    def __init__(self, fit: Callable[..., Any], learner: Any) -> None:
        # Must not refer to the learner: when the learner is deleted, the thread ends.
        self._fit = fit
        self._finalizer = weakref.finalize(learner, self._stop)
        self._go: SimpleQueue[bool] = SimpleQueue()  # True: train another round; False: end
        # Metric values after a round; None after the training.
        self._paused: SimpleQueue[Any] = SimpleQueue()
        self._model: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name="catboost")
        self._thread.start()

    def advance(self) -> Mapping[str, Any]:
        """Train one more round and return the values of all metrics."""
        self._go.put(True)
        values: Mapping[str, Any] | None = self._paused.get()
        if values is None:
            self._model.result()  # raises the exception of `fit`, if any
            raise StopIteration  # CatBoost has ended the training itself
        return values

    def end(self) -> Any:
        """End the training, so that CatBoost writes its snapshot; return the model."""
        self._finalizer()
        return self._model.result()

    def _stop(self) -> None:
        self._go.put(False)
        self._thread.join()

    def _run(self) -> None:
        self._go.get()
        try:
            self._model.set_result(self._fit(callbacks=[self]))
        except BaseException as error:
            self._model.set_exception(error)
        self._paused.put(None)

    def after_iteration(self, info: Any) -> bool:
        """Return whether CatBoost continues; CatBoost calls this method after each round."""
        self._paused.put(info.metrics.get("validation", {}))
        return self._go.get()


def talks(params: Mapping[str, Any]) -> bool:
    """Return whether the settings define how much CatBoost prints."""
    return any(name in params for name in QUIET)
