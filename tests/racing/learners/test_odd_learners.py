"""One odd learner never ends a race: whatever it returns, raises or is called, it alone fails."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.policies.registry import make_policy
from latebloomer.racing.displays.live_table import LiveTable
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created
from tests.helpers.learners import rising

GOOD = {"a": rising(0.9), "b": rising(0.7)}


def without(method, base=object):
    """A thing whose method fails."""
    return type("Odd", (base,), {method: lambda self: 1 / 0})()


class Learner:
    """Two good pulls, then what it was made for."""

    def __init__(self, then):
        self.n, self.then = 0, then

    def pull(self):
        self.n += 1
        return 0.1 * self.n if self.n < 3 else self.then()


def raises(error):
    def then():
        raise error

    return then


ODD = {
    "a score whose float fails": lambda: without("__float__"),
    "a score beyond any number": lambda: 10**5000,
    "a score that cannot be shown": lambda: without("__repr__"),
    "a complex score": lambda: np.complex64(0.5 + 0.5j),
    "text": lambda: "0.5",
    "nothing": lambda: None,
    "not a number": lambda: float("nan"),
    "an error that cannot be shown": raises(without("__str__", Exception)),
    "an error with half a character": raises(ValueError("half \udc80 a character")),
    "an error with control characters": raises(ValueError("red \x1b[31m text")),
    "an exit": lambda: sys.exit(0),
}


@pytest.mark.parametrize("what", ODD)
def test_it_is_that_learners_failure_and_the_race_goes_on(path, what):
    learners = GOOD | {"odd": lambda: Learner(ODD[what])}
    verdict = race(learners, 40, journal=path, progress=False)
    assert verdict.spent == 40 and verdict.name == "a"
    assert verdict["odd"].state == "failed" and verdict["odd"].pulls == 2
    assert verdict["odd"].why.startswith("pull 3 failed twice: ")
    assert verdict["odd"].why.isprintable()
    assert read_verdict(path).summary() == verdict.summary()
    assert resume(path, learners, progress=False).summary() == verdict.summary()


def test_an_exit_is_a_warning_in_a_save_and_a_failure_while_a_learner_is_built(tmp_path):
    class Odd(Learner):
        save = staticmethod(lambda folder: sys.exit(0))
        load = staticmethod(lambda folder: None)

    learners = GOOD | {"odd": lambda: Odd(lambda: 0.5), "unbuilt": lambda: sys.exit(3)}
    saving = LocalRunner(checkpoint_every=2, timeout=1e12)  # longer than any wait
    verdict = race(learners, 40, journal=tmp_path / "r.db", progress=False, runner=saving)
    assert verdict.spent == 40
    assert verdict["unbuilt"].why == "pull 1 failed twice: SystemExit: 3"
    assert any("odd: could not be saved (SystemExit: 0)" in w for w in verdict.warnings)


NAMES = ["net[relu]", "net[tanh]", "[/bold]", ":smile:", "bell\x07", "red\x1b[31m", "half\udc80"]


def test_names_are_shown_as_they_are_without_control_characters(path, capfd):
    learners = {name: rising(0.1 * (k + 1)) for k, name in enumerate(NAMES)}
    verdict = race(learners, 100, journal=path)
    assert verdict.name in NAMES and read_verdict(path).summary() == verdict.summary()
    said = capfd.readouterr().err
    for text in (said, verdict.details(), read_verdict(path).details()):
        assert "net[relu]" in text and "net[tanh]" in text and "[/bold]" in text
        assert ":smile:" in text and "bell\\x07" in text and "half\\udc80" in text
        assert "\x07" not in text and "\x1b" not in text


def test_the_live_table_shows_them_as_they_are():
    settings = Settings(policy=make_policy("r-sr"), budget=100)
    progress = LiveTable(RaceState(Created("race", settings.as_dict(), tuple(NAMES))))
    console = Console(file=io.StringIO(), width=120)
    with progress.shown():
        progress.say("[/bold] says :smile:")
        console.print(progress.table(console.size))
    shown = console.file.getvalue()
    for name in ("net[relu]", "net[tanh]", "[/bold]", ":smile:", "bell\\x07", "half\\udc80"):
        assert name in shown


class Detailed:
    """Reports one dict that it changes in each pull, also in a pull that fails."""

    def __init__(self, details, fails_at=0):
        self.n, self.score_details, self.fails_at = 0, details, fails_at

    def pull(self):
        self.n += 1
        self.score_details["epoch"] = np.int64(self.n)
        if self.n >= self.fails_at > 0:
            raise ValueError("diverged")
        return self.n / (self.n + 5)


def test_details_of_a_score_are_those_of_its_pull_as_the_journal_has_them(path):
    learners = {"fails": lambda: Detailed({}, fails_at=9), "other": lambda: Detailed({})}
    verdict = race(learners, 40, journal=path, policy="rr", progress=False)
    fails = verdict.learners[0]
    assert fails.details == {"epoch": 8} and type(fails.details["epoch"]) is int
    assert read_verdict(path).learners[0].details == fails.details


def test_details_that_no_journal_takes_fail_the_pull_and_not_the_race(path):
    learners = {"classes": lambda: Detailed({0: 0.5, 1: 0.7}), "other": lambda: Detailed({})}
    verdict = race(learners, 20, journal=path, progress=False)
    assert (
        "score_details has the key 0, but its keys must be text"
        in verdict.learners[0].departed_why
    )
    assert verdict.name == "other" and read_verdict(path).pulls["other"] == 20


class Counts:
    def __init__(self):
        self.n = 0

    def pull(self):
        self.n += 1
        return self.n / (self.n + 5)


def counts():
    one = Counts()
    while True:
        yield one.pull()


@pytest.mark.parametrize("build", [Counts, counts])
def test_functions_that_return_one_object_for_two_names_are_found_out(build):
    """Else it is trained twice per sweep, and wins over itself."""
    shared = build()
    learners = {"one": lambda: shared, "two": lambda: shared, "other": rising(0.3)}
    verdict = race(learners, 30, journal=None, progress=False)
    assert verdict.pulls["two"] == 0 and verdict.curve("one")[1] == pytest.approx(2 / 7)
    said = "its function returned the same object as for another learner of this race"
    assert said in verdict.learners[1].departed_why


def test_a_function_may_return_the_same_object_again_and_in_a_later_race():
    shared = Counts()
    for _ in range(2):
        verdict = race({"other": rising(0.3), "one": lambda: shared}, 20, journal=None,
                       policy="rr", progress=False)  # fmt: skip
        assert verdict.pulls["one"] == 10
    late = race({"one": lambda: shared, "other": rising(0.3)}, 20, journal=None, policy="rr",
                progress=False)  # fmt: skip
    assert late.pulls["one"] == 10


def test_an_object_that_raced_before_is_not_taken_for_a_new_one_in_silence():
    learners = {"one": Counts(), "other": rising(0.3)}
    first, second = (race(learners, 20, journal=None, progress=False) for _ in range(2))
    said = (
        "one: the object has had 10 pulls in an earlier race, and its scores continue from there"
    )
    assert not first.warnings and len(second.warnings) == 1 and said in second.warnings[0]
