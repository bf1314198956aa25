"""A search has one store, its journal: what it needs of a race that was stopped is in there."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier

from latebloomer import RaceSearchCV
from latebloomer.racing.journal import connections
from latebloomer.session.events import ScoreReported

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = load_iris(return_X_y=True)
MODELS = {"forest": RandomForestClassifier(12), "linear": SGDClassifier(max_iter=12)}
SEVERAL = {"cv": 3, "scoring": ["accuracy", "f1_macro"], "refit": "accuracy"}
WAYS = {
    "one score": {"cv": 0.3},
    "folds and metrics": SEVERAL | {"return_train_score": True},
}


def search(path, **settings):
    return RaceSearchCV(MODELS, trainings=3, random_state=0, journal=path, **settings)


def scores(found):
    names = [name for name in found.results_ if name.startswith(("split", "mean_", "std_"))]
    return {name: np.array(found.results_[name]) for name in names}


def equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("way", WAYS)
def test_a_search_that_was_stopped_has_the_scores_of_one_that_was_not(tmp_path, way):
    calm = search(tmp_path / "calm.db", **WAYS[way]).fit(X, Y)

    def stop(event, view):
        if isinstance(event, ScoreReported) and view.spent == 14:
            raise KeyboardInterrupt

    path = tmp_path / "race.db"
    with pytest.raises(KeyboardInterrupt):
        search(path, callbacks=[stop], **WAYS[way]).fit(X, Y)
    resumed = search(path, **WAYS[way]).fit(X, Y)
    again = search(path, **WAYS[way]).fit(X, Y)
    assert calm.best_name_ == resumed.best_name_ == again.best_name_
    assert equal(scores(calm), scores(resumed)) and equal(scores(calm), scores(again))
    split = "split2_train_f1_macro" if way != "one score" else "split0_test_score"
    assert split in scores(calm)


def test_it_writes_nothing_but_its_journal_and_checkpoints(tmp_path):
    search(tmp_path / "race.db", **SEVERAL).fit(X, Y)
    found = {file.name for file in tmp_path.iterdir()}
    assert found <= {"race.db", "race.db.lock", "race.db.checkpoints"}


@pytest.mark.parametrize("made", ["an empty file", "no tables", "no pull"])
def test_a_search_that_was_killed_while_its_journal_was_made_starts_again(tmp_path, made):
    path = tmp_path / "race.db"
    if made == "an empty file":
        path.touch()
    elif made == "no tables":
        connections.connect(path, "normal").close()
    else:

        def stop(event, view):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            search(path, callbacks=[stop]).fit(X, Y)
    assert search(path).fit(X, Y).best_name_ in MODELS
