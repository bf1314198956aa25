"""Which rows are held out: the score of a learner is never taken on rows that it trains on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import type_of_target

from latebloomer.errors import SettingError, require

Rows = NDArray[np.intp]


class Part(NamedTuple):
    """One model's rows, to train on and to be scored on."""

    X: Any
    y: Any
    X_val: Any
    y_val: Any


def parts_of(X: Any, y: Any, validation: Any, classifier: bool, seed: int) -> list[Part]:
    """One part for a share or a validation set; one per fold of a splitter."""
    X, y = rows_of(X), rows_of(y)
    same_length(X, y, "X", "y")
    if isinstance(validation, tuple):
        return [Part(X, y, *_given(validation))]
    return [
        Part(take(X, train), take(y, train), take(X, held), take(y, held))
        for train, held in splits_of(X, y, validation, classifier, seed)
    ]


def splits_of(
    X: Any, y: Any, validation: Any, classifier: bool, seed: int
) -> list[tuple[Rows, Rows]]:
    """Rows to train on and rows held out, for a share or for a splitter."""
    if isinstance(validation, bool | str | tuple) or validation is None:
        raise SettingError(
            f"validation={validation!r}, but validation must be a share of the rows, such as "
            "0.2, or a splitter of sklearn.model_selection"
        )
    if isinstance(validation, float | np.floating):
        return [_share(y, float(validation), classifier, seed)]
    splits = [
        (np.asarray(train), np.asarray(held))
        for train, held in check_cv(validation, y, classifier=classifier).split(X, y)
    ]
    for train, held in splits:
        _apart(train, held)
    return splits


def rows_of(data: Any) -> Any:
    """The data in a form whose rows can be picked by number."""
    return indexable(data)[0]


def take(data: Any, rows: Rows) -> Any:
    """Some rows of an array, a data frame, a sparse matrix or a list."""
    return _safe_indexing(data, rows)


def count(data: Any) -> int:
    """The number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") and data.shape else len(data)


def same_length(X: Any, y: Any, first: str, second: str) -> None:
    """Raise a `SettingError` unless there is one target for each row."""
    if count(X) != count(y):
        raise SettingError(
            f"{first} has {count(X)} rows and {second} has {count(y)}, but each row of {first} "
            f"needs one target (inconsistent numbers of samples)"
        )


def _given(pair: tuple[Any, ...]) -> tuple[Any, Any]:
    if len(pair) != 2:
        raise SettingError(
            f"validation is a tuple of {len(pair)}, but it must be (X_val, y_val), a share of "
            "the rows or a splitter"
        )
    same_length(pair[0], pair[1], "X_val", "y_val")
    if count(pair[1]) == 0:
        raise SettingError("validation=(X_val, y_val) has no rows, but a score needs some")
    return pair


def _share(y: Any, share: float, classifier: bool, seed: int) -> tuple[Rows, Rows]:
    require(0 < share < 1, "validation", share, "in (0, 1)", "it is the share of rows held out")
    rows = count(y)
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows)
    free = order
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        free = _beyond_first(np.asarray(y), order)
    held = min(max(1, round(share * rows)), free.size)
    if held == 0 or held == rows:
        raise SettingError(
            f"y has {rows} samples, but with validation={share:g} and n_samples={rows} no row is "
            "left to train on or to be scored on: give more rows, each class at least twice"
        )
    spread = ((np.arange(held) + rng.random()) * free.size / held).astype(np.intp)
    chosen = np.zeros(rows, dtype=bool)
    chosen[free[np.minimum(spread, free.size - 1)]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _beyond_first(y: NDArray[Any], order: Rows) -> Rows:
    """Rows by class, without one of each: every class is trained on, and all are held out alike.

    >>> y = np.array(["a", "b", "a", "c"])
    >>> _beyond_first(y, np.arange(4))
    array([2])
    """
    _, codes = np.unique(y, return_inverse=True)
    by_class = order[np.argsort(codes[order], kind="stable")]
    changes = np.diff(codes[by_class], prepend=-1) != 0
    return by_class[~changes]


def _apart(train: Rows, held: Rows) -> None:
    both = np.intersect1d(train, held)
    if both.size:
        raise SettingError(
            f"the splitter gave row {both[0]} both to train on and to be scored on, but a score "
            "must be taken on other rows"
        )
