"""Numbers that a verdict shows are possible scores; losses raced as scores are asked about."""

import numpy as np
import pytest

from latebloomer import race
from latebloomer.integrations.boosters import BoosterLearner

QUIET = {"journal": None, "progress": False}


def straight(slope, start):
    def scores():
        for n in range(1000):
            yield start + slope * n

    return scores


STEEP = {"a": straight(0.009, 0.5), "b": straight(0.008, 0.45), "c": straight(0.001, 0.3)}


def shown(verdict):
    for one in verdict.learners:
        yield from (one.estimate, one.forecast_score, one.decision.rival_estimate or 0.5)
        yield from (one.lower, one.upper)
    yield from (verdict.estimate, verdict.selected.estimate)


def test_forecasts_and_estimates_are_inside_the_range_of_scores_and_rank_as_without_it():
    free = race(STEEP, trainings=1.2, full_steps=100, **QUIET)
    assert max(x for x in shown(free) if x < np.inf) > 1
    assert "If 1 is the best possible score" in str(free)
    verdict = race(STEEP, trainings=1.2, full_steps=100, score_range=(0, 1), **QUIET)
    assert all(np.isnan(x) or 0 <= x <= 1 for x in shown(verdict))
    assert "If 1 is" not in str(verdict)
    assert (verdict.name, verdict.pulls) == (free.name, free.pulls)  # no decision changes


def test_scores_outside_of_the_range_are_shown_as_they_are():
    verdict = race(STEEP, trainings=1.2, full_steps=100, score_range=(0, 0.4), **QUIET)
    assert verdict.estimate > 0.4 and "outside score_range" in verdict.certificate


def ends_after(pulls, score):
    def scores():
        for _ in range(pulls):
            yield score

    return scores


def test_the_bounds_of_a_learner_that_has_finished_are_its_score():
    learners = STEEP | {"one step": ends_after(1, 0.4), "few": ends_after(6, 0.31)}
    verdict = race(learners, 60, horizon=20, score_range=(0, 1), **QUIET)
    for name, score in (("one step", 0.4), ("few", 0.31)):
        one = verdict[name]
        if one.state == "finished":
            assert one.lower == one.score == one.upper == score
    assert verdict["one step"].state == "finished"


def test_a_learner_that_has_finished_can_reach_no_more_than_its_score():
    """A rival with a single pull leaves the winner's proof open only while it can be trained."""
    learners = {"rises": straight(0.001, 0.6), "one step": ends_after(1, 0.4)}
    verdict = race(learners, 80, horizon=80, score_range=(0, 1), **QUIET)
    assert verdict.name == "rises" and verdict["one step"].state == "finished"
    assert verdict.certified and "rises will stay ahead at 80 pulls (95 %" in str(verdict)


@pytest.mark.parametrize(("maximize", "asks"), [(True, True), (False, False)])
def test_curves_that_all_fall_are_asked_about(maximize, asks):
    falling = {"a": straight(-0.02, 0.9), "b": straight(-0.01, 0.8), "c": straight(-0.03, 0.95)}
    verdict = race(falling, 60, maximize=maximize, **QUIET)
    said = [text for text in verdict.warnings if "Pass maximize=False" in text]
    assert bool(said) == asks
    one_rises = falling | {"d": straight(0.001, 0.1)}
    assert not any("maximize" in text for text in race(one_rises, 60, **QUIET).warnings)


def test_flat_curves_with_noise_are_not_taken_for_losses():
    """Two curves of 8 or more pulls both fall by that much in .3 % of races (20,000 draws)."""

    def noisy(seed):
        def scores():
            yield from np.random.default_rng(seed).normal(size=100)

        return scores

    learners = [{"a": noisy([k, 0]), "b": noisy([k, 1])} for k in range(40)]
    asked = sum(
        any("maximize" in text for text in race(pair, 24, policy="r-sr", **QUIET).warnings)
        for pair in learners
    )
    assert asked <= 4  # of 40: more happen once in 10^7


class Named(BoosterLearner):
    package = title = dataset = ""

    def __init__(self, metric, sign):
        self._metric, self._sign = metric, sign

    _made_rows = _start = _round = _named_value = _write = _read = None
    _higher_is_better = None


@pytest.mark.parametrize(
    ("metric", "sign", "ends"),
    [
        ("auc", 1, (0, 1)),
        ("AUC:type=Mu", 1, (0, 1)),
        ("ndcg@5", 1, (0, 1)),
        ("binary_error", -1, (-1, 0)),
        ("rmse", -1, (None, 0)),
        ("binary_logloss", -1, (None, 0)),
        ("rmse", 1, None),
        ("my_metric", 1, None),
        (len, 1, None),
    ],
)
def test_a_metric_of_boosters_known_by_name_sets_the_range(metric, sign, ends):
    assert Named(metric, sign).score_range == ends
