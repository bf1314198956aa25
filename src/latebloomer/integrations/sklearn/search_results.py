"""The tables of a search: `results_` in the words of a race, `cv_results_` in scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from latebloomer.integrations.sklearn.search_learners import SearchLearners
from latebloomer.integrations.sklearn.search_scoring import ONE
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED

Table = dict[str, Any]
COLUMNS = ["pulls", "score", "estimate", "lower", "upper", "state", "left_at", "why", "seconds"]


def results_table(verdict: Verdict, learners: SearchLearners) -> Table:
    """`results_`: one row per estimator, in the order given."""
    estimators = learners.estimators
    arms = [verdict[name] for name in estimators]
    table: Table = {"name": np.array(list(estimators), dtype=object)}
    for column in COLUMNS:
        values = [getattr(arm, column) for arm in arms]
        plain = all(isinstance(value, int | float) for value in values)
        table[column] = np.array(values, dtype=None if plain else object)
    table["rank"] = _ranks(verdict, list(estimators))
    how = learners.pulls_in_words
    table["how"] = np.array([how[name] for name in estimators], dtype=object)
    table["params"] = np.array([e.get_params() for e in estimators.values()], dtype=object)
    if learners.metrics.leading != ONE:
        table |= _score_columns(verdict, learners)
    return table


def cv_results_table(
    verdict: Verdict, learners: SearchLearners, params: list[dict[str, Any]]
) -> Table:
    """`cv_results_`: one row per candidate, in the order drawn.

    `n_resources` are the steps it was trained, `dropped_at` the level (in pulls of its own) at
    which it was dropped, nan for those that were not. `mean_fit_time` is of training and scoring.
    """
    names, leading = list(learners.estimators), learners.metrics.leading
    arms = [verdict[name] for name in names]
    steps = [arm.pulls if arm.steps is None else arm.steps for arm in arms]
    out = [np.nan if arm.left_at is None else float(arm.pulls) for arm in arms]
    table: Table = {"mean_fit_time": np.array([arm.seconds for arm in arms]) / learners.n_splits}
    table |= _param_columns(params) | {"params": params}
    table |= _score_columns(verdict, learners)
    table[f"rank_test_{leading}"] = _ranks(verdict, names)
    table |= {"n_resources": np.array(steps), "dropped_at": np.array(out)}
    for column in ("state", "why"):
        table[column] = np.array([getattr(arm, column) for arm in arms], dtype=object)
    return table


def _param_columns(params: list[dict[str, Any]]) -> Table:
    """A masked column for each setting: a candidate may not have it."""
    columns: Table = {}
    for name in dict.fromkeys(name for one in params for name in one):
        rows = {row: one[name] for row, one in enumerate(params) if name in one}
        kinds = {type(value) for value in rows.values()}
        plain = kinds <= {int, float, np.int64, np.float64} and len(kinds) == 1
        empty = np.empty(len(params), dtype=kinds.pop() if plain else object)
        column = np.ma.MaskedArray(empty, mask=True)
        for row, value in rows.items():
            column[row] = value
        columns[f"param_{name}"] = column
    return columns


def _score_columns(verdict: Verdict, learners: SearchLearners) -> Table:
    """Of each metric the newest score by fold, their mean and their spread; nan without any."""
    names, leading = list(learners.estimators), learners.metrics.leading
    noted = [learners.scores.of(name) for name in names]
    columns: Table = {}
    for metric in dict.fromkeys([leading, *(metric for one in noted for metric in one)]):
        nothing = [np.nan] * learners.n_splits
        folds = np.array([one.get(metric, nothing) for one in noted])
        for number, scores in enumerate(folds.T):
            columns[f"split{number}_test_{metric}"] = scores
        columns[f"mean_test_{metric}"] = folds.mean(axis=1)
        columns[f"std_test_{metric}"] = folds.std(axis=1)
    # What the race went by, whatever became of the folder in which scores are noted.
    columns[f"mean_test_{leading}"] = np.array([verdict[name].score for name in names])
    return columns


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """1 for the winner; then who stayed longer, then who was estimated higher; last who failed."""

    def merit(name: str) -> tuple[bool, bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.left_at is None else float(arm.left_at)
        estimate = np.nan_to_num(arm.estimate, nan=-np.inf)
        return (name == verdict.name, arm.state != FAILED, stayed, estimate)

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
