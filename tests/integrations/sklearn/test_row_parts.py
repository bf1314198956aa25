"""Searches take their scores apart by row, for every metric that allows it."""

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import RepeatedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC

from latebloomer import RaceSearchCV
from latebloomer.integrations.sklearn import SklearnLearner
from latebloomer.theory.row_scores import METRICS

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = load_breast_cancer(return_X_y=True)
ROWS, TARGET = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
CLASSIFIERS = {"forest": RandomForestClassifier(10), "extra": ExtraTreesClassifier(10)}
REGRESSORS = {"forest": RandomForestRegressor(10), "ridge": Ridge()}
NUMBERS = {name for name in METRICS if name == "r2" or name.endswith("_error")}
BY_JACKKNIFE = ["matthews_corrcoef", "average_precision", "d2_absolute_error_score"]


def search(metric, models=None, **settings):
    of_numbers = metric in NUMBERS or metric == "d2_absolute_error_score"
    models = models or (REGRESSORS if of_numbers else CLASSIFIERS)
    settings = {"trainings": 2, "refit": False, "random_state": 0} | settings
    found = RaceSearchCV(models, scoring=metric, **settings)
    data = (ROWS, TARGET) if models.keys() == REGRESSORS.keys() else (X, Y)
    return found, data


@pytest.mark.parametrize("metric", [*METRICS, *BY_JACKKNIFE])
def test_the_parts_of_a_score_have_it_as_their_mean(metric):
    found, (data, y) = search(metric)
    for model in found.estimators.values():
        learner = SklearnLearner(model, data, y, scoring=metric, batch=None, random_state=0)
        score = learner.pull(steps=5)
        (parts,) = learner.row_scores
        assert parts.score == pytest.approx(score)
        if metric in METRICS:  # a jackknife's blocks differ by a row
            assert parts.parts.mean() == pytest.approx(score)
        assert len(parts.rows) == round(0.2 * len(y))


@pytest.mark.parametrize("cv", [0.3, 3])
@pytest.mark.parametrize("metric", ["roc_auc", make_scorer(f1_score), "r2"])
def test_a_search_knows_the_lead_of_its_winner(metric, cv):
    found, data = search(metric, cv=cv)
    (lead,) = found.fit(*data).verdict_.leads
    assert lead.rows == (round(0.3 * len(data[1])) if cv == 0.3 else len(data[1]))
    assert 0 < lead.error < lead.margin * 1.1
    assert "On new rows" in str(found.verdict_) and "validation rows, " in str(found.verdict_)


def test_folds_that_repeat_rows_weights_and_rows_in_time_have_no_lead_and_the_verdict_says_why():
    def why(weights=None, metric="r2", **settings):
        found, data = search(metric, REGRESSORS, **settings)
        more = {} if weights is None else {"sample_weight": weights}
        verdict = found.fit(*data, **more).verdict_
        assert verdict.leads == ()
        return str(verdict).partition("Not known for new rows: ")[2].partition("\n")[0]

    repeated = "cv holds rows out more than once, or in their order in time."
    assert why(cv=TimeSeriesSplit(3)) == repeated
    assert why(cv=RepeatedKFold(n_splits=3, n_repeats=2)) == repeated
    assert why(np.ones(len(TARGET))) == "the scores are weighted."
    assert why(metric=lambda model, X, y: model.score(X, y)) == (
        "scoring is a function of your own, which gives one number for all rows."
    )
    assert why(cv=[(np.arange(1, len(TARGET)), [0])], metric="neg_mean_absolute_error") == (
        "there is one validation row."
    )


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), DummyClassifier(), KNeighborsRegressor()]
)
def test_the_own_score_of_an_estimator_is_a_known_metric(model):
    """Also where the estimator overrides `score`, as `KNeighborsClassifier` does."""
    data = (ROWS, TARGET) if is_regressor(model) else (X, Y)
    learner = SklearnLearner(model, *data, random_state=0)
    score = learner.pull()
    assert learner.row_scores[0].score == pytest.approx(score)
    assert learner.score_range == ((None, 1) if is_regressor(model) else (0, 1))


class ColumnOfLabels(GaussianNB):
    """Predicts labels as a column, as CatBoost does for more than two classes."""

    def predict(self, X):
        return super().predict(X)[:, None]


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro"])
def test_labels_in_a_column_are_scored_as_labels(metric):
    data, held = (IRIS[0], IRIS[1]), (IRIS[0][::3], IRIS[1][::3])
    settings = {"batch": 10, "scoring": metric, "random_state": 0}
    learner, plain = (
        SklearnLearner(model, *data, **settings, validation=held)
        for model in (ColumnOfLabels(), GaussianNB())
    )
    assert [learner.pull() for _ in range(5)] == [plain.pull() for _ in range(5)]
    by_share = SklearnLearner(ColumnOfLabels(), *data, **settings)
    assert by_share.pull() == pytest.approx(by_share.row_scores[0].score)


def test_groups_are_what_varies():
    """Rows of a group are copies: they tell as much as one row."""
    rows, target = np.repeat(ROWS[:150], 3, axis=0), np.repeat(TARGET[:150], 3)
    groups = np.repeat(np.arange(150), 3)
    found, _ = search("neg_mean_absolute_error", cv=0.3)
    grouped = found.fit(rows, target, groups=groups).verdict_.leads[0]
    found.set_params(cv=[tuple(found_rows(found, rows, target, groups))])
    plain = found.fit(rows, target).verdict_.leads[0]
    assert grouped.lead == plain.lead
    # sqrt(3), and Student's quantile of 44 degrees of freedom over the normal one, 1.03; the 256
    # sums of both are random: their roots differ by .06 (1 sd), 5 sd once in 10^6.
    assert grouped.error / plain.error == pytest.approx(np.sqrt(3) * 1.04, rel=5 * 0.0625)


def found_rows(found, rows, target, groups):
    """Return the split that a search with groups makes."""
    from latebloomer.integrations.sklearn import splits

    seed = splits.seed_from(found.random_state)
    (pair,) = splits.split_rows(rows, target, 0.3, False, seed, "cv", {"groups": groups})
    return pair


def test_a_model_without_probabilities_is_compared_where_labels_are_enough():
    models = {"svc": SVC(), "linear": LogisticRegression(max_iter=50)}
    assert search("balanced_accuracy", models)[0].fit(X / X.std(axis=0), Y).verdict_.leads
    assert search("roc_auc", models)[0].fit(X / X.std(axis=0), Y).verdict_.leads
    assert not search("matthews_corrcoef", models)[0].fit(X / X.std(axis=0), Y).verdict_.leads
