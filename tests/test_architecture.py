"""The house as docs/architecture.md draws it, and the rules that keep it so."""

import ast
import inspect
import os
import re
import sys
import threading
import tomllib
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import latebloomer
from latebloomer import RaceSearchCV, race, resume, simulate
from latebloomer.core.policy_moves import moves_of
from tests.helpers.learners import curve
from tests.helpers.repository import ROOT, modules

SOURCE = ROOT / "src" / "latebloomer"
FILES = sorted(SOURCE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TREE, LAYERS, RACE, RESUME, SEARCH, SIMULATION = BLOCKS
WALKS = {"race": RACE, "resume": RESUME, "search": SEARCH, "simulation": SIMULATION}
PROSE = re.sub(r"^```\n.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
HOP = re.compile(r"([A-Za-z_][\w.]*) +(\w[\w/]*\.py)\b")  # a name, and the file that has it


@cache
def source(file):
    return file.read_text(encoding="utf-8")


def module_of(file):
    return import_module("latebloomer." + file.removesuffix(".py").replace("/", "."))


def packages():
    """The folders of the package, as paths below it."""
    made = (file.parent.relative_to(SOURCE) for file in FILES if file.name == "__init__.py")
    return {str(folder) for folder in made} - {"."}


def tree_of_the_page():
    """Folders and files of the drawn tree, as paths below the checkout."""
    folders, files, at = set(), set(), []
    for line in TREE.splitlines():
        name = line.split()[0]
        at[(len(line) - len(line.lstrip())) // 2 :] = [name.rstrip("/")]
        (folders if name.endswith("/") else files).add("/".join(at))
    return folders, files


def test_tree_and_layers_of_the_page_are_those_on_disk():
    folders, files = tree_of_the_page()
    assert [path for path in folders | files if not (ROOT / path).exists()] == []
    ours = f"{SOURCE.relative_to(ROOT)}/"
    assert {path.removeprefix(ours) for path in folders if path.startswith(ours)} == packages()
    top = {file.name for file in SOURCE.glob("*.py")} - {"__init__.py"}
    assert {path.removeprefix(ours) for path in files} == top
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (rule for rule in contracts if rule["containers"] == ["latebloomer"])
    assert LAYERS.splitlines() == contract["layers"]


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_every_hop_is_in_the_file_it_says(walk):
    hops = HOP.findall(walk)
    for name, file in hops:
        assert is_defined(name, file), f"{file} has no {name}"
    numbered = re.findall(r"^ ?(\d+)   ", walk, re.MULTILINE)
    assert numbered == [str(k) for k in range(1, len(numbered) + 1)]


LEARNERS = {"a": curve(5, 0.9), "b": curve(5, 0.7), "c": curve(5, 0.5)}
# The files of a simulated pull's path whose functions are compiled: no call of them is seen.
COMPILED = {"simulation/one_run.py", "core/moves.py", "core/history.py", "core/ranking.py"}


def calls_of(run):
    """The functions of the package that run, in order and in all threads: name and file."""
    calls, place = [], f"{SOURCE}{os.sep}"

    def note(frame, what, _):
        code = frame.f_code
        if what == "call" and code.co_filename.startswith(place):
            file = Path(code.co_filename).relative_to(SOURCE).as_posix()
            calls.append((code.co_qualname, file))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def are_in_order(hops, calls):
    """Whether the calls include these, one after the other."""
    left = iter(calls)
    return all(hop in left for hop in hops)


def calls_by(walk):
    """The hops of a walk that are functions: not the events and orders that pass between them."""
    return [
        (name, file) for name, file in HOP.findall(walk) if name not in ("Order", "ScoreReported")
    ]


def test_a_race_calls_the_functions_of_its_walk_between_two_requests_for_a_pull(path):
    calls = calls_of(
        lambda: race(LEARNERS, 40, policy="r-sr", journal=path, callbacks=[lambda *_: None])
    )
    first, *hops = calls_by(RACE)
    starts = [k for k, call in enumerate(calls) if call == first]
    turns = [calls[a:b] for a, b in pairwise(starts)]
    assert sum(are_in_order(hops, turn) for turn in turns) == 2  # one for each drop
    quiet = [hop for hop in hops if hop[0] != "note_drops"]
    assert sum(are_in_order(quiet, turn) for turn in turns) > 30


def test_a_resume_calls_the_functions_of_its_walk(path, cut):
    cut(15, lambda: race(LEARNERS, 40, journal=path, progress=False))
    calls = calls_of(lambda: resume(path, LEARNERS, progress=False))
    assert are_in_order(calls_by(RESUME), calls)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_calls_the_functions_of_its_walk():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 2
    models = {k: linear_model.SGDClassifier(alpha=k, max_iter=9) for k in (0.1, 0.01)}
    search = RaceSearchCV({str(k): one for k, one in models.items()}, trainings=2, random_state=0)
    assert are_in_order(calls_by(SEARCH), calls_of(lambda: search.fit(X, y)))


def test_a_simulation_calls_the_functions_of_its_walk():
    """What is compiled is seen in plain Python, where nothing is compiled."""
    moves_of.cache_clear()  # else another test's are used again
    hops = calls_by(SIMULATION)
    asked = {"budgets": 60, "runs": 2, "method": "pulls", "progress": False}
    calls = calls_of(lambda: simulate("paper-a", ["r-sr"], target="cpu", **asked))
    assert are_in_order([(name, file) for name, file in hops if file not in COMPILED], calls)
    moves_of.cache_clear()
    calls = calls_of(lambda: simulate("paper-a", ["r-sr"], target="python", **asked))
    assert are_in_order([hop for hop in hops if hop[0] != "compiled_player"], calls)


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


def test_folders_have_names_of_their_own_and_tests_mirror_them():
    """`import latebloomer.race.errors` would find the function `race` in the package's place."""
    top = {folder for folder in packages() if "/" not in folder}
    top |= {file.stem for file in SOURCE.glob("*.py")}
    assert top.isdisjoint(latebloomer.__all__)
    files = (file.relative_to(ROOT / "tests") for file in ROOT.glob("tests/*/**/test_*.py"))
    others = {"browser", "recordings"}  # all pages in a browser; all decisions
    assert {str(file.parent) for file in files} - others <= packages()


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
        ("cli/output.py", "showwarning", "Python lets programs replace it: to print a sentence"),
        ("cluster/connection.py", "ENABLE_RAY_CLUSTER", "Ray reads its variable when imported"),
        ("cluster/connection.py", "ray._private.ray_constants", "the module that has read it"),
        ("cluster/connection.py", "ray._raylet", "its authentication starts with this import"),
        ("integrations/optuna/study_trials.py", "_trial_id",
         "of a trial that another process asked for"),
        ("integrations/optuna/study_trials.py", "_storage",
         "a trial that waits is named there alone"),
        ("integrations/ray_tune.py", "_set_trial_status", "schedulers are given no other way"),
        ("integrations/schedule_lengths.py", "_schedulers", "parts have no public name"),
        ("integrations/schedule_lengths.py", "_milestones", "nor does when each begins"),
        ("integrations/transformers.py", "_load_from_checkpoint", "a Trainer loads by it only"),
        ("simulation/gpu/gpu_kernels.py", "row_stack",
         "numba-cuda reads a name that NumPy 2.5 removed"),
        ("integrations/sklearn/base_search.py", "_init_callback_context",
         "scikit-learn documents it for those who write estimators"),
        ("integrations/sklearn/model_files.py",
         "sklearn.neural_network._stochastic_optimizers", "a type in files of MLP estimators"),
        ("integrations/sklearn/training/booster_models.py", "_Booster",
         "else each pull reads all rows again"),
        ("racing/runners/child_process.py", "_exit", "a fork ends without its parent's clean-up"),
        ("_util/own_process.py", "_exit", "a fork must not run the rest of the program"),
        ("racing/runners/process_state.py", "stdout", "each learner has its own, as it left it"),
        ("racing/runners/process_state.py", "stderr", "the same"),
        ("racing/runners/packing.py", "path", "modules are found where the race found them"),
        ("racing/live_page_process.py", "returncode", "it outlives this process: no warning"),
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


# The files that know what rewards leave in a ledger; all others ask `core/history.py`.
HISTORIES = {"core/history.py", "core/running_sums.py", "core/redrawn_past.py"}
HISTORIES |= {"core/run_memory.py"}  # which allocates them
# Rewards that are drawn again, or kept on the card.
HISTORIES |= {"simulation/gpu/gpu_kernels.py", "simulation/gpu/redrawn_history.py"}


def test_only_the_history_reads_an_arms_rewards():
    found = [
        f"{file.relative_to(SOURCE)} line {node.lineno}: {ast.unparse(node)}"
        for file in FILES
        if str(file.relative_to(SOURCE)) not in HISTORIES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Attribute) and node.attr in ("S", "Q")
    ]
    assert found == []


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
