"""XGBoost, LightGBM and CatBoost: one contract for their learners, and their place in searches."""

import pickle
import threading
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import check_scoring
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latebloomer import RaceRandomSearchCV, RaceSearchCV
from latebloomer.errors import LearnerError, SettingError, UnknownName
from latebloomer.integrations.catboost import CatBoostLearner
from latebloomer.integrations.lightgbm import LightGBMLearner
from latebloomer.integrations.sklearn import SklearnLearner, splits
from latebloomer.integrations.sklearn.metrics import Metrics
from latebloomer.integrations.sklearn.model_files import ModelFormat
from latebloomer.integrations.sklearn.shared_bins import SharedBins
from latebloomer.integrations.sklearn.sklearn_learner import LearnerParts
from latebloomer.integrations.sklearn.training.fold_model import settings_for
from latebloomer.integrations.xgboost import XGBoostLearner
from tests.helpers.killed_races import ends_as_if_never_killed
from tests.helpers.libraries import is_exact, library, refuses, two_classes

TRAIN, VALID = two_classes()
KINDS = {"xgboost": XGBoostLearner, "lightgbm": LightGBMLearner, "catboost": CatBoostLearner}
QUIET = {"logging_level": "Silent", "allow_writing_files": False}
PARAMS = {
    "xgboost": {"objective": "binary:logistic", "nthread": 1, "seed": 3, "eta": 0.1},
    "lightgbm": {"objective": "binary", "num_threads": 1, "seed": 3, "min_data_in_leaf": 5},
    "catboost": QUIET
    | {"loss_function": "Logloss", "thread_count": 1, "random_seed": 3, "depth": 3},
}
AUC = {"xgboost": "auc", "lightgbm": "auc", "catboost": "AUC"}
LOSS = {"xgboost": "logloss", "lightgbm": "binary_logloss", "catboost": "Logloss"}
RATE = {"xgboost": "eta", "lightgbm": "learning_rate", "catboost": "learning_rate"}
THREADS = {"xgboost": "nthread", "lightgbm": "num_threads", "catboost": "thread_count"}
DEPTH = {"xgboost": "max_depth", "lightgbm": "max_depth", "catboost": "depth"}
SAMPLED = {
    "xgboost": {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bynode": 0.7},
    "lightgbm": {"subsample": 0.6, "subsample_freq": 1, "colsample_bytree": 0.7},
    "catboost": {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
}
FULL = 40


@pytest.fixture(params=list(KINDS))
def name(request, tmp_path, monkeypatch):
    library(request.param)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # none may leave anything behind
    yield request.param
    assert not list((tmp_path / "here").iterdir())


def learner(name, metric=..., train=TRAIN, valid=VALID, full_steps=FULL, maximize=None, **more):
    own = {"metric": LOSS[name] if metric is ... else metric, "maximize": maximize}
    return KINDS[name](PARAMS[name] | more, train, valid, full_steps=full_steps, **own)


def learners(name):
    return {
        "shallow": lambda: learner(name, **{DEPTH[name]: 1}),
        "sampled": lambda: learner(name, **SAMPLED[name]),
        "fast": lambda: learner(name, **{RATE[name]: 0.9}),
    }


def trained(name, rounds, metric, objective=None, more=None, **settings):
    """Return the scores of the library's own training."""
    module, params, scores = import_module(name), PARAMS[name] | settings | (more or {}), {}
    if name == "catboost":
        own = {"eval_metric": metric, "iterations": FULL, "use_best_model": False}
        model = module.CatBoost(params | own)
        model.fit(module.Pool(*TRAIN), eval_set=module.Pool(*VALID))
        return model.get_evals_result()["validation"][metric][:rounds]
    if name == "xgboost":
        rate = []
        if callable(own := params["eta"]):  # XGBoost's scheduler sets the rate of the next round
            params["eta"] = own(0)
            rate = [module.callback.LearningRateScheduler(lambda number: own(number + 1))]
        train, valid = (module.DMatrix(X, label=y) for X, y in (TRAIN, VALID))
        given = {"evals_result": scores, "verbose_eval": 0, "obj": objective, "callbacks": rate}
        module.train(
            params | {"eval_metric": metric}, train, rounds, evals=[(valid, "v")], **given
        )
    else:
        train, callbacks = module.Dataset(*TRAIN), [module.record_evaluation(scores)]
        params |= {"metric": metric, "verbosity": -1}
        params |= {"objective": objective} if objective else {}
        if callable(params.get("learning_rate")):
            callbacks.append(module.reset_parameter(learning_rate=params.pop("learning_rate")))
        valid = module.Dataset(*VALID, reference=train)
        module.train(params, train, rounds, [valid], ["v"], callbacks=callbacks)
    return scores["v"][metric]


def test_without_sampling_it_is_the_librarys_own_training_bit_for_bit(name):
    one, whole = learner(name, AUC[name]), trained(name, FULL, AUC[name])
    assert [one.pull() for _ in range(8)] == whole[:8]
    assert one.pull(steps=5) == whole[12] and one.steps == 13  # one score for several steps
    assert one.pull(steps=FULL) == whole[-1] and one.steps == FULL
    refuses(StopIteration, "", one.pull)


SAME = [
    ("catboost", SAMPLED["catboost"]),
    ("catboost", {"boosting_type": "Ordered"}),
    ("lightgbm", {"bagging_fraction": 0.5}),  # without bagging_freq, LightGBM draws no rows
]


@pytest.mark.parametrize(("name", "more"), SAME, ids=str)
def test_samples_are_those_of_the_librarys_own_training(name, more):
    library(name)
    one = learner(name, **more)
    assert [-one.pull() for _ in range(5)] == trained(name, 5, LOSS[name], **more)


def test_a_learning_rate_may_be_a_function_of_the_round(name):
    rate = {RATE[name]: lambda number: 0.5 / (1 + number)}
    if name == "catboost":
        return refuses(SettingError, "learning_rate is a function, but Cat", learner, name, **rate)
    one = learner(name, **rate)
    assert [-one.pull() for _ in range(6)] == trained(name, 6, LOSS[name], **rate)
    is_exact(lambda: learner(name, **rate), pulls=3)


def gradients(predictions, rows):
    """Of the log loss, as XGBoost and LightGBM take it."""
    share = 1 / (1 + np.exp(-predictions))
    return share - rows.get_label(), share * (1 - share)


class LogLoss:
    """The same as CatBoost takes it."""

    def calc_ders_range(self, predictions, targets, weights):
        found = np.asarray(predictions)
        share = 1 / (1 + np.exp(-found))
        return list(zip(np.asarray(targets) - share, -share * (1 - share)))  # noqa: B905 (numba)


@pytest.mark.filterwarnings("ignore")  # CatBoost compiles the object with numba, if it can
def test_an_objective_may_be_a_function(name):
    given = {"loss_function": LogLoss()} if name == "catboost" else {"objective": gradients}
    metric = {"xgboost": "rmse", "lightgbm": "l2"}.get(name, "Logloss")
    one = learner(name, metric, **given)
    scores = [-one.pull() for _ in range(4)]
    if name == "catboost":
        assert scores == sorted(scores, reverse=True)
    else:  # XGBoost's own objective decides how it begins
        own = {"objective": "reg:squarederror" if name == "xgboost" else "none"}
        assert scores == trained(name, 4, metric, gradients, own)
    is_exact(lambda: learner(name, metric, **given))


WAYS = {
    "xgboost": [
        {}, SAMPLED["xgboost"], {"booster": "dart", "rate_drop": 0.5, "subsample": 0.5},
        {"tree_method": "exact", "subsample": 0.5}, {"tree_method": "approx", "subsample": 0.5},
        {"num_parallel_tree": 3, "subsample": 0.5}, {"booster": "gblinear"},
        {"updater": "grow_quantile_histmaker", "subsample": 0.5, "verbosity": 0},
    ],
    "lightgbm": [
        {}, SAMPLED["lightgbm"], {"bagging_fraction": 0.5, "bagging_freq": 3},
        {"pos_bagging_fraction": 0.5, "bagging_freq": 1}, {"feature_fraction_bynode": 0.5},
        {"extra_trees": True}, {"data_sample_strategy": "goss", "learning_rate": 0.5},
        {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0}, {"use_quantized_grad": True},
        {"bagging_fraction": 0.5, "feature_fraction": 0.5}, {"linear_tree": True},
        {"cegb_penalty_feature_coupled": [0.1] * 6},
    ],
    "catboost": [{}, SAMPLED["catboost"], {"boosting_type": "Ordered"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "more"), [(name, more) for name in WAYS for more in WAYS[name]], ids=str
)
def test_a_restored_learner_is_the_same_bit_for_bit(name, more, tmp_path):
    library(name)
    alone = learner(name, **more)
    scores = [alone.pull() for _ in range(21)]
    one, other = learner(name, **more), learner(name, **SAMPLED[name])
    for stop in (0, 4, 10, 18):  # before and after XGBoost's blocks of 16
        while one.steps < stop:
            assert one.pull() == scores[one.steps - 1]
            other.pull()  # learners share a process, not its random numbers
        folder = tmp_path / str(stop)
        folder.mkdir()
        one.save(folder)
        one = learner(name, **more)
        one.load(folder)
        assert stop == 0 or one.evaluate() == pytest.approx(scores[stop - 1], abs=1e-12)
    assert [one.pull() for _ in range(3)] == scores[18:]
    assert one.pull(steps=4) == [alone.pull() for _ in range(4)][-1]  # rounds, not pulls, count


def test_a_race_killed_and_resumed_ends_the_same(name, tmp_path):
    verdict = ends_as_if_never_killed(__name__, learners, tmp_path, name)
    assert verdict.learner.steps == verdict.pulls[verdict.name]
    module = import_module(name)
    rows = module.DMatrix(VALID[0]) if name == "xgboost" else VALID[0]
    assert verdict.learner.model.predict(rows).shape == (len(VALID[1]),)


def test_a_checkpoint_is_refused_for_what_changes_the_model_and_nothing_else(name, tmp_path):
    one = learner(name, **{DEPTH[name]: 2})
    one.pull()
    one.save(tmp_path)
    other = learner(name, **{DEPTH[name]: 2, THREADS[name]: 2, "verbose": 0})
    other.load(tmp_path)
    assert other.steps == 1
    said = f"of another learner: settings: {DEPTH[name]} was 2, is 3"
    refuses(LearnerError, said, learner(name, **{DEPTH[name]: 3}).load, tmp_path)
    different = "xgboost" if name != "xgboost" else "lightgbm"
    if find_spec(different):
        refuses(LearnerError, "learner: learner was '", learner(different).load, tmp_path)


@pytest.mark.parametrize("setting", ["n_estimators", "num_boost_round", "iterations"])
def test_the_rounds_of_params_are_the_full_training(name, setting):
    assert learner(name, full_steps=None, **{setting: 12}).full_steps == 12
    said = f"{setting}=12 and full_steps=9 are both given: give one"
    refuses(SettingError, said, learner, name, full_steps=9, **{setting: 12})
    assert learner(name, full_steps=None).full_steps == (1000 if name == "catboost" else None)


def test_a_metric_may_be_a_function_that_gets_what_was_passed(name):
    def share_right(model, valid):
        X, y = valid
        assert X is VALID[0] and y is VALID[1]
        rows = import_module("xgboost").DMatrix(X) if name == "xgboost" else X
        more = {"prediction_type": "Probability"} if name == "catboost" else {}
        found = model.predict(rows, **more)
        return ((found if found.ndim == 1 else found[:, 1]) > 0.5).__eq__(y).mean()

    metric = {"xgboost": "error", "lightgbm": "binary_error", "catboost": "Accuracy"}[name]
    right = [v if name == "catboost" else 1 - v for v in trained(name, 2, metric)]
    one = learner(name, share_right)
    assert [one.pull(), one.pull()] == pytest.approx(right)
    assert learner(name, share_right, maximize=False).pull() == pytest.approx(-right[0])


def test_weights_of_rows(name):
    """A row of weight 3 counts as much as three equal rows."""
    X, y = TRAIN[0][:80], TRAIN[1][:80]
    weights = np.where(np.arange(80) < 20, 3.0, 1.0)
    thrice = np.repeat(np.arange(80), weights.astype(int))
    more = {"catboost": {"boosting_type": "Plain", "bootstrap_type": "No"},
            "lightgbm": {"min_data_in_leaf": 1, "min_data_in_bin": 1}}.get(name, {})  # fmt: skip
    more[RATE[name]] = 0.1
    kinds = (X, y, weights), (X[thrice], y[thrice]), (X, y)
    one, other, plain = (learner(name, train=rows, **more) for rows in kinds)
    assert one.pull(steps=3) == pytest.approx(other.pull(steps=3), abs=0.02)
    assert one.evaluate() != plain.pull(steps=3)
    scored = learner(name, valid=(*VALID, np.where(VALID[1] == 1, 1.0, 1e-9)))
    assert scored.pull() != learner(name).pull()


def test_categories_of_a_pandas_frame(name):
    pandas = pytest.importorskip("pandas")

    def rows(part):
        X, y = part
        words = pandas.Categorical(np.where(X[:, 0] > 0, "high", "low"))
        return pandas.DataFrame({"word": words, "x": X[:, 3]}), y

    def build():
        return learner(name, AUC[name], rows(TRAIN), rows(VALID))

    assert build().pull(steps=3) > 0.55  # the word says much, the number nothing
    is_exact(build, pulls=2)


def test_categorical_features_of_catboost_apply_to_rows():
    library("catboost")
    train, valid = (([[x, str(z > 0)] for x, z in X[:, 3:5]], y) for X, y in (TRAIN, VALID))
    one = learner("catboost", "AUC", train, valid, cat_features=[1])
    assert np.isfinite(one.pull()) and one.model.get_cat_feature_indices() == [1]


@pytest.mark.parametrize("metric", ["AUC:type=Mu", "AUC:type=Mu;hints=skip_train~true", "MCC"])
def test_metrics_of_catboost_may_have_options(metric):
    library("catboost")
    three = [(X, y + (X[:, 3] > 0)) for X, y in (TRAIN, VALID)]
    one = learner("catboost", metric, *three, loss_function="MultiClass")
    assert 0 < one.pull() <= 1 and one.evaluate() == pytest.approx(one.pull(), abs=0.5)


@pytest.mark.parametrize("metric", ["Quantile", "Quantile:alpha=0.50", "Quantile:alpha=0.9"])
def test_a_metric_of_catboost_is_not_taken_for_another_of_the_same_name(metric):
    catboost = library("catboost")
    one = learner("catboost", metric, loss_function="Quantile:alpha=0.9")
    score = one.pull(steps=5)
    (values,) = one.model.eval_metrics(catboost.Pool(*VALID), [metric]).values()
    assert score == pytest.approx(-values[-1]) and one.pull() == one.evaluate()


def test_a_ranking_that_learns_the_bias_of_positions_is_restored():
    xgboost = library("xgboost")
    rows = [xgboost.DMatrix(X, y, qid=np.arange(len(y)) // 10) for X, y in (TRAIN, VALID)]
    own = {"objective": "rank:ndcg", "lambdarank_unbiased": True}
    is_exact(lambda: learner("xgboost", "ndcg", *rows, **own), pulls=3)


def test_catboosts_threads_end_with_their_learners():
    library("catboost")
    before, one = set(threading.enumerate()), learner("catboost")
    one.pull()
    (own,) = set(threading.enumerate()) - before
    del one
    assert not own.is_alive()


def test_a_dataset_of_lightgbm_may_be_shared_by_learners_with_other_settings():
    lightgbm = library("lightgbm")
    train = lightgbm.Dataset(*TRAIN, free_raw_data=False)
    valid = lightgbm.Dataset(*VALID, reference=train, free_raw_data=False)
    given = [learner("lightgbm", "auc", train, valid, max_bin=bins) for bins in (4, 63)]
    assert given[0].pull(steps=3) != given[1].pull(steps=3)


def test_what_is_wrong_is_said_in_one_line(name):
    kind = KINDS[name]
    refuses(LearnerError, "has no evaluation set", kind, PARAMS[name], TRAIN, metric=AUC[name])
    refuses((UnknownName, SettingError), "'acu'", learner, name, "acu")
    said = "eval_metric='x' and metric=.* are both given: give one"
    refuses(SettingError, said, learner, name, eval_metric="x")
    refuses(SettingError, "rounds=3 are both", learner, name, num_boost_round=4, num_rounds=3)
    refuses(LearnerError, "params=None, but params must be a dict", kind, None, TRAIN, VALID)
    for wrong in (None, ["auc", "error"]):
        refuses(SettingError, "metric must be a name or a function", learner, name, wrong)
    refuses(SettingError, "maximize must be True or False", learner, name, maximize="no")
    for wrong in (3, np.zeros(3), (TRAIN[0],), (TRAIN[0][:0], TRAIN[1][:0]), (None, None)):
        said = r"train=.*, but train must be a \w+, \(X, y\) or"
        refuses(LearnerError, said, learner, name, train=wrong)
    refuses(SettingError, "full_steps must be at least 1", learner, name, full_steps=0)
    for early in ("early_stopping_rounds", "od_wait"):
        said = f"params has {early}=5, but in a race the policy"
        refuses(SettingError, said, learner, name, **{early: 5})


def test_what_lightgbm_cannot_do_is_said_in_one_line():
    lightgbm = library("lightgbm")
    refuses(SettingError, "gives auc, binary_error, but", learner, "lightgbm", "auc,binary_error")
    forest = {"boosting": "rf"} | SAMPLED["lightgbm"]
    refuses(LearnerError, "cannot train boosting='rf' further", learner, "lightgbm", **forest)
    gone = lightgbm.Dataset(*TRAIN, params={"verbosity": -1}).construct()
    refuses(LearnerError, "train has released its rows", learner, "lightgbm", "auc", gone)


(X, Y), (X_TEST, Y_TEST) = TRAIN, VALID
ROUNDS = 12
PLAIN = {
    "xgboost": {"n_estimators": ROUNDS, "n_jobs": 1, "random_state": 3},
    "lightgbm": {"n_estimators": ROUNDS, "n_jobs": 1, "random_state": 3, "min_child_samples": 5},
    "catboost": QUIET | {"iterations": ROUNDS, "thread_count": 1, "random_seed": 3},
}
DART = {"xgboost": {"booster": "dart"}, "lightgbm": {"boosting_type": "dart"}}
PREFIX = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}


def booster(name, kind="Classifier", **more):
    return getattr(library(name), f"{PREFIX[name]}{kind}")(**PLAIN[name] | more)


def searched(estimator):
    return SklearnLearner(estimator, X, Y, batch=None, scoring="neg_log_loss", random_state=0)


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_macro"])
def test_three_classes_are_scored_as_scikit_learn_does(name, scoring):
    """CatBoost predicts them as a column, and has a `score` of its own."""
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    held = (X_TEST, np.digitize(X_TEST[:, 0], [-0.5, 0.5]))
    settings = {"batch": None, "validation": held, "scoring": scoring, "random_state": 0}
    learner = SklearnLearner(booster(name), X, labels, **settings)
    for _ in range(3):
        score = learner.pull(steps=2)
        assert score == pytest.approx(check_scoring(learner.model, scoring)(learner.model, *held))
    assert score > 0.8 and learner.score_range == (0, 1)
    apart = SklearnLearner(booster(name), X, labels, **settings | {"validation": 0.3})
    assert apart.pull() == pytest.approx(apart.row_scores[0].score)


def search(estimator, depths, **settings):
    space = {DEPTH[type(estimator).__module__.partition(".")[0]]: depths}
    asked = {"n_iter": "all", "trainings": 2, "random_state": 0} | settings
    return RaceRandomSearchCV(estimator, space, **asked)


def squares(labels, predictions, sample_weight):
    return (predictions - labels) * sample_weight, sample_weight


BINS, NAMED = np.digitize(X[:, 0], [-0.5, 0.5]), np.array(["a", "b"])[Y]
TABLE = pandas.DataFrame({"x": X[:, 1], "c": pandas.Categorical.from_codes(BINS, list("uvw"))})
OWN = [
    *[(name, "Classifier", X, BINS, {}) for name in KINDS],
    *[(name, "Regressor", X, Y / 2, {"objective": squares}) for name in ("xgboost", "lightgbm")],
    ("xgboost", "Classifier", TABLE, Y, {"enable_categorical": True}),
    ("lightgbm", "Classifier", TABLE, NAMED, {"class_weight": "balanced"}),
    ("catboost", "Classifier", X, NAMED, {}),
]


@pytest.mark.parametrize("name, kind, rows, target, settings", OWN)
def test_without_sampling_pulls_are_the_estimators_own_training(
    name, kind, rows, target, settings
):
    library(name)
    own, weights = booster(name, kind, **settings), np.linspace(0.1, 1, len(X))
    given = {"validation": (rows, target), "sample_weight": weights, "random_state": 0}
    pulled = SklearnLearner(own, rows, target, **given)
    for steps in (1, 4, 2, 5):
        pulled.pull(steps=steps)
    assert type(pulled.model) is type(own) and pulled.full_steps == ROUNDS
    own.fit(rows, target, sample_weight=weights)
    for method in ("predict", *["predict_proba"] * (kind == "Classifier")):
        assert np.array_equal(getattr(pulled.model, method)(rows), getattr(own, method)(rows))


def candidates(estimators, scoring="neg_log_loss", **fold):
    """Return learners of the same rows, as in a search."""
    rows = splits.Fold(X, Y, X_TEST, Y_TEST, bins=SharedBins(), **fold)
    return [
        SklearnLearner.from_parts(
            LearnerParts(
                one, [rows], settings_for(one, Y, None, 1, 0), Metrics(scoring), ModelFormat(),
            )
        )
        for one in estimators
    ]  # fmt: skip


BINNED = {"xgboost": "DMatrix", "lightgbm": "Dataset"}


@pytest.mark.parametrize("name", list(BINNED))
def test_rows_are_binned_once_for_candidates_with_equal_bins(name, monkeypatch):
    kind, made = getattr(library(name), BINNED[name]), []
    binned = "construct" if name == "lightgbm" else "__init__"
    own = getattr(kind, binned)

    def note(rows, *given, **more):
        if binned == "__init__" or rows._handle is None:
            made.append(rows)
        return own(rows, *given, **more)

    settings = [{DEPTH[name]: 2}, {DEPTH[name]: 4, RATE[name]: 0.3}, {"max_bin": 7}]
    settings = [{k.replace("eta", "learning_rate"): v for k, v in one.items()} for one in settings]
    raced = candidates([booster(name, **one) for one in settings])
    for learner in raced:
        learner.pull(steps=1)  # in turn: none disturbs another
    monkeypatch.setattr(kind, binned, note)
    again = candidates([booster(name, **one) for one in settings[:2]])
    again[0].pull(steps=1)
    first = len(made)
    again[1].pull(steps=1)
    few = len(made) - first  # those of the estimator of one round
    assert 0 <= few < first
    assert all(rows.num_data() < len(X) for rows in made[first:])
    for learner in raced:
        learner.pull(steps=ROUNDS - 1)
    for one, learner in zip(settings, raced, strict=True):
        whole = booster(name, **one).fit(X, Y)
        assert np.array_equal(learner.model.predict_proba(X_TEST), whole.predict_proba(X_TEST))


@pytest.mark.parametrize("name", list(BINNED))
@pytest.mark.parametrize(
    "kind, scoring",
    [("Classifier", s) for s in ("neg_log_loss", "roc_auc", "accuracy", None)]
    + [("Regressor", s) for s in ("r2", "neg_mean_absolute_error", None)],
)
def test_each_score_is_that_of_the_model_so_far(name, kind, scoring, monkeypatch):
    (learner,) = candidates([booster(name, kind)], scoring)
    base = getattr(library(name), f"{PREFIX[name]}Model")
    monkeypatch.setattr(base, "predict", lambda *_, **__: pytest.fail("trees predict again"))
    scores = [learner.pull(steps=3) for _ in range(3)]
    monkeypatch.undo()
    model = learner.model
    assert scores[-1] == pytest.approx(
        check_scoring(model, scoring=scoring)(model, X_TEST, Y_TEST)
    )
    assert len(set(scores)) == 3


@pytest.mark.parametrize("name", list(BINNED))
def test_a_booster_that_is_restored_leaves_shared_rows_as_they_are(name, tmp_path):
    models = [booster(name, **SAMPLED[name], **{DEPTH[name]: depth}) for depth in (2, 4)]
    alone = [candidates([one])[0] for one in models]
    wanted = [[one.pull(steps=2) for _ in range(5)] for one in alone]
    raced = candidates(models)
    found = [[one.pull(steps=2) for _ in range(2)] for one in raced]
    raced[0].save(tmp_path)
    restored = SklearnLearner.from_parts(
        LearnerParts(
            models[0], [raced[0]._models[0]._fold], settings_for(models[0], Y, None, 1, 0),
            Metrics("neg_log_loss"), ModelFormat(),
        )
    )  # fmt: skip
    restored.load(tmp_path)
    for scores, one in zip(found, (restored, raced[1]), strict=True):
        scores += [one.pull(steps=2) for _ in range(3)]
    assert found == wanted


@pytest.mark.parametrize("more", [{}, SAMPLED, DART], ids=["plain", "sampled", "dart"])
def test_a_resumed_estimator_is_the_same_bit_for_bit(name, more):
    given = booster(name, **more.get(name, {}))
    is_exact(lambda: searched(given), pulls=4)


@pytest.mark.parametrize("estimator", [True, False])
def test_with_sampling_each_pull_draws_other_rows(name, estimator):
    def build():
        if estimator:
            return searched(booster(name, **SAMPLED[name]))
        return learner(name, **SAMPLED[name])

    one, other = build(), build()
    scores = [one.pull() for _ in range(12)]
    assert scores == [other.pull() for _ in range(12)]  # by the seed and the round
    assert len({round(gain, 6) for gain in np.diff([0.0, *scores])}) == 12


def test_the_winner_is_the_librarys_own_training_on_all_rows(name):
    sampled = booster(name, **SAMPLED[name])
    found = search(sampled, [2, 4, 6], trainings=3).fit(X, Y)
    own = clone(sampled).set_params(**found.best_params_)
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


RF = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1, "verbosity": -1}


@pytest.mark.parametrize("name, kind, settings", [("xgboost", "RFClassifier", {}),
                                                  ("lightgbm", "Classifier", RF)])  # fmt: skip
def test_forests_of_boosters_are_trained_in_one_step(name, kind, settings):
    one = searched(booster(name, kind, **settings))
    assert one.in_one_step and np.isfinite(one.pull()) and one.finished
