"""Races by the clock, on a clock that only the learners move."""

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import LatebloomerError, SettingError
from latebloomer.policies.registry import REGISTRY, label_of, make_policy
from latebloomer.racing import race_clock
from latebloomer.racing.journal import event_log
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners import learner_host, local
from latebloomer.racing.runners.runner import HandedOver, Runner
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created, ScoreReported
from tests.helpers.journals import entries_in, rows
from tests.helpers.learners import rising
from tests.helpers.races import quiet

MODULES = (race_clock, local, learner_host)


class Time:
    """A clock for the whole race."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in MODULES:
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        monkeypatch.setattr(event_log, "time", lambda: self.now)
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
def test_the_winner_has_its_share_of_the_time(time, policy, pace, winner_share, path):
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


EVERY_POLICY = [policy for kind in REGISTRY.values() for policy in kind.examples()]
SIZES = [{}, {"full_steps": 50}, {"winner_share": 0.3}]


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label_of)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_policy_exceeds_the_time_by_more_than_a_pull_and_the_first_ones(time, policy, size):
    learners = {str(k): time.learner(slow_start(0.1 + 0.02 * k), 0.5 + k / 20) for k in range(8)}
    quiet(learners, seconds=10, policy=policy, **size)
    first = sum(30 * (0.1 + 0.02 * k) for k in range(8))
    assert time.now <= max(10, first) + 0.24, time.now


def test_one_learner_trained_to_its_end_ends_when_the_time_is_over(time):
    learners = {str(k): time.learner(lambda n: 0.25, 0.5 + k / 20) for k in range(8)}
    verdict = quiet(learners, seconds=10, full_steps=50, policy="asha")
    assert time.now == 10 and verdict.pulls == {"0": 40} | {str(k): 0 for k in range(1, 8)}


def plans(path):
    query = "SELECT t, value FROM changes WHERE kind = 'BudgetReplanned' ORDER BY id"
    return rows(path, query)


def test_time_between_pulls_counts_once_after_a_resume(time, path, cut):
    def slow(event, view):
        if isinstance(event, ScoreReported):
            time.now += 0.5

    learners, given = time.many(3, 0.25), {"progress": False, "callbacks": [slow]}
    cut(200, lambda: race(learners, journal=path, seconds=600, **given))
    before = len(plans(path))
    verdict = resume(path, learners, **given)
    assert time.now - 200 * 0.25 == pytest.approx(600, abs=2)  # restoring repeats 200 pulls
    assert abs(verdict.spent - 800) <= 5
    assert all(abs(total - 800) <= 5 for _, total in plans(path)[before:])


@pytest.mark.parametrize("policy", ["auto", "r-sr", "r-ucbe", "hyperband"])
@pytest.mark.parametrize("winner_share", [0.0, 0.5])
def test_a_race_that_was_killed_plans_as_if_it_had_not_been(
    time, tmp_path, cut, policy, winner_share
):
    """The lengths of pulls are binary fractions, so that sums of them do not round."""
    learners = {str(k): time.learner(binary(k), 0.5 + k / 20) for k in range(4)}
    given = {"seconds": 64, "policy": policy, "winner_share": winner_share}
    whole = quiet(learners, journal=tmp_path / "whole.db", **given)
    for at in (3, 8, 57, 100):
        path = tmp_path / f"{at}.db"
        cut(at, lambda path=path: quiet(learners, journal=path, **given))
        again = resume(path, learners, progress=False)
        assert plans(path) == plans(tmp_path / "whole.db"), at
        assert again.summary() | {"race": ""} == whole.summary() | {"race": ""}, at


def binary(k):
    return lambda n: 1.0 if n == 1 else 0.125 + 0.0625 * k


# --- several pulls at the same time ---


@dataclass(kw_only=True, eq=False, repr=False)
class SideBySide(Runner):
    """Makes pulls of several learners at the same time, each as long as `length(arm, n)` says."""

    time: Time
    lengths: Sequence[float]  # by arm; the first pull takes ten times as long
    lanes: int = 2
    in_phases = True

    def start(self, context):
        self.learners = [iter(entry.passed()) for entry in context.entries]
        self.under_way = []  # (when it ends, arm, its length)

    def work(self, orders):
        busy = {arm for _, arm, _ in self.under_way}
        for arm, order in orders.items():
            if arm not in busy and len(self.under_way) < self.lanes:
                length = self.lengths[arm] * (1 if order.done else 10)
                heapq.heappush(self.under_way, (self.time.now + length, arm, length))
        self.time.now, arm, length = heapq.heappop(self.under_way)
        yield ScoreReported(arm, next(self.learners[arm]), length)

    def save(self, pulls):
        return iter(())

    def discard(self, arm): ...

    def release(self, arm): ...

    def learner(self, arm, pulls):
        return HandedOver(None, [])


@pytest.mark.parametrize("policy", ["auto", "foresight", "r-sr", "sh", "r-ucbe"])
@pytest.mark.parametrize("full_steps", [None, 99])
@pytest.mark.parametrize("arms, lanes", [(3, 4), (12, 4)])
def test_pulls_at_the_same_time_are_planned_and_end_in_time(time, policy, full_steps, arms, lanes):
    lengths = [1.0 + 0.3 * (k % 4) for k in range(arms)]
    learners = {str(k): rising(0.5 + k / 20) for k in range(arms)}
    runner = SideBySide(time=time, lengths=lengths, lanes=lanes)
    verdict = quiet(learners, seconds=400, policy=policy, full_steps=full_steps, runner=runner)
    assert time.now <= 400 + 2 * max(lengths)
    if policy in ("auto", "r-sr") and arms > lanes:  # learners are dropped one by one
        assert (
            len({learner.departed_at for learner in verdict.learners if learner.departed_at}) >= 2
        )


# --- races in seconds know prices ---


def priced(time, prices, ends):
    """Learners with first pulls ten times as long as the others."""
    return {
        str(k): time.learner(lambda n, price=price: price * (10 if n == 1 else 1), end)
        for k, (price, end) in enumerate(zip(prices, ends, strict=True))
    }


@pytest.mark.parametrize("drops", ["worst", "waste"])
@pytest.mark.parametrize("full_steps", [None, 40])
@pytest.mark.parametrize("winner_share", [0.0, 0.25])
def test_a_race_in_seconds_that_was_killed_drops_as_if_it_had_not_been(
    time, tmp_path, cut, drops, full_steps, winner_share
):
    learners = priced(time, (0.25, 0.5, 4.0, 1.0, 0.125, 2.0), (0.5, 0.7, 0.9, 0.6, 0.8, 0.4))
    given = {
        "seconds": 256,
        "drops": drops,
        "full_steps": full_steps,
        "winner_share": winner_share,
    }
    whole = quiet(learners, journal=tmp_path / "whole.db", **given)
    ended = whole.trained.pulls == full_steps  # the winner: the rest of its share is left over
    assert (time.now >= 252 or ended) and time.now <= 260
    for at in (6, 7, 12, 30, 45, 60):
        path = tmp_path / f"{at}.db"
        cut(at, lambda path=path: quiet(learners, journal=path, **given))
        again = resume(path, learners, progress=False)
        assert plans(path) == plans(tmp_path / "whole.db"), at
        assert again.summary() | {"race": ""} == whole.summary() | {"race": ""}, at
        assert read_verdict(path).summary() == again.summary()


def test_by_waste_a_dear_learner_goes_before_a_cheap_one_that_is_worse(time):
    prices, ends = (0.25, 8.0, 0.25), (0.9, 0.6, 0.5)
    learners = {str(k): time.learner(lambda n, k=k: prices[k], ends[k]) for k in range(3)}
    given = {"seconds": 300, "full_steps": 90}
    worst, waste = (quiet(learners, drops=drops, **given).pulls for drops in ("worst", "waste"))
    assert worst["2"] <= worst["1"] and waste["2"] > waste["1"]


def test_the_leader_is_never_dropped_for_its_price(time):
    learners = priced(time, (8.0, 0.25, 0.25, 0.25), (0.9, 0.5, 0.6, 0.7))
    verdict = quiet(learners, seconds=300, full_steps=200, drops="waste")
    assert verdict.name == "0"


def test_no_learner_is_dropped_on_its_first_pull_if_the_time_pays_for_a_second(time):
    learners = priced(time, (1.0, 2.0, 3.0, 4.0), (0.5, 0.6, 0.7, 0.8))
    verdict = quiet(learners, seconds=201, full_steps=100)  # 100 s for the first sweep
    assert min(verdict.pulls.values()) == 2


def test_when_the_time_pays_for_all_trainings_all_are_trained(time):
    learners = priced(time, (0.25, 0.5, 2.0), (0.5, 0.6, 0.7))
    verdict = quiet(learners, seconds=200, full_steps=40)  # 110 s and 25 s of first pulls
    assert verdict.pulls == dict.fromkeys("012", 40)


def test_a_race_in_seconds_says_how_it_ended_in_seconds(time):
    learners = priced(time, (0.25, 0.5, 2.0), (0.5, 0.6, 0.7))
    spent = quiet(learners, seconds=100, full_steps=200)
    assert spent.reason == f"the 100 s are spent: {spent.spent} pulls"
    trained = quiet(learners, seconds=400, full_steps=40)
    assert trained.reason.startswith("every remaining learner has reached the horizon of 40 pulls")
    assert trained.reason.endswith(" of the 400 s: 120 pulls")


def test_after_the_second_sweep_it_says_what_all_trainings_and_the_plan_take(time, capsys):
    learners = priced(time, (0.25, 0.5, 2.0), (0.5, 0.6, 0.7))
    for given, own, plan in (
        ({"seconds": 200}, "2 min 14 s", "The time pays for all trainings that are left: all 3"),
        ({"seconds": 100}, "1 min 40 s", "Plan by price: both to 72 % of their training."),
        ({"trainings": 1}, "1 min 1 s", ""),
    ):
        quiet(learners, full_steps=40, progress=True, **given)
        said = capsys.readouterr().err
        assert f"Training all 3: about 2 min 14 s. This race: about {own}.\n{plan}" in said
        assert ("takes prices as equal" in said) == ("seconds" in given)


def test_a_race_with_nothing_left_to_train_has_not_missed_its_time(time):
    learners = priced(time, (0.25, 0.5, 2.0), (0.5, 0.6, 0.7))
    verdict = quiet(learners, seconds=1000, full_steps=40)
    assert time.now < 200 and not any("of its 1000 s" in text for text in verdict.warnings)


def test_a_policy_that_was_named_keeps_its_plan(time, path):
    learners = priced(time, (0.25, 0.5, 8.0), (0.5, 0.6, 0.7))
    quiet(learners, seconds=200, full_steps=40, policy="foresight", journal=path)
    events = [entry.event for entry in entries_in(path)]
    assert not any(getattr(event, "levels", ()) for event in events)


def test_waste_needs_seconds_and_auto(time):
    for wrong in ({"budget": 100}, {"seconds": 9, "policy": "r-sr"}):
        with pytest.raises(SettingError, match="drops='waste' needs seconds= and policy='auto'"):
            quiet(time.many(3), drops="waste", **wrong)


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
def test_a_finished_race_is_given_more_time_in_total(time, path, winner_share):
    learners = time.many(4)
    first = quiet(learners, seconds=300, winner_share=winner_share, journal=path)
    time.now += 10_000  # the machine was off
    verdict = resume(path, learners, seconds=900, progress=False)
    assert abs(first.spent - 300) <= 15 and abs(verdict.spent - 900) <= 45
    assert read_verdict(path).summary() == verdict.summary()
    assert any("Extending the time from 300 s to 900 s." in text for text in verdict.warnings)
    again = resume(path, learners, seconds=900, progress=False)
    assert again.summary() == verdict.summary()  # the same call again changes nothing


def test_an_unfinished_race_is_given_more_time_and_a_new_learner(time, path, cut):
    learners = time.many(4)
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
    monkeypatch.setattr(race_clock, "LEAST_GRACE", 0.05)

    def quick():
        yield 0.1, 1

    def hangs():  # its first pull begins however late it is: each learner has one
        threading.Event().wait()
        yield 0.5, 1

    verdict = quiet({"quick": quick, "hangs": hangs}, seconds=0.2, runner="isolated")
    assert verdict.over and verdict["quick"].pulls == 1 and verdict["hangs"].pulls == 0
    assert any("hangs failed" in text and "still running" in text for text in verdict.warnings)


@pytest.mark.parametrize(
    ("budget", "seconds", "said"),
    [(None, 60.0, "12.3 of 60 s (pull 0)"), (60, None, "pull 0 of 60")],
)
def test_progress_is_told_in_the_unit_of_the_budget(budget, seconds, said):
    settings = Settings(make_policy("foresight"), budget, seconds)
    state = RaceState(Created("race", settings.as_dict(), ("a", "b")))
    assert state.progress(elapsed=12.34) == said
