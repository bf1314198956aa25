"""What other rules would have picked, worked by hand."""

import numpy as np

from latebloomer.racing.verdict.history import Curve, asha, halving
from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.session import Session

NAMES = ["a", "b", "c", "d"]


def curves(*values, left=()):
    words = [*left, *[None] * (len(values) - len(left))]
    return [Curve(np.array(x, dtype=float), word) for x, word in zip(values, words, strict=True)]


def test_halving_with_all_of_the_curves_is_the_policy_itself(rng):
    rewards = rng.normal(size=(4, 40)).cumsum(axis=1)
    session = Session("sh", NAMES, 40)
    while not session.over:
        arm = session.ask()
        session.tell(arm, rewards[arm, session.pulls[arm]])
    found = halving(NAMES, curves(*rewards), 40)
    assert found.pick == session.recommend().name and found.pulls == session.spent


def test_halving_stops_where_the_record_does():
    # 4 arms, 2 rounds: with T = 16 each gets 2, then the better two 4 more; b is known to 3 only.
    known = curves([1] * 9, [2, 2, 2], [0] * 2, [0] * 2)
    found = halving(NAMES, known, 16)
    assert found.pick == "b" and found.pulls < 16  # T = 8: 1 each, then 2 more for a and b
    assert "as far as curves were recorded" in found.sentence


def test_halving_that_needs_more_than_there_is_says_so():
    assert halving(NAMES, curves([1], [1], [1], []), 40).pick is None


def test_a_finished_arm_keeps_its_score_and_a_failed_one_loses():
    known = curves([9], [8] * 20, [1] * 20, [2] * 20, left=[FINISHED])
    assert halving(NAMES, known, 40).pick == "a"
    known = curves([9], [8] * 20, [1] * 20, [2] * 20, left=[FAILED])
    assert halving(NAMES, known, 40).pick == "b"


def test_asha_stops_whoever_is_not_in_the_top_quarter_so_far():
    # a comes first and runs on alone; b and c are below it at rung 1 and stop there; d goes on.
    known = curves([2] * 16, [1, 9, 9, 9], [1, 9, 9, 9], [3] * 16)
    found = asha(NAMES, known, 100)
    assert found.pick == "d" and found.pulls == 16 + 1 + 1 + 16
