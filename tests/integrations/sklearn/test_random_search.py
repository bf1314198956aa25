"""`RaceRandomSearchCV`: many settings of one estimator, as scikit-learn's own searches have it."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, ParameterSampler, RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from latebloomer import RaceRandomSearchCV, RaceSearchCV
from latebloomer.errors import JournalMismatch, LearnerError, SettingError, UnknownName
from latebloomer.integrations.sklearn import NoneLearns, SklearnLearner
from tests.helpers.libraries import refuses
from tests.helpers.repository import ROOT

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = load_iris(return_X_y=True)
LINEAR = SGDClassifier(max_iter=20)
SPACE = {"alpha": loguniform(1e-5, 1e2), "penalty": ["l1", "l2"]}
GRID = {"alpha": [1e-4, 1e-3, 1e-2, 10.0], "penalty": ["l1", "l2"]}
TWO = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
NO_LAST = np.where(Y == 2, 0.0, 1.0)  # weights without the last class


def search(estimator=LINEAR, space=SPACE, **settings):
    asked = {"n_iter": 6, "trainings": 3, "random_state": 0} | settings
    return RaceRandomSearchCV(estimator, space, **asked)


def test_it_has_what_people_read_of_a_search():
    found = search(cv=3).fit(X, Y)
    table = pd.DataFrame(found.cv_results_)
    assert len(table) == 6 and found.n_splits_ == 3
    best = table.loc[found.best_index_]
    assert best["rank_test_score"] == 1 and best["params"] == found.best_params_
    assert best["param_alpha"] == found.best_params_["alpha"] == found.best_estimator_.alpha
    assert best["mean_test_score"] == found.best_score_ == found.verdict_.score
    folds = table[[f"split{k}_test_score" for k in range(3)]]
    assert np.array_equal(folds.mean(axis=1), table["mean_test_score"])
    assert np.allclose(folds.std(axis=1, ddof=0), table["std_test_score"])
    assert (table["mean_fit_time"] > 0).all() and found.refit_time_ > 0
    seconds = sum(arm.seconds for arm in found.verdict_.learners)
    assert table["mean_fit_time"].sum() * 3 == pytest.approx(seconds)
    assert not found.multimetric_ and found.score(X, Y) > 0.8
    guide = (ROOT / "docs" / "scikit-learn.md").read_text(encoding="utf-8")
    listed = re.search(r"\| `cv_results_` has .*?\n\n", guide, re.DOTALL)[0]
    columns = re.findall(r"`([a-z0-9_]+)`", "".join(re.findall(r"^\|(.*?)\|", listed, re.M)))
    assert len(columns) > 8 and set(columns) - {"cv_results_"} <= set(table)


def test_ranks_are_by_who_stayed_then_by_the_drop_and_resources_are_steps():
    found = search(n_iter=8, policy="sh", budget=60, trainings=None, refit=False).fit(X, Y)
    table = pd.DataFrame(found.cv_results_).sort_values("rank_test_score")
    assert table["rank_test_score"].tolist() == list(range(1, 9))
    levels = table["dropped_at"].fillna(np.inf).tolist()
    assert levels == sorted(levels, reverse=True) and levels[0] == np.inf > levels[-1]
    dropped = table[table["state"] == "dropped"]
    assert (dropped["dropped_at"] == dropped["n_resources"]).all()  # a pull is one batch here
    for _, level in dropped.groupby("dropped_at"):
        assert level["mean_test_score"].is_monotonic_decreasing
    found = search(trainings=4).fit(X, Y)
    steps = found.cv_results_["n_resources"]
    assert steps.tolist() == [arm.steps for arm in found.verdict_.learners]
    assert steps.max() <= 20 and sum(steps) <= 3 * 20


def test_candidates_are_those_that_scikit_learn_draws():
    found = search(random_state=3).fit(X, Y)
    assert found.cv_results_["params"] == list(ParameterSampler(SPACE, 6, random_state=3))
    easy, space = GaussianNB(), {"var_smoothing": loguniform(1e-9, 1)}
    theirs = RandomizedSearchCV(easy, space, n_iter=6, random_state=3, cv=2).fit(X, Y)
    ours = search(easy, space, random_state=3).fit(X, Y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    some = search(space=GRID, n_iter=5).fit(X, Y).cv_results_["params"]
    assert len({tuple(one.items()) for one in some}) == 5  # without repetition
    assert len(search(space=GRID, n_iter="all").fit(X, Y).cv_results_["params"]) == 8


def test_candidates_are_numbers_and_their_settings_are_in_one_table():
    space = {"validation_fraction": [0.0694444, 0.25], "n_iter_no_change": [11, 31],
             "learning_rate": ["adaptive"], "eta0": [0.0123456, 1.0]}  # fmt: skip
    found = search(SGDClassifier(max_iter=5), space, n_iter=8).fit(X, Y)
    names = [one.name for one in found.verdict_.learners]
    assert names == [f"#{k}" for k in range(8)]
    best = found.best_params_
    assert f"\n{found.verdict_.name} has " in str(found.verdict_)
    assert f"eta0={best['eta0']:.3g}" in str(found.verdict_)
    table = found.verdict_.details().split("candidate ")[1].split("\n\n")[0]
    assert "adaptive" not in table
    for name, params in zip(names, found.cv_results_["params"], strict=True):
        (row,) = [line.split() for line in table.splitlines() if line.startswith(f"  {name} ")]
        assert {f"{value:.3g}" for value in map(params.get, ("eta0",))} <= set(row)
        assert str(params["n_iter_no_change"]) in row
    frame = found.verdict_.to_frame()
    assert frame["param_eta0"].tolist() == [one["eta0"] for one in found.cv_results_["params"]]
    assert "param_learning_rate" not in frame  # which is the same for all


def test_settings_of_a_list_of_dicts_are_masked_where_there_are_none():
    spaces = [{"alpha": [1e-3, 1e-2]}, {"penalty": ["l1"], "eta0": [0.1]}]
    table = search(space=spaces, n_iter="all").fit(X, Y).cv_results_
    assert table["param_alpha"].mask.sum() == 1 and table["param_penalty"].mask.sum() == 2
    assert table["param_alpha"].dtype == float and table["param_penalty"].dtype == object


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_candidate_that_fails_is_out_and_ranked_last():
    found = search(space={"alpha": [1e-3, -1.0, 1e-2]}, n_iter="all").fit(X, Y)
    row = found.cv_results_["params"].index({"alpha": -1.0})
    assert found.cv_results_["rank_test_score"][row] == 3
    assert np.isnan(found.cv_results_["mean_test_score"][row])
    assert "alpha" in found.cv_results_["why"][row]
    bad = search(space={"alpha": [-2.0, -1.0]}, n_iter="all")
    refuses(NoneLearns, "alpha", bad.fit, X, Y)


def test_pipelines_and_whole_steps_are_searched():
    model = Pipeline([("scale", StandardScaler()), ("model", SGDClassifier(max_iter=20))])
    space = [
        {"model__alpha": [1e-3, 1.0], "scale": [StandardScaler(), MinMaxScaler()]},
        {"model": [MLPClassifier((8,), max_iter=20)], "model__alpha": [1e-3, 1e-2]},
    ]
    found = search(model, space, n_iter="all").fit(X, Y)
    assert isinstance(found.best_estimator_, Pipeline)
    assert len(found.cv_results_["params"]) == 6 and found.score(X, Y) > 0.8


def test_a_function_may_choose_what_is_kept():
    def second(table):
        return int(np.flatnonzero(table["rank_test_score"] == 2)[0])

    found = search(space={"alpha": [1e-4, 1e-2, 10.0]}, n_iter="all", refit=second).fit(X, Y)
    assert found.cv_results_["rank_test_score"][found.best_index_] == 2
    assert found.best_estimator_.alpha == found.best_params_["alpha"]
    with pytest.raises(SettingError, match=r"refit\(results\)=7, .* must be from 0 to 2"):
        clone(found).set_params(refit=lambda table: 7).fit(X, Y)


def test_a_search_goes_on_with_its_own_journal(tmp_path):
    asked = {"journal": tmp_path / "search.db", **TWO}
    first, again = (search(**asked).fit(X, Y).cv_results_ for _ in range(2))
    for column in ("mean_test_f1_macro", "mean_test_accuracy", "n_resources", "dropped_at"):
        assert np.array_equal(first[column], again[column], equal_nan=True)
    refuses(JournalMismatch, "", search(**asked).fit, X, Y, sample_weight=np.ones(150))


@pytest.mark.parametrize("cv", [0.3, 2, KFold(2, shuffle=True, random_state=0), None, "splits"])
def test_rows_are_held_out_as_cv_says(cv):
    splits = [(np.arange(0, 150, 2), np.arange(1, 150, 2)), (np.arange(100), np.arange(100, 150))]
    found = search(cv=splits if cv == "splits" else cv).fit(X, Y)
    assert found.n_splits_ == {0.3: 1, None: 5}.get(cv if np.isscalar(cv) or cv is None else 0, 2)
    if cv == "splits":
        again = search(cv=iter(splits)).fit(X, Y).cv_results_
        for column in ("split0_test_score", "split1_test_score"):
            assert np.array_equal(again[column], found.cv_results_[column])
        # The second holds out the last class alone, which its models have never seen.
        assert not again["split1_test_score"].any() and again["split0_test_score"].max() > 0.5


def test_groups_go_to_the_splitter():
    grouped = search(cv=GroupKFold(3))
    assert grouped.fit(X, Y, groups=np.arange(150) % 3).n_splits_ == 3
    refuses(
        SettingError, "groups has 2 values, but there are 150", grouped.fit, X, Y, groups=[1, 2]
    )


@pytest.mark.parametrize(
    "scoring",
    [
        ["accuracy", "f1_macro"],
        {"accuracy": "accuracy", "f1_macro": make_scorer(f1_score, average="macro")},
        lambda model, X, y: {
            "accuracy": model.score(X, y),
            "f1_macro": f1_score(y, model.predict(X), average="macro"),
        },
    ],
    ids=["list", "dict", "function"],
)
def test_the_race_goes_by_the_metric_that_refit_names(scoring):
    found = search(scoring=scoring, refit="f1_macro", cv=2).fit(X, Y)
    alone = search(scoring="f1_macro", cv=2).fit(X, Y)
    assert found.best_params_ == alone.best_params_ and found.multimetric_
    table = found.cv_results_
    assert np.array_equal(table["mean_test_f1_macro"], alone.cv_results_["mean_test_score"])
    assert table["rank_test_f1_macro"][found.best_index_] == 1
    assert np.isfinite(table["mean_test_accuracy"]).all() and "rank_test_accuracy" not in table
    assert found.score(X, Y) == alone.score(X, Y)


def test_weights_are_used_in_training_and_in_scores():
    plain, ones = search().fit(X, Y), search().fit(X, Y, sample_weight=np.ones(150))
    assert np.array_equal(plain.best_estimator_.coef_, ones.best_estimator_.coef_)
    assert set(search(space=GRID).fit(X, Y, sample_weight=NO_LAST).predict(X)) == {0, 1}
    weights = 1 - NO_LAST  # an estimator that knows no other class is right
    assert search(refit=False).fit(X, Y, sample_weight=weights).best_score_ == 1.0
    learner = SklearnLearner(LINEAR, X, Y, sample_weight=weights, batch=None, random_state=0)
    assert learner.pull(steps=5) == 1.0
    said = "sample_weight has 3 values, but there are 150 rows"
    refuses(SettingError, said, search().fit, X, Y, sample_weight=[1, 2, 3])


@pytest.mark.parametrize("name", ["sample_weight", "gradientboostingregressor__sample_weight"])
def test_weights_reach_forests_and_the_last_step_of_pipelines(name):
    trees = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=20))
    space = {"gradientboostingregressor__max_depth": [1, 2]}
    found = search(trees, space, n_iter="all").fit(X, Y * 1.0, **{name: NO_LAST})
    assert found.predict(X).max() < 1.5


def asking(fit, score=False):
    made = SGDClassifier(max_iter=50).set_fit_request(sample_weight=fit)
    return made.set_score_request(sample_weight=score)


def test_metadata_are_routed_where_that_is_switched_on():
    with sklearn.config_context(enable_metadata_routing=True):
        found = search(asking(True, True), GRID).fit(X, Y, sample_weight=NO_LAST)
        assert set(found.predict(X)) == {0, 1}
        assert found.score(X, Y, sample_weight=NO_LAST) == 1.0
        own = search(asking(False), GRID)
        refuses(TypeError, "sample_weight", own.fit, X, Y, sample_weight=NO_LAST)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        whole = make_pipeline(scaler, asking(True, True))
        nested = {f"sgdclassifier__{name}": values for name, values in GRID.items()}
        assert set(search(whole, nested).fit(X, Y, sample_weight=NO_LAST).predict(X)) == {0, 1}
    assert found.score(X, Y, sample_weight=NO_LAST) == 1.0  # all goes to the scorer
    refuses(TypeError, "color", found.score, X, Y, color="red")


def test_each_of_several_estimators_gets_what_it_asks_for():
    data = StandardScaler().fit_transform(X)
    with sklearn.config_context(enable_metadata_routing=True):
        models = {"scorer": asking(True), "other": asking(False)}  # named as a part of the search
        found = RaceSearchCV(models, trainings=2, random_state=0)
        found.fit(data, Y, sample_weight=NO_LAST)
    assert found.results_["score"][0] <= 0.7 < found.results_["score"][1]


class Watcher:
    """Remembers the tasks; asks to stop after a given number of pulls."""

    def __init__(self, stop_after=10**9):
        self.begun, self.ended, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.begun.append("setup")

    def teardown(self, estimator, context):
        self.ended.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return sum(name.startswith("pull") for name in self.ended) >= self.stop_after


def test_callbacks_of_scikit_learn_see_each_pull_and_the_refit_and_can_stop_the_race():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    watcher, found, stopped = Watcher(), search(), search()
    found.set_callbacks(watcher)
    found.fit(X, Y)
    pulls = [name for name in watcher.ended if name.startswith("pull of ")]
    assert len(pulls) == found.verdict_.spent
    others = [name for name in watcher.ended if name not in pulls]
    assert others == ["race", "refit-with-best-params", "fit", "teardown"]
    assert sorted(watcher.begun[1:]) == sorted(watcher.ended[:-1])
    stopped.set_callbacks(Watcher(stop_after=9))
    verdict = stopped.fit(X, Y).verdict_
    assert verdict.spent == 9 and "a callback of scikit-learn" in verdict.reason


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_iter": 1}, SettingError, "at least 2: with one there is nothing to choose"),
        ({"n_iter": "many"}, SettingError, "n_iter must be an integer, or 'all'"),
        ({"n_iter": "all"}, SettingError, "a distribution has no end"),
        ({"space": GRID, "n_iter": 9}, SettingError, "n_iter must be at most 8, or 'all'"),
        ({"space": {"alhpa": [*range(6)]}}, ValueError, "Invalid parameter 'alhpa' for estimator"),
        ({"space": {"alpha": 1}}, SettingError, "'alpha' needs to be a list .* but got 1"),
        ({"space": 3}, SettingError, "param_distributions=3, but param_distributions must be a"),
        ({"space": {}}, SettingError, "n_iter must be at most 1"),
        ({"estimator": SGDClassifier}, LearnerError, "SGDClassifier is a class"),
        ({"scoring": ["accuracy", "f2"], "refit": "f2"}, UnknownName, "no scoring is called 'f2'"),
        ({"scoring": ["accuracy", "r2"]}, SettingError, "refit must be 'accuracy' or 'r2'"),
        ({"scoring": [len], "refit": "len"}, SettingError, "scoring must be metrics' names"),
        ({"scoring": 3}, SettingError, "scoring=3, but scoring must be one metric's name"),
        ({"refit": "accuracy"}, SettingError, "a name is for several metrics"),
        ({"cv": 1}, SettingError, "cv=1, but cv must be a share .* at least 2 folds"),
        ({"cv": 1.5}, SettingError, r"cv=1.5, but cv must be in \(0, 1\)"),
        ({"cv": "kfold"}, SettingError, "cv='kfold', but cv must be a share of the rows, such"),
        ({"cv": [[0, 1]]}, SettingError, "a split must be two lists of row numbers below 150"),
        ({"cv": [([0, 1], [1, 2])]}, SettingError, "a split has row 1 both to train on and to be"),
        ({"cv": []}, SettingError, "cv must be at least one split"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(settings, error, words):
    with pytest.raises(error, match=words) as caught:
        search(**settings).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_a_metric_that_is_not_returned_and_targets_that_do_not_fit_are_refused():
    returned = search(scoring=lambda model, X, y: {"a": 1.0})
    refuses(NoneLearns, "scoring returns 'a', but one must decide", returned.fit, X, Y)
    refuses(ValueError, "Unknown label type", search().fit, X, X[:, 0])
    refuses(SettingError, "RaceRandomSearchCV requires y to be", search(SGDRegressor()).fit, X)


def test_both_searches_describe_the_settings_that_they_share_in_the_same_words():
    named, drawn = (inspect.getdoc(search) for search in (RaceSearchCV, RaceRandomSearchCV))
    shared = [
        one.partition("\ntrainings : ")[2].partition("\nRaises\n")[0] for one in (named, drawn)
    ]
    assert shared[0] == shared[1] and "\ncallbacks : " in shared[0]
