"""Fixtures and settings of the whole suite."""

import os
import re
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from latebloomer.racing.journal.event_log import SqliteLog
from latebloomer.session.events import ScoreReported

pytest.register_assert_rewrite("tests.helpers")
# Processes that tests start find the helpers too.
OWN_PATH = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, OWN_PATH))

# Compiled code makes the first example slow, and a slow machine is not a failure.
settings.register_profile(
    "latebloomer", deadline=None, derandomize="LATEBLOOMER_SEED" not in os.environ
)
settings.load_profile("latebloomer")


# What a skipped test lacks, by the words of its reason, and the target that runs it.
MISSING = re.compile(
    r"'?([\w-]+)'? (?:is not installed|does not load)|could not import '([\w.-]+)'"
)
TARGETS = {
    "chromium": "make test-browser",
    "LATEBLOOMER_DATA": "LATEBLOOMER_DATA=FOLDER make test",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line for each library or folder that skipped tests lack, not one per test."""
    lacking = Counter(
        lack_of(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])
    )
    for (lack, target), tests in sorted(lacking.items()):
        terminalreporter.write_line(f"skipped, as expected: {lack} ({tests}); {target}")


def lack_of(reason: str) -> tuple[str, str]:
    """Return what a skipped test lacks, as text, and how to run it."""
    reason = reason.removeprefix("Skipped: ")
    library = MISSING.search(reason)
    if library:
        name = (library[1] or library[2]).partition(".")[0].replace("_", "-")
        target = "make test" if name == "nbformat" else "make test-integrations"
        return f"{name} is not installed", f"{target} runs these"
    target = next((how for word, how in TARGETS.items() if word in reason), None)
    return reason, f"{target} runs these" if target else "needs another machine or setting"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed 0 unless LATEBLOOMER_SEED says otherwise; a failure shows it among its properties."""
    value = int(os.environ.get("LATEBLOOMER_SEED", "0"))
    request.node.user_properties.append(("seed", value))
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a race is recorded."""
    return tmp_path / "race.db"


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where the tests were started with SIGINT ignored (nohup)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def ignored_ctrl_c() -> Iterator[None]:
    """SIGINT ignored, as a shell without job control starts what stands before an `&`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def peak_bytes() -> Callable[[Callable[[], object]], int]:
    """A function that says how many bytes a call held at its peak."""

    def peak(call: Callable[[], object]) -> int:
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return peak


@pytest.fixture
def in_little_memory() -> Callable[..., str]:
    """A function that runs code in a process of its own, with so many bytes of address space.

    It returns what the code prints; a regression is a MemoryError there, not a dead machine.
    """

    def run(code: str, limit: int = 4 * 2**30) -> str:
        limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n"
        done = subprocess.run(
            [sys.executable, "-c", limited + code], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


class Cut(BaseException):
    """The process ends here, as far as the race can tell."""


@pytest.fixture
def cut(monkeypatch):
    """Run a race until a number of pulls are in its journal, and not a moment longer."""

    def run_until(pulls, run):
        real, counted = SqliteLog.append, []

        def append(journal, *events, elapsed=0.0):
            if len(counted) >= pulls:
                raise Cut  # nothing is written after a kill
            real(journal, *events, elapsed=elapsed)
            counted.extend(event for event in events if isinstance(event, ScoreReported))
            if len(counted) >= pulls:
                raise Cut

        with monkeypatch.context() as patched:
            patched.setattr(SqliteLog, "append", append)
            with pytest.raises(Cut):
                run()

    return run_until
