"""Optuna: a study as a learner, a race as the driver of a study, and our policies as a pruner.

Which algorithm *and* which settings is one question. A pull of a `TunerLearner` is one more trial,
or a slice of time, and its score is the best value found so far, which only rises.

In `race_study` the study's sampler proposes, and our policy picks and drops. Optuna cannot suspend
a trial, so all trials of a race stay RUNNING until they are dropped. A dropped trial ends as
PRUNED with its values so far, and the winner as COMPLETE.
"""

from latebloomer.integrations.optuna.pruner import LatebloomerPruner
from latebloomer.integrations.optuna.study_race import race_study
from latebloomer.integrations.optuna.tuner_learner import TunerLearner, best_configuration

__all__ = ["LatebloomerPruner", "TunerLearner", "best_configuration", "race_study"]
