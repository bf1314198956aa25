"""The tables of a search: `results_` in the terms of a race, `cv_results_` in scikit-learn's."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED

Table: TypeAlias = dict[str, Any]
COLUMNS = ["pulls", "score", "estimate", "lower", "upper", "state", "left_at", "why", "seconds"]


def results_table(verdict: Verdict, raced: SearchRace) -> Table:
    """Return `results_`: one row per estimator, in the order given."""
    estimators = raced.estimators
    arms = [verdict[name] for name in estimators]
    table: Table = {"name": np.array(list(estimators), dtype=object)}
    for column in COLUMNS:
        values = [getattr(arm, column) for arm in arms]
        plain = all(isinstance(value, int | float) for value in values)
        table[column] = np.array(values, dtype=None if plain else object)
    table["rank"] = _ranks(verdict, list(estimators))
    table["how"] = np.array([raced.examples[name].how for name in estimators], dtype=object)
    table["params"] = np.array([e.get_params() for e in estimators.values()], dtype=object)
    return table | _score_columns(verdict, raced)


def cv_results_table(verdict: Verdict, raced: SearchRace, params: list[dict[str, Any]]) -> Table:
    """Return `cv_results_`: one row per candidate, in the order drawn.

    `n_resources` is the number of steps it was trained, `dropped_at` the level (its own pulls) at
    which it was dropped, nan if it was not. `mean_fit_time` includes scoring.
    """
    names, leading = list(raced.estimators), raced.metrics.leading
    arms = [verdict[name] for name in names]
    steps = [arm.pulls if arm.steps is None else arm.steps for arm in arms]
    out = [np.nan if arm.left_at is None else float(arm.pulls) for arm in arms]
    table: Table = {"mean_fit_time": np.array([arm.seconds for arm in arms]) / raced.n_splits}
    table |= _param_columns(params) | {"params": params}
    table |= _score_columns(verdict, raced)
    table[f"rank_test_{leading}"] = _ranks(verdict, names)
    table |= {"n_resources": np.array(steps), "dropped_at": np.array(out)}
    for column in ("state", "why"):
        table[column] = np.array([getattr(arm, column) for arm in arms], dtype=object)
    return table


def _param_columns(params: list[dict[str, Any]]) -> Table:
    """Return a masked column for each setting: a candidate may not have it."""
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


def _score_columns(verdict: Verdict, raced: SearchRace) -> Table:
    """Return the latest score by fold, their mean and spread for each metric; nan without any."""
    names, leading = list(raced.estimators), f"test_{raced.metrics.leading}"
    noted = [raced.notes[name].scores for name in names]
    nothing = [np.nan] * raced.n_splits
    columns: Table = {}
    for metric in dict.fromkeys([leading, *(metric for one in noted for metric in one)]):
        folds = np.array([one.get(metric, nothing) for one in noted])
        for number, scores in enumerate(folds.T):
            columns[f"split{number}_{metric}"] = scores
        columns[f"mean_{metric}"] = folds.mean(axis=1)
        columns[f"std_{metric}"] = folds.std(axis=1)
    # The score that decided the race, whatever became of the folder in which scores are kept.
    columns[f"mean_{leading}"] = np.array([verdict[name].score for name in names])
    return columns


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """Return 1 for the winner, then by how long each stayed and by estimate; failed ones last."""

    def merit(name: str) -> tuple[bool, bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.left_at is None else float(arm.left_at)
        estimate = np.nan_to_num(arm.estimate, nan=-np.inf)
        return (name == verdict.name, arm.state != FAILED, stayed, estimate)

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
