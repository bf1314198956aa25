"""What is kept of what a learner trains: failed attempts, models beside checkpoints."""

import json
import math
import os
import signal
from collections import Counter
from typing import ClassVar

import pytest

from latebloomer import LocalRunner, race, resume
from latebloomer.errors import Interrupted
from latebloomer.session.events import ModelKept, PullFailed, Saved, ScoreReported
from tests.helpers.journals import entries_in, rows


class NanOnce:
    """An object whose score is not a number after one of its steps; every step counts."""

    def __init__(self, best, nan_at, raises=False):
        self.best, self.nan_at, self.raises, self.n = best, nan_at, raises, 0

    def pull(self):
        self.n += 1
        if self.n == self.nan_at:
            if self.raises:
                raise RuntimeError("once")
            return math.nan
        return self.best * self.n / (self.n + 5)


class Saving(NanOnce):
    def save(self, folder):
        (folder / "n").write_text(json.dumps(self.n))

    def load(self, folder):
        self.n = json.loads((folder / "n").read_text())


def stop_at(pulls):
    def stop(event, view):
        if isinstance(event, ScoreReported) and view.spent == pulls:
            raise KeyboardInterrupt

    return stop


def scores(path, arm):
    return [row[2] for row in rows(path) if row[0] == arm]


@pytest.mark.parametrize("raises", [False, True], ids=["nan", "exception"])
@pytest.mark.parametrize("kind", [NanOnce, Saving])
@pytest.mark.parametrize("nan_at", [1, 5, 16])
def test_an_object_that_fails_once_is_resumed_by_a_fresh_one_with_the_same_scores(
    tmp_path, kind, raises, nan_at
):
    def make():
        return {"a": kind(0.9, nan_at, raises), "b": kind(0.7, 0)}

    calm, path = tmp_path / "calm.db", tmp_path / "race.db"
    race(make(), 60, journal=calm, progress=False, policy="rr")
    with pytest.raises(KeyboardInterrupt):
        race(make(), 60, journal=path, progress=False, policy="rr", callbacks=[stop_at(30)])
    verdict = resume(path, make(), progress=False)
    assert scores(path, 0) == scores(calm, 0)
    assert not [text for text in verdict.warnings if "deterministic" in text]


def test_the_record_says_whether_the_learner_keeps_what_a_failed_attempt_has_trained(path):
    built = {"built": lambda: NanOnce(0.5, 4), "object": NanOnce(0.9, 4), "calm": NanOnce(0.7, 0)}
    race(built, 60, journal=path, progress=False)
    failed = {(e.event.arm, e.event.kept) for e in entries_in(path) if type(e.event) is PullFailed}
    assert failed == {(0, False), (1, True)}


def test_an_attempt_that_a_checkpoint_includes_is_not_repeated(path):
    def make():
        return {"a": Saving(0.9, 5), "b": Saving(0.7, 0)}

    learners = make()
    with pytest.raises(KeyboardInterrupt):
        race(learners, 60, journal=path, progress=False, policy="rr", callbacks=[stop_at(30)],
             runner=LocalRunner(checkpoint_every=10))  # fmt: skip
    assert learners["a"].n == 16
    again = make()
    resume(path, again, progress=False)
    assert (again["a"].n, again["b"].n) == (31, 30)


class Pressing(Saving):
    """Ctrl-C is pressed during the attempt whose score is not a number."""

    def pull(self):
        score = super().pull()
        if math.isnan(score):
            os.kill(os.getpid(), signal.SIGINT)
        return score


@pytest.mark.usefixtures("ctrl_c")
def test_an_attempt_between_the_latest_pull_and_its_checkpoint_is_not_repeated(tmp_path):
    def race_of(kind, path):
        learners = {"a": kind(0.9, 5), "b": kind(0.7, 0)}
        race(learners, 60, journal=path, progress=False, policy="rr")

    calm, path = tmp_path / "calm.db", tmp_path / "race.db"
    race_of(Saving, calm)
    with pytest.raises(Interrupted):
        race_of(Pressing, path)
    again = {"a": Saving(0.9, 5), "b": Saving(0.7, 0)}
    resume(path, again, progress=False)
    assert scores(path, 0) == scores(calm, 0) and again["a"].n == 31


def test_a_share_of_a_training_is_trained_again_after_a_score_that_is_not_a_number(path):
    def make():
        return {"a": NanOnce(0.9, 6), "b": NanOnce(0.7, 0)}

    learners = make()
    settings = {"full_steps": 40, "pulls_per_training": 20, "policy": "rr"}
    race(learners, 40, journal=path, progress=False, **settings)
    assert (learners["a"].n, learners["b"].n) == (42, 40)  # two steps were trained again
    assert sum(e.event.steps for e in entries_in(path) if type(e.event) is ScoreReported) == 80


class Pairs:
    """An iterator of (score, model) that can be pickled; `made` counts pulls by their `best`."""

    made: ClassVar[Counter[float]] = Counter()

    def __init__(self, best):
        self.best, self.n = best, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        Pairs.made[self.best] += 1
        return self.best * self.n / (self.n + 5), {"n": self.n}


def test_keeping_the_winners_model_leaves_its_checkpoint_for_an_extension(path):
    learners = {name: lambda best=best: Pairs(best) for name, best in (("a", 0.9), ("b", 0.7))}
    runner = LocalRunner(max_in_memory=1)
    first = race(learners, 60, journal=path, progress=False, runner=runner, policy="r-sr",
                 horizon=60)  # fmt: skip
    kinds = {type(entry.event) for entry in entries_in(path)}
    assert {Saved, ModelKept} <= kinds
    before = Pairs.made[0.9]
    again = resume(path, learners, budget=90, progress=False)
    assert Pairs.made[0.9] - before == again.pulls["a"] - first.pulls["a"] > 0
