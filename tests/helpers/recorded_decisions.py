"""What must not change while code moves: what sessions decide, runs count and races hear.

A digest stands for a list that is too long to keep. `python -m tools.record_decisions` adds what
is new to `tests/recordings/recordings.json`.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from latebloomer import LocalRunner, Session, race, simulate
from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.session.events import ScoreReported
from tests.helpers.repository import ROOT

FILE = ROOT / "tests" / "recordings" / "recordings.json"
LABELS = [label_of(policy) for kind in REGISTRY.values() for policy in kind.examples()]
ARMS, BUDGET = 5, 240
SEEDS = (0, 1)
RUNS = 40


def digest(value) -> str:
    """Return 16 hexadecimal digits that stand for a JSON value."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def rewards(seed: int) -> list[list[float]]:
    """Return noisy rising rewards, rounded so that no last digit of a platform matters."""
    rng = np.random.default_rng(seed)
    n = np.arange(1, BUDGET + 1)
    best, slow = rng.uniform(0.5, 1, (ARMS, 1)), rng.uniform(1, 40, (ARMS, 1))
    return np.round(best * n / (n + slow) + rng.normal(0, 0.01, (ARMS, BUDGET)), 4).tolist()


def session(label: str, seed: int) -> dict[str, object]:
    """Play a session in plain Python; return which arms it asked for and what it recommends."""
    played, table = Session(label, ARMS, BUDGET, seed=seed), rewards(seed)
    while not played.over:
        arm = played.ask()
        played.tell(arm, table[arm][played.pulls[arm]])
    asked = [arm for arm, _ in played.history]
    return {"asked": digest(asked), "pulls": list(played.pulls), "kept": played.recommend().arm}


def simulation(label: str) -> dict[str, list[object]]:
    """Run a policy on setting A; return its errors and how often each arm had how many pulls."""
    results = simulate("paper-a", [label], [200, 400], runs=RUNS, seed=3, progress=False)
    pulls = {
        cell.budget: [sorted(counts.items()) for counts in cell.pulls] for cell in results.cells
    }
    return {str(cell.budget): [cell.errors, digest(pulls[cell.budget])] for cell in results.cells}


class Learner:
    """A learner that rises with noise of its own seed; it may fail or finish, and can be saved."""

    def __init__(self, seed: int, best: float, slow: float, fails_at=0, ends_at=0) -> None:
        self.best, self.slow, self.n = best, slow, 0
        self.fails_at, self.ends_at = fails_at, ends_at
        self.noise = np.random.default_rng(seed).normal(0, 0.01, 400).round(4).tolist()

    def pull(self) -> float:
        self.n += 1
        if self.n == self.fails_at:
            raise RuntimeError("fails on purpose")
        if self.n == self.ends_at:
            raise StopIteration
        return round(self.best * self.n / (self.n + self.slow) + self.noise[self.n], 6)

    def save(self, folder: Path) -> None:
        (folder / "n").write_text(str(self.n))

    def load(self, folder: Path) -> None:
        self.n = int((folder / "n").read_text())


LEARNERS = {
    "late": lambda seed: Learner(seed, 1.0, 30.0),
    "middle": lambda seed: Learner(seed, 0.8, 8.0),
    "early": lambda seed: Learner(seed, 0.6, 1.0),
    "fails": lambda seed: Learner(seed, 0.5, 3.0, fails_at=5),
    "ends": lambda seed: Learner(seed, 0.7, 2.0, ends_at=8),
}
RUNNERS = {
    "local": lambda: LocalRunner(retries=0),
    "few in memory": lambda: LocalRunner(max_in_memory=2, retries=0),
    "isolated": lambda: LocalRunner(isolate=True, retries=0),
}


# What a verdict says in sentences, whose wording may change.
SENTENCES = {"certificate", "findings", "hindsight", "notes", "reason", "why"}


def one_race(label: str, runner: str, seed: int) -> dict[str, object]:
    """Run a race; return digests of the scores in the order heard, and of the verdict."""
    heard = []

    def listen(event, view):
        if isinstance(event, ScoreReported):
            heard.append((event.arm, event.score))

    verdict = race(
        LEARNERS, 120, policy=label, seed=seed, runner=RUNNERS[runner](), journal=None,
        progress=False, callbacks=[listen],
    )  # fmt: skip
    numbers = {key: value for key, value in verdict.summary().items() if key not in SENTENCES}
    return {"heard": digest(heard), "summary": digest(numbers), "kept": verdict.name}


def names() -> list[str]:
    """Return the name of each recording."""
    sessions = [f"session | {label} | {seed}" for label in LABELS for seed in SEEDS]
    runs = [f"simulation | {label}" for label in LABELS]
    races = [f"race | {label} | local" for label in LABELS]
    others = [f"race | {label} | {where}" for label in ("foresight", "r-sr") for where in RUNNERS]
    return sessions + runs + sorted({*races, *others})


def record(name: str) -> object:
    """Make one recording."""
    kind, label, *rest = name.split(" | ")
    if kind == "session":
        return session(label, int(rest[0]))
    return simulation(label) if kind == "simulation" else one_race(label, rest[0], 5)
