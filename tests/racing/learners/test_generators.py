"""Generators: the model of the one that won is kept; one without a model is told of in time."""

import pickle
from itertools import count

import numpy as np
import pytest

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.errors import AllFailed
from latebloomer.racing.checkpoints import restored_learners
from latebloomer.racing.checkpoints.storage import Folder
from tests.helpers.journals import rows
from tests.helpers.learners import curve


class Model:
    def __init__(self, best):
        self.best, self.n = best, 0


BUILT = []  # the pulls of every generator, in this process


def learner(best, model=Model):
    def scores():
        made = model(best)
        for made.n in count(1):
            BUILT.append(best)
            yield best * made.n / (made.n + 3), made

    return scores


BARE = {"a": curve(3, 0.5), "b": curve(3, 0.9)}  # generators without a model
LEARNERS = {"a": learner(0.5), "b": learner(0.9)}


@pytest.fixture(autouse=True)
def forget():
    BUILT.clear()


def run(path, learners=LEARNERS, **settings):
    return race(learners, 30, journal=path, progress=False, **settings)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_finished_race_gives_the_winner_without_training_it_again(tmp_path, capsys, isolate):
    verdict = run(tmp_path / "race.db", runner=LocalRunner(isolate=isolate))
    assert (verdict.learner.best, verdict.learner.n) == (0.9, verdict.pulls["b"])
    BUILT.clear()
    again = resume(tmp_path / "race.db", LEARNERS)
    assert "Every learner is restored from its checkpoint" in capsys.readouterr().err
    assert BUILT == []
    assert (again.learner.best, again.learner.n) == (0.9, verdict.pulls["b"])
    assert again.learner is not verdict.learner and again.summary() == verdict.summary()
    assert again.warnings == verdict.warnings == read_verdict(tmp_path / "race.db").warnings


def test_in_the_midst_of_a_race_a_generator_is_trained_again(tmp_path, cut):
    whole = run(tmp_path / "whole.db")
    cut(12, lambda: run(tmp_path / "race.db"))
    BUILT.clear()
    again = resume(tmp_path / "race.db", LEARNERS, progress=False)
    assert len(BUILT) == 30 and again.summary() == whole.summary()


def test_what_lies_on_disk_is_the_winners_model_alone(tmp_path):
    verdict = run(tmp_path / "race.db")
    (file,) = (f for f in (tmp_path / "race.db.checkpoints").rglob("*") if f.is_file())
    place = f"0001-model/{verdict.pulls['b']}"
    assert file == tmp_path / "race.db.checkpoints" / place / "model.pickle"
    assert rows(tmp_path / "race.db", "SELECT arm FROM events WHERE kind = 'ModelKept'") == [(1,)]


def test_a_model_that_is_not_the_one_written_is_not_loaded(tmp_path):
    verdict = run(tmp_path / "race.db")
    (file,) = (tmp_path / "race.db.checkpoints").rglob("model.pickle")
    file.write_bytes(pickle.dumps("something else"))
    BUILT.clear()
    again = resume(tmp_path / "race.db", LEARNERS, progress=False)
    assert again.learner.n == verdict.learner.n == len(BUILT)
    noted = read_verdict(tmp_path / "race.db").warnings
    assert any("was not loaded (the file is missing or another one)" in text for text in noted)
    BUILT.clear()
    assert resume(tmp_path / "race.db", LEARNERS, progress=False).learner.n == verdict.learner.n
    assert BUILT == []  # it was kept again


class Cannot(Model):
    def __reduce__(self):
        raise TypeError("never")


class CannotCome(Model):
    def __setstate__(self, state):
        raise ValueError("not here")


@pytest.mark.parametrize("model", [Cannot, CannotCome])
def test_a_model_that_cannot_be_pickled_or_unpickled_is_trained_again(tmp_path, model):
    learners = {"a": learner(0.5), "b": learner(0.9, model)}
    verdict = run(tmp_path / "race.db", learners)
    assert (tmp_path / "race.db.checkpoints").exists() == (model is CannotCome)
    assert verdict.warnings == ()
    BUILT.clear()
    assert resume(tmp_path / "race.db", learners, progress=False).learner.n == len(BUILT) > 0
    noted = read_verdict(tmp_path / "race.db").warnings
    text = "was not loaded (ValueError: not here): it is trained again"
    assert any(text in one for one in noted) == (model is CannotCome)


def test_nothing_is_kept_of_a_race_in_memory_or_of_a_bare_generator(tmp_path):
    assert run(None).learner.best == 0.9
    run(tmp_path / "race.db", BARE)
    assert not (tmp_path / "race.db.checkpoints").exists()


def test_a_bare_generator_in_a_process_of_its_own_is_told_of_at_its_first_pull(tmp_path):
    learners = BARE | {"c": learner(0.7)}
    verdict = run(tmp_path / "race.db", learners, runner="isolated")
    query = "SELECT arm, t FROM changes WHERE kind = 'WarningNoted' AND why LIKE"
    noted = rows(tmp_path / "race.db", f"{query} 'it yields only scores%'")
    assert noted == [(0, 1), (1, 2)]  # after the first pull of each, and not again
    assert verdict.learner is None


@pytest.mark.parametrize("second", [0.85, np.float32(0.85), np.array(0.85)])
def test_a_second_score_is_not_taken_for_a_model(second):
    def both():
        yield 0.99, second

    with pytest.raises(AllFailed, match=r"two numbers: yield the validation score alone, or \(sc"):
        race({"a": both, "b": both}, 20, journal=None, progress=False)


def test_what_is_a_model(tmp_path):
    class Learner:
        def pull(self):
            return 0.5

        def __iter__(self):
            return self

        def __next__(self):
            return 0.5

    storage = Folder(str(tmp_path))
    for thing, kept in [(Model(1), True), ([1, 2], True), (iter([1]), False), (None, False)]:
        assert (restored_learners.keep_model(storage, 0, 1, thing) is not None) == kept
    assert restored_learners.keep_model(storage, 0, 1, Learner()) is None
    assert not restored_learners.is_bare(Learner())
