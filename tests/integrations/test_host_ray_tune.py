"""`RaceScheduler` of Ray Tune: real trials on one machine pause at our levels.

Run as a script it is the victim: a driver that is ended by SIGKILL.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from latebloomer import read_verdict
from latebloomer.integrations.ray_tune import RaceScheduler
from tests.helpers.hosted_races import (
    CURVES,
    NAMES,
    killed,
    our_race,
    same_verdict,
    trained,
    value,
)
from tests.helpers.libraries import library

ray = library("ray")
library("tensorboardX", "tune")  # what Ray Tune needs beyond Ray
tune = library("ray.tune", "tune")
ASKED = {"budget": 90, "horizon": 30, "policy": "sh"}  # few phases: a pause takes a second


class Curve(tune.Trainable):
    """A deterministic trial that counts what it trains."""

    def setup(self, config):
        self.n = 0

    def step(self):
        self.n += 1
        with open(self.config["log"], "a") as log:
            log.write(f"{self.config['curve']} {self.n}\n")
        b, c = CURVES[self.config["curve"]]
        if self.config.get("fails") == (self.config["curve"], self.n):
            raise ZeroDivisionError("by nought")
        score = self.config["sign"] * value(b, c, self.n)
        return {"score": score, "epoch": self.n, "done": self.n == self.config.get("ends")}

    def reset_config(self, config):
        self.setup(config)
        return True

    def save_checkpoint(self, folder):
        Path(folder, "n").write_text(str(self.n))

    def load_checkpoint(self, folder):
        self.n = int(Path(folder, "n").read_text())


@pytest.fixture(scope="module", autouse=True)
def cluster():
    begin()
    yield
    ray.shutdown()


def begin():
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}},
    )  # fmt: skip


def tuner(folder, mode="max", settings=ASKED, callbacks=(), curves=range(6), **config):
    scheduler = RaceScheduler(6, folder / "race.db", **settings)
    space = {"curve": tune.grid_search([*curves]), "log": str(folder / "log"),
             "sign": 1.0 if mode == "max" else -1.0, **config}  # fmt: skip
    own = {"scheduler": scheduler, "metric": "score", "mode": mode, "reuse_actors": True}
    run = {"storage_path": str(folder), "name": "run", "verbose": 0, "callbacks": [*callbacks]}
    return scheduler, tune.Tuner(
        Curve, param_space=space, tune_config=tune.TuneConfig(**own),
        run_config=tune.RunConfig(**run),
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_verdict_is_that_of_our_own_race_and_no_pull_is_overspent(tmp_path, mode):
    scheduler, run = tuner(tmp_path, mode=mode, curves=[*range(6), 0])  # one too many
    results = run.fit()
    verdict = read_verdict(tmp_path / "race.db")
    same_verdict(our_race(NAMES, sign=1.0 if mode == "max" else -1.0, **ASKED), verdict)
    assert scheduler.verdict().summary() == verdict.summary()
    assert len(trained(tmp_path)) == len(set(trained(tmp_path))) == verdict.spent  # each once
    best = scheduler.best_result(results)
    assert f"#{best.config['curve']}" == verdict.name
    assert best.metrics["training_iteration"] == verdict.trained.pulls


def test_trials_may_fail_end_be_too_few_and_have_a_counter_of_their_own(tmp_path):
    own = {**ASKED, "time_attr": "epoch"}
    scheduler, run = tuner(tmp_path, settings=own, curves=range(5), fails=(4, 5), ends=20)
    run.fit()
    verdict = scheduler.verdict()
    assert verdict.learners[4].state == "failed" and verdict.pulls["#4"] == 4
    assert verdict.over and max(verdict.pulls.values()) == 20 and verdict.spent <= 90
    assert len(trained(tmp_path)) == verdict.spent + 1  # and the step that failed
    assert any("finished" in one.why for one in verdict.learners)
    assert any("#5 failed: it had no trial" in text for text in verdict.warnings)


def test_a_killed_driver_goes_on_to_the_same_verdict(tmp_path):
    killed(__file__, tmp_path, 50)
    before = read_verdict(tmp_path / "race.db")
    assert not before.over and before.spent >= 49
    tune.Tuner.restore(str(tmp_path / "run"), Curve).fit()
    verdict = read_verdict(tmp_path / "race.db")
    same_verdict(our_race(NAMES, **ASKED), verdict)


class Controller:
    """What a scheduler sees of Ray Tune, without Ray: one trial at a time."""

    def __init__(self, scheduler, configs):
        self.scheduler, self.trials, self.search_alg = scheduler, [], self
        scheduler.set_search_properties("score", "max")
        for k, config in configs.items():
            self.trials.append(Trial(f"id{k}", config))
            scheduler.on_trial_add(self, self.trials[-1])

    def is_finished(self):
        return True

    def get_trials(self):
        return self.trials

    def stop_trial(self, trial):
        trial.status = trial.TERMINATED
        self.scheduler.on_trial_remove(self, trial)

    def run(self, results=1000):
        choose = self.scheduler.choose_trial_to_run  # asked again and again, as Ray does
        while results and (trial := choose(self) or choose(self)):
            said = "CONTINUE"
            while said == "CONTINUE" and results:
                trial.n, results = trial.n + 1, results - 1
                score = value(*CURVES[trial.config["curve"]], trial.n)
                result = {"score": score, "training_iteration": trial.n}
                said = self.scheduler.on_trial_result(self, trial, result)
            if said == "STOP":
                self.scheduler.on_trial_complete(self, trial, result)
            trial.status = trial.PAUSED if said == "PAUSE" else trial.TERMINATED


class Trial:
    """What a scheduler sees of a trial."""

    PENDING, PAUSED, TERMINATED, ERROR = "PENDING", "PAUSED", "TERMINATED", "ERROR"

    def __init__(self, name, config):
        self.trial_id, self.config, self.n, self.status = name, config, 0, self.PENDING

    def init_local_path(self):
        self.path = self.trial_id

    def set_status(self, status):
        assert self.path  # Ray shows a trial's folder
        self.status = status

    def is_finished(self):
        return self.status in (self.TERMINATED, self.ERROR)


def test_trials_that_ray_lost_and_made_with_other_settings_are_others(tmp_path):
    scheduler = RaceScheduler(6, tmp_path / "race.db", **ASKED)
    Controller(scheduler, {k: {"curve": k} for k in range(6)}).run(results=50)
    scheduler.race.close()
    again = RaceScheduler(6, tmp_path / "race.db", **ASKED)
    configs = {k: {"curve": k} for k in range(5)} | {5: {"curve": 5, "lr": 0.1}}
    Controller(again, configs).run()
    verdict = again.verdict()
    assert verdict.over and verdict.learners[5].state in ("failed", "dropped")
    assert any("beyond n_trials did not race" in text for text in verdict.warnings)


class Kill(tune.Callback):
    """Ends the driver after so many results; restored with it, it does so no more."""

    def __init__(self, pulls):
        self.left, self.pid = pulls, os.getpid()

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.left -= 1
        if not self.left and self.pid == os.getpid():
            os.kill(self.pid, signal.SIGKILL)


if __name__ == "__main__":
    begin()
    tuner(Path(sys.argv[1]), callbacks=[Kill(int(sys.argv[2]))])[1].fit()
