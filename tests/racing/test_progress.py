"""What is shown while a race runs: plain lines, the live table, nothing; and Ctrl-C meanwhile."""

import io
import os
import signal
import time
from functools import partial
from itertools import count, repeat

import pytest
from rich.console import Console
from toys import Counter, curve, quiet

from latebloomer import LocalRunner, race
from latebloomer.errors import SettingError
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.racing import progress as progress_module
from latebloomer.racing.progress import WIDTH, Progress, sparkline, table
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.racing.training_share import plan_in_words
from latebloomer.session import events
from latebloomer.session.events import PullStarted, ScoreReported

TWO = {"a": partial(repeat, 1), "b": partial(repeat, 2)}
FAILS = {"fails": curve(3, 0.1, fail=2), "fails too": curve(3, 0.1, fail=2)}


def show(names=("a", "b", "c"), mode="live"):
    names = tuple(names)
    settings = Settings(policy=make_policy("r-sr"), budget=20 * len(names))
    state = RaceState(events.Created("race", settings.as_dict(), names))
    progress = Progress(state, True)
    progress.mode = mode
    return progress, state


def drawn(progress, **size):
    console = Console(file=io.StringIO(), **{"width": 100} | size)
    console.print(table(progress, console.size))
    return console.file.getvalue()


def report(progress, state, *scores):
    for told in scores:
        state.apply(told)
        progress.on_event(told)


def test_silent_means_silent(capfd):
    quiet(TWO, 30)
    assert capfd.readouterr() == ("", "")


def test_plain_lines_where_there_is_no_terminal(capfd):
    learners = {k: partial(repeat, i) for i, k in enumerate("abc")}
    race(learners | FAILS, 75, journal=None)
    out, err = capfd.readouterr()
    assert out == "" and "\x1b" not in err
    lines = err.splitlines()
    assert lines[0].startswith("Racing 5 learners with policy foresight")  # the plan comes first
    assert "fails failed: pull 2 failed twice: RuntimeError: boom" in lines
    assert any(line.startswith("a: dropped at race pull ") for line in lines)
    assert any(line.startswith("Keep c: ") for line in lines)


def test_a_long_race_says_now_and_then_who_leads(capfd, monkeypatch):
    monkeypatch.setattr(progress_module, "EVERY", 0.0)
    race(TWO, 10, journal=None, maximize=False)
    err = capfd.readouterr().err
    assert "pull 5 of 10: a leads with score 1; about 0 s left" in err


def test_the_table_has_a_line_per_learner():
    progress, state = show()
    with progress.shown():
        for n in range(1, 6):
            report(progress, state, *(ScoreReported(arm, arm + n / 10) for arm in range(3)))
        state.apply(events.LearnerLeft(0, events.FAILED))
        progress._draw()
        shown = drawn(progress)
    assert "pull 15 of 60 · phase 1 of 2" in shown
    rows = {line.split()[0]: line for line in shown.splitlines()[2:]}
    assert set(rows) == set("abc") and "failed" in rows["a"] and "leading" in rows["c"]
    assert "▁" in rows["a"] and "█" in rows["c"] and " 5 " in rows["b"]


def test_names_are_cut_and_of_many_learners_the_best_are_shown():
    progress, _ = show(f"a learner with a name that is long, of number {k}" for k in range(60))
    with progress.shown():
        pass
    lines = [line.rstrip() for line in drawn(progress, width=80, height=24).splitlines()]
    assert len(lines) < 24 and max(map(len, lines)) <= 80 and lines[-1] == "... 40 more"
    assert lines[2].startswith("a lea…mber 0 ")


@pytest.mark.parametrize("policy", REGISTRY.values(), ids=REGISTRY)
def test_the_plan_has_at_most_five_lines_beside_the_journal(policy):
    for arms, budget in ((2, 40), (40, 400), (300, 3000)):
        plan = policy().describe(arms, budget)
        assert len(plan_in_words(plan, "auto", 20).splitlines()) <= 5


def test_the_verdict_is_left_to_the_caller_who_asks_for_that(capfd):
    race(TWO, 20, journal=None, progress="running")
    said = capfd.readouterr().err
    assert "a: dropped at race pull 20" in said and "Keep" not in said
    with pytest.raises(SettingError, match="progress='loud', but"):
        race(TWO, 20, journal=None, progress="loud")


def test_a_verdict_has_at_most_twelve_lines_and_says_where_the_rest_is():
    names = [f"{k} is a learner with a long name " * 3 for k in range(40)]
    learners = {name: partial(repeat, i) for i, name in enumerate(names)}
    verdict = quiet(learners | FAILS, 2000, winner_share=0.3)
    lines = str(verdict).splitlines()
    assert len(lines) == 12 and lines[0].startswith(f"Keep {names[-1]}: score ")
    hidden = f"Not shown: 37 learners, {len(verdict.warnings)} warnings. See "
    assert lines[-1] == f"{hidden}details() of this verdict"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress_module, "LONG", 0.0)
    monkeypatch.setattr(progress_module, "TICK", 0.001)
    monkeypatch.setattr(progress_module, "EVERY", 0.0)


class Late(Counter):
    """A learner whose third pull ends when somebody was told that it is waited for."""

    def __init__(self, gate):
        super().__init__()
        self.gate = gate

    def pull(self):
        if self.n == 2:
            self.gate.read_text()  # of a pipe: waits until it is written to
        return super().pull()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("options", [{}, {"isolate": True}, {"max_in_memory": 1}], ids=str)
def test_a_long_pull_says_whom_the_race_waits_for(tmp_path, monkeypatch, options):
    gate, said = tmp_path / "gate", []
    os.mkfifo(gate)

    def say(self, text):
        if text == "waiting for net (its pull 3)" and text not in said:
            gate.write_text("go")
        said.append(text)

    monkeypatch.setattr(Progress, "say", say)
    learners = {"net": lambda: Late(gate), "b": Counter}
    assert race(learners, 20, journal=None, runner=LocalRunner(**options)).spent == 20
    assert "waiting for net (its pull 3)" in said


def test_lines_do_not_speak_of_pulls_that_are_as_long_as_the_learners_others():
    (progress, state), said, now = show(mode="lines"), [], time.monotonic()
    progress.say = said.append
    with progress.shown():
        state.seconds[0] = 60.0
        progress._printed = now - 100
        progress._long_pull(PullStarted(0, 2, now - 100))  # its first took 60 s
        assert not said
        progress._long_pull(PullStarted(0, 2, now - 130))
        progress._long_pull(PullStarted(0, 3, now - 130))  # not so soon after the last line
    assert said == ["waiting for a (its pull 2)"]


def test_the_live_table_says_whom_it_waits_for_until_the_pull_is_made():
    progress, state = show()
    with progress.shown():
        progress.on_event(events.Waiting((1,)))
        assert " · waiting for b (its pull 1)" in drawn(progress)
        report(progress, state, ScoreReported(0, 0.5), ScoreReported(1, 0.5))
        assert progress.waiting == ""


def test_a_race_that_is_replanned_all_the_time_prints_that_now_and_then():
    (progress, state), said = show(mode="lines"), []
    progress.say = said.append
    report(progress, state, *(events.BudgetReplanned(budget, budget) for budget in (70, 80, 90)))
    assert said == ["time left: about 70 pulls"]


def test_a_curve_of_any_length_is_short():
    for points in (3, WIDTH, WIDTH + 1, 2 * WIDTH):
        line = sparkline(range(points), 0, points - 1)
        assert min(points, WIDTH / 2) <= len(line) <= WIDTH
        assert line == "".join(sorted(line)) and line[-1] == "█"


@pytest.mark.usefixtures("ignored_ctrl_c")
def test_a_race_keeps_an_ignored_ctrl_c_ignored():
    def pressed():
        for n in count(1):
            os.kill(os.getpid(), signal.SIGINT)
            yield float(n)

    verdict = quiet({"a": pressed, "b": partial(repeat, 0)}, 20)
    assert verdict.spent == 20 and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
