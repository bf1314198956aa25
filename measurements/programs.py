"""What a race of programs costs beside their training: `python -m measurements.programs`.

A program whose step takes a fixed processor time is run alone, and raced against two others. Time
is the processor time of the race's process and of its guardian, divided by the pulls: other load
on the machine does not count. Steps ahead are what a program has printed beyond its pulls.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from latebloomer import Command, race
from latebloomer.programs import guardian as guarding

SCRIPT = """
import sys, time
step = float(sys.argv[1])
for n in range(1, 100_000):
    end = time.process_time() + step
    while time.process_time() < end:
        pass
    print(f"epoch={n} acc={n / (n + 9)}", flush=True)
"""


def own_cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ticks(pid):
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(path, step, pulls):
    """Print the cost per pull, the steps ahead and what paused programs burn."""
    live = []

    class Kept(Command):
        def build_in_race(self, *given):
            live.append(super().build_in_race(*given))
            return live[-1]

    learners = {
        str(k): Kept([sys.executable, "-S", str(path), str(step)], "acc", step="epoch")
        for k in range(3)
    }
    began, wall = own_cpu(), time.perf_counter()
    verdict = race(learners, pulls, policy="rr", journal=None, progress=False)
    mine, took = own_cpu() - began, time.perf_counter() - wall
    guard = ticks(guarding.guardian()._process.pid)
    ahead = [max(0, len(one._queue)) for one in live]
    before = [ticks(one.pid) for one in live]
    time.sleep(1.0)
    burnt = sum(ticks(one.pid) for one in live) - sum(before)
    each = 1e3 / verdict.spent
    print(
        f"{step * 1e3:5g} ms | race {mine * each:4.2f} ms, guardian {guard * each:4.2f} ms a pull "
        f"| wall beside training {(took - step * verdict.spent) * each:5.2f} ms | ahead {ahead} "
        f"| paused programs used {burnt:.2f} s in 1 s"
    )
    live.clear()
    guarding.guardian().close()


def main():
    print(" step | processor time per pull")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.py"
        path.write_text(SCRIPT)
        for step, pulls in ((0.001, 900), (0.01, 300), (0.1, 60)):
            measure(path, step, pulls)


if __name__ == "__main__":
    main()
