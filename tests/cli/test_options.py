"""Every option of every command, given what it cannot be: one error that names it, and code 2."""

import inspect
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from typer.models import OptionInfo

from latebloomer import race
from latebloomer.cli.command_line import COMMANDS

CALLS = {  # what each command needs besides the option; none of them is carried out
    "race": ["mine.py:learners", "--budget", "10", "--quiet"],
    "resume": ["race.db", "mine.py:learners", "--quiet"],
    "races": ["."],
    "show": ["race.db"],
    "watch": ["."],
    "report": ["race.db"],
    "repair": ["damaged.db"],
    "plan": ["--learners", "3", "--budget", "40"],
    "policies": [],
    "simulate": ["--problem", "paper-a", "--budget", "60", "--runs", "1", "--quiet"],
    "guarantees": ["--problem", "paper-a", "--budget", "60"],
    "bench": ["--sets", "paper-a", "--draws", "1", "--quiet"],
    "download": ["imdb", "there"],
    "reproduce": ["setting-a", "--quiet"],
    "cite": [],
}
WRONG = {  # by the type that an option declares
    int: ["1.5", "-9", "9" * 30],
    float: ["x", "nan", "-1"],
    str: ["", "no such thing"],
    Path: ["", "no/such/folder/file"],
    list[str]: ["no such thing"],
}
RIGHT = [  # although it looks like the others
    ("race", "--journal", "no such thing"),  # a new file
    ("race", "--seed", "-9"),
    ("bench", "--out", ""),  # this folder
    ("bench", "--out", "no/such/folder/file"),  # made
    ("reproduce", "--out", ""),
    ("reproduce", "--out", "no/such/folder/file"),
    *((command, option, value)  # read where Ray is used, which is not said here
      for command in ("simulate",) for option in ("--address",) for value in WRONG[str]),
]  # fmt: skip


def options():
    """Each option that takes a value, with values that it cannot have."""
    for command in COMMANDS:
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
            kind, *described = get_args(parameter.annotation)
            (kind, *_) = [one for one in get_args(kind) if one is not type(None)] or [kind]
            if isinstance(described[0], OptionInfo) and kind is not bool:
                for value in WRONG[kind]:
                    call = command.__name__, f"--{name.replace('_', '-')}", value
                    if call not in RIGHT:
                        yield call


def test_every_command_is_called_here():
    assert set(CALLS) == {command.__name__ for command in COMMANDS}
    assert len(list(options())) > 120


@pytest.fixture(scope="module")
def journals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("journals")
    learners = {"a": lambda: iter(range(99)), "b": lambda: iter(range(99))}
    for name in ("race.db", "damaged.db"):
        race(learners, 10, journal=folder / name, progress=False)
    with closing(sqlite3.connect(folder / "damaged.db")) as db:
        db.execute("UPDATE events SET score = 9 WHERE id = 8")
        db.commit()
    return folder


@pytest.mark.parametrize("command, option, value", list(options()))
def test_a_value_that_an_option_cannot_have_is_an_error_that_names_it(
    tmp_path, run, journals, command, option, value
):
    for file in journals.glob("*.db"):
        shutil.copy(file, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ran = run(command, *CALLS[command], option, value)
    assert isinstance(ran.exception, SystemExit) and ran.exit_code == 2, ran.exception
    assert option in ran.stderr and "Traceback" not in ran.stderr
    left = (path for path in tmp_path.glob("*.*") if path.suffix != ".lock")
    assert {path.name: path.read_bytes() for path in left} == before
