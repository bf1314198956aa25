"""Tables as people have them: encoded columns, models by name, and a search over both."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latebloomer import RaceSearchCV
from latebloomer.errors import MissingExtra, SettingError, install_command
from latebloomer.integrations.sklearn import TableEncoder, tabular_models
from latebloomer.integrations.sklearn.raw_frames import need_encoders


def table(rng, rows=240):
    """Return a frame with a column of each kind, and labels of text."""
    text = rng.choice(["red", "green", "blue", None], rows)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=rows),
            "text": text,
            "date": pd.date_range("2020-01-01", periods=rows, freq="h"),
            "text date": pd.date_range("2020-01-01", periods=rows).strftime("%Y-%m-%d"),
            "flag": rng.random(rows) > 0.5,
            "flag with gaps": pd.array(rng.choice([True, False, None], rows), dtype="boolean"),
            "size": pd.Categorical(
                rng.choice(["s", "m", "l"], rows), categories=["s", "m", "l"], ordered=True
            ),
            "number as text": rng.normal(size=rows).round(3).astype(str),
            "empty": [None] * rows,
            "span": pd.to_timedelta(rng.integers(0, 1000, rows), unit="s"),
            "infinite": np.where(rng.random(rows) < 0.1, np.inf, 1.0),
        }
    )
    signal = frame["number"] + (text == "red") + rng.normal(size=rows) * 0.3
    return frame, np.where(signal > 0.3, "yes", "no")


def test_columns_become_numbers_and_gaps_nan():
    frame = pd.DataFrame(
        {
            "number": ["1.5", "2", None],
            "day": ["2021-03-01", "2021-03-02", None],
            "color": ["red", "blue", None],
        }
    )
    encoder = TableEncoder().fit(frame)
    row = dict(zip(encoder.get_feature_names_out(), encoder.transform(frame)[1], strict=True))
    # 2 March 2021 was a Tuesday (day 1), 18,688 days after 1 January 1970.
    assert row == {
        "number": 2, "day time": 18_688 * 86_400, "day year": 2021, "day month": 3, "day day": 2,
        "day day_of_week": 1, "day hour": 0, "color": 0,
    }  # fmt: skip
    assert np.isnan(encoder.transform(frame)[2]).all()


def test_rare_and_new_categories_share_a_code():
    seen = pd.DataFrame({"c": ["a", "a", "b", "b", "c"]})
    new = pd.DataFrame({"c": ["b", "c", "never seen", None]})
    encoder = TableEncoder(most=2).fit(seen)  # keeps a and b
    assert encoder.transform(new)[:, 0].tolist()[:3] == [1, 2, 2]
    assert TableEncoder("onehot", most=2).fit(seen).transform(new).tolist() == [
        [0, 1], [0, 0], [0, 0], [0, 0],
    ]  # fmt: skip


def test_an_ordered_category_keeps_its_order():
    sizes = pd.Categorical(["l", "s", "m"], categories=["s", "m", "l"], ordered=True)
    assert TableEncoder().fit_transform(pd.DataFrame({"size": sizes}))[:, 0].tolist() == [2, 0, 1]


def test_the_order_of_rows_decides_nothing(rng):
    frame, _ = table(rng)
    mixed = frame.sample(frac=1, random_state=0)
    one, other = TableEncoder(most=2).fit(frame), TableEncoder(most=2).fit(mixed)
    assert np.array_equal(one.transform(frame), other.transform(frame), equal_nan=True)


def test_an_encoder_can_be_cloned_and_pickled(rng):
    frame, _ = table(rng)
    encoder = clone(TableEncoder("onehot", most=5)).fit(frame)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(encoder.transform(frame), again.transform(frame), equal_nan=True)
    assert encoder.transform(frame).shape[1] == len(encoder.get_feature_names_out())


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_search_takes_a_raw_frame(task, rng):
    frame, labels = table(rng)
    y = labels if task == "classification" else frame["number"].to_numpy() * 2 + 1
    models = tabular_models(task, ["hist", "forest", "net", "linear"])
    models["forest"].set_params(**{f"{models['forest'].steps[-1][0]}__n_estimators": 20})
    search = RaceSearchCV(models, trainings=4, pulls_per_training=10, random_state=0)
    search.fit(frame, y)
    assert all(search.verdict_[name].state != "failed" for name in models)
    assert len(search.predict(frame)) == len(frame) and search.score(frame, y) > 0.8


def test_plain_estimators_on_text_fail_before_the_first_pull(rng):
    frame, y = table(rng)
    models = {
        "forest": RandomForestClassifier(),
        "own": make_pipeline(TableEncoder(), LogisticRegression()),
    }
    with pytest.raises(SettingError, match=r"'text', .* which forest cannot .*tabular_models"):
        RaceSearchCV(models, trainings=2).fit(frame, y)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["a", "b"] * 20, "text or dates"),
        (pd.date_range("2020-01-01", periods=40), "text or dates"),
        (pd.Categorical(["a", "b"] * 20), "text categories"),
        ([1.0, None] * 20, "gaps"),
    ],
)
def test_what_a_column_holds_is_named_with_those_that_cannot_read_it(column, words):
    frame, y = pd.DataFrame({"mine": column, "number": range(40)}), [0, 1] * 20
    models = {"linear": LogisticRegression(), "hist": HistGradientBoostingClassifier(max_iter=9)}
    both = words == "text or dates"  # boosters read categories and gaps
    who = "linear, hist" if both else "linear"
    with pytest.raises(SettingError, match=rf"with {words} \('mine'\), which {who} cannot"):
        RaceSearchCV(models, trainings=2).fit(frame, y)
    if not both:
        del models["linear"]
        need_encoders(frame, models)


def test_numbers_booleans_and_numbered_categories_need_no_encoder():
    frame = pd.DataFrame({"flag": [True, False], "n": [1, 2], "c": pd.Categorical([3, 4])})
    need_encoders(frame, {"linear": LogisticRegression()})


@pytest.mark.filterwarnings("ignore:The time left was too short")  # on a busy machine
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_race_on_a_raw_frame_in_seconds(task, rng):
    frame, labels = table(rng)
    y = labels if task == "classification" else frame["number"].to_numpy() * 2 + 1
    models = tabular_models(task, ["hist", "extra trees", "net", "linear"], random_state=0)
    search = RaceSearchCV(models, seconds=1, random_state=0).fit(frame, y)
    assert all(search.verdict_[name].state != "failed" for name in models)
    assert len(search.predict(frame)) == len(frame)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tabular_models("ranking"), "must be 'classification' or 'regression'"),
        (lambda: tabular_models("regression", ["forrest"]), "did you mean 'forest'"),
        (lambda: TableEncoder("both").fit([[1]]), "must be 'ordinal' or 'onehot'"),
        (
            lambda: TableEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"])),
            "two columns called 'a'",
        ),
        (
            lambda: (
                TableEncoder()
                .fit(pd.DataFrame({"a": [1], "b": [2]}))
                .transform(pd.DataFrame({"a": [1]}))
            ),
            "X has no column b",
        ),
    ],
)
def test_wrong_tables_are_explained(call, words):
    with pytest.raises(SettingError, match=words):
        call()


def test_a_model_that_is_not_installed_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("catboost"))):
        tabular_models("classification", ["catboost"])
    assert tabular_models("classification") == {}


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_boosters_take_text_labels(name, rng):
    pytest.importorskip(name, reason=f"{name} is not installed")
    frame, y = table(rng)
    models = tabular_models("classification", [name, "forest"])
    search = RaceSearchCV(models, trainings=3, pulls_per_training=10, random_state=0)
    search.fit(frame, y)
    assert all(search.verdict_[other].state != "failed" for other in models)
    alone = clone(models[name]).fit(frame, y)
    assert set(alone.predict(frame)) == {"no", "yes"} and list(alone.classes_) == ["no", "yes"]
    assert (pickle.loads(pickle.dumps(alone)).predict(frame) == alone.predict(frame)).all()


def test_a_booster_for_text_labels_is_found_by_pickle_in_a_new_process(rng):
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    frame, y = table(rng)
    model = tabular_models("classification", ["xgboost"])["xgboost"].fit(frame, y)
    code = "import pickle, sys; print(list(pickle.load(sys.stdin.buffer).classes_))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(model), stdout=-1)
    assert done.stdout.decode().strip() == str(list(model.classes_))


class CountedScaler(StandardScaler):
    """A scaler that counts its fits."""

    fits = 0

    def fit_transform(self, X, y=None, **params):
        CountedScaler.fits += 1
        return super().fit_transform(X, y, **params)


def test_equal_steps_before_the_models_are_fitted_once_for_each_fold(rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    models = {
        name: make_pipeline(CountedScaler(), SGDClassifier(alpha=alpha, max_iter=10))
        for name, alpha in (("a", 1e-4), ("b", 1e-3), ("c", 1e-2))
    }
    models["without mean"] = make_pipeline(CountedScaler(with_mean=False), SGDClassifier())
    CountedScaler.fits = 0
    search = RaceSearchCV(models, trainings=3, cv=3, refit=False, random_state=0).fit(X, y)
    assert CountedScaler.fits == 6  # two kinds of scaler, three folds
    assert search.best_estimator_.predict(X).shape == (120,)
