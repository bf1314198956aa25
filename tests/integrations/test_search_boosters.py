"""XGBoost, LightGBM and CatBoost in searches: their scikit-learn classes, trained by rounds."""

import pickle
from importlib import import_module
from importlib.util import find_spec

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
    "xgboost": {"n_estimators": ROUNDS, "n_jobs": 1},
    "lightgbm": {"n_estimators": ROUNDS, "n_jobs": 1, "min_child_samples": 5},
    "catboost": {"iterations": ROUNDS, "thread_count": 1},
}
SAMPLED = {
    "xgboost": {"subsample": 0.5, "colsample_bytree": 0.5},
    "lightgbm": {"subsample": 0.5, "subsample_freq": 1, "colsample_bytree": 0.5},
    "catboost": {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
}
CLASSES = {
    "xgboost": ("XGBClassifier", "XGBRegressor"),
    "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
    "catboost": ("CatBoostClassifier", "CatBoostRegressor"),
}
DEPTH = {"xgboost": "max_depth", "lightgbm": "max_depth", "catboost": "depth"}
SEED = {"xgboost": "random_state", "lightgbm": "random_state", "catboost": "random_seed"}


@pytest.fixture(params=list(PLAIN))
def name(request, tmp_path, monkeypatch):
    try:
        import_module(request.param)
    except ImportError:
        pytest.skip(
            f"{request.param} is not installed: pip install 'latebloomer[{request.param}]'"
        )
    except OSError as error:
        pytest.skip(f"{request.param} does not load here: {error}")
    monkeypatch.chdir(tmp_path)  # none may leave anything behind
    yield request.param
    assert not list(tmp_path.iterdir())


def booster(name, regressor=False, **more):
    kind = getattr(import_module(name), CLASSES[name][regressor])
    return kind(**PLAIN[name] | {SEED[name]: 3} | more)


def learner(estimator):
    return SklearnLearner(estimator, X, Y, batch=None, scoring="neg_log_loss", random_state=0)


def test_without_sampling_pulls_are_one_long_training_bit_for_bit(name):
    pulled, whole = learner(booster(name)), learner(booster(name))
    assert pulled.full_steps == ROUNDS
    assert [pulled.pull(steps=k) for k in (1, 4, 2, 5)][-1] == whole.pull(steps=ROUNDS)
    assert np.array_equal(pulled.model.predict_proba(X), whole.model.predict_proba(X))
    assert type(pulled.model) is type(booster(name))


DART = {"xgboost": {"booster": "dart"}, "lightgbm": {"boosting_type": "dart"}, "catboost": {}}


@pytest.mark.parametrize("more", [{}, SAMPLED, DART], ids=["plain", "sampled", "dart"])
def test_a_resumed_learner_is_the_same_bit_for_bit(name, more):
    given = booster(name, **more.get(name, {}))
    check = check_learner(lambda: learner(given), pulls=4)
    assert check.saves and check.exact, str(check)


def test_with_sampling_each_pull_draws_other_rows(name):
    one, other = learner(booster(name, **SAMPLED[name])), learner(booster(name, **SAMPLED[name]))
    scores = [one.pull() for _ in range(6)]
    assert scores == [other.pull() for _ in range(6)]  # by the seed and the round
    gains = np.diff([0.0, *scores])
    assert len({round(gain, 6) for gain in gains}) == 6


def test_the_winner_is_the_librarys_own_training_on_all_rows(name):
    space = {DEPTH[name]: [2, 4, 6]}
    sampled = booster(name, **SAMPLED[name])
    found = RaceRandomSearchCV(sampled, space, n_iter="all", trainings=3, random_state=0)
    found.fit(X, Y)
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


def test_a_search_goes_on_with_its_own_journal(name, tmp_path_factory):
    journal = tmp_path_factory.mktemp("race") / "search.db"
    asked = {"n_iter": "all", "trainings": 2, "random_state": 0, "refit": False}
    space = {DEPTH[name]: [2, 4], "learning_rate": [0.1, 0.5]}
    runs = [
        RaceRandomSearchCV(booster(name), space, journal=journal, **asked).fit(X, Y)
        for _ in range(2)
    ]
    first, again = (run.predict_proba(X_TEST) for run in runs)
    assert np.array_equal(first, again)


def test_regressors_and_weights(name):
    weights = np.where(Y == 1, 1e-3, 1.0)
    space = {DEPTH[name]: [2, 4]}
    found = RaceRandomSearchCV(
        booster(name, regressor=True), space, n_iter="all", trainings=2, random_state=0
    ).fit(X, Y * 1.0, sample_weight=weights)
    assert np.abs(found.predict(X_TEST)).max() < 0.3  # rows of the other class hardly count


def test_folds_each_have_a_model_of_their_own(name):
    found = RaceRandomSearchCV(
        booster(name), {DEPTH[name]: [2, 4]}, n_iter="all", trainings=2, cv=2, random_state=0
    ).fit(X, Y)
    assert found.n_splits_ == 2 and np.isfinite(found.cv_results_["split1_test_score"]).all()


# --- what cannot be ---


def test_early_stopping_is_left_to_the_race():
    for name, setting in (("xgboost", "early_stopping_rounds"), ("lightgbm", "n_iter_no_change")):
        library(name)
        with pytest.raises(LearnerError, match=f"{setting}=5, but in a race the race decides"):
            learner(booster(name, **{setting: 5}))


def test_forests_of_boosters_are_trained_in_one_step():
    forests = [(library("xgboost").XGBRFClassifier, {})]
    if find_spec("lightgbm"):
        rf = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1, "verbosity": -1}
        forests.append((import_module("lightgbm").LGBMClassifier, rf))
    for kind, settings in forests:
        one = learner(kind(n_estimators=5, **settings))
        assert one.in_one_step and np.isfinite(one.pull()) and one.finished
