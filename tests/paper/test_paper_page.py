"""docs/paper.md: what it names exists, and every figure is on it."""

import re
from functools import reduce

from latebloomer import problems, theory
from latebloomer.paper import live_imdb
from latebloomer.paper.reproduction import FIGURES
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.problems import problem
from tests.helpers.repository import ROOT

PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


def test_every_figure_has_a_line_that_makes_it():
    lines = re.findall(r"`latebloomer reproduce ([a-z0-9 -]+)`", PAGE)
    named = {name for line in lines for name in line.split() if not name.startswith("--")}
    assert named == {figure.name for figure in FIGURES}
    assert live_imdb.imdb_live.name in named


def test_every_name_of_theory_and_of_problems_exists():
    homes = {"theory": theory, "problems": problems}
    names = set(re.findall(r"\b(theory|problems)\.([a-z_0-9.]+[a-z_0-9])", PAGE))
    assert len(names) > 15
    for home, name in names:
        if name != "py":
            assert reduce(getattr, name.split("."), homes[home])


def test_every_policy_and_problem_can_be_made():
    table = PAGE.partition("## Algorithms")[2].partition("## Estimators")[0]
    words = re.findall(r"`([a-z0-9:=,.-]+)`", table)
    known = [word for word in words if word.partition(":")[0] in REGISTRY]
    assert len(known) >= 11
    for word in known:
        make_policy(word)
    for name in re.findall(r"--problem (\S+)", PAGE):
        assert ".py:" in name or problem(name.rstrip("`")).arms >= 2


def test_the_lines_of_the_theory_table_run():
    part = PAGE.partition("## Estimators")[2].partition("## Figures")[0]
    names = {}
    exec(re.search(r"```python\n(.*?)```", part, re.DOTALL)[1], names)
    lines = re.findall(r"\| `([^`]*\([^`]*)` \|$", part, re.MULTILINE)
    assert len(lines) >= 7
    for line in lines:
        eval(line.removeprefix("print"), names)
