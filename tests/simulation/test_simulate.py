"""Simulations: the same numbers however they are made, and the right ones."""

import csv
import io
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from latebloomer import (
    Problem,
    Results,
    Session,
    SuccessiveHalving,
    check_policy,
    errors,
    simulate,
)
from latebloomer.cli import app
from latebloomer.core.kernel import cpu_jit, kernel
from latebloomer.core.run_memory import REWARDS, Memory
from latebloomer.errors import BudgetError, CurveError, SettingError, UnknownName
from latebloomer.page.figures import COLORS
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import REGISTRY, label_of, make_policy
from latebloomer.problems import problem
from latebloomer.simulation.experiment import experiment_of, informed
from latebloomer.simulation.one_run import arms_in_order
from latebloomer.simulation.players import lanes_of, plain_player
from tests.helpers.pictures import shows
from tests.helpers.simulations import (
    before_chunks,
    content,
    failing_at,
    quiet,
    under_the_simulator,
)

SOME = [  # one policy of each family of kernels
    "r-ucbe:exploration=20,noise=0.05", "r-ucbe", "r-sr", "prob-1", "rest-sure:width_scale=0.0001",
    "sh:judge=window", "asha:eta=2,grace=2,workers=3", "foresight",
]  # fmt: skip
EXAMPLES = {label_of(policy): policy for kind in REGISTRY.values() for policy in kind.examples()}
EVERY = [*EXAMPLES]
SUMS = ["r-sr", "sh:judge=window"]
EVERY_BY_SUMS = [
    label
    for label, policy in EXAMPLES.items()
    if policy.rates_by_sums() and policy.rated_share() is not None
]
STORED = ["foresight", "rest-sure:width_scale=0.0001", "r-ucbe"]
some_or_every = pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"]
)


def saved(results):
    """The exact content of results, without the name of the target."""
    return results.as_document() | {"targets": None}


@some_or_every
def test_threads_chunks_and_the_order_of_policies_change_nothing(every):
    policies = EVERY if every else SOME
    whole = saved(quiet("paper-a:sigma=0.1", policies, [60, 150], 40))
    for other in ({"threads": 1}, {"threads": 3, "chunk": 7}, {"chunk": 1}):
        again = quiet("paper-a:sigma=0.1", policies, [60, 150], 40, **other)
        assert saved(again) == whole
    back = quiet("paper-a:sigma=0.1", policies[::-1], [150, 60], 40)
    assert saved(back) == whole


@some_or_every
@pytest.mark.parametrize("method", ["pulls", "sums"])
def test_plain_python_gives_the_same_results(method, every):
    by_pulls, by_sums = (EVERY, EVERY_BY_SUMS) if every else (SOME, SUMS)
    policies = by_pulls if method == "pulls" else by_sums
    cpu = quiet("paper-a:sigma=0.1", policies, [150], 12, method=method)
    plain = quiet("paper-a:sigma=0.1", policies, [150], 12, method=method, target="python")
    assert saved(cpu) == saved(plain)


@pytest.mark.parametrize("horizon", [None, 9])  # at 9 every arm is at the horizon before the end
@pytest.mark.parametrize("name", ["r-ucbe", "ucb-e", "prob-1", "r-sr", "rest-sure"])
def test_runs_side_by_side_are_the_runs_one_by_one(name, horizon):
    """Also those of an odd number of runs, and of policies that are never played so."""
    given = {name: make_policy(name)}
    made = experiment_of(problem("paper-a:sigma=0.1"), given, 60, horizon, 3, "pulls", "python")
    policy = made.policies[name]
    players = plain_player(made, policy), plain_player(made, policy, lanes=2)
    found = []
    for player in players:
        recommended, pulls = np.zeros(5, np.int32), np.zeros((5, 5), np.int32)
        player(20, recommended, pulls)
        found.append((recommended.tolist(), pulls.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "on", "budget", "lanes"),
    [
        ("r-ucbe", "paper-a", 3200, 2), ("ucb-e", "paper-a", 3200, 2),
        ("r-sr", "paper-a", 3200, 1), ("etc", "paper-a", 3200, 1),  # phases
        ("asha", "paper-a", 3200, 1), ("prob-1", "paper-a", 3200, 1),  # other ways to pick
        ("r-ucbe", "random:F:K=1000", 40_000, 1),  # 320 MB of rewards
    ],
)  # fmt: skip
def test_two_runs_are_played_together_where_the_next_arm_waits(name, on, budget, lanes):
    made = experiment_of(problem(on), {name: make_policy(name)}, budget, None, 0, "pulls")
    assert lanes_of(made, made.policies[name]) == lanes


@some_or_every
def test_the_gpu_target_gives_the_same_results_under_the_simulator(every):
    code = f"from tests.simulation import test_simulate as t; t.compare_targets({every})"
    found = under_the_simulator(code)
    compared = 2 * len(EVERY) + len(STORED) if every else 2 * len(SOME) + 1
    assert found == {"compared": compared, "different": []}


def compare_targets(every):
    policies = EVERY if every else SOME
    cases = [
        ("paper-a:sigma=0.1", None, policies, 60), ("paper-a:noise=bernoulli", 9, policies, 60),
        ("random:F:K=64", None, STORED if every else STORED[:1], 270),  # too many for near memory
    ]  # fmt: skip
    different, compared = [], 0
    for name, horizon, policies, budget in cases:
        on = {"horizon": horizon, "method": "pulls"}
        gpu = quiet(name, policies, [budget], 3, target="gpu", **on)
        plain = quiet(name, policies, [budget], 3, target="python", **on)
        for one, other in zip(gpu.cells, plain.cells, strict=True):
            compared += 1
            if one != other:
                different.append(one.policy)
    print(json.dumps({"compared": compared, "different": different}))


@some_or_every
def test_a_simulated_run_is_the_session_with_the_same_rewards(every):
    setting = problem("random:exponential:K=6:seed=2:sigma=0.1")
    for name in EVERY if every else SOME:
        policy = informed(make_policy(name), setting, 90)
        found = quiet(setting, policy, 90, 1, seed=5, method="pulls")
        session, order = Session(policy, 6, 90, seed=5), arms_in_order(policy, 6, 5, 0)
        while not session.over:
            arm = session.ask()
            session.tell(arm, setting.draw(order[arm], session.pulls[arm] + 1, seed=5, run=0))
        row = found.rows()[0]
        assert [row["pulls"][arm] for arm in order] == list(session.pulls)
        assert row["recommendations"][order[session.recommend().arm]] == 1


@pytest.mark.parametrize("policy", ["asha", "hyperband"])
def test_the_order_in_which_a_problem_lists_its_arms_decides_nothing(policy):
    """Claim: errors as often with the arms reversed; this fails once in a million."""
    means, runs = problem("paper-a").means(800), 4000
    one, other = (
        quiet(Problem(some, noise=0.01), policy, 800, runs, first_run=first, method="pulls")
        for some, first in ((means, 0), (means[::-1], runs))
    )
    table = [[cell.errors, runs - cell.errors] for (cell,) in (one.cells, other.cells)]
    assert 0 < table[0][0] < runs
    assert stats.fisher_exact(table).pvalue > 1e-6


def test_seeds_and_runs_differ():
    def counts(seed, first):
        rows = quiet("paper-a:sigma=0.5", "r-sr", 60, 200, seed=seed, first_run=first).rows()
        return rows[0]["recommendations"]

    assert len({tuple(counts(*where)) for where in ((0, 0), (1, 0), (0, 200))}) == 3


@pytest.mark.slow
def test_round_robin_window_errs_as_often_as_the_normal_distribution_says():
    # Two arms, N = 40 pulls each, the last 10 count: the better mean loses with probability
    # Phi(-gap / (sigma sqrt(2 / 10))).
    setting = Problem(np.tile([[0.5], [0.6]], 80), noise=0.2)
    expected = stats.norm.cdf(-0.1 / (0.2 * np.sqrt(0.2)))
    for method, runs in (("pulls", 4000), ("sums", 20_000)):
        row = quiet(setting, "rr-sw", 80, runs, method=method, target="python").rows()[0]
        test = stats.binomtest(row["errors"], runs, expected)
        assert test.pvalue > 1e-6, f"{method}: {row['error']} for {expected}"


@some_or_every
def test_sums_and_pulls_agree_in_distribution(every):
    # Several policies at two budgets: one of the comparisons fails once in a million.
    setting, policies = "random:F:K=6:seed=1:sigma=0.3", EVERY_BY_SUMS if every else SUMS
    pulls = quiet(setting, policies, [100, 207], 30_000, method="pulls")
    sums = quiet(setting, policies, [100, 207], 30_000, method="sums", seed=1)
    for one, other in zip(pulls.rows(), sums.rows(), strict=True):
        assert (one["policy"], one["budget"]) == (other["policy"], other["budget"])
        assert chance_of_same(one, other) > 1e-6 / (2 * len(policies)), (one, other)
        assert sum(one["pulls"]) == pytest.approx(sum(other["pulls"]))


def chance_of_same(one, other):
    """p-value of the claim that two rows recommend each arm equally often."""
    table = np.array([one["recommendations"], other["recommendations"]])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


def test_auto_plays_by_sums_only_where_every_policy_can():
    for noise, policies, method in (
        ("sigma=0.1", ["r-sr", "sh"], "sums"), ("sigma=0.1", ["r-sr", "ucb-e"], "pulls"),
        ("noise=bernoulli", "r-sr", "pulls"),
    ):  # fmt: skip
        results = quiet(f"paper-a:{noise}", policies, 60, 2, target="python")
        assert {row["method"] for row in results.rows()} == {method}


def test_the_published_errors_of_setting_a_are_in_range():
    # FIELD: R-SR names the best arm in 95 % of runs at T = 800, halving (latest) in about 42 %.
    results = quiet("paper-a", ["r-sr", SuccessiveHalving()], 800, 4000)
    r_sr, sh = (row["error"] for row in results.rows())
    assert abs(r_sr - 0.05) < 0.02
    assert abs(sh - 0.58) < 0.05


def test_ucbe_is_told_the_gaps_of_the_problem():
    policy = informed(make_policy("ucb-e"), problem("paper-a"), 500)
    assert policy.gaps[0] == 0 and policy.gaps[1] == pytest.approx(problem("paper-a").gaps(500)[1])


@dataclass(frozen=True)
class Forgetful(Policy):
    """By its newest reward, which it says is a window mean, though it keeps no sums."""

    name: ClassVar[str] = "forgetful"
    memory: ClassVar[Memory] = Memory(REWARDS)

    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]

    @kernel
    def rating(self, ledger, i, horizon):
        return ledger.last[i]

    def rated_share(self):
        return 0.0


@dataclass(frozen=True)
class Boastful(Forgetful):
    """Says that its newest reward is the mean of half of them."""

    memory: ClassVar[Memory] = Memory()

    def rated_share(self):
        return 0.5


def test_a_policy_that_keeps_no_sums_is_played_pull_by_pull_and_fails_the_contract():
    found = quiet("paper-a", Forgetful(), 100, 3, target="python")
    assert found.cells[0].method == "pulls"
    with pytest.raises(errors.ContractError, match=r"memory keeps other things\. Declare Memory"):
        check_policy(Forgetful())
    with pytest.raises(
        errors.ContractError, match=r"after 4 pulls is not the mean of the latest 2 rewards"
    ):
        check_policy(Boastful())


BAD = [
    ({"problem": "paper-c"}, UnknownName, "did you mean 'paper-b' or 'paper-a'"),
    ({"policies": "r-ssr"}, UnknownName, "did you mean 'r-sr'"),
    ({"policies": "r-ucbe:noize=1"}, UnknownName, "did you mean 'noise'"),
    ({"policies": ["sh", "sh"]}, SettingError, "sh appears twice"),
    ({"policies": []}, SettingError, "at least one"),
    ({"budgets": [100, 4]}, BudgetError, "budget=4 is too small for 5 learners"),
    ({"budgets": 2.5}, SettingError, "whole number"),
    ({"budgets": "200"}, SettingError, "budgets='200', but budgets must be a whole number"),
    ({"runs": 0}, SettingError, "runs=0, but runs must be at least 1"),
    ({"first_run": -1}, SettingError, "first_run=-1"),
    ({"seed": -1}, SettingError, "seed=-1"),
    ({"target": "tpu"}, SettingError, "one of cpu, gpu, python"),
    ({"engine": "spark"}, SettingError, "engine must be one of local, ray"),
    ({"address": "auto"}, SettingError, "Add engine='ray', or omit address"),
    ({"engine": "ray", "address": " "}, SettingError, "address must be None, 'auto'"),
    ({"method": "sums", "policies": "r-ucbe"}, SettingError, "r-ucbe has no fixed plan"),
    ({"method": "sums", "policies": Forgetful()}, SettingError, "or its memory has no sums"),
    ({"problem": Problem(np.ones((2, 50)) / 2), "budgets": 60}, CurveError, "end at pull 50"),
]


@pytest.mark.parametrize(("bad", "error", "words"), BAD, ids=[words for _, _, words in BAD])
def test_bad_input_is_refused_before_any_work(bad, error, words, monkeypatch):
    before_chunks(monkeypatch, failing_at(1, AssertionError("work was started")))
    good = {"problem": "paper-a", "policies": "r-sr", "budgets": 100, "runs": 10}
    with pytest.raises(error, match=words.replace("(", r"\(")):
        quiet(**(good | bad))


def test_without_a_gpu_the_error_says_what_to_do():
    from numba import cuda

    if cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RuntimeError, match=r"no GPU or no CUDA driver on .*\. Use target='cpu'"):
        quiet("paper-a", "r-ucbe", 100, 2, target="gpu")


@pytest.mark.parametrize("kept", [False, True])
def test_ctrl_c_keeps_the_chunks_that_are_complete(monkeypatch, tmp_path, kept):
    before_chunks(monkeypatch, failing_at(3, KeyboardInterrupt()))
    out = tmp_path / "a.json" if kept else None
    with pytest.raises(errors.Interrupted, match="Stopped after 20 of 80 runs of each") as stopped:
        simulate("paper-a", ["r-sr", "sh"], [100, 200], 40, chunk=10, out=out)
    results = stopped.value.results
    assert [(row["budget"], row["runs"]) for row in results.rows()] == [(100, 20), (100, 20)]
    if kept:
        assert content(Results.load(out)) == content(results)
        assert f"in {out}: the same call" in str(stopped.value)


@pytest.mark.usefixtures("ignored_ctrl_c")
def test_an_ignored_ctrl_c_stays_ignored(monkeypatch):
    before_chunks(monkeypatch, lambda _: signal.raise_signal(signal.SIGINT))
    assert quiet("paper-a", "r-sr", 100, 40, chunk=10).cells[0].runs == 40


def test_a_chunk_that_does_not_fit_says_how_to_lower_it(monkeypatch):
    before_chunks(monkeypatch, failing_at(1, MemoryError()))
    with pytest.raises(errors.ChunkError, match=r"chunk of 80 runs .* for example chunk=10"):
        quiet("paper-a", "r-sr", 100, 80)


def test_compiled_code_is_kept_on_disk_where_it_has_a_file():
    code = (
        "from latebloomer import simulate\n"
        "from latebloomer.core.kernel import cpu_jit\n"
        "from latebloomer.core.policy_moves import AT_DECISIONS, moves_of\n"
        "from latebloomer import RisingSR\n"
        "from latebloomer.simulation.one_run import play, play_many\n"
        "simulate('paper-a', 'r-sr', 100, 2, progress=False, method='pulls')\n"
        "found = moves_of(RisingSR, play_many, cpu_jit(), (*AT_DECISIONS, (play, play))).stats\n"
        "print(len(found.cache_hits), len(found.cache_misses))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True) for _ in range(2)]
    assert runs[1].stdout.split() == [b"1", b"0"], runs[1].stderr.decode()
    typed = {}  # code that is in no file is compiled all the same
    exec(compile("def twice(x): return 2 * x", "<stdin>", "exec"), typed)
    assert cpu_jit()(typed["twice"])(21) == 42


def test_the_bar_of_a_terminal_says_what_is_done(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    simulate("paper-a", "r-sr", 100, 40, chunk=10, target="python", method="pulls")
    assert "4e+03 of 4e+03 pulls" in terminal.getvalue()


def test_the_command_prints_rows_and_writes_files(tmp_path):
    names = {"--csv": "table.csv", "--out": "results.json", "--plot": "picture.png"}
    words = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    given = ["--problem", "paper-a", "--policy", "r-sr,sh", "--budget", "100,200", "--runs", "50"]
    ran = CliRunner().invoke(app, ["simulate", *given, "--json", *words])
    assert ran.exit_code == 0, ran.stderr
    rows = quiet("paper-a", ["r-sr", "sh"], [100, 200], 50).rows()
    assert json.loads(ran.stdout)["rows"] == rows
    with (tmp_path / "table.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["policy"], row["budget"], row["error"]) for row in table] == [
        (row["policy"], str(row["budget"]), str(row["error"])) for row in rows
    ]
    assert Results.load(tmp_path / "results.json").rows() == rows
    assert shows(tmp_path / "picture.png", *COLORS[:2])
    ran = CliRunner().invoke(app, ["simulate", "--problem", "paper-a", "--budget", "10x"])
    assert ran.exit_code == 2 and "must be integers" in ran.stderr
