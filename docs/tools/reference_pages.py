"""The reference: a page for each public package, and one for each public class and function.

A package's page has a table of the names that its `__all__` lists. A name that several packages
list has its page with the first of them.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from leftovers import remove_others
from policy_pages import write

from latebloomer.policies.base import Policy

PACKAGES = {  # in the order of the reference, with what a reader looks for there
    "latebloomer": "what most programs need",
    "latebloomer.session.session": "ask and tell",
    "latebloomer.session.events": "what can happen to a race",
    "latebloomer.integrations.sklearn": "scikit-learn",
    "latebloomer.integrations.optuna": "Optuna",
    "latebloomer.policies.registry": "policies by name",
    "latebloomer.problems": "curves and noise to simulate with",
    "latebloomer.simulation.results.results": "simulations and their results",
    "latebloomer.bench": "policies on recorded curves",
    "latebloomer.theory": "bounds, budgets, certificates",
    "latebloomer.errors": "errors",
}
FIRST = ("race", "resume", "read_verdict", "full_steps")


INTEGRATIONS = (  # each can be imported without its library, which is loaded when it is used
    "xgboost", "lightgbm", "catboost", "torch", "lightning", "transformers", "keras",
    "ray_tune", "syne_tune", "loggers",
)  # fmt: skip


def write_reference(folder: Path) -> None:
    """Write all pages, and remove those of names that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"index": index(), "latebloomer.integrations": integrations_page()}
    for package in PACKAGES:
        own = {f"{package}.{name}": entry(package, name) for name in public_names(package)}
        pages |= {name: object_page(name, lines) for name, lines in own.items() if lines}
        pages[package] = page(package, [name for name, lines in own.items() if lines])
    for module in adapters():
        names = [f"{module}.{name}" for name in public_names(module)]
        pages |= {name: object_page(name, adapter_entry(name)) for name in names}
    for name, text in pages.items():
        write(folder / f"{name}.rst", text)
    remove_others(folder, set(pages))


def adapters() -> list[str]:
    """Return the modules of other libraries, in the order of the reference."""
    return [f"latebloomer.integrations.{name}" for name in INTEGRATIONS]


def integrations_page() -> str:
    """Return a table of the learners, hosts and loggers of other libraries, module by module."""
    title = "latebloomer.integrations"
    parts = [title, "=" * len(title), "", "Learners, hosts and loggers of other libraries.", ""]
    pages = []
    for module in adapters():
        parts += [
            module,
            "-" * len(module),
            "",
            f".. automodule:: {module}",
            "   :no-members:",
            "",
        ]
        parts += [".. list-table::", "   :widths: 30 70", ""]
        for name in public_names(module):
            parts += [f"   * - :py:obj:`{name} <{module}.{name}>`"]
            parts += [f"     - {in_brief(module, name)}"]
            pages.append(f"{module}.{name}")
        parts.append("")
    return "\n".join([*parts, *hidden_tree(pages)])


def adapter_entry(name: str) -> list[str]:
    """Return the entry of a class or function of an adapter."""
    module, _, thing = name.rpartition(".")
    kind = "class" if inspect.isclass(getattr(import_module(module), thing)) else "function"
    return [f".. auto{kind}:: {name}", ""]


def object_page(name: str, lines: list[str]) -> str:
    """Return the page of one name."""
    title = name.rpartition(".")[2].replace("_", "\\_")
    return "\n".join([title, "=" * len(title), "", *lines])


def hidden_tree(pages: list[str]) -> list[str]:
    """Return the lines that list pages below this one, without showing them in its text."""
    return [".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages), ""]


def public_names(package: str) -> list[str]:
    """What `__all__` lists; without one, what the module itself defines."""
    module = import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, thing in vars(module).items()
            if getattr(thing, "__module__", None) == package and not name.startswith("_")
        ]
    return [name for name in listed if name != "__version__"]


def page(package: str, pages: list[str]) -> str:
    """Return a table of all names, functions first, errors last, and the list of their pages."""
    parts = [package, "=" * len(package), "", f".. automodule:: {package}", "   :no-members:", ""]
    names = sorted(public_names(package), key=lambda name: rank(package, name))
    parts += [".. list-table::", "   :widths: 30 70", ""]
    for name in names:
        parts += [f"   * - {link(package, name)}", f"     - {in_brief(package, name)}"]
    return "\n".join(
        [
            *parts,
            "",
            *hidden_tree(sorted(pages, key=lambda page: rank(package, page.rpartition(".")[2]))),
        ]
    )


def rank(package: str, name: str) -> tuple[int, str]:
    """What everybody needs, functions, classes, policies, errors, values."""
    thing = getattr(import_module(package), name)
    if name in FIRST or inspect.ismodule(thing):
        return 0, str(FIRST.index(name)) if name in FIRST else name
    if not inspect.isclass(thing):
        return (1 if callable(thing) else 5), name
    return (4 if issubclass(thing, BaseException) else 3 if is_policy(thing) else 2), name


def is_policy(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Policy) and thing is not Policy


def link(package: str, name: str) -> str:
    thing = getattr(import_module(package), name)
    if inspect.ismodule(thing):
        return f":py:mod:`{name} <{thing.__name__}>`"
    return f":py:obj:`{name} <{first_home(thing, name)}.{name}>`"


def in_brief(package: str, name: str) -> str:
    """The first sentence of its docstring."""
    thing = getattr(import_module(package), name)
    if rank(package, name)[0] == 5:
        return comment_on(package, name)
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def entry(package: str, name: str) -> list[str]:
    thing = getattr(import_module(package), name)
    if inspect.ismodule(thing):
        return [f".. automodule:: {thing.__name__}", "   :members:", ""]
    if first_home(thing, name) != package:
        return []
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
        return [f".. {kind}:: {package}.{name}", *members(thing), ""]
    if callable(thing) and hasattr(thing, "__name__"):
        return [f".. autofunction:: {package}.{name}", ""]
    return [f".. py:data:: {package}.{name}", "", f"   {comment_on(package, name)}", ""]


def members(cls: type) -> list[str]:
    """What a class's entry lists: of a policy what the base class does not say already."""
    if issubclass(cls, BaseException):
        return []
    if not is_policy(cls):
        return ["   :members:"]
    own = (name for name, thing in vars(cls).items() if inspect.isroutine(thing))
    shown = [name for name in own if not name.startswith("_") and name not in dir(Policy)]
    return [f"   :members: {', '.join(shown)}"] if shown else []


def comment_on(package: str, name: str) -> str:
    """What a value is, as the line says where it is made; its type where there is no comment."""
    thing = getattr(import_module(package), name)
    for module in modules_of(package):
        made = re.search(
            rf"^{name}\b[^\n]* = [^\n]*?  # ([^\n]+)$", inspect.getsource(module), re.MULTILINE
        )
        if made:
            return made[1]
    if isinstance(thing, dict):
        return f"The names: {', '.join(f'``{one}``' for one in thing)}."
    return f"A {type(thing).__name__}: ``{thing!r}``."


def modules_of(package: str) -> list[ModuleType]:
    """A package and the modules in it."""
    module = import_module(package)
    inside = iter_modules(getattr(module, "__path__", []))
    return [module, *(import_module(f"{package}.{found.name}") for found in inside)]


def first_home(thing: object, name: str) -> str:
    """The first page that lists this very thing; the last for policies and problems."""
    last = is_policy(thing) or getattr(thing, "__module__", "").startswith("latebloomer.problems")
    for package in reversed(PACKAGES) if last else PACKAGES:
        listed = name in public_names(package)
        if listed and getattr(import_module(package), name) is thing:
            return package
    raise LookupError(name)


def index() -> str:
    rows = "\n".join(f"   * - :doc:`{name}`\n     - {what}" for name, what in PACKAGES.items())
    rows += "\n   * - :doc:`latebloomer.integrations`\n     - learners, loggers and hosts"
    tree = "\n".join(f"   {name}" for name in (*PACKAGES, "latebloomer.integrations"))
    return f"""Reference
=========

Every public name, with its parameters, what it returns and raises, and an example.

.. list-table::

{rows}

.. toctree::
   :hidden:

{tree}
"""
