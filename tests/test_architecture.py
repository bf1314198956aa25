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
from code_lines import CODE_LINES, SOURCE_FILES, TEST_LINES, code_lines

import latebloomer
from latebloomer.policies.base import Policy

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "latebloomer"
FILES = sorted(SOURCE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TREE, LAYERS, RACE, SIMULATION = BLOCKS
PROSE = re.sub(r"^```\n.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
HOP = re.compile(r"([A-Za-z_][\w.]*) +(\w[\w/]*\.py)\b")  # a name, and the file that has it


@cache
def source(file):
    return file.read_text(encoding="utf-8")


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


def tree_of_the_page():
    """Folders and files of the drawn tree, as paths below the package."""
    folders, files, at = set(), set(), []
    for line in TREE.splitlines()[1:-1]:
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        at[depth:] = [name.rstrip("/")]
        (folders if name.endswith("/") else files).add("/".join(at))
    return folders, files


def test_tree_and_layers_of_the_page_are_those_on_disk():
    folders, files = tree_of_the_page()
    assert folders == packages()
    assert files == {file.name for file in SOURCE.glob("*.py")} - {"__init__.py"}
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
    thing = module_of(file)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    first = name.partition(".")[0]
    text = source(SOURCE / file)
    made_there = re.search(rf"^(class |def )?{first}\b", text, re.MULTILINE)
    return thing is not None and made_there is not None


def test_every_file_and_name_of_the_page_exists():
    words = set(re.findall(r"`([^`]+)`", PROSE)) - {"latebloomer", *re.findall(r"\w+", LAYERS)}
    files = {word for word in words if "/" in word or word.endswith((".py", ".toml", ".md"))}
    assert [f for f in files if not (SOURCE / f).exists() and not (ROOT / f).exists()] == []
    names = {word.lstrip("@") for word in words - files if " " not in word}  # else a command
    assert len(files) > 30 and len(names) > 15
    assert [name for name in names if not is_somewhere(name)] == []
    pairs = re.findall(r"`([\w.]+)`\s(?:in |\()`(\w[\w/]*\.py)`", PROSE)
    assert len(pairs) > 15
    assert [(name, file) for name, file in pairs if not is_defined(name, file)] == []


def is_somewhere(name):
    first = name.partition(".")[0]
    return any(
        is_defined(name, str(file.relative_to(SOURCE)))
        for file in FILES
        if file.stem[:2] != "__" and first in source(file)
    )


def test_no_file_name_occurs_twice_and_folders_have_names_of_their_own():
    """`import latebloomer.race.errors` would find the function `race` in the package's place."""
    names = Counter(file.name for file in FILES if file.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []
    top = {folder for folder in packages() if "/" not in folder}
    top |= {file.stem for file in SOURCE.glob("*.py")}
    assert top.isdisjoint(latebloomer.__all__)
    tested = {file.parent.name for file in ROOT.glob("tests/*/test_*.py")}
    assert tested - {"browser", "util"} <= packages()  # all pages in a browser; of _util


def test_no_concrete_class_of_ours_is_subclassed():
    """Abstract bases and exceptions may be; all else is final and is held, not inherited."""
    classes = [thing for module in modules() for thing in vars(module).values()]
    ours = {c for c in classes if inspect.isclass(c) and c.__module__.startswith("latebloomer.")}
    bases = {base for c in ours for base in c.__bases__} & ours
    assert len(ours) > 100 and len(bases) > 5
    held = [base for base in bases if not issubclass(base, BaseException)]
    held = [base for base in held if any(name[:2] != "__" for name in vars(base))]  # not a marker
    concrete = [base for base in held if not inspect.isabstract(base)]
    assert [base for base in concrete if not getattr(base, "_is_protocol", False)] == []


NAMED_TUPLES = {"_replace", "_fields", "_asdict", "_make", "_field_defaults"}  # public
# What is private to another library, or is changed there, and why there is no other way.
ALLOWED = {
    f"{file} {name}": why
    for file, name, why in (
        ("cluster/connection.py", "ENABLE_RAY_CLUSTER", "Ray reads its variable when imported"),
        ("cluster/connection.py", "ray._private.ray_constants", "the module that has read it"),
        ("cluster/connection.py", "ray._raylet", "its authentication starts with this import"),
        ("integrations/optuna.py", "_trial_id", "of a trial that another process asked for"),
        ("integrations/ray_tune.py", "_set_trial_status", "schedulers are given no other way"),
        ("integrations/transformers.py", "_load_from_checkpoint", "a Trainer loads by it only"),
        ("simulation/gpu.py", "row_stack", "numba-cuda reads a name that NumPy 2.5 removed"),
        ("integrations/sklearn/searches.py", "_init_callback_context",
         "scikit-learn documents it for those who write estimators"),
        ("integrations/sklearn/sklearn_learner.py",
         "sklearn.neural_network._stochastic_optimizers", "a type in files of MLP estimators"),
        ("integrations/sklearn/training.py", "_Booster", "else each pull reads all rows again"),
        ("racing/runners/learner_host.py", "_exit", "a fork ends without its parent's clean-up"),
        ("racing/runners/learner_host.py", "path", "modules are found where the race found them"),
        ("racing/run_race.py", "returncode", "the page outlives this process: no warning"),
    )
}  # fmt: skip
WORDS = ("getattr", "hasattr", "setattr", "delattr")
MODULE = re.compile(r"[a-z][\w.]*\._\w+[\w.]*")  # one with a private part


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


def private_accesses(node, classes, own=frozenset()):
    """Each private name of something that is neither self, cls or of a class of the module.

    As an attribute, as a word for `getattr` and the like, or in the dotted name of a module.
    """
    if isinstance(node, ast.ClassDef):
        own = own_names(node)
    if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in NAMED_TUPLES:
        owners = {"self", "cls", *classes}
        myself = isinstance(node.value, ast.Name) and node.value.id in owners
        if not myself and node.attr not in own:
            yield node.attr, node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WORDS:
        word = getattr(node.args[1], "value", None)
        if isinstance(word, str) and private(word) and word not in NAMED_TUPLES:
            yield word, node
    if isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)[:99]):
        yield node.value, node
    for child in ast.iter_child_nodes(node):
        yield from private_accesses(child, classes, own)


def patches(tree):
    """Each place that sets what belongs to another module: by an import, or by the looks of it."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {
        (name.asname or name.name).split(".")[0] for node in imports for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            owner = getattr(owner, "id", "")
            foreign = owner not in ("self", "cls") and node.attr.isupper()
            if owner in imported or foreign or node.attr == "returncode":
                yield node.attr, node


@cache
def parsed(file):
    return ast.parse(source(file))


def test_other_peoples_parts_are_used_and_changed_only_where_a_reason_is_given():
    found = {}
    for file in FILES:
        tree = parsed(file)
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        for name, node in (*private_accesses(tree, classes), *patches(tree)):
            place = f"{file.relative_to(SOURCE)} {name}"
            found[place] = f"line {node.lineno}: {ast.unparse(node)}"
    assert {place: found[place] for place in found.keys() - ALLOWED.keys()} == {}
    assert ALLOWED.keys() - found.keys() == set()  # gone: remove the entry


def test_no_module_imports_anothers_private_names():
    found = [
        f"{file.relative_to(SOURCE)}: from {node.module} import {name.name}"
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if private(name.name) or any(map(private, (node.module or "").split(".")[2:]))
    ]
    assert found == []


def test_the_sources_stay_small():
    total = sum(code_lines(source(file)) for file in FILES)
    assert total <= CODE_LINES, "`make size` counts the lines of each package"


def test_the_sources_are_few_files():
    assert len(FILES) <= SOURCE_FILES


def test_the_tests_stay_small():
    files = (ROOT / "tests").rglob("*.py")
    assert sum(source(file).count("\n") for file in files) <= TEST_LINES


def test_calls_have_few_parameters_and_classes_few_public_members():
    for name, most in (("race", 20), ("RaceSearchCV", 24), ("Session", 9)):
        assert len(inspect.signature(getattr(latebloomer, name)).parameters) <= most
    for kind, most in ((latebloomer.Session, 30), (Policy, 24)):
        assert len([name for name in dir(kind) if not name.startswith("_")]) <= most
