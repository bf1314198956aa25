"""What a race of programs costs beside their training: `python -m measurements.programs`.

Three programs whose step takes a fixed processor time race by round robin. First each of them has
one pull: their start-up, and that of the guardian, is measured apart. Then come the pulls that are
measured. Costs are the processor time of the race's process and of its guardian, in milliseconds
per pull: time for which other programs use the machine does not count, but they make each pull
dearer, since what it needs has left the processor's memory. A race of the same scores from a
Python generator is the cost of the race itself. Steps ahead are those whose scores a program has
printed beyond its pulls, at the end of the race.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from latebloomer import Command, race
from latebloomer.programs import guardian as guarding
from latebloomer.session.events import ScoreReported

LEARNERS = 3
REPEATS = 5
STEPS = ((0.001, 1500), (0.01, 300), (0.1, 60))  # seconds of a step, pulls that are measured
PAUSED = 2.0  # seconds for which paused programs are watched
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
    """Processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pid):
    """Processor time of another process, to the nanosecond where Linux tells it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def printed_ahead(learner):
    """Return how many scores a program has printed that no pull has asked for."""
    learner._program.drain()
    return len(learner._queue)


def race_of(learners, pulls, at_start):
    """Race, and call a function when each learner has had one pull."""

    def started(event, view):
        if isinstance(event, ScoreReported) and view.spent == LEARNERS:
            at_start()

    settings = {"policy": "rr", "journal": None, "progress": False, "callbacks": [started]}
    return race(learners, pulls + LEARNERS, **settings)


def cost_of_race(pulls):
    """Return the milliseconds per pull of a race whose learners cost nothing."""

    def scores():
        n = 0
        while True:
            n += 1
            yield n / (n + 9)

    marks = []
    race_of(dict.fromkeys("abc", scores), pulls, lambda: marks.append(own_cpu()))
    return 1e3 * (own_cpu() - marks[0]) / pulls


def cost_of_programs(path, step, pulls):
    """Return the milliseconds per pull of race and guardian, and what paused programs do."""
    live, marks = [], []

    class Kept(Command):
        def build_in_race(self, *place):
            live.append(super().build_in_race(*place))
            return live[-1]

    def mark():
        guard = cpu_of(guarding.guardian()._process.pid)
        marks.append((own_cpu(), guard, sum(cpu_of(one.pid) for one in live), time.perf_counter()))

    words = [sys.executable, "-S", str(path), str(step)]
    learners = {str(k): Kept(words, "acc", step="epoch") for k in range(LEARNERS)}
    before = own_cpu(), time.perf_counter()
    race_of(learners, pulls, mark)
    mark()
    (mine, guard, _, began), (mine_then, guard_then, trained_then, ended) = marks
    time.sleep(PAUSED)
    ahead = [printed_ahead(one) for one in live]
    burnt = sum(cpu_of(one.pid) for one in live) - trained_then
    guarding.guardian().close()
    each = 1e3 / pulls
    return {
        "race": each * (mine_then - mine),
        "guardian": each * (guard_then - guard),
        "start": 1e3 * (mine - before[0] + guard) / LEARNERS,
        "wall": 1e3 * ((ended - began) / pulls - step),
        "ahead": max(ahead),
        "burnt": 1e3 * max(0.0, burnt) / PAUSED,
    }


def shown(values):
    """Return mean and standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):5.2f} ± {error:4.2f}"


def main():
    """Print a line for each length of a step."""
    print(f"milliseconds, {LEARNERS} programs, {REPEATS} races each, mean ± standard error")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.py"
        path.write_text(SCRIPT)
        cost_of_programs(path, 0.001, 30)  # what is imported and compiled is not measured
        for step, pulls in STEPS:
            races = [cost_of_programs(path, step, pulls) for _ in range(REPEATS)]
            bare = [cost_of_race(pulls) for _ in range(REPEATS)]
            costs = [one["race"] + one["guardian"] for one in races]
            most = 1 + 0.02 * step * 1e3
            print(
                f"step {step * 1e3:3g}: race and guardian {shown(costs)} a pull "
                f"(at most {most:.2f}; guardian {shown([one['guardian'] for one in races])}; "
                f"the race alone {shown(bare)})\n"
                f"          wall beside training {shown([one['wall'] for one in races])}; "
                f"start-up of a program {shown([one['start'] for one in races])}\n"
                f"          steps ahead at most {max(one['ahead'] for one in races)}; "
                f"paused programs used {shown([one['burnt'] for one in races])} per second",
                flush=True,
            )


if __name__ == "__main__":
    main()
