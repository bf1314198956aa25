"""Warnings of scores that are of the wrong kind: losses, or losses beside accuracies."""

import random
import re

import pytest

from latebloomer import race

CURVES = {
    "accuracy": lambda n: n / (n + 3),
    "loss": lambda n: 1 / n,
    "overfits": lambda n: 0.8 - abs(n - 5) / 20,
    "flat": lambda n: 0.5,
}


def learner(kind):
    def scores(seed):
        rng = random.Random(seed)
        for n in range(1, 100):
            yield CURVES[kind](n) + rng.gauss(0, 0.005)

    return scores


@pytest.mark.parametrize(
    ("kinds", "maximize", "said"),
    [
        ("loss accuracy", True, "of 0 fall from the first pull on.*If that is a loss"),
        ("loss accuracy", False, "of 1 rise from the first pull on.*If that is an accuracy"),
        ("loss accuracy loss", True, "of 0, 2 fall"),
        ("loss loss", True, "Is this a loss"),
        ("accuracy overfits", True, None),
        ("accuracy flat", True, None),
        ("loss loss", False, None),
    ],
)
def test_losses_beside_accuracies_are_reported(kinds, maximize, said):
    learners = {str(place): learner(kind) for place, kind in enumerate(kinds.split())}
    verdict = race(
        learners, 14 * len(learners), maximize=maximize, policy="rr", journal=None, progress=False
    )
    told = [text for text in verdict.warnings if "from the first" in text or "a loss" in text]
    if said is None:
        assert told == []
    else:
        (text,) = told
        assert re.search(said, text)


def test_learners_with_a_known_range_of_scores_have_one_metric():
    learners = {"loss": learner("loss"), "accuracy": learner("accuracy")}
    verdict = race(learners, 28, policy="rr", score_range=(0, 1), journal=None, progress=False)
    assert not any("from the first pull on" in text for text in verdict.warnings)
