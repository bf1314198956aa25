"""The bench counts as documented, pairs what it compares, and reports what it skips."""

import math
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer import RisingSR, SuccessiveHalving
from latebloomer.bench import COMPARED, Curves, bench, benchmark, curve_runs, curve_sets
from latebloomer.bench.curve_runs import Played, play, play_all, shuffled
from latebloomer.bench.curve_sets import read_sets
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
    assert curves.truth.tolist() == [98.5, 0.0]  # the mean of 98 and 99
    assert Curves("toy", "x", np.eye(3)).truth.tolist() == [0, 0, 1]  # at least one pull
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
    found = bench(["taskset"], ["adaptive-rejects", "sh:judge=window"], draws=1)
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
    # truths 1, .8, .5, .5; picks of arms 0, 1 and 3: none, one and two of four are better
    curves = Curves("toy", "x", np.array([[1.0], [0.8], [0.5], [0.5]]).repeat(10, axis=1))
    found = curve_runs.cost(curves, Played(np.array([0, 1, 3]), np.array([10, 10, 10]), 1), 2)
    # regrets 0, .2, .5 of a range of .5; two of three are not the best; 10 of 20 pulls
    assert found == pytest.approx([(0 + 0.25 + 0.5) / 3, (0.2 + 0.5) / 1.5, 2 / 3, 0.5, 0.25])


def test_standard_errors_are_of_paired_differences_by_hand():
    problems = [rising(name=str(k)) for k in range(3)] + [rising(group="other")]
    pick = {("a", 1.0): [0, 1, 2, 4], ("b", 1.0): [0, 0, 0, 3]}
    played = [
        {key: Played(np.array([arms[k]]), np.array([40]), 0) for key, arms in pick.items()}
        for k in range(4)
    ]
    lines = curve_runs.lines_of(curve_runs.costs_by_set(problems, played), ["a", "b"], [1.0], "a")
    found = {(line.group, line.policy): line for line in lines}
    ranks = [np.mean(curves.truth > curves.truth[arm]) for curves, arm in
             zip(problems, pick["a", 1.0], strict=True)]  # fmt: skip
    less = np.array(ranks[:3]) - np.mean(problems[0].truth > problems[0].truth[0])
    toy = found["toy", "b"]
    assert toy.rank_loss_less == pytest.approx(less.mean())
    assert toy.rank_loss_se == pytest.approx(less.std(ddof=1) / math.sqrt(3))
    assert math.isnan(found["other", "b"].rank_loss_se)  # one problem
    both = (toy.rank_loss + found["other", "b"].rank_loss) / 2
    assert found["all", "b"].rank_loss == pytest.approx(both)  # sets count alike


def test_the_order_in_which_a_set_lists_its_learners_does_not_decide():
    curves = rising(sd=0.05)
    tables, order = shuffled(curves, 4, seed=0)
    for draw, drawn in enumerate(curves.tables(4, seed=0)):
        assert sorted(order[draw]) == list(range(5))
        assert np.array_equal(tables[draw], drawn[order[draw]])
    assert len({tuple(row) for row in order.tolist()}) > 1
    # ASHA trains the first arm to the end: with one training's budget that is a random arm
    found = play_all([curves], {"asha": make_policy("asha")}, [1.0], 60, 0, 1)
    assert set(found[0]["asha", 1.0].picks) == set(range(5))  # except once in 10^5


def test_threads_change_nothing():
    problems = [rising(sd=0.1, name=str(k)) for k in range(6)]
    one, two = (play_all(problems, {"r-sr": RisingSR()}, [1, 2], 3, 0, k) for k in (1, 3))
    for left, right in zip(one, two, strict=True):
        assert all(np.array_equal(left[key].picks, right[key].picks) for key in left)


def test_every_policy_is_compared_or_left_out_for_a_reason_and_drawn_in_its_own_style():
    assert COMPARED[0] == "auto"
    made = [repr(make_policy(text)) for text in COMPARED[1:]]
    assert len(set(made)) == len(made)
    played, left_out = {text.partition(":")[0] for text in COMPARED[1:]}, set(benchmark.LEFT_OUT)
    assert played | left_out == set(REGISTRY) and not played & left_out
    assert played >= {"i-epoch", "rising-bandits", "max-ucb", "ptrr", "hybrid", "asha"}
    styles = benchmark.line_styles(COMPARED)  # which differ without colors too
    assert len({(style.marker, style.dashes) for style in styles.values()}) == len(COMPARED)
    assert max(styles, key=lambda policy: styles[policy].width) == "auto"


@pytest.mark.parametrize("bad", [{"draws": 0}, {"budgets": [0]}, {"budgets": [1, 1]}])
def test_settings_outside_their_range_are_errors(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        bench(["paper-a"], ["r-sr"], **bad)


def test_a_wrong_call_is_one_line_and_code_2(tmp_path):
    for words, said in [
        (("--sets", "lcdb"), "UnknownName: --sets: no set of curves is called 'lcdb'; did you"),
        (("--budgets", "x", "--sets", "paper-a"), "SettingError: --budgets 'x'"),
        (("--policies", "r-usr", "--sets", "paper-a"), "no policy is called 'r-usr'"),
        ((tmp_path,), "CurveError: "),
    ]:
        ran = run(*words)
        assert ran.exit_code == 2 and said in ran.stderr, ran.output


LENGTH = 100


def straight(levels, full):
    """Straight rises to a level; training takes `full` seconds in total, evenly."""
    share = np.arange(1, LENGTH + 1) / LENGTH
    return np.outer(levels, share), np.outer(full, share)


def pick_and_time(unit, levels, full, limit):
    return benchmark.race_in_time(RisingSR(), *unit(*straight(levels, full)), limit)


def test_by_shares_a_pull_costs_a_hundredth_of_the_training_and_by_time_of_the_average_one():
    _, seconds = benchmark.same_share(*straight([0.9, 0.5], [1.0, 3.0]))
    assert seconds == pytest.approx(np.outer([0.01, 0.03], np.ones(LENGTH)))
    pick, spent = pick_and_time(benchmark.same_share, [0.9, 0.5, 0.4], [1.0, 1.0, 1.0], limit=1.5)
    assert pick == 0 and spent == pytest.approx(1.5, abs=0.02)
    # The average training takes 1 s, a pull a hundredth of that: the short one has ten pulls.
    scores, seconds = benchmark.same_time(*straight([0.9, 0.5], [0.1, 1.9]))
    assert scores.shape == (2, 190) and np.isfinite(scores[1]).all()
    assert np.isfinite(scores[0]).sum() == 10 and scores[0, 9] == pytest.approx(0.9)
    assert seconds[np.isfinite(scores)] == pytest.approx(0.01)
    pick, spent = pick_and_time(benchmark.same_time, [0.9, 0.5], [0.1, 1.9], limit=0.5)
    assert pick == 0 and spent <= 0.52
    # After the same time the slow learner looks worse than it is.
    units = (benchmark.same_time, benchmark.same_share)
    assert [pick_and_time(unit, [0.6, 0.9], [0.1, 10.0], limit=2.0)[0] for unit in units] == [0, 1]


def test_the_time_budget_stops_a_race_within_a_pull_of_its_time():
    n, arm = np.arange(1, 501), np.arange(1, 4)[:, None]
    seconds = np.array([[0.02], [0.05], [0.01]]) * np.ones(500)
    spent = benchmark.race_in_time(RisingSR(), n / (n + arm), seconds, 2.0)[1]
    assert abs(spent - 2.0) <= 0.05


def test_both_units_are_policies_of_one_report(monkeypatch):
    made = []
    for k in range(3):
        scores, seconds = straight([0.9, 0.6, 0.5], [1.0, 2.0 + k, 0.5])
        runs = np.stack([scores, scores], axis=1)
        made.append(Curves("lcdb10", f"set-{k}", scores, runs=runs, seconds=seconds))
    monkeypatch.setattr(curve_sets, "lcdb10", lambda: iter(made))
    report = benchmark.bench_times(("r-sr", "sh"), budgets=(1.0, 2.0), draws=2)
    labels = {f"{policy}, {unit}" for policy in ("r-sr", "sh") for unit in benchmark.UNITS}
    assert {line.policy for line in report.lines} == labels
    by_share = [line for line in report.lines if line.policy.endswith("same share")]
    assert {line.rank_loss for line in by_share} == {0.0}  # straight rises keep their order
    assert all(0 < line.spent <= 1.1 for line in report.lines)
    assert "| r-sr, same share | " in str(report) and "*same time*" in str(report)


@NEEDS_DATA
def test_the_recorded_set_has_times_that_only_rise():
    first = next(curve_sets.lcdb10())
    seconds = benchmark.without_start(first.seconds)
    assert first.runs.shape[2] == seconds.shape[1] == 100
    assert (np.diff(seconds, axis=1) >= 0).all() and (seconds > 0).all()
