"""Is a learner the same after save and load? `check_learner`, and each restore by `evaluate()`."""

import json
import random
from itertools import count, repeat

import pytest

from latebloomer import LocalRunner, check_learner, race, resume
from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.learners.learner import evaluation


class Noisy:
    """Saves its pulls, and its generator only where `whole`."""

    whole = True

    def __init__(self, seed=0):
        self.n, self.rng = 0, random.Random(seed)

    def pull(self):
        self.n += 1
        return self.n + self.rng.random()

    def save(self, folder):
        (folder / "state").write_text(repr((self.n, self.rng.getstate() if self.whole else None)))

    def load(self, folder):
        self.n, state = eval((folder / "state").read_text())
        if state is not None:
            self.rng.setstate(state)


class Forgetful(Noisy):
    whole = False


def test_a_learner_that_saves_everything_is_exact():
    found = check_learner(Noisy)
    assert found.saves and found.exact and found.expected == found.resumed and found.bytes > 0
    assert "bit for bit: resume is exact and cheap" in str(found)


def test_what_cannot_be_checked_is_said_and_what_to_give():
    with pytest.raises(LearnerError, match=r"learner 'factory' is \{\}, but a learner needs"):
        check_learner({})
    with pytest.raises(SettingError, match=r"pulls=\(1, 2\), but pulls must be a whole number"):
        check_learner(lambda: iter([0.5]), (1, 2))


def test_one_that_forgets_its_generator_is_told_what_that_costs():
    found = check_learner(Forgetful, pulls=4)
    assert found.saves and not found.exact
    assert "pull 5 scores" in str(found) and "the verdict may differ" in str(found)


def test_one_that_cannot_save_is_trained_again():
    found = check_learner(lambda seed: (random.Random(seed).random() for _ in repeat(0)))
    assert not found.saves and found.exact and "repeats all of its pulls" in str(found)


def test_an_object_cannot_be_checked_and_a_short_generator_neither():
    with pytest.raises(LearnerError, match="needs a function that builds one"):
        check_learner(Noisy())
    with pytest.raises(LearnerError, match="ended before the check"):
        check_learner(lambda: iter([1.0, 2.0]))


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
    noise = count(1.0)
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
