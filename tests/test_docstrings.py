"""Every public name documents all its parameters, what it returns, and errors that exist."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from latebloomer import errors, integrations
from latebloomer.integrations import sklearn
from latebloomer.policies.registry import POLICIES

PACKAGES = (
    "latebloomer", "latebloomer.problems", "latebloomer.bench",
    "latebloomer.theory", "latebloomer.integrations.sklearn",
)  # fmt: skip
NAMES = (  # what else users import, by its module
    "policies.registry.choose_policy", "policies.registry.make_policy",
    "policies.registry.split_policies", "racing.checks.check_learner.LearnerCheck",
    "session.arm_views.LearnerView", "simulation.results.comparison.Comparison",
)  # fmt: skip
# What is made for a library, each in a module that can be imported without it.
ADAPTERS = tuple(
    f"latebloomer.integrations.{name}"
    for name in (
        "xgboost", "lightgbm", "catboost", "torch", "lightning", "transformers", "keras",
        "optuna", "ray_tune", "syne_tune", "loggers",
    )
)  # fmt: skip
NEEDS_NOTHING = {"LoggingLogger", "RaceLogger", "RaceCallback"}  # beyond Python, or what is there
TITLES = ("Parameters", "Attributes", "Returns", "Raises", "Examples")


def listed(package):
    module = import_module(package)
    own = [name for name, thing in vars(module).items()
           if getattr(thing, "__module__", "") == package and name[0] != "_"]  # fmt: skip
    return getattr(module, "__all__", own)


def public():
    """Functions and classes that the packages list; not modules, values and protocols."""
    found = {}
    for package in (*PACKAGES, *ADAPTERS):
        for name in listed(package):
            thing = getattr(import_module(package), name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[thing] = f"{package}.{name}"
    for path in (*NAMES, *(f"policies.{home}" for home in POLICIES.values())):
        module, _, name = f"latebloomer.{path}".rpartition(".")
        found[getattr(import_module(module), name)] = f"{module}.{name}"
    return found


PUBLIC = public()


def parameters(thing):
    plain = inspect.isclass(thing) and (
        issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)
    )
    return [] if plain else list(inspect.signature(thing).parameters)


def sections(thing):
    """The titles of a docstring's sections and their lines."""
    text = inspect.getdoc(thing)
    cut = re.split(rf"^({'|'.join(TITLES)})\n-+$", text, flags=re.MULTILINE)
    return dict(zip(cut[1::2], cut[2::2], strict=True))


def names_in(section):
    """What a section is about: its lines that are not indented, without their types."""
    return re.findall(r"^(\w+)", section, re.MULTILINE)


@pytest.mark.parametrize("thing", PUBLIC, ids=PUBLIC.get)
def test_it_documents_its_parameters_in_order_what_it_returns_and_errors_that_are_ours(thing):
    found, known = sections(thing), {**vars(errors), "NoneLearns": sklearn.NoneLearns}
    assert not ("Parameters" in found and "Attributes" in found)
    described = found.get("Parameters", found.get("Attributes", ""))
    assert names_in(described) == parameters(thing)
    if inspect.isfunction(thing):
        returns = inspect.signature(thing).return_annotation not in ("None", None)
        assert ("Returns" in found) == (returns and bool(parameters(thing)))
    for name in names_in(found.get("Raises", "")):
        assert issubclass(known[name], BaseException), name
    first = inspect.getdoc(thing).splitlines()[0]
    assert first[-1] in ".?:]" or "." in inspect.getdoc(thing).split("\n\n")[0], first
    if thing.__module__ in ADAPTERS:  # made for a library: where it is missing, and an example
        missing = "MissingExtra" in found.get("Raises", "")
        assert missing == (thing.__name__ not in NEEDS_NOTHING) and "Examples" in found


def test_every_module_for_a_library_is_held_to_it():
    folder = Path(integrations.__file__).parent
    inside = {"library_learner", "part_owners", "schedule_lengths", "boosters", "hosted_race"}
    inside |= {"__init__", "__pycache__", "sklearn"}
    named = {module.rpartition(".")[2] for module in ADAPTERS}
    assert {path.stem for path in folder.iterdir()} - inside == named
