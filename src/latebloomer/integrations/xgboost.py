"""XGBoost: a learner that adds boosting rounds to a live booster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer.errors import unknown
from latebloomer.integrations.boosters import BoosterLearner

__all__ = ["XGBoostLearner"]

FILE = "xgboost.ubj"
HIGHER_IS_BETTER = {"auc", "aucpr", "pre", "ndcg", "map", "interval-regression-accuracy"}
LOWER_IS_BETTER = {
    "rmse", "rmsle", "mae", "mape", "mphe", "logloss", "error", "merror", "mlogloss", "quantile",
    "expectile", "poisson-nloglik", "gamma-nloglik", "cox-nloglik", "gamma-deviance",
    "tweedie-nloglik", "aft-nloglik",
}  # fmt: skip
SAMPLING = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
BLOCK = 16  # generators are seeded again after this number of rounds; a restore repeats fewer


class XGBoostLearner(BoosterLearner):
    """Wrap an XGBoost booster as a learner. One step is one boosting round.

    The score is the metric on `valid`, negated for a loss, so that higher is better: race with
    `maximize=True`. A restored learner continues bit for bit like the original. XGBoost does not
    save the states of its generators. So if rows or columns are sampled, the learner seeds the
    generators again every 16 rounds, by the seed and the number of the round. Therefore
    `xgboost.train` with the same seed draws different samples, and a restore repeats up to 15
    rounds. With `lambdarank_unbiased`, a restore repeats all rounds.

    Parameters
    ----------
    params : Mapping[str, Any]
        XGBoost's settings. `objective` may be a function `(predictions, train)` that returns
        gradients and Hessians, `learning_rate` a function of the round.
    train : Any
        Rows to train on: a `DMatrix`, `(X, y)` or `(X, y, weights)`.
    valid : Any
        Rows to score on, in one of the same forms.
    metric : Metric | None
        One of XGBoost's metrics, or a function `(booster, valid)` that returns a number and gets
        `valid` unchanged. Default: `eval_metric` of the params.
    maximize : bool | None
        Whether higher metric values are better. Default: known for XGBoost's metrics, True for a
        function.
    full_steps : int | None
        Number of rounds in a full training. Default: `n_estimators` or `num_boost_round` of the
        params, else no limit.

    Raises
    ------
    MissingExtra
        XGBoost is not installed, or too old.
    LearnerError
        `train` or `valid` is missing, or has another form.
    SettingError
        There is no metric, there are two metrics, or the metric is unknown; `full_steps` and the
        params differ, or `full_steps` is not a positive integer; the params have a setting for
        early stopping.

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

    package, title, dataset = "xgboost", "XGBoost", "DMatrix"

    def _start(self) -> None:
        named = isinstance(self._metric, str)
        own = {"eval_metric": self._metric} if named else {"disable_default_eval_metric": 1}
        # Unless each round is seeded, all learners share one generator.
        self._params = {"verbosity": 1, **self._params, **own, "seed_per_iteration": True}
        objective = self._params.get("objective")
        self._objective = self._params.pop("objective") if callable(objective) else None
        self.model = self._booster()

    def _round(self, number: int) -> None:
        if self._rate is not None:
            self.model.set_param("learning_rate", self._rate(number))
        if number % self._block == 0 and draws_at_random(self._params):
            self._seed_again()
        self.model.update(self._train_rows, number, self._objective)

    @property
    def _block(self) -> int:
        """Number of rounds between two seedings; 1 for dart, which changes earlier trees."""
        return BLOCK if self._params.get("booster", "gbtree") == "gbtree" else 1

    def _seed_again(self) -> None:
        """Make XGBoost create new generators, which are seeded by the round.

        Changing `tree_method` creates new tree builders, which contain the generators. Unlike a
        new booster, this keeps the predictions from which the next round starts.
        """
        if self._params.get("booster") == "gblinear" or "updater" in self._params:
            self.model = self._booster(self.model.save_raw("ubj"))
            return
        own = self._params.get("tree_method", "auto")
        self.model.set_param("tree_method", "hist" if own == "approx" else "approx")
        self.model.num_boosted_rounds()  # applies the change
        self.model.set_param("tree_method", own)

    def _named_value(self) -> float:
        text = self.model.eval_set([(self._valid_rows, "valid")], self.steps)
        return float(text.rpartition(":")[2])

    def _higher_is_better(self, metric: str) -> bool:
        name = metric.partition("@")[0].rstrip("-")  # ndcg@5, ndcg@5-
        if name not in HIGHER_IS_BETTER | LOWER_IS_BETTER:
            raise unknown("metric of XGBoost", metric, HIGHER_IS_BETTER | LOWER_IS_BETTER)
        return name in HIGHER_IS_BETTER

    def predictions(self) -> Any:
        """Return the predictions for the rows in `valid` after the latest round.

        XGBoost stores the sums for rows that a booster knows, so only new trees are evaluated.
        """
        return self.model.predict(self._valid_rows)

    def _booster(self, state: Any = None) -> Any:
        rows = [part for part in (self._train_rows, self._valid_rows) if part is not None]
        return self._library.Booster(self._params, rows, state)

    def _made_rows(self, X: Any, y: Any, weight: Any = None) -> Any:
        return self._library.DMatrix(X, label=y, weight=weight, enable_categorical=True)

    def _write(self, folder: Path) -> None:
        self.model.save_model(folder / FILE)

    def _read(self, folder: Path, steps: int) -> None:
        self.continue_from(self._library.Booster(model_file=str(folder / FILE)), steps)

    def continue_from(self, model: Any, steps: int) -> None:
        """Restore the state after `steps` rounds from a booster that has these rounds."""
        first = steps - steps % self._block if draws_at_random(self._params) else steps
        # A booster does not include its estimated bias.
        if self._params.get("lambdarank_unbiased"):
            first = 0
        kept = model if first == steps else model[:first] if first else None
        self.model = self._booster(kept and kept.save_raw("ubj"))
        for number in range(first, steps):
            self._round(number)
        self.steps = steps


def draws_at_random(params: Mapping[str, Any]) -> bool:
    """Return whether rounds use random numbers, according to the settings."""
    shares = (float(params.get(name, 1)) for name in SAMPLING)
    return params.get("booster") == "gblinear" or any(share != 1 for share in shares)
