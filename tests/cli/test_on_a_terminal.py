"""A race on a terminal: brief, nothing twice, and no color where none is wanted."""

import os
import re
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

MODULE = """
def learner(b, c, fails):
    def scores():
        for n in range(1, 10_000):
            if n == fails:
                raise RuntimeError("no luck")
            yield c * (1 - b / (b + n))
    return scores

def few():
    return {"late": learner(37, 1, 0), "early": learner(1, .78, 0), "fails": learner(1, .5, 4)}

def many():
    name = "a learner with a name that is long, the one of number"
    return {f"{name} {k}": learner(k, .5 + k / 100, 3 * (k % 9 == 0)) for k in range(1, 41)}
"""
COMMAND = [sys.executable, "-m", "latebloomer", "race"]
COLOR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7])[;m]")
ANY = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def terminal(tmp_path):
    """Run a command on a terminal of 30 lines of 80 columns; all that it has printed."""
    (tmp_path / "mine.py").write_text(MODULE)

    def run(*words, **variables):
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (30, 80))
        known = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
        environ = known | {"TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)} | variables
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
        child = subprocess.Popen(words, **streams, cwd=tmp_path, env=environ)
        os.close(slave)
        said = b"".join(pieces(master))
        assert child.wait() == 0, said
        return said.decode().replace("\r\n", "\n")

    return run


def pieces(terminal):
    try:
        while piece := os.read(terminal, 4096):
            yield piece
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(terminal)


@pytest.mark.parametrize("learners, budget", [("few", 300), ("many", 4000)])
def test_a_race_is_brief_and_says_nothing_twice(terminal, learners, budget):
    words = ["--budget", str(budget), "--winner-share", "0.2"]
    said = terminal(*COMMAND, f"mine.py:{learners}", *words)
    before, _, rest = said.partition("\x1b[?25l")  # the table hides the cursor
    after = ANY.sub("", rest.rpartition("\x1b[?25h")[2]).lstrip("\r")  # erases the table
    assert len(before.splitlines()) <= 9 and before.startswith("Racing ")
    assert len(after.splitlines()) <= 30 and after.startswith("The race has finished after ")
    assert said.count("Keep ") == 1 and after.count("\n  learner  ") == 1
    for line in after.splitlines():
        assert said.count(line) == 1 or line.startswith("Journal: ")
    assert max(map(len, (before + after).splitlines())) <= 80
    while_it_runs = ANY.sub("\n", said[: len(said) - len(after)]).split("\n")
    failures = [line for line in while_it_runs if "no luck" in line]
    assert len(failures) == (1 if learners == "few" else 4)
    path = re.search(r"^Journal: (\S+)$", before, re.M)[1]
    where = "Journal:" if learners == "few" else r"See\slatebloomer show --verbose"
    assert re.search(rf"{where} {path}$", after, re.M)


def test_the_list_of_races_fits_and_names_them_in_full(terminal):
    terminal(*COMMAND, "mine.py:many", "--budget", "900", "--quiet")
    listed = terminal(*COMMAND[:-1], "races").splitlines()
    assert max(map(len, listed)) <= 80 and {"race", "state", "verdict"} <= set(listed[0].split())
    assert all(line.split()[0].endswith(".db") for line in listed[1:])


def test_lists_and_reasons_are_wrapped_between_words(terminal):
    listed = terminal(*COMMAND[:-1], "policies").splitlines()
    assert max(map(len, listed)) <= 80 and any(line.startswith(" " * 18) for line in listed)
    terminal(*COMMAND, "mine.py:many", "--budget", "900", "--quiet")
    told = terminal(*COMMAND[:-1], "show", "--verbose")
    assert max(map(len, told.splitlines())) <= 80


def test_no_color_is_respected(terminal):
    words = [*COMMAND, "mine.py:few", "--budget", "300"]
    assert COLOR.search(terminal(*words))  # who has failed is red
    assert not COLOR.search(terminal(*words, NO_COLOR="1"))


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(terminal):
    said = terminal(*COMMAND, "mine.py:few", "--budget", "300", TERM="dumb")
    assert "\x1b" not in said and "early: dropped at race pull " in said
    assert said.count("Keep late") == 1
