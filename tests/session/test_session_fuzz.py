"""Random legal and illegal calls: nothing but our errors, and never more than the budget."""

import pickle
from collections import Counter
from math import inf, isfinite, nan
from random import Random

import pytest
from hypothesis import HealthCheck, settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import latebloomer as lb
from latebloomer import errors
from latebloomer.policies.registry import REGISTRY
from latebloomer.session.session import Session

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

# Both sides of the tournament's blocks of 16 arms; 300 needs a third level.
arm_counts = st.integers(2, 20) | st.integers(2, 5) | st.integers(17, 20) | st.just(300)
rewards = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-1e100, 1e100)
bad_rewards = st.sampled_from([nan, inf, -inf, 1e101, -1e300, 10**400, None, "1", 1j, [1.0], {}])
bad_arms = st.sampled_from([-1, 300, 10**30, True, 1.0, None, "x", b"0", (0,)])
bad_batches = st.sampled_from([0, -1, 1.5, None, "2", 10**400])


class Calls(RuleBasedStateMachine):
    """One session and whatever may happen to it."""

    policies = st.one_of(*POLICIES.values())

    @initialize(data=st.data(), arms=arm_counts, extra=st.integers(0, 60), seed=st.integers(0, 9))
    def begin(self, data, arms, extra, seed):
        policy = data.draw(self.policies)
        budget = policy.smallest_budget(arms)[0] + extra
        horizon = data.draw(st.none() | st.integers(1, 12) | st.integers(1, 2 * budget))
        self.session = Session(policy, arms, budget, horizon, seed)
        self.told: list[tuple[int, float]] = []

    # --- legal calls ---

    def tell(self, arm, reward):
        self.session.tell(arm, reward)
        self.told.append((arm, reward))

    @rule(reward=rewards, times=st.integers(1, 30))
    def ask_and_tell(self, reward, times):
        for _ in range(times):
            if not self.session.over:
                self.tell(self.session.ask(), reward)

    @rule(batch=st.integers(1, 400), share=st.floats(0, 1), seed=st.integers(0, 99))
    def tell_some_of_a_phase_in_any_order(self, batch, share, seed):
        phase, random = self.session.ask_phase(batch), Random(seed)
        assert (not phase) == self.session.over
        order = list(Counter(phase).elements())
        random.shuffle(order)
        for arm in order[: round(share * len(order))]:
            self.tell(arm, random.gauss(arm / 10, 1))

    @rule()
    def hand_on_by_pickle(self):
        again = pickle.loads(pickle.dumps(self.session))
        assert again == self.session
        self.session = again

    @rule()
    def replay(self):
        again = self.session.replay(self.session.history)
        assert again == self.session
        self.session = again

    @rule(arm=st.integers(0, 1), noise=st.none() | st.floats(0, 1))
    def read_verdict(self, arm, noise):
        before = pickle.dumps(self.session)
        rows, why = self.session.standings(), self.session.explain(arm)
        assert sorted(row.arm for row in rows) == list(range(len(self.session.names)))
        assert (why.state in ("dropped", "failed")) == (why.left_at is not None) and why in rows
        enough = noise is not None or max(self.session.pulls) >= 3
        if enough:
            assert len(self.session.certificate(noise).lower) == len(rows)
        else:
            self.refused(errors.SettingError, self.session.certificate, noise)
        assert pickle.loads(before) == self.session

    # --- illegal calls ---

    def refused(self, error: type[errors.LatebloomerError], call, *given):
        before = pickle.dumps(self.session)
        with pytest.raises(error):
            call(*given)
        assert self.session == pickle.loads(before), f"{call.__name__} failed and left a trace"

    @rule(data=st.data(), reward=bad_rewards)
    def tell_what_is_no_reward(self, data, reward):
        arm = data.draw(st.integers(0, len(self.session.names) - 1))
        self.refused(errors.RewardError, self.session.tell, arm, reward)

    @rule(arm=bad_arms, reward=rewards)
    def tell_what_is_no_arm(self, arm, reward):
        self.refused(errors.ArmError, self.session.tell, arm, reward)
        self.refused(errors.ArmError, self.session.explain, arm)

    @rule(data=st.data(), reward=rewards)
    def tell_what_was_not_handed_out(self, data, reward):
        others = sorted(set(range(len(self.session.names))) - set(self.session.ask_phase()))
        if others:
            other = data.draw(st.sampled_from(others))
            self.refused(errors.TellError, self.session.tell, other, reward)

    @rule(batch=bad_batches)
    def ask_for_a_bad_batch(self, batch):
        self.refused(errors.SettingError, self.session.ask_phase, batch)

    @precondition(lambda self: self.session.over)
    @rule()
    def ask_after_the_end(self):
        self.refused(errors.TellError, self.session.ask)

    @precondition(lambda self: self.session.spent == 0)
    @rule()
    def recommend_before_the_first_reward(self):
        self.refused(errors.NoScoresYet, self.session.recommend)

    # --- what holds at every moment ---

    @invariant()
    def counts_agree(self):
        session = self.session
        assert session.history == self.told
        assert sum(session.pulls) == session.spent == len(self.told) <= session.budget
        assert max(session.pulls) <= session.horizon
        for arm in (0, len(session.names) - 1):
            assert session.scores(arm) == [x for i, x in self.told if i == arm]

    @invariant()
    def a_racing_arm_is_recommended(self):
        if self.session.spent:
            verdict = self.session.recommend()
            racing = {row.arm for row in self.session.standings() if row.left_at is None}
            assert verdict.arm in racing and verdict.pulls[verdict.arm] > 0
            assert isfinite(verdict.estimates[verdict.arm])
            tried = [x for i, x in enumerate(verdict.estimates) if i in racing and x == x]
            assert verdict.estimates[verdict.arm] == max(tried)

    @invariant()
    def it_is_over_or_somebody_is_due(self):
        session = self.session
        if session.over:
            assert session.ask_phase() == {}
            racing = [row for row in session.standings() if row.left_at is None]
            ended = "spent" if session.spent == session.budget else "left over"
            assert ended in session.reason and racing
        else:
            phase = session.ask_phase()
            assert session.ask() in phase
            assert sum(phase.values()) <= session.budget - session.spent
            assert all(session.pulls[arm] + more <= session.horizon for arm, more in phase.items())

    def teardown(self):
        """However it went so far, the session can be brought to its end, and no further."""
        session = self.session
        while not session.over:
            self.tell(session.ask(), 0.25 * (session.spent % 5))
        self.counts_agree()
        self.a_racing_arm_is_recommended()
        self.it_is_over_or_somebody_is_due()
        assert session.replay(session.history) == session


QUICK = ("r-sr", "foresight", "r-ucbe", "rest-sure", "prob-1")  # one of each kind


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in POLICIES],
)
def test_random_calls_meet_nothing_but_our_errors(name):
    machine = type(f"Calls_{name}", (Calls,), {"policies": POLICIES[name]})
    how = settings(max_examples=12, stateful_step_count=20, suppress_health_check=[*HealthCheck])
    stateful.run_state_machine_as_test(machine, settings=how)
