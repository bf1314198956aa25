"""The choice of how an estimator is trained.

`partial_fit` is preferred; then `warm_start`, with more `n_estimators` or `max_iter` each time;
then a booster's rounds. Any other estimator is trained in one step by `fit`. For a pipeline, the
last step decides; the steps before it are fitted once.
"""

import inspect
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError
from latebloomer.integrations.sklearn.training.batch_model import BatchModel
from latebloomer.integrations.sklearn.training.booster_models import booster_model
from latebloomer.integrations.sklearn.training.estimators import grows_by, last_step
from latebloomer.integrations.sklearn.training.fold_model import FoldModel
from latebloomer.integrations.sklearn.training.warm_start_model import (
    OneStepModel,
    WarmStartModel,
)


def model_class(estimator: Any) -> type[FoldModel]:
    """Return the class that trains an estimator; raise a `LearnerError` if it is none.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.svm import SVC
    >>> model_class(GaussianNB()).__name__, model_class(SVC()).__name__
    ('BatchModel', 'OneStepModel')
    """
    if inspect.isclass(estimator):
        name = estimator.__name__
        raise LearnerError(f"{name} is a class, but a learner needs an object: {name}()")
    model = last_step(estimator)
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        why = "it has no methods fit and get_params, as an estimator of scikit-learn has"
        raise LearnerError(f"{brief(estimator)} cannot be trained: {why}")
    if hasattr(model, "partial_fit"):
        return BatchModel
    return WarmStartModel if grows_by(model) else booster_model(model) or OneStepModel
