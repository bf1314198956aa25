"""All figures and tables, in the order of the page."""

from __future__ import annotations

from latebloomer.paper import bounds_figure as bounds
from latebloomer.paper import concavity, imdb, running_time, setting_a, setting_b
from latebloomer.paper import estimator_figure as estimators
from latebloomer.paper import exploration_figure as exploration
from latebloomer.paper import live_imdb as live
from latebloomer.paper import lower_bound_figure as lower_bound
from latebloomer.paper import noise_levels as noise
from latebloomer.paper import random_instances as families
from latebloomer.paper.figure import Figure

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
