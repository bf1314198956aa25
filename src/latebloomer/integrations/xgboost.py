"""XGBoost: a learner that adds boosting rounds to a live booster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, unknown
from latebloomer.integrations.full_training import (
    Metric,
    checked_full,
    library,
    metric_named_once,
    need_valid,
    read_label,
    sign,
    steps_left,
    write_label,
)

__all__ = ["XGBoostLearner"]

FILE = "xgboost.ubj"
HIGHER_IS_BETTER = {"auc", "aucpr", "pre", "ndcg", "map", "interval-regression-accuracy"}
LOWER_IS_BETTER = {
    "rmse", "rmsle", "mae", "mape", "mphe", "logloss", "error", "merror", "mlogloss", "quantile",
    "expectile", "poisson-nloglik", "gamma-nloglik", "cox-nloglik", "gamma-deviance",
    "tweedie-nloglik", "aft-nloglik",
}  # fmt: skip
SAMPLING = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")


class XGBoostLearner:
    """A booster: a step is one boosting round, the score the metric on the evaluation set.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`.

    A resumed learner is the same bit for bit. With sampling of rows or columns each pull draws by
    the seed and the number of its first round, so `xgboost.train` with the same seed draws
    otherwise: XGBoost does not save the state of its generator.

    Parameters
    ----------
    params : Mapping[str, Any]
        XGBoost's settings.
    train : Any
        What is trained on: a `DMatrix` or `(X, y)`.
    valid : Any
        What is scored on, in the same form.
    metric : Metric | None
        One of XGBoost's names, or a function `(booster, valid)`; that of the params if None.
    maximize : bool | None
        Whether a metric is better when higher; known of XGBoost's own, taken to be
        so of a function, if None.
    full_steps : int | None
        Rounds of a full training; trained on without end if None.

    Raises
    ------
    MissingExtra
        XGBoost is not installed, or too old.
    LearnerError
        `train` or `valid` is not there, or of another form.
    SettingError
        No metric is named, or two, or `full_steps` is no positive whole number.

    Examples
    --------
    ::

        import numpy as np
        from latebloomer import race
        from latebloomer.integrations.xgboost import XGBoostLearner

        X = np.random.default_rng(0).normal(size=(300, 4))
        y = X[:, 0] + X[:, 1] * X[:, 2] > 0
        train, valid = (X[:200], y[:200]), (X[200:], y[200:])
        learners = {
            f"depth {depth}": XGBoostLearner(
                {"objective": "binary:logistic", "max_depth": depth}, train, valid, metric="auc",
                full_steps=20,
            )
            for depth in (1, 3, 6)
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
        self._xgboost = library("xgboost", "XGBoost learners", "xgboost")
        self.full_steps = checked_full(full_steps)
        need_valid(self, valid)
        self._metric = metric_named_once(metric, params, ["eval_metric"])
        self._sign = sign(self._metric, maximize, _higher_is_better)
        self._train, self._valid = self._matrix("train", train), self._matrix("valid", valid)
        own: dict[str, Any] = {"seed_per_iteration": True}  # else learners draw from one generator
        own["eval_metric" if isinstance(self._metric, str) else "disable_default_eval_metric"] = (
            self._metric if isinstance(self._metric, str) else 1
        )
        self._params = {"verbosity": 1} | dict(params) | own
        self.model = self._booster()

    def pull(self, steps: int = 1) -> float:
        """Add rounds; the metric after them."""
        done = self.rounds
        last = done + steps_left(steps, done, self.full_steps)
        if done and draws_at_random(self._params):  # as if resumed: it has generators inside
            self.model = self._booster(self.model.save_raw("ubj"))
        for number in range(done, last):
            self.model.update(self._train, number)
        return self._sign * self._value()

    @property
    def rounds(self) -> int:
        """Boosting rounds so far."""
        return int(self.model.num_boosted_rounds())

    def _value(self) -> float:
        if not isinstance(self._metric, str):
            return float(self._metric(self.model, self._valid))
        said = self.model.eval_set([(self._valid, "valid")], self.rounds)
        return float(said.rpartition(":")[2])

    def _booster(self, state: Any = None) -> Any:
        return self._xgboost.Booster(self._params, [self._train, self._valid], model_file=state)

    def _matrix(self, name: str, data: Any) -> Any:
        if isinstance(data, self._xgboost.DMatrix):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return self._xgboost.DMatrix(data[0], label=data[1])
        raise LearnerError(f"{name}={brief(data)}, but {name} must be a DMatrix or (X, y)")

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write the booster in XGBoost's own format."""
        self.model.save_model(Path(folder) / FILE)
        write_label(folder, self, self._params, self.rounds)

    def load(self, folder: Path) -> None:
        """Become what was saved."""
        read_label(folder, self, self._params)
        self.model = self._booster(str(Path(folder) / FILE))


def _higher_is_better(metric: str) -> bool:
    name = metric.partition("@")[0].rstrip("-")  # ndcg@5, ndcg@5-
    if name not in HIGHER_IS_BETTER | LOWER_IS_BETTER:
        raise unknown("metric of XGBoost", metric, HIGHER_IS_BETTER | LOWER_IS_BETTER)
    return name in HIGHER_IS_BETTER


def draws_at_random(params: Mapping[str, Any]) -> bool:
    """Whether rounds are drawn at random, by the settings that are given."""
    return params.get("booster", "gbtree") != "gbtree" or any(
        float(params.get(name, 1)) != 1 for name in SAMPLING
    )
