"""What is shown while a race runs: plain lines, the live table, nothing; and Ctrl-C meanwhile."""

import io
import os
import re
import signal
from functools import cache, partial
from itertools import count, repeat

import pytest
from rich.console import Console

from latebloomer import LocalRunner, race
from latebloomer.errors import SettingError
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.racing.announcement import plan_in_words
from latebloomer.racing.displays import display
from latebloomer.racing.displays.live_table import LiveTable
from latebloomer.racing.displays.plain_lines import PlainLines
from latebloomer.racing.displays.standings_table import WIDTH, sparkline
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.verdict_text import brief, details
from latebloomer.session import events
from latebloomer.session.events import PullStarted, ScoreReported, WarningNoted
from tests.helpers.learners import Counter, curve
from tests.helpers.races import quiet

TWO = {"a": partial(repeat, 1), "b": partial(repeat, 2)}
FAILS = {"fails": curve(3, 0.1, fail=2), "fails too": curve(3, 0.1, fail=2)}


def show(names=("a", "b", "c"), kind=LiveTable, **clock):
    names = tuple(names)
    settings = Settings(policy=make_policy("r-sr"), budget=20 * len(names))
    state = RaceState(events.Created("race", settings.as_dict(), names))
    return kind(state, **clock), state


def drawn(progress, **size):
    console = Console(file=io.StringIO(), **{"width": 100} | size)
    console.print(progress.table(console.size))
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
    assert lines[-1].startswith("The race has finished after 75 pulls and ")
    assert lines[-1].endswith(" s: c is kept. The verdict says why, with 5 warnings.")


def test_a_failure_has_one_line(capfd):
    failed = []

    def fails_once():
        for n in count(1):
            if n == 3 and not failed:
                failed.append(n)
                raise RuntimeError("boom")
            yield 2.0 * n

    race(TWO | FAILS | {"fails once": fails_once}, 60, journal=None)
    said = [line for line in capfd.readouterr().err.splitlines() if "boom" in line]
    assert sorted(said) == [
        '"fails once": pull 3 failed (RuntimeError: boom) and was repeated',
        '"fails too" failed: pull 2 failed twice: RuntimeError: boom',
        "fails failed: pull 2 failed twice: RuntimeError: boom",
    ]


def test_a_note_about_the_race_is_a_sentence_and_names_are_quoted(capfd):
    progress, _ = show(("a", "long name"), kind=PlainLines)
    progress.on_event(WarningNoted(None, "the machine is busy"))
    progress.on_event(WarningNoted(1, "it has no row scores"))
    said = capfd.readouterr().err.splitlines()
    assert said == ["The machine is busy.", '"long name": it has no row scores']


def test_a_long_race_says_now_and_then_who_leads(capfd, monkeypatch):
    monkeypatch.setattr(display, "EVERY", 0.0)
    race(TWO, 10, journal=None, maximize=False)
    err = capfd.readouterr().err
    assert "pull 5 of 10: a leads with score 1; about 0 s left" in err


def test_the_table_has_a_line_per_learner():
    progress, state = show()
    with progress.shown():
        for n in range(1, 6):
            report(progress, state, *(ScoreReported(arm, arm + n / 10) for arm in range(3)))
        state.apply(events.LearnerLeft(0, events.FAILED))
        progress.standings.look()
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
    assert re.match(r"a learner \w+…g, of number 0 ", lines[2])


@pytest.mark.parametrize("policy", REGISTRY.values(), ids=REGISTRY)
def test_the_plan_has_at_most_five_lines_beside_the_journal(policy):
    for arms, budget in ((2, 40), (40, 400), (300, 3000)):
        plan = policy().describe(arms, budget)
        assert len(plan_in_words(plan, "auto", 20).splitlines()) <= 5


def test_the_verdict_is_left_to_the_caller(capfd):
    verdict = race(TWO, 20, journal=None)
    said = capfd.readouterr().err
    assert "a: dropped at race pull 20" in said and "Keep" not in said
    assert verdict.sentence not in said
    with pytest.raises(SettingError, match="progress='loud', but"):
        race(TWO, 20, journal=None, progress="loud")


def test_a_verdict_has_at_most_thirteen_lines_and_says_where_the_rest_is():
    names = [f"{k} is a learner with a long name " * 3 for k in range(40)]
    learners = {name: partial(repeat, i) for i, name in enumerate(names)}
    verdict = quiet(learners | FAILS, 2000, winner_share=0.3)
    lines = str(verdict).splitlines()
    assert len(lines) == 13 and lines[0].startswith(f'Keep "{names[-1]}": score ')
    warnings = len(verdict.warnings) - len(FAILS)  # why learners failed is shown
    hidden = f"Not shown: 37 learners, {warnings} warnings. See "
    assert lines[-1] == f"{hidden}details() of this verdict"


KINDS = [
    "HistGradientBoostingClassifier",
    "random forest of 300 trees",
    "transformer, warm-up 500",
    "MLPClassifier(hidden_layer_sizes=(128, 128), alpha=0.0012)",
]
WIDTHS = (80, 120)


def long_names(learners):
    names = [f"{KINDS[k % len(KINDS)]}, variant {k}" for k in range(learners)]
    return {name: curve(3 + k % 7, 0.5 + k / 500) for k, name in enumerate(names)}


@pytest.fixture(scope="module")
def verdict_of():
    """A function that returns the verdict of a race of that many learners."""
    return cache(lambda learners: quiet(long_names(learners), 20 * learners, winner_share=0.2))


def words_of(text):
    """Return the words of what is not a row of a table."""
    return [word for line in text.split("\n") if line[:2] != "  " for word in line.split()]


@pytest.mark.parametrize("learners", [4, 12, 60, 200])
@pytest.mark.parametrize("width", WIDTHS)
def test_in_a_terminal_plan_and_verdict_break_between_words(
    verdict_of, monkeypatch, capfd, learners, width
):
    monkeypatch.setattr("latebloomer.racing.displays.plain_lines.line_width", lambda _: width)
    verdict, lines = verdict_of(learners), show(kind=PlainLines)[0]
    plan = plan_in_words(make_policy("foresight").describe(learners, 20 * learners), "foresight")
    lines.say(plan)
    said = capfd.readouterr().err.rstrip("\n")
    pairs = [(said, plan), *((f(verdict, width), f(verdict)) for f in (brief, details))]
    for shown, text in pairs:
        assert max(map(len, shown.split("\n"))) <= width
        assert words_of(shown) == words_of(text)


@pytest.mark.parametrize("learners", [4, 12, 60, 200])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_verdict_drops_columns_before_it_is_wider_than_a_terminal(
    verdict_of, monkeypatch, learners, width
):
    monkeypatch.setattr("latebloomer.racing.verdict.verdict.line_width", lambda _: width)
    lines = str(verdict_of(learners)).splitlines()
    assert max(map(len, lines)) <= width
    (head,) = (line.split() for line in lines if line.startswith("  learner "))
    assert {"learner", "score", "estimate", "outcome"} <= set(head)
    assert ("time" in head) == (width > 80)


@pytest.mark.parametrize("learners", [4, 12, 60, 200])
@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_the_live_table_fits_a_terminal(learners, width):
    progress, state = show(long_names(learners))
    with progress.shown():
        report(progress, state, *(ScoreReported(arm, arm / 1000) for arm in range(learners)))
        progress.standings.look()
        lines = drawn(progress, width=width, height=30).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width and len(lines) <= 29
    head = next(line for line in lines if line.startswith("learner "))
    assert all(part in head for part in ("score", "estimate", "state"))
    assert ("curve" in head) == (width >= 80) and ("time" in head) == (width >= 120)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(display, "LONG", 0.0)
    monkeypatch.setattr(display, "TICK", 0.001)
    monkeypatch.setattr(display, "EVERY", 0.0)


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

    monkeypatch.setattr(PlainLines, "say", say)
    learners = {"net": lambda: Late(gate), "b": Counter}
    assert race(learners, 20, journal=None, runner=LocalRunner(**options)).spent == 20
    assert "waiting for net (its pull 3)" in said


def test_lines_do_not_speak_of_pulls_that_are_as_long_as_the_learners_others():
    now, said = [0.0], []
    progress, state = show(kind=PlainLines, now=lambda: now[0])
    progress.say = said.append
    state.seconds[0] = 60.0
    for pull, started, seconds in ((2, 0.0, 100.0), (2, 0.0, 130.0), (3, 1.0, 150.0)):
        if progress.waiting == "" or pull == 3:
            progress.on_event(PullStarted(0, pull, started))
        now[0] = seconds
        progress.look_for_long_pull()
        # The first took 60 s, so 100 s are not long; and no line follows another so soon.
        assert said == ["waiting for a (its pull 2)"] * (seconds > 100)


def test_the_live_table_says_whom_it_waits_for_until_the_pull_is_made():
    progress, state = show()
    with progress.shown():
        progress.on_event(events.Waiting((1,)))
        assert " · waiting for b (its pull 1)" in drawn(progress)
        report(progress, state, ScoreReported(0, 0.5), ScoreReported(1, 0.5))
        assert progress.waiting == ""


def test_a_race_that_is_replanned_all_the_time_prints_that_now_and_then():
    (progress, state), said = show(kind=PlainLines), []
    progress.say = said.append
    report(progress, state, *(events.BudgetReplanned(budget, budget) for budget in (70, 80, 90)))
    assert said == ["about 70 pulls fit into the time that is left"]


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
