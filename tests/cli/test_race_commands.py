"""The commands race, resume, report and show, and what is shown while a race runs."""

import io
import os
import pickle
import signal
import subprocess
import sys
from functools import partial
from itertools import repeat

import pytest
from rich.console import Console
from typer.testing import CliRunner

from latebloomer.cli import app
from latebloomer.racing import progress as progress_module
from latebloomer.racing import race
from latebloomer.racing.live_table import table
from latebloomer.racing.progress import WIDTH, Progress, Trace
from latebloomer.session.events import FAILED, Left, Told
from latebloomer.session.session import Session

MODULE = '''
"""Two learners."""
import os, signal, sys
from pathlib import Path

class Counter:
    def __init__(self, step):
        self.step, self.n = step, 0
    def pull(self):
        self.n += 1
        if self.n == 7 and Path("interrupt").exists():
            os.kill(os.getpid(), signal.SIGINT)
        return self.step * self.n / (self.n + 3)

def learners():
    return {"slow": lambda: Counter(1.0), "quick": lambda: Counter(2.0)}

def nothing():
    return 3
'''


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_a_race_from_the_command_line(run, tmp_path):
    ran = run("race", "mine:learners", "--budget", 40, "--report", "race.html", "--save", "w.pkl")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("Keep quick: score ")
    assert "auto: Foresight" in ran.stderr and "40 pulls in all" in ran.stderr  # the plan, first
    assert "Keep quick" in (tmp_path / "race.html").read_text()
    assert pickle.loads((tmp_path / "w.pkl").read_bytes()).step == 2.0
    shown = run("show", "race.db")
    assert shown.exit_code == 0 and "slow" in shown.stdout and "dropped at pull" in shown.stdout
    assert run("report", "race.db", "--out", "again.html").stdout == "wrote again.html\n"
    assert (tmp_path / "again.html").read_text() == (tmp_path / "race.html").read_text()
    again = run("resume", "race.db", "mine:learners", "--quiet")
    assert again.exit_code == 0 and again.stdout == "".join(ran.stdout.splitlines(True)[:3])


def test_a_share_for_the_winner_from_the_command_line(run):
    ran = run("race", "mine:learners", "--budget", 40, "--deliver", 0.5)
    assert ran.exit_code == 0, ran.stderr
    assert "Named the best: quick, by " in ran.stdout and " after 10 pulls of its" in ran.stdout
    assert "Delivered: score 1.81818 after 30 pulls, 20 of them since it was named" in ran.stdout
    assert "then trained on for 20 pulls" in run("show", "race.db").stdout


def test_ctrl_c_prints_the_command_that_goes_on(run, tmp_path):
    (tmp_path / "interrupt").touch()
    ran = run("race", "mine:learners", "--budget", 40, "--quiet")
    assert ran.exit_code == 130
    assert "stopped after pull 13 of 40" in ran.stderr
    assert "go on with: latebloomer resume race.db mine:learners" in ran.stderr
    (tmp_path / "interrupt").unlink()
    assert run("resume", "race.db", "mine:learners", "--quiet").stdout.startswith("Keep quick")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["race", "mine", "--budget", "40"], "named as module:function"),
        (["race", "nowhere:f", "--budget", "40"], "there is no module 'nowhere' here"),
        (["race", "mine:f", "--budget", "40"], "module 'mine' has no 'f'"),
        (["race", "mine:nothing", "--budget", "40"], "gave int, but it must give a dict"),
        (["race", "mine:learners"], "needs exactly one"),
        (["race", "mine:learners", "--budget", "1"], "BudgetError: budget=1 for 2 arms"),
        (["show", "none.db"], "there is no journal none.db"),
        (["resume", "none.db", "mine:learners"], "there is no journal none.db"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2(run, words, text):
    ran = run(*words)
    assert ran.exit_code == 2
    assert text in ran.stderr and ran.stderr.count("\n") == 1


def test_a_module_that_fails_by_itself_is_not_blamed_on_its_name(run, tmp_path):
    (tmp_path / "broken.py").write_text("import no_such_package")
    ran = run("race", "broken:f", "--budget", 40)
    assert isinstance(ran.exception, ModuleNotFoundError)


# --- what is shown ---


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


def test_an_interrupt_in_another_programs_hands_is_left_alone():
    from latebloomer.racing.interrupt import Interrupt

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
