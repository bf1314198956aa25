"""CONTRIBUTING.md on adding a policy, followed to the letter, and what is said where it is not."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import pytest

from latebloomer.citation import cite
from latebloomer.errors import ContractError
from latebloomer.policies.registry import POLICIES, REGISTRY, check_name
from latebloomer.policies.window_ratings import ByAllSamples

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE.split("## To add a policy")[1].split("\n## ")[0]
EXAMPLE, TRY_IT = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
LINE = re.search(r'`("best-of-late": .*,)` to `POLICIES`', SECTION)[1]
COMMAND = """
from latebloomer.cli import app
app("plan --policy best-of-late:newest=3 --learners 6 --budget 120".split())
"""


def run(*words, **settings):
    ran = subprocess.run(words, capture_output=True, text=True, **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def registered(text):
    """registry.py after "add ... to `POLICIES`"."""
    end_of_list = text.index("\n}", text.index("\nPOLICIES"))
    return f"{text[:end_of_list]}\n    {LINE}{text[end_of_list:]}"


@pytest.mark.slow
def test_the_guide_followed_exactly_works_at_the_first_try(tmp_path):
    assert len(EXAMPLE.splitlines()) <= 40
    package = tmp_path / "latebloomer"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "latebloomer", package, ignore=without)
    (package / "policies" / "best_of_late.py").write_text(EXAMPLE)
    registry = package / "policies" / "registry.py"
    registry.write_text(registered(registry.read_text()))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    said = run(sys.executable, "-c", TRY_IT + COMMAND, cwd=tmp_path, env=environment)
    assert "train 2 learners to 40 pulls each" in said
    assert said.count("the same pulls and the same arm by compiled code") == 5
    assert "\nBestOfLate(newest=3)\n6 learners, a budget of 120 pulls" in said


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_the_types_of_the_guides_example_are_right(tmp_path):
    (tmp_path / "best_of_late.py").write_text(EXAMPLE)
    run(sys.executable, "-m", "mypy", tmp_path / "best_of_late.py", cwd=ROOT)


# --- the registry ---


@dataclass(frozen=True)
class NoName(ByAllSamples):
    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]


def named(called):
    return dataclass(frozen=True)(type("Named", (NoName,), {"name": called}))


@pytest.mark.parametrize("name", [None, "auto", "a:b", "a,b", "a b", "Loud", "", "two"])
def test_a_name_that_is_missing_other_or_cannot_be_asked_for_is_refused(name):
    cls = NoName if name is None else named(name)
    with pytest.raises(ContractError, match=r'In the class: name: ClassVar\[str\] = ".*"'):
        check_name("one" if name == "two" else str(name), cls)


def test_the_registry_lists_each_policy_once_in_order():
    classes = list(REGISTRY.values())
    assert [cls.name for cls in classes] == list(POLICIES) == list(REGISTRY)
    assert len(set(classes)) == len(REGISTRY) == len(set(POLICIES.values()))


def test_every_policy_of_the_library_is_listed():
    package = ROOT / "src" / "latebloomer" / "policies"
    named = {
        ".".join(file.relative_to(package).with_suffix("").parts)
        for file in package.rglob("*.py")
        if "    name: ClassVar" in file.read_text()
    }
    assert named - {"base"} == {home.rpartition(".")[0] for home in POLICIES.values()}


def test_a_policy_is_loaded_when_it_is_asked_for():
    code = (
        "import sys\nfrom latebloomer.policies.registry import REGISTRY, make_policy\n"
        "assert 'r-sr' in REGISTRY and list(REGISTRY)\nmake_policy('r-sr')\n"
        "files = ['rising_sr', 'rising_ucbe', 'foresight', 'rungs']\n"
        "print([file for file in files if f'latebloomer.policies.{file}' in sys.modules])"
    )
    assert run(sys.executable, "-c", code) == "['rising_sr']\n"


def test_a_policy_that_cites_nobody_can_be_cited():
    class Alone(NoName):
        name: ClassVar[str] = "alone"

    assert Alone.cites == () and cite(Alone()).startswith("@inproceedings{Mussi24")
