"""`SklearnLearner`: honest scores, exact resumes, and clear refusals."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from latebloomer import race
from latebloomer.errors import LearnerError, MissingExtra, SettingError, UnknownName
from latebloomer.integrations.sklearn import SklearnLearner
from latebloomer.integrations.sklearn.scoring import Metrics, Notes
from latebloomer.integrations.sklearn.sklearn_learner import ModelFormat
from latebloomer.integrations.sklearn.splits import (
    Fold,
    indexable_data,
    split_rows,
    take_rows,
)
from latebloomer.integrations.sklearn.training import TrainingSettings

IRIS = load_iris(return_X_y=True)


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


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield


@pytest.fixture
def spied():
    Spy.trained, Spy.asked = [], []
    X = np.column_stack([np.arange(100), np.zeros(100)])
    return X, np.arange(100) % 3


# --- honest scores ---


@pytest.mark.parametrize("validation", [0.2, 0.5, ShuffleSplit(1, random_state=0)])
def test_no_row_is_ever_trained_on_and_scored_on(spied, validation):
    learner = SklearnLearner(Spy(), *spied, batch=7, validation=validation, random_state=1)
    for _ in range(40):
        learner.pull()
    trained = {row for batch in Spy.trained for row in batch}
    asked = {row for rows in Spy.asked for row in rows}
    assert trained.isdisjoint(asked)
    assert trained | asked == set(range(100))


def test_every_epoch_has_every_row_once_in_another_order(spied):
    learner = SklearnLearner(Spy(), *spied, batch=7, validation=0.2, random_state=1)
    for _ in range(80):  # 7 epochs of 80 rows
        learner.train()
    rows = [row for batch in Spy.trained for row in batch]
    epochs = [rows[k : k + 80] for k in range(0, 560, 80)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 7


def test_steps_before_the_last_are_fitted_on_training_rows_only(spied):
    learner = SklearnLearner(make_pipeline(StandardScaler(), SGDClassifier()), *spied)
    learner.pull()
    held = split_rows(*spied, 0.2, True, 0)[0][1].size
    assert learner.model[0].n_samples_seen_ == 100 - held


def test_each_fold_has_a_model_and_the_score_is_their_mean(spied):
    learner = SklearnLearner(Spy(), *spied, batch=200, validation=StratifiedKFold(4))
    score = learner.pull()
    assert len(Spy.trained) == len(Spy.asked) == 4
    assert sorted(row for rows in Spy.asked for row in rows) == list(range(100))
    right = [np.mean(np.resize(range(3), len(rows)) == np.array(rows) % 3) for rows in Spy.asked]
    assert score == pytest.approx(np.mean(right))
    assert learner.how.endswith("; 4 folds")


def test_a_validation_set_can_be_given(spied):
    X, y = spied
    learner = SklearnLearner(Spy(), X[:60], y[:60], validation=(X[60:], y[60:]))
    learner.pull()
    assert sorted(Spy.asked[0]) == list(range(60, 100))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_a_share_keeps_every_class_in_training_and_holds_all_out_alike(share, rng):
    y = rng.permutation(np.repeat([0, 1, 2, 3], [1, 2, 37, 160]))
    train, held = split_rows(y, y, share, True, 0)[0]
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


# --- what a pull is ---


def test_how_tells_which_way_it_learns():
    def how(estimator, **more):
        return SklearnLearner(estimator, *IRIS, batch=16, **more).how

    assert how(GaussianNB()) == "partial_fit: 16 of 120 rows a step, reshuffled every epoch"
    assert how(RandomForestClassifier(), step=3) == (
        "warm_start: n_estimators grows by 3 a step, on all 120 rows"
    )
    assert how(LogisticRegression()) == "warm_start: max_iter grows by 1 a step, on all 120 rows"
    assert how(make_pipeline(PCA(2), GaussianNB())).endswith("epoch, after steps fitted once")


def test_a_pull_adds_trees_and_leaves_the_given_estimator_as_it_was():
    forest = RandomForestClassifier()
    learner = SklearnLearner(forest, *IRIS, step=2)
    assert learner.model is None
    for n in range(1, 4):
        learner.pull()
        assert len(learner.model.estimators_) == 2 * n
    assert not hasattr(forest, "estimators_")
    assert forest.get_params() == RandomForestClassifier().get_params()


def test_trees_grown_by_pulls_are_those_of_one_fit():
    learner = SklearnLearner(GradientBoostingClassifier(random_state=3), *IRIS, validation=IRIS)
    for _ in range(5):
        learner.pull()
    whole = GradientBoostingClassifier(n_estimators=5, random_state=3).fit(*IRIS)
    assert np.array_equal(learner.model.predict_proba(IRIS[0]), whole.predict_proba(IRIS[0]))


def test_the_model_of_a_pipeline_is_a_pipeline():
    learner = SklearnLearner(
        make_pipeline(PCA(2), SGDClassifier()), *IRIS, validation=IRIS, random_state=0
    )
    assert learner.pull() == learner.model.score(*IRIS)


def test_a_net_meets_classes_that_its_first_batch_lacks():
    X, y = load_digits(return_X_y=True)
    learner = SklearnLearner(MLPClassifier((4,)), X, y, batch=2, scoring="neg_log_loss")
    assert learner.pull() < 0
    assert learner.model.classes_.tolist() == list(range(10))


def test_learners_race():
    estimators = {"net": MLPClassifier((16,)), "bayes": GaussianNB(), "sgd": SGDClassifier()}
    learners = {
        name: SklearnLearner(one, *IRIS, batch=16, random_state=0)
        for name, one in estimators.items()
    }
    verdict = race(learners, budget=60, journal=None, progress=False)
    assert verdict.learner.model.score(*IRIS) > 0.6


# --- bad input ---


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (SGDClassifier, r"SGDClassifier is a class, but .* an object: SGDClassifier\(\)"),
        (3, "3 cannot be trained: it has no methods fit and get_params"),
    ],
)
def test_what_is_not_an_estimator_is_refused(estimator, words):
    with pytest.raises(LearnerError, match=words):
        SklearnLearner(estimator, *IRIS)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"batch": 0}, SettingError, "batch=0, but batch must be at least 1"),
        ({"batch": 2.5}, SettingError, "batch=2.5, but batch must be a whole number"),
        ({"validation": 1.0}, SettingError, r"validation=1.0, but validation must be in \(0, 1\)"),
        ({"validation": True}, SettingError, "must be a share of the rows"),
        ({"validation": (1, 2, 3)}, SettingError, "a tuple of 3"),
        (
            {"validation": (IRIS[0], IRIS[1][:5])},
            SettingError,
            "y_val has 5 values, but there are 150 rows",
        ),
        ({"validation": (IRIS[0][:0], IRIS[1][:0])}, SettingError, "has no rows"),
        ({"validation": [([0, 1, 2], [2, 3])]}, SettingError, "row 2 both to train on and"),
        (
            {"scoring": "acuracy"},
            UnknownName,
            "no scoring is called 'acuracy'; did you .*accuracy",
        ),
        ({"scoring": ["accuracy", "f1"]}, SettingError, "one metric's name"),
    ],
)
def test_wrong_settings_are_named(settings, error, words):
    with pytest.raises(error, match=words):
        SklearnLearner(GaussianNB(), *IRIS, **settings)


def test_wrong_data_are_named():
    X, y = IRIS
    with pytest.raises(SettingError, match="y has 149 values, but there are 150 rows"):
        SklearnLearner(GaussianNB(), X, y[:-1])
    with pytest.raises(SettingError, match=r"y has a single class, .*0"):
        SklearnLearner(GaussianNB(), X, np.zeros(150, int))
    with pytest.raises(SettingError, match="no row is left"):
        SklearnLearner(GaussianNB(), X[[0, 80]], y[[0, 80]])


def test_missing_values_are_the_estimators_affair():
    X, y = IRIS[0].copy(), IRIS[1]
    X[::7, 0] = np.nan
    trees = HistGradientBoostingClassifier(max_leaf_nodes=4, min_samples_leaf=5)
    assert SklearnLearner(trees, X, y).pull() > 0.5
    with pytest.raises(ValueError, match="contains NaN"):
        SklearnLearner(GaussianNB(), X, y).pull()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    saved = SklearnLearner(SGDClassifier(), *IRIS)
    saved.pull()
    saved.save(tmp_path)
    for other in (
        SklearnLearner(SGDClassifier(alpha=1), *IRIS),
        SklearnLearner(SGDClassifier(), *IRIS, validation=KFold(2)),
    ):
        with pytest.raises(LearnerError, match=r"the checkpoint is of SGDClassifier\(\) on \[120"):
            other.load(tmp_path)


# --- full trainings ---


@pytest.mark.parametrize(
    "estimator",
    [SVC(), KNeighborsClassifier(), make_pipeline(PCA(2), SVC()), GaussianProcessClassifier()],
)
def test_an_estimator_without_a_way_to_grow_is_trained_in_one_step(estimator):
    learner = SklearnLearner(estimator, *IRIS, random_state=0)
    assert learner.in_one_step and learner.full_steps == 1
    assert learner.pull() > 0.8 and learner.finished
    with pytest.raises(StopIteration):
        learner.pull()


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
    assert SklearnLearner(estimator, *IRIS, batch=batch, random_state=0).full_steps == full_steps


@pytest.mark.parametrize(
    "estimator",
    [MLPClassifier((4,), max_iter=30, random_state=0), GaussianNB(), RandomForestClassifier(20),
     GradientBoostingClassifier(n_estimators=12), SGDClassifier(max_iter=12, tol=None)],
)  # fmt: skip
def test_several_steps_at_once_are_those_one_by_one(estimator):
    def learner():
        return SklearnLearner(estimator, *IRIS, batch=None, random_state=0)

    one, many = learner(), learner()
    scores = [one.pull() for _ in range(9)]
    assert [many.pull(steps=4), many.pull(steps=5)] == [scores[3], scores[8]]
    assert one.steps == many.steps == 9


def test_an_epoch_of_a_net_is_an_epoch_of_its_own_fit():
    """By `partial_fit` on all rows: as many epochs as `fit` makes, its own batches, its rule."""
    net = MLPClassifier((6,), max_iter=500, learning_rate_init=0.05, tol=1e-3, random_state=0)
    learner = SklearnLearner(net, *IRIS, batch=None, random_state=0)
    learner.train(learner.full_steps)
    assert learner.finished and learner.steps < learner.full_steps
    curve = learner.model.loss_curve_
    assert len(curve) == learner.steps
    best = min(curve[: -(net.n_iter_no_change + 1)])  # none of those after is better by tol
    assert min(curve[-(net.n_iter_no_change + 1) :]) > best - (net.n_iter_no_change + 1) * net.tol
    with pytest.raises(StopIteration):
        learner.pull()


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "modified_huber", "squared_hinge",
                                  "perceptron"])  # fmt: skip
def test_a_linear_model_has_finished_where_its_own_rule_says_so(loss):
    model = SGDClassifier(loss=loss, learning_rate="constant", eta0=0.001, random_state=0)
    learner = SklearnLearner(
        make_pipeline(StandardScaler(), model), *IRIS, batch=None, random_state=0
    )
    learner.train(1000)
    assert learner.finished and learner.steps < 200


def test_a_solver_that_has_converged_has_finished():
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    learner = SklearnLearner(model, *IRIS, batch=None, random_state=0)
    scores = [learner.pull(steps=100)]
    with pytest.raises(StopIteration):
        learner.pull(steps=100)
    assert learner.finished and scores[0] >= 0.9


def test_the_rule_to_stop_is_part_of_a_checkpoint(tmp_path):
    def learner():
        return SklearnLearner(SGDClassifier(alpha=0.1), *IRIS, batch=None, random_state=0)

    whole, first, second = learner(), learner(), learner()
    whole.train(1000)
    first.train(whole.steps - 2)
    first.save(tmp_path)
    second.load(tmp_path)
    second.train(1000)
    assert second.finished and second.steps == whole.steps


def test_a_fold_without_rows_held_out_has_no_score():
    X, y = IRIS
    settings = TrainingSettings(np.unique(y), 10, 1, 0)
    parts = [Fold(X, y)], settings, Metrics(lambda *_: 0.0), ModelFormat(), Notes()
    learner = SklearnLearner.made_of(GaussianNB(), *parts)
    with pytest.raises(LearnerError, match="no rows are held out: call train"):
        learner.pull()


# --- the extra ---


def test_races_do_not_load_scikit_learn():
    code = "import sys, latebloomer.integrations; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("latebloomer.integrations")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'latebloomer\[sklearn\]'"):
        import latebloomer.integrations.sklearn  # noqa: F401


class Watching(GaussianNB):
    """Notes whether its settings would be checked."""

    seen: list[bool] = []  # noqa: RUF012

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.seen.append(get_config()["skip_parameter_validation"])
        return super().partial_fit(X, y, classes, sample_weight)


def test_settings_are_checked_in_the_first_step_and_the_first_score_of_each_model():
    X, y = load_iris(return_X_y=True)
    scored, Watching.seen = [], []

    def scorer(model, X, y):
        scored.append(get_config()["skip_parameter_validation"])
        return model.score(X, y)

    learner = SklearnLearner(Watching(), X, y, batch=20, scoring=scorer, random_state=0)
    for _ in range(3):
        learner.pull()
    assert Watching.seen == scored == [False, True, True]
    assert not get_config()["skip_parameter_validation"]
    with pytest.raises(ValueError, match="var_smoothing"):
        SklearnLearner(GaussianNB(var_smoothing=-1), X, y, random_state=0).pull()
