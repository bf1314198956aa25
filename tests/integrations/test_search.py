"""`RaceSearchCV`: a scikit-learn estimator in every respect."""

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from latebloomer import read_verdict
from latebloomer.errors import (
    AllFailed,
    BudgetError,
    JournalMismatch,
    LearnerError,
    MissingExtra,
    SettingError,
    UnknownName,
)
from latebloomer.integrations.sklearn import NoneLearns, RaceSearchCV, SklearnLearner
from latebloomer.session.events import ScoreReported

X, Y = load_iris(return_X_y=True)
MODELS = {
    "bayes": GaussianNB(),
    "linear": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss")),
    "net": MLPClassifier((8,)),
}
WHERE_BAYES_WINS = "adaptive-rejects:power=1"  # an estimator that counts the rows it has seen


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield


def search(estimators=MODELS, **settings):
    return RaceSearchCV(estimators, **{"budget": 60, "batch": 16, "random_state": 0} | settings)


class Rows(ClassifierMixin, BaseEstimator):
    """Remembers the rows that it has trained on."""

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.unique([*getattr(self, "classes_", []), *y])
        self.seen_ = {*getattr(self, "seen_", ()), *X[:, 0]}
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        return np.resize(self.classes_, len(X))


CLASSIFIERS = RaceSearchCV({"bayes": GaussianNB(), "linear": SGDClassifier()}, budget=24, batch=16)
REGRESSORS = RaceSearchCV(
    [SGDRegressor(), GradientBoostingRegressor(learning_rate=0.4)], budget=20, batch=16, step=4
)


@pytest.mark.filterwarnings("ignore")  # the checks feed estimators what they warn about
@parametrize_with_checks([CLASSIFIERS])  # without exceptions
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([REGRESSORS])
def test_scikit_learns_own_checks_with_regressors(estimator, check):
    check(estimator)


# --- the result ---


def test_the_best_is_what_the_race_says():
    found = search().fit(X, Y)
    verdict = found.verdict_
    assert found.best_name_ == verdict.name == list(MODELS)[found.best_index_]
    assert found.best_score_ == verdict.score
    assert found.results_["name"].tolist() == list(MODELS)
    assert dict(zip(MODELS, found.results_["pulls"], strict=True)) == verdict.pulls
    assert sum(found.results_["pulls"]) + found.refit_pulls_ == 60
    assert found.results_["rank"][found.best_index_] == 1
    assert sorted(found.results_["rank"]) == [1, 2, 3]
    assert "partial_fit" in found.results_["how"][0]
    assert len(pd.DataFrame(found.results_)) == 3
    assert found.score(X, Y) == found.best_estimator_.score(X, Y) > 0.8
    assert found.classes_.tolist() == [0, 1, 2]


def test_without_refit_the_winner_is_as_the_race_trained_it():
    found = search(refit=False, policy=WHERE_BAYES_WINS).fit(X, Y)
    assert found.refit_pulls_ == 0
    pulls = found.results_["pulls"][found.best_index_]
    assert found.best_name_ == "bayes"  # which counts the rows that it has seen
    assert found.best_estimator_.class_count_.sum() == 16 * pulls


# --- one budget ---


def test_a_refit_is_set_aside_from_the_budget_first():
    found = search(policy=WHERE_BAYES_WINS).fit(X, Y)
    pulls = found.results_["pulls"][found.best_index_]
    assert found.verdict_.spent + found.refit_pulls_ == 60
    assert found.refit_pulls_ >= pulls  # at least as many as it had in the race
    assert found.best_estimator_.class_count_.sum() == 16 * found.refit_pulls_


def test_a_refit_to_a_horizon_is_set_aside_too():
    found = search(budget=100, horizon=30, policy=WHERE_BAYES_WINS).fit(X, Y)
    assert (found.verdict_.spent, found.refit_pulls_) == (70, 30)


def test_an_extra_refit_is_spent_on_top_and_said_before_and_after(capsys):
    found = search(extra_refit=True, verbose=True).fit(X, Y)
    pulls = found.results_["pulls"][found.best_index_]
    assert (found.verdict_.spent, found.refit_pulls_) == (60, pulls)
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("takes as many pulls as it had on top of the budget.")
    assert said[-1].startswith(f"refitting {found.best_name_} on all 150 rows, about ")


def test_refit_uses_the_rows_that_were_held_out():
    models = {"a": Rows(), "b": Rows()}
    data, target = np.arange(100.0)[:, None], np.arange(100) % 2
    raced = search(models, refit=False).fit(data, target).best_estimator_
    refit = search(models, budget=500, horizon=200).fit(data, target).best_estimator_
    assert len(raced.seen_) == 80 and len(refit.seen_) == 100


def test_a_refit_is_the_estimators_own_fit_on_all_rows():
    trees = HistGradientBoostingClassifier(max_leaf_nodes=4, min_samples_leaf=5, max_iter=12)
    bad = SGDClassifier(alpha=1e3, max_iter=12)
    found = search({"trees": trees, "bad": bad}, budget=None, trainings=2).fit(X, Y)
    assert found.best_name_ == "trees" and found.best_estimator_.n_iter_ == 12
    seeded = clone(found.best_estimator_).set_params(warm_start=False)
    assert np.array_equal(seeded.fit(X, Y).predict_proba(X), found.predict_proba(X))


def test_one_of_three_trainings_is_the_refits():
    found = search(budget=None, batch=None, trainings=3).fit(X, Y)
    one = found.verdict_.horizon
    assert found.verdict_.budget == 2 * one and found.verdict_.spent <= 2 * one
    assert found.refit_pulls_ <= one  # fewer where it meets its own rule to stop
    assert found.verdict_.settings["full_steps"].keys() == MODELS.keys()


def test_without_a_budget_a_search_has_half_a_training_for_each_and_one_for_the_refit():
    two = {"bayes": GaussianNB(), "linear": SGDClassifier(max_iter=10)}
    assert search(two, budget=None).fit(X, Y).verdict_.settings["trainings"] == 2
    five = {f"bayes {k}": GaussianNB(var_smoothing=10.0**-k) for k in range(5)}
    assert search(five, budget=None).fit(X, Y).verdict_.settings["trainings"] == 2.5


@pytest.mark.parametrize(
    "settings, error, text",
    [
        (
            {"refit": "yes"},
            SettingError,
            "refit='yes', but refit must be True, False or a function",
        ),
        ({"refit": False, "extra_refit": True}, SettingError, "without a refit nothing is spent"),
        ({"trainings": 3}, SettingError, "trainings=3, but a search has one budget"),
        (
            {"budget": None, "trainings": 1},
            BudgetError,
            "leaves nothing for the race: .* reserved for the refit of the winner. Give more than",
        ),
        ({"budget": None, "trainings": 3, "horizon": 9}, SettingError, "that is for budget="),
        ({"budget": 40, "horizon": 40}, BudgetError, "refit=True reserves 40 pulls"),
        ({"budget": None, "trainings": "3"}, SettingError, "trainings='3', but trainings must be"),
    ],
)
def test_bad_budgets_are_said_before_anything_is_trained(settings, error, text):
    with pytest.raises(error, match=text):
        search(**settings).fit(X, Y)


def test_equal_random_states_give_equal_searches():
    first, second = search().fit(X, Y), search().fit(X, Y)
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.results_["score"].tolist() == second.results_["score"].tolist()


def test_methods_are_those_of_the_best_estimator():
    found = search({"a": SGDClassifier(), "b": Perceptron()})
    assert not hasattr(found, "predict_proba")
    found.fit(X, Y)
    assert found.decision_function(X).shape == (150, 3)
    assert not hasattr(found, "predict_proba")
    found = search({"a": GaussianNB(), "b": GaussianNB(var_smoothing=0.1)}).fit(X, Y)
    assert found.predict_log_proba(X).shape == (150, 3)
    assert not hasattr(found, "decision_function")


def test_scoring_decides_and_scores():
    found = search(scoring="neg_log_loss").fit(X, Y)
    assert found.best_score_ < 0 and found.score(X, Y) < 0


# --- settings ---


GIVEN = {
    "dict": {"bayes": GaussianNB(), "linear": SGDClassifier()},
    "pairs": [("bayes", GaussianNB()), ("linear", SGDClassifier())],
    "bare": [GaussianNB(), SGDClassifier()],
}


@pytest.mark.parametrize("form", GIVEN)
def test_settings_of_estimators_have_nested_names(form):
    bayes, linear = ("bayes", "linear") if form != "bare" else ("gaussiannb", "sgdclassifier")
    made = clone(search(GIVEN[form]))
    made.set_params(**{f"{linear}__alpha": 0.5, "budget": 30})
    assert made.get_params()[f"{linear}__alpha"] == made.get_params()[linear].alpha == 0.5
    assert made.budget == 30
    kept = made.estimators
    made.set_params(**{bayes: GaussianNB(var_smoothing=0.1)})
    assert made.get_params()[f"{bayes}__var_smoothing"] == 0.1
    assert type(made.estimators) is type(kept) and made.estimators is not kept
    assert "alpha=0.5" in repr(made)
    assert f"{bayes}__priors" not in made.get_params(deep=False)
    with pytest.raises(ValueError, match="Invalid parameter 'nobody'"):
        made.set_params(nobody=1)


# --- among other estimators ---


def test_it_is_cloned_pickled_tuned_and_cross_validated():
    found = search().fit(X, Y)
    copy = clone(found)
    assert repr(copy) == repr(found) and not hasattr(copy, "best_estimator_")
    assert is_classifier(copy) and not is_regressor(copy)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict_proba(X), found.predict_proba(X))
    assert again.verdict_.name == found.best_name_
    assert cross_val_score(make_pipeline(StandardScaler(), search()), X, Y, cv=2).mean() > 0.8
    grid = GridSearchCV(search(), {"bayes__var_smoothing": [1e-9, 1e-2]}, cv=2).fit(X, Y)
    assert grid.best_params_["bayes__var_smoothing"] in (1e-9, 1e-2)


def test_regressors_race_too():
    data, target = load_diabetes(return_X_y=True)
    models = {"sgd": SGDRegressor(), "trees": GradientBoostingRegressor(max_depth=2)}
    found = search(models, scoring="neg_mean_absolute_error").fit(data, target)
    assert is_regressor(found) and not hasattr(found, "classes_")
    assert found.predict(data).shape == target.shape


def test_names_of_columns_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = search().fit(frame, pd.Series(Y))
    assert found.feature_names_in_.tolist() == list("abcd") and found.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[list("dcba")])


def test_text_races_in_pipelines():
    texts = ["late bloomers win", "early birds lose"] * 20
    models = [
        make_pipeline(HashingVectorizer(n_features=64), one)
        for one in (SGDClassifier(), Perceptron())
    ]
    found = search(models, budget=20).fit(texts, ["yes", "no"] * 20)
    assert found.predict(["bloomers win late"]).tolist() == ["yes"]


# --- the journal ---


def test_a_folder_has_a_new_journal_for_each_fit(tmp_path):
    for count in (1, 2):
        found = search(journal=f"{tmp_path}/races/").fit(X, Y)
        assert len(list((tmp_path / "races").glob("*.db"))) == count
    assert read_verdict(tmp_path / "races").name == found.best_name_


def test_a_search_goes_on_with_its_own_journal(tmp_path):
    journal = tmp_path / "search.db"
    first = search(journal=journal).fit(X, Y)
    assert read_verdict(journal).name == first.best_name_
    again = search(journal=journal).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), first.predict_proba(X))
    assert again.results_["score"].tolist() == first.results_["score"].tolist()
    assert sum(read_verdict(journal).pulls.values()) == 60 - first.refit_pulls_


def test_a_search_leaves_others_journals_alone(tmp_path):
    journal = tmp_path / "search.db"
    search(journal=journal).fit(X, Y)
    others = (
        {"random_state": 1},
        {"batch": 8},
        {"policy": "sh"},
        {"winner_share": 0.3},
    )
    for other in others:
        with pytest.raises(JournalMismatch):
            search(journal=journal, **other).fit(X, Y)
    with pytest.raises(JournalMismatch, match=r"holds another race: search data was '\w+', is "):
        search(journal=journal).fit(X[::-1], Y)
    with pytest.raises(BudgetError, match=r"budget=\d+ is below the"):
        search(journal=journal, budget=40).fit(X, Y)


def test_a_search_can_keep_a_share_for_its_winner(tmp_path):
    found = search(winner_share=0.5, refit=False, journal=tmp_path / "search.db").fit(X, Y)
    assert found.results_["pulls"].sum() == 60 and found.refit_pulls_ == 0
    assert found.verdict_.trained.pulls_after_selection == 30
    assert found.best_score_ == found.verdict_.trained.score
    again = search(winner_share=0.5, refit=False, journal=tmp_path / "search.db").fit(X, Y)
    assert np.array_equal(again.predict(X), found.predict(X))


class Crash(SGDClassifier):
    """Stops the process's race once, in the middle."""

    left = 10**9

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        Crash.left -= 1
        if Crash.left == 0:
            raise KeyboardInterrupt
        return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    models = {"crash": Crash(), "bayes": GaussianNB(), "net": MLPClassifier((8,))}
    calm = search(models).fit(X, Y)
    Crash.left = 7
    with pytest.raises(KeyboardInterrupt):
        search(models, journal=tmp_path / "race.db").fit(X, Y)
    found = search(models, journal=tmp_path / "race.db").fit(X, Y)
    assert found.results_["score"].tolist() == calm.results_["score"].tolist()
    assert np.array_equal(found.predict(X), calm.predict(X))


# --- bad input ---


class Fails(ClassifierMixin, BaseEstimator):
    def partial_fit(self, X, y, classes=None):
        raise RuntimeError("no memory")

    def fit(self, X, y):
        return self

    def score(self, X, y):
        return 0.0


@pytest.mark.parametrize(
    ("estimators", "error", "words"),
    [
        ({}, SettingError, "estimators must be at least 2"),
        ({"bayes": GaussianNB()}, SettingError, "estimators must be at least 2"),
        (None, SettingError, "estimators=None, but estimators must be at least 2"),
        (
            [("a", GaussianNB()), ("a", SGDClassifier())],
            SettingError,
            "2 estimators are called 'a'",
        ),
        ({"a__b": GaussianNB(), "c": GaussianNB()}, SettingError, "called 'a__b', but a name"),
        ({"budget": GaussianNB(), "c": GaussianNB()}, SettingError, "not a setting of the search"),
        ({"a": SGDClassifier, "b": GaussianNB()}, LearnerError, "estimator 'a': .* is a class"),
        ({"a": SGDRegressor(), "b": GaussianNB()}, SettingError, "a is a regressor, b is a class"),
    ],
)
def test_wrong_estimators_are_named(estimators, error, words):
    with pytest.raises(error, match=words):
        search(estimators).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"budget": 2}, BudgetError, "budget=2 is too small for 3 learners"),
        ({"policy": "r-st"}, UnknownName, "did you mean 'r-sr'"),
        ({"scoring": "acc"}, UnknownName, "no scoring is called 'acc'"),
        ({"n_jobs": 0}, SettingError, "n_jobs=0, but n_jobs must be at least 1, or negative"),
        ({"n_jobs": 1.5}, SettingError, "n_jobs=1.5, but n_jobs must be a whole number"),
        ({"cv": (X, Y)}, SettingError, "a split must be two lists of row numbers below 150"),
        ({"batch": 0}, SettingError, "batch=0, but batch must be at least 1"),
        ({"step": 0}, SettingError, "step=0, but step must be at least 1"),
    ],
)
def test_wrong_settings_are_named(settings, error, words):
    with pytest.raises(error, match=words):
        search(**settings).fit(X, Y)


def test_wrong_data_are_named():
    with pytest.raises(SettingError, match="y has 140 values, but there are 150 rows"):
        search().fit(X, Y[:140])
    with pytest.raises(SettingError, match="single class"):
        search().fit(X, np.ones(150, int))
    with pytest.raises(SettingError, match="requires y to be passed"):
        search().fit(X)
    with pytest.raises(AttributeError, match=r"call fit\(X, y\) first"):
        _ = search().n_features_in_


def test_one_that_fails_is_out_and_the_race_goes_on():
    found = search({"fails": Fails(), **MODELS}).fit(X, Y)
    assert found.results_["state"][0] == "failed"
    assert "no memory" in found.results_["why"][0]
    assert found.best_name_ in MODELS


def test_when_all_fail_each_reason_is_given():
    with pytest.raises(AllFailed, match="no memory"):
        search({"a": Fails(), "b": Fails()}).fit(X, Y)
    with pytest.raises(NoneLearns, match="contains NaN") as caught:
        search({"a": GaussianNB(), "b": SGDClassifier()}).fit(np.where(X > 5, np.nan, X), Y)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_search_splits_as_a_learner_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = SklearnLearner(GaussianNB(), X, Y, batch=1000, random_state=0)
        found = search({"a": GaussianNB(), "b": GaussianNB(priors=[1, 0, 0])}, batch=1000)
        assert found.fit(X, Y).best_score_ == learner.pull()


# --- several at once ---


@pytest.mark.slow  # it starts Ray: `make test-integrations` runs it
@pytest.mark.filterwarnings("default")  # Ray's own code warns of what it does
def test_several_jobs_find_what_one_finds():
    models = {name: MODELS[name] for name in ("bayes", "linear")}  # each costs a process's start
    asked = {"budget": 24, "scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
    one = search(models, n_jobs=1, **asked).fit(X, Y)
    two = search(models, n_jobs=2, **asked).fit(X, Y)
    assert two.verdict_.summary() == one.verdict_.summary()
    assert np.array_equal(two.predict(X), one.predict(X))
    assert two.refit_pulls_ == one.refit_pulls_ and two.best_score_ == one.best_score_
    for column in ("mean_test_f1_macro", "mean_test_accuracy", "split0_test_accuracy"):
        assert np.array_equal(one.results_[column], two.results_[column])


def test_several_jobs_without_ray_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"need ray: pip install 'latebloomer\[ray\]'"):
        search(n_jobs=2).fit(X, Y)


def test_callbacks_are_told_what_happens():
    heard = []
    models = {"a": SGDClassifier(random_state=0), "b": GaussianNB()}
    RaceSearchCV(
        models, budget=20, random_state=0, callbacks=[lambda event, view: heard.append(event)]
    ).fit(X, Y)
    assert (
        sum(isinstance(event, ScoreReported) for event in heard) == 12
    )  # and 6 + 2 for the refit


@pytest.mark.parametrize("scoring, known", [(None, [0, 1]), ("neg_log_loss", [None, 0])])
def test_scores_with_a_known_range_are_certified_within_it(scoring, known):
    models = {"a": SGDClassifier(loss="log_loss", random_state=0), "b": GaussianNB()}
    found = RaceSearchCV(models, budget=20, random_state=0, scoring=scoring).fit(X, Y)
    assert list(found.verdict_.settings["score_range"]) == known
