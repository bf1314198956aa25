"""The tables of a search: `results_` in the terms of a race, and scikit-learn's `cv_results_`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.search_race import SearchRace

Table: TypeAlias = dict[str, Any]
COLUMNS = (
    "pulls", "score", "best_score", "best_at", "estimate", "lower", "upper", "state",
    "departed_at", "why", "seconds",
)  # fmt: skip


def results_table(verdict: Verdict, raced: "SearchRace") -> Table:
    """Return `results_`: one row per estimator, in the user's order."""
    names, arms = list(raced.estimators), [verdict[name] for name in raced.estimators]
    table: Table = {"name": np.array(names, dtype=object), **_columns(arms, COLUMNS)}
    table["rank"] = _ranks(verdict, names)
    folds = f"; {raced.n_splits} folds" * (raced.n_splits > 1)
    table["how"] = np.array([raced.examples[name].how + folds for name in names], dtype=object)
    table["params"] = np.array([raced.estimators[name].get_params() for name in names], object)
    return table | _score_columns(verdict, raced)


def cv_results_table(verdict: Verdict, raced: "SearchRace", params: list[dict[str, Any]]) -> Table:
    """Return `cv_results_`: one row per candidate, in the order in which they were drawn.

    `n_resources` is the number of training steps of a candidate. `dropped_at` is the number of its
    pulls when it was dropped; nan if it was not dropped. `mean_fit_time` includes scoring.
    """
    names, arms = list(raced.estimators), [verdict[name] for name in raced.estimators]
    steps = [arm.pulls if arm.steps is None else arm.steps for arm in arms]
    out = [np.nan if arm.departed_at is None else float(arm.pulls) for arm in arms]
    table: Table = {"mean_fit_time": np.array([arm.seconds for arm in arms]) / raced.n_splits}
    table |= _param_columns(params) | {"params": params} | _score_columns(verdict, raced)
    table[f"rank_test_{raced.metrics.leading}"] = _ranks(verdict, names)
    table |= {"n_resources": np.array(steps), "dropped_at": np.array(out)}
    return table | _columns(arms, ("state", "why"))


def _columns(arms: list[Any], names: Iterable[str]) -> Table:
    return {name: np.array([getattr(arm, name) for arm in arms]) for name in names}


def _param_columns(params: list[dict[str, Any]]) -> Table:
    """Return a masked column for each setting; it is masked for candidates without the setting."""
    columns: Table = {}
    for name in dict.fromkeys(name for settings in params for name in settings):
        kinds = {type(settings[name]) for settings in params if name in settings}
        plain = kinds <= {int, float, np.int64, np.float64} and len(kinds) == 1
        empty = np.empty(len(params), dtype=kinds.pop() if plain else object)
        column = np.ma.MaskedArray(empty, mask=True)
        for row, settings in enumerate(params):
            if name in settings:
                column[row] = settings[name]
        columns[f"param_{name}"] = column
    return columns


def _score_columns(verdict: Verdict, raced: "SearchRace") -> Table:
    """Return the latest scores by fold, their mean and spread, for each metric; nan if missing."""
    names, leading = list(raced.estimators), f"test_{raced.metrics.leading}"
    nothing = [np.nan] * raced.n_splits
    # A learner with one score only reports no details.
    latest = [
        verdict[name].details or {leading: [verdict[name].score] * raced.n_splits}
        for name in names
    ]
    columns: Table = {}
    for metric in dict.fromkeys([leading, *(metric for scores in latest for metric in scores)]):
        folds = np.array([scores.get(metric, nothing) for scores in latest])
        for number, scores in enumerate(folds.T):
            columns[f"split{number}_{metric}"] = scores
        columns[f"mean_{metric}"] = folds.mean(axis=1)
        columns[f"std_{metric}"] = folds.std(axis=1)
    return columns


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """Return ranks: the winner, then by length of stay, then by estimate; failed ones last."""

    def merit(name: str) -> tuple[bool, bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.departed_at is None else float(arm.departed_at)
        estimate = np.nan_to_num(arm.estimate, nan=-np.inf)
        return (name == verdict.name, arm.state != FAILED, stayed, estimate)

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
