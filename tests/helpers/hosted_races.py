"""What tests of hosts share: curves without luck, our own race on them, a killed driver."""

import signal
import subprocess
import sys
from pathlib import Path

from latebloomer import race

# The second is best at the end and not at the start; the fifth leads early.
CURVES = ((8, 0.7), (12, 1.0), (10, 0.88), (10, 0.7), (1, 0.78), (20, 0.5))
BUDGET, HORIZON = 150, 60
NAMES = [f"#{k}" for k in range(len(CURVES))]


def value(b, c, n):
    """The score after n pulls."""
    return c * (1 - b / (b + n))


def our_race(names, curves=CURVES, sign=1.0, **settings):
    """The same curves, raced by ourselves."""

    def learner(b, c):
        return lambda: (sign * value(b, c, n) for n in range(1, 10_000))

    learners = {name: learner(*curve) for name, curve in zip(names, curves, strict=True)}
    settings = {"budget": BUDGET, "horizon": HORIZON, **settings}
    return race(learners, journal=None, progress=False, maximize=sign > 0, **settings)


def same_verdict(ours, theirs, ordered=False):
    """Two races ended alike; where pulls of a phase come in any order, half-time may differ."""
    one, other = ours.summary(), theirs.summary()
    for said in () if ordered else (one, other):
        for key in ("half_time", "late_bloomer"):
            said.pop(key)
    assert one == other
    assert theirs.spent <= theirs.budget and theirs.unspent < len(theirs.learners)


def trained(folder):
    """What trials trained: a line for each pull."""
    return (folder / "log").read_text().splitlines()


def killed(file, *words, limit=120):
    """Run a test file as a script that ends by SIGKILL."""
    script = [sys.executable, str(Path(file).resolve()), *map(str, words)]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=limit)
    assert ran.returncode == -signal.SIGKILL, (ran.stdout + ran.stderr)[-3000:]
