"""What a `kill -9` costs in latebloomer, Optuna, Ray Tune and scikit-learn.

    python -m measurements.kill_survival        runs all (half an hour): docs/kill-survival.csv
    python -m measurements.kill_survival Ray    runs those whose name contains the word

Eight trainings of at most 32 steps, whose scores are formulas. Each library runs them in its own
process, which SIGKILL ends in the middle of a training step, after a quarter, a half and three
quarters of the steps of an undisturbed run; then it is started again as its documentation says.
Every step that is trained leaves a line in a log. A library that can save a training does so after
each step. `make test-integrations` makes an environment that has all of them.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import latebloomer

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "kill-survival.csv"
# The second is best at the end and not at the start; the fifth leads early.
CURVES = ((8, 0.7), (12, 1.0), (10, 0.88), (10, 0.7), (1, 0.78), (20, 0.5), (5, 0.6), (15, 0.9))
LENGTH = 32
MOMENTS = (0.25, 0.5, 0.75)
SECONDS = float(os.environ.get("LATEBLOOMER_STEP_SECONDS", 0.1))  # duration of a step
COLUMNS = ("player", "version", "date", "killed_at", "steps", "again", "never", "more", "pick")


class Training:
    """One of the trainings: counts its steps, and logs each before its score is known."""

    def __init__(self, folder: Path, arm: int) -> None:
        self.folder, self.arm, self.n = folder, arm, 0
        self.file = folder / f"checkpoint-{arm}.json"

    def step(self) -> float:
        self.n += 1
        time.sleep(SECONDS)
        with (self.folder / "log").open("a") as log:
            log.write(f"{self.arm} {self.n}\n")
        die_if_it_is_time(self.folder)
        slow, best = CURVES[self.arm]
        return best * self.n / (self.n + slow)

    def save(self) -> None:
        """Write a checkpoint; the old file stays until the new one is complete."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.n))
        new.replace(self.file)

    def load(self) -> None:
        if self.file.exists():
            self.n = json.loads(self.file.read_text())


def die_if_it_is_time(folder: Path) -> None:
    """Send SIGKILL to the driving process and to this one after the given number of steps."""
    moment = folder / "kill-after"
    if not moment.exists() or len(log_of(folder)) < int(moment.read_text()):
        return
    for process in (int((folder / "driver").read_text()), os.getpid()):
        os.kill(process, signal.SIGKILL)


def log_of(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


# --- latebloomer ---


class Learner:
    """A training as a learner of a race."""

    def __init__(self, folder: Path, arm: int) -> None:
        self.training = Training(folder, arm)

    def pull(self) -> float:
        return self.training.step()

    def save(self, folder: Path) -> None:
        (folder / "n.json").write_text(json.dumps(self.training.n))

    def load(self, folder: Path) -> None:
        self.training.n = json.loads((folder / "n.json").read_text())


def our_race(folder: Path, checkpoint_every: int | None = 1) -> int:
    from latebloomer import LocalRunner, race

    learners = {str(arm): lambda arm=arm: Learner(folder, arm) for arm in range(len(CURVES))}
    verdict = race(
        learners, budget=3 * LENGTH, horizon=LENGTH, journal=folder / "race.db", progress=False,
        if_exists="resume", runner=LocalRunner(checkpoint_every=checkpoint_every),
    )  # fmt: skip
    return int(verdict.name)


def our_race_by_default(folder: Path) -> int:
    return our_race(folder, checkpoint_every=None)


# --- Optuna ---


def optuna_in_memory(folder: Path) -> int:
    return optuna_study(folder, None, keeps=False)


def optuna_sqlite(folder: Path) -> int:
    """Use a storage and `load_if_exists`, as in the tutorial on saving and resuming."""
    return optuna_study(folder, f"sqlite:///{folder}/study.db", keeps=False)


def optuna_heartbeat(folder: Path) -> int:
    """Use heartbeats, retries and checkpoints, as in the tutorial on stale trials."""
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback

    time.sleep(3 if (folder / "study.db").exists() else 0)  # until the trial counts as stale
    return optuna_study(
        folder,
        RDBStorage(
            f"sqlite:///{folder}/study.db", heartbeat_interval=1,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
        ),
        keeps=True,
    )  # fmt: skip


def optuna_study(folder: Path, storage: Any, keeps: bool) -> int:
    """Run one trial for each arm, from a queue in the storage."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=storage, study_name="arms", load_if_exists=True, direction="maximize",
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1),
    )  # fmt: skip
    if not study.trials:
        for arm in range(len(CURVES)):
            study.enqueue_trial({"arm": arm})

    def objective(trial: Any) -> float:
        training = Training(folder, trial.suggest_int("arm", 0, len(CURVES) - 1))
        if keeps:
            training.load()
        score = 0.0
        while training.n < LENGTH:
            score = training.step()
            if keeps:
                training.save()
            trial.report(score, training.n)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    waiting = optuna.trial.TrialState.WAITING
    optuna.storages.fail_stale_trials(study)
    while study.get_trials(states=[waiting]):
        study.optimize(objective, n_trials=1)
    return int(study.best_trial.params["arm"])


# --- Ray Tune ---


def ray_tune(folder: Path) -> int:
    """Use `Tuner.restore` if there is a run to restore; report a checkpoint with every result."""
    import ray
    from ray import tune

    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}},
    )  # fmt: skip
    run = folder / "run"
    if tune.Tuner.can_restore(str(run)):
        tuner = tune.Tuner.restore(str(run), ray_training)
    else:
        tuner = tune.Tuner(
            ray_training,
            param_space={
                "arm": tune.grid_search(list(range(len(CURVES)))),
                "folder": str(folder),
            },
            tune_config=tune.TuneConfig(
                metric="score", mode="max", scheduler=tune.schedulers.ASHAScheduler(max_t=LENGTH)
            ),
            run_config=tune.RunConfig(storage_path=str(folder), name="run", verbose=0),
        )
    best = tuner.fit().get_best_result(scope="last")
    ray.shutdown()
    return int(best.config["arm"])


def ray_training(config: dict[str, Any]) -> None:
    from ray import tune

    training = Training(Path(config["folder"]), config["arm"])
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            training.n = json.loads((Path(folder) / "n.json").read_text())
    while training.n < LENGTH:
        score = training.step()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "n.json").write_text(json.dumps(training.n))
            tune.report(
                {"score": score, "training_iteration": training.n},
                checkpoint=tune.Checkpoint(folder),
            )


# --- scikit-learn ---


def sklearn_halving(folder: Path) -> int:
    from sklearn.base import BaseEstimator
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV, PredefinedSplit

    class Model(BaseEstimator):
        def __init__(self, arm: int = 0, n: int = 1) -> None:
            self.arm, self.n = arm, n

        def fit(self, X: Any, y: Any) -> Any:
            training = Training(folder, self.arm)
            self.score_ = [training.step() for _ in range(self.n)][-1]
            return self

        def score(self, X: Any, y: Any) -> float:
            return self.score_

    search = HalvingGridSearchCV(
        Model(), {"arm": list(range(len(CURVES)))}, resource="n", max_resources=LENGTH,
        refit=False, return_train_score=False, cv=PredefinedSplit([-1, 0]),
    )  # fmt: skip
    return int(search.fit([[0], [0]], [0, 1]).best_params_["arm"])


PLAYERS: dict[str, tuple[Callable[[Path], int], str]] = {
    "latebloomer, a checkpoint each step": (our_race, "latebloomer"),
    "latebloomer, defaults": (our_race_by_default, "latebloomer"),
    "Optuna, SQLite, heartbeat, checkpoints": (optuna_heartbeat, "optuna"),
    "Optuna, SQLite": (optuna_sqlite, "optuna"),
    "Optuna, in memory": (optuna_in_memory, "optuna"),
    "Ray Tune, a checkpoint each step": (ray_tune, "ray"),
    "scikit-learn": (sklearn_halving, "scikit-learn"),
}


# --- runs that are killed, and their continuation ---


def live(player: str, folder: Path, kill_after: int | None = None) -> int | None:
    """Run in a separate process; return the pick, or None if it was killed."""
    moment = folder / "kill-after"
    moment.unlink(missing_ok=True)
    if kill_after is not None:
        moment.write_text(str(kill_after))
    ran = subprocess.run(
        [sys.executable, "-m", "measurements.kill_survival", "live", player, str(folder)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": python_path()}, capture_output=True, text=True,
    )  # fmt: skip
    if kill_after is not None:
        assert ran.returncode == -signal.SIGKILL, ran.stderr[-3000:]
        return None
    assert ran.returncode == 0, ran.stderr[-3000:]
    return int(ran.stdout.split()[-1])


def python_path() -> str:
    known = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(filter(None, known))


def measured(player: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each moment: steps trained again, never trained, and trained in addition."""
    with tempfile.TemporaryDirectory() as folder:
        pick = live(player, Path(folder))
        calm = Counter(log_of(Path(folder)))
    for moment in MOMENTS:
        with tempfile.TemporaryDirectory() as folder:
            live(player, Path(folder), round(moment * calm.total()))
            first = Counter(log_of(Path(folder)))
            after = live(player, Path(folder))
            second = Counter(log_of(Path(folder))) - first
        both = first | second  # what is trained again counts once
        yield dict(zip(COLUMNS, (
            player, version_of(PLAYERS[player][1]), date.today().isoformat(), moment, calm.total(),
            (first & second).total(), (calm - both).total(), (both - calm).total(),
            "same" if after == pick else "another",
        ), strict=True))  # fmt: skip


def version_of(library: str) -> str:
    return latebloomer.__version__ if library == "latebloomer" else version(library)


# --- the file ---


def recorded() -> list[dict[str, str]]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, Any]]) -> None:
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def measure(word: str) -> None:
    """Measure those methods again; the others keep their rows of the file."""
    known = recorded() if FILE.exists() else []
    rows = []
    for player in PLAYERS:
        if word in player:
            rows += list(measured(player))
            print(*rows[-len(MOMENTS) :], sep="\n", flush=True)
        else:
            rows += [row for row in known if row["player"] == player]
    write(rows)


def main() -> None:
    if sys.argv[1:2] == ["live"]:
        player, folder = sys.argv[2:]
        (Path(folder) / "driver").write_text(str(os.getpid()))
        print(PLAYERS[player][0](Path(folder)))
    else:
        measure(sys.argv[1] if sys.argv[1:] else "")


if __name__ == "__main__":
    main()
