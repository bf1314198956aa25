"""What is shown while a race runs: plain lines, the live table, nothing; and Ctrl-C meanwhile."""

import io
import os
import signal
import time
from functools import partial
from itertools import count, repeat

import pytest
from rich.console import Console

from latebloomer import LocalRunner, race
from latebloomer.errors import SettingError
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.racing import progress as progress_module
from latebloomer.racing.driver import Interrupt
from latebloomer.racing.progress import WIDTH, Progress, Trace, table
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.racing.training_share import plan_in_words
from latebloomer.session.events import (
    FAILED,
    BudgetReplanned,
    Created,
    LearnerLeft,
    PullStarted,
    ScoreReported,
    Waiting,
)


def show(names=("a", "b", "c")):
    settings = Settings(policy=make_policy("r-sr"), budget=20 * len(names))
    race = RaceState(Created("race", settings.as_dict(), tuple(names)))
    return Progress(race, True), race


def test_silent_means_silent(capfd):
    race({k: lambda: iter([0.5] * 99) for k in "abc"}, 30, journal=None, progress=False)
    assert capfd.readouterr() == ("", "")


def test_plain_lines_where_there_is_no_terminal(capfd):
    def fails():
        yield 0.1
        raise RuntimeError("boom")

    learners = {k: partial(repeat, i) for i, k in enumerate("abc")}
    race(learners | {"fails": fails}, 60, journal=None)
    out, err = capfd.readouterr()
    assert out == "" and "\x1b" not in err
    lines = err.splitlines()
    assert lines[0].startswith("Racing 4 learners with policy foresight")  # the plan comes first
    assert "fails: failed (pull 2 failed twice: RuntimeError: boom)" in lines
    assert any(line.startswith("a: dropped at race pull ") for line in lines)
    assert any(line.startswith("Keep c: ") for line in lines)


def test_a_long_race_says_now_and_then_who_leads(capfd, monkeypatch):
    monkeypatch.setattr(progress_module, "EVERY", 0.0)
    race({"a": partial(repeat, 1), "b": partial(repeat, 2)}, 10, journal=None, maximize=False)
    err = capfd.readouterr().err
    assert "pull 5 of 10: a leads with score 1; about 0 s left" in err


def test_the_table_has_a_line_per_learner():
    progress, race = show()
    progress.mode = "live"
    with progress.shown(None):
        for n in range(1, 6):
            for arm in range(3):
                told = ScoreReported(arm, arm + n / 10)
                race.apply(told)
                progress.on_event(told)
        race.apply(LearnerLeft(0, FAILED))
        progress._draw()
        console = Console(file=io.StringIO(), width=100)
        console.print(table(progress, console.size))
    shown = console.file.getvalue()
    assert "pull 15 of 60 · phase 1 of 2" in shown
    rows = {line.split()[0]: line for line in shown.splitlines()[2:]}
    assert set(rows) == set("abc") and "failed" in rows["a"] and "leading" in rows["c"]
    assert "▁" in rows["a"] and "█" in rows["c"] and " 5 " in rows["b"]


def test_names_are_cut_and_of_many_learners_the_best_are_shown():
    names = [f"a learner with a name that is long, the one of number {k}" for k in range(60)]
    progress, _ = show(names)
    progress.mode = "live"
    with progress.shown(None):
        pass
    console = Console(file=io.StringIO(), width=80, height=24)
    console.print(table(progress, console.size))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert len(lines) < 24 and max(map(len, lines)) <= 80 and lines[-1] == "... 40 more"
    assert lines[2].startswith("a lea…mber 0 ")


@pytest.mark.parametrize("policy", REGISTRY.values(), ids=REGISTRY)
def test_the_plan_has_at_most_five_lines_beside_the_journal(policy):
    for arms, budget in ((2, 40), (40, 400), (300, 3000)):
        plan = policy().describe(arms, budget)
        assert len(plan_in_words(plan, "auto", 20).splitlines()) <= 5


def test_the_verdict_is_left_to_the_caller_who_asks_for_that(capfd):
    learners = {"a": partial(repeat, 1), "b": partial(repeat, 2)}
    race(learners, 20, journal=None, progress="running")
    said = capfd.readouterr().err
    assert "a: dropped at race pull 20" in said and "Keep" not in said
    with pytest.raises(SettingError, match="progress='loud', but"):
        race(learners, 20, journal=None, progress="loud")


def test_a_verdict_has_at_most_twelve_lines_and_says_where_the_rest_is():
    def fails():
        yield 0.1
        raise RuntimeError("boom")

    names = [f"{k} is a learner with a long name " * 3 for k in range(40)]
    learners = {name: partial(repeat, i) for i, name in enumerate(names)}
    verdict = race(learners | {"fails": fails, "fails too": fails}, 2000, winner_share=0.3,
                   journal=None, progress=False)  # fmt: skip
    lines = str(verdict).splitlines()
    assert len(lines) == 12 and lines[0].startswith(f"Keep {names[-1]}: score ")
    assert lines[-1] == f"Not shown: 37 learners, {len(verdict.warnings)} warnings. See " \
                        "print(verdict.details())"  # fmt: skip


# --- a pull that is long ---


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress_module, "LONG", 0.0)
    monkeypatch.setattr(progress_module, "TICK", 0.001)
    monkeypatch.setattr(progress_module, "EVERY", 0.0)


class Late:
    """A learner whose third pull ends when somebody was told that it is waited for."""

    def __init__(self, gate):
        self.n, self.gate = 0, gate

    def pull(self):
        self.n += 1
        if self.n == 3:
            self.gate.read_text()  # of a pipe: waits until it is written to
        return float(self.n)


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


class Counter:
    def __init__(self):
        self.n = 0

    def pull(self):
        self.n += 1
        return float(self.n)


def test_lines_do_not_speak_of_pulls_that_are_as_long_as_the_learners_others():
    progress, race = show()
    said, now = [], time.monotonic()
    progress.say = said.append
    progress.mode = "lines"
    with progress.shown(None):
        race.seconds[0] = 60.0
        progress._printed = now - 100
        progress._long_pull(PullStarted(0, 2, now - 100))  # its first took 60 s
        assert not said
        progress._long_pull(PullStarted(0, 2, now - 130))
        progress._long_pull(PullStarted(0, 3, now - 130))  # not so soon after the last line
    assert said == ["waiting for a (its pull 2)"]


def test_the_live_table_says_whom_it_waits_for_until_the_pull_is_made():
    progress, race = show()
    progress.mode = "live"
    with progress.shown(None):
        progress.on_event(Waiting((1,)))
        console = Console(file=io.StringIO(), width=100)
        console.print(table(progress, console.size))
        assert " · waiting for b (its pull 1)" in console.file.getvalue()
        for arm in (0, 1):
            told = ScoreReported(arm, 0.5)
            race.apply(told)
            progress.on_event(told)
        assert progress.waiting == ""


def test_a_race_that_is_replanned_all_the_time_prints_that_now_and_then():
    progress, race = show()
    said = []
    progress.say, progress.mode = said.append, "lines"
    for budget in (70, 80, 90):
        race.apply(BudgetReplanned(budget, budget))
        progress.on_event(BudgetReplanned(budget, budget))
    assert said == ["time left: about 70 more pulls"]


def test_a_trace_of_any_length_is_short():
    trace = Trace()
    for n in range(100_000):
        trace.add(float(n))
    assert WIDTH <= len(trace.points) < 2 * WIDTH
    line = trace.line(0.0, 100_000.0)
    assert WIDTH / 2 <= len(line) <= WIDTH
    assert line == "".join(sorted(line)) and line[0] == "▁" and line[-1] == "█"


# --- Ctrl-C in another program's hands ---


@pytest.mark.usefixtures("ignored_ctrl_c")
def test_an_interrupt_in_another_programs_hands_is_left_alone():
    with Interrupt():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("ignored_ctrl_c")
def test_a_race_keeps_an_ignored_ctrl_c_ignored():
    def pressed():
        for n in count(1):
            os.kill(os.getpid(), signal.SIGINT)
            yield float(n)

    verdict = race({"a": pressed, "b": partial(repeat, 0)}, 20, journal=None, progress=False)
    assert verdict.spent == 20 and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
