"""Optuna: studies as learners, races inside a study, and unchanged objectives under our pruner.

Run as a script it is the victim: it races a study of a file and is ended by SIGKILL.
"""

import os
import re
import runpy
import shutil
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from latebloomer import race, read_verdict
from latebloomer.errors import BudgetError, JournalMismatch, LearnerError, SettingError
from latebloomer.integrations.optuna import (
    LatebloomerPruner,
    TunerLearner,
    best_configuration,
    race_study,
)
from latebloomer.policies.registry import make_policy
from tests.helpers.hosted_races import (
    BUDGET,
    CURVES,
    HORIZON,
    NAMES,
    killed,
    our_race,
    same_verdict,
    value,
)
from tests.helpers.killed_races import kill_after
from tests.helpers.libraries import is_exact, library, refuses
from tests.helpers.repository import ROOT

optuna = library("optuna")
HUB = ROOT / "contrib" / "optunahub" / "package" / "pruners"
ASKED = {"budget": BUDGET, "horizon": HORIZON, "progress": False}
ORDER, TRIALS = [1, 0, 2, 3, 4, 5], 12  # of the pruner's study
TOTAL = 240  # reports that its plan is made for


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    monkeypatch.chdir(tmp_path)


def hill(trial):
    return -((trial.suggest_float("x", -10, 10) - 2) ** 2)


def test_a_pull_is_a_trial_and_the_score_is_the_best_so_far():
    values = []
    learner = TunerLearner(lambda trial: values.append(hill(trial)) or values[-1], seed=0)
    for n in range(1, 16):
        assert learner.pull() == max(values)
        assert len(values) == len(learner.study.trials) == n
    assert hill(optuna.trial.FixedTrial(learner.model)) == max(values)
    down = TunerLearner(lambda trial: -hill(trial), direction="minimize", seed=0)
    assert [down.pull() for _ in range(15)][-1] == max(values)


def test_a_resumed_tuner_is_the_same_bit_for_bit():
    for sampler in (optuna.samplers.TPESampler, optuna.samplers.RandomSampler):
        is_exact(lambda own=sampler: TunerLearner(hill, sampler=own(seed=3)), pulls=15)


def test_a_study_with_a_storage_keeps_its_trials_there(tmp_path):
    storage = storage_in(tmp_path / "study.log")
    study = optuna.create_study(storage=storage, study_name="s", direction="maximize")
    learner = TunerLearner(hill, study=study)
    best = [learner.pull() for _ in range(3)][-1]
    learner.save(tmp_path)
    again = TunerLearner(hill, study=optuna.load_study(study_name="s", storage=storage))
    again.load(tmp_path)
    assert again.pull() >= best and len(again.study.trials) == 4
    lost = TunerLearner(hill, study=optuna.create_study(direction="maximize"))
    lost.load(tmp_path)  # a study in memory, or a storage that is gone
    values = [trial.value for trial in again.study.trials]
    assert [trial.value for trial in lost.study.trials] == values[:3]


def test_trials_may_be_pruned_or_fail():
    pruned = optuna.TrialPruned()
    ends = iter([pruned, None, pruned, ZeroDivisionError("by nought")])

    def objective(trial):
        if (end := next(ends)) is not None:
            raise end
        return hill(trial)

    learner = TunerLearner(objective, seed=0)
    assert learner.pull() == learner.pull()  # until a trial is complete; then one that is pruned
    refuses(ZeroDivisionError, "by nought", learner.pull)
    states = [trial.state.name for trial in learner.study.trials]
    assert states == ["PRUNED", "COMPLETE", "PRUNED", "FAIL"]


def always_pruned(trial):
    raise optuna.TrialPruned


def test_a_tuner_without_any_complete_trial_says_so():
    learner = TunerLearner(always_pruned, seed=0)
    refuses(ValueError, "No trials are completed yet", learner.pull)
    assert len(learner.study.trials) == 5


def test_the_first_trial_has_the_default_settings_once(tmp_path):
    learner = TunerLearner(hill, seed=0, default={"x": 2.0})
    assert learner.pull() == 0 and learner.model == {"x": 2.0}
    learner.save(tmp_path)
    again = TunerLearner(hill, seed=0, default={"x": 2.0})
    again.load(tmp_path)
    assert [again.pull() for _ in range(2)] == [0, 0]
    assert [trial.params["x"] == 2.0 for trial in again.study.trials] == [True, False, False]


def test_a_pull_of_some_seconds_is_the_trials_that_fit(monkeypatch, tmp_path):
    """Trials take 1, 5, 1, 1, ... s; n pulls of 2 s are those that begin before 2 n s are over."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        "latebloomer.integrations.optuna.tuner_learner.process_time", lambda: clock.now
    )

    def timed(trial):
        clock.now += 5.0 if trial.number == 1 else 1.0
        return hill(trial)

    learner = TunerLearner(timed, seed=0, seconds_per_pull=2)
    counts = []
    for _ in range(5):
        learner.pull()
        counts.append(len(learner.study.trials))
    assert counts == [2, 2, 2, 4, 6]  # after 6, 6, 6, 8 and 10 s
    learner.save(tmp_path)
    again = TunerLearner(timed, seed=0, seconds_per_pull=2)
    again.load(tmp_path)
    again.pull()
    assert len(again.study.trials) == 8


def test_a_trial_that_takes_too_long_ends_as_pruned():
    def stuck_at_times(trial):
        while trial.number == 1:
            pass
        return hill(trial)

    learner = TunerLearner(stuck_at_times, seed=0, timeout=0.05)
    first = learner.pull()
    assert learner.pull() == first and learner.pull() >= first
    states = [trial.state.name for trial in learner.study.trials]
    assert states == ["COMPLETE", "PRUNED", "COMPLETE"]


def test_the_best_configuration_is_that_of_any_learner_whichever_is_kept(tmp_path):

    def rising(trial):
        trial.suggest_float("x", 0, 1)
        return 0.5 + trial.number / 100

    def lucky(trial):
        trial.suggest_categorical("kind", ["a", None])
        return 0.8 if trial.number == 0 else 0.1

    tuners = {"rising": lambda: TunerLearner(rising), "lucky": lambda: TunerLearner(lucky)}
    path = tmp_path / "race.db"
    verdict = race(tuners, 20, journal=path, progress=False)
    best = best_configuration(replace(verdict, name="rising"))
    assert (best.learner, best.score) == ("lucky", 0.8) and set(best.params) == {"kind"}
    assert best == best_configuration(read_verdict(path))
    plain = race({"a": lambda: iter([0.5] * 9), "b": lambda: iter([0.4] * 9)}, 9, journal=None)
    refuses(LearnerError, "No learner of this race is a TunerLearner", best_configuration, plain)


def test_wrong_settings_of_a_tuner_are_named():
    own, random = optuna.create_study(), optuna.samplers.RandomSampler()
    two = optuna.create_study(directions=["minimize", "maximize"])
    refuses(ValueError, ".minimize. or .maximize.", TunerLearner, hill, direction="up")
    refuses(SettingError, "objective=3, but objective must be a function", TunerLearner, 3)
    refuses(SettingError, "study and sampler", TunerLearner, hill, study=own, sampler=random)
    refuses(SettingError, "the study has 2 directions", TunerLearner, hill, study=two)
    refuses(SettingError, "timeout=0, but timeout must be", TunerLearner, hill, timeout=0)
    refuses(SettingError, "seconds_per_pull=-1", TunerLearner, hill, seconds_per_pull=-1)


def objective(trial, sign=1.0):
    b, c = CURVES[trial.suggest_categorical("curve", range(len(CURVES)))]
    for n in range(1, 10_000):
        yield sign * value(b, c, n)


def storage_in(file):
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))


def make_study(file=None, direction="maximize", curves=tuple(range(6))):
    kept = {} if file is None else {"storage": storage_in(file), "study_name": "s"}
    study = optuna.create_study(direction=direction, load_if_exists=True, **kept)
    if not study.trials:
        for curve in curves:
            study.enqueue_trial({"curve": curve})
    return study


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_the_verdict_is_that_of_our_own_race(direction, sign):
    study = make_study(direction=direction)
    verdict = race_study(study, lambda trial: objective(trial, sign), 6, journal=None, **ASKED)
    same_verdict(our_race(NAMES, sign=sign), verdict, ordered=True)
    assert verdict.name == "#1" and "#1 has curve=1." in str(verdict)
    assert [row["param_curve"] for row in verdict.rows()] == list(range(6))
    assert study.best_trial.number == 1 and study.best_value == verdict.score


def test_losers_end_as_pruned_with_their_curves():
    study, seen = make_study(), {}

    def watch(event, view):
        states = [trial.state.name for trial in study.trials]
        seen.setdefault(states.count("PRUNED"), view.spent)

    verdict = race_study(study, objective, 6, callbacks=[watch], **ASKED)
    for trial, arm in zip(study.trials, verdict.learners, strict=True):
        won = arm.name == verdict.name
        assert trial.state.name == ("COMPLETE" if won else "PRUNED")
        curve = verdict.curve(arm.name)
        assert trial.intermediate_values == dict(enumerate(curve, 1))
        assert trial.value == curve[-1]
    assert seen[1] < BUDGET  # as they are dropped, not at the end
    assert sum(len(trial.intermediate_values) for trial in study.trials) == verdict.spent


def test_a_step_function_is_trained_on():
    class Steps:
        def __init__(self, trial):
            self.n, self.scores = 0, objective(trial)

        def pull(self):
            self.n += 1
            return next(self.scores)

    verdict = race_study(make_study(), Steps, 6, 2.5, full_steps=HORIZON, progress=False)
    assert verdict.budget == BUDGET and verdict.horizon == HORIZON and verdict.unspent < 6
    assert verdict.name == "#1" and verdict.learner.n == verdict.trained.pulls


@pytest.mark.parametrize("lost", [False, True])
def test_a_race_that_was_killed_goes_on_to_the_same_verdict(tmp_path, lost):
    killed(__file__, tmp_path / "study.log", 70)
    study = make_study(tmp_path / "study.log")
    assert {trial.state.name for trial in study.trials} == {"RUNNING", "PRUNED"}
    if lost:  # another machine, that has the storage alone
        shutil.rmtree(tmp_path / "races")
    verdict = race_study(study, objective, 6, **ASKED)
    same_verdict(our_race(NAMES), verdict, ordered=True)
    told = [len(trial.intermediate_values) for trial in study.trials]
    assert told == [arm.pulls for arm in verdict.learners] and study.best_trial.number == 1
    again = race_study(study, objective, 6, **ASKED)  # a race that is over says the same again
    assert again.summary() == verdict.summary() and len(study.trials) == 6


def test_a_trial_that_fails_is_out_and_the_others_have_its_pulls(tmp_path):
    def fails(trial):
        for n, score in enumerate(objective(trial), 1):
            if trial.number == 4 and n == 6:
                raise ZeroDivisionError("by nought")
            yield score

    study = make_study(tmp_path / "study.log")
    verdict = race_study(study, fails, 6, **ASKED)
    assert study.trials[4].state.name == "FAIL" and verdict.unspent == 0
    assert verdict.learners[4].state == "failed" and verdict.spent == BUDGET
    shutil.rmtree(tmp_path / "races")
    rebuilt = race_study(study, fails, 6, **ASKED)
    assert rebuilt.pulls == verdict.pulls and rebuilt.name == verdict.name


def test_a_study_may_have_several_races_and_trials_that_a_killed_process_had_asked_for():
    study = make_study(curves=[*range(6), *range(6)])
    study.ask().set_user_attr("latebloomer", "latebloomer:race")
    first = race_study(study, objective, 6, **ASKED)
    second = race_study(study, objective, 6, name="second", **ASKED)
    assert [arm.name for arm in second.learners] == [f"#{k}" for k in range(6, 12)]
    assert second.score == first.score


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("enqueued", "call"), [(6, "ask"), (0, "add_trial"), (2, "add_trial")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_trials_are_asked_for_leaves_none_behind(tmp_path, enqueued, call, when):
    def asked(study):
        return race_study(study, objective, 6, journal=tmp_path / "race.db", **ASKED)

    def study_there():
        return make_study(tmp_path / "study.log", curves=range(enqueued))

    child = os.fork()
    if not child:
        real, calls = getattr(optuna.Study, call), []

        def killed(*words, **settings):
            calls.append(call)
            last = len(calls) == 3
            if last and when == "before":
                os._exit(9)
            made = real(*words, **settings)
            if last:
                os._exit(9)
            return made

        setattr(optuna.Study, call, killed)
        asked(study_there())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9
    verdict, study = asked(study_there()), study_there()
    assert [trial.number for trial in study.trials] == list(range(6))
    assert sorted(trial.state.name for trial in study.trials) == ["COMPLETE", *["PRUNED"] * 5]
    assert [arm.name for arm in verdict.learners] == [f"#{k}" for k in range(6)]


def test_a_race_that_was_stopped_before_its_first_pull_can_be_stopped_again(tmp_path):
    def stop_at(pulls):
        def stop(event, view):
            if view.spent == pulls:
                raise KeyboardInterrupt

        return [stop]

    asked = ASKED | {"journal": tmp_path / "race.db"}
    for pulls in (0, 7):
        with pytest.raises(KeyboardInterrupt):
            study = make_study(tmp_path / "study.log")
            race_study(study, objective, 6, callbacks=stop_at(pulls), **asked)
    verdict = race_study(make_study(tmp_path / "study.log"), objective, 6, **asked)
    assert verdict.spent == BUDGET


def test_what_cannot_race_is_said_in_words():
    for given, said in [
        ({"n_configs": 1}, "n_configs=1, but n_configs must be at least 2"),
        ({"objective": 3}, "objective=3, but objective must be a function"),
        ({"runner": "ray"}, "runner is given, but trials must run in this process"),
        ({"objective": lambda trial: None}, "returned None, but race_study .* `yield value`"),
        ({"objective": lambda trial: 0.5}, r"returned 0\.5, but race_study .* `yield value`"),
    ]:
        study, asked = make_study(), {"objective": objective, "n_configs": 6} | ASKED | given
        refuses(SettingError, said, race_study, study, **asked)
        done = [trial.state.name for trial in study.trials if trial.state.is_finished()]
        assert done == (["FAIL"] if "returned" in said else [])


@pytest.mark.parametrize("number", [0, 2])
def test_an_objective_that_raises_fails_in_that_trial_alone(number):
    def builds(trial):
        if trial.number == number:
            raise ValueError("no memory")
        return objective(trial)

    study = make_study()
    verdict = race_study(study, builds, 6, journal=None, **ASKED)
    assert study.trials[number].state.name == "FAIL" and "no memory" in str(verdict.warnings)
    assert {trial.state.name for trial in study.trials} == {"FAIL", "PRUNED", "COMPLETE"}


def test_a_race_goes_on_only_as_it_was(tmp_path):
    a, b = {"journal": tmp_path / "a.db"} | ASKED, {"journal": tmp_path / "b.db"} | ASKED
    study, other = make_study(), make_study()
    race_study(study, objective, 6, **a)
    race_study(other, objective, 6, **b)
    for error, said, one, n, given in [
        (SettingError, "n_configs=5, but this race of the study has 6", study, 5, a),
        (SettingError, "journal=None, but the study's race", study, 6, a | {"journal": None}),
        (JournalMismatch, r"b\.db holds another race: race was '", study, 6, b),
        (JournalMismatch, "budget was 150, is 151", other, 6, b | {"budget": 151}),
    ]:
        refuses(error, said, race_study, one, objective, n, **given)


def test_the_package_for_optunahub_is_complete_and_its_example_runs(monkeypatch, capsys):
    package = HUB / "latebloomer"
    files = {path.name for path in package.iterdir()} - {"__pycache__"}
    assert files == {"README.md", "__init__.py", "example.py", "LICENSE"}
    _, front, text = (package / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    keys = [line.partition(":")[0] for line in front.splitlines()]
    assert keys == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "tags: [pruner, " in front
    hub = ModuleType("optunahub")  # the registry itself is elsewhere
    made = runpy.run_path(str(package / "__init__.py"))
    hub.load_module = lambda name: SimpleNamespace(**made)
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    runpy.run_path(str(package / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("Keep #")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {})


def optimized(order=ORDER, direction="maximize", policy="auto", broken=None):
    """Run a study whose trials follow the curves in an order, twice each."""
    sign = 1.0 if direction == "maximize" else -1.0

    def objective(trial):
        b, c = CURVES[trial.suggest_categorical("curve", range(len(CURVES)))]
        for step in range(1, HORIZON + 1):
            now = float("nan") if trial.number == broken and step == 3 else value(b, c, step)
            trial.report(sign * now, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * value(b, c, HORIZON)

    pruner = LatebloomerPruner(TOTAL, TRIALS, HORIZON, policy)
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
    assert sum(reports(study)) < TRIALS * HORIZON / 2
    first, later = reports(study)[:6], reports(study)[6:]
    assert sum(later) < sum(first)  # the first trials meet few others


def test_trials_end_at_levels_of_the_plan():
    study = optimized(policy="sh", broken=2)
    levels = make_policy("sh").plan(TRIALS, TOTAL, HORIZON).upto.tolist()
    states = {trial.state.name for trial in study.trials}
    assert states == {"COMPLETE", "PRUNED"} and reports(study)[2] == 3  # not a number there
    assert set(reports(study)) <= {*levels, HORIZON, 3}


def test_trials_are_ranked_by_the_estimate_of_the_policy():
    late, early = ([value(*CURVES[k], n) for n in range(1, 31)] for k in (1, 4))
    assert late[-1] < early[-1] and value(*CURVES[1], HORIZON) > value(*CURVES[4], HORIZON)
    for policy, rank in (("auto", 0), ("sh", 1)):
        pruner = LatebloomerPruner(TOTAL, TRIALS, HORIZON, policy)
        assert pruner._rank([late, early], maximize=True) == rank
    said, asked = "policy='asha' decides after every pull or sweep", (TRIALS, HORIZON)
    refuses(SettingError, said, LatebloomerPruner, TOTAL, *asked, "asha")
    refuses(BudgetError, "budget=3", LatebloomerPruner, 3, *asked)
    refuses(SettingError, "n_trials=1, but n_trials must be at", LatebloomerPruner, TOTAL, 1, 27)
    refuses(SettingError, "full_steps=None, but", LatebloomerPruner, TOTAL, TRIALS, None)


if __name__ == "__main__":
    file, pulls = sys.argv[1:]
    race_study(make_study(file), objective, 6, callbacks=[kill_after(pulls)], **ASKED)
