"""What other public ports play, by rules written from their description, beside ours.

The facts are those of docs/reproduction.md; the rules are ours, a few lines each.
"""

from math import ceil, floor

import numpy as np
import pytest

from latebloomer import RisingSR, SuccessiveHalving
from latebloomer.core.phases import log_bar, phase_lengths
from latebloomer.problems import problem
from tests.helpers.played_policies import play

NAMES = ["late", "second", "early", "weak", "slow"]
K, T = 5, 800
CURVES = problem("paper-a").means(T)  # README's


@pytest.fixture(params=range(10))
def rewards(request, seed):
    return CURVES + 0.01 * np.random.default_rng([seed, request.param]).standard_normal((K, T))


def newest(rewards):
    return np.mean(rewards[-max(1, floor(len(rewards) / 4)) :])


def all_but_the_window(rewards):
    return np.mean(rewards[: -max(1, floor(len(rewards) / 4))])


def oldest_of_the_best_so_far(rewards):
    h = floor(len(rewards) / 4)
    return np.mean(np.maximum.accumulate(rewards)[: -(h + 1)])


def last_standing(rewards, levels, rate):
    """Bring the survivors to each level; there the one with the lowest rate goes."""
    arms = list(range(len(rewards)))
    for level in levels:
        arms.remove(min(arms, key=lambda i: rate(rewards[i][:level])))
    return NAMES[arms[0]]


def phases_with_a_first_one_that_is_not_empty():
    def ends(j):
        return ceil((T - K) / (log_bar(K) * (K + 1 - j)))

    return np.cumsum([ends(j) - ends(j - 1) + 1 for j in range(1, K)])


def our_pick(policy, rewards, names=NAMES, budget=T):
    return names[play(policy, rewards, budget).recommend().arm]


def test_our_r_sr_keeps_the_late_bloomer(rewards):
    # Of the exact curves always; with noise of .01 in 95 % of runs.
    assert our_pick(RisingSR(), CURVES) == "late"
    by_rule = last_standing(rewards, phase_lengths(K, T), newest)
    assert our_pick(RisingSR(), rewards) == by_rule


def test_averages_of_the_oldest_rewards_keep_the_early_riser(rewards):
    ours, short = phase_lengths(K, T), phases_with_a_first_one_that_is_not_empty()
    assert (ours[0], short[0]) == (90, 16)  # N(1) - N(0) + 1 = 90 - 75 + 1
    assert last_standing(rewards, short, oldest_of_the_best_so_far) == "early"
    # Each of the two slips is enough to lose the late bloomer.
    assert last_standing(rewards, ours, oldest_of_the_best_so_far) == "early"
    assert last_standing(rewards, short, newest) == "second"
    assert last_standing(rewards, ours, all_but_the_window) == "early"


def test_a_first_cut_by_arm_index_depends_on_the_order_of_the_arms():
    def cut_by_index(rewards, names):
        """Halving that first keeps the arms that stand first, and then goes by the value."""
        return names[max(range(ceil(K / 2)), key=lambda i: rewards[i][-1])]

    orders = [(CURVES, NAMES), (CURVES[::-1], NAMES[::-1])]
    assert [cut_by_index(*order) for order in orders] == ["late", "early"]
    assert {our_pick(SuccessiveHalving(), *order, budget=1600) for order in orders} == {"late"}
