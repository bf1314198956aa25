"""`race_study`: the sampler proposes, our policy decides, and the study shows it.

Run as a script it is the victim: it races a study of a file and is ended by SIGKILL.
"""

import os
import re
import runpy
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hosts import BUDGET, CURVES, HORIZON, killed, our_race, same_verdict, value
from libraries import library

from latebloomer.errors import JournalMismatch, MissingExtra, SettingError
from latebloomer.integrations.hosts.optuna_study import race_study

optuna = library("optuna")
HUB = Path(__file__).parents[2] / "contrib" / "optunahub"
ASKED = {"budget": BUDGET, "horizon": HORIZON, "progress": False}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    monkeypatch.chdir(tmp_path)


def objective(trial, sign=1.0):
    b, c = CURVES[trial.suggest_categorical("curve", range(len(CURVES)))]
    for n in range(1, 10_000):
        yield sign * value(b, c, n)


def make_study(file=None, direction="maximize", curves=tuple(range(6))):
    backend = None if file is None else optuna.storages.journal.JournalFileBackend(str(file))
    storage = None if file is None else optuna.storages.JournalStorage(backend)
    name = None if file is None else "s"
    study = optuna.create_study(
        storage=storage, study_name=name, direction=direction, load_if_exists=True
    )
    if not study.trials:
        for curve in curves:
            study.enqueue_trial({"curve": curve})
    return study


def names(study):
    return [f"trial {trial.number}" for trial in study.trials]


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_the_verdict_is_that_of_our_own_race(direction, sign):
    study = make_study(direction=direction)
    verdict = race_study(study, lambda trial: objective(trial, sign), 6, journal=None, **ASKED)
    same_verdict(our_race(names(study), sign=sign), verdict, ordered=True)
    assert verdict.name == "trial 1"
    assert study.best_trial.number == 1 and study.best_value == verdict.score


def test_losers_end_as_pruned_with_their_curves():
    study = make_study()
    seen = {}

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


def test_a_budget_in_full_trainings():
    study = make_study()
    verdict = race_study(study, objective, 6, 2.5, full_steps=HORIZON, progress=False)
    assert verdict.budget == BUDGET and verdict.horizon == HORIZON
    assert verdict.unspent < 6


def test_a_step_function_is_trained_on():
    class Steps:
        def __init__(self, trial):
            self.n, self.scores = 0, objective(trial)

        def pull(self):
            self.n += 1
            return next(self.scores)

    verdict = race_study(make_study(), Steps, 6, **ASKED)
    assert verdict.name == "trial 1" and verdict.learner.n == verdict.trained.pulls


@pytest.mark.parametrize("lost", [False, True])
def test_a_race_that_was_killed_goes_on_to_the_same_verdict(tmp_path, lost):
    killed(__file__, tmp_path / "study.log", 70)
    study = make_study(tmp_path / "study.log")
    assert {trial.state.name for trial in study.trials} == {"RUNNING", "PRUNED"}
    if lost:  # another machine, that has the storage alone
        for file in (tmp_path / "races").iterdir():
            file.unlink()
    verdict = race_study(study, objective, 6, **ASKED)
    same_verdict(our_race(names(study)), verdict, ordered=True)
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
    for file in (tmp_path / "races").iterdir():
        file.unlink()
    rebuilt = race_study(study, fails, 6, **ASKED)
    assert rebuilt.pulls == verdict.pulls and rebuilt.name == verdict.name


def test_trials_that_a_killed_process_had_asked_for_are_used():
    study = make_study()
    trial = study.ask()
    trial.set_user_attr("latebloomer", "latebloomer:race")
    race_study(study, objective, 6, **ASKED)
    assert len(study.trials) == 6


def test_several_races_of_one_study():
    study = make_study(curves=[*range(6), *range(6)])
    first = race_study(study, objective, 6, **ASKED)
    second = race_study(study, objective, 6, name="second", **ASKED)
    assert [arm.name for arm in second.learners] == [f"trial {k}" for k in range(6, 12)]
    assert second.score == first.score


def test_what_cannot_be_is_said_in_words(tmp_path):
    with pytest.raises(SettingError, match="the study has 2 directions"):
        race_study(optuna.create_study(directions=["minimize"] * 2), objective, 6, **ASKED)
    with pytest.raises(SettingError, match="n_configs=1, but n_configs must be at least 2"):
        race_study(make_study(), objective, 1, **ASKED)
    with pytest.raises(SettingError, match="objective=3, but objective must be a function"):
        race_study(make_study(), 3, 6, **ASKED)
    with pytest.raises(SettingError, match="maximize is given, but it follows from the study's"):
        race_study(make_study(), objective, 6, maximize=True, **ASKED)
    with pytest.raises(SettingError, match="runner is given, but trials must run in this process"):
        race_study(make_study(), objective, 6, runner="ray", **ASKED)
    study = make_study()
    race_study(study, objective, 6, journal=tmp_path / "a.db", **ASKED)
    with pytest.raises(SettingError, match="n_configs=5, but 'race' of this study has 6 trials"):
        race_study(study, objective, 5, **ASKED)
    with pytest.raises(SettingError, match="journal=None, but the study has a race"):
        race_study(study, objective, 6, journal=None, **ASKED)
    other = make_study()
    race_study(other, objective, 6, journal=tmp_path / "b.db", **ASKED)
    with pytest.raises(JournalMismatch, match=r"b\.db holds another race: race was '"):
        race_study(study, objective, 6, journal=tmp_path / "b.db", **ASKED)
    with pytest.raises(JournalMismatch, match="budget was 150, is 151"):
        race_study(other, objective, 6, journal=tmp_path / "b.db", **{**ASKED, "budget": 151})


def test_an_ordinary_objective_is_refused_after_its_first_return():
    steps = []

    def ordinary(trial):
        trial.suggest_float("x", 0, 1)
        for step in range(27):
            steps.append(step)
            trial.report(step, step)
        return 0.5

    study = optuna.create_study(direction="maximize")
    with pytest.raises(
        SettingError, match=r"returned 0\.5, but race_study needs .* `yield value`"
    ):
        race_study(study, ordinary, 8, 1, full_steps=27, journal=None, progress=False)
    assert len(steps) == 27 and [trial.state.name for trial in study.trials] == ["FAIL"]


def test_without_optuna_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"studies need optuna: .* 'latebloomer\[optuna\]'"):
        race_study(None, objective)


def test_the_package_for_optunahub_is_complete_and_its_example_runs(monkeypatch, capsys):
    package = HUB / "package" / "pruners" / "latebloomer"
    assert {path.name for path in package.glob("*.*")} == {
        "README.md",
        "__init__.py",
        "example.py",
    }
    assert (package / "LICENSE").read_text().startswith("MIT License")
    _, front, text = (package / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    keys = [line.partition(":")[0] for line in front.splitlines()]
    assert keys == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "tags: [pruner, " in front
    hub = ModuleType("optunahub")  # the registry itself is elsewhere
    hub.load_module = lambda name: SimpleNamespace(
        **runpy.run_path(str(HUB / "package" / name / "__init__.py"))
    )
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    runpy.run_path(str(package / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("Keep trial")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {})


def victim(file, pulls):
    def kill(event, view):
        if view.spent >= int(pulls):
            os.kill(os.getpid(), signal.SIGKILL)

    race_study(make_study(file), objective, 6, callbacks=[kill], **ASKED)


if __name__ == "__main__":
    victim(*sys.argv[1:])
