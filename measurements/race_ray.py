"""What a race on Ray costs in addition to training, and how it scales with the number of CPUs.

    python -m measurements.race_ray [--quick | --growth]

Learners whose pull is 50 ms of waiting stand for training elsewhere: R-SR races eight of them on
1, 2, 4 and 8 CPUs. The ideal of the phase structure is, for each phase of m learners with d pulls
each on c CPUs, max(d, m d / c) pulls one after the other. Wall times are from the start of the
first pull to the end of the last, by the journal; the start of Ray is shown separately. Learners
that return immediately show the driver's overhead. `--growth` shows the cost of more learners and
more nodes: time to the first verdict, and memory.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

from latebloomer import RisingSR, race
from latebloomer.cluster import Cluster
from latebloomer.racing.runners.ray_runner import RayRunner

LEARNERS = 8
PULL = 0.05  # seconds


def waiting(best: float, seconds: float) -> Callable[[], Iterator[float]]:
    def scores() -> Iterator[float]:
        event = threading.Event()
        for n in range(1, 10**9):
            if seconds:
                event.wait(seconds)
            yield best * n / (n + 5)

    return scores


def learners(seconds: float, count: int = LEARNERS) -> dict[str, Callable[[], Iterator[float]]]:
    return {f"arm {i}": waiting(0.5 + i / (2 * count), seconds) for i in range(count)}


def ideal(budget: int, cpus: int) -> float:
    """Return the seconds that the phases take if only the pulls take time."""
    plan = RisingSR().plan(LEARNERS, budget, budget)
    levels = [0, *(int(level) for level in plan.upto)]
    pulls, left = 0.0, budget
    for (before, after), keep in zip(pairwise(levels), plan.keep, strict=True):
        each = min(after - before, left // int(keep))
        pulls += max(each, each * int(keep) / cpus)
        left -= each * int(keep)
    return pulls * PULL


def raced(budget: int, seconds: float, folder: Path) -> tuple[float, float, float, float]:
    """Return the seconds of one race: its pulls, the whole call, and two costs per pull.

    These are the driver's CPU time, and the wall time once every learner has been built.
    """
    path = folder / f"{perf_counter()}.db"
    began, cpu = perf_counter(), process_time()
    race(learners(seconds), budget, policy="r-sr", journal=path, runner=RayRunner(),
         progress=False)  # fmt: skip
    whole, used = perf_counter() - began, process_time() - cpu
    with sqlite3.connect(path) as db:
        query = "SELECT min(at - seconds), max(at) FROM pulls"
        first, last = db.execute(query).fetchone()
        built = "SELECT max(first) FROM (SELECT min(at) AS first FROM pulls GROUP BY arm)"
        (ready,) = db.execute(built).fetchone()
        (left,) = db.execute("SELECT count(*) FROM pulls WHERE at > ?", (ready,)).fetchone()
    return last - first, whole, used / budget, (last - ready) / left


def main(quick: bool) -> None:
    budget, times = (240, 1) if quick else (800, 3)
    print(f"{LEARNERS} learners, {PULL * 1000:g} ms of waiting per pull, R-SR, {budget} pulls")
    with tempfile.TemporaryDirectory() as place:
        for cpus in (1, 2, 4, 8):
            began = perf_counter()
            with Cluster(cores=cpus):
                boot = perf_counter() - began
                found = [raced(budget, PULL, Path(place)) for _ in range(times)]
                fast = [raced(2000, 0.0, Path(place)) for _ in range(times)] if cpus == 4 else []
            wall, whole = (statistics.median(part) for part in list(zip(*found, strict=True))[:2])
            best = ideal(budget, cpus)
            print(
                f"  {cpus} CPUs: {wall:6.2f} s, ideal {best:6.2f} s, ratio {wall / best:.3f}"
                f"{'  (target 1.3)' if cpus == 4 else ''}; the whole call {whole:.1f} s, Ray's "
                f"own start {boot:.1f} s", flush=True,
            )  # fmt: skip
            if fast:
                report_overhead(fast)


def report_overhead(fast: list[tuple[float, float, float, float]]) -> None:
    """Print the cost per pull of learners that return immediately, many pulls in one call."""
    wall, cpu = (statistics.median(row[k] for row in fast) * 1e3 for k in (3, 2))
    print(f"  learners that return immediately: {wall:.3f} ms of wall time per pull (target 3) "
          f"once all are built; {cpu:.3f} ms of the driver's CPU time, its start included",
          )  # fmt: skip


def growth() -> None:
    """Race more learners on one machine, and eight learners on more nodes of this machine."""
    with tempfile.TemporaryDirectory() as place, Cluster(cores=4):
        for count in (2, 8, 32):
            began, path = perf_counter(), Path(place) / f"{count}.db"
            sizes: list[float] = []
            start = RayRunner.learner

            def weighed(self: RayRunner, arm: int, pulls: int) -> object:
                sizes.append(memory_of_learners())  # noqa: B023
                return start(self, arm, pulls)  # noqa: B023

            RayRunner.learner = weighed  # type: ignore[method-assign]
            race(learners(0.0, count), 40 * count, policy="rr", journal=path, runner=RayRunner(),
                 progress=False)  # fmt: skip
            RayRunner.learner = start  # type: ignore[method-assign]
            took = perf_counter() - began
            print(f"  {count} learners: {took:.1f} s for {40 * count} pulls that take no time; "
                  f"{sizes[0] / count:.0f} MB of memory for each", flush=True)  # fmt: skip
    for nodes in (1, 2, 4):
        print(f"  {nodes} nodes of one CPU: {on_nodes(nodes):.1f} s", flush=True)


def memory_of_learners() -> float:
    """Return the MB that the processes of learners use; shared memory counts in part."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"ray::TrainingActor" in (folder / "cmdline").read_bytes():
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def on_nodes(nodes: int) -> float:
    """Return the seconds of a whole call with eight learners whose 320 pulls take no time."""
    from ray.cluster_utils import Cluster as Nodes

    several = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(nodes):
        several.add_node(num_cpus=1)
    began = perf_counter()
    race(learners(0.0), 320, policy="r-sr", journal=None, runner=RayRunner(several.address),
         progress=False)  # fmt: skip
    took = perf_counter() - began
    several.shutdown()
    return took


if __name__ == "__main__":
    growth() if "--growth" in sys.argv else main("--quick" in sys.argv)
