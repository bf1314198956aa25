"""Figures of appendix H, challenging scenario: error in setting B, and its three arms."""

from __future__ import annotations

from latebloomer.lab.arms import arms_of
from latebloomer.lab.figure import Figure
from latebloomer.lab.setting_a import budget_figure
from latebloomer.lab.settings import SETTING_B

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
