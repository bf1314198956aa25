"""CatBoost: a learner that goes on from CatBoost's own snapshots."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.full_training import (
    Metric,
    full_said_once,
    library,
    metric_named_once,
    need_valid,
    own_folder,
    read_label,
    sign,
    steps_left,
    write_label,
)

__all__ = ["CatBoostLearner"]

SNAPSHOT, MODEL = "catboost.snapshot", "catboost.cbm"
ITERATIONS = ("iterations", "num_boost_round", "n_estimators", "num_trees")
MOST = 1000  # iterations of a full training, as CatBoost has it
NEVER = 10**9  # seconds between snapshots: there is one at the end of each pull


class CatBoostLearner:
    """A model: a step is one boosting round, the score the metric on the evaluation set.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`. Each
    pull goes on from a snapshot, with all random states: one long run, many pulls and a resumed
    learner are the same bit for bit, with sampling too.

    Parameters
    ----------
    params : Mapping[str, Any]
        CatBoost's settings.
    train : Any
        What is trained on: a `Pool` or `(X, y)`.
    valid : Any
        What is scored on, in the same form.
    metric : Metric | None
        One of CatBoost's names, or a function `(model, valid)`; that of the params if None.
    maximize : bool | None
        Whether a metric is better when higher; known of CatBoost's own, taken to
        be so of a function, if None.
    full_steps : int | None
        Rounds of a full training, by which CatBoost chooses a learning rate where none is set;
        `iterations` of the params if None, else 1000.

    Raises
    ------
    MissingExtra
        CatBoost is not installed, or too old.
    LearnerError
        `train` or `valid` is not there, or of another form.
    SettingError
        No metric is named, or two, or an unknown one; `full_steps` is said twice.

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
                {"depth": depth, "loss_function": "Logloss"}, train, valid, metric="AUC", full_steps=20
            )
            for depth in (2, 4, 6)
        }
        verdict = race(learners, trainings=2)
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        train: Any,
        valid: Any = None,
        *,
        metric: Metric | None = None,
        maximize: bool | None = None,
        full_steps: int | None = None,
    ) -> None:
        self._catboost = library("catboost", "CatBoost learners", "catboost")
        self.full_steps = full_said_once(full_steps, params, ITERATIONS) or MOST
        need_valid(self, valid)
        self._metric = metric_named_once(metric, params, ["eval_metric"])
        self._sign = sign(self._metric, maximize, self._higher_is_better)
        self._train, self._valid = self._pool("train", train), self._pool("valid", valid)
        quiet: dict[str, Any] = {} if talks(params) else {"logging_level": "Silent"}
        self._params = quiet | {name: params[name] for name in params if name not in ITERATIONS}
        self._params |= {
            "iterations": self.full_steps,
            "use_best_model": False,
            "metric_period": 1,
        }
        if isinstance(self._metric, str):
            self._params["eval_metric"] = self._metric
        self._folder = own_folder(self)
        self.model: Any = None  # before the first pull

    def pull(self, steps: int = 1) -> float:
        """Add rounds; the metric after them."""
        done = self.rounds
        last = done + steps_left(steps, done, self.full_steps)
        model = self._catboost.CatBoost(self._params | {"train_dir": str(self._folder)})
        model.fit(
            self._train, eval_set=self._valid, callbacks=[StopAt(last)], save_snapshot=True,
            snapshot_file=str(self._folder / SNAPSHOT), snapshot_interval=NEVER,
        )  # fmt: skip
        self.model = model
        if self.rounds == done:  # an overfitting detector of the user's has ended it
            raise StopIteration
        return self._sign * self._value()

    @property
    def rounds(self) -> int:
        """Boosting rounds so far."""
        return 0 if self.model is None else int(self.model.tree_count_)

    def _value(self) -> float:
        if not isinstance(self._metric, str):
            return float(self._metric(self.model, self._valid))
        (values,) = (
            values
            for name, values in self.model.get_evals_result()["validation"].items()
            if name == self._metric
        )
        return float(values[-1])

    def _pool(self, name: str, data: Any) -> Any:
        if isinstance(data, self._catboost.Pool):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return self._catboost.Pool(*data)
        raise LearnerError(f"{name}={brief(data)}, but {name} must be a Pool or (X, y)")

    def _higher_is_better(self, metric: str) -> bool:
        try:
            return bool(self._catboost.core.is_maximizable_metric(metric))
        except self._catboost.CatBoostError as error:
            raise SettingError(
                f"metric={metric!r}, but CatBoost knows no such metric: its names are like 'AUC', "
                "'Accuracy', 'Logloss', 'RMSE'"
            ) from error

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write CatBoost's own snapshot and model."""
        if self.model is not None:
            shutil.copy(self._folder / SNAPSHOT, Path(folder) / SNAPSHOT)
            self.model.save_model(str(Path(folder) / MODEL))
        write_label(folder, self, self._params, self.rounds)

    def load(self, folder: Path) -> None:
        """Become what was saved."""
        own = self._folder / SNAPSHOT
        own.unlink(missing_ok=True)
        self.model = None
        if read_label(folder, self, self._params):
            shutil.copy(Path(folder) / SNAPSHOT, own)
            self.model = self._catboost.CatBoost(self._params)
            self.model.load_model(str(Path(folder) / MODEL))


class StopAt:
    """Ends a training after so many rounds, those of earlier pulls among them."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    def after_iteration(self, info: Any) -> bool:
        """Whether to go on; CatBoost asks after each round."""
        return bool(info.iteration < self._rounds)


def talks(params: Mapping[str, Any]) -> bool:
    return any(name in params for name in ("verbose", "logging_level", "silent", "verbose_eval"))
