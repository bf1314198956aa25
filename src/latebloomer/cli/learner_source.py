"""The learners that a command is given as `mine.py:learners`: a user's own module and function."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import latebloomer
from latebloomer._util.text import reason_of
from latebloomer.cli.options import say
from latebloomer.errors import LearnerError
from latebloomer.racing.learner import Given

Thing = TypeVar("Thing")
NOTHING = object()
OURS = os.path.dirname(latebloomer.__file__)


def learners_at(where: str, need_models: bool = False) -> Mapping[str, Given]:
    """Return the learners that `module:name` or `path/to/file.py:name` gives.

    Modules are looked for in the current folder first. If models are needed, a generator that
    yields none fails at its first pull.
    """
    source, _, name = where.rpartition(":")
    if not (source and name):
        raise LearnerError(f"{where!r} must be module:name or path/to/file.py:name.")
    module = _file_module(where, source) if source.endswith(".py") else _module(where, source)
    given = _run(where, lambda: getattr(module, name, NOTHING))
    if given is NOTHING:
        raise LearnerError(f"Module {module.__name__!r} has no {name!r}: give a name that it has.")
    called = callable(given) and not inspect.isclass(given)
    made: Any = _run(where, given) if called else given  # type: ignore[arg-type]
    if not isinstance(made, Mapping):
        raise LearnerError(
            f"{where} {'returned' if called else 'is'} {type(made).__name__}, but it must be a "
            "dict of learners or a function that returns one."
        )
    return {name: _with_model(one) for name, one in made.items()} if need_models else made


# --- modules ---


def _module(where: str, name: str) -> ModuleType:
    """Return a module as Python imports it."""
    file = f"{name.replace('.', '/')}.py"
    if not all(word.isidentifier() for word in name.split(".")):
        path = f"{name}.py:{where.rpartition(':')[2]}"
        raise LearnerError(f"{name!r} is not the name of a module. For a file, give {path}.")
    if "" not in sys.path:
        _look_in(Path.cwd())
    found = _run(where, partial(_imported, name))
    if found is None:
        raise LearnerError(
            f"There is no module {name!r} here. Run the command where {file} is, or give the "
            f"file's path, folder/{where.replace(name, file, 1)}."
        )
    return found


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        return None


def _file_module(where: str, path: str) -> ModuleType:
    """Return a file as a module under its file name, so that pickles and processes find it."""
    file = Path(path).resolve()
    if not file.is_file():
        raise LearnerError(f"There is no file {path}. Check the path, as seen from {Path.cwd()}.")
    _look_in(file.parent)
    module = _run(where, partial(importlib.import_module, file.stem))
    if os.path.realpath(getattr(module, "__file__", None) or "") != os.path.realpath(file):
        raise LearnerError(
            f"{path} has the name of the module {file.stem!r}, which is in use here. Rename it."
        )
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# --- what the user's code raises ---


def _run(where: str, call: Callable[[], Thing]) -> Thing:
    """Call the user's code; if it fails, show its lines and none of this library's."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        shown = traceback.TracebackException.from_exception(error)
        _keep_users_frames(shown, set())
        advice = "Fix the line shown in the traceback above."
        if isinstance(error, TypeError) and not shown.stack:  # raised by the call itself
            advice = "Give a function that needs no arguments."
        else:
            say("".join(shown.format()).rstrip(), err=True)
        raise LearnerError(f"{where} raised {reason_of(error)}. {advice}") from error


def _keep_users_frames(shown: traceback.TracebackException, seen: set[int]) -> None:
    """Remove the frames of this library and of Python's import, also from causes."""
    if id(shown) in seen:
        return
    seen.add(id(shown))
    machinery = (f"{OURS}{os.sep}", "<frozen importlib", str(importlib.__file__))
    users = [frame for frame in shown.stack if not frame.filename.startswith(machinery)]
    shown.stack = traceback.StackSummary.from_list(users)
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _keep_users_frames(other, seen)


# --- generators ---


def _with_model(given: Any) -> Any:
    """Return a function that checks what its generator yields; learners with `pull` unchanged."""
    if hasattr(given, "pull") or inspect.isclass(given) or not callable(given):
        return given

    @wraps(given)
    def build(*args: Any, **settings: Any) -> Any:
        made = given(*args, **settings)
        bare = isinstance(made, Iterator) and not hasattr(made, "pull")
        return _with_models(made) if bare else made

    return build


def _with_models(scores: Iterator[Any]) -> Iterator[Any]:
    for item in scores:
        if not (isinstance(item, tuple) and len(item) == 2 and item[1] is not None):
            raise LearnerError(
                "it yields only scores, and --save cannot save a generator. Yield (score, model), "
                "or omit --save."
            )
        yield item
