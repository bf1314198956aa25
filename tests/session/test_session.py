"""Ask and tell: what a session asks, accepts, refuses, recommends and explains."""

import json
import pickle
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import ceil, inf, nan, sin, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latebloomer as lb
from latebloomer import errors
from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.session.arm_views import LearnerView, ranked
from latebloomer.session.session import Session

# Every policy, with settings under which its rule has something to do: a narrow width, so that the
# power-law rules do drop arms, and a known noise beside the estimated one.
SETTINGS = {
    "r-ucbe": "r-ucbe:noise=0.05,exploration=2",
    "etc": "etc:width_scale=0.00002",
    "rest-sure": "rest-sure:width_scale=0.00002",
}
ALL = {name: SETTINGS.get(name, label_of(kind.examples()[0])) for name, kind in REGISTRY.items()}
MORE = ("r-ucbe", "r-sr:leftover=unspent", "sh:judge=window", "etc", "rest-sure")
STOPPING = ("asha", "hyperband")  # they leave arms behind that could be trained further
DRAWING = ("prob-1", "ptrr")  # at random; hybrid does so only if it has not committed by then
DROPPING = ("r-sr", "sr", "sh", "etc", "rest-sure")

# R-UCBE that estimates the noise adds up squares in the order told: there only sums agree.
ORDERLESS = [policy for policy in (*ALL.values(), *MORE) if policy != "r-ucbe"]

one_of_each = pytest.mark.parametrize("policy", list(ALL.values()))
every = pytest.mark.parametrize("policy", [*ALL.values(), *MORE])


def wobbly(arm: int, n: int) -> float:
    """The n-th reward of an arm: rising curves that cross, with something like noise."""
    return (arm + 2) / 10 * n / (n + 3 * arm + 1) + 0.05 * sin(7 * arm + 3 * n)


def play(session: Session, reward=wobbly, pulls: float = inf) -> list[int]:
    """Ask and tell, to the end unless `pulls` are enough; the arms asked for."""
    path: list[int] = []
    while not session.over and len(path) < pulls:
        arm = session.ask()
        session.tell(arm, reward(arm, session.pulls[arm] + 1))
        path.append(arm)
    return path


def play_phases(session: Session, random: Random, batch=1, reward=wobbly) -> list[dict[int, int]]:
    """Tell each phase (or batch) in a random order across arms; the phases."""
    phases = []
    while phase := session.ask_phase(batch):
        phases.append(phase)
        order = list(Counter(phase).elements())
        random.shuffle(order)
        for arm in order:
            session.tell(arm, reward(arm, session.pulls[arm] + 1))
    return phases


def copied(session: Session) -> Session:
    return pickle.loads(pickle.dumps(session))


def conclusions(session: Session) -> tuple:
    """All that a session says, and nothing of the order in which it was told."""
    arms = range(len(session.names))
    return session.recommend(), session.standings(), [session.explain(i) for i in arms]


def refused(session: Session, error: type[errors.LatebloomerError], call, *words: str) -> None:
    """The call raises the error with these words in it and leaves the session as it was."""
    before = copied(session)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value)
    assert session == before


LEAST_FOR_FIVE = [
    ("r-ucbe", 20),  # ceil(1/.25) pulls each
    ("r-ucbe:window=0.1", 50),
    ("r-ucbe:window=0.5", 15),  # three, so that noise can be estimated
    ("r-ucbe:window=0.5,noise=1", 10),
    ("r-sr", 6),
    ("rr", 5),
    ("rr-sw", 5),
    ("ucb-e:exploration=1", 5),
    ("sr", 6),
    ("prob-1", 5),
    ("etc", 10),
    ("rest-sure", 10),
    ("sh", 15),  # ceil(log2 5) = 3 rounds
]


@pytest.mark.parametrize(("policy", "least"), LEAST_FOR_FIVE)
def test_a_budget_that_is_too_small_is_refused_with_the_one_that_is_needed(policy, least):
    words = rf"budget={least - 1} is too small for 5 learners: [\w-]+ needs at least {least} \("
    with pytest.raises(errors.BudgetError, match=words):
        Session(policy, arms=5, budget=least - 1)
    session = Session(policy, arms=5, budget=least)
    play(session)
    assert session.spent <= least
    assert session.recommend().pulls[session.recommend().arm] > 0


BAD_GAME = [
    ({"arms": 1}, "arms=1, but arms must be at least 2"),
    ({"arms": "abc"}, "arms='abc' must be a number or a list of names"),
    ({"arms": ["a", None]}, "arms=['a', None] must be a number or a list of names"),
    ({"arms": ["a", "b", "a"]}, "arms must be named differently: 'a' appears twice"),
    ({"budget": 0}, "budget=0, but budget must be at least 1"),
    ({"budget": 10**400}, "budget must be at most 2^53"),
    ({"horizon": 0}, "horizon=0, but horizon must be at least 1"),
    ({"budget": True}, "budget=True, but budget must be a whole number"),
    ({"horizon": True}, "horizon=True, but horizon must be a whole number"),
    ({"seed": True}, "seed=True, but seed must be an integer in [0, 2^64)"),
    ({"maximize": "minimize"}, "maximize='minimize', but maximize must be True if higher scores"),
    ({"maximize": None}, "maximize=None, but maximize must be True"),
    ({"maximize": []}, "maximize=[], but maximize must be True"),
    ({"maximize": 0}, "or False if scores are losses"),
    ({"seed": -1}, "seed=-1, but seed must be an integer in [0, 2^64)"),
    ({"seed": 2**64}, "but seed must be an integer in [0, 2^64)"),
    ({"policy": 3}, "policy=3 must be a Policy or a name"),
    ({"policy": "r-sr:window"}, "'window' in the settings of r-sr must be key=value"),
    ({"policy": "r-sr:windw=0.2"}, "no setting of r-sr is called 'windw'; did you mean 'window'"),
    ({"policy": "ucb-e"}, "3 learners. Give exploration, a number, or gaps, 3 numbers"),
    ({"policy": lb.UCBE(gaps=(0, 0.1))}, "gaps=(0.0, 0.1)) cannot be used with 3 learners"),
    ({"policy": lb.UCBE(gaps=(0, 0, 0))}, "3 numbers of which some are positive"),
]


@pytest.mark.parametrize(("bad", "words"), BAD_GAME)
def test_a_game_that_cannot_be_played_is_refused_with_what_is_needed(bad, words):
    with pytest.raises(errors.SettingError) as caught:
        Session(**{"policy": "rr", "arms": 3, "budget": 30, **bad})
    assert words in str(caught.value)


BAD_SETTINGS = {  # one of each kind of range; other policies' settings are in tests/policies
    "window": (0, -0.1, 0.51, 1, nan, inf, -inf, None, "x", True),
    "exploration": (-1, -1e-9, nan, inf, -inf, "x", True, None),
    "delta": (0, 1, -0.5, 1.5, nan, inf, None, "x", True),
    "recommend": ("best", None, 1),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_setting_out_of_range_is_refused_with_the_range(name):
    for value in BAD_SETTINGS[name]:
        with pytest.raises(errors.SettingError) as caught:
            lb.RisingUCBE(**{name: value})
        assert type(caught.value) is errors.SettingError
        assert f"{name}={value!r}, but {name} must be" in str(caught.value)


@pytest.mark.parametrize("gap", [-0.1, nan, inf, "x", None, True])
def test_a_gap_that_is_no_distance_is_refused(gap):
    with pytest.raises(errors.SettingError, match="gaps must be"):
        lb.UCBE(gaps=(0, 0.2, gap))


def halfway(policy: str) -> Session:
    """Mid-phase and told out of order, or mid-batch where the policy has no phases."""
    session = Session(policy, arms=["a", "b", "c", "d"], budget=60)
    play(session, pulls=18)
    arm = list(session.ask_phase(batch=3))[-1]
    session.tell(arm, wobbly(arm, session.pulls[arm] + 1))
    return session


BAD_REWARDS = [
    *(nan, inf, -inf, 1e300, -1e101, 10**400, Fraction(10**400), np.float64("nan")),
    *(None, "0.5", "x", b"1", 1j, np.complex128(1 + 2j), np.complex64(1), [0.5], (1,), {}),
    *(object(), np.array([0.5, 0.6]), np.array([])),
    *(True, False, np.True_, np.array(True), np.array([True])),
    *(np.str_("0.5"), np.array("0.5"), np.array(b"1"), np.bytes_(b"1")),
    *(np.array("0.5", dtype=object), np.array(True, dtype=object), np.array(1j)),
]
BAD_ARMS = [4, -1, 10**30, True, False, np.bool_(True), 1.0, None, "z", "", b"a", [0], (0,), 1j]


def test_what_is_no_finite_real_number_or_no_arm_is_refused():
    session = halfway("r-sr")
    arm, tell = session.ask(), session.tell
    for reward in BAD_REWARDS:
        refused(session, errors.RewardError, partial(tell, arm, reward), "score=", "must be")
    for bad in BAD_ARMS:
        for call in (partial(tell, score=0.5), session.scores, session.explain):
            refused(session, errors.ArmError, partial(call, bad), f"arm={bad!r} ")


GOOD_REWARDS = [
    *(1, 0, -3, 1e100, -0.0, 5e-324, Fraction(1, 3), Decimal("0.1")),
    *(np.float64(0.25), np.float32(0.1), np.int64(7), np.uint8(7), np.array(0.5)),
]


def test_any_finite_real_number_is_a_reward_and_kept_as_a_float():
    session = Session("rr", arms=2, budget=2 * len(GOOD_REWARDS))
    for reward in GOOD_REWARDS:
        session.tell(0, reward)
    assert session.scores(0) == [float(reward) for reward in GOOD_REWARDS]
    assert {type(reward) for _, reward in session.history} == {float}


def test_an_arm_is_refused_beyond_its_share_of_the_phase_and_after_it_was_dropped():
    session = Session("r-sr", arms=3, budget=12)  # phases end at 3, 4 and 12 pulls
    for arms in ((2, 2, 2), (0, 1) * 3):
        for arm in arms:
            session.tell(arm, 0.1 if arm == 2 else 0.5)
        said = ("a score for arm 2", "asked for arm 0")
        refused(session, errors.TellError, lambda: session.tell(2, 0.9), *said)
    assert [row.state for row in session.standings()] == ["leading", "racing", "dropped"]


@one_of_each
def test_there_is_no_recommendation_before_the_first_reward(policy):
    session = Session(policy, arms=3, budget=30)
    refused(session, errors.NoScoresYet, session.recommend, "No scores yet", "report its score")
    assert [row.state for row in session.standings()] == ["racing"] * 3
    assert "not pulled yet" in str(session.explain(1))


def test_arms_go_by_number_or_by_name():
    session = Session("rr", arms=["slow", "quick"], budget=4)
    for arm in ("slow", 1, np.int64(0), "quick"):
        session.tell(arm, 0.25)
    assert [arm for arm, _ in session.history] == [0, 1, 0, 1]
    assert session.scores("quick") == session.scores(1) == [0.25, 0.25]
    assert session.recommend().name == session.names[session.recommend().arm]


SPENT, AT_HORIZON, COMPLETE = "of the budget are spent", "has reached the hor", "plan is complete"
ENDINGS = [  # policy, arms, budget, horizon, pulls until it is over, why
    ("rr", 3, 10, None, 10, SPENT),
    ("rr-sw", 3, 10, None, 9, COMPLETE),  # floor(10/3) each
    ("r-sr", 3, 12, None, 12, SPENT),
    ("r-sr:leftover=unspent", 3, 12, None, 11, COMPLETE),  # 3 x 3 + 2 x 1
    ("r-sr", 3, 12, 4, 11, AT_HORIZON),  # 3 x 3 + 2 x 1, and the last arm is at 4
    ("sr", 3, 12, 20, 12, SPENT),
    ("sh", 5, 60, None, 58, COMPLETE),  # 5 x 4 + 3 x 6 + 2 x 10
    ("sh", 4, 64, None, 64, SPENT),  # 4 x 8 + 2 x 16
    ("rr", 3, 10, 2, 6, AT_HORIZON),
    ("ucb-e:exploration=1", 3, 30, 5, 15, AT_HORIZON),
    ("ucb-e:exploration=1", 3, 30, 10, 30, SPENT),
    ("r-ucbe", 3, 30, 2, 6, AT_HORIZON),  # before its warm-up of four is over
    ("r-ucbe", 3, 30, 7, 21, AT_HORIZON),
    ("prob-1", 3, 30, 4, 12, AT_HORIZON),
    ("etc", 3, 30, 6, 18, AT_HORIZON),
    ("rest-sure", 3, 30, None, 30, SPENT),
]


@pytest.mark.parametrize(("policy", "arms", "budget", "horizon", "pulls", "why"), ENDINGS)
def test_a_session_ends_when_its_plan_does_and_says_why(policy, arms, budget, horizon, pulls, why):
    session = Session(policy, arms, budget, horizon)
    play(session, pulls=pulls - 1)
    assert not session.over
    assert session.reason == f"{budget - pulls + 1} of {budget} pulls left"
    play(session, pulls=1)
    assert session.over and session.spent == pulls
    assert why in session.reason
    verdict = session.recommend()
    assert (verdict.over, verdict.spent, verdict.reason) == (True, pulls, session.reason)


@every
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 12])
def test_no_arm_goes_beyond_the_horizon_and_a_session_with_all_arms_there_is_over(policy, horizon):
    session = Session(policy, arms=4, budget=80, horizon=horizon)
    path = play(session)
    assert session.pulls == tuple(path.count(arm) for arm in range(4))
    assert max(session.pulls) == horizon
    if policy in STOPPING:
        return
    racing = [row for row in session.standings() if row.state != "dropped"]
    assert {row.pulls for row in racing} == {horizon}
    assert racing[0].state == "winner" and {row.state for row in racing[1:]} <= {"not selected"}
    assert AT_HORIZON in session.reason


@every
def test_a_horizon_beyond_the_budget_is_played_to_the_same_number_of_pulls(policy):
    sessions = [Session(policy, arms=4, budget=50, horizon=h) for h in (10**6, None)]
    assert len({len(play(session)) for session in sessions}) == 1
    assert [session.horizon for session in sessions] == [10**6, 50]


PLAYED_PHASES = [
    ("rr", 3, 10, [{0: 4, 1: 3, 2: 3}]),  # the budget ends within the fourth sweep
    ("rr-sw", 3, 10, [{0: 3, 1: 3, 2: 3}]),
    ("r-sr", 3, 12, [{0: 3, 1: 3, 2: 3}, {1: 1, 2: 1}, {2: 1}]),
    ("r-sr:leftover=unspent", 3, 12, [{0: 3, 1: 3, 2: 3}, {1: 1, 2: 1}]),
    ("sr", 3, 12, [{0: 3, 1: 3, 2: 3}, {1: 1, 2: 1}, {2: 1}]),
    ("sh", 5, 60, [dict.fromkeys(range(5), 4), {2: 6, 3: 6, 4: 6}, {3: 10, 4: 10}]),
    ("etc", 3, 8, [{0: 1, 1: 1, 2: 1}] * 2 + [{0: 1, 1: 1}]),
    ("etc:width_scale=0", 3, 10, [{0: 1, 1: 1, 2: 1}] * 2 + [{2: 4}]),  # commits when it can
    ("rest-sure:width_scale=0", 3, 10, [{0: 1, 1: 1, 2: 1}] * 2 + [{2: 4}]),
]


@pytest.mark.parametrize(("policy", "arms", "budget", "phases"), PLAYED_PHASES)
def test_the_phases_handed_out_are_those_of_the_plan(policy, arms, budget, phases):
    """Straight lines, the later arms the steeper: the lowest-numbered go first."""
    session = Session(policy, arms, budget)
    assert play_phases(session, Random(0), reward=lambda arm, n: (arm + 1) * n / 100) == phases


@every
def test_a_phase_is_what_would_be_asked_whatever_the_rewards(policy):
    """No decision falls before the end of a phase: wild rewards do not change who is asked."""
    session, wild = Session(policy, arms=5, budget=61), Random(1)
    while phase := session.ask_phase():
        total = sum(phase.values())
        other = copied(session)
        asked = play(other, lambda arm, n: wild.gauss(0, 9), pulls=total)
        assert play(session, pulls=total) == asked
        assert Counter(asked) == phase


@pytest.mark.parametrize("policy", ORDERLESS)
@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(0, 40), st.none() | st.integers(1, 15), st.integers(0, 999))
def test_phases_may_be_told_in_any_order(policy, arms, extra, horizon, order):
    """Standings, drops, recommendation and later phases are those of asking one by one."""
    budget = 4 * arms + extra
    one_by_one, in_phases = (Session(policy, arms, budget, horizon) for _ in range(2))
    play(one_by_one)
    play_phases(in_phases, Random(order))
    assert conclusions(in_phases) == conclusions(one_by_one)
    assert Counter(in_phases.history) == Counter(one_by_one.history)


@every
def test_a_phase_shrinks_by_what_was_told_of_it(policy, rng):
    session = Session(policy, arms=5, budget=62)
    while phase := Counter(session.ask_phase()):
        while phase:
            arm = int(rng.choice(list(phase)))
            session.tell(arm, wobbly(arm, session.pulls[arm] + 1))
            phase -= Counter([arm])
            if phase:
                assert session.ask_phase() == phase
                assert session.ask() in phase


def test_a_batch_takes_the_arms_with_the_highest_bounds():
    session = Session("ucb-e:exploration=0", arms=4, budget=40)
    play(session, lambda arm, n: [0.3, 0.9, 0.1, 0.7][arm], pulls=4)
    assert list(session.ask_phase(batch=3)) == [1, 3, 0]


@pytest.mark.parametrize("policy", [ALL["ucb-e"], ALL["r-ucbe"], "r-ucbe", ALL["prob-1"]])
def test_a_policy_without_phases_hands_out_up_to_a_batch_of_distinct_arms(policy):
    session = Session(policy, arms=6, budget=70, horizon=14)
    play(session, pulls=24)
    while not session.over:
        first, left = session.ask(), session.budget - session.spent
        assert session.ask_phase() == {first: 1}
        open_arms = sum(n < session.horizon for n in session.pulls)
        batch = session.ask_phase(batch=4)
        assert session.ask_phase() == session.ask_phase(batch=9) == batch  # it is handed out
        assert next(iter(batch)) == first and set(batch.values()) == {1}
        most = min(4, open_arms, left)
        assert len(batch) == most or (policy == "prob-1" and len(batch) < most)  # an arm twice
        for arm in reversed(batch):
            session.tell(arm, wobbly(arm, session.pulls[arm] + 1))
    assert session.spent == 70 and max(session.pulls) <= 14


@pytest.mark.parametrize("policy", [ALL["ucb-e"], ALL["r-ucbe"], ALL["prob-1"]])
@settings(max_examples=30)
@given(st.integers(2, 9), st.integers(0, 999), st.integers(2, 20))
def test_a_batch_may_be_told_in_any_order(policy, batch, order, arms):
    sessions = [Session(policy, arms, 6 * arms, horizon=9) for _ in range(2)]
    phases = [play_phases(sessions[k], Random(order + k), batch) for k in range(2)]
    assert phases[0] == phases[1]
    assert conclusions(sessions[0]) == conclusions(sessions[1])


def issue_more(session, batch):
    """Let more arms be pulled while others are under way."""
    event = session.next_batch(batch)
    if event is not None and event.more:
        session.apply(event)


@pytest.mark.parametrize("policy", [ALL["ucb-e"], ALL["r-ucbe"], "r-ucbe"])
@settings(max_examples=30)
@given(st.integers(2, 5), st.integers(0, 999))
def test_arms_are_kept_busy_and_the_session_is_replayed_equal(policy, batch, order):
    session, random = Session(policy, arms=6, budget=80, horizon=25), Random(order)
    while phase := session.ask_phase(batch):
        if session.phase[0] == 2:  # no phases from here on: keep `batch` arms busy
            issue_more(session, batch)
            phase = session.ask_phase(batch)
            open_arms = sum(n < 25 for n in session.pulls)
            assert len(phase) == min(batch, open_arms, session.budget - session.spent)
        arm = random.choice(list(phase))
        session.tell(arm, wobbly(arm, session.pulls[arm] + 1))
        if random.random() < 0.05:
            assert session.replay(session.history) == session
    assert session.spent == 80 and max(session.pulls) <= 25
    assert session.replay(session.history) == session


@every
def test_only_policies_that_choose_by_score_hand_out_more_while_others_are_out(policy):
    session = Session(policy, arms=6, budget=80)
    play(session, pulls=40)
    issued = session.ask_phase(3)
    if len(issued) == 3 and set(issued.values()) == {1}:
        session.tell(next(iter(issued)), 0.5)
    before = dict(session.ask_phase(3))
    issue_more(session, 3)
    grown = len(session.ask_phase(3)) > len(before)
    assert grown == (session.policy.picks_by_rating and len(before) == 2)


@every
@pytest.mark.parametrize("pulls", [0, 1, 17, 33, inf])
def test_a_session_replayed_from_its_history_is_equal(policy, pulls):
    session = Session(policy, arms=["a", "b", "c", "d"], budget=60, horizon=25, seed=3)
    play(session, pulls=pulls)
    written = json.loads(json.dumps(session.history))
    assert session.replay(written) == session
    other = Session(policy, arms=["a", "b", "c", "d"], budget=60, horizon=25, seed=3)
    assert other.replay((session.names[arm], reward) for arm, reward in written) == session


@every
def test_sessions_with_other_rewards_or_settings_are_not_equal(policy):
    def new(arms="abcd", **settings):
        return Session(policy, **({"arms": list(arms), "budget": 60} | settings))

    session = halfway(policy)
    assert new() == new()
    for other in (session, new("abce"), new(budget=61), new(horizon=59)):
        assert new() != other
    arm = session.ask()
    one, two = copied(session), copied(session)
    one.tell(arm, 0.5)
    two.tell(arm, 0.5 + 2**-53)
    assert one != two


@every
def test_the_seed_matters_to_policies_that_draw_and_to_no_other(policy):
    paths = {tuple(play(Session(policy, 6, 60, seed=seed))) for seed in (0, 1, 2**64 - 1)}
    assert len(paths) == (3 if policy in DRAWING else 1)


def rejects(curves: np.ndarray, budget: int, window: float | None):
    """Successive rejects by the book: its drops, and the arm that is left.

    A drop is (arm, its mean, pulls so far, the lowest arm that was kept, that one's mean).
    """
    arms = len(curves)
    log_bar = 0.5 + sum(1 / i for i in range(2, arms + 1))
    alive, pulls, n, drops = list(range(arms)), 0, 0, []
    for survivors in range(arms, 1, -1):
        end = ceil((budget - arms) / (log_bar * survivors))
        pulls, n = pulls + survivors * (end - n), end
        h = n if window is None else max(1, int(window * n))
        mean = {i: curves[i, n - h : n].mean() for i in alive}
        worst, rival = sorted(alive, key=lambda i: (mean[i], -i))[:2]
        alive.remove(worst)
        drops.append((worst, mean[worst], pulls, rival, mean[rival]))
    return drops, alive[0]


@pytest.mark.parametrize(
    ("policy", "window"), [("r-sr", 0.25), ("r-sr:window=0.4", 0.4), ("sr", None)]
)
def test_drops_are_explained_by_the_numbers_that_decided_them(policy, window, rng):
    curves = rng.random((7, 200))
    session = Session(policy, arms=7, budget=200)
    play(session, lambda arm, n: float(curves[arm, n - 1]))
    drops, winner = rejects(curves, 200, window)
    assert session.recommend().arm == winner
    by_estimate = sorted(drops, key=lambda drop: -drop[1])
    assert [row.arm for row in session.standings()] == [winner, *(d[0] for d in by_estimate)]
    for arm, mean, pulls, rival, rival_mean in drops:
        why = session.explain(arm)
        assert (why.state, why.departed_at, why.decision.rival) == ("dropped", pulls, str(rival))
        assert why.decision[:2] == (pulls, why.pulls) and why.score == session.scores(arm)[-1]
        assert why.estimate == pytest.approx(mean, abs=1e-12)
        assert why.decision.rival_estimate == pytest.approx(rival_mean, abs=1e-12)
        assert session.recommend().estimates[arm] == why.estimate and why.forecast is None
        assert next(row for row in session.standings() if row.arm == arm) == why
        assert f"dropped at race pull {pulls}: estimate {mean:.4g}, versus " in str(why)
        assert f"versus {rival_mean:.4g} for {rival}" in str(why)
    assert session.explain(winner).decision == (200, session.pulls[winner], None, None)
    won = session.explain(winner)
    assert f"selected with estimate {won.estimate:.4g}" in won.why


@pytest.mark.parametrize("policy", [ALL[name] for name in DROPPING])
def test_an_arm_dropped_by_rank_is_below_the_lowest_that_was_kept(policy):
    session, kept = Session(policy, arms=6, budget=120), set(range(6))
    while not session.over:
        play(session, pulls=1)
        racing = {row.arm for row in session.standings() if row.state != "dropped"}
        for arm in kept - racing:
            why = session.explain(arm)
            assert why.departed_at == session.spent and int(why.decision.rival) in racing
            assert why.estimate <= why.decision.rival_estimate
        kept = racing
    assert len(kept) == 1, "every rule has dropped all arms but one"


def test_an_arm_that_a_review_drops_is_held_against_the_best_that_was_kept(rng):
    """A review may keep arms below one that it drops, so the lowest kept would explain nothing."""
    dropped = 0
    for _ in range(30):
        level, fall = rng.random((2, 6))
        session = Session("rest-sure:width_scale=0.00005", arms=6, budget=120)
        play(session, lambda arm, n: level[arm] - fall[arm] * n**-0.8)  # noqa: B023
        for why in map(session.explain, range(6)):
            if why.state == "dropped":
                dropped += 1
                assert why.estimate < why.decision.rival_estimate
    assert dropped > 100, "the claim is about drops"


def recent(x, window):
    h = max(1, int(window * len(x)))
    return sum(x[-h:]) / h


def projected(x, window, horizon):
    """[Mussi24, Eq. (mu_check)], term by term; x[l - 1] is the l-th reward."""
    n, h = len(x), int(window * len(x))
    terms = [
        x[k - 1] + (horizon - k) * (x[k - 1] - x[k - h - 1]) / h for k in range(n - h + 1, n + 1)
    ]
    return sum(terms) / h


ESTIMATES = [
    ("rr", lambda x, horizon: sum(x) / len(x)),
    ("ucb-e:exploration=3", lambda x, horizon: sum(x) / len(x)),
    ("rr-sw:window=0.3", lambda x, horizon: recent(x, 0.3)),
    ("r-ucbe:window=0.3", lambda x, horizon: projected(x, 0.3, horizon)),
    ("r-ucbe:recommend=pulls", lambda x, horizon: len(x)),
]


@pytest.mark.parametrize(("policy", "definition"), ESTIMATES)
@pytest.mark.parametrize("horizon", [40, 97, 500])
def test_the_highest_estimate_by_definition_is_recommended(policy, definition, horizon):
    session = Session(policy, arms=4, budget=97, horizon=horizon)
    play(session)
    verdict = session.recommend()
    by_hand = [definition(session.scores(arm), horizon) for arm in range(4)]
    assert verdict.estimates == pytest.approx(by_hand, rel=1e-9)
    assert verdict.arm == by_hand.index(max(by_hand))
    assert verdict.pulls == session.pulls and sum(verdict.pulls) == verdict.spent
    loser = (verdict.arm + 1) % 4
    why = session.explain(loser)
    assert (why.estimate, why.decision.rival) == (verdict.estimates[loser], verdict.name)
    assert "not selected: estimate " in str(why)


@every
def test_standings_begin_with_the_recommended_arm_and_are_in_the_order_of_estimates(policy):
    session = Session(policy, arms=6, budget=90)
    while not session.over:
        play(session, pulls=1)
        best, *others = session.standings()
        assert best.arm == session.recommend().arm
        assert sorted(row.arm for row in (best, *others)) == list(range(6))
        tried = [row for row in others if row.pulls]
        assert others == [*tried, *(row for row in others if not row.pulls)]
        assert tried == sorted(tried, key=lambda row: (-row.estimate, -(row.departed_at or inf)))


@pytest.mark.parametrize("maximize", [True, False])
def test_a_better_learner_stands_before_one_that_finished_and_failed_ones_stand_last(maximize):
    sign = 1 if maximize else -1
    views = [
        LearnerView(0, "weak", "finished", 3, 0.1, None, sign * 0.1),
        LearnerView(1, "failed", "failed", 3, 0.9, None, sign * 0.9, departed_at=8),
        LearnerView(2, "first out", "dropped", 3, 0.7, None, sign * 0.7, departed_at=9),
        LearnerView(3, "runner-up", "dropped", 9, 0.7, None, sign * 0.7, departed_at=20),
        LearnerView(4, "new", "racing", 0, nan, None, nan),
        LearnerView(5, "winner", "winner", 9, 0.6, None, sign * 0.6),
    ]
    order = ["winner", "runner-up", "first out", "weak", "new", "failed"]
    assert [view.name for view in ranked(views, maximize)] == order


@pytest.mark.parametrize("policy", [p for p in (*ALL.values(), *MORE) if p not in DRAWING])
def test_of_equal_arms_the_highest_index_is_dropped_and_the_lowest_recommended(policy):
    session = Session(policy, arms=7, budget=84)
    play(session, lambda arm, n: 0.5)
    assert session.recommend().arm == 0
    if policy in ("r-sr", "sr"):
        assert [row.arm for row in session.standings()] == [*range(7)]
        dropped = [session.explain(arm) for arm in range(6, 0, -1)]
        assert [why.decision.rival for why in dropped] == list("543210")
        drops = [why.departed_at for why in dropped]
        assert drops == sorted(set(drops))


@pytest.mark.parametrize("arms", [3, 16, 17, 33, 300])
@pytest.mark.parametrize("horizon", [3, 1000])
def test_an_index_policy_pulls_the_highest_bound_of_all_arms(arms, horizon, rng):
    """On both sides of the tournament's blocks of 16 and 256 arms."""
    session = Session("ucb-e:exploration=0.2", arms, budget=4 * arms, horizon=horizon)
    rewards = rng.random((arms, 4 * arms)).round(2)  # rounded, so that bounds tie now and then
    play(session, lambda arm, n: float(rewards[arm, n - 1]), pulls=arms)
    while not session.over:
        n = session.pulls
        total = [list(accumulate(rewards[i, : n[i]].tolist()))[-1] for i in range(arms)]
        bound = [
            total[i] / n[i] + sqrt(0.2 / n[i]) if n[i] < horizon else -inf for i in range(arms)
        ]
        arm = session.ask()
        assert bound[arm] == max(bound) and arm == bound.index(max(bound))
        session.tell(arm, float(rewards[arm, n[arm]]))
    assert session.spent == min(4, horizon) * arms


def test_a_certificate_uses_the_window_of_the_policy_and_needs_rewards_to_estimate_noise():
    rewards = [(0.1, 0.2)[arm] * n**0.5 for n in range(1, 31) for arm in (0, 1)]
    empty, lower = Session("rr", arms=2, budget=20), {}
    refused(empty, errors.SettingError, empty.certificate, "noise must be a number here")
    assert not empty.certificate(noise=0.1).certified(0)
    for window in (0.1, 0.5):
        session = Session(f"rr-sw:window={window}", arms=2, budget=60)
        for pull, reward in enumerate(rewards):
            session.tell(pull % 2, reward)
        lower[window] = session.certificate(noise=0.0, method="windows").lower[0]
    # without noise the lower end is the mean of the window at the last pull
    assert lower[0.1] == pytest.approx(sum(0.1 * n**0.5 for n in (28, 29, 30)) / 3)
    assert lower[0.5] == pytest.approx(sum(0.1 * n**0.5 for n in range(16, 31)) / 15)


def test_the_levels_to_come_are_what_is_left_of_the_plan():
    session = Session("r-sr", 3, 60)
    plan = session.policy.plan(3, 60)
    levels = list(zip(plan.keep.tolist(), plan.upto.tolist(), strict=True))
    assert session.levels_to_come == [(k, n) for k, n in levels if k > 1 or n > levels[-2][1]]
    while len(session.racing) == 3:
        play(session, pulls=1)
    assert session.levels_to_come[0] == levels[1]
    play(session)
    assert session.levels_to_come == [] == Session("r-ucbe", 3, 60).levels_to_come
