"""`RaceScheduler` of Ray Tune: real trials on one machine pause at our levels.

Run as a script it is the victim: a driver that is ended by SIGKILL.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from hosts import CURVES, killed, our_race, same_verdict, value
from libraries import library

from latebloomer import look
from latebloomer.integrations.ray_tune import RaceScheduler

ray = library("ray")
library("tensorboardX", "tune")  # what Ray Tune needs beyond Ray
tune = library("ray.tune", "tune")
NAMES = [f"trial {k}" for k in range(6)]
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
        return {"score": self.config["sign"] * value(b, c, self.n)}

    def reset_config(self, config):
        self.setup(config)
        return True

    def save_checkpoint(self, folder):
        (Path(folder) / "n.json").write_text(json.dumps(self.n))

    def load_checkpoint(self, folder):
        self.n = json.loads((Path(folder) / "n.json").read_text())


def function(config):
    """The same as a function, which reports its own counter."""
    n, checkpoint = 0, tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            n = json.loads((Path(folder) / "n.json").read_text())
    b, c = CURVES[config["curve"]]
    while n < 20:  # shorter than the horizon: it ends by itself
        n += 1
        folder = Path(tune.get_context().get_trial_dir()) / "now"
        folder.mkdir(exist_ok=True)
        (folder / "n.json").write_text(json.dumps(n))
        score = value(b, c, n)
        tune.report({"score": score, "epoch": n}, checkpoint=tune.Checkpoint(folder))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    begin()
    yield
    ray.shutdown()


def begin():
    found = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(found)}},
    )  # fmt: skip


def tuner(folder, trainable=Curve, mode="max", settings=ASKED, callbacks=(), **config):
    scheduler = RaceScheduler(6, folder / "race.db", **settings)
    space = {"curve": tune.grid_search(list(range(6))), "log": str(folder / "log"),
             "sign": 1.0 if mode == "max" else -1.0, **config}  # fmt: skip
    return scheduler, tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(
            scheduler=scheduler, metric="score", mode=mode, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder), name="run", verbose=0, callbacks=list(callbacks)
        ),
    )


def trained(folder):
    return (folder / "log").read_text().splitlines()


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_verdict_is_that_of_our_own_race_and_no_pull_is_overspent(tmp_path, mode):
    scheduler, run = tuner(tmp_path, mode=mode)
    results = run.fit()
    verdict = look(tmp_path / "race.db")
    same_verdict(our_race(NAMES, sign=1.0 if mode == "max" else -1.0, **ASKED), verdict)
    assert scheduler.verdict().summary() == verdict.summary()
    assert len(trained(tmp_path)) == len(set(trained(tmp_path))) == verdict.spent  # each once
    best = scheduler.best_result(results)
    assert f"trial {best.config['curve']}" == verdict.name
    assert best.metrics["training_iteration"] == verdict.delivered.pulls


def test_functions_report_a_counter_of_their_own_and_may_end(tmp_path):
    settings = {**ASKED, "time_attr": "epoch"}
    scheduler, run = tuner(tmp_path, function, settings=settings)
    run.fit()
    verdict = scheduler.verdict()
    assert verdict.over and max(verdict.pulls.values()) == 20 and verdict.spent <= 90
    assert any("ended by itself" in text for text in verdict.warnings)


def test_a_trial_that_fails_is_out(tmp_path):
    scheduler, run = tuner(tmp_path, fails=(4, 5))
    run.fit()
    verdict = scheduler.verdict()
    assert verdict.arms[4].state == "failed" and verdict.pulls["trial 4"] == 4
    assert verdict.over and verdict.unspent < 6


def test_a_killed_driver_goes_on_to_the_same_verdict(tmp_path):
    killed(__file__, tmp_path, 50)
    before = look(tmp_path / "race.db")
    assert not before.over and before.spent >= 49
    tune.Tuner.restore(str(tmp_path / "run"), Curve).fit()
    verdict = look(tmp_path / "race.db")
    same_verdict(our_race(NAMES, **ASKED), verdict)


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
