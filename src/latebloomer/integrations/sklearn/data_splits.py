"""Which rows are held out: the score of a learner is never taken on rows that it trains on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.multiclass import type_of_target

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require

RowNumbers = NDArray[np.intp]


class Fold(NamedTuple):
    """One model's data: rows to train on, and rows held out to be scored on."""

    X: Any
    y: Any
    X_val: Any = None
    y_val: Any = None
    fit_params: Mapping[str, Any] = {}  # what training takes beside the rows: sample_weight
    score_params: Mapping[str, Any] = {}  # and the scorer, for the rows held out


def folds_of(
    X: Any,
    y: Any,
    splits: list[tuple[RowNumbers, RowNumbers]],
    fit_params: Mapping[str, Any] = MappingProxyType({}),
    score_params: Mapping[str, Any] = MappingProxyType({}),
) -> list[Fold]:
    """A fold for each split."""
    return [
        Fold(
            take_rows(X, train), take_rows(y, train), take_rows(X, held), take_rows(y, held),
            take_params(fit_params, train, row_count(y)),
            take_params(score_params, held, row_count(y)),
        )
        for train, held in splits
    ]  # fmt: skip


def fold_with(X: Any, y: Any, validation: tuple[Any, ...], fit_params: Mapping[str, Any]) -> Fold:
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
    return Fold(X, y, X_val, y_val, fit_params)


def split_rows(
    X: Any,
    y: Any,
    given: Any,
    classifier: bool,
    seed: int,
    name: str = "cv",
    params: Mapping[str, Any] = MappingProxyType({}),
) -> list[tuple[RowNumbers, RowNumbers]]:
    """Numbers of the rows to train on and of those held out, by a setting called `name`.

    It is a share, a number of folds, a splitter (which is given `params`: groups) or splits.
    """
    if isinstance(given, float | np.floating):
        return [_hold_out_share(y, float(given), classifier, seed, name)]
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        why = "a whole number is how many folds there are; 0.2 is a share of the rows"
        require(bool(given >= 2), name, given, "at least 2", why)
    elif isinstance(given, bool | str | bytes | Mapping) or not (
        hasattr(given, "split") or isinstance(given, Iterable)
    ):
        raise SettingError(
            f"{name}={brief(given)}, but {name} must be a share of the rows, such as 0.2, a "
            "number of folds, a splitter of sklearn.model_selection, or splits"
        )
    elif not hasattr(given, "split"):
        return _checked_splits(list(given), row_count(y), name)
    splitter = check_cv(given, y, classifier=classifier)
    splits = [
        (np.asarray(train), np.asarray(held)) for train, held in splitter.split(X, y, **params)
    ]
    for train, held in splits:
        _need_disjoint(train, held)
    return splits


def _checked_splits(
    splits: list[Any], rows: int, name: str
) -> list[tuple[RowNumbers, RowNumbers]]:
    require(len(splits) > 0, name, splits, "at least one split",
            "a score is taken on rows held out")  # fmt: skip
    return [_checked_split(one, rows, name) for one in splits]


def _checked_split(split: Any, rows: int, name: str) -> tuple[RowNumbers, RowNumbers]:
    """Two sets of row numbers, from a pair that a user made."""
    pair = [np.asarray(side) for side in split] if isinstance(split, tuple | list) else []
    pair = [np.flatnonzero(side) if side.dtype == bool else side for side in pair]
    if len(pair) != 2 or not all(_are_row_numbers(side, rows) for side in pair):
        raise SettingError(
            f"{name} has the split {brief(split)}, but a split must be two lists of row numbers "
            f"below {rows}: those to train on, and those to be scored on"
        )
    _need_disjoint(pair[0], pair[1])
    return pair[0], pair[1]


def _are_row_numbers(side: NDArray[Any], rows: int) -> bool:
    whole = side.ndim == 1 and side.size > 0 and side.dtype.kind in "iu"
    return bool(whole and side.min() >= 0 and side.max() < rows)


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


def take_params(params: Mapping[str, Any], rows: RowNumbers, count: int) -> dict[str, Any]:
    """What goes with some of `count` rows: values with one entry for each row are cut to them.

    >>> take_params({"sample_weight": [1.0, 2.0, 3.0], "eval_metric": "auc"}, np.array([2]), 3)
    {'sample_weight': [3.0], 'eval_metric': 'auc'}
    """
    return {
        name: take_rows(value, rows) if _is_per_row(value, count) else value
        for name, value in params.items()
    }


def _is_per_row(value: Any, count: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
        return False
    return row_count(value) == count


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
    y: Any, share: float, classifier: bool, seed: int, name: str
) -> tuple[RowNumbers, RowNumbers]:
    require(0 < share < 1, name, share, "in (0, 1)", "it is the share of rows held out")
    rows = row_count(y)
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows)
    free = order
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        free = _all_but_one_per_class(np.asarray(y), order)
    held = min(max(1, round(share * rows)), free.size)
    if held == 0 or held == rows:
        raise SettingError(
            f"y has {rows} samples, but with {name}={share:g} and n_samples={rows} no row is "
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
            f"a split has row {both[0]} both to train on and to be scored on, but a score "
            "must be taken on other rows"
        )
