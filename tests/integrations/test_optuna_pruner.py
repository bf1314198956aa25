"""`LatebloomerPruner`: unchanged objectives, pruned at our levels by our estimates."""

import pytest
from hosts import CURVES, value
from libraries import library

from latebloomer.errors import BudgetError, SettingError
from latebloomer.integrations.hosts.optuna_pruner import LatebloomerPruner
from latebloomer.policies.registry import make_policy

optuna = library("optuna")
FULL, TRIALS, BUDGET = 60, 12, 240


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def optimized(order, direction="maximize", policy="auto", broken=None):
    """Run a study whose trials follow the curves in an order, twice each."""
    sign = 1.0 if direction == "maximize" else -1.0

    def objective(trial):
        b, c = CURVES[trial.suggest_categorical("curve", range(len(CURVES)))]
        for step in range(1, FULL + 1):
            now = float("nan") if trial.number == broken and step == 3 else value(b, c, step)
            trial.report(sign * now, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * value(b, c, FULL)

    pruner = LatebloomerPruner(BUDGET, TRIALS, FULL, policy)
    study = optuna.create_study(direction=direction, pruner=pruner)
    for curve in [*order, *order]:
        study.enqueue_trial({"curve": curve})
    study.optimize(objective, n_trials=TRIALS)
    return study


def reports(study):
    return [len(trial.intermediate_values) for trial in study.trials]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_curve_is_found_with_less_training(direction):
    study = optimized([4, 0, 3, 5, 2, 1], direction)
    assert study.best_trial.params["curve"] == 1  # not the leader of the first steps
    assert sum(reports(study)) < TRIALS * FULL / 2
    first, later = reports(study)[:6], reports(study)[6:]
    assert sum(later) < sum(first)  # the first trials meet few others


def test_trials_end_at_levels_of_the_plan():
    study = optimized([1, 0, 2, 3, 4, 5], policy="sh")
    levels = make_policy("sh").plan(TRIALS, BUDGET, FULL).upto.tolist()
    states = {trial.state.name for trial in study.trials}
    assert set(reports(study)) <= {*levels, FULL} and states == {"COMPLETE", "PRUNED"}


@pytest.mark.parametrize(("policy", "rank"), [("auto", 0), ("sh", 1)])
def test_trials_are_ranked_by_the_estimate_of_the_policy(policy, rank):
    late, early = ([value(*CURVES[k], n) for n in range(1, 31)] for k in (1, 4))
    assert late[-1] < early[-1] and value(*CURVES[1], FULL) > value(*CURVES[4], FULL)
    pruner = LatebloomerPruner(BUDGET, TRIALS, FULL, policy)
    assert pruner._rank([late, early], maximize=True) == rank


def test_a_value_that_is_not_a_number_prunes_the_trial():
    assert reports(optimized([1, 0, 2, 3, 4, 5], broken=2))[2] == 3


def test_what_cannot_be_is_said_in_words():
    with pytest.raises(SettingError, match="policy='asha' decides after every pull or sweep"):
        LatebloomerPruner(BUDGET, TRIALS, FULL, "asha")
    with pytest.raises(BudgetError):
        LatebloomerPruner(3, TRIALS, FULL)
