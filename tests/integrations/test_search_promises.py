"""Searches return what was promised: a winner that is trained, and a race that can be extended."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from latebloomer import RaceRandomSearchCV, RaceSearchCV, race, read_verdict
from latebloomer.errors import BudgetError, JournalMismatch, SettingError
from latebloomer.integrations.sklearn import SklearnLearner
from latebloomer.integrations.sklearn.scoring import score_range_of

X, Y = load_iris(return_X_y=True)
MODELS = {"forest": RandomForestClassifier(20, max_depth=2), "linear": SGDClassifier(max_iter=20)}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield


class Clock:
    """Time that passes only while a model trains."""

    now = 0.0

    def __call__(self):
        return Clock.now


@pytest.fixture
def clock(monkeypatch):
    Clock.now = 0.0
    for name, module in list(sys.modules.items()):
        if name.startswith("latebloomer.") and hasattr(module, "perf_counter"):
            monkeypatch.setattr(module, "perf_counter", Clock())
    return Clock


class Timed(ClassifierMixin, BaseEstimator):
    """Takes a second for an epoch of 120 rows, and on all rows as long as `refit_cost` says."""

    def __init__(self, max_iter=200, skill=0, refit_cost=1.0):
        self.max_iter, self.skill, self.refit_cost = max_iter, skill, refit_cost

    def partial_fit(self, X, y, classes=None):
        Clock.now += 1.0 if len(X) == 120 else self.refit_cost
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        self.classes_ = np.unique(y) if classes is None else classes
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        return np.resize(self.classes_[: 1 + self.skill], len(X))


TIMED = {"a": Timed(skill=0, refit_cost=1.25), "b": Timed(skill=2, refit_cost=1.25)}


def test_a_refit_under_seconds_trains_no_less_than_the_race_did(clock):
    found = RaceSearchCV(TIMED, seconds=120, random_state=0).fit(X, Y)
    assert found.best_estimator_.epochs_ >= found.verdict_[found.best_name_].steps
    assert found.refit_kind_ == "refit" and Clock.now <= 1.05 * 120


def test_a_refit_that_does_not_fit_leaves_the_model_of_the_race(clock):
    slow = {name: Timed(skill=one.skill, refit_cost=10.0) for name, one in TIMED.items()}
    with pytest.warns(RuntimeWarning, match="too short to refit b: .* is the model of the race"):
        found = RaceSearchCV(slow, seconds=120, random_state=0).fit(X, Y)
    assert found.refit_kind_ == "race" and found.refit_pulls_ == 0
    assert found.best_estimator_.epochs_ == found.verdict_["b"].steps > 10


@pytest.mark.slow
def test_a_refit_of_large_boosters_under_seconds_is_not_smaller_than_in_the_race():
    lightgbm = pytest.importorskip("lightgbm")
    data, target = make_classification(20_000, 30, n_informative=10, random_state=0)
    shared = {"n_estimators": 2000, "n_jobs": 1, "verbosity": -1}
    models = {
        "small": lightgbm.LGBMClassifier(num_leaves=15, **shared),
        "large": lightgbm.LGBMClassifier(num_leaves=63, **shared),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it says so if the time was too short
        found = RaceSearchCV(models, seconds=15, random_state=0).fit(data, target)
    trees = found.best_estimator_.booster_.num_trees()
    assert trees >= found.verdict_[found.best_name_].steps
    assert found.refit_kind_ in ("refit", "race")


def test_a_refit_says_what_it_does_and_how_long_it_takes(clock, capsys):
    RaceSearchCV(TIMED, trainings=2, random_state=0, verbose=True).fit(X, Y)
    assert "refitting b on all 150 rows, about 4 min 10 s" in capsys.readouterr().err


# --- estimators that train in one step ---


def test_an_estimator_that_trains_in_one_step_races():
    models = {"neighbors": KNeighborsClassifier(), **MODELS}
    found = RaceSearchCV(models, trainings=5, random_state=0).fit(X, Y)
    assert found.verdict_["neighbors"].state in ("finished", "winner")
    assert found.verdict_["neighbors"].steps == 1
    assert found.verdict_["neighbors"].score > 0.9
    assert found.verdict_.settings["trainings"] == pytest.approx(3 + 1 / 20)  # and its one pull


def test_each_estimator_that_trains_in_one_step_costs_a_training():
    models = {"neighbors": KNeighborsClassifier(), "tree": DecisionTreeClassifier()}
    only = RaceSearchCV(models, trainings=3, random_state=0).fit(X, Y)
    assert only.verdict_.spent == 2 and only.refit_kind_ == "refit"
    words = "trainings=3 leaves .* one full training .* winner, neighbors, tree. Give more than 3"
    with pytest.raises(BudgetError, match=words):
        RaceSearchCV(models | MODELS, trainings=3, random_state=0).fit(X, Y)


# --- a journal ---


def test_fit_again_with_a_larger_budget_extends_the_race(tmp_path):
    journal = tmp_path / "search.db"
    RaceSearchCV(MODELS, trainings=2, journal=journal, random_state=0).fit(X, Y)
    assert read_verdict(journal).spent == 20
    found = RaceSearchCV(MODELS, trainings=2.5, journal=journal, random_state=0).fit(X, Y)
    assert found.verdict_.spent == 30


def test_fit_again_with_more_seconds_extends_the_race(tmp_path, clock):
    journal = tmp_path / "search.db"
    first = RaceSearchCV(TIMED, seconds=60, journal=journal, random_state=0).fit(X, Y)
    same = RaceSearchCV(TIMED, seconds=60, journal=journal, random_state=0).fit(X, Y)
    assert same.verdict_.spent == first.verdict_.spent
    more = RaceSearchCV(TIMED, seconds=180, journal=journal, random_state=0).fit(X, Y)
    assert more.verdict_.spent > first.verdict_.spent
    assert more.best_estimator_.epochs_ >= more.verdict_["b"].steps > first.verdict_["b"].steps


def test_more_estimators_join_a_race(tmp_path):
    journal = tmp_path / "search.db"
    RaceSearchCV(MODELS, trainings=2, journal=journal, random_state=0).fit(X, Y)
    more = MODELS | {"bayes": GaussianNB()}
    found = RaceSearchCV(more, trainings=4, journal=journal, random_state=0).fit(X, Y)
    assert found.results_["name"].tolist() == ["forest", "linear", "bayes"]
    assert found.verdict_["bayes"].pulls > 0 and found.verdict_.spent > 20


class Stops(SGDClassifier):
    """Is interrupted in its fifth epoch."""

    epochs = 0

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        Stops.epochs += 1
        if Stops.epochs == 5:
            raise KeyboardInterrupt
        return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)


@pytest.mark.parametrize("journal", [True, False])
def test_ctrl_c_says_how_to_continue(journal, tmp_path, capsys):
    Stops.epochs = 0
    place = str(tmp_path / "search.db") if journal else None
    models = MODELS | {"stops": Stops(max_iter=20)}
    with pytest.raises(KeyboardInterrupt) as stopped:
        RaceSearchCV(models, trainings=3, journal=place, random_state=0).fit(X, Y)
    words = f"Call fit again with journal={place!r} to continue" if journal else "had no journal"
    assert words in str(stopped.value) and stopped.value.__suppress_context__
    assert words in capsys.readouterr().err


def test_a_changed_estimator_is_named_with_what_changed(tmp_path):
    journal = tmp_path / "search.db"
    RaceSearchCV(MODELS, trainings=3, journal=journal, random_state=0).fit(X, Y)
    changed = MODELS | {"forest": RandomForestClassifier(20, max_depth=8)}
    with pytest.raises(
        JournalMismatch, match=r"holds another race: forest: max_depth was 2, is 8\."
    ):
        RaceSearchCV(changed, trainings=3, journal=journal, random_state=0).fit(X, Y)
    with pytest.raises(JournalMismatch, match="holds another race: search random_state was"):
        RaceSearchCV(MODELS, trainings=3, journal=journal, random_state=1).fit(X, Y)


def test_candidates_are_named_by_what_varies_and_values_are_never_cut():
    space = {"validation_fraction": [0.0694444, 0.25], "n_iter_no_change": [11, 31],
             "learning_rate": ["adaptive"], "eta0": [0.0123456, 1.0]}  # fmt: skip
    asked = {"n_iter": 8, "trainings": 3, "random_state": 0}
    search = RaceRandomSearchCV(SGDClassifier(max_iter=5), space, **asked)
    names = [one.name for one in search.fit(X, Y).verdict_.learners]
    assert len(names) == 8 and all(name.startswith(f"#{k} ") for k, name in enumerate(names))
    for name, params in zip(names, search.cv_results_["params"], strict=True):
        values = [f"{value:.3g}" for key, value in params.items() if key != "learning_rate"]
        assert all(f"={value}" in name for value in values) and "adaptive" not in name
    frame = search.verdict_.to_frame()
    assert frame["param_eta0"].tolist() == [one["eta0"] for one in search.cv_results_["params"]]
    assert "param_learning_rate" not in frame  # which is the same for all


# --- what people read of a search ---


def test_a_function_may_choose_what_is_kept():
    def second(table):
        return int(np.flatnonzero(table["rank_test_score"] == 2)[0])

    space = {"alpha": [1e-4, 1e-2, 10.0]}
    found = RaceRandomSearchCV(
        SGDClassifier(max_iter=20), space, "all", trainings=3, random_state=0, refit=second
    ).fit(X, Y)
    assert found.cv_results_["rank_test_score"][found.best_index_] == 2
    assert found.best_estimator_.alpha == found.best_params_["alpha"]
    with pytest.raises(SettingError, match=r"refit\(results\)=7, .* must be from 0 to 2"):
        clone(found).set_params(refit=lambda table: 7).fit(X, Y)


def test_training_rows_are_scored_on_request():
    found = RaceSearchCV(MODELS, trainings=2, random_state=0, cv=2, return_train_score=True)
    table = found.fit(X, Y).results_
    assert (table["mean_train_score"] > 0.5).all()
    assert np.allclose(table["mean_test_score"], table["score"])
    assert {"split0_train_score", "split1_train_score", "std_train_score"} <= set(table)


def test_best_params_names_the_winner_and_its_settings():
    found = RaceSearchCV(MODELS, trainings=2, random_state=0).fit(X, Y)
    params = found.best_params_
    assert params.pop("name") == found.best_name_
    assert params == MODELS[found.best_name_].get_params()


def test_a_search_transforms_if_its_winner_does():
    whole = make_pipeline(PCA(2), KMeans(3, n_init=1))
    models = {"a": whole, "b": clone(whole).set_params(kmeans__n_clusters=2)}
    search = RaceSearchCV(models, trainings=3, random_state=0, scoring=lambda one, X, y: 0.5)
    assert search.fit(X, Y).transform(X).shape[0] == 150
    assert not hasattr(RaceSearchCV(MODELS, trainings=2), "transform")


def test_a_training_has_as_many_pulls_as_asked_for():
    found = RaceSearchCV(MODELS, trainings=2, pulls_per_training=5, random_state=0).fit(X, Y)
    assert found.verdict_.horizon == 5 and found.verdict_.budget == 5
    assert [one.steps for one in found.verdict_.learners] == [
        4 * one.pulls for one in found.verdict_.learners
    ]


@pytest.mark.parametrize("name", get_scorer_names())
@pytest.mark.filterwarnings("ignore")  # metrics of predictions that are all wrong
def test_no_score_is_outside_the_range_that_is_known_of_its_metric(name, rng):
    low, high = score_range_of(SGDClassifier(), name)
    y = rng.integers(2, size=(40, 2) if "samples" in name else 40)
    for quality in (0.0, 0.5, 1.0):
        truth = np.where(rng.random(y.shape) < quality, y, 1 - y)
        try:
            score = get_scorer(name)(Fixed(y), np.zeros((40, 1)), truth)
        except (ValueError, IndexError):  # not for such targets
            continue
        assert (low is None or score >= low) and (high is None or score <= high)


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts what it was given."""

    def __init__(self, y):
        self.y, self.classes_ = y, np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.y

    def predict_proba(self, X):
        return np.column_stack([1 - self.y, self.y])


def test_a_factory_is_asked_for_its_full_training():
    learners = {
        name: lambda one=one: SklearnLearner(one, X, Y, batch=None, random_state=0)
        for name, one in (*MODELS.items(), ("bayes", GaussianNB()))
    }
    verdict = race(learners, trainings=2, journal=None, progress=False)
    assert verdict.settings["full_steps"] == {"forest": 20, "linear": 20, "bayes": 12}
