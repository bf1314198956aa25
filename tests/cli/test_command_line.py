"""The command as a whole: its version, its help, and how every command ends."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import latebloomer
from latebloomer.cli.command_line import COMMANDS, app
from latebloomer.policies.registry import REGISTRY

NAMES = [command.__name__ for command in COMMANDS]
HEAVY = {"numba", "matplotlib", "sklearn", "ray", "pandas", "scipy"}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_version():
    assert run("--version").output == f"latebloomer {latebloomer.__version__}\n"


def test_help_lists_the_commands():
    output = run("--help").output
    places = [output.index(f" {name} ") for name in NAMES]
    assert places == sorted(places)
    assert "..." not in output.partition("Commands:")[2]  # each one's line is whole


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name):
    ran = run(name, "--help")
    assert ran.exit_code == 0 and "Usage" in ran.output and "[[" not in ran.output


def test_help_is_text_as_it_is_written():
    output = run("simulate", "--help").output
    assert "random:FAMILY:K=10:seed=3" in output and "NAME:SETTING=VALUE,..." in output
    output = run("race", "--help").output
    assert "`path/to/file.py:name`" in output and "The exit code is 2 after an error" in output


def test_help_groups_options_by_panel():
    output = run("race", "--help").output
    panels = ["Arguments", "Options", "Programs", "Budget", "Policy", "Files", "Faults", "Ray"]
    panels.append("Output")
    assert re.findall(r"^(\w+):$", output, re.MULTILINE) == panels
    budget = output.partition("\nBudget:")[2].partition("\nPolicy:")[0]
    assert re.findall(r"^  (--[a-z-]+)", budget, re.MULTILINE) == [
        "--trainings", "--budget", "--seconds", "--full-steps", "--pulls-per-training",
        "--winner-share",
    ]  # fmt: skip


def test_help_lists_the_main_policies_and_says_how_to_list_all():
    told = " ".join(run("plan", "--help").output.split())
    assert "foresight" in told and "ptrr" not in told and "latebloomer policies" in told
    assert [one.split()[0] for one in run("policies").output.splitlines()] == ["auto", *REGISTRY]


def test_an_interrupted_reproduction_says_how_to_go_on(monkeypatch, tmp_path):
    def interrupted(names, workbench):
        raise KeyboardInterrupt

    monkeypatch.setattr("latebloomer.paper.reproduction.reproduce", interrupted)
    ran = run("reproduce", "setting-a", "--out", tmp_path)
    assert ran.exit_code == 130
    assert ran.stderr == (f"Stopped. Repeat the command to make what is missing in {tmp_path}.\n")


def test_a_bug_is_not_hidden(monkeypatch):
    def broken(what):
        raise RuntimeError("a bug")

    monkeypatch.setattr("latebloomer.cli.paper_commands.bibtex", broken)
    assert isinstance(run("cite").exception, RuntimeError)


UNUSED = HEAVY | {
    "latebloomer.paper.figure", "latebloomer.racing.api", "latebloomer.simulation.simulate",
    "latebloomer.session.session", "latebloomer.policies.base", "numpy", "sqlite3",
}  # fmt: skip


LOADS = [(["--help"], UNUSED, "Usage"), (["races", "."], {"numpy"}, "No races in")]


@pytest.mark.parametrize("words, unused, text", LOADS)
def test_help_and_lists_load_nothing_that_they_do_not_need(tmp_path, words, unused, text):
    code = (
        f"import sys\nfrom latebloomer.cli import app\napp({words}, standalone_mode=False)\n"
        f"sys.exit(' '.join({unused} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stderr == "\n" and text in ran.stdout
