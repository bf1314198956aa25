"""Facts about an estimator: its last step, its classes, and the setting by which it grows."""

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

GROWING = ("n_estimators", "max_iter")  # settings that are raised to train further with warm_start


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, which learns; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def has_head(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline with steps before the last."""
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def step_params(estimator: Any, params: Params) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters for the steps of a pipeline before the last, and for the last step.

    An estimator gets the parameters that it requests for `fit`, even if `partial_fit` trains it.

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
    """Return the setting that is raised to train further with `warm_start`, if any."""
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
        only = classes.tolist()[0]
        raise SettingError(f"y has a single class, {only!r}, but a classifier needs two")
    return classes


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the settings that influence the model: all but the number of threads and verbosity.

    >>> from sklearn.ensemble import BaggingClassifier
    >>> {"n_jobs", "verbose"} & settings_of(BaggingClassifier()).keys()
    set()
    """
    return {
        key: type(value).__name__ if hasattr(value, "get_params") else value
        for key, value in ({"class": estimator} | estimator.get_params()).items()
        if key != "steps" and key.rpartition("__")[2] not in boosters.HARMLESS
    }  # objects inside it have their own settings


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone with a number for each `random_state=None`, so training repeats."""
    copy = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = copy.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return copy.set_params(**{key: int(rng.integers(2**31)) for key in free})
