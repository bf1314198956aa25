r"""Scores as means of one part per validation row, which show how certain they are on new rows.

A score on n rows is an estimate. The influence function of the metric gives each row a part
:math:`\psi_i`. The mean of the parts is the score, and their spread shows how much the score would
differ on other rows. For a mean of rows, the part is the row's own score; for the area under the
ROC curve, it follows from DeLong's components (DeLong, DeLong and Clarke-Pearson 1988); for ratios
and roots of means (R², RMSE, F1, balanced accuracy), from their first-order expansion (the delta
method). For any other metric, parts are computed by leaving out one fortieth of the rows at a time
(block jackknife).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latebloomer.errors import SettingError, unknown

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Metric: TypeAlias = Callable[["NDArray[np.generic]", "NDArray[np.generic]"], float]
Parts: TypeAlias = tuple[float, Floats, float]  # score, parts of the rows, step

# Blocks of the jackknife: Student's t with 39 degrees of freedom is 3 % wider than a normal.
BLOCKS = 40


@dataclass(frozen=True, eq=False)
class RowScores:
    """A score with its part for each validation row.

    Attributes
    ----------
    score : float
        The score on all rows; higher is better.
    parts : numpy.ndarray
        One number per row, whose mean is the score.
    step : float
        Largest jump of the part of one row; 0 if parts change smoothly. Two models that agree on
        all rows of a sample may differ on the next row, so the uncertainty is at least one row.
    rows : numpy.ndarray
        Number of each row in the data. Models are compared only on the same rows.
    units : numpy.ndarray or None
        The group or the jackknife's block of each row, if these were drawn independently; None if
        rows were.
    """

    score: float
    parts: Floats
    step: float
    rows: Ints
    units: Ints | None = None


def row_scores(
    metric: str | Metric,
    y: ArrayLike,
    prediction: ArrayLike,
    *,
    rows: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> RowScores:
    """Return a score and its part for each validation row.

    Parameters
    ----------
    metric : str or callable
        Name of a metric, as scikit-learn calls its scorers, or a function of `y` and `prediction`
        that returns a score (higher is better).
    y : array-like
        True values of the validation rows.
    prediction : array-like
        Predicted values: labels for "accuracy", "balanced_accuracy" and "f1..."; the probability
        or decision value of the greater label for "roc_auc"; probabilities for "neg_log_loss" and
        "neg_brier_score", with one column per label in sorted order.
    rows : array-like of int, optional
        Number of each row in the data. Default: 0, 1, 2, ...
    groups : array-like, optional
        Group of each row, if the rows of a group are not independent. Default: rows are
        independent.

    Returns
    -------
    RowScores
        The score and its parts.

    Examples
    --------
    >>> row_scores("accuracy", [0, 1, 1, 0], [0, 1, 0, 0]).score
    0.75
    >>> row_scores("roc_auc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).parts  # their mean is .75
    array([1.25, 0.25, 0.25, 1.25])
    """
    truth, predicted = np.asarray(y), np.asarray(prediction)
    n = len(truth)
    if n < 2 or len(predicted) != n:
        raise SettingError(
            f"y has {n} rows and prediction {len(predicted)}. Pass one prediction for each of at "
            f"least two validation rows."
        )
    numbers = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    units = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if callable(metric):
        score, parts, blocks = _jackknife(metric, truth, predicted, numbers)
        if units is None:
            units = blocks
        return RowScores(score, parts, 0.0, numbers, units)
    if metric not in METRICS:
        raise unknown("metric with row scores", metric, METRICS)
    score, parts, step = METRICS[metric](truth, predicted)
    return RowScores(score, parts, step, numbers, units)


def mean_of_rows(values: ArrayLike, rows: ArrayLike | None = None) -> RowScores:
    """Return the row scores of a score that is the mean of one number per row.

    >>> mean_of_rows([1, 0, 1, 1]).score  # right or wrong: the step is one row
    0.75
    """
    parts = np.asarray(values, dtype=np.float64)
    if parts.ndim != 1 or len(parts) < 2 or not np.isfinite(parts).all():
        raise SettingError(
            f"row_scores has the shape {parts.shape}. Pass one finite number for each of at least "
            f"two validation rows."
        )
    levels = np.unique(parts[:1000])
    step = float(levels[-1] - levels[0]) if len(levels) <= 2 else 0.0
    numbers = np.arange(len(parts)) if rows is None else np.asarray(rows, dtype=np.int64)
    return RowScores(float(parts.mean()), parts, step, numbers)


def _rowwise(parts: Floats, step: float = 0.0) -> Parts:
    return float(parts.mean()), parts, step


def _accuracy(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    return _rowwise((y == predicted).astype(np.float64), 1.0)


def _balanced_accuracy(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """Mean of the recalls r_c; a row of class c has the part score + (right - r_c) / (K p_c)."""
    right = (y == predicted).astype(np.float64)
    labels, place, counts = np.unique(y, return_inverse=True, return_counts=True)
    recalls = np.bincount(place, right) / counts
    weight = len(y) / (len(labels) * counts)  # 1 / (K p_c)
    score = float(recalls.mean())
    return score, score + weight[place] * (right - recalls[place]), float(weight.max())


def _roc_auc(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """Area under the ROC curve, by DeLong's components.

    The component of a row is the share of rows of the other class that are ordered rightly with
    it. A row of a class with share p of all rows has the part AUC + (component - AUC) / p, so the
    variance of the mean is DeLong's, S10/n1 + S01/n0.
    """
    labels = np.unique(y)
    if len(labels) != 2:
        raise SettingError(
            f"roc_auc needs two classes among the validation rows, but y has {len(labels)}. Pass "
            f"more rows, or a metric for several classes such as 'accuracy'."
        )
    values = _of_greater_label(predicted)
    positive = y == labels[1]
    n1, n0 = int(positive.sum()), int((~positive).sum())
    ranks = _midranks(values)
    component = np.empty(len(values))
    component[positive] = (ranks[positive] - _midranks(values[positive])) / n0
    component[~positive] = 1 - (ranks[~positive] - _midranks(values[~positive])) / n1
    score = float(component[positive].mean())
    share = np.where(positive, n1, n0) / len(values)
    return score, score + (component - score) / share, 0.0


def _midranks(values: Floats) -> Floats:
    """Return the rank of each value, from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def _of_greater_label(predicted: NDArray[np.generic]) -> Floats:
    """Return the column of the greater of two labels, or the only column."""
    return np.asarray(predicted if predicted.ndim == 1 else predicted[:, -1], dtype=np.float64)


def _f1(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """F1 of the greater of two labels."""
    labels = np.unique(y)
    if len(labels) > 2:
        raise SettingError(
            f"f1 needs two classes, but y has {len(labels)}: pass 'f1_macro' or 'f1_weighted'."
        )
    score, parts, step = _f1_of(y == labels[-1], predicted == labels[-1])
    return score, parts, step


def _f1_of(true: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> Parts:
    """F1 = a/b, with a the mean of 2 tp and b of 2 tp + fp + fn; parts F1 + (a_i - F1 b_i) / b."""
    top = 2.0 * (true & predicted)
    bottom = true.astype(np.float64) + predicted
    if not bottom.any():
        return 0.0, np.zeros(len(true)), 0.0
    score = float(top.mean() / bottom.mean())
    return score, score + (top - score * bottom) / bottom.mean(), float(1 / bottom.mean())


def _f1_mean(y: NDArray[np.generic], predicted: NDArray[np.generic], weighted: bool) -> Parts:
    """Mean of the classes' F1; if weighted by p_c, a row adds the F1 of its class - score."""
    labels, place, counts = np.unique(y, return_inverse=True, return_counts=True)
    weights = counts / len(y) if weighted else np.full(len(labels), 1 / len(labels))
    each = [_f1_of(y == label, predicted == label) for label in labels]
    scores = np.array([score for score, _, _ in each])
    score = float(weights @ scores)
    parts = np.full(len(y), score)
    for weight, (own, own_parts, _) in zip(weights, each, strict=True):
        parts += weight * (own_parts - own)
    if weighted:
        parts += scores[place] - score
    step = max(weight * own for weight, (_, _, own) in zip(weights, each, strict=True))
    return score, parts, float(2 * step)  # a wrong row changes two classes


def _log_loss(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    smallest = float(np.finfo(np.float32 if predicted.dtype == np.float32 else np.float64).eps)
    chosen = _probabilities_of_truth(y, predicted)
    return _rowwise(np.log(np.clip(chosen, smallest, 1.0 - smallest)))  # as in scikit-learn


def _brier(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """Squared distance of the greater label's probability, as scikit-learn's neg_brier_score."""
    labels = np.unique(y)
    if len(labels) != 2:
        raise SettingError(f"neg_brier_score needs two classes, but y has {len(labels)}.")
    return _rowwise(-np.square((y == labels[1]) - _of_greater_label(predicted)))


def _probabilities_of_truth(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Floats:
    labels, place = np.unique(y, return_inverse=True)
    table = np.asarray(predicted, dtype=np.float64)
    if table.ndim == 1:
        table = np.stack([1 - table, table], axis=1)
    if table.shape[1] != len(labels):
        raise SettingError(
            f"prediction has {table.shape[1]} columns, but y has {len(labels)} labels. Pass one "
            f"column per label, in sorted order, and validation rows of every label."
        )
    return np.asarray(table[np.arange(len(table)), place], dtype=np.float64)


def _error(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Floats:
    return np.asarray(y, dtype=np.float64) - np.asarray(predicted, dtype=np.float64)


def _r2(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """R² = 1 - m/v: parts R² - (e² - m)/v + (m/v²)((y - ȳ)² - v)."""
    values = np.asarray(y, dtype=np.float64)
    squared, spread = (
        np.square(_error(y, predicted)),
        np.square(values - values.mean()),
    )
    m, v = float(squared.mean()), float(spread.mean())
    if v == 0:
        raise SettingError("r2 needs different true values, but all in y are equal.")
    score = 1 - m / v
    return score, score - (squared - m) / v + (m / v**2) * (spread - v), 0.0


def _root_mean_squared_error(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    """-√m: parts -√m - (e² - m) / (2 √m)."""
    squared = np.square(_error(y, predicted))
    root = float(np.sqrt(squared.mean()))
    return -root, -root - (squared - root**2) / (2 * root or 1.0), 0.0


def _mean_squared_error(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    return _rowwise(-np.square(_error(y, predicted)))


def _mean_absolute_error(y: NDArray[np.generic], predicted: NDArray[np.generic]) -> Parts:
    return _rowwise(-np.abs(_error(y, predicted)))


METRICS: dict[str, Callable[[NDArray[np.generic], NDArray[np.generic]], Parts]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "roc_auc": _roc_auc,
    "f1": _f1,
    "f1_macro": partial(_f1_mean, weighted=False),
    "f1_weighted": partial(_f1_mean, weighted=True),
    "neg_log_loss": _log_loss,
    "neg_brier_score": _brier,
    "r2": _r2,
    "neg_mean_squared_error": _mean_squared_error,
    "neg_root_mean_squared_error": _root_mean_squared_error,
    "neg_mean_absolute_error": _mean_absolute_error,
}


def _jackknife(
    metric: Metric, y: NDArray[np.generic], predicted: NDArray[np.generic], rows: Ints
) -> tuple[float, Floats, Ints]:
    """Return the score, each row's part and its block, by leaving out one block at a time.

    Block b of B has the pseudo-value B s - (B - 1) s_(b), where s_(b) is the score without it.
    """
    blocks = blocks_of(y, rows)
    count = int(blocks.max()) + 1
    score = float(metric(y, predicted))
    without = [float(metric(y[blocks != b], predicted[blocks != b])) for b in range(count)]
    pseudo = (count - 1) * (float(np.mean(without)) - np.array(without))  # centered
    return score, score + pseudo[blocks], blocks


def blocks_of(y: NDArray[np.generic], rows: Ints) -> Ints:
    """Return the block of each row; blocks have equal shares of each class (or range of y)."""
    count = max(2, min(BLOCKS, len(y) // 2))
    order = np.lexsort((mixed(rows), np.unique(y, return_inverse=True)[1]))
    blocks = np.empty(len(y), dtype=np.int64)
    blocks[order] = np.arange(len(y)) % count
    return blocks


def mixed(numbers: Ints, salt: int = 0) -> NDArray[np.uint64]:
    """Return 64 random bits for each number, equal on all machines (SplitMix64's finalizer)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + np.uint64(salt + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)
