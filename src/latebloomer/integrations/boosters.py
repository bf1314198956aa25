"""What `XGBoostLearner`, `LightGBMLearner` and `CatBoostLearner` share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from latebloomer._util.text import brief
from latebloomer.errors import SettingError
from latebloomer.integrations.library_learner import LibraryLearner, checked_full, need_kind

Metric: TypeAlias = str | Callable[[Any, Any], float]  # a name, or a function (model, valid)

# Names that one of the libraries knows for the same setting. Each is read in all three.
ROUNDS = (
    "num_boost_round", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees",
    "num_round", "num_rounds", "nrounds", "n_estimators", "max_iter", "iterations",
)  # fmt: skip
STOPPING = (
    "early_stopping_rounds", "early_stopping_round", "early_stopping", "n_iter_no_change",
    "od_type", "od_wait", "od_pval",
)  # fmt: skip
METRIC = ("eval_metric", "metric", "metrics", "metric_types")
RATE = ("learning_rate", "eta", "shrinkage_rate")
HARMLESS = (
    "nthread", "nthreads", "num_thread", "num_threads", "n_jobs", "thread_count", "verbosity",
    "verbose", "verbose_eval", "silent", "logging_level", "used_ram_limit", "train_dir",
)  # fmt: skip


class BoosterLearner(LibraryLearner):
    """Train a booster: a step is one boosting round."""

    dataset: ClassVar[str]  # the library's own type of rows
    harmless = frozenset(HARMLESS)
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
        self._need_valid(valid)
        refuse_early_stopping(params)
        self.full_steps = full_said_once(full_steps, params)
        self._metric = metric_named_once(metric, params)
        self._params = {k: params[k] for k in params if k not in (*ROUNDS, *METRIC)}
        rate = next((name for name in RATE if callable(params.get(name))), None)
        self._rate = None if rate is None else self._params.pop(rate)
        self._given_train, self._given_valid = train, valid
        self._settings = self._params | {"metric": self._metric, "learning rate": self._rate}
        self._start()
        self._rank_by(self._metric, maximize, self._higher_is_better)

    def _train(self, last: int) -> float:
        for number in range(self.steps, last):
            self._round(number)
            self.steps = number + 1
        return self._value()

    def _value(self) -> float:
        if isinstance(self._metric, str):
            return self._named_value()
        return float(self._metric(self.model, self._given_valid))

    def _rows(self, name: str, data: Any) -> tuple[Any, Any, Any]:
        """Return features, target and weights (or None)."""
        needed = f"a {self.dataset}, (X, y) or (X, y, weights)"
        need_kind(isinstance(data, tuple) and len(data) in (2, 3), name, data, needed)
        X, y, *weight = data
        return X, y, weight[0] if weight else None

    @abstractmethod
    def _start(self) -> None:
        """Read the rows and make a model without rounds."""

    @abstractmethod
    def _round(self, number: int) -> None:
        """Add the round of this number, counted from 0."""

    @abstractmethod
    def _named_value(self) -> float:
        """Return the value of the library's own metric."""

    @abstractmethod
    def _higher_is_better(self, metric: str) -> bool:
        """Return whether higher values of the library's own metric are better."""


def refuse_early_stopping(params: Mapping[str, Any]) -> None:
    """Raise a `SettingError` if settings let a booster stop by its own rule."""
    early = next((name for name in STOPPING if params.get(name) is not None), None)
    if early is not None:
        raise SettingError(
            f"params has {early}={brief(params[early])}, but in a race the policy decides when a "
            f"learner stops. Remove {early}."
        )


def full_said_once(full_steps: Any, params: Mapping[str, Any]) -> int | None:
    """Return the rounds of a full training, from `full_steps` or from the library's own setting.

    >>> full_said_once(None, {"n_estimators": 40})
    40
    """
    own = next((params[name] for name in ROUNDS if params.get(name) is not None), None)
    if full_steps is not None and own not in (None, full_steps):
        raise SettingError(
            f"full_steps={full_steps}, but params has {own} rounds: give one of them"
        )
    return checked_full(own if full_steps is None else full_steps)


def metric_named_once(metric: Any, params: Mapping[str, Any]) -> Metric:
    """Return the metric, from `metric` or from the library's own setting.

    >>> metric_named_once(None, {"eval_metric": "auc"})
    'auc'
    """
    own = next(((name, params[name]) for name in METRIC if params.get(name) is not None), None)
    if metric is None and own is None:
        raise SettingError("metric=None, but a race needs a score: name a metric, as metric='auc'")
    if metric is not None and own is not None and own[1] != metric:
        raise SettingError(
            f"metric={brief(metric)}, but params has {own[0]}={brief(own[1])}: give one of them"
        )
    found = metric if own is None else own[1]
    if not (isinstance(found, str) and found) and not callable(found):
        raise SettingError(
            f"metric={brief(found)}, but metric must be one name, or a function of (model, valid) "
            "that returns a number: a race has one score"
        )
    return found
