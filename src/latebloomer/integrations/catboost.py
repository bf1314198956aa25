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
    `maximize=True`. CatBoost's training waits between pulls, in a separate thread, and continues
    from CatBoost's snapshot after `save`, `load` and every use of `model`: one long training, many
    pulls and a restored learner are the same bit for bit, with sampling too. A metric that is a
    function needs the model after each pull, which is slower than one of CatBoost's metrics.

    Parameters
    ----------
    params : Mapping[str, Any]
        CatBoost's settings. `loss_function` may be an object, as CatBoost allows; `cat_features`
        applies to `(X, y)`.
    train : Any
        Rows to train on: a `Pool`, `(X, y)` or `(X, y, weights)`. Columns of a pandas frame with
        dtype category are categorical features.
    valid : Any
        Rows to score on, in the same form.
    metric : Metric | None
        One of CatBoost's metrics, with its options ("AUC:type=Mu"), or a function
        `(model, valid)` that returns a number and gets `valid` unchanged. Default: `eval_metric`
        of the params.
    maximize : bool | None
        Whether higher metric values are better. Default: known for CatBoost's metrics, True for a
        function.
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
        There is no metric, or there are two, or it is unknown; `full_steps` is given twice; the
        params stop early, or their learning rate is a function.

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
        self._key = str(self._metric)  # CatBoost's name for it, once it is known
        self._done: Any = None  # the model of the latest training that ended
        self._values: Mapping[str, Any] = {}  # of all metrics after the latest round
        self._training: PausedTraining | None = None

    @property
    def model(self) -> Any:
        """The model as trained so far; None before the first pull. Training pauses for it."""
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
                snapshot_file=str(self._folder / SNAPSHOT),  # it continues from there
            )
            self._training = PausedTraining(fit, self)
        try:
            self._values = self._training.advance()
        except KeyboardInterrupt:
            self.steps = self.model.tree_count_
            raise

    def _named_value(self) -> float:
        values = self._values or self._evaluated()
        if self._key not in values:  # CatBoost writes a name with other options than the user
            same = [key for key in values if key.partition(":")[0] == self._key.partition(":")[0]]
            (self._key,) = same if len(same) == 1 else self._evaluated()
        return float(values[self._key][-1])

    def _evaluated(self) -> Mapping[str, Any]:
        """Return the value of the metric now, by the name that CatBoost has for it."""
        if self.model is None:
            raise LearnerError("CatBoostLearner has no model to evaluate before its first pull")
        every = {"metrics": [self._metric], "eval_period": self.steps}
        return dict(self.model.eval_metrics(self._valid_rows, **every))

    def _higher_is_better(self, metric: str) -> bool:
        for name in (metric, metric.partition(":")[0]):  # an option may not fit one class
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
        if self.model is not None:  # its training has ended now
            self._done, self._values = None, {}
        (self._folder / SNAPSHOT).unlink(missing_ok=True)
        if steps:
            shutil.copy(folder / SNAPSHOT, self._folder / SNAPSHOT)
            self._done = self._library.CatBoost(self._params).load_model(str(folder / MODEL))


class PausedTraining:
    """A training of CatBoost's in a thread, which waits after each round.

    `fit` can stop and continue only by a snapshot, and then it also reads all rows again: a pull
    on 100,000 rows would take 350 ms in place of 50. Of the two threads only one runs at a time.
    """

    def __init__(self, fit: Callable[..., Any], learner: Any) -> None:
        self._fit = fit  # without a reference to the learner, whose end also ends the thread
        self._finalizer = weakref.finalize(learner, self._stop)
        self._go: SimpleQueue[bool] = SimpleQueue()  # whether to train another round
        self._paused: SimpleQueue[Any] = SimpleQueue()  # values after a round; None at the end
        self._model: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name="catboost")
        self._thread.start()

    def advance(self) -> Mapping[str, Any]:
        """Train one more round and return the values of all metrics."""
        self._go.put(True)
        values: Mapping[str, Any] | None = self._paused.get()
        if values is None:
            self._model.result()  # raises what `fit` raised
            raise StopIteration  # CatBoost found nothing more to train
        return values

    def end(self) -> Any:
        """Have CatBoost write its snapshot and return the model."""
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
        """Return whether CatBoost is to continue; CatBoost calls this after each round."""
        self._paused.put(info.metrics.get("validation", {}))
        return self._go.get()


def talks(params: Mapping[str, Any]) -> bool:
    """Return whether settings say how much CatBoost prints."""
    return any(name in params for name in QUIET)
