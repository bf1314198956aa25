"""Figures of appendix H, challenging scenario: error in setting B, and its three arms."""

from __future__ import annotations

from latebloomer.paper.arm_curves import arms_of
from latebloomer.paper.experiments import SETTING_B
from latebloomer.paper.figure import Figure
from latebloomer.paper.setting_a import budget_figure

ERRORS = Figure(
    "setting-b",
    "Empirical error in setting B, where increments change abruptly (appendix H)",
    budget_figure(SETTING_B, "error"),
)
ARMS = Figure(
    "setting-b-arms",
    "Expected rewards of the three arms of setting B (appendix H)",
    arms_of(SETTING_B, 500),
)
