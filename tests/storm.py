"""`make storm`: races killed a thousand times at random moments; each must end as if undisturbed.

    python tests/storm.py [--local 900] [--ray 100] [--seed 0]

A local victim is forked for each life of a race and ended by SIGKILL at a random moment: while the
journal is made, before and after pulls and commits, in a save, around a selection. Then it is
resumed, by the local runner or with a process per learner, perhaps killed again, and at last
resumed to its end. Races that end by a callback or by their time, that keep few learners in
memory, that are extended and that new learners join are killed in the same way. On Ray actors,
nodes and drivers die (`racing/ray_faults.py`). Prints one line per storm; code 1 if anything was
lost, counted twice or decided otherwise.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent / "racing"
sys.path.insert(0, str(HERE))

import test_kill as kill  # noqa: E402

from latebloomer import RaceSearchCV, read_verdict  # noqa: E402
from latebloomer.racing.journal import files  # noqa: E402
from latebloomer.session.events import ScoreReported  # noqa: E402

CREATION = ("before the journal", "after the journal")
IN_LEARNERS = ("before the pull", "after the pull", "in a save", "before the rename")
MOST_LIVES = 6  # of one race, before it is left in peace


def arm_all_moments():
    """Arm the moments of the kill tests, and those around a new journal."""
    kill.arm_moments()
    write_new = files.write_new

    def writing(*args, **settings):
        kill.reach("before the journal")
        made = write_new(*args, **settings)
        kill.reach("after the journal")
        return made

    files.write_new = writing


class Kind(NamedTuple):
    """A race that is killed; `live` lives once: it starts the race or resumes it."""

    live: Callable[..., Any]  # from a path, and perhaps `isolate=`
    moments: Sequence[str] = (*kill.MOMENTS, *CREATION)
    pulls: int = 90
    isolates: bool = False
    timed: bool = False  # then no two races are the same


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


PLAIN = [way for way in kill.WAYS if way.more is None]
PLAIN.append(PLAIN[0]._replace(settings={"policy": "r-sr", "callbacks": [enough]}))
EXTENDED = [way for way in kill.WAYS if way.more is not None]
TIMED = kill.Way({"checkpoint_every": 20}, {"seconds": 0.1, "policy": "r-sr"})
STORMS = [  # share of the kills, and which races take turns
    (1.0, [Kind(partial(kill.live, way=way), isolates=True) for way in PLAIN]),
    (1 / 6, [Kind(partial(kill.live, way=TIMED), kill.MOMENTS, isolates=True, timed=True)]),
    (1 / 12, [Kind(search, ("before the commit", "after the commit", *CREATION), 36)]),
    (1 / 3, [Kind(partial(kill.live, way=way), pulls=kill.LAST) for way in EXTENDED]),
]


def storm(kinds, wanted, rng, total):
    """Kill races of these kinds until `wanted` deaths have happened."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        calm = []
        for number, kind in enumerate(kinds):
            path = Path(place) / f"calm-{number}.db"
            summary = kind.live(path).summary()
            calm.append((sorted(row[1:] for row in kill.told(path)), summary))
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
        moment = rng.choice([m for m in kind.moments if not (how and m in IN_LEARNERS)])
        often = rng.randrange(kind.pulls if "pull" in moment or "commit" in moment else 4)
        kill.doomed = (moment, often)
        code = kill.died(partial(kind.live, **how), path)
        kill.doomed = None
        if code not in (0, -signal.SIGKILL):
            raise SystemExit(f"a life of {path} ended with code {code} at {moment}, {often}")
        total["kills"] += code != 0
        now = kill.told(path)
        total["lost"] += now[: len(before)] != before
        before = now
    verdict = kind.live(path)
    after, (pulls, summary) = kill.told(path), calm
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


def local_storm(wanted, seed):
    """All storms on this machine."""
    arm_all_moments()
    rng = random.Random(seed)
    total = {"kills": 0, "races": 0, "lost": 0, "double": 0, "other verdicts": 0}
    for share, kinds in STORMS:
        storm(kinds, share * wanted, rng, total)
    return total


def ray_storm(wanted, seed):
    """The storms on Ray, in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        ran = subprocess.run(
            [sys.executable, HERE / "ray_faults.py", "storm", place, str(wanted), str(seed)],
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
    wanted = parser.parse_args()
    found = {"local": local_storm(wanted.local, wanted.seed)}
    print("local:", json.dumps(found["local"]), flush=True)
    if wanted.ray:
        found["ray"] = ray_storm(wanted.ray, wanted.seed)
        print("ray:", json.dumps(found["ray"]), flush=True)
    bad = ("lost", "double", "other verdicts")
    sys.exit(any(one[name] for one in found.values() for name in bad))


if __name__ == "__main__":
    main()
