"""What a runner that works in parallel relies on."""

import random
from functools import partial

import pytest

from latebloomer import race, read_verdict, resume
from latebloomer.errors import ContractError
from latebloomer.racing.checks.check_runner import check_runner
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.session.events import ScoreReported
from tests.helpers import learners
from tests.helpers.journals import rows


class Scrambled(LocalRunner):
    """Makes the pulls of a phase (or of a batch) in a random order, as a cluster would."""

    name = ""  # as a runner of others

    def __init__(self, seed, batch=1):
        super().__init__()
        self.rng, self.parallel_pulls = random.Random(seed), batch

    def start(self, context):
        super().start(context)
        self.in_phases = True

    def work(self, orders):
        arm = self.rng.choice(sorted(orders))
        yield from super().work({arm: orders[arm]})


curve = partial(learners.curve, noise=0.01)
FOUR = {"a": curve(30, 1.0), "b": curve(5, 0.8), "c": curve(1, 0.7), "d": curve(9, 0.6)}
TROUBLED = FOUR | {"fails": curve(3, 0.5, fail=9), "ends": curve(3, 0.55, end=8)}


@pytest.mark.parametrize("policy", ["r-sr", "sh", "sr", "rr", "rest-sure"])
def test_phases_in_any_order_give_the_same_verdict_and_rewards(tmp_path, policy):
    paths = [tmp_path / f"{k}.db" for k in range(3)]
    runners = ["local", Scrambled(1), Scrambled(2)]
    verdicts = [
        race(FOUR, 200, policy=policy, journal=path, runner=runner, progress=False)
        for path, runner in zip(paths, runners, strict=True)
    ]
    assert verdicts[0].summary() == verdicts[1].summary() == verdicts[2].summary()
    assert rows(paths[0]) == rows(paths[1]) == rows(paths[2])


@pytest.mark.parametrize("policy", ["auto", "r-sr", "sh"])
def test_a_winner_is_trained_on_by_any_runner(tmp_path, policy):
    path, settings = tmp_path / "race.db", {"policy": policy, "winner_share": 0.3}
    here = race(TROUBLED, 200, journal=None, progress=False, **settings)
    there = race(TROUBLED, 200, journal=path, runner=Scrambled(1), progress=False, **settings)
    assert here.spent == there.spent == 200 and here.trained == there.trained
    assert read_verdict(path).summary() == there.summary()


@pytest.mark.parametrize("policy", ["r-sr", "r-ucbe", "prob-1"])
@pytest.mark.parametrize("batch", [1, 3])
def test_batches_and_phases_survive_an_interruption(path, cut, policy, batch):
    how = {"policy": policy, "journal": path, "runner": Scrambled(1, batch), "progress": False}
    cut(77, lambda: race(TROUBLED, 150, **how))
    assert read_verdict(path).spent == 77
    verdict = resume(path, TROUBLED, runner=Scrambled(2, batch), progress=False)
    assert verdict.spent == 150 and read_verdict(path).summary() == verdict.summary()


def test_a_failure_in_a_batch_is_replayed_where_it_happened(tmp_path):
    learners = FOUR | {"never": curve(1, 1, fail=1), "once": curve(1, 1, fail=2)}
    for policy in ("prob-1", "r-ucbe", "ucb-e:exploration=1"):
        for seed in range(10):
            path = tmp_path / f"{policy[:4]}{seed}.db"
            runner = Scrambled(seed, batch=4)
            runner.retries = 0
            how = {"policy": policy, "journal": path, "runner": runner, "seed": seed}
            verdict = race(learners, 90, progress=False, **how)
            assert read_verdict(path).summary() == verdict.summary()


class Rounding(Scrambled):
    """Reports other scores than the learners returned."""

    def work(self, orders):
        for report in super().work(orders):
            told = isinstance(report, ScoreReported)
            yield report._replace(score=round(report.score, 2)) if told else report


class Restless(Scrambled):
    """Goes on when it is held."""

    def hold(self):
        pass


@pytest.mark.parametrize(
    "make, checks",
    [
        (LocalRunner, 4),
        (lambda: Scrambled(1), 4),
        (lambda: Scrambled(2, batch=3), 4),
        (lambda: LocalRunner(isolate=True), 4),
        (lambda: LocalRunner(max_in_memory=2), 2),
        (lambda: LocalRunner(isolate=True, max_in_memory=2), 2),
    ],
)
def test_our_runners_keep_the_contract(make, checks):
    assert len(check_runner(make)) == checks


@pytest.mark.parametrize(
    "make, what",
    [
        (lambda: Rounding(1), "scores of 'late' are not those of the local runner"),
        (lambda: Restless(1), "that was stopped continued"),
    ],
)
def test_a_runner_that_breaks_the_contract_is_told_how(make, what):
    with pytest.raises(ContractError, match=what):
        check_runner(make)
