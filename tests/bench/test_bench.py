"""The bench counts as documented, pairs what it compares, and reports what it skips."""

import math
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer import RisingSR, SuccessiveHalving
from latebloomer.bench import COMPARED, Curves, bench, benchmark, costs, curve_runs, curve_sets
from latebloomer.bench.costs import COMPARED as MEASURES
from latebloomer.bench.costs import PULLS, Cost, cost, lines_of
from latebloomer.bench.curve_runs import play, play_all, shuffled
from latebloomer.bench.curve_sets import read_sets
from latebloomer.bench.report import line_styles
from latebloomer.cli import app
from latebloomer.errors import SettingError
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.session.session import Session

NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LATEBLOOMER_DATA"), reason="LATEBLOOMER_DATA names no recorded curves"
)


def rising(arms=5, length=40, sd=None, name="one", group="toy"):
    t = np.arange(1, length + 1)
    speeds = np.linspace(0.02, 0.3, arms)[:, None]
    return Curves(group, name, np.linspace(1, 0.5, arms)[:, None] * (1 - np.exp(-speeds * t)), sd)


def run(*words):
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def test_the_truth_is_the_mean_of_the_last_fiftieth_and_a_pull_of_ten_steps():
    curves = Curves("toy", "x", np.array([np.arange(100.0), np.zeros(100)]))
    assert curves.truth().tolist() == [98.5, 0.0]  # the mean of 98 and 99
    assert curves.worth(1).tolist() == [0.0, 0.0] and curves.worth(2).tolist() == [0.5, 0.0]
    assert Curves("toy", "x", np.eye(3)).truth().tolist() == [0, 0, 1]  # at least one pull
    assert curve_sets.by_pull(np.arange(40.0)[None], 30).tolist() == [[4.5, 14.5, 24.5]]
    level = np.full((1, 300), 0.7)
    assert curve_sets.smoothed(level) == pytest.approx(level)


def test_rewards_are_the_same_for_every_policy_and_scatter_as_documented():
    noisy = rising(sd=0.1)
    assert np.array_equal(noisy.tables(4, seed=1), noisy.tables(4, seed=1))
    assert not np.array_equal(noisy.tables(4, seed=1), noisy.tables(4, seed=2))
    assert np.array_equal(noisy.tables(4, seed=1)[:2], noisy.tables(2, seed=1))
    assert rising().tables(4, seed=1).shape == (1, 5, 40)
    outcomes = Curves("toy", "x", rising().means, outcomes=10).tables(200, seed=0)
    assert set(np.unique(outcomes * 10)) <= set(range(11))
    assert abs(outcomes.mean() - rising().means.mean()) < 0.01  # its sd is under .0011


@NEEDS_DATA
def test_the_public_sets_are_as_many_as_their_readme_says():
    found = {name: list(make()) for name, make in curve_sets.PUBLIC.items()}
    assert {name: len(part) for name, part in found.items()} == {
        "lcdb11-linear": 183, "lcdb11-geometric": 183, "taskset": 92, "srb-imdb": 100,
        "yahpo": 272,
    }  # fmt: skip
    for name, part in found.items():
        assert all(curves.group == name and np.isfinite(curves.means).all() for curves in part)
        assert len({curves.name for curves in part}) == len(part)
    assert {curves.length for curves in found["lcdb11-linear"]} == {100}
    assert {curves.length for curves in found["srb-imdb"]} == {200, 500, 1000, 2000}
    # 51 and 52 are recorded; the first is of a model before training
    assert {curves.length for curves in found["taskset"]} == {50}
    assert {curves.length for curves in found["yahpo"]} == {51}
    eights = [curves for name in ("taskset", "srb-imdb", "yahpo") for curves in found[name]]
    assert {curves.arms for curves in eights} == {8}
    assert 26 < np.mean([curves.arms for curves in found["lcdb11-linear"]]) < 27


@NEEDS_DATA
def test_sets_of_configurations_come_in_larger_groups_too():
    problems, skipped = read_sets(["taskset", "yahpo"], arms=[8, 64, 128])
    assert {curves.group: curves.arms for curves in problems} == {
        "taskset": 8, "taskset-64": 64, "taskset-128": 128, "yahpo": 8, "yahpo-64": 64
    }  # fmt: skip
    assert [skip.what for skip in skipped] == ["yahpo-128"]


@NEEDS_DATA
def test_the_report_says_which_score_is_left_out():
    assert "a score before training is not a pull" in str(bench(["yahpo"], ["r-sr"], [1], draws=1))
    assert "before training" not in str(bench(["paper-b"], ["r-sr"], [1], draws=1))


@pytest.mark.slow
@NEEDS_DATA
def test_adaptive_rejects_beats_r_sr_on_recorded_curves():
    """On the smallest public set, TaskSet: at most .085 where R-SR has about .097."""
    found = bench(["taskset"], ["adaptive-rejects", "r-sr"], draws=1)
    assert found.loss("adaptive-rejects") <= 0.085
    assert abs(found.loss("r-sr") - 0.097) <= 0.005


@pytest.mark.parametrize("text", ["r-sr", "asha"])
def test_a_run_of_the_bench_is_a_session_with_the_same_rewards(text):
    policy, tables = make_policy(text), rising(sd=0.05).tables(3, seed=0)
    found = play(policy, tables, 80, 3, seed=0)
    for draw, table in enumerate(tables):
        session = Session(policy, 5, 80, 40)
        while not session.over:
            arm = session.ask()
            session.tell(arm, float(table[arm, session.pulls[arm]]))
        assert (found.picks[draw], found.spent[draw]) == (session.recommend().arm, session.spent)


def test_a_policy_that_cannot_pay_for_all_arms_plays_some_and_the_rest_is_counted():
    # R-SR needs K + 1 pulls, and halving K ceil(log2 K): 8 x 3 = 24, 7 x 3 = 21, 6 x 3 = 18
    for policy, budget in ((RisingSR(), 7), (SuccessiveHalving(), 20)):
        assert curve_runs.playable(policy, 8, budget) == 6
    tables = rising(arms=8, length=20).tables(5, 0)
    found, alone = (play(RisingSR(), tables, budget, 5, seed=0) for budget in (7, 1))
    assert found.left_out == 2 and max(found.spent) <= 7
    assert alone.left_out == 8 and not alone.spent.any()


def test_losses_by_hand():
    # truths 1, .8, .5, .5; the drawn curves end at .6, .9, .7, .1
    curves = Curves("toy", "x", np.array([[1.0], [0.8], [0.5], [0.5]]).repeat(10, axis=1))
    curves.means[1, 0] = 0.3  # after one pull
    ends = np.array([0.6, 0.9, 0.7, 0.1])
    best, second, last = (cost(curves, 0, ends, pick, 10, 0.5, 0.25) for pick in (0, 1, 3))
    assert best == Cost(0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.25)  # two drawn curves end above it
    assert second == pytest.approx((0.25, 0.0, 0.2 / 0.5, 1.0, 0.2 / 0.5, 0.5, 0.25))
    assert last == pytest.approx((0.5, 0.75, 1.0, 1.0, 1.0, 0.5, 0.25))
    # returned after one pull it is worth .3, and .7 of a range of .5 is lost
    assert cost(curves, 0, ends, 1, 1, 0.5, 0).returned == pytest.approx(0.7 / 0.5)
    assert cost(curves, 0, ends, 1, 1, 0.5, 0).regret == second.regret


def test_where_test_scores_were_recorded_a_pick_is_worth_its_test_score_in_the_run_drawn():
    runs = np.tile(np.array([[0.9], [0.5]])[:, :, None], (1, 2, 4))
    test = runs.copy()
    test[:, 1] = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.7, 0.8]]  # in the second run the other wins
    curves = Curves("toy", "x", runs.mean(axis=1), runs=runs, test=test)
    ends = runs[:, 0, -1]
    assert cost(curves, 0, ends, 0, 4, 1, 0).rank_loss == 0.0
    second = cost(curves, 1, ends, 0, 2, 1, 0)
    assert (second.rank_loss, second.own_loss, second.regret) == (0.5, 0.0, 1.0)
    assert second.returned == pytest.approx((0.8 - 0.2) / 0.4)


def test_arms_of_a_draw_show_the_same_recorded_run_and_draws_take_runs_in_turn():
    runs = np.arange(3.0)[None, :, None] + np.zeros((4, 3, 5))  # run k shows k
    curves = Curves("toy", "x", runs.mean(axis=1), runs=runs)
    assert [np.unique(table).tolist() for table in curves.tables(5, seed=0)] == [
        [0.0], [1.0], [2.0], [0.0], [1.0]
    ]  # fmt: skip
    assert curves.runs_shown(2, seed=1).tolist() == [1, 2]


def test_standard_errors_are_of_paired_differences_by_hand():
    losses = {"toy": [[0.1, 0.1], [0.3, 0.2], [0.5, 0.0]], "other": [[0.4, 0.6]]}
    found = {
        group: np.array([[[[loss] * len(Cost._fields)] for loss in problem] for problem in part])
        for group, part in losses.items()
    }
    lines = lines_of(found, ["a", "b"], [1.0], "a", PULLS)
    by_place = {(line.group, line.policy): line for line in lines}
    more = np.array([0.0, -0.1, -0.5])
    toy = by_place["toy", "b"]
    assert toy.rank_loss == pytest.approx(0.1)
    assert toy.rank_loss_difference == pytest.approx(more.mean())
    assert toy.rank_loss_se == pytest.approx(more.std(ddof=1) / math.sqrt(3))
    assert math.isnan(by_place["other", "b"].rank_loss_se)  # one problem
    assert by_place["all", "b"].rank_loss == pytest.approx((0.1 + 0.6) / 2)  # sets count alike
    assert all(f"{name}_{part}" in lines[0]._fields for name in MEASURES
               for part in ("difference", "se"))  # fmt: skip


def test_over_all_sets_the_half_for_design_does_not_count():
    one = np.full((2, 1, 1, len(Cost._fields)), 0.5)
    found = {costs.DESIGN: one, "a": one / 5, "b": one / 5}
    lines = {line.group: line for line in lines_of(found, ["auto"], [1.0], "auto", PULLS)}
    assert lines["all"].rank_loss == pytest.approx(0.1) and lines["all"].problems == 4
    two = lines_of({costs.DESIGN: one, "a": one}, ["auto"], [1.0], "auto", PULLS)
    assert {line.group for line in two} == {costs.DESIGN, "a"}


def test_the_order_in_which_a_set_lists_its_learners_does_not_decide():
    curves = rising(sd=0.05)
    tables, order = shuffled(curves, 4, seed=0)
    for draw, drawn in enumerate(curves.tables(4, seed=0)):
        assert sorted(order[draw]) == list(range(5))
        assert np.array_equal(tables[draw], drawn[order[draw]])
    assert len({tuple(row) for row in order.tolist()}) > 1
    # ASHA trains the first arm to the end: with one training's budget that is a random arm
    asha = {"asha": make_policy("asha")}
    (found,) = play_all([rising(arms=2)], asha, [1.0], 60, 0, 1)
    assert 0.2 < found[0, 0, Cost._fields.index("error")] < 0.8  # of 60 draws, 6 sd


def test_threads_change_nothing():
    problems = [rising(sd=0.1, name=str(k)) for k in range(6)]
    one, two = (play_all(problems, {"r-sr": RisingSR()}, [1, 2], 3, 0, k) for k in (1, 3))
    assert np.array_equal(one, two)


def test_every_policy_is_compared_or_left_out_for_a_reason_and_drawn_in_its_own_style():
    every = benchmark.EVERY
    assert COMPARED[0] == every[0] == "auto" and set(COMPARED) | set(benchmark.TIMED) <= set(every)
    made = [repr(make_policy(text)) for text in every[1:]]
    assert len(set(made)) == len(made)
    played, left_out = {text.partition(":")[0] for text in every[1:]}, set(benchmark.LEFT_OUT)
    assert played | left_out == set(REGISTRY) and not played & left_out
    assert played >= {"i-epoch", "rising-bandits", "max-ucb", "ptrr", "hybrid", "asha"}
    styles = line_styles(every)  # which differ without colors too
    assert len({(style.marker, style.dashes) for style in styles.values()}) == len(every)
    assert max(styles, key=lambda policy: styles[policy].width) == "auto"


@pytest.mark.parametrize(
    "bad", [{"draws": 0}, {"budgets": [0]}, {"budgets": [1, 1]}, {"units": ["hours"]}]
)
def test_settings_outside_their_range_are_errors(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        bench(["paper-a"], ["r-sr"], **bad)


def test_a_wrong_call_is_one_line_and_code_2(tmp_path):
    for words, said in [
        (("--sets", "lcdb"), "UnknownName: --sets: no set of curves is called 'lcdb'; did you"),
        (("--budgets", "x", "--sets", "paper-a"), "SettingError: --budgets 'x'"),
        (("--policies", "r-usr", "--sets", "paper-a"), "no policy is called 'r-usr'"),
        ((tmp_path,), "CurveError: "),
        (("--units", "seconds", "--sets", "paper-b"), "CurveError: no set that was named has rec"),
    ]:
        ran = run(*words)
        assert ran.exit_code == 2 and said in ran.stderr, ran.output


def test_auto_drops_no_arm_before_its_second_pull_as_in_a_race():
    means = np.full((8, 20), 0.3)
    means[3] = 0.9
    means[3, 0] = 0.1  # the score of a model that is not trained yet
    players = {name: make_policy("foresight") for name in ("auto", "foresight")}
    auto, named = play_all([Curves("toy", "x", means)], players, [1.6], 5, 0, 1)[0]
    error = Cost._fields.index("error")
    assert auto[0, error] == 0 and named[0, error] == 1
