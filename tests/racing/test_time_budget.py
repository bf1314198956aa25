"""Races by the clock, on a clock that only the learners move."""

import threading

import pytest
from toys import quiet, rows

from latebloomer import LocalRunner, read_verdict, resume
from latebloomer.errors import LatebloomerError
from latebloomer.racing import stopping
from latebloomer.racing.journal import journal
from latebloomer.racing.runners import learner_host, local

MODULES = (stopping, local, learner_host)


class Time:
    """A clock for the whole race."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in MODULES:
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        monkeypatch.setattr(journal, "time", lambda: self.now)
        monkeypatch.setattr(SlowToBuild, "built", 0)

    def many(self, arms, length=1.0):
        """Learners whose pulls take equally long."""
        return {str(k): self.learner(lambda n: length, 0.5 + k / 20) for k in range(arms)}

    def learner(self, length, best=1.0):
        """One whose n-th pull takes length(n) seconds."""

        def scores():
            n = 0
            while True:
                n += 1
                self.now += length(n)
                yield best * n / (n + 5)

        return scores


@pytest.fixture
def time(monkeypatch):
    return Time(monkeypatch)


def slow_start(length):
    return lambda n: 30 * length if n == 1 else length


PACES = {
    "even": lambda k: lambda n: 0.5,
    "some slower": lambda k: lambda n: 0.1 + 0.3 * k,
    "slow first pulls": lambda k: slow_start(0.2),
    "growing": lambda k: lambda n: 0.1 + 0.01 * n,
    "shrinking": lambda k: lambda n: 0.2 + 1.5 / n,
    "jumps": lambda k: lambda n: 0.2 if n < 60 else 0.8,
}
POLICIES = ["adaptive-rejects", "r-sr", "r-ucbe", "sh", "rr", "rest-sure"]
# The default at each pace, and the other policies at two of them.
CASES = [("auto", pace, arms) for pace in PACES for arms in (2, 8)]
CASES += [(policy, pace, 8) for policy in POLICIES for pace in ("slow first pulls", "jumps")]


@pytest.mark.parametrize("policy, pace, arms", CASES)
def test_a_race_ends_within_5_percent_of_its_time(time, policy, pace, arms):
    learners = {str(k): time.learner(PACES[pace](k), 0.5 + k / 20) for k in range(arms)}
    verdict = quiet(learners, seconds=600, policy=policy)
    assert abs(time.now - 600) <= 0.05 * 600, time.now
    assert verdict.over and verdict.budget - arms < verdict.spent <= verdict.budget
    if policy in ("auto", "adaptive-rejects", "r-sr"):
        assert sum(arm.state in ("racing", "winner") for arm in verdict.learners) <= 2


UNEVEN = ("slow first pulls", "growing")
SHARES = [("auto", pace, share) for pace in UNEVEN for share in (0.3, 0.7)]
SHARES += [(policy, "jumps", 0.3) for policy in ("auto", "r-sr", "r-ucbe")]


@pytest.mark.parametrize("policy, pace, winner_share", SHARES)
def test_the_winner_has_its_share_of_the_time(time, policy, pace, winner_share, tmp_path):
    path = tmp_path / "race.db"
    learners = {str(k): time.learner(PACES[pace](k), 0.5 + k / 20) for k in range(6)}
    given = {"seconds": 600, "winner_share": winner_share, "policy": policy, "journal": path}
    verdict = quiet(learners, **given)
    assert abs(time.now - 600) <= 0.05 * 600, time.now
    query = f"SELECT sum(seconds) FROM pulls WHERE t <= {verdict.selected.at}"
    ((before,),) = rows(path, query)
    assert abs(before - (1 - winner_share) * 600) <= 0.05 * 600, before
    assert verdict.over and read_verdict(path).summary() == verdict.summary()


def test_the_first_sweep_sets_the_budget_and_it_is_set_anew_when_it_was_wrong(time, tmp_path):
    learners = {str(k): time.learner(slow_start(0.2), 0.5 + k / 20) for k in range(8)}
    quiet(learners, seconds=600, journal=tmp_path / "race.db")
    query = "SELECT t, value FROM changes WHERE kind = 'BudgetReplanned' ORDER BY id"
    plans = rows(tmp_path / "race.db", query)
    assert plans[0][0] == 8 and plans[0][1] < 200  # a pull seemed to take 6 s
    assert plans[-1][1] > 2000  # it takes 0.2 s


@pytest.mark.parametrize("at, winner_share", [(200, 0.0), (450, 0.5)])
def test_a_timed_race_resumes_and_counts_the_time_before(time, tmp_path, cut, at, winner_share):
    learners, path = time.many(4), tmp_path / "race.db"
    cut(at, lambda: quiet(learners, seconds=600, winner_share=winner_share, journal=path))
    named = read_verdict(path).selected
    time.now += 10_000  # the machine was off
    verdict = resume(path, learners, progress=False)
    if winner_share:
        assert verdict.selected == named and abs(named.at - 300) <= 15
    assert abs(verdict.spent - 600) <= 30  # restoring the learners was not the race's time
    assert read_verdict(path).summary() == verdict.summary()  # the replay needs no clock


def test_pulls_too_long_for_the_promise_are_said(time):
    learners = time.many(3, 50.0)
    verdict = quiet(learners, seconds=600)
    assert abs(time.now - 600) <= 50 / 2
    assert any("one pull took 50 s, 8% of the 600 s given" in w for w in verdict.warnings)


def test_each_learner_has_its_chance_and_the_verdict_says_what_that_took(time):
    learners = time.many(4, 400.0)
    verdict = quiet(learners, seconds=600)
    assert verdict.spent == 4 and verdict.over
    text = "the race took 1.6e+03 s of its 600 s (counted pulls 1.6e+03 s; the longest pull 400 s)"
    assert any(f"{text}, more than 5% off" in warning for warning in verdict.warnings)


class SlowToBuild:
    """Takes `building` seconds to make; the first one fails when `fails_at` seconds are over."""

    built = 0

    def __init__(self, time, building, best, length=0.5, fails_at=1e9):
        SlowToBuild.built += 1
        self.time, self.best, self.length, self.n = time, best, length, 0
        self.fails_at = fails_at if SlowToBuild.built == 1 else 1e9
        time.now += building

    def pull(self):
        if self.time.now >= self.fails_at:
            raise OSError("once")
        self.n += 1
        self.time.now += self.length
        return self.best * self.n / (self.n + 5)


def test_a_learner_that_a_new_plan_releases_while_it_is_restored_is_not_pulled(time):
    slow = {"slow": lambda: SlowToBuild(time, 1.0, 0.3, 0.01, fails_at=2.2)}
    verdict = quiet(slow | time.many(3, 0.01), seconds=4)
    assert verdict.over and abs(time.now - 4) <= 0.05 * 4


def test_a_winner_that_is_restored_when_the_time_is_over_is_not_built_again(time):
    slow = {"slow": lambda: SlowToBuild(time, 1.0, 0.9, 0.01, fails_at=3.3)}
    verdict = quiet({"a": time.learner(lambda n: 0.01, 0.2)} | slow, seconds=4)
    assert verdict.name == "slow" and SlowToBuild.built == 2


@pytest.mark.parametrize("policy", ["auto", "r-sr", "r-ucbe"])
def test_building_learners_is_time_spent_and_not_the_price_of_a_pull(time, policy):
    learners = {str(k): lambda k=k: SlowToBuild(time, 40.0, 0.5 + k / 20) for k in range(4)}
    verdict = quiet(learners, seconds=600, policy=policy)
    assert abs(time.now - 600) <= 0.05 * 600, time.now
    assert abs(verdict.spent - (600 - 160) / 0.5) <= 0.05 * 600 / 0.5


def test_more_building_than_time_ends_after_the_first_sweep_with_the_numbers(time):
    learners = {str(k): lambda k=k: SlowToBuild(time, 300.0, 0.5 + k / 20) for k in range(3)}
    verdict = quiet(learners, seconds=600)
    assert verdict.spent == 3
    text = "the race took 902 s of its 600 s (counted pulls 1.5 s, building learners 900 s"
    assert any(text in warning for warning in verdict.warnings)


def test_learners_that_fail_or_end_do_not_stop_the_clock(time):
    def ends():
        for _ in range(19):
            time.now += 1.0
            yield 0.1

    def fails():
        time.now += 90.0  # as a pull that hangs until its timeout: not the price of a pull
        raise RuntimeError("never")
        yield 0.0

    learners = time.many(3) | {"ends": ends, "fails": fails}
    verdict = quiet(learners, seconds=600, runner=LocalRunner(retries=1))
    assert abs(time.now - 600) <= 30 and verdict.spent > 380
    assert verdict["fails"].state == "failed" and verdict["ends"].state == "finished"


@pytest.mark.parametrize("winner_share", [0.0, 0.5])
def test_a_finished_race_is_given_more_time_in_total(time, tmp_path, winner_share):
    learners = time.many(4)
    path = tmp_path / "race.db"
    first = quiet(learners, seconds=300, winner_share=winner_share, journal=path)
    time.now += 10_000  # the machine was off
    verdict = resume(path, learners, seconds=900, progress=False)
    assert abs(first.spent - 300) <= 15 and abs(verdict.spent - 900) <= 45
    assert read_verdict(path).summary() == verdict.summary()
    assert any("Extending the time from 300 s to 900 s." in text for text in verdict.warnings)
    again = resume(path, learners, seconds=900, progress=False)
    assert again.summary() == verdict.summary()  # the same call again changes nothing


def test_an_unfinished_race_is_given_more_time_and_a_new_learner(time, tmp_path, cut):
    learners = time.many(4)
    path = tmp_path / "race.db"
    cut(100, lambda: quiet(learners, seconds=300, journal=path))
    new = {"new": time.learner(lambda n: 1.0, 2.0)}
    cut(200, lambda: resume(path, learners | new, seconds=900, progress=False))
    verdict = resume(path, learners | new, progress=False)  # the new time is in the journal
    assert verdict.name == "new" and abs(verdict.spent - 900) <= 45


BAD = [
    ({"seconds": 300}, {"seconds": 200}, "seconds=200 is below the race's budget of 300 seconds"),
    ({"seconds": 300}, {"seconds": float("inf")}, "is below the race's budget of 300 seconds"),
    ({"seconds": 300}, {"seconds": 900, "budget": 900}, "budget=900 and seconds=900: give only"),
    ({"seconds": 300}, {"budget": 900}, "cannot extend this race, whose budget is in seconds"),
    ({"budget": 20}, {"seconds": 60}, "seconds=60 cannot extend this race"),
    ({"budget": 20}, {"trainings": 3}, r"trainings=3 cannot extend this race, .* budget="),
]


@pytest.mark.parametrize("given, more, text", BAD)
def test_what_cannot_be_given_to_a_race_is_refused(time, tmp_path, given, more, text):
    quiet(time.many(2), journal=tmp_path / "race.db", **given)
    with pytest.raises(LatebloomerError, match=text):
        resume(tmp_path / "race.db", time.many(2), progress=False, **more)


def test_the_verdict_says_which_local_pull_ran_over_and_by_how_much(time):
    learners = {"a": time.learner(lambda n: 1.0), "b": time.learner(lambda n: 1.0)}
    learners["stuck"] = time.learner(lambda n: 1.0 if n < 20 else 700.0, 2.0)
    verdict = quiet(learners, seconds=600)
    (text,) = [text for text in verdict.warnings if "after the race's time" in text]
    assert text.startswith("stuck: a pull ended 15") and 'runner="isolated"' in text


def test_a_process_that_still_pulls_after_the_grace_period_is_interrupted(monkeypatch):
    monkeypatch.setattr(stopping, "LEAST_GRACE", 0.05)

    def quick():
        yield 0.1, 1

    def hangs():  # its first pull begins however late it is: each learner has one
        threading.Event().wait()
        yield 0.5, 1

    verdict = quiet({"quick": quick, "hangs": hangs}, seconds=0.2, runner="isolated")
    assert verdict.over and verdict["quick"].pulls == 1 and verdict["hangs"].pulls == 0
    assert any("hangs failed" in text and "still running" in text for text in verdict.warnings)
