"""XGBoost, LightGBM and CatBoost in searches: their scikit-learn classes, trained by rounds."""

import pickle

import numpy as np
import pytest
from libraries import library, two_classes
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latebloomer import RaceRandomSearchCV, RaceSearchCV, check_learner
from latebloomer.errors import LearnerError
from latebloomer.integrations.sklearn import SklearnLearner

(X, Y), (X_TEST, Y_TEST) = two_classes()
ROUNDS = 12
PLAIN = {
    "xgboost": {"n_estimators": ROUNDS, "n_jobs": 1, "random_state": 3},
    "lightgbm": {"n_estimators": ROUNDS, "n_jobs": 1, "random_state": 3, "min_child_samples": 5},
    "catboost": {"iterations": ROUNDS, "thread_count": 1, "random_seed": 3},
}
SAMPLED = {
    "xgboost": {"subsample": 0.5, "colsample_bytree": 0.5},
    "lightgbm": {"subsample": 0.5, "subsample_freq": 1, "colsample_bytree": 0.5},
    "catboost": {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
}
DART = {"xgboost": {"booster": "dart"}, "lightgbm": {"boosting_type": "dart"}, "catboost": {}}
PREFIX = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}
DEPTH = {"xgboost": "max_depth", "lightgbm": "max_depth", "catboost": "depth"}


@pytest.fixture(params=list(PLAIN))
def name(request, tmp_path, monkeypatch):
    library(request.param)
    monkeypatch.chdir(tmp_path)  # none may leave anything behind
    yield request.param
    assert not list(tmp_path.iterdir())


def booster(name, kind="Classifier", **more):
    return getattr(library(name), f"{PREFIX[name]}{kind}")(**PLAIN[name] | more)


def learner(estimator):
    return SklearnLearner(estimator, X, Y, batch=None, scoring="neg_log_loss", random_state=0)


def search(estimator, depths, **settings):
    space = {DEPTH[type(estimator).__module__.partition(".")[0]]: depths}
    asked = {"n_iter": "all", "trainings": 2, "random_state": 0} | settings
    return RaceRandomSearchCV(estimator, space, **asked)


def test_without_sampling_pulls_are_one_long_training_bit_for_bit(name):
    pulled, whole = learner(booster(name)), learner(booster(name))
    assert pulled.full_steps == ROUNDS
    assert [pulled.pull(steps=k) for k in (1, 4, 2, 5)][-1] == whole.pull(steps=ROUNDS)
    assert np.array_equal(pulled.model.predict_proba(X), whole.model.predict_proba(X))
    assert type(pulled.model) is type(booster(name))


@pytest.mark.parametrize("more", [{}, SAMPLED, DART], ids=["plain", "sampled", "dart"])
def test_a_resumed_learner_is_the_same_bit_for_bit(name, more):
    given = booster(name, **more.get(name, {}))
    check = check_learner(lambda: learner(given), pulls=4)
    assert check.saves and check.exact, str(check)


def test_with_sampling_each_pull_draws_other_rows(name):
    one, other = learner(booster(name, **SAMPLED[name])), learner(booster(name, **SAMPLED[name]))
    scores = [one.pull() for _ in range(6)]
    assert scores == [other.pull() for _ in range(6)]  # by the seed and the round
    assert len({round(gain, 6) for gain in np.diff([0.0, *scores])}) == 6


def test_the_winner_is_the_librarys_own_training_on_all_rows(name):
    sampled = booster(name, **SAMPLED[name])
    found = search(sampled, [2, 4, 6], trainings=3).fit(X, Y)
    own = clone(sampled).set_params(**found.best_params_)
    if name == "catboost":
        own.set_params(logging_level="Silent", allow_writing_files=False)
    own.fit(X, Y)
    assert type(found.best_estimator_) is type(own)
    assert np.array_equal(found.predict_proba(X_TEST), own.predict_proba(X_TEST))
    assert found.score(X_TEST, Y_TEST) == own.score(X_TEST, Y_TEST)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict(X_TEST), found.predict(X_TEST))
    assert found.cv_results_["n_resources"].max() <= ROUNDS


def test_boosters_race_with_estimators_of_scikit_learn_and_in_pipelines(name):
    models = {
        "booster": make_pipeline(StandardScaler(), booster(name)),
        "trees": HistGradientBoostingClassifier(max_iter=ROUNDS),
    }
    found = RaceSearchCV(models, trainings=2, random_state=0, scoring="neg_log_loss").fit(X, Y)
    assert "boosting: 1 more rounds a step" in found.results_["how"][0]
    assert found.verdict_.settings["full_steps"] == {"booster": ROUNDS, "trees": ROUNDS}


def test_regressors_weights_and_folds(name):
    weights = np.where(Y == 1, 1e-3, 1.0)
    found = search(booster(name, "Regressor"), [2, 4], cv=2).fit(X, Y * 1.0, sample_weight=weights)
    assert np.abs(found.predict(X_TEST)).max() < 0.3  # rows of the other class hardly count
    assert found.n_splits_ == 2 and np.isfinite(found.cv_results_["split1_test_score"]).all()


@pytest.mark.parametrize("name, setting", [("xgboost", "early_stopping_rounds"),
                                           ("lightgbm", "n_iter_no_change")])  # fmt: skip
def test_early_stopping_is_left_to_the_race(name, setting):
    with pytest.raises(LearnerError, match=f"{setting}=5, but in a race the race decides"):
        learner(booster(name, **{setting: 5}))


RF = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1, "verbosity": -1}


@pytest.mark.parametrize("name, kind, settings", [("xgboost", "RFClassifier", {}),
                                                  ("lightgbm", "Classifier", RF)])  # fmt: skip
def test_forests_of_boosters_are_trained_in_one_step(name, kind, settings):
    one = learner(booster(name, kind, **settings))
    assert one.in_one_step and np.isfinite(one.pull()) and one.finished
