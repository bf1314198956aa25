"""Budgets as large as they may be: sessions cost what was pulled, not what may be."""

import pickle

import pytest

from latebloomer import ExploreThenCommit, RisingSR
from latebloomer.errors import MOST, ChunkError
from latebloomer.policies.base import most_pulls
from latebloomer.policies.registry import REGISTRY
from latebloomer.session.events import FAILED, FINISHED, LearnerLeft
from latebloomer.session.session import Session

POLICIES = [policy for kind in REGISTRY.values() for policy in kind.examples()]
HORIZONS = [None, 1000, MOST // 3]
MEGABYTE = 2**20


def played(policy, horizon=None, budget=MOST, pulls=60):
    session = Session(policy, 3, budget, horizon)
    for k in range(pulls):
        session.tell(session.ask(), 0.1 * k)
    return session


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_plan_costs_its_phases_and_a_session_what_was_pulled(policy, horizon, peak_bytes):
    def planned():
        policy.settings(3, MOST, horizon or MOST)
        return str(policy.describe(3, MOST, horizon)), most_pulls(policy, 3, MOST, horizon or MOST)

    def raced():
        session = played(policy, horizon)
        assert pickle.loads(pickle.dumps(session)) == session
        session.recommend(), session.standings(), session.certificate(noise=0.1)
        # All leave: no sweep is gone through for arms that take no pulls, of which 2^51 are left.
        for arm in range(3):
            session.apply(LearnerLeft(arm, FINISHED if session.pulls[arm] else FAILED))
        assert session.over and session.spent == 60

    assert max(peak_bytes(planned), peak_bytes(raced)) < MEGABYTE


def test_a_fit_goes_no_further_than_half_of_the_budget():
    # With a width of 0 the second sweep commits, and 8 more sweeps go to one arm. The fit is to
    # the first min(10 // 2, horizon) rewards all the same.
    session = played(ExploreThenCommit(width_scale=0.0), budget=12, pulls=10)
    assert max(session.pulls) > 5
    settings = ExploreThenCommit().settings(3, 12, 12)
    assert settings.longest == 6 and settings.powers.last == 6


def test_more_arms_than_memory_holds_are_refused_in_words():
    for make in (lambda: Session("r-sr", MOST // 2, MOST), lambda: RisingSR().plan(10**15, MOST)):
        with pytest.raises(ChunkError, match=r"takes [0-9,]+ bytes, but [0-9,]+ are free"):
            make()
