"""Checkpoints of scikit-learn models: by skops as exact as by pickle, and nothing is unpickled."""

import json
import pickle
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree._tree import Tree
from threadpoolctl import threadpool_limits

from latebloomer import JournalFile, LocalRunner, check_learner, race, resume
from latebloomer.errors import LearnerError, MissingExtra, SettingError
from latebloomer.integrations.sklearn import RaceSearchCV, SklearnLearner

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
TREE = "sklearn.tree._tree.Tree"
BINNED_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
LEAVES = {"max_leaf_nodes": 4, "min_samples_leaf": 5}
CASES = [
    (SGDClassifier(), IRIS, None),
    (MLPClassifier((8,)), IRIS, None),
    (MLPClassifier((8,), solver="sgd"), IRIS, None),
    (GaussianNB(var_smoothing=0.01), IRIS, None),
    (LogisticRegression(), IRIS, None),
    (make_pipeline(PCA(2), StandardScaler(), SGDClassifier(loss="log_loss")), IRIS, None),
    (make_pipeline(PCA(2), RandomForestClassifier(max_depth=3)), IRIS, [TREE]),
    (GradientBoostingClassifier(subsample=0.7, max_depth=2), IRIS, [TREE]),
    (RandomForestClassifier(max_depth=3), IRIS, [Tree]),
    (HistGradientBoostingClassifier(**LEAVES), IRIS, [BINNED_TREE]),
    (SGDRegressor(), DIABETES, None),
    (RandomForestRegressor(max_depth=3), DIABETES, [TREE]),
    (HistGradientBoostingRegressor(**LEAVES), DIABETES, [BINNED_TREE]),
]


class Odd(ClassifierMixin, BaseEstimator):
    """Holds something odd once it is trained."""

    def __init__(self, holds="generator"):
        self.holds = holds

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.unique(y)
        self.odd_ = (x for x in ()) if self.holds == "generator" else lambda: 3
        return self

    fit = partial_fit

    def predict(self, X):
        return np.resize(self.classes_, len(X))


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield


def skops_learner(estimator, data=IRIS, trusted=None, **settings):
    return SklearnLearner(
        estimator, *data, batch=9, random_state=0, checkpoint_format="skops", trusted=trusted,
        **settings,
    )  # fmt: skip


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

    check = check_learner(learner)
    assert check.saves and check.exact, str(check)


def test_the_rest_of_the_state_is_json(tmp_path):
    learner = skops_learner(SGDClassifier(), validation=2)
    learner.pull()
    learner.save(tmp_path)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["model-0.skops", "model-1.skops", "sklearn.json"]
    estimator, rows, folds = json.loads((tmp_path / "sklearn.json").read_text())
    assert estimator == "SGDClassifier()" and rows == [75, 75]
    assert [fold["steps"] for fold in folds] == [1, 1]


def test_a_learner_can_be_saved_before_its_first_pull(tmp_path):
    first, second = skops_learner(SGDClassifier()), skops_learner(SGDClassifier())
    first.save(tmp_path)
    second.load(tmp_path)
    assert second.pull() == first.pull()


# --- what is not trusted, or not possible ---


def test_a_type_that_is_not_trusted_is_named_when_it_is_saved_with_the_list_to_set(tmp_path):
    learner = skops_learner(RandomForestClassifier(max_depth=2), trusted=["mine.Own"])
    learner.pull()
    words = r"holds sklearn.tree._tree.Tree, .* set trusted=\['mine.Own', 'sklearn.tree._tree.Tree"
    with pytest.raises(LearnerError, match=words):
        learner.save(tmp_path)


def test_a_type_that_is_not_trusted_is_not_loaded(tmp_path):
    forest = RandomForestClassifier(max_depth=2)
    saved = skops_learner(forest, trusted=[TREE])
    saved.pull()
    saved.save(tmp_path)
    with pytest.raises(LearnerError, match="which skops does not trust"):
        skops_learner(forest).load(tmp_path)


def test_what_skops_cannot_save_or_load_is_said(tmp_path):
    trusted = [Odd, f"{__name__}.<lambda>"]
    learner = skops_learner(Odd("generator"), trusted=trusted)
    learner.pull()
    with pytest.raises(LearnerError, match=r"skops cannot save Odd \(TypeError: .*generator"):
        learner.save(tmp_path)
    learner = skops_learner(Odd("lambda"), trusted=trusted)
    learner.pull()
    learner.save(tmp_path)
    with pytest.raises(LearnerError, match=r"skops cannot load the model \(.*<lambda>"):
        learner.load(tmp_path)


def test_a_damaged_model_is_said(tmp_path):
    learner = skops_learner(SGDClassifier())
    learner.save(tmp_path)
    (tmp_path / "model-0.skops").write_bytes(b"no archive")
    with pytest.raises(LearnerError, match=r"skops cannot load the model \(BadZipFile"):
        learner.load(tmp_path)


@pytest.mark.parametrize("saved", ["pickle", "skops"])
def test_a_checkpoint_of_the_other_format_is_refused_unopened(saved, tmp_path):
    def learner(name):
        return SklearnLearner(SGDClassifier(), *IRIS, checkpoint_format=name)

    learner(saved).save(tmp_path)
    other = {"pickle": "skops", "skops": "pickle"}[saved]
    for file in tmp_path.iterdir():
        file.write_bytes(b"not to be opened")
    with pytest.raises(
        LearnerError, match=f"={other!r} reads .*saved with .*={saved!r}: continue"
    ):
        learner(other).load(tmp_path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(LearnerError, match=r"reads model-0.skops, but the checkpoint has no such"):
        skops_learner(SGDClassifier()).load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"checkpoint_format": "joblib"}, "'joblib', but checkpoint_format must be 'pickle' or"),
        ({"checkpoint_format": ["skops"]}, "must be 'pickle' or 'skops'"),
        ({"trusted": [TREE]}, "but checkpoint_format='pickle': a pickle may hold any type"),
        ({"checkpoint_format": "skops", "trusted": TREE}, "must be a list of types or of their"),
        ({"checkpoint_format": "skops", "trusted": [3]}, "must be a list of types or of their"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(SettingError, match=words):
        SklearnLearner(GaussianNB(), *IRIS, **settings)
    with pytest.raises(SettingError, match=words):
        RaceSearchCV(
            [GaussianNB(), SGDClassifier()], journal=JournalFile("search.db", **settings)
        ).fit(*IRIS)


def test_without_skops_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtra, match=r"need skops: pip install 'latebloomer\[skops\]'"):
        skops_learner(GaussianNB())


# --- races ---


@pytest.mark.parametrize("name", ["pickle", "skops"])
def test_a_search_goes_on_from_its_checkpoints(name, tmp_path, monkeypatch):
    models = {"net": MLPClassifier((8,)), "forest": RandomForestClassifier(max_depth=2)}
    trusted = [TREE] if name == "skops" else None
    file = tmp_path / "search.db"

    def search():
        return RaceSearchCV(
            models, budget=12, random_state=0, refit=False,
            journal=JournalFile(file, checkpoint_format=name, trusted=trusted),
        )  # fmt: skip

    first = search().fit(*IRIS)
    loaded = []
    monkeypatch.setattr(SklearnLearner, "pull", lambda self: pytest.fail("it was trained again"))
    monkeypatch.setattr(
        SklearnLearner, "load", lambda self, folder, load=SklearnLearner.load: (
            loaded.append(sorted(path.suffix for path in folder.iterdir())), load(self, folder)
        )
    )  # fmt: skip
    again = search().fit(*IRIS)
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
