"""A verdict agrees with what one sees: score, forecast and estimate are different numbers."""

import json
import re

import pytest

from latebloomer import race

NOT_YET = pytest.mark.xfail(strict=True, reason="the verdict mixes score, forecast and estimate")


def curve(best, slow):
    return lambda: (best * n / (n + slow) for n in range(1, 61))


# late ends at 0.64, above quick with 0.59, and is at 0.42 when the budget is spent.
LEARNERS = {
    "late": curve(1.5, 80), "quick": curve(0.6, 1), "mid": curve(0.55, 5), "low": curve(0.4, 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def verdict():
    return race(LEARNERS, trainings=1.5, full_steps=60, pulls_per_training=60, journal=None,
                progress=False)  # fmt: skip


def test_score_forecast_and_estimate_are_columns_of_their_own(verdict):
    late = next(row for row in verdict.rows() if row["name"] == "late")
    assert late["score"] == pytest.approx(1.5 * 31 / 111)  # observed
    assert late["forecast"] == pytest.approx(1.5 * 60 / 140, abs=0.03)  # at the horizon
    assert 0.9 < late["trust"] <= 1
    assert late["score"] < late["estimate"] <= late["forecast"]
    assert json.loads(verdict.to_json())["rows"] == verdict.rows()


def test_a_policy_without_forecasts_shows_none():
    found = race(LEARNERS, 60, policy="sh", journal=None, progress=False)
    assert all(row["forecast"] is None and row["trust"] is None for row in found.rows())


@NOT_YET
def test_a_kept_learner_below_a_dropped_one_is_explained_at_once(verdict):
    said = " ".join(str(verdict).splitlines()[:3])
    assert re.search(r"Keep late: score 0\.41\d* at 52 % of its training, forecast 0\.6\d*", said)
    assert re.search(r"quick scored higher when it was dropped.*: 0\.58\d*, forecast 0\.59", said)
    assert verdict.highest == "quick"
    assert any("quick" in text and "standard errors" in text for text in verdict.warnings)


@NOT_YET
def test_any_learner_can_be_had_again(verdict):
    quick = verdict.load("quick")
    assert quick.learner.pull() == pytest.approx(0.6 * 32 / 33)
    assert quick.retrained == 31


@NOT_YET
def test_without_a_range_no_bound_is_far_beyond_what_was_seen(verdict):
    assert "no limit is known for this score; pass score_range=(0, 1)" in verdict.certificate
    bounds = [row[end] for row in verdict.rows() for end in ("at_horizon_low", "at_horizon_high")]
    seen = [score for name in LEARNERS for score in verdict.curve(name)]
    spread = max(seen) - min(seen)
    numbers = [float(text) for text in re.findall(r"reach (-?[\d.]+)", verdict.certificate)]
    for bound in [bound for bound in [*bounds, *numbers] if bound is not None]:
        assert min(seen) - spread <= bound <= max(seen) + spread


@NOT_YET
def test_a_learner_may_know_the_range_of_its_scores():
    class Bounded:
        score_range = (0, 1)
        n = 0

        def pull(self):
            self.n += 1
            return self.n / (self.n + 5)

    found = race({"a": Bounded, "b": Bounded}, 40, journal=None, progress=False)
    assert tuple(found.settings["score_range"]) == (0, 1)
