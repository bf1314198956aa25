"""Sessions whose arms leave and whose budgets move."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.policies import REGISTRY, make_policy
from latebloomer.policies.registry import label_of
from latebloomer.session.field import FAILED, FINISHED, Field
from latebloomer.session.reasons import RACING
from latebloomer.session.replanning import Place, cost, largest_that_fits
from latebloomer.session.session import Session

ARMS, BUDGET = 5, 120
STOPPING = ("asha", "hyperband")  # by their rules the budget need not be used up
SPECS = [label_of(kind.examples()[0]) for kind in REGISTRY.values()]
policies = pytest.mark.parametrize("policy", SPECS)


def reward(arm, n):
    """Rises, crosses and never ties."""
    return (0.4 + 0.11 * arm) * n / (n + 1 + 3 * arm) + 1e-3 * ((7 * n + arm) % 5)


def play(field, stop=None):
    """Pull what is asked, `stop` pulls at most."""
    made = 0
    while not field.over and made != stop:
        arm = field.ask()
        field.tell(arm, reward(arm, field.pulls[arm] + 1))
        made += 1
    return field


@policies
def test_where_nothing_happens_a_field_is_a_session(policy):
    field, session = play(Field(policy, ARMS, BUDGET)), play(Session(policy, ARMS, BUDGET))
    assert field.history == session.history and field.recommend() == session.recommend()


@policies
@pytest.mark.parametrize("kind", [FAILED, FINISHED])
@pytest.mark.parametrize("when", [1, 4, 5, 33, 70])
def test_what_an_arm_does_not_take_goes_to_the_others(policy, kind, when):
    field = play(Field(policy, ARMS, BUDGET), when)
    arm = field.ask() if kind == FAILED or field.pulls[field.ask()] else 0
    if not field.pulls[arm] and kind == FINISHED:
        pytest.skip("an arm without a pull cannot be finished")
    before = field.pulls[arm]
    others = any(field.explain(i).state == RACING for i in range(ARMS) if i != arm)
    field.retire(arm, kind)
    play(field)
    assert field.pulls[arm] == before
    if others and policy not in STOPPING:
        assert field.spent > BUDGET - 2 * ARMS  # all but a remainder that no sweep fills
    assert field.spent <= BUDGET
    if kind == FAILED:
        assert field.recommend().arm != arm


events = st.lists(
    st.one_of(
        st.tuples(st.just("pull"), st.integers(1, 30)),
        st.tuples(st.just(FAILED), st.integers(0, ARMS - 1)),
        st.tuples(st.just(FINISHED), st.integers(0, ARMS - 1)),
        st.tuples(st.just("plan"), st.integers(-20, 60)),
        st.tuples(st.just("phase"), st.integers(1, 3)),
    ),
    max_size=8,
)


def live_through(field, happened):
    """Play a list of events; those that make no sense then are left out."""
    for kind, value in happened:
        if kind == "pull":
            play(field, value)
        elif kind == "plan":
            field.replan(max(field.spent + value, field.spent + 1))
        elif kind == "phase":
            for arm, pulls in reversed(field.ask_phase(value).items()):
                for _ in range(pulls):
                    field.tell(arm, reward(arm, field.pulls[arm] + 1))
        elif value in field.movers and (kind == FAILED or field.pulls[value]):
            field.retire(value, kind)
    return play(field)


@given(policy=st.sampled_from(SPECS), happened=events)
def test_whatever_happens_it_is_the_same_again_and_within_its_budget(policy, happened):
    first, second = (live_through(Field(policy, ARMS, BUDGET), happened) for _ in range(2))
    assert first == second
    assert first.spent <= max(first.budget, BUDGET)
    assert first.over and not first.ask_phase()
    assert pickle.loads(pickle.dumps(first)) == first
    if any(first.pulls[i] for i in first.racing):
        assert first.recommend().arm in first.racing


@given(happened=events)
def test_a_pickled_field_plays_on_like_the_original(happened):
    field = Field("r-sr", ARMS, BUDGET)
    field.tell(field.ask(), 0.5)
    field.retire(3, FAILED)
    twin = pickle.loads(pickle.dumps(field))
    assert live_through(field, happened) == live_through(twin, happened)


def test_a_finished_arm_can_win_by_its_score():
    field = Field("r-sr", ["short", "a", "b"], 90)
    for _ in range(4):
        for arm, value in zip(("short", "a", "b"), (0.9, 0.3, 0.2), strict=True):
            field.tell(arm, value)
    field.retire("short", FINISHED)
    while not field.over:
        field.tell(field.ask(), 0.5)
    assert field.recommend().name == "short" and field.pulls[0] == 4


def test_a_projection_is_not_made_for_an_arm_that_is_finished():
    field = Field("r-ucbe", ["short", "a", "b"], 90)
    for n in range(1, 7):
        for arm, slope in zip(("short", "a", "b"), (0.1, 0.001, 0.0), strict=True):
            field.tell(field.ask(), slope * n) if field.names[field.ask()] == arm else None
    while field.pulls[0] < 6:
        arm = field.ask()
        field.tell(arm, (0.1, 0.001, 0.0)[arm] * (field.pulls[arm] + 1))
    field.retire("short", FINISHED)
    assert field.recommend().estimates[0] == pytest.approx(0.1 * field.pulls[0])


def test_replanning_with_less_cuts_earlier_and_with_more_later():
    less, more = (play(Field("r-sr", ARMS, BUDGET), 40) for _ in range(2))
    less.replan(70)
    more.replan(400)
    assert play(less).spent == 70 and play(more).spent == 400
    assert len(less.racing) == len(more.racing) == 1


def test_a_score_that_looks_to_the_horizon_moves_with_it():
    field, longer = (play(Field("r-ucbe:noise=0.01", ARMS, b), 25) for b in (100, 100))
    longer.replan(1000)
    before, after = field.recommend().estimates, longer.recommend().estimates
    assert longer.horizon == 1000 and before != after
    fixed = play(Field("r-ucbe:noise=0.01", ARMS, 100, horizon=100), 25)
    fixed.replan(1000)
    assert fixed.recommend().estimates == before


@given(
    arms=st.integers(2, 12),
    level=st.integers(0, 30),
    left=st.integers(0, 3000),
    gone=st.integers(0, 10),
    policy=st.sampled_from(["r-sr", "sr", "sh", "rr"]),
)
def test_the_phases_to_come_can_be_paid(arms, level, left, gone, policy):
    rule, racing = make_policy(policy), max(1, arms - gone)
    place = Place(racing, racing, level, left)
    budget = largest_that_fits(rule, arms, 10**6, 500, place)
    least = rule.smallest_budget(arms)[0]
    assert budget == least or cost(rule.plan(arms, budget, 10**6), place) <= left


@policies
def test_an_arm_that_never_gave_a_reward_is_no_trouble_to_a_new_plan(policy):
    field = Field(policy, ARMS, BUDGET)
    field.retire(1, FAILED)
    play(field, 40)
    field.replan(3 * BUDGET)
    play(field, 40)
    field.replan(2 * BUDGET)
    assert play(field).pulls[1] == 0
    assert policy in STOPPING or field.spent > 2 * BUDGET - 2 * ARMS
