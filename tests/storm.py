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
from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent / "racing"
sys.path.insert(0, str(HERE))

import test_kill as kill  # noqa: E402
import test_kill_extended as extended  # noqa: E402

from latebloomer import LocalRunner, RaceSearchCV, race, read_verdict, resume  # noqa: E402
from latebloomer.racing.journal import files  # noqa: E402
from latebloomer.session.events import ScoreReported  # noqa: E402

CREATION = ("before the journal", "after the journal")
IN_LEARNERS = ("before the pull", "after the pull", "in a save", "before the rename")
SEARCHING = ("before the commit", "after the commit", *CREATION)
MOST_LIVES = 6  # of one race, before it is left in peace


def arm_all_moments():
    """Arm the moments of the kill test, and those around a new journal."""
    extended.arm_moments()
    write_new = files.write_new

    def writing(*args, **settings):
        kill.reach("before the journal")
        made = write_new(*args, **settings)
        kill.reach("after the journal")
        return made

    files.write_new = writing


def enough(event, view):
    """End a race after 30 pulls: a kill must not lose that."""
    if isinstance(event, ScoreReported) and view.spent == 30:
        view.stop("good enough")


KINDS = [*kill.WAYS, kill.WAYS[0] | {"callbacks": [enough]}]  # they end the same in any life
TIMED = {"seconds": 0.1, "policy": "r-sr", "runner": LocalRunner(checkpoint_every=20)}


def live(path, settings, isolate):
    """Live once: start the race, or resume it."""
    if path.exists() and begun(path):
        return resume(path, kill.LEARNERS, progress=False, runner=LocalRunner(isolate=isolate),
                      callbacks=settings.get("callbacks"))  # fmt: skip
    every = settings["runner"].checkpoint_every
    budget = None if "seconds" in settings else kill.BUDGET
    runner = LocalRunner(isolate=isolate, checkpoint_every=every)
    return race(kill.LEARNERS, budget, journal=path, progress=False, seed=5,
                **settings | {"runner": runner})  # fmt: skip


def begun(path):
    """Whether a journal has anything that a new race would overwrite or refuse."""
    try:
        opened = files.read(path)
    except files.Blank:
        return False
    try:
        return any(True for _ in opened.read())
    finally:
        opened.close()


def lives_of(path, settings, rng, moments, most=MOST_LIVES):
    """Let a race be killed again and again; how often it was."""
    kills = 0
    for _ in range(rng.randint(1, most)):
        isolate = rng.random() < 0.2
        # A learner's own process that dies is that learner's failure, as it should be.
        moment = rng.choice([m for m in moments if not (isolate and m in IN_LEARNERS)])
        often = rng.randrange(kill.BUDGET if "pull" in moment or "commit" in moment else 4)
        kill.doomed = (moment, often)
        code = kill.died(live, path, settings, isolate)
        kill.doomed = None
        if code not in (0, -signal.SIGKILL):
            raise SystemExit(f"a life of {path} ended with code {code} at {moment}, {often}")
        kills += code != 0
    return kills


def judge(path, settings, calm, rng):
    """Resume to the end and compare: pulls lost, counted twice, another verdict."""
    verdict = live(path, settings, isolate=rng.random() < 0.2)
    pulls, summary = calm
    after = kill.told(path)
    keys = [row[1:3] for row in after]
    other = after != pulls or verdict.summary() != summary
    other |= read_verdict(path).summary() != verdict.summary()
    return max(0, len(pulls) - len(set(keys))), len(keys) - len(set(keys)), int(other)


def timed_storm(folder, rng, wanted):
    """Kill time-based races: a counted pull stays, and each learner's pulls have no gap."""
    lost = double = other = kills = number = 0
    while kills < wanted:
        number += 1
        path = folder / f"timed-{number}.db"
        before = []
        for _ in range(rng.randint(1, MOST_LIVES)):
            kills += lives_of(path, TIMED, rng, kill.MOMENTS, most=1)
            now = kill.told(path) if path.exists() and begun(path) else []
            lost += now[: len(before)] != before
            before = now
        verdict = live(path, TIMED, isolate=False)
        after = kill.told(path)
        lost += after[: len(before)] != before
        for arm in {row[1] for row in after}:
            own = [row[2] for row in after if row[1] == arm]
            double += own != list(range(1, len(own) + 1))
        other += read_verdict(path).summary() != verdict.summary()
    return kills, (lost, double, other)


def local_storm(wanted, seed):
    """Kill local races until `wanted` deaths have happened."""
    arm_all_moments()
    rng, total = random.Random(seed), {"kills": 0, "lost": 0, "double": 0, "other verdicts": 0}
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        folder, calm = Path(place), []
        for way, settings in enumerate(KINDS):
            path = folder / f"calm-{way}.db"
            verdict = live(path, settings, isolate=False)
            calm.append((kill.told(path), verdict.summary()))
        number = 0
        while total["kills"] < wanted:
            number += 1
            way = rng.randrange(len(KINDS))
            path = folder / f"{number}.db"
            moments = (*kill.MOMENTS, *CREATION)
            total["kills"] += lives_of(path, KINDS[way], rng, moments)
            add(total, judge(path, KINDS[way], calm[way], rng))
            for file in folder.glob(f"{number}.db*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        kills, found = timed_storm(folder, rng, wanted // 6)
        total["kills"] += kills
        add(total, found)
        kills, found = search_storm(folder, rng, wanted // 12)
        total["kills"] += kills
        add(total, found)
        (folder / "extended").mkdir()
        add(total, extension_storm(folder / "extended", rng, total, wanted // 3))
        return total | {"races": number}


def search(path):
    """Fit a scikit-learn search whose journal is `path`."""
    X, y = load_iris(return_X_y=True)
    models = {"line": SGDClassifier(max_iter=12), "net": MLPClassifier((4,), max_iter=12)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = RaceSearchCV(models, trainings=3, cv=0.3, journal=str(path), random_state=0)
        return found.fit(X, y)


def search_storm(folder, rng, wanted):
    """Kill searches around their commits and fit them again until they end."""
    calm = search(folder / "calm-search.db")
    pulls, summary = kill.told(folder / "calm-search.db"), calm.verdict_.summary()
    kills = lost = double = other = number = 0
    while kills < wanted:
        number += 1
        path = folder / f"search-{number}.db"
        for _ in range(rng.randint(1, 3)):
            kill.doomed = (rng.choice(SEARCHING), rng.randrange(len(pulls)))
            kills += kill.died(search, path) != 0
            kill.doomed = None
        verdict = search(path).verdict_
        after = kill.told(path)
        keys = [row[1:3] for row in after]
        lost += len(pulls) - len(set(keys))
        double += len(keys) - len(set(keys))
        other += after != pulls or verdict.summary() != summary
    return kills, (lost, double, other)


def extension_storm(folder, rng, total, wanted):
    """Races with few learners in memory, extensions and newcomers, killed again and again."""
    calm = [extended.calm(folder, way) for way in range(len(extended.WAYS))]
    lost = double = other = kills = number = 0
    while kills < wanted:
        way, number = rng.randrange(len(extended.WAYS)), number + 1
        path = folder / f"{number}.db"
        for _ in range(rng.randint(1, MOST_LIVES)):
            moment = rng.choice(extended.MOMENTS)
            many = "pull" in moment or "commit" in moment
            kill.doomed = (moment, rng.randrange(extended.LAST if many else 4))
            code = kill.died(extended.live, path, way)
            kill.doomed = None
            if code not in (0, -signal.SIGKILL):
                raise SystemExit(f"a life of {path} ended with code {code} at {moment}")
            kills += code != 0
        verdict = extended.live(path, way)
        pulls, summary = calm[way]
        after = kill.told(path)
        keys = [row[1:3] for row in after]
        lost += max(0, len(pulls) - len(set(keys)))
        double += len(keys) - len(set(keys))
        other += sorted(row[1:] for row in after) != pulls or verdict.summary() != summary
        for file in folder.glob(f"{path.name}*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    total["kills"] += kills
    return lost, double, other


def add(total, found):
    for name, value in zip(("lost", "double", "other verdicts"), found, strict=True):
        total[name] += value


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
