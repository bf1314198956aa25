"""Splits of rows: which rows are for training, and which are held out for scoring.

A model is never scored on rows on which it is trained.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GroupShuffleSplit, check_cv
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from latebloomer._util.text import brief, plain_repr
from latebloomer.errors import SettingError, require
from latebloomer.integrations.sklearn.shared_bins import SharedBins
from latebloomer.integrations.sklearn.shared_heads import SharedHeads

RowNumbers = NDArray[np.intp]
Params = Mapping[str, Any]
Split = tuple[RowNumbers, RowNumbers]  # training rows and held-out rows
NOTHING: Params = MappingProxyType({})


class Fold(NamedTuple):
    """The data of one model: its training rows and its held-out rows."""

    X: Any
    y: Any
    X_val: Any = None
    y_val: Any = None
    fit_params: Params = NOTHING  # metadata for training, such as sample_weight
    score_params: Params = NOTHING  # metadata for scoring the held-out rows
    train_score_params: Params = NOTHING  # metadata for scoring the training rows
    heads: SharedHeads | None = None  # fitted heads, shared by all learners on these rows
    bins: SharedBins | None = None  # the same
    held: RowNumbers | None = None  # numbers of the held-out rows, if scores have parts by row
    units: RowNumbers | None = None  # group number of each held-out row


def folds_of(
    X: Any,
    y: Any,
    splits: list[Split],
    fit_params: Params,
    score_params: Params,
    units: RowNumbers | None = None,
) -> list[Fold]:
    """Return a fold for each split; `units` has the group number of each row."""
    rows, once = row_count(y), each_row_once(splits)
    return [
        Fold(
            take_rows(X, train),
            take_rows(y, train),
            take_rows(X, held),
            take_rows(y, held),
            take_params(fit_params, train, rows),
            take_params(score_params, held, rows),
            take_params(score_params, train, rows),
            SharedHeads(),
            SharedBins(),
            held if once else None,
            None if units is None else units[held],
        )
        for train, held in splits
    ]


def each_row_once(splits: list[Split]) -> bool:
    """Return whether no row is held out twice, and the held-out rows are not in order of time.

    Only then can the scores of rows be treated as independent.
    """
    held = np.concatenate([held for _, held in splits])
    forward = len(splits) > 1 and all(train.max() < own.min() for train, own in splits)
    return len(np.unique(held)) == len(held) and not forward


def split_rows(
    X: Any, y: Any, cv: Any, classifier: bool, seed: int, name: str, params: Params
) -> list[Split]:
    """Return, for each split, the numbers of the training rows and of the held-out rows.

    `cv` is a share, a number of folds, a splitter (which gets `params`, such as groups) or the
    splits themselves. `name` is the name of this setting in error messages.
    """
    if isinstance(cv, float | np.floating):
        if params.get("groups") is None:
            return [_hold_out_share(y, float(cv), classifier, seed, name)]
        cv = GroupShuffleSplit(1, test_size=float(cv), random_state=seed)
    pairs = cv
    if hasattr(cv, "split") or not isinstance(cv, Iterable):  # str has a method `split`, too
        try:
            splitter = check_cv(cv, y, classifier=classifier)
        except ValueError:
            needed = "a share of the rows, such as 0.2, at least 2 folds, a splitter, or splits"
            raise SettingError(f"{name}={brief(cv)}, but {name} must be {needed}") from None
        # A resumed race must get the same rows.
        if getattr(splitter, "random_state", seed) is None:
            splitter = copy(splitter)
            splitter.random_state = seed
        pairs = splitter.split(X, y, **params)
    splits = [_checked_split(pair, row_count(y), name) for pair in pairs]
    require(len(splits) > 0, name, cv, "at least one split", "a score needs held-out rows")
    return splits


def _checked_split(split: Any, rows: int, name: str) -> Split:
    """Return a split as two arrays of row numbers, checked."""
    try:
        train, held = (np.arange(rows)[np.asarray(list(side))] for side in split)
    except (IndexError, TypeError, ValueError):
        needed = f"two lists of row numbers below {rows}: to train on, and to be scored on"
        problem = f"{name} has the split {brief(split)}"
        raise SettingError(f"{problem}, but a split must be {needed}") from None
    both = np.intersect1d(train, held)
    if both.size:
        problem = f"a split has row {both[0]} both to train on and to be scored on"
        raise SettingError(f"{problem}: leave it out of one of them")
    return train, held


def _hold_out_share(y: Any, share: float, classifier: bool, seed: int, name: str) -> Split:
    """Return a stratified split with training rows of every class, however rare it is."""
    require(0 < share < 1, name, share, "in (0, 1)", "it is the share of held-out rows")
    rows, rng = row_count(y), np.random.default_rng(seed)
    free = rng.permutation(rows)
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
        by_class = free[np.argsort(codes[free], kind="stable")]
        # All rows but one of each class.
        free = by_class[np.diff(codes[by_class], prepend=-1) == 0]
    held = min(max(1, round(share * rows)), free.size)
    require(
        0 < held < rows,
        name,
        share,
        "a share that leaves rows to train and to score on",
        f"with n_samples={rows} give more rows, each class at least twice",
    )
    spread = ((np.arange(held) + rng.random()) * free.size / held).astype(np.intp)
    chosen = np.zeros(rows, dtype=bool)
    chosen[free[np.minimum(spread, free.size - 1)]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def seed_from(random_state: Any) -> int:
    """Return a random number from a seed, a generator or None."""
    return int(check_random_state(random_state).randint(2**31 - 1))


# --- rows of arrays, data frames, tables, sparse matrices and lists ---


def checked_data(search: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return data whose rows can be picked by number, and the checked target."""
    if y is None:
        name = type(search).__name__
        raise SettingError(f"{name} requires y to be passed, but the target y is None: fit(X, y)")
    X, y = indexable_data(X, y)
    y = y if hasattr(y, "shape") else np.asarray(y)
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    _need_no_gaps(y)
    assert_all_finite(y, input_name="y")
    if is_regressor(search) and np.asarray(y).dtype.kind in "OUS":
        _need_numbers(y)
    if is_classifier(search):
        check_classification_targets(y)
    return X, y


def _need_no_gaps(y: Any) -> None:
    """Raise a `SettingError` if labels that are objects, such as text, have gaps."""
    values = np.asarray(y)
    gaps = [_is_gap(value) for value in values.ravel()] if values.dtype == object else []
    if any(gaps):
        raise SettingError(
            f"y has {sum(gaps)} gaps, the first in row {gaps.index(True)}: leave rows without a "
            "target out"
        )


def _is_gap(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # nan
    except TypeError:  # pandas' NA has no truth value
        return True


def _need_numbers(y: Any) -> None:
    """Raise a `SettingError` unless the targets of regressors are numbers."""
    values = np.asarray(y)
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        first = plain_repr(values.ravel().tolist()[0])
        raise SettingError(
            f"y has {first}, which is not a number, but the estimators are regressors. Race "
            "classifiers, such as those of tabular_models('classification')"
        ) from None


def indexable_data(X: Any, y: Any, name: str = "y") -> tuple[Any, Any]:
    """Return data whose rows can be picked by number, with one target for each row."""
    X, y = indexable(X)[0], indexable(y)[0]
    need_one_per_row(name, y, X)
    return X, y


def need_one_per_row(name: str, values: Any, X: Any) -> None:
    """Raise a `SettingError` unless there is one value for each row."""
    count = row_count(values) if hasattr(values, "__len__") else 0
    if count != row_count(X):
        problem = f"{name} has {count} values, but there are {row_count(X)} rows"
        raise SettingError(f"{problem}: give one for each")


def take_rows(data: Any, rows: RowNumbers) -> Any:
    """Return some rows, by number.

    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(data, "iloc") or hasattr(data, "to_pylist"):  # pandas or pyarrow
        return data.take(rows)  # always a copy, unlike iloc
    if type(data) is np.ndarray and data.flags.c_contiguous:
        return data.take(rows, axis=0)  # the same copy as by an index, in a third of the time
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows]


def take_params(params: Params, rows: RowNumbers, count: int) -> dict[str, Any]:
    """Return parameters for some of `count` rows; values with an entry per row are cut to these.

    >>> take_params({"sample_weight": [1.0, 2.0, 3.0], "eval_metric": "auc"}, np.array([2]), 3)
    {'sample_weight': [3.0], 'eval_metric': 'auc'}
    """
    return {
        name: take_rows(value, rows) if _is_per_row(value, count) else value
        for name, value in params.items()
    }


def _is_per_row(value: Any, count: int) -> bool:
    plain = isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__")
    return not plain and row_count(value) == count


def bytes_of(data: Any) -> float:
    """Return the size of rows in memory; infinite if that is not known.

    >>> bytes_of(np.zeros((100, 3))), bytes_of([[1.0], [2.0]])
    (2400.0, inf)
    """
    if hasattr(data, "memory_usage"):  # a pandas object
        return float(np.sum(data.memory_usage()))
    # The data of a sparse matrix.
    parts = data if hasattr(data, "nbytes") else getattr(data, "data", None)
    return float(getattr(parts, "nbytes", np.inf))


def row_count(data: Any) -> int:
    """Return the number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") and data.shape else len(data)
