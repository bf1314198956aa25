"""All figures and tables, in the order of the page."""

from __future__ import annotations

from latebloomer.lab import (
    bounds,
    concavity,
    estimators,
    exploration,
    families,
    imdb,
    live,
    lower_bound,
    noise,
    running_time,
    setting_a,
    setting_b,
)
from latebloomer.lab.figure import Figure

FIGURES: tuple[Figure, ...] = (
    estimators.FIGURE,
    setting_a.ARMS,
    setting_a.ERRORS,
    setting_a.REGRET,
    exploration.FIGURE,
    setting_b.ARMS,
    setting_b.ERRORS,
    noise.FIGURE,
    imdb.ARMS,
    imdb.TABLE,
    live.FIGURE,
    running_time.FIGURE,
    bounds.FIGURE,
    lower_bound.FIGURE,
    concavity.FIGURE,
    families.FIGURE,
)
