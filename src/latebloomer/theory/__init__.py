"""The paper's bounds and budgets as plain functions, and certificates.

In references to `[Mussi24]`, theorems, corollaries and lemmas of the main text are numbered in
order of appearance, and names in parentheses, as in Eq. (aStar), are the labels in the paper's
source. The guarantees of each algorithm are in a module: `rising_ucbe`, `rising_sr` and
`round_robin_window`. Limits for all algorithms are in `lower_bounds`.
"""

from latebloomer.core.phases import log_bar, phase_lengths
from latebloomer.core.statistics import pooled_noise
from latebloomer.theory import lower_bounds
from latebloomer.theory import rising_sr_bounds as rising_sr
from latebloomer.theory import rising_ucbe_bounds as rising_ucbe
from latebloomer.theory import round_robin_window_bounds as round_robin_window
from latebloomer.theory.certificate import Certificate, certificate
from latebloomer.theory.complexity import (
    Violation,
    best_arm,
    best_arms,
    gaps,
    h1,
    h2,
    increments,
    largest_beta,
    smallest_c,
    violations,
)
from latebloomer.theory.guarantee_lines import Guarantee
from latebloomer.theory.guarantees import RATES, Guarantees, guarantees
from latebloomer.theory.rising_sr_bounds import PhaseCondition
from latebloomer.theory.rising_ucbe_bounds import (
    NoExploration,
    exploration_limit,
    exploration_limit_polynomial,
    theory_exploration,
    y_bound,
)
from latebloomer.theory.window_estimates import (
    optimistic_bias,
    optimistic_weight,
    optimistic_width,
    pessimistic_bias,
    pessimistic_weight,
    pessimistic_width,
)

__all__ = ["lower_bounds", "rising_sr", "rising_ucbe", "round_robin_window"]
__all__ += ["Violation", "best_arm", "best_arms", "gaps", "h1", "h2", "increments"]
__all__ += ["largest_beta", "smallest_c", "violations"]
__all__ += ["NoExploration", "exploration_limit", "exploration_limit_polynomial"]
__all__ += ["PhaseCondition", "log_bar", "phase_lengths", "theory_exploration", "y_bound"]
__all__ += ["optimistic_bias", "optimistic_weight", "optimistic_width"]
__all__ += ["pessimistic_bias", "pessimistic_weight", "pessimistic_width"]
__all__ += ["Certificate", "certificate", "pooled_noise"]
__all__ += ["RATES", "Guarantee", "Guarantees", "guarantees"]
