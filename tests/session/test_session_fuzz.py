"""Random settings, rewards and calls: nothing but our errors, and never more than the budget."""

import pickle
from collections import Counter
from math import isfinite
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latebloomer as lb
from latebloomer.policies.registry import REGISTRY
from latebloomer.session.session import Session
from tests.helpers.session_fuzz import fuzz_sessions

windows = st.sampled_from([0.1, 0.25, 1 / 3, 0.5]) | st.floats(0.08, 0.5)
sizes = st.sampled_from([0, 1e-5, 1e-3, 1, 1e6]) | st.floats(0, 10)
power_law = {"rho": st.floats(0.05, 0.95), "largest_alpha": sizes, "width_scale": sizes}
SETTINGS = {
    "r-ucbe": st.builds(
        lb.RisingUCBE,
        exploration=st.just("theory") | sizes,
        noise=st.none() | sizes,
        window=windows,
        recommend=st.sampled_from(["estimate", "bound", "pulls"]),
        delta=st.floats(0.001, 0.999),
    ),
    "r-sr": st.builds(
        lb.RisingSR, window=windows, leftover=st.sampled_from(["survivor", "unspent"])
    ),
    "rr-sw": st.builds(lb.RoundRobinWindow, window=windows),
    "ucb-e": st.builds(lb.UCBE, exploration=sizes),
    "etc": st.builds(lb.ExploreThenCommit, **power_law),
    "rest-sure": st.builds(lb.RestSure, **power_law),
    "sh": st.builds(
        lb.SuccessiveHalving, judge=st.sampled_from(["latest", "window"]), window=windows
    ),
    "adaptive-rejects": st.builds(
        lb.AdaptiveRejects, power=st.floats(0, 4), shortest=st.floats(0, 0.5)
    ),
    "foresight": st.builds(lb.Foresight, power=st.none() | st.floats(0, 4)),
    "asha": st.builds(
        lb.ASHA, eta=st.integers(2, 5), grace=st.integers(1, 5), workers=st.integers(1, 5)
    ),
    "hyperband": st.builds(lb.Hyperband, eta=st.integers(2, 5)),
}
POLICIES = {name: st.sampled_from(kind.examples()) for name, kind in REGISTRY.items()} | SETTINGS

QUICK = ("r-sr", "foresight", "r-ucbe", "rest-sure", "prob-1")  # one of each kind

# Both sides of the tournament's blocks of 16 arms; 300 needs a third level.
arm_counts = st.integers(2, 20) | st.integers(2, 5) | st.integers(17, 20) | st.just(300)
rewards = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-1e100, 1e100)
noise_levels = st.none() | st.floats(0, 1)


def test_random_calls_of_all_kinds_meet_nothing_but_our_errors():
    """A short `make fuzz`: arguments that make no sense, events, replays and pickles."""
    assert fuzz_sessions(calls=20_000, seed=0)["checked unchanged"] > 30


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in POLICIES],
)
@settings(max_examples=12)
@given(data=st.data(), arms=arm_counts, extra=st.integers(0, 60), seed=st.integers(0, 99))
def test_at_every_moment_counts_agree_and_the_best_racing_arm_is_recommended(
    name, data, arms, extra, seed
):
    policy, random, told = data.draw(POLICIES[name]), Random(seed), []
    budget = policy.smallest_budget(arms)[0] + extra
    horizon = data.draw(st.none() | st.integers(1, 12) | st.integers(1, 2 * budget))
    session = Session(policy, arms, budget, horizon, seed)
    while phase := session.ask_phase(data.draw(st.integers(1, 400))):
        need_due(session, phase)
        order = list(Counter(phase).elements())
        random.shuffle(order)
        fixed = data.draw(st.none() | rewards)
        for arm in order[: 1 + round(random.random() * len(order))]:
            told.append((arm, random.gauss(arm / 10, 1) if fixed is None else fixed))
            session.tell(*told[-1])
        need_counts(session, told)
        need_verdict(session, data.draw(noise_levels))
        session = pickle.loads(pickle.dumps(session))
    racing = [row for row in session.standings() if row.departed_at is None]
    ended = "spent" if session.spent == session.budget else "left over"
    assert session.over and ended in session.reason and racing
    assert session.replay(session.history) == session


def need_due(session, phase):
    assert session.ask() in phase
    assert sum(phase.values()) <= session.budget - session.spent
    assert all(session.pulls[arm] + more <= session.horizon for arm, more in phase.items())


def need_counts(session, told):
    assert session.history == told
    assert sum(session.pulls) == session.spent == len(told) <= session.budget
    assert max(session.pulls) <= session.horizon
    for arm in (0, len(session.names) - 1):
        assert session.scores(arm) == [x for i, x in told if i == arm]


def need_verdict(session, noise):
    rows, why, verdict = session.standings(), session.explain(1), session.recommend()
    assert sorted(row.arm for row in rows) == list(range(len(session.names)))
    assert (why.state in ("dropped", "failed")) == (why.departed_at is not None) and why in rows
    racing = {row.arm for row in rows if row.departed_at is None}
    assert verdict.arm in racing and verdict.pulls[verdict.arm] > 0
    assert isfinite(verdict.estimates[verdict.arm])
    tried = [x for i, x in enumerate(verdict.estimates) if i in racing and x == x]
    assert verdict.estimates[verdict.arm] == max(tried)
    if noise is not None or max(session.pulls) >= 3:
        assert len(session.certificate(noise).lower) == len(rows)
