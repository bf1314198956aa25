"""Races on a Ray cluster of several nodes, with processes that die at chosen moments.

As a script, on one cluster each:

    python -m tests.helpers.ray_faults tests FOLDER SEED
        the storms of the tests, one kind per race
    python -m tests.helpers.ray_faults storm FOLDER DEATHS SEED
        races with all kinds mixed, resumed by Ray or here, until that many have died on Ray

Each prints one JSON object. A death is a file in the folder of a race: the process that comes to
the moment in its name takes the file away and ends itself by SIGKILL, so each happens once,
wherever Ray has put the process.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic

from latebloomer import LocalRunner, race, resume
from latebloomer.cluster.connection import ALL_INTERFACES, PrivateFolder, ask_for_token
from latebloomer.errors import JournalError
from latebloomer.racing.checks.check_runner import Rising
from latebloomer.racing.journal import files
from latebloomer.racing.journal.event_log import SqliteLog
from latebloomer.session.events import ScoreReported
from tests.helpers.journals import rows

BUDGET = 120
EVERY = 7  # pulls from checkpoint to checkpoint
LEARNERS = {"late": (1.0, 20.0), "early": (0.6, 1.0), "middle": (0.8, 6.0)}
NODES = 3  # of one CPU each, besides the head


class Saved(Rising):
    """Deterministic, with state that only a checkpoint carries; each pull is a chance to die."""

    def __init__(self, name, folder):
        super().__init__(*LEARNERS[name])
        self.name, self.folder = name, Path(folder)

    def pull(self):
        self.reach(f"before-{self.n + 1}")
        score = super().pull()
        self.reach(f"after-{self.n}")
        return score

    def save(self, folder):
        (folder / "state.json").write_text("[")
        self.reach(f"saving-{self.n}")
        super().save(folder)

    def reach(self, moment):
        reach(self.folder, f"{self.name}-{moment}")


def learners(folder):
    return {name: partial(Saved, name, str(folder)) for name in LEARNERS}


def reach(folder, moment):
    """Die if this is the moment; on a `node`, with all processes of the machine."""
    for whom in ("process", "node"):
        file = folder / f"{whom}-{moment}"
        try:
            file.rename(folder / f"done-{file.name}")
        except FileNotFoundError:
            continue
        for process in machine() if whom == "node" else []:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def machine():
    """The other processes of this node; none where the learner is in the driver itself."""
    raylet = os.getppid()
    if Path(f"/proc/{raylet}/comm").read_text() != "raylet\n":
        return []
    found = [raylet]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            pid, _, fields = stat.read_text().partition(" (")
            if int(fields.rpartition(")")[2].split()[1]) == raylet:
                found.append(int(pid))
    return [pid for pid in found if pid != os.getpid()]


def doom(folder, whom, moments, count, rng):
    """Put `count` deaths at random moments into the folder."""
    for moment in rng.sample(moments, count):
        (folder / f"{whom}-{moment}").touch()


def moments_of_learners(folder):
    """Those of the undisturbed race, which all come."""
    made = rows(folder / "calm.db", "SELECT name, n FROM pulls JOIN arms USING (arm)")
    moments = [f"{name}-{when}-{n}" for name, n in made for when in ("before", "after")]
    return moments + [f"{name}-saving-{n}" for name, n in made if n % EVERY == 0]


def moments_of_drivers(*others):
    """Before and after each pull is written, or another thing for the first time."""
    things = (*range(1, BUDGET + 1), *others)
    return [f"driver-{when}-{thing}" for thing in things for when in ("writing", "written")]


def driver(folder, address):
    """Begin the race of the folder, or go on with it, here or on Ray."""
    from latebloomer.racing.runners.ray_runner import RayRunner

    arm_moments(folder, RayRunner)
    path, settings = folder / "race.db", json.loads((folder / "settings.json").read_text())
    local = LocalRunner(checkpoint_every=EVERY)
    where = local if address == "local" else RayRunner(address, checkpoint_every=EVERY)
    how = {"runner": where, "progress": False}
    if has_begun(path):
        verdict = resume(path, learners(folder), **how)
    else:
        verdict = race(learners(folder), BUDGET, journal=path, **settings, **how)
    (folder / "verdict.json").write_text(json.dumps(verdict.summary()))


def has_begun(path):
    """Whether there is a race, perhaps without a pull."""
    try:
        return bool(files.glance(path))
    except JournalError:
        return False


def arm_moments(folder, ray_runner):
    append, start = SqliteLog.append, ray_runner.start
    path = folder / "race.db"
    pulls = iter(range(len(rows(path)) + 1 if has_begun(path) else 1, BUDGET + 1))

    def appending(self, *events, elapsed=0.0):
        first = events[0]
        thing = next(pulls) if isinstance(first, ScoreReported) else type(first).__name__
        reach(folder, f"driver-writing-{thing}")
        append(self, *events, elapsed=elapsed)
        reach(folder, f"driver-written-{thing}")

    def starting(self, stage):
        reach(folder, "driver-writing-connection")
        start(self, stage)
        reach(folder, "driver-written-connection")

    SqliteLog.append, ray_runner.start = appending, starting


class Race:
    """A race in a folder of its own; `kills` has who died in it so far, by kind."""

    def __init__(self, folder, **settings):
        self.folder, self.kills, self.lives = folder, Counter(), Counter()
        folder.mkdir(parents=True)
        settings = {"policy": "r-sr"} | settings
        (folder / "settings.json").write_text(json.dumps(settings))
        local = LocalRunner(checkpoint_every=EVERY)
        self.calm = race(learners(folder), BUDGET, journal=folder / "calm.db", progress=False,
                         runner=local, **settings).summary()  # fmt: skip

    def run(self, cluster, replace, local=lambda: False):
        """Let drivers live until one brings the race to its end; by Ray, unless `local()`."""
        for _ in range(BUDGET):
            here = local()
            self.lives["local" if here else "ray"] += 1
            code = self._live(cluster, replace, "local" if here else cluster.address)
            self._count(here)
            if code != -signal.SIGKILL:
                break
        if code:
            raise SystemExit((self.folder / "driver.out").read_text()[-5000:])

    def _live(self, cluster, replace, address):
        """A driver's exit code; machines that are lost meanwhile are replaced, or not."""
        words = [sys.executable, "-m", __spec__.name, "driver", self.folder, address]
        with open(self.folder / "driver.out", "w") as said:
            living = subprocess.Popen(words, stdout=said, stderr=said)
        while True:
            try:
                return living.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                if replace:
                    mend(cluster)

    def _count(self, here):
        for file in self.folder.glob("done-*"):
            _, whom, who, _ = file.name.split("-", 3)
            kind = "drivers" if who == "driver" else {"process": "actors"}.get(whom, "nodes")
            self.kills["local" if here else kind] += 1
            file.unlink()

    def outcome(self):
        """What became of it, beside the race that nothing disturbed."""
        made, calm = rows(self.folder / "race.db"), rows(self.folder / "calm.db")
        same = {*made} & {*calm}
        found = json.loads((self.folder / "verdict.json").read_text())
        return Counter(
            lost=len(calm) - len(same),  # pulls of the other that are not in it, score and all
            double=len(made) - len(same),  # pulls in it besides
            different=int(found != self.calm),
        )


@contextmanager
def cluster_of_nodes():
    """A head without CPUs, which `mend` gives nodes; on the loopback interface alone."""
    os.environ[ALL_INTERFACES] = "0"
    ask_for_token(loaded=False)
    with closing(PrivateFolder()) as folder:
        os.environ["RAY_TMPDIR"] = str(folder.path)
        from ray.cluster_utils import Cluster

        # A node that is killed refuses connections; a slow one only takes its time.
        quick = {"health_check_period_ms": 300, "health_check_failure_threshold": 4,
                 "health_check_timeout_ms": 5000, "health_check_initial_delay_ms": 0}  # fmt: skip
        head = {"num_cpus": 0, "_system_config": quick, "include_dashboard": False,
                "no_monitor": True, "include_log_monitor": False}  # fmt: skip
        cluster = Cluster(initialize_head=True, head_node_args=head)
        yield cluster
        cluster.shutdown()


def mend(cluster, nodes=NODES):
    """Machines come and go: one for each that has left, up to so many."""
    for node in [node for node in cluster.worker_nodes if not node.any_processes_alive()]:
        cluster.remove_node(node, allow_graceful=False)
    for _ in range(nodes - len(cluster.worker_nodes)):
        cluster.add_node(num_cpus=1)


KINDS = {"drivers": 3, "actors": 5, "nodes": 3, "leaving": 2}  # deaths in the tests


def tests(folder, seed):
    """A race per kind; nodes that leave are not replaced, other nodes are."""
    rng, found = random.Random(int(seed)), {}
    with cluster_of_nodes() as cluster:
        for kind, deaths in KINDS.items():
            drive = kind == "drivers"
            mend(cluster, 1 if drive else NODES)
            one = Race(folder / kind)
            moments = moments_of_drivers() if drive else moments_of_learners(one.folder)
            whom = "process" if kind in ("drivers", "actors") else "node"
            doom(one.folder, whom, moments, deaths, rng)
            one.run(cluster, replace=kind == "nodes")
            found[kind] = {"kills": one.kills.total(), **one.outcome()}
    return found


def storm(folder, deaths, seed):
    """Races with all kinds of deaths in each, until there were enough on Ray."""
    rng, began = random.Random(int(seed)), monotonic()
    kills, lives, found, races = Counter(), Counter(), Counter(lost=0, double=0, different=0), 0
    with cluster_of_nodes() as cluster:
        while kills.total() - kills["local"] < int(deaths):
            mend(cluster)
            one = mixed_race(folder / f"race-{races}", cluster, rng)
            races, kills, lives = races + 1, kills + one.kills, lives + one.lives
            found.update(one.outcome())
            print(f"race {races}: {dict(one.kills)} {dict(found)}", file=sys.stderr, flush=True)
    local = kills.pop("local", 0)
    return {"kills": kills.total(), **kills, **found, "races": races, "lives": dict(lives),
            "kills_in_local_lives": local, "seconds": round(monotonic() - began)}  # fmt: skip


def mixed_race(folder, cluster, rng):
    """A race in which all kinds die, brought on by Ray or, one life in four, here."""
    policy = rng.choice(["r-sr", "sh", "adaptive-rejects"])
    one = Race(folder, policy=policy, winner_share=rng.choice([0.0, 0.3]))
    replace = rng.random() < 0.7
    moments = moments_of_learners(folder)
    doom(folder, "process", moments, 7, rng)
    doom(folder, "node", moments, 3 if replace else NODES - 1, rng)
    doom(folder, "process", moments_of_drivers("connection", "Created", "Saved", "WinnerSelected",
                                               "RaceFinished"), 4, rng)  # fmt: skip
    one.run(cluster, replace, local=lambda: rng.random() < 0.25)
    return one


if __name__ == "__main__":
    what, place, *words = sys.argv[1:]
    if what == "driver":
        driver(Path(place), *words)
    else:
        print(json.dumps({"tests": tests, "storm": storm}[what](Path(place), *words)))
