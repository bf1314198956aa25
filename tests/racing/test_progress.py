"""What is shown while a race runs: plain lines, the live table, nothing; and Ctrl-C meanwhile."""

import io
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import count, repeat

import pytest
from rich.console import Console

from latebloomer.racing import progress as progress_module
from latebloomer.racing import race
from latebloomer.racing.interrupt import Interrupt
from latebloomer.racing.live_table import table
from latebloomer.racing.progress import WIDTH, Progress, Trace
from latebloomer.session.events import FAILED, Left, Told
from latebloomer.session.session import Session


def show(names=("a", "b", "c")):
    return Progress(names, True), Session("r-sr", list(names), 60)


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
    assert lines[0].startswith("auto: Foresight(")  # the plan comes first
    assert "fails: out, pull 2 failed twice: RuntimeError: boom" in lines
    assert any(line.startswith("a: dropped at pull ") for line in lines)
    assert any(line.startswith("Keep c: ") for line in lines)


def test_a_long_race_says_now_and_then_who_leads(capfd, monkeypatch):
    monkeypatch.setattr(progress_module, "EVERY", 0.0)
    race({"a": partial(repeat, 1), "b": partial(repeat, 2)}, 10, journal=None, maximize=False)
    err = capfd.readouterr().err
    assert "pull 5 of 10: a leads with 1; about 0 s left" in err


def test_the_table_has_a_line_per_learner():
    progress, session = show()
    progress.mode = "live"
    with progress.shown(session, None):
        for n in range(1, 6):
            for arm in range(3):
                told = Told(arm, arm + n / 10)
                session.apply(told)
                progress.hear(told, session)
        session.apply(Left("a", FAILED))
        progress._look(session)
        console = Console(file=io.StringIO(), width=100)
        console.print(table(progress))
    shown = console.file.getvalue()
    assert "pull 15 of 60 · phase 2 of 3" in shown
    rows = {line.split()[0]: line for line in shown.splitlines()[2:]}
    assert set(rows) == set("abc") and "failed" in rows["a"] and "racing" in rows["c"]
    assert "▁" in rows["a"] and "█" in rows["c"] and " 5 " in rows["b"]


def test_a_race_in_a_terminal(tmp_path):
    pty = pytest.importorskip("pty")
    code = (
        "from latebloomer import race\n"
        "race({k: (lambda i: lambda: iter([i] * 99))(i) for i, k in enumerate('abc')}, 60,"
        " journal=None)"
    )
    master, slave = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stderr=slave, stdout=slave)
    os.close(slave)
    said = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(master)
    assert child.wait() == 0
    text = said.decode()
    assert "pull 60 of 60" in text and "learner" in text and "Keep c" in text


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
