"""Memory of simulations: as little as runs can come to need, and refused before it is taken."""

import json
import os
import pickle
import sys
import weakref

import numpy as np
import pytest

from latebloomer import Problem
from latebloomer._util import memory
from latebloomer._util.memory import FreeMemory
from latebloomer.errors import ChunkError, SettingError
from latebloomer.policies.base import most_pulls
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.problems import problem
from latebloomer.simulation import local_runs, players
from latebloomer.simulation.experiment import experiment_of
from latebloomer.simulation.mean_table import MeanTable
from tests.helpers.simulations import quiet, under_the_simulator

USUAL = ("r-ucbe", "r-sr", "prob-1", "etc", "rest-sure", "asha", "hyperband", "foresight")
POLICIES = [  # the first example of the usual ones here, all others before a release
    pytest.param(policy, id=repr(policy), marks=[] if usual else pytest.mark.slow)
    for name, kind in REGISTRY.items()
    for place, policy in enumerate(kind.examples())
    for usual in [name in USUAL and place == 0]
]
PROBLEMS = sys.modules[Problem.__module__]  # a function of that name hides the module
IN_WORDS = r"takes [0-9,]+ bytes, but [0-9,]+ are free \(.*\): set a smaller budget or horizon"


def experiment(policy="r-sr", budget=400, horizon=None, name="paper-a", **more):
    given = {policy: make_policy(policy)}
    return experiment_of(problem(name), given, budget, horizon, 0, "pulls", **more)


def leave(monkeypatch, size):
    """Let so many bytes be free, and ask for the smallest ones too."""
    free = FreeMemory(size, "says the test")
    for module in (memory, players):
        monkeypatch.setattr(module, "SMALL", 0)
        monkeypatch.setattr(module, "free_memory", lambda: free)


@pytest.mark.parametrize("target", ["cpu", "python"])
@pytest.mark.parametrize("policy", ["r-ucbe", "etc", "r-sr", "rr", "sh", "asha"])
def test_the_largest_budget_is_refused(policy, target):
    with pytest.raises(ChunkError, match=IN_WORDS):
        quiet("paper-a", policy, 2**53, 2, target=target)


@pytest.mark.parametrize("target", ["cpu", "python"])
@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_reckoned_is_what_is_taken(policy, target, peak_bytes):
    """Claim: the players of a policy, with the means, take no more than a fifth above that."""

    def made(budget):
        given, crowd = {"one": policy}, problem("random:F:K=30")
        return experiment_of(crowd, given, budget, None, 0, "pulls", target)

    local_runs.players_of(made(500), 1)  # what is loaded once
    large = made(20_000)
    needed = sum(players.bytes_of(large)[:2])
    taken = peak_bytes(lambda: local_runs.players_of(large, 1))
    assert needed / 4 < taken < 1.2 * needed + 100_000


def test_a_chunk_that_will_not_fit_is_refused_and_one_that_is_not_filled_is_not(monkeypatch):
    leave(monkeypatch, 4_000_000)
    with pytest.raises(ChunkError, match=r"a chunk of 1000000 runs takes 24,.* example chunk=\d"):
        quiet("paper-a", "r-sr", 100, 10**6, chunk=10**6, method="pulls")
    few = quiet("paper-a", "r-sr", 100, 10, chunk=10**9, target="python")
    assert few.cells[0].runs == 10


def test_horizons_tables_and_problems_that_are_too_large_are_refused():
    with pytest.raises(SettingError, match="horizon must be at most 20000000000 for 5 arms"):
        quiet("paper-a", "r-sr", 100, 2, horizon=2**53)
    with pytest.raises(SettingError, match="budget must be at most 20000000000 for 5 arms"):
        problem("paper-a").changes(2**53)
    with pytest.raises(ChunkError, match="the table of the means of 5 arms up to pull 90"):
        problem("paper-a").means(2**53)
    for name in ("random:F:K=1000000000000", "lower-bound:K=1000000000000"):
        with pytest.raises(ChunkError, match="a problem of 1000000000000 arms takes 800,"):
            problem(name)


def test_a_card_that_is_too_small_is_said_to_be():
    code = "from tests.simulation import test_run_memory as t; t.play_on_a_small_card()"
    means, sums, chunk = under_the_simulator(code)
    assert means.startswith("the table of the means of 5 arms up to pull 1000 takes 40,000 bytes")
    assert sums.startswith("one run over 5 arms, each of which may be pulled 1000 times, takes 40")
    assert "60% of what is free on the GPU" in sums
    assert chunk.startswith("a chunk of 50000 runs takes 1,200,000 bytes")


def play_on_a_small_card():
    from latebloomer.simulation.gpu import gpu_player

    memory.SMALL, said = 0, []
    for size, settings in (
        (30_000, {"budgets": 1000, "runs": 1}),
        (60_000, {"budgets": 1000, "runs": 1}),
        (1_000_000, {"budgets": 20, "runs": 50_000}),
    ):
        gpu_player._free_memory = lambda size=size: size
        try:
            quiet("paper-a", "hybrid", target="gpu", **settings)
        except ChunkError as error:
            said.append(str(error))
    print(json.dumps(said))


@pytest.mark.parametrize("horizon", [None, 3000])
def test_a_simulation_holds_the_means_that_arms_can_reach(horizon, peak_bytes, monkeypatch):
    """Claim: of 100 arms with 100 pulls each it takes less than a third of the means up to H."""
    crowd, runs = problem("random:exponential:K=100"), {"runs": 1, "target": "python"}
    quiet(crowd, "rr", 200, **runs)  # what is loaded once
    table = 8 * 100 * (horizon or 10_000)
    assert peak_bytes(lambda: quiet(crowd, "rr", 10_000, horizon=horizon, **runs)) < table / 3


def test_blocks_change_no_bit_of_the_results(monkeypatch, tmp_path):
    names = ["random:F:K=7", "random:power:K=5", "random:sshaped:K=4", "paper-b"]
    if os.environ.get("LATEBLOOMER_DATA"):
        names.append("imdb")

    def played():
        for place, name in enumerate(names):
            file = tmp_path / f"{place}.json"
            file.unlink(missing_ok=True)
            settings = {"horizon": 700, "out": file, "target": "python"}
            quiet(name, ["r-sr", "rr", "r-ucbe"], [50, 333], 3, **settings)
            yield file.read_bytes()

    whole = list(played())
    for block in (7, 64, 1000):
        monkeypatch.setattr(PROBLEMS, "BLOCK", block)
        assert list(played()) == whole


def test_a_simulation_at_many_budgets_holds_one_table_of_means_at_a_time(monkeypatch):
    made, alive, real = [], [], Problem.means

    def noted(self, budget):
        alive.append(sum(table() is not None for table in made))
        table = real(self, budget)
        made.append(weakref.ref(table))
        return table

    monkeypatch.setattr(Problem, "means", noted)
    quiet("paper-a", "r-sr", [100, 200, 300], 3, target="python", method="pulls")
    assert alive == [0, 0, 0]


def test_fewer_threads_play_where_work_or_memory_is_short_with_the_same_results(monkeypatch):
    made = experiment("r-ucbe", 2000)
    shared, each, left = players.bytes_of(made)
    real, sizes = local_runs.players_of, []

    def noted(experiment, threads):
        sizes.append(threads)
        return real(experiment, threads)

    monkeypatch.setattr(local_runs, "players_of", noted)
    plenty = quiet("paper-a", "r-ucbe", 2000, 12, threads=4)  # less than a slice of work
    for pulls in (10_000, 2000):
        monkeypatch.setattr(local_runs, "PULLS_OF_SLICE", pulls)
        assert quiet("paper-a", "r-ucbe", 2000, 12, threads=4) == plenty
    leave(monkeypatch, shared + each)
    with pytest.raises(ChunkError, match="a run over 5 arms, each of which may be pulled 2000 ti"):
        quiet("paper-a", "r-ucbe", 2000, 12)
    for places in (1, 3):
        leave(monkeypatch, shared + places * each + 12 * left)
        assert quiet("paper-a", "r-ucbe", 2000, 12, threads=4) == plenty
    assert sizes == [1, 2, 4, 1, 3]


def test_what_is_sent_to_other_processes_is_numbers():
    curves = [lambda n: n / (n + 5), lambda n: 0.5 + 0 * n]  # which no pickle holds
    means = MeanTable(Problem(curves), longest=30, horizon=90)
    copy = pickle.loads(pickle.dumps(means))
    assert np.array_equal(copy.table, means.table) and copy.table.flags.writeable
    assert copy.summary.digest == means.summary.digest and copy.horizon == 90


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("arms", "budget", "horizon"), [(4, 60, 60), (4, 60, 25), (9, 200, 500)])
def test_no_run_pulls_an_arm_further_than_there_is_room(policy, arms, budget, horizon):
    crowd = problem(f"random:F:K={arms}:seed=2:sigma=0.3")
    given = {"one": policy}
    made = experiment_of(crowd, given, budget, horizon, 0, "pulls", "python")
    _, pulls = local_runs.play_chunk(made, local_runs.players_of(made, 1), 0, 20)
    assert pulls.max() <= most_pulls(policy, arms, budget, horizon) <= min(budget, horizon)
