"""`RaceScheduler` of Syne Tune: its simulator and its local back end pause and resume for us.

Run as a script with a configuration it is a trial; with a folder, the victim.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from latebloomer import read_verdict
from latebloomer.errors import SettingError
from latebloomer.integrations.syne_tune import RaceCallback, RaceScheduler
from tests.helpers.hosted_races import (
    BUDGET,
    CURVES,
    HORIZON,
    NAMES,
    killed,
    our_race,
    same_verdict,
    trained,
    value,
)
from tests.helpers.libraries import library, refuses

syne_tune = library("syne_tune", "syne-tune")
ASKED = {"budget": BUDGET, "horizon": HORIZON}
SHORT = {"budget": 60, "horizon": 20, "policy": "sh"}  # few phases: a process for each start


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path / "syne"))
    monkeypatch.setenv("HOST_LOG", str(tmp_path / "log"))


def space():
    from syne_tune.config_space import choice

    return {"curve": choice(list(range(6))), "kind": choice([0, 1])}


def make(folder, settings):
    points = {"points_to_evaluate": [{"curve": k, "kind": 0} for k in range(6)]}
    own = {"metric": "score", "do_minimize": False, "searcher_kwargs": points}
    return RaceScheduler({**space(), "epochs": 1000}, 6, folder / "race.db", **own, **settings)


def simulated(scheduler, workers, stop=None, callbacks=()):
    import pandas as pd
    from syne_tune import Tuner
    from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
    from syne_tune.blackbox_repository import UserBlackboxBackend
    from syne_tune.blackbox_repository.blackbox_tabular import BlackboxTabular
    from syne_tune.config_space import randint

    table = np.array([[[[value(b, c, n), n] for n in range(1, 101)]] for b, c in CURVES])
    table = BlackboxTabular(
        hyperparameters=pd.DataFrame({"curve": range(6), "kind": 0}),
        configuration_space=space(),
        fidelity_space={"epoch": randint(1, 100)},
        objectives_evaluations=table, objectives_names=["score", "elapsed"],
    )  # fmt: skip
    backend = UserBlackboxBackend(table, elapsed_time_attr="elapsed", max_resource_attr="epochs")
    tuner = Tuner(
        backend, scheduler, stop or scheduler.is_over, n_workers=workers, sleep_time=0,
        callbacks=[SimulatorCallback(), *callbacks], save_tuner=False, tuner_name="simulated",
    )  # fmt: skip
    tuner.run()
    return tuner


@pytest.mark.parametrize("workers", [1, 4])
def test_in_the_simulator_the_verdict_is_that_of_our_own_race(tmp_path, workers):
    scheduler = make(tmp_path, ASKED)
    tuner = simulated(scheduler, workers, callbacks=[RaceCallback()] if workers > 1 else [])
    same_verdict(our_race(NAMES, **ASKED), scheduler.verdict())
    assert scheduler.verdict().name == "#1" and scheduler.best_config()["curve"] == 1
    seen = tuner.tuning_status.overall_metric_statistics.count
    assert seen == scheduler.verdict().spent <= BUDGET  # each pull once


def test_a_tuner_that_stopped_early_goes_on_by_the_journal(tmp_path):
    first = make(tmp_path, ASKED)
    simulated(first, 1, stop=lambda status: first.race.session.spent >= 70)
    first.race.close()
    assert not read_verdict(tmp_path / "race.db").over
    second = make(tmp_path, ASKED)
    simulated(second, 1)
    same_verdict(our_race(NAMES, **ASKED), second.verdict())
    assert not second.verdict().warnings


def test_several_workers_without_the_callback_are_refused_in_words(tmp_path):
    said = r"Tuner\(n_workers=1\), or callbacks=\[RaceCallback"
    refuses(SettingError, said, simulated, make(tmp_path, ASKED), 4)


def local(scheduler, workers=2, kill=None):
    from syne_tune import Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.results_callback import StoreResultsCallback

    tuner = Tuner(
        LocalBackend(__file__), scheduler, scheduler.is_over, n_workers=workers, sleep_time=0.05,
        callbacks=[RaceCallback(), StoreResultsCallback(), *([kill] if kill else [])],
        tuner_name="local", suffix_tuner_name=False, save_tuner=True,
    )  # fmt: skip
    tuner.run()


def test_real_scripts_pause_and_resume_and_no_pull_is_overspent(tmp_path):
    scheduler = make(tmp_path, SHORT)
    local(scheduler)
    verdict = scheduler.verdict()
    same_verdict(our_race(NAMES, **SHORT), verdict)
    assert len(trained(tmp_path)) == len(set(trained(tmp_path))) == verdict.spent
    assert all(row.seconds > 0 for row in verdict.learners)  # Syne Tune's own times


def test_a_killed_tuner_goes_on_to_the_same_verdict(tmp_path):
    killed(__file__, tmp_path, 35)
    before = read_verdict(tmp_path / "race.db")
    assert not before.over and before.spent >= 35
    scheduler = make(tmp_path, SHORT)
    local(scheduler)
    verdict = scheduler.verdict()
    same_verdict(our_race(NAMES, **SHORT), verdict)
    assert len(set(trained(tmp_path))) == verdict.spent  # from their checkpoints


def trial(words):
    from syne_tune import Reporter

    given = dict(zip(words[::2], words[1::2], strict=True))
    curve, saved = int(given["--curve"]), Path(given["--st_checkpoint_dir"], "n")
    n, report = int(saved.read_text()) if saved.exists() else 0, Reporter()
    saved.parent.mkdir(parents=True, exist_ok=True)
    while n < int(given["--epochs"]):
        n += 1
        with open(os.environ["HOST_LOG"], "a") as log:
            log.write(f"{curve} {n}\n")
        saved.write_text(str(n))
        report(epoch=n, score=value(*CURVES[curve], n))


def victim(folder, pulls):
    from syne_tune.tuner_callback import TunerCallback

    class Kill(TunerCallback):
        def on_trial_result(self, trial, status, result, decision):
            if scheduler.race.session.spent >= int(pulls):
                os.kill(os.getpid(), signal.SIGKILL)

    scheduler = make(Path(folder), SHORT)
    local(scheduler, workers=1, kill=Kill())  # the script that reported ends long before another


if __name__ == "__main__":
    trial(sys.argv[1:]) if sys.argv[1].startswith("--") else victim(*sys.argv[1:])
