"""What every policy owes its users, and what the papers say each one does.

A new policy is tested by being registered, with the settings that its `examples` name.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import latebloomer as lb
from latebloomer.citation import cite
from latebloomer.core.kernel import cpu_jit, kernel
from latebloomer.core.ledger import ANY, OVER
from latebloomer.core.run_memory import REWARDS, Memory
from latebloomer.errors import ContractError, SettingError
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import POLICIES as LISTED
from latebloomer.policies.registry import REGISTRY, check_name, make_policy
from latebloomer.policies.window_ratings import ByAllSamples
from latebloomer.problems import problem
from latebloomer.session.policy_checks import (
    check_policy,
    played,
    policy_checks,
    rising_rewards,
)
from latebloomer.session.session import Session
from latebloomer.theory import rising_sr_bounds as rising_sr
from tests.helpers.played_policies import asked, play

POLICIES = [policy for kind in REGISTRY.values() for policy in kind.examples()]
COMPILED = cpu_jit()
# One of each kind of kernels is compiled in `make test`, the others in `make test-all`.
FAMILIES = ("r-sr", "foresight", "r-ucbe", "rest-sure", "prob-1")
FIRST = [make_policy(name) for name in FAMILIES]
policies = pytest.mark.parametrize("policy", POLICIES, ids=repr)
compiled_policies = pytest.mark.parametrize(
    "policy",
    [pytest.param(one, marks=[] if one in FIRST else pytest.mark.slow) for one in POLICIES],
    ids=repr,
)


@pytest.mark.parametrize(
    ("policy", "check"),
    [
        pytest.param(policy, check, id=f"{policy!r}-{check.name}")
        for policy in POLICIES
        for check in policy_checks(policy)
        if check.name != "compiled_picks"
    ],
)
def test_the_contract_is_kept(policy, check):
    check.run(policy, 0)


def test_each_promise_of_a_policy_is_a_check_with_a_name():
    usual = ["plan_fits", "horizon_holds", "replay_is_equal", "pickle_continues", "any_order"]
    usual += ["replan_keeps_cells", "share_is_rated", "compiled_picks"]
    assert [check.name for check in policy_checks(lb.Foresight())] == usual
    assert check_policy(lb.RisingSR()) == [*usual, "redrawn_picks"]


def broken_checks(policy):
    """The names of the checks that a policy breaks, with what they say."""
    with pytest.raises(ContractError) as error:
        check_policy(policy)
    _, *broken = str(error.value).split("\n- ")
    return dict(line.split(": ", 1) for line in broken)


@dataclass(frozen=True)
class ReadsRows(ByAllSamples):
    """The mean of all rewards, by the sum in an arm's row: right in a session and compiled."""

    name: ClassVar[str] = "reads-rows"

    def levels(self, arms, budget, horizon):
        return [(arms, budget // (2 * arms)), (1, budget // 2)]

    def smallest_budget(self, arms):
        return 2 * arms, "one pull of each arm with half of the budget"

    @kernel
    def rating(self, ledger, i, horizon):
        return ledger.S[i][2 * ledger.n[i]] / ledger.n[i]


def test_a_policy_that_reads_the_rows_of_the_ledger_fails_where_a_gpu_redraws_them():
    broken = broken_checks(ReadsRows())
    assert list(broken) == ["redrawn_picks"]
    assert "a GPU, which draws past rewards again," in broken["redrawn_picks"]


@dataclass(frozen=True)
class Stays(Policy):
    """Chooses the arm with the lowest reward once, notes that in a cell, and stays with it."""

    name: ClassVar[str] = "stays"
    memory: ClassVar[Memory] = Memory(REWARDS, arm=("chosen",), kept=("chosen",))

    def levels(self, arms, budget, horizon):
        return [(arms, 1), (ANY, horizon)]

    @kernel
    def rating(self, ledger, i, horizon):
        return ledger.last[i]

    @kernel
    def pick(self, ledger, pulled, horizon, seed, run):
        lowest = 0
        for i in range(len(ledger.n)):
            if ledger.arm[i][0] == 1.0:
                return i if ledger.n[i] < horizon else OVER
            if ledger.last[i] < ledger.last[lowest]:
                lowest = i
        ledger.arm[lowest][0] = 1.0
        return lowest


@dataclass(frozen=True)
class Forgets(Stays):
    """The same, but the choice does not survive a new plan."""

    name: ClassVar[str] = "forgets"
    memory: ClassVar[Memory] = Memory(REWARDS, arm=("chosen",))


def test_a_cell_that_rewards_do_not_determine_must_be_kept_by_a_new_plan():
    assert "replan_keeps_cells" in check_policy(Stays())
    broken = broken_checks(Forgets())
    assert list(broken) == ["replan_keeps_cells"]
    assert "in the `kept` of its memory" in broken["replan_keeps_cells"]


def test_a_setting_with_the_name_of_a_method_of_the_contract_is_an_error():
    body = {"__annotations__": {"plan": float}, "plan": 0.5}
    with pytest.raises(ContractError, match=r"Mine\.plan is a setting, but Policy\.plan is a"):
        type("Mine", (Policy,), body)


def test_cells_have_names_of_their_own():
    with pytest.raises(ContractError, match="names a cell twice"):
        Memory(REWARDS, run=("trust", "trust"))
    with pytest.raises(ContractError, match="'turn', which is not a cell of an arm"):
        Memory(REWARDS, arm=("state",), kept=("turn",))


@compiled_policies
def test_compiled_code_pulls_the_same_arms(policy, rng):
    (compiled,) = (check for check in policy_checks(policy) if check.name == "compiled_picks")
    compiled.run(policy, 0)
    cases = [(2, 90, 90), (5, 400, 400), (5, 400, 37), (20, 700, 700), (40, 900, 2000)]
    for arms, budget, horizon in cases:
        rewards = rising_rewards(rng, arms, max(budget, horizon))
        rewards[:, ::7] = np.round(rewards[:, ::7], 1)  # and ties
        session = play(policy, rewards, budget, horizon)
        arm, path = played(session, rewards, COMPILED)
        assert path == asked(session)
        assert arm == session.recommend().arm


RUN = """
from latebloomer import simulate
from latebloomer.problems import Problem

def run(policy, noise):
    curves = Problem([[0.2] * 20, [0.8] * 20], noise=noise)
    found = simulate(curves, policy, [8, 16], 2, method="pulls", progress=False)
    assert [cell.errors for cell in found.cells] == [0, 0]
"""
OWN = """
from dataclasses import dataclass
from latebloomer.core.kernel import kernel
from latebloomer.core.random import uniform
from latebloomer.policies.window_ratings import ByAllSamples
from latebloomer.problems import Noise

@dataclass(frozen=True)
class Own(ByAllSamples):
    speed: float = 1.0

    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]

@dataclass(frozen=True)
class Uniform(Noise):
    wide: float = 0.1

    @kernel
    def reward(self, mean, seed, run, arm, pull):
        return mean + self.wide * (uniform(seed, run, arm, pull) - 0.5)
"""
MINE = """
import sys
sys.path.append({folder!r})
import own
run(own.Own(), own.Uniform())
"""
THEIRS = """
from latebloomer.problems import Residuals
run("rr", Residuals([-0.1, 0.1]))
"""


def test_what_one_process_defines_does_not_spoil_the_compiled_code_of_another(tmp_path):
    """numba's cache names types by module: what others lack must not stand in shared files."""
    (tmp_path / "own.py").write_text(OWN)
    cache = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for code in (RUN + MINE.format(folder=str(tmp_path)), RUN + THEIRS):
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=cache
        )
        assert ran.returncode == 0, ran.stderr


def test_a_policy_derived_from_another_has_the_settings_of_both():
    """The parent was used before, so its numbers exist."""
    lb.Session(lb.AdaptiveRejects(), 2, 20)

    @dataclass(frozen=True)
    class Pessimist(lb.AdaptiveRejects):
        doubt: float = 5.0

        @kernel
        def final_rating(self, ledger, i, budget, horizon):
            return ledger.rating[i] - self.doubt

    session = lb.Session(Pessimist(), 2, 20)
    session.tell(session.ask(), 0.5)
    assert Pessimist.Numbers._fields == ("power", "shortest", "doubt")
    assert session.recommend().arm == 0


def test_a_number_that_a_parent_does_not_hand_on_is_an_error_that_names_it():
    @dataclass(frozen=True)
    class Generous(lb.RisingSR):
        bonus: float = 5.0

        @kernel
        def rating(self, ledger, i, horizon):
            return self.bonus

    text = "Generous.rating reads self.bonus, but .* ByWindow.settings returns: window. Let Gen"
    for call in (lb.Session, lambda *words: lb.simulate("paper-a", words[:1], 200, runs=2)):
        with pytest.raises(ContractError, match=text):
            call(Generous(), 2, 20)


BAD = """
r-ucbe:noise=-1 r-sr:window=0 r-sr:leftover=spent rr-sw:window=1 ucb-e:exploration=inf
sh:window=nan sh:judge=mean etc:rho=0 etc:largest_alpha=-1 etc:width_scale=nan rest-sure:rho=1
rest-sure:largest_alpha=inf rest-sure:width_scale=-1
foresight:power=-1 foresight:power=11 foresight:power=steep foresight:power=nan
adaptive-rejects:power=-1 adaptive-rejects:shortest=0.6 adaptive-rejects:shortest=none
asha:eta=1 asha:grace=0 asha:workers=0 hyperband:eta=1.5 i-epoch:i=0 i-epoch:i=1.5
rising-bandits:span=0 max-ucb:alpha=-1 ptrr:alpha=0 ptrr:alpha=1.5 hybrid:best=inf hybrid:alpha=x
"""


@pytest.mark.parametrize("text", BAD.split())
def test_settings_outside_their_range_are_errors(text):
    with pytest.raises(SettingError, match=f"{re.split('[:=]', text)[1]}=.*, but .* must be"):
        make_policy(text)


@policies
@given(arms=st.integers(2, 30), spare=st.integers(0, 300), share=st.floats(0.01, 1.5))
def test_a_description_accounts_for_every_pull(policy, arms, spare, share):
    budget = policy.smallest_budget(arms)[0] + spare
    text = policy.describe(arms, budget, max(1, int(share * budget)))
    assert sum(phase.pulls for phase in text.phases) + text.unspent == budget
    assert str(budget) in str(text) and str(text.advised_budget) in str(text)


def test_rising_sr_judges_the_window_and_sr_all_samples():
    # Both drop one of two arms at N_1 = 8 pulls each (T = 18: ceil(16 / (1 * 2)) = 8). The late
    # bloomer's last two rewards are best, its mean is worst.
    rewards = [[0.5] * 18, [0.0] * 6 + [0.9] * 12]
    kept = [
        play(kind(), rewards, 18).recommend().arm for kind in (lb.RisingSR, lb.SuccessiveRejects)
    ]
    assert kept == [1, 0]


def test_the_pulls_left_after_rising_srs_last_phase_go_to_the_survivor_or_nowhere():
    # log_bar(5) = 107/60 and 95 * 60/107 = 53.27: over 5, 4, 3, 2 survivors 10.7, 13.3, 17.8, 26.6
    plan = lb.RisingSR().plan(5, 100)
    assert (plan.keep.tolist(), plan.upto.tolist()) == ([5, 4, 3, 2, 1], [11, 14, 18, 27, 100])
    rewards = [[0.1] * 12, [0.2] * 12, [0.3] * 12]
    assert play(lb.RisingSR(), rewards, 12).pulls == (3, 4, 5)
    assert play(lb.RisingSR(leftover="unspent"), rewards, 12).pulls == (3, 4, 4)


@given(st.integers(2, 60), st.integers(0, 5000))
def test_rising_srs_phases_never_overspend_and_leave_at_most_one_pull_per_arm(arms, spare):
    text = lb.RisingSR(leftover="unspent").describe(arms, arms + 1 + spare)
    assert 0 <= text.unspent <= arms


def test_rising_srs_first_window_needs_the_budget_of_the_notes():
    # T > K (1 + 3 log_bar K) for eps = 1/4: 32 pulls for K = 5, 650 for K = 50.
    for arms, advised in ((2, 9), (5, 32), (50, 650)):
        budget = lb.RisingSR().advised_budget(arms)[0]
        assert budget == advised and lb.RisingSR().plan(arms, budget).upto[0] == 4
        assert lb.RisingSR().plan(arms, budget - 1).upto[0] == 3


def test_rising_sr_errs_no_more_often_than_its_bound(rng):
    # Stationary arms keep Eq. (timeBudgetLBSR2); gaps .3 and .5, sigma .3, T = 600.
    # H_2 = max(2/.09, 3/.25) = 22.2; the bound is 3 exp(-.25/(8 .09) 597/(4/3 22.2)) = .0027.
    mean, noise, budget, runs = np.array([0.2, 0.4, 0.7]), 0.3, 600, 4000
    claim = rising_sr.error_right_side(mean.max() - mean, budget, noise, window=0.25)
    assert claim == pytest.approx(0.0027, abs=1e-4)
    like, wrong = Session(lb.RisingSR(), 3, budget), 0
    for _ in range(runs):
        rewards = mean[:, None] + noise * rng.standard_normal((3, budget))
        wrong += played(like, rewards, COMPILED)[0] != 2
    limit = stats.binom.isf(1e-6, runs, claim)
    assert wrong <= limit, f"{wrong} of {runs}; {claim:.2%} gives more than {limit} once in 10^6"


def test_rising_ucbe_picks_by_bounds_worked_by_hand():
    # T = 20, sigma = .1, a = 4. After the warm-up n = 4, h = 1 and the bonus is
    # .1 (20-4+1-1) sqrt(4) = 3.2 for both arms; the projections are X_4 + 16 (X_4 - X_3):
    # arm 0: .4 + 16 * .1 = 2.0, arm 1: .5 + 16 * .05 = 1.3. So arm 0 is next.
    # With its fifth reward .45 it projects .45 + 15 * .05 = 1.2, bonus .1 * 15 * 2 = 3.0: 4.2,
    # below arm 1's 4.5.
    rewards = [[0.1, 0.2, 0.3, 0.4, 0.45, 0.5], [0.35, 0.4, 0.45, 0.5, 0.5, 0.5]]
    policy = lb.RisingUCBE(exploration=4.0, noise=0.1)
    assert asked(play(policy, rewards, 20, pulls=10)) == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    session = play(policy, rewards, 20, pulls=9)
    assert session.recommend().estimates == pytest.approx((1.2, 1.3))
    bound = Session(lb.RisingUCBE(exploration=4.0, noise=0.1, recommend="bound"), 2, 20)
    assert bound.replay(session.history).recommend().estimates == pytest.approx((4.2, 4.5))


def test_rising_ucbe_estimates_the_noise_it_is_not_told(rng):
    """What its bounds are above its estimates is the noise times a known bonus."""
    rewards = rising_rewards(rng, 5, 3000)  # noise .02; the curves bend little in three pulls
    session = play(lb.RisingUCBE(exploration=8.0), rewards, 3000)
    bounds = Session(lb.RisingUCBE(exploration=8.0, recommend="bound"), 5, 3000)
    bounds = bounds.replay(session.history).recommend().estimates
    for arm, n in enumerate(session.pulls):
        h = n // 4
        above = bounds[arm] - session.recommend().estimates[arm]
        noise = above / ((3000 - n + h - 1) * sqrt(8.0 / h**3))
        # The estimate's relative sd from about 2990 differences is sqrt(3.9/2990)/2 = .018.
        assert noise == pytest.approx(0.02, rel=4.9 * 0.018)


def test_rising_ucbe_finds_the_late_bloomer_of_setting_a(rng):
    rewards = problem("paper-a").means(400) + 0.01 * rng.standard_normal((5, 400))
    assert play(lb.RisingUCBE(exploration=20, noise=0.01), rewards, 400).recommend().arm == 0
    assert play(lb.SuccessiveHalving(), rewards, 400).recommend().arm != 0


def test_round_robin_spends_all_and_judges_all_samples_and_its_window_the_last_quarter():
    session = play(lb.RoundRobin(), [[1.0] + [0.0] * 9, [0.3] * 10], 7)
    assert session.pulls == (4, 3) and session.recommend().estimates == pytest.approx((0.25, 0.3))
    rewards = [[0.9] * 6 + [0.2] * 4, [0.0] * 6 + [0.3] * 4]
    session = play(lb.RoundRobinWindow(), rewards, 17)  # evenly: one pull stays
    assert session.pulls == (8, 8) and session.recommend().estimates == pytest.approx((0.2, 0.3))


def test_ucbe_picks_by_bounds_worked_by_hand():
    # a = 1. After one pull each: .2 + 1, .5 + 1, .3 + 1, so arm 1; its mean becomes .3 and its
    # bound .3 + sqrt(1/2) = 1.007, so arm 2 (1.3); that becomes .2 + .707, so arm 0 (1.2).
    rewards = [[0.2] * 4, [0.5, 0.1, 0.1, 0.1], [0.3, 0.1, 0.1, 0.1]]
    assert asked(play(lb.UCBE(exploration=1.0), rewards, 10, pulls=6)) == [0, 1, 2, 1, 2, 0]


def test_successive_halving_judges_the_latest_value_or_a_window():
    jumpy, steady = [0.5] * 7 + [0.9] + [0.5] * 8, [0.8] * 16
    assert play(lb.SuccessiveHalving(), [jumpy, steady], 16).recommend().arm == 0
    assert play(lb.SuccessiveHalving(judge="window"), [jumpy, steady], 16).recommend().arm == 1


def test_prob_one_draws_ranks_like_one_over_rank(seed):
    # All rewards 0 leave the ranking as it was shuffled, so the arms' shares are those of the
    # ranks: 1, 1/2, 1/3 over 11/6.
    budget = 20_000
    session = play(lb.ProbOne(), np.zeros((3, budget)), budget, seed=seed)
    shares = np.array([6, 3, 2]) / 11
    test = stats.chisquare(sorted(session.pulls, reverse=True), budget * shares)
    assert test.pvalue > 1e-6


def test_prob_one_weighs_rewards_by_their_probability(seed):
    """The first draw of three arms has probability 6/11, 3/11 or 2/11, and such a weight."""
    weights = []
    for own in range(seed, seed + 400):
        session = Session(lb.ProbOne(), 3, 10, seed=own)
        arm = session.ask()
        session.tell(arm, 0.6)
        weights.append(session.recommend().estimates[arm] / 0.6)
    shares = np.array([6, 3, 2]) / 11
    counts = [sum(weight == pytest.approx(1 / p) for weight in weights) for p in shares]
    assert sum(counts) == 400
    assert stats.chisquare(counts, 400 * shares).pvalue > 1e-6


def test_a_power_law_is_predicted_exactly_at_any_pull():
    # losses a n^-.8 + b; after tau = 10 sweeps of 2 arms the predicted reward at m = T - tau is
    # the curve's own, and Rest-Sure looks at m = T + tau - t = the same.
    n = np.arange(1, 1001)
    alpha, beta = np.array([0.9, 0.3]), np.array([0.05, 0.2])
    rewards = 1 - (alpha[:, None] * n**-0.8 + beta[:, None])
    for policy in (lb.ExploreThenCommit(), lb.RestSure()):
        session = play(policy, rewards, 1000, pulls=20)
        assert session.recommend().estimates == pytest.approx(rewards[:, 990 - 1], abs=1e-9)


@pytest.mark.parametrize("policy", [lb.ExploreThenCommit, lb.RestSure])
def test_a_clear_winner_is_committed_to_when_the_width_allows(policy):
    n = np.arange(1, 401)
    rewards = 1 - np.array([[0.9], [0.3]]) * n**-0.8 - np.array([[0.05], [0.2]])
    assert play(policy(), rewards, 400).pulls == (200, 200)  # the published width never allows
    early = play(policy(width_scale=1e-5), rewards, 400)
    assert early.recommend().arm == 0 and early.pulls[1] < 10
    assert "dropped" in str(early.explain(1))


def test_the_confidence_width_of_cella_worked_by_hand():
    # U = 1, rho = .8: 10 * 4 / .16 = 250; tau = 10, K = 5, T = 1000, delta = 1/T:
    # L = log(10 * 5 * 10^6) = 17.7275; 250 (1.77275 + sqrt(1.77275)) = 776.05
    from latebloomer.policies.power_law import confidence_width

    settings = lb.RestSure().settings(5, 1000, 1000)
    assert settings.scale == pytest.approx(250)
    assert confidence_width(settings, 10) == pytest.approx(
        250 * (1.77275 + sqrt(1.77275)), rel=1e-5
    )


def test_rest_sure_drops_an_arm_that_is_beaten_all_the_way():
    n = np.arange(1, 61)
    beta = np.array([0.1, 0.12, 0.9])[:, None]
    session = play(lb.RestSure(width_scale=2e-4), 1 - beta - 0.0 * n, 60)
    assert session.explain(2).state == "dropped"
    assert (session.explain(0).state, session.explain(1).state) == ("winner", "not selected")


@dataclass(frozen=True)
class NoName(ByAllSamples):
    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]


def named(called):
    return dataclass(frozen=True)(type("Named", (NoName,), {"name": called}))


@pytest.mark.parametrize("name", [None, "auto", "a:b", "a,b", "a b", "Loud", "", "two"])
def test_a_name_that_is_missing_other_or_cannot_be_asked_for_is_refused(name):
    cls = NoName if name is None else named(name)
    with pytest.raises(ContractError, match=r'In the class: name: ClassVar\[str\] = ".*"'):
        check_name("one" if name == "two" else str(name), cls)


def test_a_policy_that_cites_nobody_can_be_cited():
    alone = named("alone")
    assert alone.cites == () and cite(alone()).startswith("@inproceedings{Mussi24")


def test_the_registry_lists_each_policy_of_the_library_once_in_order():
    assert [cls.name for cls in REGISTRY.values()] == list(LISTED) == list(REGISTRY)
    assert len(set(REGISTRY.values())) == len(REGISTRY) == len(set(LISTED.values()))
    package = Path(sys.modules[lb.RisingSR.__module__].__file__).parent
    named = {
        ".".join(file.relative_to(package).with_suffix("").parts)
        for file in package.rglob("*.py")
        if "    name: ClassVar" in file.read_text()
    }
    assert named - {"base"} == {home.rpartition(".")[0] for home in LISTED.values()}


def test_a_policy_is_loaded_when_it_is_asked_for():
    code = (
        "import sys\nfrom latebloomer.policies.registry import REGISTRY, make_policy\n"
        "assert 'r-sr' in REGISTRY and list(REGISTRY)\nmake_policy('r-sr')\n"
        "files = ['rising_sr', 'rising_ucbe', 'foresight', 'rungs']\n"
        "print([file for file in files if f'latebloomer.policies.{file}' in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "['rising_sr']\n", ran.stderr
