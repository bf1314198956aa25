"""The common part of `XGBoostLearner`, `LightGBMLearner` and `CatBoostLearner`."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np

from latebloomer._util.text import brief
from latebloomer.errors import SettingError
from latebloomer.integrations.library_learner import LibraryLearner, checked_full, need_kind

Metric: TypeAlias = str | Callable[[Any, Any], float]  # a name, or a function of (model, valid)

# Names of one setting in the three libraries. All three learners understand each of them.
ROUNDS = (
    "num_boost_round", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees",
    "num_round", "num_rounds", "nrounds", "n_estimators", "max_iter", "iterations",
)  # fmt: skip
STOPPING = (
    "early_stopping_rounds", "early_stopping_round", "early_stopping", "n_iter_no_change",
    "od_type", "od_wait", "od_pval",
)  # fmt: skip
METRIC = ("eval_metric", "metric", "metrics", "metric_types")
# Names, in any of the libraries, of metrics from 0 to 1 and of errors that are at least 0.
SHARES = frozenset((
    "auc", "aucpr", "average_precision", "accuracy", "precision", "recall", "f1", "totalf1",
    "balancedaccuracy", "ndcg", "map", "pre", "error", "merror", "binary_error", "multi_error",
    "zerooneloss",
))  # fmt: skip
ERRORS = frozenset((
    "rmse", "rmsle", "mae", "mape", "mse", "l1", "l2", "logloss", "mlogloss", "binary_logloss",
    "multi_logloss", "multiclass", "crossentropy", "cross_entropy",
))  # fmt: skip
RATE = ("learning_rate", "eta", "shrinkage_rate")
HARMLESS = frozenset((
    "nthread", "nthreads", "num_thread", "num_threads", "n_jobs", "thread_count", "verbosity",
    "verbose", "verbose_eval", "silent", "logging_level", "used_ram_limit", "train_dir",
))  # fmt: skip


class BoosterLearner(LibraryLearner):
    """Train a booster: a step is one boosting round."""

    dataset: ClassVar[str]  # name of the library's type for rows
    harmless = HARMLESS
    model: Any

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
        self._library = self._import()
        need_kind(isinstance(params, Mapping), "params", params, "a dict of settings")
        for early in [name for name in STOPPING if params.get(name) is not None]:
            why = "but in a race the policy decides when a learner stops: remove it"
            raise SettingError(f"params has {early}={brief(params[early])}, {why}")
        self.full_steps = checked_full(said_once("full_steps", full_steps, params, ROUNDS))
        self._metric = said_once("metric", metric, params, METRIC)
        if not callable(self._metric):  # a function may have its own rows
            self._need_valid(valid)
        self._params = {k: params[k] for k in params if k not in (*ROUNDS, *METRIC)}
        rate = next((name for name in RATE if callable(params.get(name))), "")
        self._rate = self._params.pop(rate, None)
        self._settings = self._params | {"metric": self._metric, "learning rate": self._rate}
        self._given_valid = valid
        self._train_rows = self._rows("train", train)
        self._valid_rows = None if valid is None else self._rows("valid", valid)
        self._start()
        self._rank_by(self._metric, maximize)

    def _train(self, last: int) -> float:
        for number in range(self.steps, last):
            self._round(number)
            self.steps = number + 1
        return self._value()

    def _value(self) -> float:
        if isinstance(self._metric, str):
            return self._named_value()
        return float(self._metric(self.model, self._given_valid))

    def _rows(self, name: str, data: Any) -> Any:
        """Return rows in the library's type; raise a `LearnerError` if that is not possible."""
        if isinstance(data, getattr(self._library, self.dataset)):
            return data
        needed = f"a {self.dataset}, (X, y) or (X, y, weights), with rows"
        full = isinstance(data, tuple) and len(data) in (2, 3) and np.size(data[1]) > 0
        need_kind(full and np.ndim(data[1]) > 0, name, data, needed)
        return self._made_rows(*data)

    @property
    def score_range(self) -> tuple[float | None, float | None] | None:
        """Lowest and highest possible score, if the metric's name tells; None: no limit."""
        name = str(self._metric).partition("@")[0].partition(":")[0].lower()
        if not isinstance(self._metric, str):
            return None
        if name in SHARES:
            return (0.0, 1.0) if self._sign > 0 else (-1.0, 0.0)
        return (None, 0.0) if name in ERRORS and self._sign < 0 else None

    @abstractmethod
    def _made_rows(self, X: Any, y: Any, weight: Any = None) -> Any:
        """Return features, target and weights in the library's type for rows."""

    @abstractmethod
    def _start(self) -> None:
        """Create a model that has no rounds yet."""

    @abstractmethod
    def _round(self, number: int) -> None:
        """Train round `number`, counted from 0."""

    @abstractmethod
    def _named_value(self) -> float:
        """Return the value of a metric that the library computes."""


def said_once(name: str, value: Any, params: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return a setting from its argument or from `params`; raise an error if they differ.

    >>> said_once("full_steps", None, {"n_estimators": 40}, ROUNDS)
    40
    """
    asked = {own: params[own] for own in names if params.get(own) is not None}
    if value is not None:
        asked[name] = value
    (first, chosen), *others = [*asked.items()] or [(name, None)]
    for other, differs in others:
        if differs != chosen:
            both = f"{first}={brief(chosen)} and {other}={brief(differs)} are both given"
            raise SettingError(f"{both}: give one of them")
    return chosen
