"""What once ended races, hung them or lost their results."""

import asyncio
import multiprocessing
import os
import threading

import pytest

from latebloomer import LocalRunner, resume
from latebloomer.racing import run_race
from latebloomer.session.events import ScoreReported
from tests.helpers.journals import rows
from tests.helpers.learners import Counter, curve
from tests.helpers.races import quiet

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


GOOD = {"a": curve(5, 0.9), "b": curve(5, 0.7), "c": curve(5, 0.5)}


def test_a_stop_that_a_kill_has_lost_is_requested_again_on_resume(path, cut):
    def enough(event, view):
        if isinstance(event, ScoreReported) and view.spent == 20:
            view.stop("good enough")

    cut(20, lambda: quiet(GOOD, 60, journal=path, callbacks=[enough]))
    assert resume(path, GOOD, progress=False, callbacks=[enough]).spent == 20


class Hangs(Counter):
    """Waits in one of its methods, for ever as far as the test is concerned."""

    def __init__(self, where, until):
        super().__init__(0.1)
        self.where, self.until = where, until
        self.wait("build")

    def wait(self, where):
        if self.where == where:
            self.until.wait(1.0)

    def save(self, folder):
        self.wait("save")

    def load(self, folder):
        raise AssertionError("nothing was saved")


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=needs_fork)])
@pytest.mark.parametrize("where", ["build", "save"])
def test_a_timeout_covers_building_and_saving(where, isolate):
    until = threading.Event()
    runner = LocalRunner(timeout=0.1, isolate=isolate, checkpoint_every=2, retries=0)
    verdict = quiet(GOOD | {"odd": lambda: Hangs(where, until)}, 24, runner=runner)
    until.set()
    assert "longer than timeout=0.1 s" in str([*verdict.warnings, verdict["odd"].why])


class Own(BaseException):
    """As some libraries use to leave several frames."""


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, Own])
def test_no_exception_of_a_learner_ends_a_race(error):
    class Odd:
        def pull(self):
            raise error

    verdict = quiet(GOOD | {"odd": Odd}, 40)
    assert verdict.spent == 40 and verdict["odd"].state == "failed"


class DiesWhenFetched(Counter):
    def __reduce__(self):
        os._exit(7)


@needs_fork
def test_a_winner_that_dies_when_it_is_handed_over_does_not_take_the_verdict_along():
    verdict = quiet({"a": curve(5, 0.1), "dies": DiesWhenFetched}, 20, runner="isolated")
    assert verdict.name == "dies" and verdict.learner is None
    assert any("exited with code 7" in text for text in verdict.warnings)


def in_use():
    """Threads, open files and children of this process."""
    files = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    return threading.active_count(), len(files), len(multiprocessing.active_children())


def test_races_leave_no_thread_file_or_process_behind(tmp_path):
    quiet(GOOD, 20, runner=LocalRunner(timeout=60))  # what is opened once for all
    before = in_use()
    for k in range(5):
        quiet(GOOD, 20, runner=LocalRunner(timeout=60))
        quiet(GOOD, 20, journal=tmp_path / f"{k}.db")
        if hasattr(os, "fork"):
            quiet(GOOD, 20, runner="isolated")
    assert in_use() == before


def test_a_race_that_appears_while_another_is_started_is_resumed(path, monkeypatch):
    looked = run_race.holds_race

    def looked_just_before_the_other_began(journal):
        monkeypatch.setattr(run_race, "holds_race", looked)
        found = looked(journal)
        quiet(GOOD, 20, journal=path)
        return found

    monkeypatch.setattr(run_race, "holds_race", looked_just_before_the_other_began)
    verdict = quiet(GOOD, 20, journal=path, if_exists="resume")
    assert verdict.spent == 20


def test_a_huge_exception_text_is_stored_by_its_ends(path):
    def huge():
        raise RuntimeError(f"begins {'x' * 3_000_000} ends")
        yield 0.0

    quiet(GOOD | {"huge": huge}, 20, journal=path)
    found = rows(path, "SELECT * FROM events WHERE kind IN ('PullFailed', 'LearnerLeft')")
    longest = max((cell for row in found for cell in row if isinstance(cell, str)), key=len)
    assert len(longest) <= 16_000 and "begins" in longest and "ends" in longest
