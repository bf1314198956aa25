"""Many scores told at once: the same session as one by one."""

from math import inf, nan
from random import Random

import pytest

from latebloomer.errors import LatebloomerError
from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.session.events import FAILED, FINISHED, LearnerLeft
from latebloomer.session.session import Session

POLICIES = [label_of(policy) for kind in REGISTRY.values() for policy in kind.examples()]
every_policy = pytest.mark.parametrize("policy", POLICIES)


def state_of(session):
    """All that the next decisions rest on."""
    turns = session._play
    return turns.ledger, turns.due, session.history, session.recommend(), session.racing


def shuffled_pulls(session, random):
    """A whole race, the pulls of each phase in any order, as a list of arms and one of scores."""
    arms, scores = [], []
    while not session.over:
        wanted = [arm for arm, count in session.ask_phase().items() for _ in range(count)]
        for arm in random.sample(wanted, len(wanted)):
            arms.append(arm)
            scores.append(arm / 5 + random.gauss(0, 0.3) - 1 / (1 + session.pulls_of(arm)))
            session.tell(arm, scores[-1])
    return arms, scores


@every_policy
@pytest.mark.parametrize("maximize", [True, False])
def test_a_session_told_in_batches_is_one_told_pull_by_pull(policy, maximize):
    random = Random(policy)
    one_by_one = Session(policy, 5, 300, maximize=maximize)
    arms, scores = shuffled_pulls(one_by_one, random)
    for size in (1, 7, 64, 1000):
        batched = Session(policy, 5, 300, maximize=maximize)
        for start in range(0, len(arms), size):
            batched.tell_many(arms[start : start + size], scores[start : start + size])
        assert state_of(batched) == state_of(one_by_one)


@every_policy
def test_the_states_on_the_way_are_the_same(policy):
    arms, scores = shuffled_pulls(Session(policy, 4, 200), Random(policy))
    one_by_one, batched, told = Session(policy, 4, 200), Session(policy, 4, 200), 0
    while told < len(arms):
        size = Random(told).randint(1, 40)
        batched.tell_many(arms[told : told + size], scores[told : told + size])
        for arm, score in zip(arms[told : told + size], scores[told : told + size], strict=True):
            one_by_one.tell(arm, score)
        told += size
        assert state_of(batched) == state_of(one_by_one)


@pytest.mark.parametrize("how", [FAILED, FINISHED])
def test_with_an_arm_that_has_left_it_is_the_same_too(how):
    sessions = [Session("r-sr", 5, 300) for _ in range(2)]
    for session in sessions:
        session.tell_many([0, 1, 2, 3, 4] * 3, [0.1, 0.2, 0.3, 0.4, 0.5] * 3)
        session.apply(LearnerLeft(2, how))
    arms, scores = shuffled_pulls(sessions[0], Random(1))
    sessions[1].tell_many(arms, scores)
    assert state_of(sessions[0]) == state_of(sessions[1])


@pytest.mark.parametrize(
    "arm, score",
    [(0, nan), (0, inf), (0, 1e101), (0, "much"), (9, 0.5), (-1, 0.5), ("no", 0.5), (True, 0.5)],
)
@pytest.mark.parametrize("place", [0, 3, 30, 59])
def test_where_one_is_refused_those_before_it_count(arm, score, place):
    one_by_one, batched = Session("r-sr", 4, 200), Session("r-sr", 4, 200)
    arms, scores = [0, 1, 2, 3] * 15, [0.25 * k for k in range(60)]
    arms[place], scores[place] = arm, score
    with pytest.raises(LatebloomerError) as expected:
        for told in zip(arms, scores, strict=True):
            one_by_one.tell(*told)
    with pytest.raises(LatebloomerError) as found:
        batched.tell_many(arms, scores)
    assert str(found.value) == str(expected.value)
    assert batched.history == one_by_one.history == list(zip(arms, scores, strict=True))[:place]
    assert batched._play.ledger == one_by_one._play.ledger


def test_an_arm_beyond_its_share_of_the_phase_is_refused():
    one_by_one, batched = Session("r-sr", 4, 200), Session("r-sr", 4, 200)
    with pytest.raises(LatebloomerError):
        for _ in range(60):
            one_by_one.tell(1, 0.5)
    with pytest.raises(LatebloomerError):
        batched.tell_many([1] * 60, [0.5] * 60)
    assert state_of(batched) == state_of(one_by_one)
