"""Sessions whose levels, and perhaps drops, follow from prices that a replan gave."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer import Session
from latebloomer.session.events import FAILED, BudgetReplanned, Extended, LearnerLeft

ARMS = 5


def step(session, table):
    arm = session.ask()
    session.tell(arm, table[arm][session.pulls[arm]])


def replan(session, levels, prices=()):
    """Give the racing arms levels, as the clock of a race does."""
    arms = session.trainable
    now = session.pulls[arms[0]]
    levels = [max(now, n) for n in levels][: len(arms) - 1]
    added = np.diff([now, *levels])
    total = session.spent + int(sum(k * n for k, n in zip(range(len(arms), 1, -1), added)))  # noqa: B905
    session.apply(BudgetReplanned(total, total, "", tuple(levels), prices))


def played(levels, prices, table, leaves=None):
    session = Session("foresight", ARMS, 1000, horizon=60)
    for _ in range(2 * ARMS):
        step(session, table)
    replan(session, levels, prices)
    while not session.over:
        if leaves is not None and session.spent == leaves and len(session.trainable) > 1:
            session.apply(LearnerLeft(session.ask(), FAILED, "on purpose"))
            leaves = None
            continue
        step(session, table)
    return session


LEVELS = st.lists(st.integers(1, 60), min_size=ARMS - 1, max_size=ARMS - 1).map(sorted)
PRICES = st.just(()) | st.tuples(*[st.floats(0.01, 100)] * ARMS)


@given(LEVELS, PRICES, st.integers(0, 2**32), st.none() | st.integers(2 * ARMS, 100))
def test_arms_are_trained_to_the_levels_and_a_replay_is_equal(levels, prices, seed, leaves):
    rng = np.random.default_rng(seed)
    ends, slow = rng.uniform(0.5, 1, ARMS), rng.uniform(1, 20, ARMS)
    n = np.arange(1, 61)
    table = (ends[:, None] * n / (n + slow[:, None]) + rng.normal(0, 0.01, (ARMS, 60))).tolist()
    session = played(levels, prices, table, leaves)
    reached = sorted(pulls for arm, pulls in enumerate(session.pulls))
    if leaves is None:
        wanted = [max(2, level) for level in levels]
        assert reached == [*wanted, wanted[-1]]
    assert session.replay(session.history) == session
    assert pickle.loads(pickle.dumps(session)) == session


def test_the_best_is_kept_whatever_its_price_and_the_dear_ones_go_first():
    table = [[end * n / (n + 5) for n in range(1, 61)] for end in (0.9, 0.8, 0.7, 0.6, 0.5)]
    levels, prices = [4, 8, 16, 32], (50.0, 1.0, 9.0, 1.0, 1.0)
    by_waste, by_rating = played(levels, prices, table), played(levels, (), table)
    assert by_rating.pulls == (32, 32, 16, 8, 4)
    assert by_waste.pulls == (32, 32, 4, 16, 8)  # gaps times prices: .1, 1.8, .3 and .4
    assert by_waste.recommend().arm == by_rating.recommend().arm == 0
    one = by_waste.explain(2)
    assert one.state == "dropped" and one.decision.rival == "0"


@pytest.mark.parametrize("prices", [(), (1.0, 2.0, 3.0, 4.0, 5.0)])
def test_an_extension_goes_back_to_the_levels_of_the_policy(prices):
    table = [[end * n / (n + 5) for n in range(1, 61)] for end in (0.9, 0.8, 0.7, 0.6, 0.5)]
    session = played([4, 8, 16, 32], prices, table)
    assert session.levels_given
    session.apply(Extended(200, 200, 60))
    assert not session.levels_given and not session.over
