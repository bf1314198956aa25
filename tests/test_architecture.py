"""The house as docs/architecture.md draws it, and the rules that keep it so."""

import ast
import inspect
import pkgutil
import re
import tomllib
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import latebloomer

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "latebloomer"
FILES = sorted(SOURCE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TREE, LAYERS, RACE, SIMULATION = BLOCKS
PROSE = re.sub(r"^```\n.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
HOP = re.compile(r"([A-Za-z_][\w.]*) +(\w[\w/]*\.py)\b")  # a name, and the file that has it


def modules():
    for found in pkgutil.walk_packages(latebloomer.__path__, "latebloomer."):
        if found.name != "latebloomer.__main__":
            yield import_module(found.name)


def module_of(file):
    return import_module("latebloomer." + file.removesuffix(".py").replace("/", "."))


def packages():
    """The folders of the package, as paths below it."""
    made = (file.parent.relative_to(SOURCE) for file in FILES if file.name == "__init__.py")
    return {str(folder) for folder in made} - {"."}


# --- what the page says ---


def tree_of_the_page():
    """Folders and files of the drawn tree, as paths below the package."""
    folders, files, at = set(), set(), []
    for line in TREE.splitlines()[1:-1]:
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        at[depth:] = [name.rstrip("/")]
        (folders if name.endswith("/") else files).add("/".join(at))
    return folders, files


def test_the_tree_of_the_page_is_the_tree_on_disk():
    folders, files = tree_of_the_page()
    assert folders == packages()
    assert files == {file.name for file in SOURCE.glob("*.py")} - {"__init__.py"}


def test_the_layers_of_the_page_are_those_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert LAYERS.splitlines() == contract["layers"]


@pytest.mark.parametrize("walk", [RACE, SIMULATION], ids=["race", "simulation"])
def test_every_hop_is_in_the_file_it_says_and_there_are_about_ten(walk):
    hops = HOP.findall(walk)
    for name, file in hops:
        assert is_defined(name, file), f"{file} has no {name}"
    numbered = re.findall(r"^ ?(\d+)   ", walk, re.MULTILINE)
    assert numbered == [str(k) for k in range(1, len(numbered) + 1)]
    assert len(numbered) <= 11


def is_defined(name, file):
    """Whether a name, or a class's own, stands in a file itself and is not only imported."""
    thing = module = module_of(file)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    first = name.partition(".")[0]
    made_there = re.search(rf"^(class |def )?{first}\b", inspect.getsource(module), re.MULTILINE)
    return thing is not None and made_there is not None


def test_every_file_and_name_of_the_page_exists():
    words = set(re.findall(r"`([^`]+)`", PROSE)) - {"latebloomer", *re.findall(r"\w+", LAYERS)}
    files = {word for word in words if "/" in word or word.endswith((".py", ".toml", ".md"))}
    assert [f for f in files if not (SOURCE / f).exists() and not (ROOT / f).exists()] == []
    names = {word.lstrip("@") for word in words - files if " " not in word}  # else a command
    assert len(files) > 30 and len(names) > 15
    assert [name for name in names if not is_somewhere(name)] == []


def is_somewhere(name):
    first = name.partition(".")[0]
    return any(
        is_defined(name, str(file.relative_to(SOURCE)))
        for file in FILES
        if file.stem[:2] != "__" and first in file.read_text("utf-8")
    )


def test_what_the_page_puts_into_a_file_is_there():
    pairs = re.findall(r"`([\w.]+)`\s(?:in |\()`(\w[\w/]*\.py)`", PROSE)
    assert len(pairs) > 15
    assert [(name, file) for name, file in pairs if not is_defined(name, file)] == []


# --- files and names ---


def test_no_file_name_occurs_twice():
    names = Counter(file.name for file in FILES if file.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_package_has_the_name_of_a_public_function():
    """`import latebloomer.race.errors` would find the function `race` in the package's place."""
    top = {folder for folder in packages() if "/" not in folder}
    top |= {file.stem for file in SOURCE.glob("*.py")}
    assert top.isdisjoint(latebloomer.__all__)


def test_the_folders_of_the_tests_are_those_of_the_package():
    folders = {file.parent.relative_to(ROOT / "tests") for file in ROOT.glob("tests/*/test_*.py")}
    assert {str(folder) for folder in folders} - {"browser"} <= packages()  # that is of all pages


# --- classes ---


def test_no_concrete_class_of_ours_is_subclassed():
    """Abstract bases and exceptions may be; all else is final and is held, not inherited."""
    classes = [thing for module in modules() for thing in vars(module).values()]
    ours = {c for c in classes if inspect.isclass(c) and c.__module__.startswith("latebloomer.")}
    bases = {base for c in ours for base in c.__bases__} & ours
    assert len(ours) > 100 and len(bases) > 5
    concrete = [
        base
        for base in bases
        if not (
            inspect.isabstract(base)
            or issubclass(base, BaseException)
            or getattr(base, "_is_protocol", False)
        )
    ]
    assert concrete == []


NAMED_TUPLES = {
    "_replace",
    "_fields",
    "_field_defaults",
    "_asdict",
    "_make",
}  # public, whatever they look like
OF_OTHERS = {  # private attributes of other libraries, for which there is no public way
    ("integrations/optuna.py", "_storage"),  # of a study
    ("integrations/optuna_study.py", "_trial_id"),  # of a trial that another process asked for
    ("integrations/ray_tune.py", "_set_trial_status"),  # of what schedulers are handed for it
    ("racing/runners/isolated.py", "_exit"),  # of os: ends a forked process at once
}


def private(name):
    return name.startswith("_") and not name.startswith("__")


def own_names(kind):
    """The private names that a class has itself: its methods, and what it sets on `self`."""
    found = {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(kind):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def foreign_accesses(node, own=frozenset()):
    """Each `x._name` where x is neither self or cls nor of the class in which this stands."""
    if isinstance(node, ast.ClassDef):
        own = own_names(node)
    if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in NAMED_TUPLES:
        myself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if not myself and node.attr not in own:
            yield node
    for child in ast.iter_child_nodes(node):
        yield from foreign_accesses(child, own)


@cache
def parsed(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def test_no_class_reaches_into_anothers_private_parts():
    found = [
        f"{file.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for file in FILES
        for node in foreign_accesses(parsed(file))
        if (str(file.relative_to(SOURCE)), node.attr) not in OF_OTHERS
    ]
    assert found == []


def test_no_module_imports_anothers_private_names():
    found = [
        f"{file.relative_to(SOURCE)}: from {node.module} import {name.name}"
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if private(name.name) or any(map(private, (node.module or "").split(".")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code, wrong",
    [
        ("session._handed", ["session._handed"]),
        ("self._session._turns", ["self._session._turns"]),
        ("self._mine", []),
        ("point._replace(x=1)", []),
        ("class A:\n def __init__(self): self._x = 1\n def f(self, other): return other._x", []),
        ("class A:\n def f(self, other): return other._x", ["other._x"]),
    ],
)
def test_the_check_sees_what_it_should(code, wrong):
    assert [ast.unparse(node) for node in foreign_accesses(ast.parse(code))] == wrong
