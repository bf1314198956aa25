"""Every option of every command, given what it cannot be: one error that names it, and code 2."""

import inspect
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from typer.models import OptionInfo
from typer.testing import CliRunner

from latebloomer.cli import app
from latebloomer.cli.command_line import COMMANDS

MODULE = "def learners():\n    return {'a': lambda: iter([1, 2]), 'b': lambda: iter([1, 2])}\n"
CALLS = {  # what each command needs besides the option; none of them is carried out
    "plan": ["--arms", "3", "--budget", "40"],
    "simulate": ["--problem", "paper-a", "--budget", "60", "--runs", "1", "--quiet"],
    "download": ["imdb", "there"],
    "cite": [],
    "policies": [],
    "race": ["mine.py:learners", "--budget", "10", "--quiet"],
    "resume": ["race.db", "mine.py:learners", "--quiet"],
    "extend": ["race.db", "mine.py:learners", "--quiet"],
    "races": ["."],
    "show": ["race.db"],
    "watch": ["."],
    "report": ["race.db"],
    "repair": ["race.db"],
    "reproduce": ["setting-a"],
    "bench": ["--sets", "paper-a", "--draws", "1", "--quiet"],
}
WRONG = {  # by the type that an option declares
    int: ["x", "1.5", "", "9" * 30],
    float: ["x", "", "nan", "inf"],
    str: ["", "no such thing"],
    Path: ["", "no/such/folder/file"],
    list[str]: ["no such thing"],
}


def options():
    """Each option that takes a value, with values that it cannot have."""
    for command in COMMANDS:
        hints = get_type_hints(command, include_extras=True)
        for name in inspect.signature(command).parameters:
            kind, *described = get_args(hints[name])
            if not described:  # `X | None` around the description
                kind, *described = get_args(get_args(hints[name])[0])
            (kind, *_) = [one for one in get_args(kind) if one is not type(None)] or [kind]
            if isinstance(described[0], OptionInfo) and kind is not bool:
                for value in WRONG[kind]:
                    yield command.__name__, f"--{name.replace('_', '-')}", value


def test_every_command_is_called_here():
    assert set(CALLS) == {command.__name__ for command in COMMANDS}


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="some are tracebacks, some do not name the option")
def test_a_value_that_an_option_cannot_have_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("latebloomer.watch.serve", lambda *_: None)
    (tmp_path / "mine.py").write_text(MODULE)
    wrong = []
    for command, option, value in options():
        ran = CliRunner().invoke(app, [command, *CALLS[command], option, value])
        refused = isinstance(ran.exception, SystemExit) and ran.exit_code == 2
        if not refused or option not in ran.stderr:
            wrong.append((command, option, value, ran.exception))
    assert wrong == []


def test_a_port_beyond_the_last_is_an_error_that_names_it(tmp_path):
    ran = CliRunner().invoke(app, ["watch", str(tmp_path), "--port", "99999"])
    assert isinstance(ran.exception, SystemExit) and ran.exit_code == 2
    assert "port=99999 cannot be used (ports are 0 to 65535)" in ran.stderr
