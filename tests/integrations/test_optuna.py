"""`TunerLearner`: one pull is one trial, the score is the best so far."""

import sys

import pytest

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, MissingExtra, SettingError
from latebloomer.integrations.optuna import TunerLearner

try:
    import optuna
except ImportError:
    optuna = None

needs_optuna = pytest.mark.skipif(
    optuna is None, reason="optuna is not installed: pip install 'latebloomer[optuna]'"
)


@pytest.fixture(autouse=True)
def quiet():
    if optuna is not None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)


def hill(trial):
    return -((trial.suggest_float("x", -10, 10) - 2) ** 2)


def bowl(trial):
    return -hill(trial)


@needs_optuna
def test_a_pull_is_a_trial_and_the_score_is_the_best_so_far():
    values = []
    learner = TunerLearner(lambda trial: values.append(hill(trial)) or values[-1], seed=0)
    for n in range(1, 16):
        assert learner.pull() == max(values)
        assert len(values) == len(learner.study.trials) == n
    assert hill(optuna.trial.FixedTrial(learner.model)) == max(values)


@needs_optuna
def test_smaller_is_better_when_minimizing():
    down = TunerLearner(bowl, direction="minimize", seed=0)
    up = TunerLearner(hill, seed=0)
    assert [down.pull() for _ in range(12)] == [up.pull() for _ in range(12)]


@needs_optuna
@pytest.mark.parametrize("sampler", ["TPESampler", "RandomSampler"])
def test_a_resumed_tuner_is_the_same_bit_for_bit(sampler):
    def build():
        return TunerLearner(hill, sampler=getattr(optuna.samplers, sampler)(seed=3))

    check = check_learner(build, pulls=15)
    assert check.saves and check.exact, str(check)


@needs_optuna
def test_a_study_with_a_storage_keeps_its_trials_there(tmp_path):
    journal = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    storage = optuna.storages.JournalStorage(journal)
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    learner = TunerLearner(hill, study=study)
    best = [learner.pull() for _ in range(3)][-1]
    learner.save(tmp_path)
    again = TunerLearner(hill, study=optuna.load_study(study_name="s", storage=storage))
    again.load(tmp_path)
    assert again.pull() >= best and len(again.study.trials) == 4
    lost = TunerLearner(hill, study=optuna.create_study(direction="maximize"))
    lost.load(tmp_path)  # a study in memory, or a storage that is gone
    assert [trial.value for trial in lost.study.trials] == [
        trial.value for trial in again.study.trials[:3]
    ]


@needs_optuna
def test_a_pruned_trial_is_a_pull():
    def objective(trial):
        if trial.number % 2:
            raise optuna.TrialPruned
        return hill(trial)

    learner = TunerLearner(objective, seed=0)
    first = learner.pull()
    assert learner.pull() == first
    assert [trial.state.name for trial in learner.study.trials] == ["COMPLETE", "PRUNED"]


@needs_optuna
def test_a_trial_that_raises_fails_and_says_so():
    def objective(trial):
        raise ZeroDivisionError("by nought")

    learner = TunerLearner(objective)
    with pytest.raises(ZeroDivisionError):
        learner.pull()
    assert learner.study.trials[0].state.name == "FAIL"


@needs_optuna
def test_without_a_complete_trial_there_is_no_score():
    def objective(trial):
        raise optuna.TrialPruned

    with pytest.raises(LearnerError, match="no trial is complete yet"):
        TunerLearner(objective).pull()


@needs_optuna
def test_tuners_race():
    def low(trial):
        return hill(trial) - 5

    tuners = {
        "high": lambda seed: TunerLearner(hill, seed=seed),
        "low": lambda seed: TunerLearner(low, seed=seed),
    }
    verdict = race(tuners, budget=40, journal=None, progress=False)
    assert verdict.name == "high" and abs(verdict.learner.model["x"] - 2) < 3


@needs_optuna
def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="direction='up'"):
        TunerLearner(hill, direction="up")
    with pytest.raises(SettingError, match="objective=3, but objective must be a function"):
        TunerLearner(3)
    with pytest.raises(SettingError, match="study and sampler are both given"):
        TunerLearner(hill, study=optuna.create_study(), sampler=optuna.samplers.RandomSampler())
    two = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(SettingError, match="the study has 2 directions"):
        TunerLearner(hill, study=two)


def test_without_optuna_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"tuners need optuna: .* 'latebloomer\[optuna\]'"):
        TunerLearner(hill)
