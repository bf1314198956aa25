"""The files of simulate, bench and reproduce.

What else simulate, bench and download do is tested with what they call.
"""

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


NOT_WRITTEN = [
    ([*SIMULATE, "--plot", "."], "because it is a folder"),
    ([*SIMULATE, "--csv", "t", "--plot", "t"], "--csv and --plot are both 't'"),
    ([*SIMULATE, "--out", "t", "--csv", "t"], "--out and --csv are both 't'"),
    (["bench", "--out", "file"], "Cannot make or write in the folder file (Not a dir"),
    (["reproduce", "setting-a", "--out", "file"], "Cannot make"),
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
