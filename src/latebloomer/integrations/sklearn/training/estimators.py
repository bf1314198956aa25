"""What an estimator and its settings say: its last step, its classes, how it can grow."""

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import unique_labels

from latebloomer.errors import SettingError
from latebloomer.integrations import boosters
from latebloomer.integrations.sklearn.metadata_routing import routing_enabled
from latebloomer.integrations.sklearn.splits import Params

GROWING = ("n_estimators", "max_iter")  # the settings that warm_start is given more of


def last_step(estimator: Any) -> Any:
    """Return the step of a pipeline that learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def has_head(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline with steps before the last."""
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def step_params(estimator: Any, params: Params) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the steps of a pipeline before the last get, and what the last gets.

    An estimator gets what it asks for in `fit`, also if it is trained by `partial_fit`.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), SGDClassifier())
    >>> step_params(pipeline, {"standardscaler__sample_weight": 1, "sample_weight": 2})
    ({'standardscaler__sample_weight': 1}, {'sample_weight': 2})
    """
    if not isinstance(estimator, Pipeline) or not params:
        return {}, dict(params)
    last = estimator.steps[-1][0]
    if routing_enabled():
        head = set()
        if has_head(estimator):
            head = estimator[:-1].get_metadata_routing().consumes("fit_transform", params)
        routed = process_routing(estimator, "fit", **params)[last].fit
        return {name: params[name] for name in head}, dict(routed)
    own = {name.removeprefix(f"{last}__"): value for name, value in params.items()}
    head = {name for name in own if "__" in name}
    return {k: own[k] for k in own if k in head}, {k: own[k] for k in own if k not in head}


def grows_by(model: Any) -> str | None:
    """Return the setting that `warm_start` is given more of; None if there is none."""
    params = model.get_params(deep=False)
    return next((n for n in GROWING if n in params), None) if "warm_start" in params else None


def classes_of(estimator: Any, y: Any) -> Any:
    """Return all classes, for the first `partial_fit`; None for a regressor."""
    if not is_classifier(estimator):
        return None
    if isinstance(last_step(estimator), MultiOutputClassifier):
        return [np.unique(column) for column in np.asarray(y).T]
    classes = unique_labels(y)
    if len(classes) < 2:
        raise SettingError(f"y has a single class, {classes[0]!r}, but a classifier needs two")
    return classes


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the settings that decide what a model becomes: without threads and what is printed.

    >>> from sklearn.ensemble import BaggingClassifier
    >>> {"n_jobs", "verbose"} & settings_of(BaggingClassifier()).keys()
    set()
    """
    return {
        key: type(value).__name__ if hasattr(value, "get_params") else value
        for key, value in ({"class": estimator} | estimator.get_params()).items()
        if key != "steps" and key.rpartition("__")[2] not in boosters.HARMLESS
    }  # the parts of a pipeline have their own names


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone whose every `random_state=None` is a number: it can be trained again."""
    copy = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = copy.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return copy.set_params(**{key: int(rng.integers(2**31)) for key in free})
