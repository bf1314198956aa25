"""CONTRIBUTING.md followed exactly: policy, adapter, runner, figure, command, setting, event.

All of them are pasted into a copy of the repository, where each does what its section says, and
`make test` passes.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.helpers.guide_changes import blocks, changes, patched, section
from tests.helpers.pictures import shows
from tests.helpers.repository import ROOT

pytestmark = pytest.mark.slow
NEW_FILES = {  # section: where it says to save its first block of Python
    "a policy": "src/latebloomer/policies/best_of_late.py",
    "a learner adapter": "src/latebloomer/integrations/scipy.py",
    "a runner": "src/latebloomer/racing/runners/learner_by_learner.py",
    "a figure": "src/latebloomer/paper/lead_figure.py",
}
ADDITIONS = {  # section: the file that its first block of Python is added to
    "a command": "src/latebloomer/cli/journal_commands.py",
    "an event to the journal": "tests/racing/journal/test_journal.py",
}
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "_build", "_made"
)
OF_AN_OUTER_RUN = re.compile(r"MAKE|MFLAGS|PYTEST_(XDIST|CURRENT)")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the repository with all that the guide adds to it."""
    copy = tmp_path_factory.mktemp("copy") / "latebloomer"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    for what, file in NEW_FILES.items():
        (copy / file).write_text(blocks(what)[0], encoding="utf-8")
    for what, file in ADDITIONS.items():
        text = (copy / file).read_text(encoding="utf-8")
        (copy / file).write_text(f"{text}\n\n{blocks(what)[0]}", encoding="utf-8")
    for name, hunks in changes():
        text = (copy / name).read_text(encoding="utf-8")
        (copy / name).write_text(patched(name, text, hunks), encoding="utf-8")
    (command,) = re.findall(r"`python (-m tools\.\w+)`", section("a policy"))
    run(copy, *command.split())
    return copy


def run(house, *words, cwd=None):
    return output(house, sys.executable, *words, cwd=cwd)


def output(house, *words, cwd=None):
    outer = {name: text for name, text in os.environ.items() if not OF_AN_OUTER_RUN.match(name)}
    own = outer | {"PYTHONPATH": str(house / "src")}
    ran = subprocess.run(words, capture_output=True, text=True, env=own, cwd=cwd or house)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("what, file", [*NEW_FILES.items(), *ADDITIONS.items()])
def test_the_guide_says_where_its_examples_go(what, file):
    text, _, _ = section(what).partition("```python")
    assert f"`{file}`" in text


def test_a_policy(house):
    command = "plan --policy best-of-late:newest=3 --learners 6 --budget 120"
    said = run(house, "-c", blocks("a policy")[1]) + run(
        house, "-m", "latebloomer", *command.split()
    )
    assert "train 2 learners to 40 pulls each" in said
    assert "replan_keeps_cells\nshare_is_rated\ncompiled_picks\n" in said
    assert "Policy: best-of-late:newest=3\n6 learners, a budget of 120 pulls" in said


def test_a_learner_adapter(house):
    said = run(house, "-c", blocks("a learner adapter")[1])
    assert "loaded from its checkpoint it gives the same next 3 scores bit for bit" in said
    assert "of 60 pulls" in said


def test_a_runner(house):
    said = run(house, "-c", blocks("a runner")[1])
    assert said.count("\n") == 4 and "held, then resumed by another runner" in said


def test_a_figure(house, tmp_path):
    (command,) = blocks("a figure", "sh")
    run(house, "-m", *command.split(), cwd=tmp_path)
    files = {}
    for kind in ("csv", "png", "pdf"):
        (files[kind],) = (tmp_path / "reproduction").glob(f"lead.as-written.*.{kind}")
    assert shows(files["png"], "black") and files["pdf"].read_bytes()[:5] == b"%PDF-"
    assert files["csv"].read_text().count("\n") > 2
    page = (tmp_path / "reproduction" / "index.html").read_text(encoding="utf-8")
    assert "The two best are closest at T = 200" in page


def test_a_command(house, tmp_path):
    said = run(house, "-c", blocks("a command")[1], cwd=tmp_path)
    assert re.search(r" +\d+ slow\n +\d+ flat\n", said)
    assert "JournalError: There is no journal none.db" in said
    assert "each learner of a race" in run(house, "-m", "latebloomer", "pulls", "--help")


def test_a_setting(house):
    assert run(house, "-c", blocks("a setting")[0]) == "first try\n"
    assert "--label <str>" in run(house, "-m", "latebloomer", "race", "--help")


def test_all_of_make_test_passes_with_all_of_them(house):
    """The environment is the one that runs this: nothing is installed."""
    (house / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    said = output(house, "make", "--assume-old=.venv/.ready", "test")
    assert re.search(r"\d{4} passed", said) and "failed" not in said
