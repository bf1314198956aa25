"""`results_`: one row per estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from latebloomer.racing.verdict.verdict import Verdict

COLUMNS = ["pulls", "score", "estimate", "lower", "upper", "state", "out_at", "why", "seconds"]


def results_of(
    verdict: Verdict, candidates: dict[str, Any], how: dict[str, str]
) -> dict[str, np.ndarray[Any, Any]]:
    """One row per estimator, in the order given."""
    arms = [verdict[name] for name in candidates]
    table = {"name": np.array(list(candidates), dtype=object)}
    for column in COLUMNS:
        values = [getattr(arm, column) for arm in arms]
        plain = all(isinstance(value, int | float) for value in values)
        table[column] = np.array(values, dtype=None if plain else object)
    table["rank"] = _ranks(verdict, list(candidates))
    table["how"] = np.array([how[name] for name in candidates], dtype=object)
    table["params"] = np.array([e.get_params() for e in candidates.values()], dtype=object)
    return table


def _ranks(verdict: Verdict, names: list[str]) -> np.ndarray[Any, Any]:
    """1 for the winner; then who stayed longer, then who was estimated higher."""

    def merit(name: str) -> tuple[bool, float, float]:
        arm = verdict[name]
        stayed = np.inf if arm.out_at is None else float(arm.out_at)
        return (name == verdict.name, stayed, np.nan_to_num(arm.estimate, nan=-np.inf))

    order = sorted(names, key=merit, reverse=True)
    return np.array([order.index(name) + 1 for name in names])
