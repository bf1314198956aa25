"""Limits of native threads while learners train, and what a race says of threads that wait."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from latebloomer import LocalRunner, race, resume
from latebloomer.errors import MissingExtra, SettingError
from latebloomer.racing.runners import local, native_threads


def threads_now():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))  # BLAS is loaded
    with threadpool_limits(2):
        yield


def learner():
    while True:
        yield float(next(iter(threads_now())))


LEARNERS = {"a": learner, "b": learner}
QUIET = {"progress": False, "budget": 4}


@pytest.mark.parametrize("more", [{}, {"timeout": 60.0}, {"isolate": True}], ids=str)
def test_learners_have_as_many_native_threads_as_the_runner_says(tmp_path, more):
    runner = LocalRunner(threads=1, **more)
    verdict = race(LEARNERS, journal=tmp_path / "race.db", runner=runner, **QUIET)
    assert {one.score for one in verdict.learners} == {1.0}
    assert threads_now() == {2}  # as before the race
    again = resume(tmp_path / "race.db", LEARNERS, progress=False, budget=6)
    assert {one.score for one in again.learners} == {1.0}  # recorded with the race
    assert race(LEARNERS, journal=None, **QUIET).score == 2.0


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "1"])
def test_a_limit_is_a_number_of_threads(threads):
    with pytest.raises(SettingError, match=r"threads=.* must be an integer >= 1"):
        LocalRunner(threads=threads)


def test_without_threadpoolctl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "threadpoolctl", None)
    with pytest.raises(MissingExtra, match="need threadpoolctl: pip install"):
        LocalRunner(threads=1)
    LocalRunner()


def test_a_race_says_once_that_its_threads_wait_for_each_other(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(local, "process_time", lambda: 9.0 * next(clock))
    monkeypatch.setattr(native_threads, "LONG", 0.0)
    verdict = race(LEARNERS, journal=None, **QUIET)
    said = [text for text in verdict.warnings if "processor time" in text]
    assert len(said) == 1 and said[0].endswith("compare with threads=1")
