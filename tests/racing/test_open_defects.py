"""What once ended races, hung them or lost their results."""

import asyncio
import multiprocessing
import os
import threading
from itertools import count

import pytest
from simple_races import quiet, rows

from latebloomer import LocalRunner, race, resume
from latebloomer.errors import SettingError
from latebloomer.racing import run_race, stopping
from latebloomer.racing.runners import learner_host, local
from latebloomer.session.events import ScoreReported

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def rising(best):
    return lambda: (best * n / (n + 5) for n in count(1))


GOOD = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


class SlowToBuild:
    """Takes a second to build; the first object's pull fails when `fails_at` seconds are over."""

    built = 0

    def __init__(self, clock, best, fails_at):
        SlowToBuild.built += 1
        self.clock, self.n, self.best = clock, 0, best
        self.fails_at = fails_at if SlowToBuild.built == 1 else 1e9
        clock.now += 1.0

    def pull(self):
        if self.clock.now >= self.fails_at:
            raise OSError("once")
        self.n += 1
        self.clock.now += 0.01
        return self.best * self.n / (self.n + 5)


class Clock:
    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in (stopping, local, learner_host):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        monkeypatch.setattr(SlowToBuild, "built", 0)

    def quick(self, best):
        def scores():
            for n in count(1):
                self.now += 0.01
                yield best * n / (n + 5)

        return scores


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_learner_that_a_new_plan_releases_while_it_is_restored_is_not_pulled(clock):
    learners = {str(k): clock.quick(0.5 + k / 10) for k in range(3)}
    verdict = quiet({"slow": lambda: SlowToBuild(clock, 0.3, 2.2)} | learners, seconds=4)
    assert verdict.over and abs(clock.now - 4) <= 0.05 * 4


def test_a_winner_that_is_restored_when_the_time_is_over_is_not_built_again(clock):
    learners = {"a": clock.quick(0.2), "slow": lambda: SlowToBuild(clock, 0.9, 3.3)}
    verdict = quiet(learners, seconds=4)
    assert verdict.name == "slow" and SlowToBuild.built == 2


def test_a_stop_that_a_kill_has_lost_is_requested_again_on_resume(tmp_path, cut):
    def enough(event, view):
        if isinstance(event, ScoreReported) and view.spent == 20:
            view.stop("good enough")

    path = tmp_path / "race.db"
    cut(20, lambda: race(GOOD, 60, journal=path, progress=False, callbacks=[enough]))
    assert resume(path, GOOD, progress=False, callbacks=[enough]).spent == 20


class Hangs:
    """Waits in one of its methods, for ever as far as the test is concerned."""

    def __init__(self, where, until):
        self.where, self.until, self.n = where, until, 0
        self._maybe("build")

    def _maybe(self, where):
        if self.where == where:
            self.until.wait(1.0)

    def pull(self):
        self.n += 1
        return 0.1

    def save(self, folder):
        self._maybe("save")
        (folder / "n").write_text(str(self.n))

    def load(self, folder):
        self._maybe("load")
        self.n = int((folder / "n").read_text())


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=needs_fork)])
@pytest.mark.parametrize("where", ["build", "save"])
def test_a_timeout_covers_building_and_saving(where, isolate):
    until = threading.Event()
    verdict = quiet(
        GOOD | {"odd": lambda: Hangs(where, until)}, 24,
        runner=LocalRunner(timeout=0.1, isolate=isolate, checkpoint_every=2, retries=0),
    )  # fmt: skip
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


class DiesWhenFetched:
    def __init__(self):
        self.n = 0

    def pull(self):
        self.n += 1
        return 1.0 - 1 / self.n

    def __reduce__(self):
        os._exit(7)


@needs_fork
def test_a_winner_that_dies_when_it_is_handed_over_does_not_take_the_verdict_along():
    verdict = quiet({"a": rising(0.1), "dies": DiesWhenFetched}, 20, runner="isolated")
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


def test_a_race_that_appears_while_another_is_started_is_resumed(tmp_path, monkeypatch):
    path = tmp_path / "race.db"
    looked = run_race.asked.holds_race

    def looked_just_before_the_other_began(journal):
        monkeypatch.setattr(run_race.asked, "holds_race", looked)
        found = looked(journal)
        race(GOOD, 20, journal=path, progress=False)
        return found

    monkeypatch.setattr(run_race.asked, "holds_race", looked_just_before_the_other_began)
    verdict = race(GOOD, 20, journal=path, progress=False, if_exists="resume")
    assert verdict.spent == 20


def test_a_huge_exception_text_is_stored_by_its_ends(tmp_path):
    def huge():
        raise RuntimeError(f"begins {'x' * 3_000_000} ends")
        yield 0.0

    path = tmp_path / "race.db"
    race(GOOD | {"huge": huge}, 20, journal=path, progress=False)
    found = rows(path, "SELECT * FROM events WHERE kind IN ('PullFailed', 'LearnerLeft')")
    longest = max((cell for row in found for cell in row if isinstance(cell, str)), key=len)
    assert len(longest) <= 16_000 and "begins" in longest and "ends" in longest


@pytest.mark.parametrize("both", [True, False])
def test_a_new_learner_may_stand_among_the_learners(tmp_path, both):
    path = tmp_path / "race.db"
    race(GOOD, 20, journal=path, progress=False)
    new = {"new": rising(0.8)}
    verdict = resume(path, GOOD | new, budget=60, add=new if both else None, progress=False)
    assert verdict.spent == 60 and verdict["new"].pulls > 0


def test_a_message_about_learners_names_them_without_addresses():
    with pytest.raises(SettingError, match="one") as caught:
        quiet({"one": rising(0.5)}, 20)
    assert " at 0x" not in str(caught.value) and "lambda" not in str(caught.value)
