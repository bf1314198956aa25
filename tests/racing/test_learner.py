"""Is a learner the same after save and load?"""

import random
from itertools import repeat

import pytest

from latebloomer import check_learner
from latebloomer.errors import LearnerError
from latebloomer.racing.learner import Learner


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


def test_whatever_has_pull_is_a_learner():
    assert isinstance(Noisy(), Learner) and not isinstance(3, Learner)
