"""The command plan, and the files of simulate, bench and reproduce.

What else simulate, bench and download do is tested with what they call.
"""

import errno
import os
from importlib import import_module

import pytest
from typer.testing import CliRunner

from latebloomer.cli import app

SIMULATE = ["simulate", "--problem", "paper-a", "--budget", "60", "--runs", "4", "--quiet"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def nothing_is_played(monkeypatch):
    def played(*_, **__):
        raise AssertionError("played")

    for module, name in (("simulation.simulate", "simulate"), ("bench.benchmark", "bench")):
        monkeypatch.setattr(import_module(f"latebloomer.{module}"), name, played)


def test_plan_prints_the_phases():
    words = ["plan", "--policy", "r-sr", "--learners", "3", "--budget", "12"]
    output = CliRunner().invoke(app, words).output
    assert "train 3 learners to 3 pulls each" in output
    assert "total: 12 pulls, 0 left over" in output


NOT_WRITTEN = [
    ([*SIMULATE, "--csv", "none/t.csv"], "there is no folder 'none': make it"),
    ([*SIMULATE, "--plot", "."], "it is a folder, but a file is needed"),
    ([*SIMULATE, "--csv", "t", "--plot", "t"], "--csv and --plot are both 't'"),
    ([*SIMULATE, "--out", "t", "--csv", "t"], "--out and --csv are both 't'"),
    (["bench", "--out", "file"], "the folder 'file' cannot be made or written in (Not a dir"),
    (["reproduce", "setting-a", "--out", "file"], "cannot be made"),
]


@pytest.mark.usefixtures("nothing_is_played")
@pytest.mark.parametrize("words, text", NOT_WRITTEN)
def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    ran = run(*words)
    assert ran.exit_code == 2 and not ran.stdout
    assert ran.stderr.startswith("OutputError: ") and ran.stderr.count("\n") == 1
    assert text in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_table_that_cannot_be_written_does_not_cost_the_plot(tmp_path, monkeypatch):
    table, plot = tmp_path / "t.csv", tmp_path / "t.png"
    table.write_text("an old table")
    real = os.replace

    def full_steps(draft, target):
        if str(target) == str(table):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(draft, target)

    monkeypatch.setattr(os, "replace", full_steps)
    ran = run(*SIMULATE, "--csv", table, "--plot", plot)
    assert ran.exit_code == 2 and "No space left on device" in ran.stderr
    assert ran.stdout.startswith("paper-a") and plot.read_bytes().startswith(b"\x89PNG")
    assert table.read_text() == "an old table"
