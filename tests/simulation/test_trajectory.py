"""One run pull by pull: it is the run that is counted, and a session can replay it."""

import numpy as np
import pytest

from latebloomer import Problem, Session, trajectory
from latebloomer.errors import BudgetError, SettingError, UnknownName
from latebloomer.policies.registry import make_policy
from latebloomer.problems import problem
from latebloomer.simulation.one_run import arms_in_order
from tests.helpers.simulations import quiet

plt = pytest.importorskip("matplotlib.pyplot")

POLICIES = ["r-sr", "r-ucbe:noise=0.1", "foresight", "prob-1", "asha", "rest-sure", "ptrr"]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_is_the_run_that_is_counted(policy):
    found = trajectory("paper-a:sigma=0.1", policy, 150, seed=4, run=7)
    (cell,) = quiet("paper-a:sigma=0.1", policy, 150, 1, 4, first_run=7, method="pulls").cells
    pulled = np.bincount(found.arms, minlength=5)
    assert [dict(arm) for arm in cell.pulls] == [{n: 1} for n in pulled]
    assert cell.recommendations[found.recommended] == 1
    setting, row = problem("paper-a:sigma=0.1"), found.rows()[-1]
    arm = int(found.arms[-1])
    assert row["reward"] == setting.draw(arm, row["of_arm"], seed=4, run=7)
    assert row["pull"] == len(found) and row["arm"] == setting.names[arm]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_session_replays_a_run_with_its_rewards(policy):
    found = trajectory("paper-a:sigma=0.1", policy, 150, seed=4, run=7)
    order = arms_in_order(make_policy(policy), 5, 4, 7)
    session = Session(policy, 5, 150, seed=4, run=7)
    for arm, reward in zip(found.arms.tolist(), found.rewards.tolist(), strict=True):
        assert order[session.ask()] == arm
        session.tell(session.ask(), reward)
    assert session.over and order[session.recommend().arm] == found.recommended
    assert session.replay(session.history) == session


def test_runs_of_a_random_policy_differ_and_can_be_asked_for():
    one, same, other = (trajectory("paper-a", "prob-1", 60, run=run) for run in (1, 1, 2))
    assert one.arms.tolist() == same.arms.tolist() != other.arms.tolist()
    first = [Session("prob-1", 5, 60, run=run).ask() for run in range(8)]
    assert len(set(first)) > 1


def test_it_is_printed_drawn_and_a_frame():
    found = trajectory("paper-a", "r-ucbe:noise=0.01,exploration=2", 400)
    text = str(found).splitlines()
    assert text[0] == "r-ucbe:exploration=2,noise=0.01 on paper-a, seed 0, run 0"
    assert len(text) == 24 and text[-1] == "recommended: " + found.names[found.recommended]
    frame = found.to_frame("pull")
    assert frame.loc[400, "arm"] == found.names[found.arms[-1]]
    assert (frame["rating"] >= frame["estimate"]).all()  # the bound is above the estimate
    for what in ("estimate", "rating", "reward", "pulls"):
        axes = found.plot(what)
        assert sum(len(line.get_xdata()) for line in axes.get_lines()) == 400
        plt.close(axes.figure)
    with pytest.raises(SettingError, match="one of estimate, rating, reward, pulls"):
        found.plot("regret")


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (("paper-c", "r-sr", 100), UnknownName, "did you mean 'paper-b' or 'paper-a'"),
        (("paper-a", "r-ssr", 100), UnknownName, "did you mean 'r-sr'"),
        (("paper-a", "r-sr", 4), BudgetError, "too small for 5 learners"),
        (("paper-a", "r-sr", 100, 0, -1), SettingError, "run=-1, but run must be from 0 to"),
    ],
)
def test_bad_input_is_an_error_that_says_what_to_type(bad, error, words):
    with pytest.raises(error, match=words):
        trajectory(*bad)


def test_a_constant_mean_is_an_arm():
    setting = Problem([lambda n: 0.6, lambda n: n / (n + 9)], noise=0.01)
    assert setting.means(2).tolist() == [[0.6, 0.6], [0.1, 2 / 11]]
    assert trajectory(setting, "r-sr", 100).recommended == 1
