"""How a scikit-learn estimator is trained a little more, by what it offers.

`partial_fit` is preferred; else `warm_start`, with more `n_estimators` or `max_iter` each time. Of
a pipeline the last step decides: the steps before it are fitted once.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from latebloomer.errors import LearnerError

GROWING = ("n_estimators", "max_iter")  # what warm_start is given more of
BINNED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


class Way(ABC):
    """One way to train a model a little more."""

    batched: bool  # by batches of rows, or on all of them
    widens: bool = True  # what was learned stays right when rows are added

    @abstractmethod
    def begin(self, model: Any) -> None:
        """Set up a model that has not been trained."""

    @abstractmethod
    def more(self, model: Any, X: Any, y: Any, pulls: int) -> None:
        """Train a model that has had `pulls` pulls once more."""

    @abstractmethod
    def words(self, batch: int, rows: int) -> str:
        """What a pull is, for the user."""


class PartialFit(Way):
    """One more batch."""

    batched = True

    def __init__(self, model: Any, classes: Any) -> None:
        takes = "classes" in inspect.signature(model.partial_fit).parameters
        self._first = {"classes": classes} if takes and classes is not None else {}

    def begin(self, model: Any) -> None:
        pass

    def more(self, model: Any, X: Any, y: Any, pulls: int) -> None:
        model.partial_fit(X, y, **({} if pulls else self._first))

    def words(self, batch: int, rows: int) -> str:
        return f"partial_fit: {batch} of {rows} rows a pull, reshuffled every epoch"


class WarmStart(Way):
    """More trees, stages or iterations on all rows."""

    batched = False

    def __init__(self, model: Any, grows: str, step: int) -> None:
        self._grows, self._step = grows, step
        # Ensembles count what they have; iterative solvers count what a call may add.
        self._counts = grows == "n_estimators" or isinstance(model, BINNED)
        # Old trees' thresholds are kept as bin numbers, and other rows have other bins.
        self.widens = not isinstance(model, BINNED)

    def begin(self, model: Any) -> None:
        model.set_params(warm_start=True)

    def more(self, model: Any, X: Any, y: Any, pulls: int) -> None:
        amount = self._step * (pulls + 1) if self._counts else self._step
        model.set_params(**{self._grows: amount})
        with warnings.catch_warnings():  # it is not meant to converge within a pull
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)

    def words(self, batch: int, rows: int) -> str:
        return f"warm_start: {self._grows} grows by {self._step} a pull, on all {rows} rows"


def way_for(estimator: Any, classes: Any = None, step: int = 1) -> Way:
    """How an estimator learns incrementally; a `LearnerError` where it does not.

    >>> from sklearn.svm import SVC
    >>> way_for(SVC())
    Traceback (most recent call last):
    latebloomer.errors.LearnerError: SVC() cannot be trained a little at a time: it has no ...
    """
    if inspect.isclass(estimator):
        raise LearnerError(
            f"{estimator.__name__} is a class, but a learner needs an object: "
            f"{estimator.__name__}()"
        )
    model = last_step(estimator)
    if hasattr(model, "partial_fit"):
        return PartialFit(model, classes)
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    grows = next((name for name in GROWING if name in params), None)
    if "warm_start" in params and grows is not None:
        return WarmStart(model, grows, step)
    raise LearnerError(_cannot(estimator, model, params))


def last_step(estimator: Any) -> Any:
    """The step of a pipeline that learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _cannot(estimator: Any, model: Any, params: dict[str, Any]) -> str:
    what = "the last step of the pipeline, " if model is not estimator else ""
    if "warm_start" in params:
        lacks = "no partial_fit, and a warm_start without n_estimators or max_iter to grow"
    else:
        lacks = "no partial_fit and no warm_start"
    return (
        f"{what}{model!r} cannot be trained a little at a time: it has {lacks}. SGDClassifier, "
        "MLPClassifier, naive Bayes, forests, gradient boosting and their regressors can; for a "
        "kernel machine, make_pipeline(Nystroem(), SGDClassifier()) comes near"
    )
