"""Rows of figures, made up."""

from latebloomer.paper import AS_WRITTEN
from latebloomer.paper.workbench import Row


def row(**changed) -> Row:
    values = dict(
        algorithm="RR", T=100, sigma=0.01, error=0.5, error_low=0.4, error_high=0.6, regret=0.1,
        regret_low=0.1, regret_high=0.1, runs=100, mode=AS_WRITTEN, pulls_best=1.0, best=0,
        recommended=0, pulls_low=1.0, pulls_high=1.0,
    )  # fmt: skip
    return Row(**(values | changed))
