"""The part of a model's score that each held-out row contributes, by the search's metric.

The metrics of `latebloomer.row_scores` have formulas for the parts. For every other metric of
scikit-learn, the parts are computed by leaving out a fortieth of the rows at a time. A user's
function of (estimator, X, y) has no parts, and neither has a weighted score.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from latebloomer.integrations.sklearn.metrics import Metrics, is_sklearns
from latebloomer.integrations.sklearn.predicted_models import predicted_model
from latebloomer.integrations.sklearn.training.fold_model import FoldModel
from latebloomer.theory.row_scores import METRICS, RowScores, row_scores

PROBABILITIES = ("neg_log_loss", "neg_brier_score")
RANKED = ("decision_function", "predict_proba")  # inputs of an AUC, the preferred one first


def parts_of_score(metrics: Metrics, model: FoldModel) -> RowScores | None:
    """Return the score of a trained model in parts, one per held-out row; None if not possible."""
    fold, y = model.fold, np.asarray(model.fold.y_val)
    if fold.held is None or fold.score_params or y.ndim != 1:
        return None
    metric = metrics.leading_metric(model.estimator)
    prediction = _prediction(metric, model, y) if isinstance(metric, str) else None
    if prediction is None:
        metric, prediction = _by_scorer(metrics, metric, model)
    if prediction is None:
        return None
    parts = row_scores(metric, y, prediction, rows=fold.held)
    return parts if fold.units is None else replace(parts, units=fold.units)


def _prediction(metric: str, model: FoldModel, y: NDArray[Any]) -> Any:
    """Return the predictions for a metric's formula; None without a formula or predictions."""
    # Scikit-learn's f1 is the f1 of class 1.
    if metric not in METRICS or (metric == "f1" and y.max() != 1):
        return None
    if metric == "roc_auc":
        return next((p for p in map(model.predicted, RANKED) if p is not None), None)
    if metric not in PROBABILITIES:
        return model.predicted("predict")
    table = model.predicted("predict_proba")
    # A class without held-out rows is in no part.
    return None if table is None else table[:, np.isin(model.classes, y)]


def _by_scorer(metrics: Metrics, metric: Any, model: FoldModel) -> tuple[Any, Any]:
    """Return the metric as a function of (y, predictions), and all predictions."""
    if not (isinstance(metric, str) or is_sklearns(metric)):
        return None, None
    classes = model.classes
    prediction = model.predictions(classes)
    if prediction is None:
        return None, None
    scorer = Metrics(metric).scorer(predicted_model(None, classes))

    def score(y: NDArray[Any], values: NDArray[Any]) -> float:
        with config_context(skip_parameter_validation=True):
            return float(scorer(predicted_model(values, classes), None, y))

    return score, prediction
