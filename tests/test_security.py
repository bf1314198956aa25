"""docs/security.md is true: what is unpickled, and who never does that."""

import _pickle
import pickle
import re
import shutil
import sys
import traceback

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.cli import app
from latebloomer.errors import LatebloomerError
from latebloomer.integrations.sklearn import SklearnLearner
from tests.helpers.repository import ROOT

SOURCES = ROOT / "src" / "latebloomer"
# Who makes or reads pickles, or lets another library do so.
PICKLES = re.compile(
    r"^ *(import|from) (pickle|joblib)\b(?! import hash)|cloudpickle|put\(experiment"
    r"|cache=True|\"cache\": True|weights_only",
    re.MULTILINE,
)


class Unpickled(BaseException):
    """What the guard raises; in a race it is the failure of a learner."""


def unpickles():
    """Expect the guard to see something that is unpickled."""
    return pytest.raises((Unpickled, LatebloomerError), match="Unpickled")


def learners(**settings):
    X, y = load_iris(return_X_y=True)
    return {
        type(model).__name__: lambda model=model: SklearnLearner(
            model, X, y, batch=16, random_state=0, **settings
        )
        for model in (GaussianNB(), SGDClassifier())
    }


GUARDED = []  # while it has an item


def check():
    callers = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_stack(None)]
    if not any(name.startswith("numba.core.caching") for name in callers):  # its compiled code
        raise Unpickled("Unpickled")


@sys.addaudithook  # there is no way to remove one
def see_classes_in_pickles(event, _):
    if GUARDED and event == "pickle.find_class":
        check()


@pytest.fixture
def no_unpickling(monkeypatch):
    """Whatever would unpickle raises; numba's own cache of compiled code is another matter."""

    def guarded(original):
        def call(*words, **settings):
            check()
            return original(*words, **settings)

        return call

    for module in (pickle, _pickle):
        for name in ("load", "loads", "Unpickler"):
            monkeypatch.setattr(module, name, guarded(getattr(module, name)))
    GUARDED.append(True)
    yield
    GUARDED.clear()


@pytest.fixture
def journal(tmp_path):
    file = tmp_path / "race.db"
    race(learners(), 20, journal=file, progress=False, runner=LocalRunner(checkpoint_every=1))
    assert list(tmp_path.rglob("model-0.pickle"))
    return file


def command(*words):
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_looking_at_a_race_unpickles_nothing(journal, no_unpickling):
    assert read_verdict(journal).name in learners()
    command("show", journal)
    command("report", journal)
    with unpickles():  # the guard sees what it should
        resume(journal, learners(), progress=False)


def test_the_model_of_a_generator_is_unpickled_by_resume_alone(tmp_path, no_unpickling):
    def scores(best):
        for n in range(1, 100):
            yield best * n / (n + 3), [n]

    file, given = tmp_path / "race.db", {"a": lambda: scores(0.5), "b": lambda: scores(0.9)}
    race(given, 20, journal=file, progress=False)
    assert list(tmp_path.rglob("model.pickle"))
    read_verdict(file)
    for words in (("show", file), ("report", file), ("races", tmp_path)):
        command(*words)
    with unpickles():
        resume(file, given, progress=False)


class Plain:
    """Without save and load."""

    def __init__(self, best):
        self.n, self.best = 0, best

    def pull(self):
        self.n += 1
        return self.best * self.n / (self.n + 3)


def test_a_pickled_learner_is_unpickled_where_it_is_restored_and_never_to_look(
    tmp_path, no_unpickling
):
    file, given = tmp_path / "race.db", {f"{k}": lambda k=k: Plain(k) for k in range(1, 5)}
    two = LocalRunner(max_in_memory=2)  # one of them waits in its checkpoint and returns
    failed = race(given, 60, journal=file, progress=False, policy="r-sr", runner=two)
    assert any("Unpickled" in warning for warning in failed.warnings)
    assert list(tmp_path.rglob("latebloomer-learner.pickle"))
    assert read_verdict(file).spent > 0
    for saved in tmp_path.glob("race.db.checkpoints"):
        shutil.rmtree(saved)
    assert resume(file, given, progress=False).spent == 60  # trained again, by one's own code


def test_the_bench_unpickles_nothing_in_the_folder_that_it_is_given(
    journal, no_unpickling, tmp_path
):
    np.savetxt(tmp_path / "mine.csv", np.arange(20).reshape(10, 2), delimiter=",", header="a,b")
    np.savez(tmp_path / "theirs.npz", a=np.array([{}], dtype=object))
    words = ("--policies", "r-sr", "--budgets", 2, "--draws", 2, "--quiet")
    assert "theirs.npz" in command("bench", tmp_path, *words)


def test_with_skops_a_race_on_this_machine_unpickles_nothing(tmp_path, no_unpickling):
    file, given = tmp_path / "race.db", learners(checkpoint_format="skops")
    first = race(given, 20, journal=file, progress=False, runner=LocalRunner(checkpoint_every=1))
    again = resume(file, given, progress=False)
    assert again.name == first.name and again.score == first.score
    assert not list(tmp_path.rglob("*.pickle"))


def test_every_file_that_has_to_do_with_pickles_is_in_the_list():
    listed = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "security.md").read_text()))
    found = {
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*.py")
        if PICKLES.search(file.read_text(encoding="utf-8"))
    }
    assert listed == found
