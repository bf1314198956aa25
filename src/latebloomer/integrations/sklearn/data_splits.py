"""Which rows are held out: the score of a learner is never taken on rows that it trains on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.multiclass import type_of_target

from latebloomer.errors import SettingError, require

RowNumbers = NDArray[np.intp]


class Fold(NamedTuple):
    """One model's data: rows to train on, and rows held out to be scored on."""

    X: Any
    y: Any
    X_val: Any = None
    y_val: Any = None


def folds_of(X: Any, y: Any, validation: Any, classifier: bool, seed: int) -> list[Fold]:
    """One fold for a share of the rows; those of a splitter."""
    return [
        Fold(take_rows(X, train), take_rows(y, train), take_rows(X, held), take_rows(y, held))
        for train, held in split_rows(X, y, validation, classifier, seed)
    ]


def fold_with(X: Any, y: Any, validation: tuple[Any, ...]) -> Fold:
    """All rows to train on, and a validation set to be scored on."""
    if len(validation) != 2:
        raise SettingError(
            f"validation is a tuple of {len(validation)}, but it must be (X_val, y_val), a share "
            "of the rows or a splitter"
        )
    X_val, y_val = validation
    need_same_length(X_val, y_val, "X_val", "y_val")
    if row_count(y_val) == 0:
        raise SettingError("validation=(X_val, y_val) has no rows, but a score needs some")
    return Fold(X, y, X_val, y_val)


def split_rows(
    X: Any, y: Any, validation: Any, classifier: bool, seed: int
) -> list[tuple[RowNumbers, RowNumbers]]:
    """Numbers of the rows to train on and of those held out, for a share or for a splitter."""
    if isinstance(validation, bool | str | tuple) or validation is None:
        raise SettingError(
            f"validation={validation!r}, but validation must be a share of the rows, such as "
            "0.2, or a splitter of sklearn.model_selection"
        )
    if isinstance(validation, float | np.floating):
        return [_hold_out_share(y, float(validation), classifier, seed)]
    splits = [
        (np.asarray(train), np.asarray(held))
        for train, held in check_cv(validation, y, classifier=classifier).split(X, y)
    ]
    for train, held in splits:
        _need_disjoint(train, held)
    return splits


# --- rows of arrays, data frames, tables, sparse matrices and lists ---


def indexable_data(X: Any, y: Any) -> tuple[Any, Any]:
    """Data whose rows can be picked by number, one target for each row."""
    X, y = indexable(X)[0], indexable(y)[0]
    need_same_length(X, y, "X", "y")
    return X, y


def take_rows(data: Any, rows: RowNumbers) -> Any:
    """Some rows, by number, of data that are indexable.

    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(data, "iloc"):
        return data.take(rows, axis=0)  # always a copy, which iloc is not
    if hasattr(data, "to_pylist"):  # of pyarrow
        return data.take(rows)
    if hasattr(data, "shape"):
        return data[rows]
    return [data[row] for row in rows]


def row_count(data: Any) -> int:
    """The number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") and data.shape else len(data)


def need_same_length(X: Any, y: Any, first: str, second: str) -> None:
    """Raise a `SettingError` unless there is one target for each row."""
    if row_count(X) != row_count(y):
        raise SettingError(
            f"{first} has {row_count(X)} rows and {second} has {row_count(y)}, but each row of "
            f"{first} needs one target (inconsistent numbers of samples)"
        )


# --- a share of the rows ---


def _hold_out_share(
    y: Any, share: float, classifier: bool, seed: int
) -> tuple[RowNumbers, RowNumbers]:
    require(0 < share < 1, "validation", share, "in (0, 1)", "it is the share of rows held out")
    rows = row_count(y)
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows)
    free = order
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        free = _all_but_one_per_class(np.asarray(y), order)
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


def _all_but_one_per_class(y: NDArray[Any], order: RowNumbers) -> RowNumbers:
    """Rows by class, without one of each: every class is trained on, and all are held out alike.

    >>> y = np.array(["a", "b", "a", "c"])
    >>> _all_but_one_per_class(y, np.arange(4))
    array([2])
    """
    _, codes = np.unique(y, return_inverse=True)
    by_class = order[np.argsort(codes[order], kind="stable")]
    changes = np.diff(codes[by_class], prepend=-1) != 0
    return by_class[~changes]


def _need_disjoint(train: RowNumbers, held: RowNumbers) -> None:
    both = np.intersect1d(train, held)
    if both.size:
        raise SettingError(
            f"the splitter gave row {both[0]} both to train on and to be scored on, but a score "
            "must be taken on other rows"
        )
