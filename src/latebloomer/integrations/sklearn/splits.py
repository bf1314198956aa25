"""Rows: which are held out, and what else `fit` is given with them.

A score is never taken on rows that a model trains on. What goes with rows (weights, groups) is
passed on as in scikit-learn's own searches: with metadata routing switched on each part gets what
it asks for; without it `groups` go to the splitter, and all else to the estimators,
`sample_weight` also to a scorer that takes it.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import GroupShuffleSplit, check_cv
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require

RowNumbers = NDArray[np.intp]
Params = Mapping[str, Any]
Split = tuple[RowNumbers, RowNumbers]  # to train on, and held out
NOTHING: Params = MappingProxyType({})


class Fold(NamedTuple):
    """One model's data: rows to train on, and held-out rows to be scored on."""

    X: Any
    y: Any
    X_val: Any = None
    y_val: Any = None
    fit_params: Params = NOTHING  # what training takes next to the rows: sample_weight
    score_params: Params = NOTHING  # what the scorer takes next to the held-out rows
    train_score_params: Params = NOTHING  # and next to the training rows


def folds_of(
    X: Any, y: Any, splits: list[Split], fit_params: Params, score_params: Params
) -> list[Fold]:
    """Return a fold for each split."""
    rows = row_count(y)
    return [
        Fold(
            take_rows(X, train), take_rows(y, train), take_rows(X, held), take_rows(y, held),
            take_params(fit_params, train, rows), take_params(score_params, held, rows),
            take_params(score_params, train, rows),
        )
        for train, held in splits
    ]  # fmt: skip


def split_rows(
    X: Any, y: Any, given: Any, classifier: bool, seed: int, name: str, params: Params
) -> list[Split]:
    """Return the numbers of the rows to train on and of the held-out rows, for each split.

    `given`, a setting called `name`, is a share, a number of folds, a splitter (to which `params`
    are passed: groups) or the splits themselves.
    """
    if isinstance(given, float | np.floating):
        if params.get("groups") is None:
            return [_hold_out_share(y, float(given), classifier, seed, name)]
        given = GroupShuffleSplit(1, test_size=float(given), random_state=seed)
    pairs = given
    if hasattr(given, "split") or not isinstance(given, Iterable):  # text has a split, too
        try:
            splitter = check_cv(given, y, classifier=classifier)
        except ValueError:
            needed = "a share of the rows, such as 0.2, at least 2 folds, a splitter, or splits"
            raise SettingError(f"{name}={brief(given)}, but {name} must be {needed}") from None
        if getattr(splitter, "random_state", seed) is None:  # a resume must find the same rows
            splitter = copy(splitter)
            splitter.random_state = seed
        pairs = splitter.split(X, y, **params)
    splits = [_checked_split(one, row_count(y), name) for one in pairs]
    require(len(splits) > 0, name, given, "at least one split", "a score needs held-out rows")
    return splits


def _checked_split(split: Any, rows: int, name: str) -> Split:
    """Return two arrays of row numbers, from a pair that a splitter or a user made."""
    try:
        train, held = (np.arange(rows)[np.asarray(list(side))] for side in split)
    except (IndexError, TypeError, ValueError):
        needed = f"two lists of row numbers below {rows}: to train on, and to be scored on"
        said = f"{name} has the split {brief(split)}"
        raise SettingError(f"{said}, but a split must be {needed}") from None
    both = np.intersect1d(train, held)
    if both.size:
        said = f"a split has row {both[0]} both to train on and to be scored on"
        raise SettingError(f"{said}: leave it out of one of them")
    return train, held


def _hold_out_share(y: Any, share: float, classifier: bool, seed: int, name: str) -> Split:
    """Return a stratified split in which every class is trained on, however rare it is."""
    require(0 < share < 1, name, share, "in (0, 1)", "it is the share of held-out rows")
    rows, rng = row_count(y), np.random.default_rng(seed)
    free = rng.permutation(rows)
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
        by_class = free[np.argsort(codes[free], kind="stable")]
        free = by_class[np.diff(codes[by_class], prepend=-1) == 0]  # all but one of each class
    held = min(max(1, round(share * rows)), free.size)
    require(0 < held < rows, name, share, "a share that leaves rows to train and to score on",
            f"with n_samples={rows} give more rows, each class at least twice")  # fmt: skip
    spread = ((np.arange(held) + rng.random()) * free.size / held).astype(np.intp)
    chosen = np.zeros(rows, dtype=bool)
    chosen[free[np.minimum(spread, free.size - 1)]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def seed_from(random_state: Any) -> int:
    """Return a number drawn from a seed, a generator or nothing."""
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
    assert_all_finite(y, input_name="y")
    if is_classifier(search):
        check_classification_targets(y)
    return X, y


def indexable_data(X: Any, y: Any, name: str = "y") -> tuple[Any, Any]:
    """Return data whose rows can be picked by number, with one target for each row."""
    X, y = indexable(X)[0], indexable(y)[0]
    need_one_per_row(name, y, X)
    return X, y


def need_one_per_row(name: str, values: Any, X: Any) -> None:
    """Raise a `SettingError` unless there is a value for each row."""
    count = row_count(values) if hasattr(values, "__len__") else 0
    if count != row_count(X):
        said = f"{name} has {count} values, but there are {row_count(X)} rows"
        raise SettingError(f"{said}: give one for each")


def take_rows(data: Any, rows: RowNumbers) -> Any:
    """Return some rows, by number.

    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(data, "iloc") or hasattr(data, "to_pylist"):  # of pandas and pyarrow
        return data.take(rows)  # always a copy, which iloc is not
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows]


def take_params(params: Params, rows: RowNumbers, count: int) -> dict[str, Any]:
    """Return what goes with some of `count` rows: values with one entry per row are cut to them.

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


def row_count(data: Any) -> int:
    """Return the number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") and data.shape else len(data)


# --- what goes with rows, and which part of a search gets it ---


def routing_enabled() -> bool:
    """Return whether scikit-learn's metadata routing is switched on."""
    return bool(get_config().get("enable_metadata_routing"))


def router_for(owner: Any, estimators: Mapping[str, Any], scorer: Any, cv: Any) -> MetadataRouter:
    """Return what a search passes on, for scikit-learn's metadata routing."""
    fits = MethodMapping().add(caller="fit", callee="fit")
    splits = MethodMapping().add(caller="fit", callee="split")
    scores = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
    router = MetadataRouter(owner=owner).add(scorer=scorer, method_mapping=scores)
    router.add(splitter=cv, method_mapping=splits)
    # By names that no part of the search has: an estimator may be called "scorer".
    routes = {f"estimator {name}": estimator for name, estimator in estimators.items()}
    return router.add(**routes, method_mapping=fits)


def routed_params(
    search: Any, params: Params, raced: Iterable[str], X: Any
) -> tuple[dict[str, Params], Params, Params]:
    """Return what each estimator gets, by name, and what the scorer and the splitter get.

    Settings of one "estimator" all get what that asks for.
    """
    given = {name: value for name, value in params.items() if value is not None}
    for name in {"sample_weight", "groups"} & set(given):
        need_one_per_row(name, given[name], X)
    if routing_enabled():
        routed = process_routing(search, "fit", **given)
        shared = routed.get("estimator estimator")
        fit = {name: routed.get(f"estimator {name}", shared).fit for name in raced}
        return fit, routed.scorer.score, routed.splitter.split
    groups = {name: given.pop(name) for name in ("groups",) if name in given}
    weights = {name: given[name] for name in ("sample_weight",) if name in given}
    return dict.fromkeys(raced, given), weights, groups


def score_params(search: Any, params: Params) -> Params:
    """Return what the scorer gets of the parameters of `score`: all, if nothing is routed."""
    return process_routing(search, "score", **params).scorer.score if routing_enabled() else params
