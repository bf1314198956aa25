"""Races on a Ray cluster of several nodes, with processes that die at chosen moments.

Run as a script it is the victim: `python ray_faults.py STORM FOLDER DEATHS` prints what happened
as one JSON object; the storms are actors, nodes (each lost one is replaced), leaving (nodes that
are not) and drivers. A death is a file in the folder: the process that comes to the
moment in its name takes the file away and ends itself by SIGKILL, so each happens once, wherever
Ray has put the process.
"""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from latebloomer.racing import race, resume
from latebloomer.racing.journal.journal import FileJournal
from latebloomer.racing.learner import seed_of
from latebloomer.session.events import Told

BUDGET = 120
LEARNERS = {"late": (1.0, 20.0), "early": (0.6, 1.0), "middle": (0.8, 6.0), "weak": (0.3, 3.0)}
POLICY = "r-sr"


class Saved:
    """Deterministic, with state that only a checkpoint carries; each pull is a chance to die."""

    def __init__(self, name, folder, seed):
        self.name, self.folder, self.n, self.rng = name, Path(folder), 0, random.Random(seed)

    def pull(self):
        self.reach(f"before-{self.n + 1}")
        self.n += 1
        best, slow = LEARNERS[self.name]
        score = best * self.n / (self.n + slow) + self.rng.gauss(0, 0.01)
        self.reach(f"after-{self.n}")
        return score

    def save(self, folder):
        (folder / "n.json").write_text(json.dumps(self.n))
        self.reach(f"saving-{self.n}")
        (folder / "rng.json").write_text(json.dumps(self.rng.getstate()))

    def load(self, folder):
        self.n = json.loads((folder / "n.json").read_text())
        self.reach(f"loading-{self.n}")
        version, state, gauss = json.loads((folder / "rng.json").read_text())
        self.rng.setstate((version, tuple(state), gauss))

    def reach(self, moment):
        reach(self.folder, f"{self.name}-{moment}")


def reach(folder, moment):
    """Die if this is the moment; `node` takes all processes of the machine along."""
    for whom in ("process", "node"):
        file = folder / f"{whom}-{moment}"
        try:
            file.rename(folder / f"done-{file.name}")
        except FileNotFoundError:
            continue
        raylet, self = os.getppid(), os.getpid()
        for process in [raylet, *children(raylet), self] if whom == "node" else [self]:
            os.kill(process, signal.SIGKILL)


def children(parent):
    """The other processes that a raylet has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, fields = stat.read_text().partition(" (")
        except OSError:  # it has ended meanwhile
            continue
        if int(fields.rpartition(")")[2].split()[1]) == parent and int(pid) != os.getpid():
            yield int(pid)


def learners(folder):
    return {name: _factory(name, str(folder)) for name in LEARNERS}


def _factory(name, folder):
    return lambda: Saved(name, folder, seed_of(0, name))


def doom(folder, whom, moments, count, seed):
    """Put `count` deaths at random moments into the folder."""
    for moment in random.Random(seed).sample(moments, count):
        (folder / f"{whom}-{moment}").touch()


def pulls_made(path):
    """The pulls of the undisturbed race, by name: the moments there are."""
    import sqlite3

    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT name, n FROM pulls JOIN arms USING (arm)").fetchall()


def deaths(folder):
    return len(list(Path(folder).glob("done-*")))


def settings(folder, runner):
    return {"policy": POLICY, "journal": folder / "race.db", "runner": runner, "progress": False,
            "checkpoint_every": 7}  # fmt: skip


# --- the three storms ---


def cluster_of(nodes):
    from ray.cluster_utils import Cluster

    quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 4,
             "health_check_timeout_ms": 1000, "health_check_initial_delay_ms": 0}  # fmt: skip
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": quick}
    )
    for _ in range(nodes):
        cluster.add_node(num_cpus=1)
    return cluster


def storm(folder, whom, count, seed):
    """Actors, or whole nodes, die while the driver goes on; `whom` "gone": none comes instead."""
    from latebloomer.racing.runners.ray import RayRunner

    made = pulls_made(folder / "calm.db")
    moments = [f"{name}-{when}-{n}" for name, n in made for when in ("before", "after")]
    moments += [f"{name}-saving-{n}" for name, n in made if n % 7 == 0]
    doom(folder, "process" if whom == "process" else "node", moments, count, seed)
    cluster = cluster_of(count + 1 if whom == "gone" else 3)
    lost = RayRunner._lost

    def replaced(self, call):
        if whom == "node":  # machines come and go: one for each that has left
            for node in [n for n in cluster.worker_nodes if not n.any_processes_alive()]:
                cluster.remove_node(node, allow_graceful=False)
                cluster.add_node(num_cpus=1)
        return lost(self, call)

    RayRunner._lost = replaced
    runner = RayRunner(address=cluster.address)
    verdict = race(learners(folder), BUDGET, **settings(folder, runner))
    cluster.shutdown()
    return verdict.summary()


def drivers(folder, count, seed):
    """The driver dies, again and again; the cluster stays."""
    cluster = cluster_of(2)
    moments = [f"{when}-{t}" for t in range(1, BUDGET + 1) for when in ("writing", "written")]
    doom(folder, "process", [f"driver-{m}" for m in moments], count, seed)
    for _ in range(count + 2):
        ran = subprocess.run([sys.executable, __file__, "driver", folder, cluster.address])
        if ran.returncode != -signal.SIGKILL:
            break
    cluster.shutdown()
    if ran.returncode:
        raise SystemExit(ran.returncode)
    return json.loads((folder / "verdict.json").read_text())


def driver(folder, address):
    """One life of a driver."""
    from latebloomer.racing.runners.ray import RayRunner

    path, append = folder / "race.db", FileJournal.append
    pulls = iter(range(len(pulls_made(path)) + 1 if path.exists() else 1, BUDGET + 1))

    def with_moments(self, *events, elapsed=0.0):
        t = next(pulls) if isinstance(events[0], Told) else 0
        reach(folder, f"driver-writing-{t}")
        append(self, *events, elapsed=elapsed)
        reach(folder, f"driver-written-{t}")

    FileJournal.append = with_moments
    runner = RayRunner(address=address)
    if (folder / "race.db").exists():
        verdict = resume(folder / "race.db", learners(folder), runner=runner, progress=False)
    else:
        verdict = race(learners(folder), BUDGET, **settings(folder, runner))
    (folder / "verdict.json").write_text(json.dumps(verdict.summary()))


def calm(folder):
    """The race that nothing disturbs."""
    verdict = race(learners(folder), BUDGET, policy=POLICY, journal=folder / "calm.db",
                   progress=False)  # fmt: skip
    return verdict.summary()


def main(what, folder, count, seed="0"):
    folder = Path(folder)
    undisturbed = calm(folder)
    whom = {"actors": "process", "nodes": "node", "leaving": "gone"}
    if what in whom:
        found = storm(folder, whom[what], int(count), int(seed))
    else:
        found = drivers(folder, int(count), int(seed))
    print(json.dumps({"deaths": deaths(folder), "calm": undisturbed, "found": found}))


if __name__ == "__main__":
    if sys.argv[1] == "driver":
        driver(Path(sys.argv[2]), sys.argv[3])
    else:
        main(*sys.argv[1:])
