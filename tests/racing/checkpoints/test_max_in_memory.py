"""Few learners in memory: the same verdict."""

import weakref
from itertools import pairwise

import pytest

from latebloomer import race, read_verdict, resume
from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.checks.check_runner import Rising
from latebloomer.racing.runners.local import LocalRunner
from tests.helpers.journals import rows

ALIVE = weakref.WeakSet()
MOST = [0]


class Saving(Rising):
    def __init__(self, *numbers):
        super().__init__(*numbers)
        self.count()

    def count(self):
        ALIVE.add(self)
        MOST[0] = max(MOST[0], len(ALIVE))

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.count()


class Pickled(Saving):
    """Without save and load; can be pickled."""

    save = load = None


def of(kind, *numbers):
    return lambda: kind(*numbers)


LEARNERS = {
    "late": of(Saving, 1.0, 20.0), "a": of(Pickled, 0.8, 6.0), "b": of(Saving, 0.6, 1.0),
    "c": of(Pickled, 0.5, 1.0), "d": of(Saving, 0.4, 3.0), "e": of(Pickled, 0.3, 2.0),
}  # fmt: skip
ODD = LEARNERS | {"fails": of(Pickled, 0.7, 2.0, 5), "ends": of(Saving, 0.5, 2.0, 0, 7)}


def run(learners, **settings):
    settings = {"policy": "r-sr", "budget": 120, "journal": None, "progress": False} | settings
    return race(learners, **settings)


def curves(verdict):
    return {name: verdict.curve(name) for name in verdict.pulls}


def most_alive():
    """How many were in memory at the same time since the last time that this was asked."""
    most, MOST[0] = MOST[0], 0
    ALIVE.clear()
    return most


def is_same(few, calm):
    return few.summary() == calm.summary() and curves(few) == curves(calm)


@pytest.mark.parametrize("policy", ["r-sr", "auto", "sh", "rr", "sr"])
@pytest.mark.parametrize("max_in_memory", [1, 2, 5])
@pytest.mark.parametrize("learners", [LEARNERS, ODD])
def test_the_verdict_is_the_same_with_few_in_memory(policy, max_in_memory, learners, path):
    calm = run(learners, policy=policy)
    most_alive()
    limited = LocalRunner(max_in_memory=max_in_memory)
    few = run(learners, policy=policy, runner=limited, journal=path)
    assert most_alive() <= max_in_memory and is_same(few, calm)
    assert few.learner.n == few.pulls[few.name]
    assert read_verdict(path).summary() == calm.summary()


@pytest.mark.parametrize("settings", [{"isolate": True}, {"timeout": 60}])
def test_it_goes_with_other_settings(settings):
    calm = run(ODD, runner=LocalRunner(**settings), winner_share=0.4)
    most_alive()
    few = run(ODD, runner=LocalRunner(max_in_memory=2, **settings), winner_share=0.4)
    assert most_alive() <= 2 and is_same(few, calm) and few.learner.n == few.pulls[few.name]


def test_a_learner_makes_its_pulls_of_a_phase_in_a_row(path):
    run(LEARNERS, journal=path, runner=LocalRunner(max_in_memory=1))
    arms = [arm for (arm,) in rows(path, "SELECT arm FROM pulls ORDER BY t")]
    saves = len(rows(path, "SELECT id FROM events WHERE kind = 'Saved'"))
    turns = 1 + sum(a != b for a, b in pairwise(arms))
    phases = len(LEARNERS)  # r-sr drops one after each
    assert turns <= sum(range(1, phases + 1)) and saves <= turns + 1


@pytest.mark.parametrize("again", [None, 1, 3])
def test_it_is_resumed_with_another_number_or_without(again, tmp_path, cut):
    path, calm = tmp_path / "race.db", run(ODD)
    cut(57, lambda: run(ODD, journal=path, runner=LocalRunner(max_in_memory=2)))
    more = resume(path, ODD, progress=False, runner=LocalRunner(max_in_memory=again))
    assert is_same(more, calm)


def test_an_extension_with_few_in_memory(tmp_path):
    calm, few = tmp_path / "calm.db", tmp_path / "few.db"
    run(ODD, journal=calm)
    run(ODD, journal=few, runner=LocalRunner(max_in_memory=2))
    add = {"new": of(Pickled, 1.1, 12.0)}
    want = resume(calm, ODD, budget=300, add=add, progress=False)
    most_alive()
    limited = LocalRunner(max_in_memory=2)
    have = resume(few, ODD, budget=300, add=add, progress=False, runner=limited)
    assert most_alive() <= 2 and is_same(have, want)


def generator(seed):
    yield 0.5


def hidden_generator(seed):
    return (n / 9 for n in range(1, 1000))


@pytest.mark.parametrize(
    "most, settings, text",
    [
        (0, {}, "max_in_memory=0, but max_in_memory must be an integer >= 1"),
        (2.0, {}, "max_in_memory=2.0"),
        (True, {}, "max_in_memory=True"),
        (2, {"policy": "r-ucbe"}, "decides after every pull"),
        (2, {"policy": "rest-sure"}, "decides after every sweep"),
        (2, {"seconds": 1, "budget": None}, "max_in_memory=2 cannot be combined with seconds=1"),
        (2, {"odd": Saving(0.5, 1.0)}, "is an object, which is in memory"),
        (2, {"odd": generator}, "cannot be saved and released (it is a generator)"),
    ],
)
def test_it_is_refused_before_a_file_is_made(most, settings, text, tmp_path):
    settings = dict(settings)
    learners = LEARNERS | ({"odd": settings.pop("odd")} if "odd" in settings else {})
    with pytest.raises((SettingError, LearnerError)) as said:
        limited = LocalRunner(max_in_memory=most)
        run(learners, journal=tmp_path / "r.db", runner=limited, **settings)
    assert text in str(said.value) and not list(tmp_path.iterdir())
    if learners.get("odd") is generator:  # enough room for all is no limit
        assert run(learners, runner=LocalRunner(max_in_memory=7)).spent == 120


def test_what_cannot_be_pickled_stops_the_race_and_is_resumed_without(tmp_path):
    path, learners = tmp_path / "race.db", LEARNERS | {"odd": hidden_generator}
    with pytest.raises(LearnerError, match=r"'odd' cannot be saved .*omit max_in_memory"):
        run(learners, journal=path, runner=LocalRunner(max_in_memory=1))
    more = resume(path, learners, progress=False, runner="local")
    assert more.summary() == run(learners).summary()


def test_a_learner_that_cannot_be_unpickled_here_is_trained_again(tmp_path, cut, monkeypatch):
    path, calm = tmp_path / "race.db", run(LEARNERS)
    cut(57, lambda: run(LEARNERS, journal=path, runner=LocalRunner(max_in_memory=1)))
    monkeypatch.setattr(Pickled, "__setstate__", lambda self, state: 1 / 0)
    more = resume(path, LEARNERS, progress=False)
    assert is_same(more, calm)
    assert any("could not be unpickled (ZeroDivisionError" in text for text in more.warnings)
