"""Stop when sure: the race ends once its winner is certified, and not more often than it says."""

from itertools import islice, pairwise

import numpy as np
import pytest
from scipy import stats

from latebloomer import Session, race, read_verdict, resume
from latebloomer.errors import SettingError
from latebloomer.policies.registry import make_policy
from latebloomer.racing.early_stop import EarlyStop, certificate_of, looks
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Stopped
from latebloomer.theory.curve_tests import BENDS_UP, FALLS, PLATEAU, Finding
from tests.helpers.learners import curve

CLEAR = {"a": curve(3, 0.5, 0.01), "b": curve(3, 0.9, 0.01), "c": curve(2, 0.4, 0.01)}
CLOSE = {"a": curve(3, 0.5, 0.3), "b": curve(3, 0.5, 0.3)}


def run(learners=CLEAR, budget=2000, journal=None, **settings):
    settings = {"stop": "certified"} | settings
    return race(learners, budget, journal=journal, progress=False, **settings)


@pytest.mark.parametrize("policy", ["auto", "r-sr", "r-ucbe", "sh"])
def test_a_clear_race_ends_when_its_winner_is_certified(policy):
    verdict, whole = run(policy=policy), run(policy=policy, stop=None)
    assert verdict.name == whole.name == "b" and verdict.over
    assert verdict.certified and "b will stay ahead at 2,000 pulls (95 %" in verdict.certificate
    assert verdict.spent + verdict.unspent == 2000 and verdict.unspent > 200
    assert verdict.reason == (
        f"stopped after {verdict.spent:,} of 2,000 pulls: b is certified the best, "
        f"{verdict.unspent:,} of 2,000 pulls were not needed"
    )
    assert verdict.reason[1:] in verdict.details() and verdict.reason[1:] in str(verdict)
    assert f'"unspent": {verdict.unspent}' in verdict.to_json()
    assert whole.spent + whole.unspent == 2000 and whole.unspent < 5


def fails_after_two(seed):
    yield 0.3
    yield 0.35
    raise RuntimeError("boom")


def test_a_learner_that_failed_cannot_be_kept_so_the_winner_is_not_compared_with_it():
    verdict = run(CLEAR | {"broken": fails_after_two})
    assert verdict["broken"].state == "failed" and verdict.certified
    assert "ahead of a" in verdict.certificate or "ahead of c" in verdict.certificate
    assert verdict.certificate.endswith("; broken failed and cannot be kept")


def test_who_is_left_alone_is_compared_with_nobody():
    verdict = run({"a": CLEAR["a"], "broken": fails_after_two}, 40)
    assert verdict.name == "a" and not verdict.certified
    assert verdict.certificate == "there is no proof: no other learner is left to compare a with"


def test_a_close_race_takes_its_whole_budget():
    verdict = run(CLOSE, 300)
    assert (verdict.spent, verdict.unspent, verdict.certified) == (300, 0, False)


def test_it_ends_at_a_look_and_looks_are_fixed_beforehand():
    assert run().spent in set(islice(looks(arms=3), 100))
    counts = list(islice(looks(arms=3), 100))
    assert counts[0] == 9
    assert all(a < b <= max(a + 1, np.ceil(1.1 * a)) for a, b in pairwise(counts))


@pytest.mark.parametrize("before", [0, 1, 50])
def test_a_race_that_was_cut_ends_where_it_would_have(tmp_path, cut, before):
    whole = run()  # cut at its last pull, the look itself has not been written
    cut(whole.spent - before, lambda: run(journal=tmp_path / "race.db"))
    assert resume(tmp_path / "race.db", CLEAR, progress=False).summary() == whole.summary()
    assert read_verdict(tmp_path / "race.db").summary() == whole.summary()


def test_the_winner_is_trained_on_with_what_was_set_aside(tmp_path, cut):
    verdict = run(winner_share=0.3, journal=tmp_path / "race.db")
    assert verdict.trained.pulls_after_selection == 600
    assert verdict.selected.at == verdict.spent - 600
    assert verdict.unspent == 2000 - verdict.spent > 0
    assert f"{verdict.unspent:,} of 2,000 were not needed" in verdict.reason
    assert read_verdict(tmp_path / "race.db").summary() == verdict.summary()
    for pulls in (verdict.selected.at, verdict.selected.at + 100):
        path = tmp_path / f"{pulls}.db"
        cut(pulls, lambda path=path: run(winner_share=0.3, journal=path))
        assert resume(path, CLEAR, progress=False).summary() == verdict.summary()


def test_by_the_clock_the_time_is_reported():
    slow = {name: curve(1, best, 1e-4) for name, best in (("a", 0.9), ("b", 0.1))}
    for horizon in (None, 200):
        verdict = run(slow, None, seconds=600, horizon=horizon, callbacks=[end_at(2000)])
        if horizon is not None:
            assert "a is certified the best, " in verdict.reason
            assert verdict.reason.endswith(" s of 600 were not needed") and verdict.certified
        assert verdict.unspent == 0  # there are no pulls to count


def end_at(pulls):
    def end(event, view):
        if view.spent >= pulls:
            view.stop("enough")

    return end


@pytest.mark.parametrize("kind, goes_on", [(FALLS, True), (BENDS_UP, True), (PLATEAU, False)])
def test_curves_that_contradict_the_assumptions_stop_no_race(monkeypatch, kind, goes_on):
    found = (Finding("a", kind, 1, 20, 0.1, 5.0),)
    monkeypatch.setattr("latebloomer.racing.early_stop.check_curves", lambda *_: found)
    assert (run().unspent == 0) is goes_on


@pytest.mark.parametrize("stop", ["sure", "", True, 0.95])
def test_nonsense_is_refused_before_anything_is_made(tmp_path, stop):
    with pytest.raises(SettingError, match=r"stop=.*, but stop must be 'certified', or None"):
        run(stop=stop, journal=tmp_path / "race.db")
    assert list(tmp_path.iterdir()) == []


def stopped_races(rng, runs, budget=150, noise=0.1, policy="r-sr"):
    """Races between two learners that are equally good: whoever is certified, it is false."""
    settings = Settings(policy=make_policy(policy), budget=budget, stop="certified")
    wrong = 0
    for _ in range(runs):
        session = Session(settings.policy, ["a", "b"], budget)
        rule, reason = EarlyStop(session), None
        while not session.over and reason is None:
            arm = session.ask()
            n = session.pulls_of(arm) + 1
            session.tell(arm, n / (n + 3) + noise * rng.normal())
            reason = rule.reason(settings, 0.0)
        if reason is not None:
            session.apply(Stopped(reason, final=True))
        proof = certificate_of(session, settings)
        wrong += proof.certified(session.best_arm)
    return wrong


def test_of_equal_learners_none_is_certified_more_often_than_claimed(rng):
    """Claim: at most 5 % over all looks together. A true claim fails this once in a million."""
    runs, delta = 200, 0.05
    wrong, limit = stopped_races(rng, runs), stats.binom.isf(1e-6, runs, delta)
    assert wrong <= limit, f"{wrong} of {runs} certified; {delta:.0%} gives over {limit:.0f}"


def told(verdict, upto):
    """A session of the same budget that was told the first pulls of a race."""
    session = Session(make_policy("foresight"), list(CLEAR), 2000)
    for arm, score in zip(verdict.history.arms[:upto], verdict.history.scores[:upto], strict=True):
        session.tell(int(arm), float(score))
    return session


def test_by_the_clock_each_look_has_a_share_of_its_own():
    session = told(run(stop=None), 300)
    timed = Settings(policy=session.policy, budget=None, seconds=60, stop="certified")
    proof, once = certificate_of(session, timed), session.certificate()
    number = sum(count <= 299 for count in islice(looks(arms=3), 100)) + 1
    share = session.certificate(delta=0.05 / (number * (number + 1)))
    assert (proof.upper == share.upper).all() and (proof.lower == share.lower).all()
    assert (proof.upper - proof.lower > once.upper - once.lower).all() and proof.delta == 0.05


def test_the_intervals_of_an_early_end_are_those_of_the_whole_budget():
    verdict = run()
    narrow = told(verdict, verdict.spent).certificate(budget=verdict.spent)
    assert all(arm.upper - arm.lower > width for arm, width in
               zip(verdict.learners, narrow.upper - narrow.lower, strict=True))  # fmt: skip


def test_a_callback_that_stops_does_not_make_the_certificate_narrower():
    stopped = run(stop=None, callbacks=[end_at(300)], score_range=(-99, 99))
    running = told(stopped, 300).certificate()
    assert stopped.spent == 300
    assert [arm.lower for arm in stopped.learners] == running.lower.tolist()
    assert [arm.upper for arm in stopped.learners] == running.upper.tolist()
