"""CONTRIBUTING.md followed exactly: policy, adapter, runner, figure, command, event, column."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = {  # section: where it says to save its first block of Python
    "a policy": "policies/best_of_late.py",
    "a learner adapter": "integrations/scipy.py",
    "a runner": "racing/runners/learner_by_learner.py",
    "a figure": "paper/lead_figure.py",
}


def section(what):
    return GUIDE.split(f"## To add {what}")[1].split("\n## ")[0]


def blocks(what, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", section(what), re.DOTALL)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the repository with all that the guide adds to it."""
    copy = tmp_path_factory.mktemp("copy")
    without = shutil.ignore_patterns("__pycache__")
    package = copy / "src" / "latebloomer"
    shutil.copytree(ROOT / "src" / "latebloomer", package, ignore=without)
    for file in (
        "docs/journal.md",
        "tests/conftest.py",
        "tests/racing/test_journal.py",
        "tests/racing/toys.py",
    ):
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    for what, file in FILES.items():
        (package / file).write_text(blocks(what)[0], encoding="utf-8")
    registry = package / "policies" / "registry.py"
    line = re.search(r'`("best-of-late": .*,)` to `POLICIES`', section("a policy"))[1]
    listed, rest = registry.read_text(encoding="utf-8").split("\nPOLICIES = {", 1)
    registry.write_text(f"{listed}\nPOLICIES = {{\n    {line}{rest}", encoding="utf-8")
    enter(package / "paper" / "reproduction.py", "FIGURES", "lead_figure.lead",
          "from latebloomer.paper import lead_figure")  # fmt: skip
    append(package / "cli" / "journal_commands.py", blocks("a command")[0])
    enter(package / "cli" / "command_line.py", "COMMANDS", "pulls",
          "from latebloomer.cli.journal_commands import pulls")  # fmt: skip
    (changes,) = blocks("an event to the journal", "diff")
    for name, hunks in re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", changes, re.M | re.S):
        patch(copy / name, hunks.split("@@\n"))
    return copy


def append(file, text):
    file.write_text(f"{file.read_text(encoding='utf-8')}\n\n{text}", encoding="utf-8")


def enter(file, listing, entry, line):
    """Import something with a line, and enter it at the end of a list."""
    text = file.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == listing:
            last = node.value.elts[-1]
    lines = text.splitlines()
    place = last.end_lineno - 1
    before, after = lines[place][: last.end_col_offset], lines[place][last.end_col_offset :]
    lines[place] = f"{before}, {entry}{after}"
    lines.insert(next(k for k, old in enumerate(lines) if "from latebloomer." in old), line)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def patch(file, hunks):
    """Apply hunks of a diff; each must fit in exactly one place."""
    text = file.read_text(encoding="utf-8")
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+").rstrip("\n")
        new = "".join(line[1:] for line in lines if line[0] != "-").rstrip("\n")
        assert text.count(old) == 1, f"{file.name} has {text.count(old)} places with:\n{old}"
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def run(house, *words, cwd=None):
    environment = os.environ | {"PYTHONPATH": str(house / "src"), "MPLBACKEND": "Agg"}
    ran = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, cwd=cwd or house
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("what, file", FILES.items())
def test_the_guide_says_where_to_save_its_examples(what, file):
    assert f"`src/latebloomer/{file}`:\n\n```python\n" in section(what)
    assert len(blocks(what)[0].splitlines()) <= 50


def test_a_policy(house):
    command = "plan --policy best-of-late:newest=3 --learners 6 --budget 120"
    said = run(house, "-c", blocks("a policy")[1]) + run(
        house, "-m", "latebloomer", *command.split()
    )
    assert "train 2 learners to 40 pulls each" in said
    assert said.count("the same pulls and the same arm by compiled code") == 5
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
    for kind in ("csv", "png", "pdf"):
        assert (tmp_path / "reproduction" / f"lead.{kind}").stat().st_size > 300
    page = (tmp_path / "reproduction" / "index.html").read_text(encoding="utf-8")
    assert "The two best are closest at T = 200" in page


def test_a_command(house, tmp_path):
    said = run(house, "-c", blocks("a command")[1], cwd=tmp_path)
    assert re.search(r" +\d+ slow\n +\d+ flat\n", said)
    assert "JournalError: There is no journal none.db" in said
    assert "each learner of a race" in run(house, "-m", "latebloomer", "pulls", "--help")


def test_an_event(house):
    (test,) = blocks("an event to the journal")
    file = house / "tests" / "racing" / "test_journal.py"
    append(file, f"from latebloomer.session.events import Moved\n\n\n{test}")
    said = run(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "move or guide", file)
    assert int(re.search(r"(\d+) passed", said)[1]) == 2  # the recipe and the guide


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_the_types_of_the_examples_are_right(tmp_path):
    for what in FILES:
        (tmp_path / f"{what.replace(' ', '_')}.py").write_text(blocks(what)[0], encoding="utf-8")
    words = [sys.executable, "-m", "mypy", *tmp_path.glob("*.py")]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout
