"""The command plan; simulate, bench and download are tested with what they call."""

from typer.testing import CliRunner

from latebloomer.cli import app


def test_plan_prints_the_phases():
    words = ["plan", "--policy", "r-sr", "--arms", "3", "--budget", "12"]
    output = CliRunner().invoke(app, words).output
    assert "bring 3 arms to 3 pulls each" in output
    assert "12 pulls in all, 0 of the budget unspent" in output
