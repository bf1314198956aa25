"""A learner with `evaluate()` is compared with the journal's score whenever it is restored."""

import itertools
import json

import pytest

from latebloomer import LocalRunner, check_learner, race, resume
from latebloomer.errors import LearnerError
from latebloomer.racing.learner import evaluation


class Sum:
    """A learner whose `load` may forget what it has learned."""

    def __init__(self, rate, forgets=False, noise=None):
        self.rate, self.forgets, self.total, self.noise = rate, forgets, 0.0, noise

    def pull(self):
        self.total += self.rate
        return self.evaluate()

    def evaluate(self):
        return self.total + (next(self.noise) if self.noise else 0.0)

    def save(self, folder):
        (folder / "total.json").write_text(json.dumps(self.total))

    def load(self, folder):
        self.total = 0.0 if self.forgets else json.loads((folder / "total.json").read_text())


def learners(**more):
    return {"a": lambda: Sum(0.01, **more), "b": lambda: Sum(0.02, **more)}


def killed(cut, path, **more):
    runner = LocalRunner(checkpoint_every=1)
    cut(7, lambda: race(learners(**more), 20, journal=path, progress=False, runner=runner))


def test_a_learner_that_forgets_is_refused_when_it_is_restored(cut, tmp_path):
    killed(cut, tmp_path / "race.db")
    with pytest.raises(LearnerError, match=r"evaluates to 0, but 0\.0\d is recorded"):
        resume(tmp_path / "race.db", learners(forgets=True), progress=False)
    assert resume(tmp_path / "race.db", learners(), progress=False).over


def test_an_evaluation_that_is_not_deterministic_is_not_compared(cut, tmp_path):
    killed(cut, tmp_path / "race.db")
    noise = itertools.count(1.0)
    assert resume(tmp_path / "race.db", learners(noise=noise), progress=False).over


def test_check_learner_compares_the_evaluation():
    assert check_learner(lambda: Sum(0.1)).exact
    check = check_learner(lambda: Sum(0.1, forgets=True))
    assert not check.exact and "it evaluates to 0 instead of 0.3" in str(check)


def test_a_method_of_the_users_own_is_not_taken_for_it():
    class Other(Sum):
        def evaluate(self, rows):
            raise AssertionError

    class Words(Sum):
        def evaluate(self):
            return {"loss": 0.1}

    assert evaluation(Other(0.1)) is None and evaluation(Words(0.1)) is None
    assert evaluation(Sum(0.1)) == 0.0
