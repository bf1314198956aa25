"""`RaceSearchCV`: a scikit-learn estimator in every respect, and what it promises is kept."""

import pickle
import re
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor as Stages
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Perceptron, PoissonRegressor, SGDClassifier, SGDRegressor
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from latebloomer import RaceRandomSearchCV, RaceSearchCV, race, read_verdict
from latebloomer.errors import BudgetError, JournalMismatch, SettingError
from latebloomer.integrations.sklearn import NoneLearns, SklearnLearner
from latebloomer.integrations.sklearn.metrics import Metrics
from latebloomer.integrations.sklearn.refit_reserve import RefitReserve
from latebloomer.policies.registry import policy_for
from latebloomer.session.events import ScoreReported
from tests.helpers.libraries import refuses

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = load_iris(return_X_y=True)
MODELS = {
    "bayes": GaussianNB(),
    "linear": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss")),
    "net": MLPClassifier((8,)),
}
PAIR = {"forest": RandomForestClassifier(20, max_depth=2), "linear": SGDClassifier(max_iter=20)}
WHERE_BAYES_WINS = "adaptive-rejects:power=1"  # an estimator that counts the rows it has seen


def search(estimators=MODELS, **settings):
    """Return a search of 60 pulls."""
    return RaceSearchCV(estimators, **{"budget": 60, "batch": 16, "random_state": 0} | settings)


def by_trainings(estimators=PAIR, trainings=2, **settings):
    return RaceSearchCV(estimators, trainings=trainings, random_state=0, **settings)


SMALL = {"budget": 24, "batch": 16}
CLASSIFIERS = [
    RaceSearchCV({"bayes": GaussianNB(), "linear": SGDClassifier()}, **SMALL),
    RaceRandomSearchCV(SGDClassifier(), {"alpha": [1e-4, 1e-3]}, n_iter=2, **SMALL),
]
TREES = Stages(learning_rate=0.4)
REGRESSORS = [
    RaceSearchCV([SGDRegressor(), TREES], budget=20, batch=16, step=4),
    RaceRandomSearchCV(TREES, {"max_depth": [1, 2, 3]}, n_iter=2, budget=20, step=4),
]


@pytest.mark.filterwarnings("ignore")  # the checks feed estimators what they warn about
@parametrize_with_checks(CLASSIFIERS)  # without exceptions
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(REGRESSORS)
def test_scikit_learns_own_checks_with_regressors(estimator, check):
    check(estimator)


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
    params = found.best_params_
    assert params.pop("name") == found.best_name_
    assert params == MODELS[found.best_name_].get_params()


def test_methods_are_those_of_the_best_estimator():
    found = search({"a": SGDClassifier(), "b": Perceptron()})
    assert not hasattr(found, "predict_proba")
    found.fit(X, Y)
    assert found.decision_function(X).shape == (150, 3)
    assert not hasattr(found, "predict_proba")
    found = search({"a": GaussianNB(), "b": GaussianNB(var_smoothing=0.1)}).fit(X, Y)
    assert found.predict_log_proba(X).shape == (150, 3)
    assert not hasattr(found, "decision_function") and not hasattr(found, "transform")
    whole = make_pipeline(PCA(2), KMeans(3, n_init=1))
    models = {"a": whole, "b": clone(whole).set_params(kmeans__n_clusters=2)}
    found = by_trainings(models, 3, scoring=lambda one, X, y: 0.5).fit(X, Y)
    assert found.transform(X).shape[0] == 150


def test_training_rows_and_other_metrics_are_scored_on_request():
    asked = {"return_train_score": True, "scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
    table = by_trainings(cv=2, **asked).fit(X, Y).results_
    assert (table["mean_train_f1_macro"] > 0.3).all()
    assert np.allclose(table["mean_test_f1_macro"], table["score"])
    assert np.isfinite(table["mean_test_accuracy"]).all()
    assert {"split0_train_accuracy", "split1_train_f1_macro", "std_train_accuracy"} <= set(table)


def test_a_refit_is_part_of_the_budget_and_trains_no_less_than_the_race():
    raced = search(refit=False, policy=WHERE_BAYES_WINS).fit(X, Y)
    assert raced.best_name_ == "bayes" and raced.refit_pulls_ == 0
    pulls = raced.results_["pulls"][raced.best_index_]
    assert raced.best_estimator_.class_count_.sum() == 16 * pulls
    found = search(policy=WHERE_BAYES_WINS).fit(X, Y)
    assert found.verdict_.spent + found.refit_pulls_ == 60
    assert found.refit_pulls_ >= found.results_["pulls"][found.best_index_]
    assert found.best_estimator_.class_count_.sum() == 16 * found.refit_pulls_
    found = search(budget=100, horizon=30, policy=WHERE_BAYES_WINS).fit(X, Y)
    assert (found.verdict_.spent, found.refit_pulls_) == (70, 30)
    found = search(extra_refit=True).fit(X, Y)
    pulls = found.results_["pulls"][found.best_index_]
    assert (found.verdict_.spent, found.refit_pulls_) == (60, pulls)


def test_a_refit_is_the_estimators_own_fit_on_all_rows():
    trees = HistGradientBoostingClassifier(max_leaf_nodes=4, min_samples_leaf=5, max_iter=12)
    bad = SGDClassifier(alpha=1e3, max_iter=12)
    found = by_trainings({"trees": trees, "bad": bad}).fit(X, Y)
    assert found.best_name_ == "trees" and found.best_estimator_.n_iter_ == 12
    seeded = clone(found.best_estimator_).set_params(warm_start=False)
    assert np.array_equal(seeded.fit(X, Y).predict_proba(X), found.predict_proba(X))


@pytest.mark.filterwarnings("ignore:trainings=2 drops the first learner after 2 pulls")
def test_one_of_three_trainings_is_the_refits():
    found = by_trainings(MODELS, 3).fit(X, Y)
    one = found.verdict_.horizon
    assert found.verdict_.budget == 2 * one and found.verdict_.spent <= 2 * one
    assert found.refit_pulls_ <= one  # fewer where it meets its own rule to stop
    verdict = by_trainings(pulls_per_training=5).fit(X, Y).verdict_
    assert verdict.horizon == 5 and verdict.budget == 5
    assert [one.steps for one in verdict.learners] == [4 * one.pulls for one in verdict.learners]


def test_without_a_budget_no_learner_is_dropped_before_three_pulls_and_a_tenth():
    two = {"bayes": GaussianNB(), "linear": SGDClassifier(max_iter=10)}
    assert by_trainings(two, None).fit(X, Y).verdict_.settings["trainings"] == 2
    five = {f"bayes {k}": GaussianNB(var_smoothing=10.0**-k) for k in range(5)}
    assert by_trainings(five, None).fit(X, Y).verdict_.settings["trainings"] == 3
    steps = {f"tree {k}": DecisionTreeClassifier(max_depth=k) for k in range(1, 8)}
    found = by_trainings(five | steps, None, pulls_per_training=50).fit(X, Y)
    budget = found.verdict_.budget
    first_drop = policy_for("auto", 12, budget, 50).describe(12, budget, 50).first_drop
    assert first_drop[0] >= 5 and not found.verdict_.warnings
    assert found.verdict_.settings["trainings"] > 3 + 7 / 50  # .6 of those that take many steps


def test_a_budget_that_drops_learners_early_is_warned_of_with_the_one_to_give():
    many = {f"net {k}": MLPClassifier((2,), max_iter=20, alpha=10.0**-k) for k in range(12)}
    with pytest.warns(RuntimeWarning, match=r"drops .* of 12 learners after 2 pulls") as said:
        found = by_trainings(many, 4).fit(X, Y)
    text = str(said[0].message)
    assert text in found.verdict_.warnings and said[0].filename == __file__
    enough = float(re.search(r"Give trainings=([\d.]+)", text)[1])
    assert text not in by_trainings(many, enough).fit(X, Y).verdict_.warnings
    one_model = RaceRandomSearchCV(
        many["net 0"], {"alpha": list(range(12))}, n_iter=12, trainings=4
    )
    one_model.fit(X, Y)  # its settings have curves of similar shapes: no warning


@pytest.mark.parametrize("trainings, least", [(4, 3), (3.6, 2)])
def test_models_have_three_pulls_if_the_budget_pays_for_seven_of_each(trainings, least):
    many = {f"net {k}": MLPClassifier((2,), max_iter=30, alpha=10.0**-k) for k in range(12)}
    search = by_trainings(many, trainings, pulls_per_training=30)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        found = search.fit(X, Y)
    early = [w for w in shown if "learners after" in str(w.message)]
    assert found.verdict_.settings["min_pulls"] == least and bool(early) == (least < 3)
    one_model = RaceRandomSearchCV(
        many["net 0"], {"alpha": list(range(12))}, n_iter=12, trainings=4, pulls_per_training=30
    )
    assert one_model.fit(X, Y).verdict_.settings["min_pulls"] == 2
    named = by_trainings(many, trainings, pulls_per_training=30, policy="sh")
    with pytest.warns(RuntimeWarning, match="of 12 learners after 1 pull"):
        assert named.fit(X, Y).verdict_.settings["min_pulls"] == 1


def test_own_scores_of_different_metrics_are_warned_of():
    models = {"count": PoissonRegressor(), "line": SGDRegressor(), "tree": DecisionTreeRegressor()}
    with pytest.warns(RuntimeWarning, match="count may have another `score`.* scoring='r2'") as w:
        found = RaceSearchCV(models, random_state=0).fit(X, X[:, 0])
    assert str(w[0].message) in found.verdict_.warnings and w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RaceSearchCV(models, scoring="r2", random_state=0).fit(X, X[:, 0])


def test_estimators_that_fail_are_warned_of_with_each_reason_once():
    broken = {name: SGDClassifier(loss="nope") for name in ("one", "other")}
    with pytest.warns(
        FitFailedWarning, match="2 of 4 estimators failed and cannot be kept:\n"
    ) as w:
        found = by_trainings(PAIR | broken).fit(X, Y)
    (text,) = [str(one.message) for one in w if one.category is FitFailedWarning]
    assert text.count("InvalidParameterError") == 1 and "one, other: pull 1 failed" in text
    assert {one.filename for one in w if one.category is FitFailedWarning} == {__file__}
    assert found.best_name_ in PAIR


def test_an_estimator_that_trains_in_one_step_is_first_and_costs_a_pull():
    found = by_trainings(PAIR | {"neighbors": KNeighborsClassifier()}, 3).fit(X, Y)
    one = found.verdict_["neighbors"]
    assert one.state in ("finished", "winner") and one.steps == 1 and one.score > 0.9
    assert found.verdict_.learners[0] == one and found.results_["name"][-1] == "neighbors"
    assert found.verdict_.settings["trainings"] == 2 and found.verdict_.budget == 40
    models = {"neighbors": KNeighborsClassifier(), "tree": DecisionTreeClassifier()}
    only = by_trainings(models, 1.5).fit(X, Y)
    assert only.verdict_.spent == 2 and only.refit_kind_ == "refit"
    words = "the refit of the winner takes one full training. Give more than 1"
    refuses(BudgetError, words, by_trainings(models | PAIR, 1).fit, X, Y)


class Dear(KNeighborsClassifier):
    """Trains in one step that takes 15 s."""

    def fit(self, X, y):
        CLOCK[0] += 15
        return super().fit(X, y)


@pytest.mark.parametrize("epochs", [20, 40])
def test_a_dear_step_is_warned_of(clock, epochs):
    # A full training takes as many seconds as epochs: the step takes .75 or .375 of one.
    models = {"dear": Dear(), "a": Timed(epochs), "b": Timed(epochs, skill=2)}
    search = by_trainings(models, 3)
    if epochs == 40:
        assert not any("one step" in text for text in search.fit(X, Y).verdict_.warnings)
        return
    with pytest.warns(RuntimeWarning, match=r"dear trains in one step, .* took 15 s: 0.8 of the"):
        assert "Race it with seconds=" in search.fit(X, Y).verdict_.warnings[-1]


def test_a_search_is_a_race_of_learners_which_are_asked_for_their_full_training():
    models = PAIR | {"bayes": GaussianNB()}
    learners = {
        name: lambda one=one: SklearnLearner(one, X, Y, batch=None, random_state=0)
        for name, one in models.items()
    }
    verdict = race(learners, trainings=2, journal=None, progress=False)
    assert verdict.settings["full_steps"] == {"forest": 20, "linear": 20, "bayes": 12}
    found = search(models, batch=1000).fit(X, Y)  # which splits rows as a learner does
    learner = SklearnLearner(GaussianNB(), X, Y, batch=1000, random_state=0)
    assert found.results_["score"][2] == learner.pull()


CLOCK = [0.0]  # seconds


@pytest.fixture
def clock(monkeypatch):
    """Let time pass only while a model trains."""
    CLOCK[0] = 0.0
    for name, module in list(sys.modules.items()):
        if name.startswith("latebloomer.") and hasattr(module, "perf_counter"):
            monkeypatch.setattr(module, "perf_counter", lambda: CLOCK[0])


class Timed(ClassifierMixin, BaseEstimator):
    """Takes a second for an epoch of 120 rows, `refit_cost` for all rows, later ones `slower`."""

    def __init__(self, max_iter=200, skill=0, refit_cost=1.25, slower=0.0):
        self.max_iter, self.skill = max_iter, skill
        self.refit_cost, self.slower = refit_cost, slower

    def partial_fit(self, X, y, classes=None):
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        CLOCK[0] += (1.0 if len(X) == 120 else self.refit_cost) * (1 + self.slower * self.epochs_)
        self.classes_ = np.unique(y) if classes is None else classes
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        return np.resize(self.classes_[: 1 + self.skill], len(X))


TIMED = {"a": Timed(skill=0), "b": Timed(skill=2)}


def timed(seconds=120, journal=None, **settings):
    models = {name: clone(one).set_params(**settings) for name, one in TIMED.items()}
    return RaceSearchCV(models, seconds=seconds, journal=journal, random_state=0).fit(X, Y)


@pytest.mark.filterwarnings("ignore:The time left was too short")
@pytest.mark.parametrize("slower", [0.0, 0.05, 0.2])
def test_a_refit_under_seconds_trains_no_less_than_the_race_did(clock, slower):
    found = timed(slower=slower)
    assert found.best_estimator_.epochs_ >= found.verdict_[found.best_name_].steps
    if not slower:
        assert found.refit_kind_ == "refit" and CLOCK[0] <= 1.05 * 120


def test_a_refit_under_seconds_trains_until_the_time_is_up(clock):
    found = timed()  # 250 s for a whole one: half of the time is kept, 60 s, at 1.25 s an epoch
    assert 0.98 * 120 <= CLOCK[0] <= 1.02 * 120
    assert found.best_estimator_.epochs_ == 48


def test_a_refit_that_is_faster_than_the_race_is_a_full_training(clock):
    found = timed(max_iter=60, refit_cost=0.8)  # 75 s by the pace of the race, but 48 in truth
    assert found.best_estimator_.epochs_ == 60 and found.refit_kind_ == "refit"
    assert CLOCK[0] <= 120


def test_the_dearer_of_the_last_two_is_what_time_is_kept_for():
    def kept(*paces):
        """Return the seconds kept of 100, for learners whose full trainings are 10 pulls."""
        learners = [
            SimpleNamespace(name=str(arm), arm=arm, full_pulls=10, departed=False)
            for arm in range(len(paces))
        ]
        pulls = [ScoreReported(arm, 0.5, pace) for arm, pace in enumerate(paces)]
        view = SimpleNamespace(elapsed=1.0, standings=lambda: learners, events=lambda: pulls)
        view.reserve = seconds.append
        RefitReserve(100, 1.25, in_one_step)(pulls[0], view)
        return seconds.pop()

    seconds, in_one_step = [], set()
    assert kept(1, 3) == 37.5 and kept(1, 3, 3) == 12.5 and kept(1, 9) == 50
    in_one_step.add("1")  # one pull is all of its training
    assert kept(1, 16) == 20


def test_a_refit_that_does_not_fit_leaves_the_model_of_the_race(clock):
    with pytest.warns(RuntimeWarning, match="too short to refit b: .* is the model of the race"):
        found = timed(refit_cost=10.0)
    assert found.refit_kind_ == "race" and found.refit_pulls_ == 0
    assert found.best_estimator_.epochs_ == found.verdict_["b"].steps > 10


def test_a_refit_is_said_before_and_after_with_its_time(clock, capsys):
    by_trainings(TIMED, extra_refit=True, verbose=True).fit(X, Y)
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("takes one full training, on top of the budget.")
    assert said[-1] == "refitting b on all 150 rows, about 4 min 10 s"


@pytest.mark.parametrize(
    "given, bayes, linear",
    [
        ({"bayes": GaussianNB(), "linear": SGDClassifier()}, "bayes", "linear"),
        ([("bayes", GaussianNB()), ("linear", SGDClassifier())], "bayes", "linear"),
        ([GaussianNB(), SGDClassifier()], "gaussiannb", "sgdclassifier"),
    ],
)
def test_settings_of_estimators_have_nested_names(given, bayes, linear):
    made = clone(search(given))
    made.set_params(**{f"{linear}__alpha": 0.5, "budget": 30})
    assert made.get_params()[f"{linear}__alpha"] == made.get_params()[linear].alpha == 0.5
    assert made.budget == 30
    kept = made.estimators
    made.set_params(**{bayes: GaussianNB(var_smoothing=0.1)})
    assert made.get_params()[f"{bayes}__var_smoothing"] == 0.1
    assert type(made.estimators) is type(kept) and made.estimators is not kept
    assert "alpha=0.5" in repr(made)
    assert f"{bayes}__priors" not in made.get_params(deep=False)
    refuses(ValueError, "Invalid parameter 'nobody'", made.set_params, nobody=1)


def test_it_is_cloned_pickled_tuned_and_cross_validated():
    found = search().fit(X, Y)
    again = clone(found).fit(X, Y)  # with an equal random_state
    assert np.array_equal(again.predict_proba(X), found.predict_proba(X))
    assert again.results_["score"].tolist() == found.results_["score"].tolist()
    copy = clone(found)
    assert repr(copy) == repr(found) and not hasattr(copy, "best_estimator_")
    assert is_classifier(copy) and not is_regressor(copy)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict_proba(X), found.predict_proba(X))
    assert again.verdict_.name == found.best_name_
    assert cross_val_score(make_pipeline(StandardScaler(), search()), X, Y, cv=2).mean() > 0.8
    grid = GridSearchCV(search(), {"bayes__var_smoothing": [1e-9, 1e-2]}, cv=2).fit(X, Y)
    assert grid.best_params_["bayes__var_smoothing"] in (1e-9, 1e-2)


def test_regressors_frames_with_names_and_text_race_too():
    data, target = load_diabetes(return_X_y=True)
    models = {"sgd": SGDRegressor(), "trees": Stages(max_depth=2)}
    found = search(models, scoring="neg_mean_absolute_error").fit(data, target)
    assert is_regressor(found) and not hasattr(found, "classes_")
    assert found.best_score_ < 0 and found.score(data, target) < 0
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = search().fit(frame, pd.Series(Y))
    assert found.feature_names_in_.tolist() == list("abcd") and found.n_features_in_ == 4
    refuses(ValueError, "feature names should match", found.predict, frame[list("dcba")])
    texts = ["late bloomers win", "early birds lose"] * 20
    kinds = (SGDClassifier(), Perceptron())
    models = [make_pipeline(HashingVectorizer(n_features=64), one) for one in kinds]
    found = search(models, budget=20).fit(texts, ["yes", "no"] * 20)
    assert found.predict(["bloomers win late"]).tolist() == ["yes"]


def test_a_search_goes_on_with_its_own_journal_and_leaves_others_alone(tmp_path):
    for count in (1, 2):  # a folder has a new journal for each fit
        found = search(journal=f"{tmp_path}/races/").fit(X, Y)
        assert len(list((tmp_path / "races").glob("*.db"))) == count
    assert read_verdict(tmp_path / "races").name == found.best_name_
    journal = tmp_path / "search.db"
    first = search(journal=journal).fit(X, Y)
    assert read_verdict(journal).name == first.best_name_
    again = search(journal=journal).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), first.predict_proba(X))
    assert again.results_["score"].tolist() == first.results_["score"].tolist()
    assert sum(read_verdict(journal).pulls.values()) == 60 - first.refit_pulls_
    for other in ({"random_state": 1}, {"batch": 8}, {"policy": "sh"}, {"winner_share": 0.3}):
        refuses(JournalMismatch, "", search(journal=journal, **other).fit, X, Y)
    said = r"holds another race: search data was '\w+', is "
    refuses(JournalMismatch, said, search(journal=journal).fit, X[::-1], Y)
    refuses(BudgetError, r"budget=\d+ is below the", search(journal=journal, budget=40).fit, X, Y)


def test_a_search_can_keep_a_share_for_its_winner(tmp_path):
    asked = {"winner_share": 0.5, "refit": False, "journal": tmp_path / "search.db"}
    found = search(**asked).fit(X, Y)
    assert found.results_["pulls"].sum() == 60 and found.refit_pulls_ == 0
    assert found.verdict_.trained.pulls_after_selection == 30
    assert found.best_score_ == found.verdict_.trained.score
    assert np.array_equal(search(**asked).fit(X, Y).predict(X), found.predict(X))


class Stops(SGDClassifier):
    """Is interrupted once."""

    left = 10**9  # batches

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        Stops.left -= 1
        if Stops.left == 0:
            raise KeyboardInterrupt
        return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)


@pytest.mark.parametrize("journal", [True, False])
def test_ctrl_c_says_how_to_continue_and_a_search_goes_on_where_it_was(journal, tmp_path, capsys):
    models = {"stops": Stops(), "bayes": GaussianNB(), "net": MLPClassifier((8,))}
    calm = search(models).fit(X, Y)
    place = str(tmp_path / "search.db") if journal else None
    Stops.left = 7
    with pytest.raises(KeyboardInterrupt) as stopped:
        search(models, journal=place).fit(X, Y)
    words = f"Call fit again with journal={place!r} to continue" if journal else "had no journal"
    assert words in str(stopped.value) and stopped.value.__suppress_context__
    assert words in capsys.readouterr().err
    found = search(models, journal=place).fit(X, Y)
    assert found.results_["score"].tolist() == calm.results_["score"].tolist()
    assert np.array_equal(found.predict(X), calm.predict(X))


def test_fit_again_with_a_larger_budget_or_more_estimators_extends_the_race(tmp_path):
    asked = {"journal": tmp_path / "search.db"}
    by_trainings(**asked).fit(X, Y)
    assert read_verdict(asked["journal"]).spent == 20
    assert by_trainings(trainings=2.5, **asked).fit(X, Y).verdict_.spent == 30
    more = PAIR | {"bayes": GaussianNB()}
    found = by_trainings(more, 4, **asked).fit(X, Y)
    assert found.results_["name"].tolist() == ["forest", "linear", "bayes"]
    assert found.verdict_["bayes"].pulls > 0 and found.verdict_.spent > 30
    changed = more | {"forest": RandomForestClassifier(20, max_depth=8)}
    words = r"holds another race: forest: max_depth was 2, is 8\."
    refuses(JournalMismatch, words, by_trainings(changed, 4, **asked).fit, X, Y)


def test_fit_again_with_more_seconds_extends_the_race(tmp_path, clock):
    first, same, more = (timed(seconds, tmp_path / "search.db") for seconds in (60, 60, 180))
    assert same.verdict_.spent == first.verdict_.spent
    assert more.verdict_.spent > first.verdict_.spent
    assert more.best_estimator_.epochs_ >= more.verdict_["b"].steps > first.verdict_["b"].steps


BAYES, NO_BUDGET = GaussianNB(), {"budget": None}


@pytest.mark.parametrize(
    ("error", "words", "settings"),
    [
        (SettingError, "estimators must be at least 2", {"estimators": {"bayes": BAYES}}),
        (SettingError, "estimators=None, but estimators must be", {"estimators": None}),
        (SettingError, "called 'a', .* no other", {"estimators": [("a", BAYES), ("a", BAYES)]}),
        (SettingError, "'a__b', but a name", {"estimators": {"a__b": BAYES, "c": BAYES}}),
        (SettingError, "or setting of the", {"estimators": {"budget": BAYES, "c": BAYES}}),
        (TypeError, "estimator 'a': .* is a class", {"estimators": {"a": GaussianNB, "b": BAYES}}),
        (SettingError, "a is a regr", {"estimators": {"a": SGDRegressor(), "b": BAYES}}),
        (SettingError, "refit='yes', but refit must be True, False or a fun", {"refit": "yes"}),
        (SettingError, "without a refit nothing", {"refit": False, "extra_refit": True}),
        (SettingError, "extra_refit='no', but extra_refit must be True", {"extra_refit": "no"}),
        (SettingError, "return_train_score=1, but .* must be True", {"return_train_score": 1}),
        (SettingError, "watch='no', but watch must be True or False", {"watch": "no"}),
        (SettingError, "trainings=3, but a search has one budget", {"trainings": 3}),
        (BudgetError, "winner takes one full training. Give", NO_BUDGET | {"trainings": 1}),
        (SettingError, "horizon=9, .* without budget", NO_BUDGET | {"trainings": 3, "horizon": 9}),
        (BudgetError, "refit=True reserves 40 pulls", {"budget": 40, "horizon": 40}),
        (SettingError, "trainings='3', but trainings must be", NO_BUDGET | {"trainings": "3"}),
        (BudgetError, "budget=2 is too small for 3 learners", {"budget": 2}),
        (SettingError, "did you mean 'r-sr'", {"policy": "r-st"}),
        (SettingError, "n_jobs=0, but n_jobs must be at least 1, or negative", {"n_jobs": 0}),
        (SettingError, "step=0, but step must be at least 1", {"step": 0}),
    ],
)
def test_wrong_settings_are_named_before_anything_is_trained(error, words, settings):
    refuses(error, words, search(**settings).fit, X, Y)


def test_wrong_data_are_named():
    refuses(SettingError, "y has 140 values, but there are 150 rows", search().fit, X, Y[:140])
    refuses(SettingError, "y has a single class, 1, but", search().fit, X, np.ones(150, int))
    refuses(SettingError, "journal=3 must be a file, a folder", search(journal=3).fit, X, Y)
    for gap in (None, np.nan, pd.NA):
        labels = np.array(["a", "b", "c"], dtype=object)[Y]
        labels[[3, 5]] = gap
        refuses(SettingError, "y has 2 gaps, the first in row 3:", search().fit, X, labels)
    numbers = RaceSearchCV([SGDRegressor(), DecisionTreeRegressor()], trainings=2)
    text = np.array(["a", "b", "c"])[Y]
    refuses(
        SettingError, "'a', which is not a number, but the est.* regressors", numbers.fit, X, text
    )
    assert issubclass(NoneLearns, ValueError)  # every estimator's reason is given
    pair = search([GaussianNB(), SGDClassifier()])
    refuses(NoneLearns, "contains NaN", pair.fit, np.where(X > 5, np.nan, X), Y)
    refuses(SettingError, "requires y to be passed", search().fit, X)
    with pytest.raises(NotFittedError):
        _ = search().n_features_in_


@pytest.mark.slow  # it starts Ray: `make test-integrations` runs it
@pytest.mark.filterwarnings("default")  # Ray's own code warns of what it does
def test_several_jobs_find_what_one_finds():
    models = {name: MODELS[name] for name in ("bayes", "linear")}  # each costs a process's start
    asked = {"budget": 24, "scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
    one, two = (search(models, n_jobs=jobs, **asked).fit(X, Y) for jobs in (1, 2))
    assert two.verdict_.summary() == one.verdict_.summary()
    assert np.array_equal(two.predict(X), one.predict(X))
    assert two.refit_pulls_ == one.refit_pulls_ and two.best_score_ == one.best_score_
    for column in ("mean_test_f1_macro", "mean_test_accuracy", "split0_test_accuracy"):
        assert np.array_equal(one.results_[column], two.results_[column])


@pytest.mark.parametrize("scoring, known", [(None, [0, 1]), ("neg_log_loss", [None, 0])])
def test_callbacks_are_told_and_scores_are_certified_within_their_range(scoring, known):
    heard = []
    models = {"a": SGDClassifier(loss="log_loss", random_state=0), "b": GaussianNB()}
    asked = {"budget": 20, "callbacks": [lambda event, view: heard.append(event)]}
    found = RaceSearchCV(models, random_state=0, scoring=scoring, **asked).fit(X, Y)
    assert sum(isinstance(event, ScoreReported) for event in heard) == found.verdict_.spent
    assert list(found.verdict_.settings["score_range"]) == known


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts what it was given."""

    def __init__(self, y):
        self.y, self.classes_ = y, np.array([0, 1])

    def predict(self, X):
        return self.y

    def predict_proba(self, X):
        return np.column_stack([1 - self.y, self.y])

    fit = predict


@pytest.mark.parametrize("name", get_scorer_names())
@pytest.mark.filterwarnings("ignore")  # metrics of predictions that are all wrong
def test_no_score_is_outside_the_range_that_is_known_of_its_metric(name, rng):
    low, high = Metrics(name).range_of(SGDClassifier())
    y = rng.integers(2, size=(40, 2) if "samples" in name else 40)
    for quality in (0.0, 0.5, 1.0):
        truth = np.where(rng.random(y.shape) < quality, y, 1 - y)
        try:
            score = get_scorer(name)(Fixed(y), np.zeros((40, 1)), truth)
        except (ValueError, IndexError):  # not for such targets
            continue
        assert (low is None or score >= low) and (high is None or score <= high)


def test_a_search_that_is_extended_keeps_its_rows_and_each_estimator_its_scores(tmp_path, rng):
    labels, cv = rng.integers(0, 2, len(X)), KFold(3, shuffle=True)
    models = {"forest": RandomForestClassifier(20), "tree": DecisionTreeClassifier()}
    own = {"cv": cv, "journal": tmp_path / "search.db"}
    by_trainings(models, 3, **own).fit(X, labels)
    found = by_trainings({"linear": SGDClassifier(max_iter=20)} | models, 5, **own).fit(X, labels)
    assert cv.random_state is None and found.best_score_ < 0.7  # labels are drawn: about 0.5
    splits = np.mean([found.results_[f"split{k}_test_score"] for k in range(3)], axis=0)
    assert splits == pytest.approx(found.results_["score"])


def test_settings_with_addresses_in_memory_do_not_block_a_resume(tmp_path):
    def models():  # other objects with the same meaning, as in another process
        kept = FunctionTransformer(lambda rows: rows)
        return {"a": make_pipeline(kept, SGDClassifier()), "b": make_pipeline(kept, GaussianNB())}

    own = {"journal": tmp_path / "search.db", "cv": KFold(3, shuffle=True)}
    first, again = (search(models(), **own).fit(X, Y) for _ in range(2))
    assert first.best_score_ == again.best_score_


def test_a_function_scores_the_pipeline_on_its_own_rows():
    def first_column(estimator, rows, target):
        return float(rows["a"].mean() + 0 * estimator.predict(rows)[0])

    frame = pd.DataFrame(X + 100, columns=list("abcd"))
    models = {"one": make_pipeline(StandardScaler(), GaussianNB()),
              "two": make_pipeline(StandardScaler(), SGDClassifier())}  # fmt: skip
    for scoring in (first_column, {"mine": first_column, "accuracy": "accuracy"}):
        refit = True if callable(scoring) else "mine"
        found = search(models, scoring=scoring, refit=refit).fit(frame, Y)
        assert found.best_score_ > 100


def test_groups_are_held_out_whole_and_settings_of_fit_alone_are_honored():
    rows, groups, seen = np.c_[X, range(len(X))], np.arange(len(X)) // 5, []

    def score(estimator, rows, target):
        seen.append({*groups[rows[:, -1].astype(int)]})
        return estimator.score(rows, target)

    net = MLPClassifier((8,), early_stopping=True, max_iter=20)
    models = {"balanced": SGDClassifier(class_weight="balanced"), "net": net}
    found = search(models, scoring=score).fit(rows, Y, groups=groups)
    assert len(seen[0]) == 6 and found.verdict_["net"].state != "failed"
    assert found.verdict_["balanced"].state != "failed"
