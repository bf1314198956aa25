"""`make storm`: races killed a thousand times at random moments; each must end as if undisturbed.

    python -m tools.storm [--local 900] [--ray 100] [--seed 0] [--programs]

A local victim is forked for each life of a race and ended by SIGKILL at a random moment: while the
journal is made, before and after pulls and commits, in a save, around a selection, or at any call
that changes a file. In other lives the disk is full for a while, from a random call on. Then it is
resumed, by the local runner or with a process per learner, perhaps killed again, and at last
resumed to its end. Races that end by a callback or by their time, that keep few learners in
memory, that are extended, that new learners join, whose callbacks copy the journal while other
programs query it or remove its -wal or -shm, searches, races of Optuna's trials and programs are
killed in the same way; no program may outlive its race. Of races of programs the guardian or a
program is killed as well, and counted as a helper. On Ray actors, nodes and drivers die
(`tests/helpers/ray_faults.py`). Prints one line per storm; code 1 if anything was lost, counted
twice or decided otherwise.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from latebloomer import (
    Command,
    LocalRunner,
    RaceSearchCV,
    race,
    read_verdict,
    resume,
)
from latebloomer.errors import LatebloomerError
from latebloomer.integrations.optuna import race_study
from latebloomer.programs.guardian import guardian
from latebloomer.racing.journal import files
from latebloomer.session.events import ScoreReported
from tests.helpers import file_faults, kills, ray_faults

CREATION = ("before the journal", "after the journal")
IN_LEARNERS = ("before the pull", "after the pull", "in a save", "before the rename")
FILES = ("at a file call", "a full disk")  # any call of the file layer
FAILING = (1, 3, 30, 10**6)  # calls for which the disk stays full
ENDED = 3  # code of a life that ended with an error of ours
MOST_LIVES = 6  # of one race, before it is left in peace


def arm_all_moments():
    """Arm the moments of the kill tests, and those around a new journal."""
    kills.arm_moments()
    file_faults.install()
    write_new = files.write_new

    def writing(*args, **settings):
        kills.reach("before the journal")
        made = write_new(*args, **settings)
        kills.reach("after the journal")
        return made

    files.write_new = writing


class Kind(NamedTuple):
    """A race that is killed; `live` lives once: it starts the race or resumes it."""

    live: Callable[..., Any]  # from a path, and perhaps `isolate=`
    moments: Sequence[str] = (*kills.MOMENTS, *CREATION)
    pulls: int = 90
    isolates: bool = False
    timed: bool = False  # then no two races are the same
    files: bool = True  # whether every call of the file layer may be its end: Optuna's may not


def enough(event, view):
    """End a race after 30 pulls: a kill must not lose that."""
    if isinstance(event, ScoreReported) and view.spent == 30:
        view.stop("good enough")


def search(path):
    """Fit a scikit-learn search whose journal is `path`."""
    X, y = load_iris(return_X_y=True)
    models = {"line": SGDClassifier(max_iter=12), "net": MLPClassifier((4,), max_iter=12)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = RaceSearchCV(models, trainings=3, cv=0.3, journal=str(path), random_state=0)
        return found.fit(X, y).verdict_


def study(path):
    """Race trials of Optuna; what a kill has left of the study is used again."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(f"{path}.study")
    storage = optuna.storages.JournalStorage(backend)
    made = optuna.create_study(
        storage=storage, study_name="s", direction="maximize", load_if_exists=True
    )
    for slow in (3, 9, 27)[len(made.trials) :]:
        made.enqueue_trial({"slow": slow})

    def objective(trial):
        slow = trial.suggest_int("slow", 1, 30)
        for n in range(1, 1000):
            kills.reach("before the pull")
            yield (0.5 + slow / 100) * n / (n + slow)

    return race_study(
        made, objective, 3, trainings=1.5, full_steps=24, journal=path, progress=False
    )


COUNT = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM events')"


def disturbed(path, **runner):
    """Race while the journal is copied and queried, -shm goes, and -wal."""

    def disturb(event, view):
        if not isinstance(event, ScoreReported):
            return
        if view.spent % 9 == 4:
            for end in ("", "-wal", "-shm", ".lock"):
                if Path(f"{path}{end}").exists():
                    shutil.copy(f"{path}{end}", f"{path}.copy{end}")
        if view.spent % 30 == 20:
            subprocess.run([sys.executable, "-c", COUNT, path], stderr=subprocess.DEVNULL)
        if view.spent == 40 and Path(f"{path}-shm").exists():
            os.unlink(f"{path}-shm")
        if view.spent == 60 and Path(f"{path}-wal").exists():
            os.unlink(f"{path}-wal")

    way = PLAIN[0]._replace(settings={"policy": "r-sr", "callbacks": [disturb]})
    return kills.live(path, way, **runner)


PROGRAM = """
import json, pathlib, random, sys
folder, rise, last = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
state = folder / "state.json"
n = json.loads(state.read_text()) if state.exists() else 0
while n < last:
    n += 1
    print(f"epoch={n} acc={rise * n / (n + 5) + random.Random(n).random() / 100}", flush=True)
    if folder.is_dir() and (n % 3 == 0 or n == last):
        draft = folder / "draft.json"
        draft.write_text(json.dumps(n))
        draft.replace(state)
"""


HELPERS = ("the guardian", "a program")  # processes of a race of programs that are killed, too
doomed_helper: tuple[str, int] | None = None  # which of them, and after which pull


def kill_helper(event, view, path):
    """Kill the guardian or a program after a pull; the race has to continue."""
    if doomed_helper is None or not isinstance(event, ScoreReported):
        return
    which, at = doomed_helper
    if view.spent == at:
        marks = [json.loads(file.read_text()) for file in Path(f"{path}.logs").glob("*.pid")]
        if marks:
            pid, _, _, guard, _ = random.choice(marks)
            with suppress(ProcessLookupError):
                os.kill(guard if which == "the guardian" else pid, signal.SIGKILL)
                with Path(f"{path}.helpers").open("a") as file:
                    file.write("k")


def programs(path):
    """Race programs: two are trained again after a kill, two save themselves, one runs until."""
    warnings.filterwarnings("ignore", "the first .* arrived at once")
    script = Path(path).with_name("program.py")
    if not script.exists():  # the undisturbed race has written it, before the disk is full
        script.write_text(PROGRAM)
    words, endless = [sys.executable, "-S", str(script)], "1000000"
    runs = {f"saves {k}": [*words, "{folder}", str(0.5 + 0.1 * k), endless] for k in range(2)}
    runs |= {f"plain {k}": [*words, f"{path}.none", str(0.4 + 0.1 * k), endless] for k in range(2)}
    runs |= {"until": [*words, "{folder}", "0.45", "{steps}"]}
    learners = {name: Command(run, "acc", step="epoch") for name, run in runs.items()}
    settings = {
        "progress": False,
        "runner": LocalRunner(checkpoint_every=4, retries=20),
        "callbacks": [partial(kill_helper, path=path)],
    }
    if kills.told(path):
        return resume(path, learners, **settings)
    return race(learners, 45, journal=path, policy="r-sr", if_exists="resume", **settings)


def left_of(path):
    """Programs of a race that still run some seconds after it has ended."""
    limit = time.monotonic() + 10
    while True:
        found = subprocess.run(["pgrep", "-f", str(path)], capture_output=True, text=True).stdout
        alive = [pid for pid in map(int, found.split()) if pid != os.getpid()]
        if not alive or time.monotonic() > limit:
            return len(alive)


PLAIN = [way for way in kills.WAYS if way.more is None]
PLAIN.append(PLAIN[0]._replace(settings={"policy": "r-sr", "callbacks": [enough]}))
EXTENDED = [way for way in kills.WAYS if way.more is not None]
TIMED = kills.Way({"checkpoint_every": 20}, {"seconds": 0.1, "policy": "r-sr"})
STORMS = [  # share of the kills, and which races take turns
    (1.0, [Kind(partial(kills.live, way=way), isolates=True) for way in PLAIN]),
    (1 / 6, [Kind(partial(kills.live, way=TIMED), kills.MOMENTS, isolates=True, timed=True)]),
    (1 / 12, [Kind(search, ("before the commit", "after the commit", *CREATION), 36)]),
    (1 / 6, [Kind(disturbed, (*kills.MOMENTS[:8], *CREATION), isolates=True)]),
    (1 / 12, [Kind(study, ("before the pull", "after the commit", *CREATION), 36, files=False)]),
    (1 / 9, [Kind(programs, ("before the commit", "after the commit", *CREATION), 45)]),
    (1 / 3, [Kind(partial(kills.live, way=way), pulls=kills.LAST) for way in EXTENDED]),
]


def storm(kinds, wanted, rng, total):
    """Kill races of these kinds until `wanted` deaths have happened."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        calm = []
        for number, kind in enumerate(kinds):
            path = Path(place) / f"calm-{number}.db"
            file_faults.reset()
            summary, calls = kind.live(path).summary(), file_faults.calls
            calm.append((sorted(row[1:] for row in kills.told(path)), summary, calls))
        until = total["kills"] + wanted
        while total["kills"] < until:
            number = rng.randrange(len(kinds))
            path = Path(place) / f"{total['races']}.db"
            total["races"] += 1
            one_race(kinds[number], path, calm[number], rng, total)
            for file in Path(place).glob(f"{path.name}*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()


def one_race(kind, path, calm, rng, total):
    """Kill one race again and again, resume it to its end and compare."""
    before = []
    for _ in range(rng.randint(1, MOST_LIVES)):
        how = {"isolate": True} if kind.isolates and rng.random() < 0.2 else {}
        # A learner's own process that dies is that learner's failure, as it should be.
        moments = [m for m in kind.moments if not (how and m in IN_LEARNERS)]
        moment = rng.choice(FILES if kind.files and rng.random() < 0.4 else moments)
        if moment in FILES:
            often, failing = rng.randrange(calm[2]), rng.choice(FAILING)
            doomed = partial(file_faults.arm, often, failing * (moment == FILES[1]))
        else:
            often = rng.randrange(kind.pulls if "pull" in moment or "commit" in moment else 4)
            doomed = partial(setattr, kills, "doomed", (moment, often))
        if kind.live is programs:
            doomed = partial(with_helper, doomed, random_helper(rng))
        code = kills.died(one_life, partial(kind.live, **how), path, doomed)
        if code not in (0, -signal.SIGKILL, ENDED):
            raise SystemExit(f"a life of {path} ended with code {code} at {moment}, {often}")
        total["kills"] += code == -signal.SIGKILL
        total["faults"] += moment == FILES[1]
        now = kills.told(path)
        total["lost"] += now[: len(before)] != before
        before = now
    verdict = kind.live(path)
    if kind.live is programs:
        guardian().close()
        total["orphans"] += left_of(path)
        killed = Path(f"{path}.helpers")
        total["helpers"] += len(killed.read_text()) if killed.exists() else 0
    after, (pulls, summary, _) = kills.told(path), calm
    keys = {row[1:3] for row in after}
    total["lost"] += after[: len(before)] != before
    total["double"] += len(after) - len(keys)
    total["other verdicts"] += read_verdict(path).summary() != verdict.summary()
    for arm in {arm for arm, _ in keys}:
        own = [row[2] for row in after if row[1] == arm]
        total["double"] += own != list(range(1, len(own) + 1))
    if not kind.timed:
        total["lost"] += max(0, len(pulls) - len(keys))
        same = sorted(row[1:] for row in after) == pulls and verdict.summary() == summary
        total["other verdicts"] += not same


def random_helper(rng):
    """Draw whether a life loses its guardian or a program as well, and after which pull."""
    return (rng.choice(HELPERS), rng.randrange(45)) if rng.random() < 0.5 else None


def with_helper(doomed, helper):
    """Arm the moment of a life's end, and that of the end of one of its processes."""
    global doomed_helper
    doomed_helper = helper
    doomed()


def one_life(live, path, doomed):
    """Live once, in a child: until death, or to an error that a full disk may cause."""
    doomed()
    try:
        live(path)
    except LatebloomerError:
        os._exit(ENDED)


def local_storm(wanted, seed, only=None):
    """All storms on this machine, or that of races of programs alone."""
    arm_all_moments()
    rng = random.Random(seed)
    total = {"kills": 0, "faults": 0, "races": 0, "lost": 0, "double": 0, "other verdicts": 0,
             "orphans": 0, "helpers": 0}  # fmt: skip
    for share, kinds in STORMS:
        if only is None:
            storm(kinds, share * wanted, rng, total)
        elif any(kind.live is only for kind in kinds):
            storm(kinds, wanted, rng, total)
    return total


def ray_storm(wanted, seed):
    """The storms on Ray, in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        ran = subprocess.run(
            [sys.executable, "-m", ray_faults.__name__, "storm", place, str(wanted), str(seed)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"the storm on Ray ended with code {ran.returncode}")
    found = json.loads(ran.stdout.splitlines()[-1])
    return found | {"other verdicts": found["different"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--local", type=int, default=900)
    parser.add_argument("--ray", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", action="store_true", help="only races of programs")
    wanted = parser.parse_args()
    only = programs if wanted.programs else None
    found = {"local": local_storm(wanted.local, wanted.seed, only)}
    print("local:", json.dumps(found["local"]), flush=True)
    if wanted.ray:
        found["ray"] = ray_storm(wanted.ray, wanted.seed)
        print("ray:", json.dumps(found["ray"]), flush=True)
    bad = ("lost", "double", "other verdicts", "orphans")
    sys.exit(any(one.get(name) for one in found.values() for name in bad))


if __name__ == "__main__":
    main()
