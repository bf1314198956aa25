"""The learners that a command is given as `mine.py:learners`: a user's own module and function."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import latebloomer
from latebloomer._util.text import reason_of
from latebloomer.cli.terminal_output import say
from latebloomer.errors import LearnerError
from latebloomer.racing.learner import Given

Thing = TypeVar("Thing")
NOTHING = object()
OURS = os.path.dirname(latebloomer.__file__)
FORMS = "module:function or path/to/file.py:function"


def learners_at(where: str) -> Mapping[str, Given]:
    """The learners that `module:function` or `path/to/file.py:function` gives.

    Modules are looked for in the current folder first; a dict in the function's place will do.
    """
    source, _, name = where.rpartition(":")
    if not (source and name):
        raise LearnerError(f"{where!r}, but learners are named as {FORMS}")
    module = _file_module(where, source) if source.endswith(".py") else _module(where, source)
    given = _run(where, lambda: getattr(module, name, NOTHING))
    if given is NOTHING:
        raise LearnerError(
            f"module {module.__name__!r} has no {name!r}: give the name of a function in it that "
            "returns the learners"
        )
    return _learners(where, given)


def _learners(where: str, given: Any) -> Mapping[str, Given]:
    called = callable(given) and not inspect.isclass(given)
    if called:
        _need_no_arguments(where, given)
    made = _run(where, given) if called else given
    if not isinstance(made, Mapping):
        raise LearnerError(
            f"{where} {'gave' if called else 'is'} {type(made).__name__}, but it must "
            f"{'give' if called else 'be a function that returns'} a dict of learners"
        )
    return made


def _need_no_arguments(where: str, function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of compiled code do not say
        return
    try:
        signature.bind()
    except TypeError as error:
        raise LearnerError(
            f"{where} cannot be called without arguments ({error}): give a function that needs "
            "none and returns a dict of learners"
        ) from None


# --- modules ---


def _module(where: str, name: str) -> ModuleType:
    """A module as Python imports it."""
    if not all(word.isidentifier() for word in name.split(".")):
        file = f"{name}.py:{where.rpartition(':')[2]}"
        raise LearnerError(f"{name!r} is not the name of a module: for a file give {file}")
    if "" not in sys.path:
        _look_in(Path.cwd())
    found = _run(where, partial(_imported, name))
    if found is None:
        file = f"{name.replace('.', '/')}.py"
        raise LearnerError(
            f"there is no module {name!r} here: run the command where {file} is, or give the "
            f"file's path, folder/{where.replace(name, file, 1)}"
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
    """A file as a module of its own name, so that pickles and other processes find it again."""
    file = Path(path).resolve()
    if not file.is_file():
        raise LearnerError(f"there is no file {path}: check the path, as seen from {Path.cwd()}")
    known = sys.modules.get(file.stem)
    if known is None:
        return _run(where, partial(_executed, file))
    if os.path.realpath(getattr(known, "__file__", None) or "") != os.path.realpath(file):
        raise LearnerError(
            f"{path} has the name of the module {file.stem!r}, which is in use here: rename it"
        )
    return known


def _executed(file: Path) -> ModuleType:
    _look_in(file.parent)
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"Python cannot load {file}")
    module = sys.modules[file.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# --- what the user's code raises ---


def _run(where: str, call: Callable[[], Thing]) -> Thing:
    """Call the user's code; where it fails, show its lines and none of ours."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        say(users_traceback(error), err=True)
        raise LearnerError(
            f"{where} failed with {reason_of(error)}: mend it where the lines above say"
        ) from error


def users_traceback(error: BaseException) -> str:
    """A traceback without this library's frames and those of Python's import."""
    shown = traceback.TracebackException.from_exception(error)
    _keep_users_frames(shown, set())
    return "".join(shown.format()).rstrip()


def _keep_users_frames(shown: traceback.TracebackException, seen: set[int]) -> None:
    if id(shown) in seen:
        return
    seen.add(id(shown))
    frames = [frame for frame in shown.stack if not _is_machinery(frame.filename)]
    shown.stack = traceback.StackSummary.from_list(frames)
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _keep_users_frames(other, seen)


def _is_machinery(file: str) -> bool:
    return file.startswith((f"{OURS}{os.sep}", "<frozen importlib")) or file == importlib.__file__
