"""Optuna: a study as a learner, a race inside a study, and this library's policies as a pruner.

A race of `TunerLearner` objects selects an algorithm *and* its settings together. A pull of one is
one more trial, or a slice of time, and its score is the best value so far, which never falls.

In `race_study` the study's sampler proposes configurations, and the policy picks and drops them.
Optuna cannot suspend a trial, so all trials of a race stay RUNNING until they are dropped. A
dropped trial ends as PRUNED with its values so far, and the winner as COMPLETE.
"""

from latebloomer.integrations.optuna.pruner import LatebloomerPruner
from latebloomer.integrations.optuna.study_race import race_study
from latebloomer.integrations.optuna.tuner_learner import TunerLearner, best_configuration

__all__ = ["LatebloomerPruner", "TunerLearner", "best_configuration", "race_study"]
