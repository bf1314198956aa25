"""Learners share a process, not its random numbers, its streams or its turns."""

import contextlib
import io
import json
import random
import sys
import threading

import numpy as np
import pytest

from latebloomer import LocalRunner, check_learner, race, resume
from latebloomer.racing.runners import turns
from latebloomer.racing.runners.process_state import NUMBERS

DRAWS = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": np.random.random,
    "numpy's Gaussian, which it draws in pairs": np.random.randn,
}


def noisy(draw, seeded):
    def scores(seed):
        if seeded:
            random.seed(seed)
            np.random.seed(seed)
        while True:
            yield draw()

    return scores


def curves(learners, **settings):
    verdict = race(learners, 25, journal=None, progress=False, **settings)
    return {name: verdict.curve(name) for name in learners}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("seeded", [True, False])
def test_curves_depend_neither_on_the_order_nor_on_the_runner(draw, seeded):
    learners = {name: noisy(DRAWS[draw], seeded) for name in ("one", "two", "three")}
    ways = [
        curves(learners),
        curves(dict(reversed(learners.items()))),
        curves(learners, runner="isolated"),
        curves(learners, runner=LocalRunner(timeout=60)),
    ]
    for name in learners:
        shared = min(len(way[name]) for way in ways)
        assert shared >= 5 and len({tuple(way[name][:shared]) for way in ways}) == 1
    assert ways[0]["one"][:5] != ways[0]["two"][:5]


def test_a_learner_that_is_built_again_draws_the_same_numbers():
    failed = []

    class Fails:
        def __init__(self):
            self.n, self.first = 0, random.random()

        def pull(self):
            self.n += 1
            if self.n == 4 and not failed:
                failed.append(self.first)
                raise RuntimeError("once")
            return random.gauss(self.first, 1) + np.random.randn()

    calm = curves({"a": noisy(random.random, True), "b": Fails})  # which fails here
    again = curves({"a": noisy(random.random, True), "b": Fails})
    assert failed and calm["b"] == again["b"]


def test_the_programs_own_numbers_are_as_they_were():
    random.seed(1)
    np.random.seed(1)
    expected = random.getstate(), np.random.get_state()[1].tolist()
    curves({name: noisy(DRAWS["numpy"], True) for name in "ab"})
    assert (random.getstate(), np.random.get_state()[1].tolist()) == expected


class Seeding:
    """Seeds the global generators when it is built, and says then how long its training is."""

    full_steps = property(lambda self: 30)

    def __init__(self):
        random.seed(1)
        np.random.seed(1)

    def pull(self):
        return random.random()

    def save(self, folder):
        raise TypeError("cannot be pickled either")

    load = __reduce__ = save


@pytest.mark.parametrize("runner", ["local", "isolated"])
def test_what_is_built_before_or_after_the_race_leaves_the_programs_numbers(runner):
    """To ask how long the training is, and to hand over the winner from its process."""
    random.seed(5)
    np.random.seed(5)
    expected = random.getstate(), np.random.get_state()[1].tolist()
    learners = {"a": lambda: Seeding(), "b": lambda: Seeding()}
    race(learners, trainings=1, journal=None, progress=False, runner=runner)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == expected


class Drawing:
    """Saves what it has trained, and leaves its random numbers to the race."""

    def __init__(self):
        self.n, self.last = 0, 0.0

    def pull(self):
        self.n += 1
        self.last = self.n + random.gauss(0, 1) + np.random.randn()
        return self.last

    def evaluate(self):  # which draws, too
        random.random()
        return self.last

    def save(self, folder):
        np.random.random()
        (folder / "state.json").write_text(json.dumps([self.n, self.last]))

    def load(self, folder):
        random.random()
        self.n, self.last = json.loads((folder / "state.json").read_text())


class DrawingElsewhere(Drawing):
    """Has another of NumPy's generators in force."""

    def __init__(self):
        super().__init__()
        np.random.set_bit_generator(np.random.PCG64(4))


DRAWING = {name: Drawing for name in "abc"}


@pytest.mark.parametrize("learner", [Drawing, DrawingElsewhere])
@pytest.mark.parametrize("saves", [{"checkpoint_every": 1}, {"max_in_memory": 1}, {}])
def test_a_checkpoint_holds_the_random_numbers_of_its_learner(path, cut, learner, saves):
    """Neither saving, nor loading, nor how often that happens changes a score."""
    learners = dict.fromkeys("abc", learner)
    settings = {"policy": "r-sr", "progress": False, "seed": 1}
    calm = race(learners, 60, journal=None, **settings)
    runner = LocalRunner(**saves)
    cut(31, lambda: race(learners, 60, journal=path, runner=runner, **settings))
    again = resume(path, learners, progress=False, runner=LocalRunner(checkpoint_every=7))
    assert all(calm.curve(name) == again.curve(name) for name in learners)
    assert list(path.parent.glob(f"*.checkpoints/*/*/{NUMBERS}"))


def test_a_learner_that_draws_from_global_generators_is_checked_as_in_a_race():
    assert check_learner(Drawing).exact
    assert check_learner(lambda: (random.random() for _ in range(9))).exact

    class Own(Drawing):
        def __init__(self):
            super().__init__()
            self.rng = np.random.default_rng(3)

        def pull(self):
            return self.rng.random()

    assert not check_learner(Own).exact


def test_a_callback_draws_from_the_programs_own_numbers():
    drawn = []

    def draw(event, view):
        drawn.append((random.random(), np.random.random()))

    def drawn_alone():
        random.seed(7)
        np.random.seed(7)
        return [(random.random(), np.random.random()) for _ in drawn]

    learners = {name: noisy(np.random.randn, False) for name in "ab"}
    for runner in ("local", "isolated", LocalRunner(timeout=60)):
        alone = curves(learners, runner=runner)
        drawn.clear()
        random.seed(7)
        np.random.seed(7)
        assert curves(learners, runner=runner, callbacks=[draw]) == alone
        assert drawn == drawn_alone()


# --- in several threads ---


class Reads:
    """Lets other threads run in the middle of each pull."""

    def __init__(self):
        self.n = 0

    def pull(self):
        self.n += 1
        threading.Event().wait(1e-4)
        return self.n / 50 + random.gauss(0, 1) + np.random.randn()


READS = {name: Reads for name in "abc"}


def in_threads(count, call):
    found = [None] * count

    def keep(place):
        found[place] = call()

    threads = [threading.Thread(target=keep, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("timeout", [None, 60])
def test_races_in_several_threads_are_those_of_one(timeout):
    def scores():
        return curves(READS, runner=LocalRunner(timeout=timeout), callbacks=[lambda *_: None])

    assert in_threads(4, scores) == [scores()] * 4


class OtherRaceAfterPull:
    """Lets another race in a thread call its learners as soon as it can, after each pull."""

    def __init__(self):
        self.others = []

    def pull(self):
        return random.gauss(0, 1) + np.random.randn()

    @property
    def score_details(self):
        called = threading.Event()
        other = threading.Thread(target=race_that_notes, args=(called,))
        other.start()
        self.others.append(other)
        called.wait(0.02)  # it is called later: this race has the turn until the pull is counted
        return {}


def race_that_notes(called):
    def scores():
        called.set()
        yield random.random()

    race({"one": scores, "other": scores}, 2, policy="rr", journal=None, progress=False)


def test_no_other_thread_calls_learners_before_a_pull_is_counted():
    def noted():
        learner = OtherRaceAfterPull()
        learners = {"disturbs": learner, "other": noisy(random.random, False)}
        verdict = race(learners, 8, policy="rr", journal=None, progress=False)
        for other in learner.others:
            other.join()
        return verdict.curve("disturbs")

    class Calm(OtherRaceAfterPull):
        score_details = None

    calm = race({"disturbs": Calm(), "other": noisy(random.random, False)}, 8, policy="rr",
                journal=None, progress=False)  # fmt: skip
    assert noted() == calm.curve("disturbs")


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_learner_may_run_a_race_of_its_own(timeout):
    """As a search does that is a learner; also in the thread that watches its time."""

    class Racing(Reads):
        def pull(self):
            inner = race(READS, 9, journal=None, progress=False, policy="rr", seed=self.n)
            return super().pull() + inner.score

    outer = {"a": Racing, "b": Reads}
    ways = [curves(outer, runner=runner) for runner in (LocalRunner(timeout=timeout), "isolated")]
    assert ways[0] == ways[1]


def test_a_call_that_is_abandoned_does_not_keep_the_turn():
    released = threading.Event()

    def stuck():
        yield 0.5
        released.wait(60)
        yield 0.5

    def steady():
        while True:
            yield 0.4

    learners = {"stuck": stuck, "steady": steady}
    runner = LocalRunner(timeout=0.05, retries=0)
    verdict = race(learners, 20, journal=None, progress=False, runner=runner)
    released.set()
    assert verdict.name == "steady" and turns.TURNS.holder is None


def test_a_race_that_waits_for_long_says_why(monkeypatch):
    """The learner waits for a race in another thread, which waits until it is called no more."""
    monkeypatch.setattr(turns, "PATIENCE", 0.01)
    warned = threading.Event()
    monkeypatch.setattr(turns.warnings, "warn", lambda text, *_, **__: (
        warned.set() if 'runner="isolated"' in text else None))  # fmt: skip
    threads = []

    def waits():
        threads.append(threading.Thread(target=curves, args=(READS,)))
        threads[0].start()
        assert warned.wait(60)
        yield from (0.5 for _ in range(99))

    curves({"waits": waits, "b": Reads})
    threads[0].join()


# --- the standard streams ---


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_learner_that_silences_itself_silences_no_other(timeout, capsys):
    heard = {}

    def quiet(name):
        def scores():
            own = heard[name] = io.StringIO()
            with contextlib.redirect_stdout(own), contextlib.redirect_stderr(own):
                for n in range(1, 99):
                    print(name)
                    yield n / (n + 5)

        return scores

    def loud():
        for n in range(1, 99):
            print("loud")
            yield n / (n + 9)

    streams = sys.stdout, sys.stderr
    learners = {"a": quiet("a"), "b": quiet("b"), "loud": loud}
    verdict = race(learners, 30, journal=None, progress=False, runner=LocalRunner(timeout=timeout))
    assert (sys.stdout, sys.stderr) == streams
    assert capsys.readouterr().out.split() == ["loud"] * verdict.pulls["loud"]
    assert all(heard[name].getvalue().split() == [name] * verdict.pulls[name] for name in "ab")


def test_a_learner_that_breaks_pythons_own_functions_breaks_none_of_the_races(monkeypatch):
    """The thread that calls learners used to end, and the race waited for it forever."""
    monkeypatch.setattr(random, "setstate", random.setstate)  # put back afterwards

    def breaks():
        for n in range(1, 99):
            if n == 3:
                random.setstate = None
            yield n / (n + 5)

    learners = {"breaks": breaks, "b": Drawing}
    runner = LocalRunner(timeout=60)
    assert race(learners, 20, journal=None, progress=False, runner=runner).spent == 20


def test_an_exception_in_the_thread_that_calls_learners_reaches_the_race(monkeypatch):
    from latebloomer.racing.runners.process_state import OwnStates

    def broken(self):
        raise RuntimeError("cannot be put back")

    monkeypatch.setattr(OwnStates, "leave", broken)
    with pytest.raises(RuntimeError, match="cannot be put back"):
        curves(DRAWING, runner=LocalRunner(timeout=60))
