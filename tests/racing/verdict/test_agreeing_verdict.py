"""A verdict agrees with what one sees: score, forecast and estimate are different numbers."""

import json
import re
from functools import partial
from itertools import count, repeat

import pytest

from latebloomer import race, read_verdict
from latebloomer.session.events import ScoreReported
from tests.helpers.learners import Counter, curve
from tests.helpers.races import quiet

# late ends at 0.64, above quick with 0.59, and is at 0.52 when the budget is spent.
LEARNERS = {
    "late": curve(80, 1.5, end=60), "quick": curve(1, 0.6, end=60),
    "mid": curve(5, 0.55, end=60), "low": curve(3, 0.4, end=60),
}  # fmt: skip


def trained(learners, trainings=2, **more):
    return race(learners, trainings=trainings, full_steps=60, pulls_per_training=60,
                progress=False, **more)  # fmt: skip


@pytest.fixture(scope="module")
def verdict():
    return trained(LEARNERS, journal=None)


def test_score_forecast_and_estimate_are_columns_of_their_own(verdict):
    late = next(row for row in verdict.rows() if row["name"] == "late")
    assert late["score"] == pytest.approx(1.5 * 42 / 122)  # observed
    assert late["forecast"] == pytest.approx(1.5 * 60 / 140, abs=0.03)  # at the horizon
    assert 0.9 < late["trust"] <= 1
    assert late["score"] < late["estimate"] <= late["forecast"]
    assert json.loads(verdict.to_json())["rows"] == verdict.rows()
    found = quiet(LEARNERS, 60, policy="sh")
    assert all(row["forecast"] is None and row["trust"] is None for row in found.rows())


def test_a_kept_learner_below_a_dropped_one_is_explained_at_once(verdict):
    said = " ".join(str(verdict).splitlines()[:3])
    assert re.search(r"Keep late: score 0\.51\d* at 70 % of its training, forecast 0\.6\d*", said)
    assert re.search(r"quick scored better when it was dropped.*: 0\.58\d*, forecast 0\.59", said)
    assert verdict.highest == "quick"
    assert any("quick" in text and "standard errors" in text for text in verdict.warnings)


def test_any_learner_can_be_had_again(verdict, capsys):
    assert next(verdict.load("quick")) == pytest.approx(0.6 * 43 / 44)
    said = "quick: restored to its 42 pulls; 42 of them were trained again"
    assert said in capsys.readouterr().err
    with pytest.raises(LookupError, match="'quik' is not a learner of this race"):
        verdict["quik"]


@pytest.mark.parametrize(
    ("limits", "forecast", "explained"),
    [(None, "1.4", True), ((0, 1), "1 at the end", False), ((0, 9), "1.4", False)],
)
def test_a_shown_forecast_is_a_possible_score_or_is_explained(limits, forecast, explained):
    line = {"line": lambda: (0.3 + 0.012 * n for n in range(58)), "quick": LEARNERS["quick"]}
    said = str(quiet(line, 100, score_range=limits))
    assert f"forecast {forecast}" in said
    assert ("If 1 is the best possible score" in said) == explained


@pytest.mark.parametrize("limits", [None, (None, 1), (0, 1)])
def test_without_a_limit_no_bound_is_far_beyond_what_was_seen(limits):
    learners = {"a": curve(3, 0.6, 0.03), "b": curve(3, 0.5, 0.03)}
    found = quiet(learners, 60, horizon=500, score_range=limits)
    said = "no limit of this score is known; set score_range of the race or its learners"
    assert (said in found.certificate) == (limits is None)
    seen = [score for name in "ab" for score in found.curve(name)]
    low, high = min(seen), max(seen)
    limit = 1 if limits else 2 * high - low
    shown = [row["at_horizon_high"] for row in found.rows() if row["at_horizon_high"]]
    reached = [float(text) for text in re.findall(r"reach (-?[\d.]+)", found.certificate)]
    assert all(bound <= limit for bound in [*shown, *reached])
    assert bool(reached) == (limits is not None)


def test_a_learner_may_know_the_range_of_its_scores():
    class Bounded(Counter):
        score_range = (0, 1)

        def pull(self):
            return 1 / super().pull()

    found = quiet({"a": Bounded, "b": Bounded()}, 40)
    assert tuple(found.settings["score_range"]) == (0, 1)
    mixed = quiet({"a": Bounded, "b": curve(2, 1)}, 40)
    assert mixed.settings["score_range"] is None  # of the other nothing is known


def test_a_learner_that_scored_better_than_the_kept_one_is_named(tmp_path):
    found = trained(LEARNERS, 2, journal=tmp_path / "race.db")
    assert found.highest == "quick" != found.name
    assert "quick scored better when it was dropped" in str(found)
    alike = {"a": curve(3, 0.6, 0.03), "b": curve(3, 0.6, 0.03)}
    noise = trained(alike, seed=5, journal=tmp_path / "noise.db")
    assert noise.name != noise.highest and noise.pulls[noise.highest] == 60 == noise.horizon
    assert f"{noise.highest} scored better" in str(noise)


def test_standings_say_why_a_better_score_does_not_lead(tmp_path):
    path, said = tmp_path / "race.db", []
    two = {"a": lambda: iter([0.6] * 60), "b": lambda: (0.06 * n for n in range(1, 60))}
    quiet(two, 60, journal=path, callbacks=[lambda _, __: said.append(str(read_verdict(path)))])
    assert "b has a better score (0.66), but a leads by estimate (0.6 versus 0.54)." in said[22]


@pytest.mark.slow  # 8 s of training
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_verdict_on_real_models_agrees_with_their_scores(seed, tmp_path):
    lightgbm = pytest.importorskip("lightgbm", exc_type=(ImportError, OSError))
    from sklearn.datasets import make_classification
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner

    kind = {"n_informative": 8, "n_classes": 3, "flip_y": 0.05, "random_state": seed}
    X, y = make_classification(3000, 20, **kind)
    boost = partial(lightgbm.LGBMClassifier, n_estimators=120, verbose=-1, n_jobs=1)
    models = {
        "sgd": SGDClassifier(max_iter=30),
        "mlp s": MLPClassifier((32,), max_iter=30),
        "lgbm mid": boost(learning_rate=0.05, num_leaves=15),
        "lgbm fast": boost(learning_rate=0.2, num_leaves=7),
    }
    learners = {k: SklearnLearner(model, X, y, random_state=0) for k, model in models.items()}
    found = race(learners, trainings=2, journal=tmp_path / "race.db", progress=False)
    last = {name: found.curve(name)[-1] for name in models}
    assert last[found.highest] == max(last.values()) and last[found.name] == found.score
    top = " ".join(str(found).splitlines()[:3])
    assert (f"{found.highest} scored better" in top) == (found.score < max(last.values()))
    assert f'Keep "{found.name}": score {found.score:.4g} at ' in top
    again = found.load(found.highest)
    assert again.pull(steps=1) == pytest.approx(last[found.highest], abs=0.05)


def test_a_learner_at_the_horizon_is_compared_by_its_score_with_one_that_finished():
    def curve(height, slow, most):
        return lambda: iter([height * n / (n + slow) for n in range(1, most + 1)])

    learners = {"net": curve(1, 60, 999), "tree": curve(0.9, 4, 236), "line": curve(0.7, 2, 999)}
    verdict = race(learners, 760, horizon=300, journal=None, progress=False)
    assert verdict["tree"].state == "winner" and verdict.pulls["net"] == 300
    assert verdict["net"].forecast is None and verdict["net"].score < verdict.score


def test_no_learner_led_at_half_time_before_half_of_the_budget_is_spent(tmp_path):
    seen = {}

    def look(event, view):
        if type(event) is ScoreReported:
            seen[view.spent] = read_verdict(tmp_path / "race.db").half_time

    learners = {"late": lambda: (n / (n + 30) for n in count(1)), "early": lambda: repeat(0.4)}
    verdict = race(learners, 60, journal=tmp_path / "race.db", progress=False, callbacks=[look])
    assert seen[29] is None and seen[30] == verdict.half_time == "early"


def test_a_learner_that_has_finished_is_fully_trained():
    learners = {"once": lambda: iter([0.5]), "slow": lambda: (n / (n + 90) for n in count(1))}
    verdict = race(learners, trainings=1, full_steps=20, journal=None, progress=False)
    assert verdict["once"].trained == "100 %" and verdict["slow"].trained == "95 %"


def test_two_that_are_trained_to_the_end_are_said_to_differ_by_less_than_the_noise():
    def flat(level):
        return lambda: iter([level + 0.05 * (-1) ** n for n in range(20)])

    learners = {"a": flat(0.51), "b": flat(0.5)}
    verdict = race(learners, trainings=2, full_steps=20, score_range=(0, 1), progress=False)
    assert "a and b are both trained to the end" in verdict.certificate
    short = race(learners, trainings=1, full_steps=20, score_range=(0, 1), progress=False)
    assert "trained to the end" not in short.certificate
