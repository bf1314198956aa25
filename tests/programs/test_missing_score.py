"""A program that prints no score: what is said of it, and when."""

import re
import sys
import warnings

import pytest

from latebloomer.errors import LearnerError
from latebloomer.programs.command import Command
from latebloomer.programs.missing_score import LONG, MANY, MissingScore
from latebloomer.programs.output_log import OutputLog
from latebloomer.programs.score_file import ScoreFile
from latebloomer.programs.score_reader import Pattern


def watched(score="val_acc", file=None, step=None):
    """A log, what watches it, and the list of what it has said."""
    log, told = OutputLog(None), []
    pattern = None if file is not None else Pattern(score, step)
    return log, MissingScore("'net'", log, pattern, file, told.append), told


def read(log, missing, line):
    log.note(line)
    missing.note(line)


def test_many_lines_with_numbers_are_reported_once_with_the_nearest_name():
    log, missing, told = watched()
    for n in range(3 * MANY):
        assert len(told) == (n >= MANY)
        read(log, missing, f"epoch {n}: loss=0.25, val_accuracy=0.5")
    missing.wait(2 * LONG)
    assert told == [told[0]]
    assert f"'net' has printed {MANY} lines with numbers, but none with the score" in told[0]
    assert "(5 of them have numbers)" in told[0] and f"| epoch {MANY - 1}: loss" in told[0]
    assert "Did you mean 'val_accuracy'?" in told[0] and "press Ctrl-C" in told[0]


def test_other_bytes_and_a_program_with_a_score_are_not_reported():
    log, missing, told = watched()
    for n in range(20 * MANY):
        read(log, missing, f"\ufffd{n}" if n % 25 else "x1")
    assert told == []
    missing.found()
    for n in range(2 * MANY):
        read(log, missing, f"loss={n}")
    missing.wait(10 * LONG)
    assert told == []


def test_a_long_time_without_a_score_is_reported_once(tmp_path):
    log, missing, told = watched()
    missing.wait(LONG - 1)
    assert told == []
    missing.wait(1)
    missing.wait(LONG)
    (text,) = told
    assert "has run for 60 s and has printed nothing" in text and "`stdbuf -oL`" in text
    log, missing, told = watched(step="epoch")
    read(log, missing, "loading 3 files")
    missing.wait(LONG)
    assert "printed 1 line, none with the score 'val_acc' and its step" in told[0]
    assert "`stdbuf -oL`" in told[0] and "| loading 3 files" in told[0]
    file = ScoreFile(f"{tmp_path / 'm.csv'}:acc", "acc", None, None)
    log, missing, told = watched(file=file)
    missing.wait(LONG)
    assert "m.csv does not exist" in told[0]
    (tmp_path / "m.csv").write_text("acc\n")
    log, missing, told = watched(file=file)
    missing.wait(LONG)
    assert "m.csv has no row with the score 'acc'" in told[0]


def test_a_wrong_name_is_reported_while_the_program_runs_and_at_its_end():
    text = f"for n in range({2 * MANY}): print('epoch', n, 'loss=0.5 val_accuracy=0.5')"
    learner = Command([sys.executable, "-S", "-c", text], "val_acc")(0)
    with warnings.catch_warnings(record=True) as told, pytest.raises(LearnerError) as error:
        warnings.simplefilter("always")
        learner.pull()
    assert [str(one.message).partition(" lines")[0] for one in told] == [
        f"'program' has printed {MANY}"
    ]
    said = rf"none of its {2 * MANY} lines, {2 * MANY} of them with numbers, has the score"
    assert re.search(said, str(error.value)) and "Did you mean 'val_accuracy'?" in str(error.value)
