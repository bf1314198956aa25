"""docs/notation.md: every formula that the code cites, in the file and under the name it says."""

import inspect
import pkgutil
import re
from importlib import import_module

import pytest

from latebloomer import theory
from tests.helpers.repository import ROOT

TABLE = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in TABLE.splitlines() if line.endswith(".py` |")]
ROOMS = ("core", "theory", "problems", "policies")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_every_name_of_the_table_is_where_it_says(row):
    _, names, file = row
    module = import_module("latebloomer." + file.strip(" `").removesuffix(".py").replace("/", "."))
    found = re.findall(r"`([\w.]+)`", names)
    assert found
    for name in found:
        thing = module
        for part in name.split("."):
            thing = getattr(thing, part)
        outermost = getattr(module, name.partition(".")[0])
        assert outermost.__module__ == module.__name__, f"{name} is only imported there"


def test_every_equation_that_the_code_cites_is_in_the_table():
    cited = set()
    for room in ROOMS:
        package = import_module(f"latebloomer.{room}")
        for found in pkgutil.iter_modules(package.__path__, f"latebloomer.{room}."):
            source = inspect.getsource(import_module(found.name))
            for text in re.findall(r"Eq\. ((?:\(\w+\)(?:, )?)+)", source):
                cited.update(re.findall(r"\((\w+)\)", text))
    assert len(cited) > 15
    missing = {label for label in cited if f"Eq. ({label})" not in TABLE}
    assert not missing, f"not in docs/notation.md: {sorted(missing)}"


def test_the_guarantees_go_by_the_names_of_their_algorithms():
    for name in ("rising_ucbe", "rising_sr", "round_robin_window", "lower_bounds"):
        assert callable(getattr(theory, name).minimum_budget) and name in theory.__all__
