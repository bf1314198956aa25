"""Rows: which are held out, and what else `fit` is given with them.

A score is never taken on rows that a model trains on. What goes with rows (weights, groups) is
passed on as in scikit-learn's own searches: with metadata routing switched on each part gets what
it asks for; without it `groups` go to the splitter, and all else to the estimators,
`sample_weight` also to a scorer that takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, need_whole, require

RowNumbers = NDArray[np.intp]
Params = Mapping[str, Any]
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
    X: Any,
    y: Any,
    splits: list[tuple[RowNumbers, RowNumbers]],
    fit_params: Params = NOTHING,
    score_params: Params = NOTHING,
) -> list[Fold]:
    """Return a fold for each split."""
    return [
        Fold(
            take_rows(X, train), take_rows(y, train), take_rows(X, held), take_rows(y, held),
            take_params(fit_params, train, row_count(y)),
            take_params(score_params, held, row_count(y)),
            take_params(score_params, train, row_count(y)),
        )
        for train, held in splits
    ]  # fmt: skip


def fold_with(X: Any, y: Any, validation: tuple[Any, ...], fit_params: Params) -> Fold:
    """Return a fold that trains on all rows and is scored on a validation set."""
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
    params: Params = NOTHING,
) -> list[tuple[RowNumbers, RowNumbers]]:
    """Return the numbers of the rows to train on and of the held-out rows, for each split.

    `given`, a setting called `name`, is a share, a number of folds, a splitter (to which `params`
    are passed: groups) or the splits themselves.
    """
    if isinstance(given, float | np.floating):
        return [_hold_out_share(y, float(given), classifier, seed, name)]
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        why = "an integer is the number of folds; 0.2 is a share of the rows"
        require(bool(given >= 2), name, given, "at least 2", why)
    elif isinstance(given, bool | str | bytes | Mapping) or not (
        hasattr(given, "split") or isinstance(given, Iterable)
    ):
        raise SettingError(
            f"{name}={brief(given)}, but {name} must be a share of the rows, such as 0.2, a "
            "number of folds, a splitter of sklearn.model_selection, or splits"
        )
    elif not hasattr(given, "split"):
        require(len(given := list(given)) > 0, name, given, "at least one split",
                "a score is taken on held-out rows")  # fmt: skip
        return [_checked_split(one, row_count(y), name) for one in given]
    splitter = check_cv(given, y, classifier=classifier)
    splits = [
        (np.asarray(train), np.asarray(held)) for train, held in splitter.split(X, y, **params)
    ]
    for train, held in splits:
        _need_disjoint(train, held)
    return splits


def _checked_split(split: Any, rows: int, name: str) -> tuple[RowNumbers, RowNumbers]:
    """Return two arrays of row numbers, from a pair that a user made."""
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


def _need_disjoint(train: RowNumbers, held: RowNumbers) -> None:
    both = np.intersect1d(train, held)
    if both.size:
        raise SettingError(
            f"a split has row {both[0]} both to train on and to be scored on, but a score "
            "must be taken on other rows"
        )


def _hold_out_share(
    y: Any, share: float, classifier: bool, seed: int, name: str
) -> tuple[RowNumbers, RowNumbers]:
    require(0 < share < 1, name, share, "in (0, 1)", "it is the share of held-out rows")
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
    """Return rows by class without one of each, so that every class is trained on.

    >>> y = np.array(["a", "b", "a", "c"])
    >>> _all_but_one_per_class(y, np.arange(4))
    array([2])
    """
    _, codes = np.unique(y, return_inverse=True)
    by_class = order[np.argsort(codes[order], kind="stable")]
    changes = np.diff(codes[by_class], prepend=-1) != 0
    return by_class[~changes]


# --- rows of arrays, data frames, tables, sparse matrices and lists ---


def checked_data(search: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return data whose rows can be picked by number, and the checked target."""
    if y is None:
        raise SettingError(
            f"{type(search).__name__} requires y to be passed, but the target y is None: fit(X, y)"
        )
    X, y = indexable_data(X, y)
    y = y if hasattr(y, "shape") else np.asarray(y)
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if np.asarray(y).dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    if is_classifier(search):
        check_classification_targets(y)
    if row_count(X) < 2:
        raise SettingError(
            f"X has {row_count(X)} sample, but at least 2 are needed: one to train on, one to "
            "score"
        )
    return X, y


def indexable_data(X: Any, y: Any) -> tuple[Any, Any]:
    """Return data whose rows can be picked by number, with one target for each row."""
    X, y = indexable(X)[0], indexable(y)[0]
    need_same_length(X, y, "X", "y")
    return X, y


def take_rows(data: Any, rows: RowNumbers) -> Any:
    """Return some rows, by number.

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
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
        return False
    return row_count(value) == count


def row_count(data: Any) -> int:
    """Return the number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") and data.shape else len(data)


def need_same_length(X: Any, y: Any, first: str, second: str) -> None:
    """Raise a `SettingError` unless there is one target for each row."""
    if row_count(X) != row_count(y):
        raise SettingError(
            f"{first} has {row_count(X)} rows and {second} has {row_count(y)}, but each row of "
            f"{first} needs one target (inconsistent numbers of samples)"
        )


def need_one_per_row(name: str, values: Any, X: Any) -> None:
    """Raise a `SettingError` unless there is a value for each row."""
    count = row_count(values) if hasattr(values, "__len__") else None
    if count != row_count(X):
        found = "no list of values" if count is None else f"{count} values"
        raise SettingError(
            f"{name} has {found}, but X has {row_count(X)} rows: give one value for each"
        )


# --- settings that are numbers ---


def need_positive(name: str, value: Any) -> int:
    """Return an integer >= 1, or raise a `SettingError`."""
    number = need_whole(name, value)
    require(number >= 1, name, value, "at least 1", "each pull must train on something")
    return number


def batch_rows(batch: Any) -> int | None:
    """Return the rows of a batch, or None for epochs."""
    return None if batch is None else need_positive("batch", batch)


def seed_from(random_state: Any) -> int:
    """Return a number drawn from a seed, a generator or nothing."""
    return int(check_random_state(random_state).randint(2**31 - 1))


# --- what goes with rows, and which part of a search gets it ---


class RoutedParams(NamedTuple):
    """What each part of a search gets of the parameters of `fit`."""

    fit: Mapping[str, Params]  # each estimator, by name
    score: Params
    split: Params


def routing_enabled() -> bool:
    """Return whether scikit-learn's metadata routing is switched on."""
    return bool(get_config().get("enable_metadata_routing"))


def router_for(owner: Any, estimators: Mapping[str, Any], scorer: Any, cv: Any) -> MetadataRouter:
    """Return what a search passes on, for scikit-learn's metadata routing."""
    to_score = MethodMapping().add(caller="score", callee="score")
    router = MetadataRouter(owner=owner)
    for name, estimator in estimators.items():
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router.add(**{_route(name): estimator}, method_mapping=to_fit)
    router.add(scorer=scorer, method_mapping=to_score.add(caller="fit", callee="score"))
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    return router


def _route(name: str) -> str:
    """Return a name that no part of the search has: an estimator may be called "scorer"."""
    return f"estimator {name}"


def routed_params(search: Any, params: Params, routes: Mapping[str, str], X: Any) -> RoutedParams:
    """Return which part gets what; `routes` maps what races to whose requests it follows."""
    given = {name: value for name, value in params.items() if value is not None}
    for name in {"sample_weight", "groups"} & set(given):
        need_one_per_row(name, given[name], X)
    if routing_enabled():
        routed = process_routing(search, "fit", **given)
        fit = {name: routed[_route(given_name)].fit for name, given_name in routes.items()}
        return RoutedParams(fit, routed.scorer.score, routed.splitter.split)
    groups = {name: given.pop(name) for name in ("groups",) if name in given}
    weights = {name: given[name] for name in ("sample_weight",) if name in given}
    return RoutedParams(dict.fromkeys(routes, given), weights, groups)


def score_params(search: Any, params: Params) -> Params:
    """Return what the scorer gets of the parameters of `score`."""
    if not params:
        return {}
    if not routing_enabled():
        raise SettingError(
            f"score is given {', '.join(params)}, but that is passed on only with "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    routed: Params = process_routing(search, "score", **params).scorer.score
    return routed
