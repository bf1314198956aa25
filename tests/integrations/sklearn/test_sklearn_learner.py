"""`SklearnLearner`: honest scores, exact resumes by pickle and by skops, and clear refusals."""

import json
import pickle
import sys
import warnings
from functools import wraps

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.ensemble import GradientBoostingClassifier as Stages
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree._tree import Tree

from latebloomer import JournalFile, LocalRunner, race, resume
from latebloomer.errors import LearnerError, MissingExtra, SettingError, UnknownName
from latebloomer.integrations.sklearn import RaceSearchCV, SklearnLearner
from latebloomer.integrations.sklearn.splits import indexable_data, split_rows, take_rows
from latebloomer.integrations.sklearn.training import batch_model
from tests.helpers.libraries import is_exact, refuses

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SHUFFLED = ShuffleSplit(1, random_state=0)
LEAVES = {"max_leaf_nodes": 4, "min_samples_leaf": 5}


def of_iris(estimator, **settings):
    """Return a learner whose steps are epochs."""
    return SklearnLearner(estimator, *IRIS, **{"batch": None, "random_state": 0} | settings)


class Spy(ClassifierMixin, BaseEstimator):
    """Notes the row numbers, which are in the first column, that it trains on and predicts."""

    trained: list = []  # noqa: RUF012  shared by all clones
    asked: list = []  # noqa: RUF012

    def partial_fit(self, X, y, classes=None):
        if classes is not None:
            self.classes_ = classes
        Spy.trained.append(X[:, 0].astype(int).tolist())
        return self

    def fit(self, X, y):
        raise AssertionError("partial_fit is preferred")

    def predict(self, X):
        Spy.asked.append(X[:, 0].astype(int).tolist())
        return np.resize(self.classes_, len(X))


@pytest.fixture
def spied():
    Spy.trained, Spy.asked = [], []
    X = np.column_stack([np.arange(100), np.zeros(100)])
    return X, np.arange(100) % 3


@pytest.mark.parametrize(("validation", "size"), [(0.2, 80), (0.5, 50), (SHUFFLED, 90)])
def test_no_row_is_trained_on_and_scored_on_and_each_epoch_has_an_order(spied, validation, size):
    learner = SklearnLearner(Spy(), *spied, batch=7, validation=validation, random_state=1)
    for _ in range(size):
        learner.pull()
    rows = [row for batch in Spy.trained for row in batch]
    epochs = [rows[k : k + size] for k in range(0, 7 * size, size)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 7
    assert all(asked == Spy.asked[0] for asked in Spy.asked)
    assert sorted([*Spy.asked[0], *epochs[0]]) == list(range(100))


def test_steps_before_the_last_are_fitted_on_training_rows_only(spied):
    learner = SklearnLearner(make_pipeline(StandardScaler(), SGDClassifier()), *spied)
    learner.pull()
    assert learner.model[0].n_samples_seen_ == 80
    learner = of_iris(make_pipeline(PCA(2), SGDClassifier()), validation=IRIS)
    assert learner.pull() == learner.model.score(*IRIS)  # a pipeline


def test_each_fold_has_a_model_and_the_score_is_their_mean(spied):
    learner = SklearnLearner(Spy(), *spied, batch=200, validation=StratifiedKFold(4))
    score = learner.pull()
    assert len(Spy.trained) == len(Spy.asked) == 4
    assert sorted(row for rows in Spy.asked for row in rows) == list(range(100))
    right = [np.mean(np.resize(range(3), len(rows)) == np.array(rows) % 3) for rows in Spy.asked]
    assert score == pytest.approx(np.mean(right))
    assert learner.how.endswith("; 4 folds")
    X, y = spied
    SklearnLearner(Spy(), X[:60], y[:60], validation=(X[60:], y[60:])).pull()
    assert sorted(Spy.asked[-1]) == list(range(60, 100))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_a_share_keeps_every_class_in_training_and_holds_all_out_alike(share, rng):
    y = rng.permutation(np.repeat([0, 1, 2, 3], [1, 2, 37, 160]))
    train, held = split_rows(y, y, share, True, 0, "cv", {})[0]
    assert set(y[train]) == {0, 1, 2, 3}
    assert sorted([*train, *held]) == list(range(200))
    assert held.size == round(200 * share)
    for value, size in ((2, 37), (3, 160)):
        assert abs((y[held] == value).sum() - share * size) <= 2 + 4 * share


TABLE = np.arange(30.0).reshape(10, 3)


@pytest.mark.parametrize(
    "data",
    [
        TABLE, TABLE[:, 0], TABLE.tolist(), pd.DataFrame(TABLE, index=range(10, 0, -1)),
        pd.Series(TABLE[:, 0], index=range(10, 0, -1)), sparse.csr_array(TABLE),
        sparse.coo_matrix(TABLE), pa.table({"a": TABLE[:, 0]}), pa.array(TABLE[:, 0]),
    ],
    ids=lambda data: type(data).__name__,
)  # fmt: skip
def test_rows_are_picked_by_their_number_whatever_holds_them(data):
    def dense(rows):
        return np.asarray(rows.todense() if sparse.issparse(rows) else rows)

    rows, _ = indexable_data(data, range(10))
    picked = take_rows(rows, np.array([7, 2, 2, 0]))
    assert type(picked) is type(rows)
    assert np.array_equal(dense(picked), dense(data)[[7, 2, 2, 0]])


def test_how_tells_which_way_it_learns():
    def how(estimator, **more):
        return of_iris(estimator, batch=16, **more).how

    assert how(GaussianNB()) == "partial_fit: 16 of 120 rows a step, reshuffled every epoch"
    assert how(RandomForestClassifier(), step=3) == (
        "warm_start: n_estimators grows by 3 a step, on all 120 rows"
    )
    assert how(LogisticRegression()) == "warm_start: max_iter grows by 1 a step, on all 120 rows"
    assert how(make_pipeline(PCA(2), GaussianNB())).endswith("epoch, after steps fitted once")


def test_a_pull_adds_the_trees_of_one_fit_and_leaves_the_given_estimator_as_it_was():
    forest = RandomForestClassifier()
    learner = of_iris(forest, step=2)
    assert learner.model is None
    for n in range(1, 4):
        learner.pull()
        assert len(learner.model.estimators_) == 2 * n
    assert not hasattr(forest, "estimators_")
    assert forest.get_params() == RandomForestClassifier().get_params()
    learner = of_iris(Stages(random_state=3), validation=IRIS)
    for _ in range(5):
        learner.pull()
    whole = Stages(n_estimators=5, random_state=3).fit(*IRIS)
    assert np.array_equal(learner.model.predict_proba(IRIS[0]), whole.predict_proba(IRIS[0]))


def test_a_net_meets_classes_that_its_first_batch_lacks():
    X, y = load_digits(return_X_y=True)
    learner = SklearnLearner(MLPClassifier((4,)), X, y, batch=2, scoring="neg_log_loss")
    assert learner.pull() < 0
    assert learner.model.classes_.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("forest", "scoring", "data"),
    [
        (RandomForestClassifier(8, max_depth=3), "neg_log_loss", IRIS),
        (ExtraTreesClassifier(8, max_depth=3), None, IRIS),
        (RandomForestClassifier(8, max_depth=3), "accuracy", (pd.DataFrame(X), Y)),
        (RandomForestClassifier(8, max_depth=3), "roc_auc_ovr", (sparse.csr_array(X), Y)),
        (RandomForestRegressor(8, max_depth=3), "r2", DIABETES),
        (ExtraTreesRegressor(8, max_depth=3), "neg_mean_absolute_error", DIABETES),
    ],
)
def test_each_tree_of_a_forest_predicts_the_held_out_rows_once(forest, scoring, data, monkeypatch):
    X, y = data
    held = take_rows(X, np.arange(0, len(y), 3)), y[::3]
    learner = SklearnLearner(
        forest, X, y, batch=None, validation=held, scoring=scoring, random_state=0
    )
    asked, kind = [], type(forest.estimator)
    method = "predict_proba" if hasattr(kind, "predict_proba") else "predict"
    own = getattr(kind, method)

    def predict(tree, *rows, **more):
        asked.append(id(tree))
        return own(tree, *rows, **more)

    monkeypatch.setattr(kind, method, predict)
    scores = [learner.pull(steps=2) for _ in range(4)]
    assert len(asked) == len(set(asked)) == 8
    assert scores[-1] == pytest.approx(
        check_scoring(learner.model, scoring=scoring)(learner.model, *held), abs=1e-12
    )


@pytest.mark.parametrize("settings", [{}, {"scoring": "accuracy"}])
def test_accuracy_is_scikit_learns_and_its_checks_are_made_once(settings, monkeypatch):
    held = (X[::3], np.array(["a", "b", "c"])[Y[::3]])
    learner = SklearnLearner(GaussianNB(), X, np.array(["a", "b", "c"])[Y], batch=10,
                             validation=held, random_state=0, **settings)  # fmt: skip
    calls, own = [], sklearn.metrics._classification._check_targets
    monkeypatch.setattr(
        sklearn.metrics._classification, "_check_targets", lambda *y: calls.append(1) or own(*y)
    )
    scores = [(learner.pull(), learner.model.score(*held)) for _ in range(4)]
    assert all(mine == its for mine, its in scores) and len(set(scores)) > 1
    assert len(calls) == 1 + 4  # the first pull's, and this test's own


@pytest.mark.parametrize("scoring", [None, "roc_auc_ovr", "roc_auc", "f1_macro"])
def test_a_linear_classifier_scores_as_scikit_learns_without_its_checks(scoring, monkeypatch):
    target = np.array(["a", "b", "c"])[np.maximum(Y, 1) if scoring == "roc_auc" else Y]
    data, held = (X.astype(np.float32), target), (X[::3].astype(np.float32), target[::3])
    model = SGDClassifier(loss="log_loss", max_iter=8, tol=None)
    settings = {"batch": None, "validation": held, "scoring": scoring, "random_state": 0}
    learner = SklearnLearner(model, *data, **settings)
    asked, own = [], SGDClassifier.decision_function
    noted = wraps(own)(lambda *given: asked.append(1) or own(*given))
    monkeypatch.setattr(SGDClassifier, "decision_function", noted)
    scores = []
    for _ in range(4):
        scores.append(learner.pull(steps=2))
        assert scoring == "roc_auc_ovr" or not asked  # probabilities are the model's own affair
        scorer = check_scoring(learner.model, scoring=scoring)
        assert scores[-1] == scorer(learner.model, *held)
        asked.clear()
    assert len(set(scores)) > 1


def test_what_a_linear_classifier_cannot_take_is_its_own_error():
    gap = X[::3].copy()
    gap[0, 0] = np.nan
    refuses(ValueError, "NaN", of_iris(SGDClassifier(), validation=(gap, Y[::3])).pull)


def test_a_linear_classifier_with_methods_of_its_own_is_asked():
    class Contrary(SGDClassifier):
        def predict(self, X):
            return self.classes_[::-1][np.searchsorted(self.classes_, super().predict(X))]

    held = (X[::3], Y[::3])
    learner = of_iris(Contrary(random_state=0), validation=held)
    assert learner.pull() == learner.model.score(*held)


def test_settings_are_checked_in_the_first_step_and_the_first_score_of_each_model(monkeypatch):
    seen = []

    def noting(function):
        @wraps(function)
        def noted(*given, **more):
            seen.append((function.__name__, get_config()["skip_parameter_validation"]))
            return function(*given, **more)

        return noted

    monkeypatch.setattr(GaussianNB, "partial_fit", noting(GaussianNB.partial_fit))
    learner = of_iris(GaussianNB(), batch=20, scoring=noting(GaussianNB.score))
    for skips in (False, True, True):
        learner.pull()
        assert seen[-2:] == [("partial_fit", skips), ("score", skips)]
    assert not get_config()["skip_parameter_validation"]
    refuses(ValueError, "var_smoothing", of_iris(GaussianNB(var_smoothing=-1)).pull)


@pytest.mark.parametrize(
    "estimator",
    [SVC(), KNeighborsClassifier(), make_pipeline(PCA(2), SVC()), GaussianProcessClassifier()],
)
def test_an_estimator_without_a_way_to_grow_is_trained_in_one_step(estimator):
    learner = of_iris(estimator)
    assert learner.in_one_step and learner.full_steps == 1
    assert learner.pull() > 0.8 and learner.finished
    refuses(StopIteration, "", learner.pull)


@pytest.mark.parametrize(
    "estimator, batch, full_steps",
    [
        (MLPClassifier(max_iter=30), None, 30),  # epochs
        (MLPClassifier(max_iter=30), 50, 90),  # of three batches each: 120 rows
        (SGDClassifier(max_iter=7), None, 7),
        (GaussianNB(), None, 12),  # one pass, ten rows at a time
        (GaussianNB(), 64, 2),
        (RandomForestClassifier(25), None, 25),
        (HistGradientBoostingClassifier(max_iter=9), None, 9),
        (make_pipeline(StandardScaler(), LogisticRegression(max_iter=40)), None, 40),
    ],
)
def test_a_full_training_is_what_the_estimator_declares(estimator, batch, full_steps):
    assert of_iris(estimator, batch=batch).full_steps == full_steps


@pytest.mark.parametrize(
    "estimator",
    [MLPClassifier((4,), max_iter=30, random_state=0), GaussianNB(), RandomForestClassifier(20),
     Stages(n_estimators=12), SGDClassifier(max_iter=12, tol=None)],
)  # fmt: skip
def test_several_steps_at_once_are_those_one_by_one(estimator):
    one, many = of_iris(estimator), of_iris(estimator)
    scores = [one.pull() for _ in range(9)]
    assert [many.pull(steps=4), many.pull(steps=5)] == [scores[3], scores[8]]
    assert one.steps == many.steps == 9


def test_an_epoch_of_a_net_is_an_epoch_of_its_own_fit():
    """By `partial_fit` on all rows: as many epochs as `fit` makes, its own batches, its rule."""
    net = MLPClassifier((6,), max_iter=500, learning_rate_init=0.05, tol=1e-3, random_state=0)
    learner = of_iris(net)
    while not learner.finished:
        learner.train()
    assert learner.steps < learner.full_steps
    curve = learner.model.loss_curve_
    assert len(curve) == learner.steps
    best = min(curve[: -(net.n_iter_no_change + 1)])  # none of those after is better by tol
    assert min(curve[-(net.n_iter_no_change + 1) :]) > best - (net.n_iter_no_change + 1) * net.tol
    refuses(StopIteration, "", learner.pull)


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "modified_huber", "squared_hinge",
                                  "perceptron", None])  # fmt: skip
def test_a_linear_model_has_finished_where_its_own_rule_says_so(loss):
    model = LogisticRegression(max_iter=1000)
    if loss is not None:
        model = SGDClassifier(loss=loss, learning_rate="constant", eta0=0.001, random_state=0)
    learner = of_iris(make_pipeline(StandardScaler(), model))
    for _ in range(20):  # a pull is at most one look at the loss
        learner.finished or learner.pull(steps=10)
    assert learner.finished
    refuses(StopIteration, "", learner.pull)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"estimator": 3}, LearnerError, "3 cannot be trained: it has no methods fit and get_pa"),
        ({"batch": 2.5}, SettingError, "batch=2.5, but batch must be a whole number"),
        ({"validation": (1, 2, 3)}, SettingError, r"validation=\(1, 2, 3\), but"),
        ({"validation": (X, Y[:5])}, SettingError, "y_val has 5 values, but there"),
        ({"validation": (X[:0], Y[:0])}, SettingError, r"must be \(X_val, y_val\) with rows"),
        ({"scoring": "acuracy"}, UnknownName, "no scoring is called 'acuracy'; did you .*accur"),
        ({"y": Y[:-1]}, SettingError, "y has 149 values, but there are 150 rows"),
        ({"y": np.zeros(150, int)}, SettingError, r"y has a single class, .*0"),
        ({"X": X[[0, 80]], "y": Y[[0, 80]]}, SettingError, "n_samples=2 give more"),
    ],
)
def test_wrong_settings_and_data_are_named(settings, error, words):
    refuses(error, words, SklearnLearner, **{"estimator": GaussianNB(), "X": X, "y": Y} | settings)


def test_missing_values_are_the_estimators_affair():
    X, y = IRIS[0].copy(), IRIS[1]
    X[::7, 0] = np.nan
    assert SklearnLearner(HistGradientBoostingClassifier(**LEAVES), X, y).pull() > 0.5
    refuses(ValueError, "contains NaN", SklearnLearner(GaussianNB(), X, y).pull)


def test_without_scikit_learn_or_skops_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtra, match=r"need skops: pip install .*\[skops\]'"):
        skops_learner(GaussianNB())
    ours = "latebloomer.integrations.sklearn"
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[sklearn\]'"):
        import latebloomer.integrations.sklearn  # noqa: F401


TREE = "sklearn.tree._tree.Tree"
BINNED_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
CASES = [
    (SGDClassifier(), IRIS, None),
    (MLPClassifier((8,)), IRIS, None),
    (MLPClassifier((8,), solver="sgd"), IRIS, None),
    (GaussianNB(var_smoothing=0.01), IRIS, None),
    (LogisticRegression(), IRIS, None),
    (make_pipeline(PCA(2), StandardScaler(), SGDClassifier(loss="log_loss")), IRIS, None),
    (make_pipeline(PCA(2), RandomForestClassifier(max_depth=3)), IRIS, [TREE]),
    (Stages(subsample=0.7, max_depth=2), IRIS, [TREE]),
    (RandomForestClassifier(max_depth=3), IRIS, [Tree]),
    (HistGradientBoostingClassifier(**LEAVES), IRIS, [BINNED_TREE]),
    (SGDRegressor(), DIABETES, None),
]


def skops_learner(estimator, trusted=None, **settings):
    return of_iris(estimator, checkpoint_format="skops", trusted=trusted, **settings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
@pytest.mark.parametrize("name", ["pickle", "skops"])
@pytest.mark.filterwarnings("ignore:divide by zero")  # naive Bayes, of a class not yet met
def test_a_resumed_learner_is_the_same_bit_for_bit(case, name, monkeypatch):
    estimator, data, trusted = case
    more = {"checkpoint_format": name, "trusted": trusted if name == "skops" else None}
    if name == "skops":
        monkeypatch.setattr(pickle, "dumps", None)
        monkeypatch.setattr(pickle, "loads", None)

    def learner():
        return SklearnLearner(estimator, *data, batch=9, validation=2, random_state=0, **more)

    is_exact(learner, pulls=3)


def test_the_rule_to_stop_is_part_of_a_checkpoint(tmp_path):
    whole, first, second = (of_iris(SGDClassifier(alpha=0.1)) for _ in range(3))
    while not whole.finished:
        whole.train(3)
    for _ in range(whole.steps // 3 - 1):
        first.train(3)
    first.save(tmp_path)
    second.load(tmp_path)
    second.train(3)
    assert second.finished and second.steps == whole.steps


def calls_of(monkeypatch, kind):
    """Note the rows of each call of `partial_fit`, and the settings that it was made with."""
    calls, own = [], kind.partial_fit

    @wraps(own)
    def noted(self, X, y, **more):
        calls.append((len(X), self.shuffle, getattr(self, "batch_size", None)))
        return own(self, X, y, **more)

    monkeypatch.setattr(kind, "partial_fit", noted)
    return calls


@pytest.mark.parametrize(("kind", "batch"), [(SGDClassifier, None), (MLPClassifier, 120)])
def test_a_pull_is_one_call_with_the_rows_of_its_epochs_in_their_order(monkeypatch, kind, batch):
    calls = calls_of(monkeypatch, kind)
    learner = of_iris(kind(max_iter=30))
    learner.pull(steps=4)
    learner.pull(steps=3)
    assert calls == [(4 * 120, False, batch), (3 * 120, False, batch)]
    assert learner.steps == 7
    users = {name: learner.model.get_params()[name] for name in ("shuffle", "max_iter")}
    assert users == {"shuffle": True, "max_iter": 30}
    assert learner.model.get_params().get("batch_size", "auto") == "auto"


def test_a_call_copies_no_more_rows_than_fit_in_memory(monkeypatch):
    calls = calls_of(monkeypatch, SGDClassifier)
    monkeypatch.setattr(batch_model, "MOST_COPIED", 3 * 120 * 4 * 8)
    of_iris(SGDClassifier(max_iter=30)).pull(steps=7)
    assert [rows // 120 for rows, _, _ in calls] == [3, 3, 1]


@pytest.mark.parametrize(
    "net",
    [
        MLPClassifier(solver="sgd", learning_rate="adaptive"),
        MLPClassifier(solver="sgd", learning_rate="invscaling"),
        Spy(),
    ],
)
def test_an_estimator_that_may_count_its_calls_gets_one_for_each_step(net, monkeypatch):
    Spy.trained = []
    calls = calls_of(monkeypatch, type(net)) if isinstance(net, MLPClassifier) else Spy.trained
    of_iris(net, batch=120).pull(steps=3)
    assert len(calls) == 3


def test_epochs_of_one_call_are_those_of_calls_one_by_one():
    """Up to rounding: the same rows in the same order, and as many updates."""
    X, y = load_digits(return_X_y=True)
    for model in (SGDClassifier(tol=None), MLPClassifier((8,), batch_size=400, tol=0)):
        one, many = (
            SklearnLearner(model, X[:1500] / 16, y[:1500], batch=None, random_state=0)
            for _ in range(2)
        )
        many.train(4)
        for _ in range(4):
            one.train(1)
        mine, its = (
            getattr(learner.model, "coefs_", None) or [learner.model.coef_]
            for learner in (one, many)
        )
        for left, right in zip(mine, its, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(max_iter=9, class_weight="balanced", tol=None),
        MLPClassifier((4,), max_iter=9),
        RandomForestClassifier(9),
        GaussianNB(),
    ],
)
def test_a_fit_is_the_estimators_own_and_keeps_its_settings(estimator):
    learner = of_iris(estimator, validation=IRIS)
    learner.fit()
    own = clone(learner.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        own.fit(*IRIS)
    assert np.array_equal(learner.model.predict(X), own.predict(X))
    assert learner.steps == learner.full_steps and not learner.finished
    seeds = {"random_state"}
    assert {k: v for k, v in own.get_params().items() if k not in seeds} == {
        k: v for k, v in estimator.get_params().items() if k not in seeds
    }


def test_a_fit_that_its_own_rule_ends_has_fewer_steps_and_is_finished():
    learner = of_iris(SGDClassifier(max_iter=1000, alpha=0.1))
    learner.fit()
    assert learner.finished and learner.steps == learner.model.n_iter_ < 1000


def test_a_checkpoint_is_models_and_json_before_the_first_pull_and_after_it(tmp_path):
    first, second = (skops_learner(SGDClassifier(), validation=2) for _ in range(2))
    first.save(tmp_path)
    second.load(tmp_path)
    assert second.pull() == first.pull()
    first.save(tmp_path)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["model-0.skops", "model-1.skops", "sklearn.json"]
    label, folds, best, copies = json.loads((tmp_path / "sklearn.json").read_text())
    assert best is None and copies == []  # no best iteration is kept
    assert label["class"] == "'SGDClassifier'" and label["rows"] == [75, 75]
    assert [fold["steps"] for fold in folds] == [1, 1]


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    of_iris(SGDClassifier()).save(tmp_path)
    wrong = of_iris(SGDClassifier(alpha=1)), of_iris(SGDClassifier(), validation=KFold(2))
    for other, said in zip(wrong, ("alpha was '0.0001', is '1'", "rows was"), strict=True):
        refuses(LearnerError, f"of another learner: {said}", other.load, tmp_path)
    of_iris(SGDClassifier(n_jobs=2, verbose=1)).load(tmp_path)  # which change no model


def test_a_type_that_is_not_trusted_is_named_when_it_is_saved_and_is_not_loaded(tmp_path):
    forest = RandomForestClassifier(max_depth=2)
    learner, saved = skops_learner(forest, ["mine.Own"]), skops_learner(forest, [TREE])
    learner.pull()
    words = r"holds sklearn.tree._tree.Tree, .* set trusted=\['mine.Own', 'sklearn.tree._tree.Tree"
    refuses(LearnerError, words, learner.save, tmp_path)
    saved.pull()
    saved.save(tmp_path)
    refuses(LearnerError, "which skops does not trust", skops_learner(forest).load, tmp_path)


def test_what_skops_cannot_save_or_load_is_said(tmp_path):
    learner, file = (
        skops_learner(GaussianNB(), [f"{__name__}.<lambda>"]),
        tmp_path / "model-0.skops",
    )
    learner.pull()
    learner.model.odd_ = (x for x in ())
    said = r"skops cannot save GaussianNB \(TypeError: .*generator"
    refuses(LearnerError, said, learner.save, tmp_path)
    learner.model.odd_ = lambda: 3
    learner.save(tmp_path)
    refuses(LearnerError, r"skops cannot load the model \(.*<lambda>", learner.load, tmp_path)
    file.write_bytes(b"no archive")
    refuses(LearnerError, r"cannot load the model \(BadZipFile", learner.load, tmp_path)
    file.unlink()
    refuses(LearnerError, r"reads model-0.skops, but .* has no such", learner.load, tmp_path)


@pytest.mark.parametrize("saved, other", [("pickle", "skops"), ("skops", "pickle")])
def test_a_checkpoint_of_the_other_format_is_refused_unopened(saved, other, tmp_path):
    of_iris(SGDClassifier(), checkpoint_format=saved).save(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"not to be opened")
    words = f"={other!r} reads .*saved with .*={saved!r}: continue"
    refuses(LearnerError, words, of_iris(SGDClassifier(), checkpoint_format=other).load, tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"checkpoint_format": "joblib"}, "'joblib', but checkpoint_format must be 'pickle' or"),
        ({"checkpoint_format": ["skops"]}, "must be 'pickle' or 'skops'"),
        ({"trusted": [TREE]}, "without checkpoint_format='skops': a pickle may hold any type"),
        ({"checkpoint_format": "skops", "trusted": TREE}, "must be a list of types or of their"),
        ({"checkpoint_format": "skops", "trusted": [3]}, "must be a list of types or of their"),
    ],
)
def test_wrong_formats_are_named(settings, words):
    refuses(SettingError, words, of_iris, GaussianNB(), **settings)
    journal = JournalFile("search.db", **settings)
    with pytest.raises(SettingError, match=words):
        RaceSearchCV([GaussianNB(), SGDClassifier()], journal=journal).fit(*IRIS)


@pytest.mark.parametrize("name", ["pickle", "skops"])
def test_a_search_goes_on_from_its_checkpoints(name, tmp_path, monkeypatch):
    models = {"net": MLPClassifier((8,)), "forest": RandomForestClassifier(max_depth=2)}
    trusted = [TREE] if name == "skops" else None
    journal = JournalFile(tmp_path / "search.db", checkpoint_format=name, trusted=trusted)
    asked = {"budget": 12, "random_state": 0, "refit": False, "journal": journal}
    first = RaceSearchCV(models, **asked).fit(*IRIS)
    loaded = []
    monkeypatch.setattr(SklearnLearner, "pull", lambda self: pytest.fail("it was trained again"))
    monkeypatch.setattr(
        SklearnLearner, "load", lambda self, folder, load=SklearnLearner.load: (
            loaded.append(sorted({path.suffix for path in folder.iterdir()})), load(self, folder)
        )
    )  # fmt: skip
    again = RaceSearchCV(models, **asked).fit(*IRIS)
    assert np.array_equal(again.predict_proba(IRIS[0]), first.predict_proba(IRIS[0]))
    assert loaded == [[".json", f".{name}"]]


def test_in_a_race_what_is_not_trusted_is_a_warning_and_is_trained_again(tmp_path):
    given = {
        "forest": lambda: skops_learner(RandomForestClassifier(max_depth=2)),
        "bayes": lambda: skops_learner(GaussianNB()),
    }
    file = tmp_path / "race.db"
    first = race(given, 12, journal=file, progress=False, runner=LocalRunner(checkpoint_every=2))
    assert any("could not be saved" in text and TREE in text for text in map(str, first.warnings))
    again = resume(file, given, progress=False)
    assert (again.name, again.score) == (first.name, first.score)
