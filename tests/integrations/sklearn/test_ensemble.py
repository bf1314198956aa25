"""`ensemble=True`: half the winner, half a weighted mean of what the race trained."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latebloomer import RaceSearchCV
from latebloomer.errors import SettingError
from latebloomer.integrations.sklearn import TableEncoder, ensemble, tabular_models
from latebloomer.integrations.sklearn.ensemble import greedy_weights
from tests.helpers.libraries import refuses

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = load_breast_cancer(return_X_y=True)
ROWS, TARGET = load_diabetes(return_X_y=True)
MODELS = {
    "forest": RandomForestClassifier(20, max_depth=3),
    "extra": ExtraTreesClassifier(20, max_depth=2),
    "bayes": GaussianNB(),
    "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=20)),
}
REGRESSORS = {
    "trees": GradientBoostingRegressor(n_estimators=20),
    "forest": RandomForestRegressor(20, max_depth=3),
    "ridge": Ridge(),
}


def search(models=MODELS, **settings):
    settings = {"trainings": 4, "random_state": 0, "ensemble": True} | settings
    return RaceSearchCV(models, **settings)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.integers(1, 12))
def test_weights_are_shares_of_rounds_and_never_worse_than_the_best_first_pick(shifts, rounds):
    y = np.array([0.0, 1.0, 2.0])
    models = {str(k): [y + shift, y - shift] for k, shift in enumerate(shifts)}

    def score(predicted):
        return -sum(float(np.abs(one - y).mean()) for one in predicted)

    weights = greedy_weights(models, score, rounds)
    assert sum(weights.values()) == pytest.approx(1)
    assert all(
        weight * rounds == pytest.approx(round(weight * rounds)) for weight in weights.values()
    )
    mixed = [sum(w * models[name][k] for name, w in weights.items()) for k in (0, 1)]
    # These models differ from y by a constant: adding the best one again keeps the best score.
    assert score(mixed) >= max(score(model) for model in models.values()) - 1e-9


@pytest.mark.parametrize("cv", [0.25, 3])
def test_the_result_is_half_the_winner_and_half_the_members(cv):
    found = search(cv=cv).fit(X, Y)
    best, weights = found.best_estimator_, found.ensemble_weights_
    assert isinstance(best, VotingClassifier) and sum(weights.values()) == pytest.approx(1)
    models = dict(best.estimators)
    total = 0.5 * models[f"{found.best_name_} (winner)"].predict_proba(X)
    for name, weight in weights.items():
        folds = [model for key, model in models.items() if key.startswith(f"{name} (as raced")]
        assert len(folds) == (1 if cv == 0.25 else 3)
        total += 0.5 * weight * np.mean([model.predict_proba(X) for model in folds], axis=0)
    assert np.allclose(found.predict_proba(X), total)
    assert np.array_equal(found.predict(X), found.classes_[total.argmax(axis=1)])
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict_proba(X), found.predict_proba(X))
    plain = search(cv=cv, ensemble=False).fit(X, Y)  # the race and its winner are the same
    assert plain.best_name_ == found.best_name_ and plain.best_score_ == found.best_score_
    winner = models[f"{found.best_name_} (winner)"]
    assert np.array_equal(plain.predict_proba(X), winner.predict_proba(X))


def test_dropped_learners_take_part_and_the_verdict_says_so():
    models = MODELS | {"sgd": SGDClassifier(loss="log_loss")}
    found = search(models, trainings=3, scoring="roc_auc").fit(X, Y)
    verdict = found.verdict_
    dropped = {one.name for one in verdict.learners if one.state == "dropped"}
    assert dropped & found.ensemble_weights_.keys()
    assert verdict.ensemble.weights == found.ensemble_weights_
    for text in (str(verdict), verdict.details(), verdict._repr_html_()):
        assert "chosen on these rows" in text and "trained again on all rows" in text
    assert "a mean of models as raced" in str(pickle.loads(pickle.dumps(found)).verdict_)


def test_regressors_are_averaged_by_the_metric_of_the_search():
    found = search(REGRESSORS, scoring=["r2", "neg_mean_absolute_error"], refit="r2")
    found.fit(ROWS, TARGET)
    assert isinstance(found.best_estimator_, VotingRegressor)
    # The greedy mean has at least the winner's score on the rows that chose it.
    assert found.verdict_.ensemble.score > found.best_score_ - 0.02
    kept = search(REGRESSORS, refit=False).fit(ROWS, TARGET)
    assert "trained again" not in str(kept.verdict_) and "ridge" in kept.verdict_.pulls


def test_a_resume_gives_the_same_weights(tmp_path):
    found = search(journal=tmp_path / "search.db").fit(X, Y)
    again = search(journal=tmp_path / "search.db").fit(X, Y)
    assert again.ensemble_weights_ == found.ensemble_weights_
    assert np.array_equal(again.predict_proba(X), found.predict_proba(X))
    assert again.verdict_.ensemble == found.verdict_.ensemble


@pytest.mark.ray
@pytest.mark.filterwarnings("default")  # Ray's own code warns of what it does
def test_several_jobs_give_the_same_weights():
    models = {name: MODELS[name] for name in ("forest", "extra")}
    asked = {"trainings": 2, "scoring": "neg_log_loss"}
    one, two = (search(models, n_jobs=jobs, **asked).fit(X, Y) for jobs in (1, 2))
    assert two.ensemble_weights_ == one.ensemble_weights_ and two.verdict_.journal is None
    assert np.array_equal(two.predict_proba(X), one.predict_proba(X))


def test_members_share_their_encoder(rng, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(ensemble, "greedy_weights", lambda models, _: dict.fromkeys(models, 0.5))
    frame = pandas.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["x", "y"], 200)})
    models = tabular_models("regression", ["forest", "extra trees"])
    best = search(models, trainings=2).fit(frame, frame["a"]).best_estimator_
    best = pickle.loads(pickle.dumps(best))
    raced = [model.estimator for name, model in best.estimators if "(as raced)" in name]
    encoders = {id(pipeline.steps[0][1]) for pipeline in raced}
    assert len(raced) == 2 and len(encoders) == 1
    assert isinstance(raced[0].steps[0][1], TableEncoder)


def test_a_winner_without_probabilities_stays_alone():
    models = {name: SGDClassifier(alpha=alpha) for name, alpha in (("a", 1e-4), ("b", 1e-2))}
    with pytest.warns(RuntimeWarning, match="has none: best_estimator_ is the winner alone"):
        found = search(models).fit(X, Y)
    assert isinstance(found.best_estimator_, SGDClassifier) and found.ensemble_weights_ == {}


def test_what_has_no_mean_is_refused_before_the_race():
    two = {"a": Ridge(), "b": Ridge(alpha=2)}
    both = np.stack([TARGET, TARGET], axis=1)
    refuses(
        SettingError, r"one target, but y has the shape \(442, 2\)", search(two).fit, ROWS, both
    )
    groups = {"a": KMeans(2), "b": KMeans(3)}
    refuses(SettingError, "but these are neither", search(groups).fit, ROWS, TARGET)
    refuses(SettingError, "ensemble='yes'", search(ensemble="yes").fit, X, Y)
