"""Load learners from a user's own module or function, such as `mine.py:learners`."""

import difflib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import latebloomer
from latebloomer._util.text import has_current_folder, reason_of
from latebloomer.cli.output import say
from latebloomer.errors import LearnerError, SettingError

if TYPE_CHECKING:
    from latebloomer.policies.base import Policy
    from latebloomer.problems import Problem

Thing = TypeVar("Thing")


class Source(NamedTuple):
    """The learners of a command, and the words by which the user named them."""

    words: tuple[str, ...]
    learners: Mapping[str, Any]
    settings: Mapping[str, Any] = {}  # settings of the race, if a file has them


def source_of(
    where: str | None,
    run: Sequence[str] = (),
    score: str | None = None,
    step: str | None = None,
    need_models: bool = False,
    full_steps: int | Mapping[str, int] | None = None,
) -> Source:
    """Return the learners from a module, a TOML file or the commands of `--run`."""
    if run:
        need_no_models(need_models)
        if where is not None:
            raise SettingError(f"{where!r} and --run both name learners. Give one of them.")
        return _programs(run, score, step, full_steps)
    for name, value in (("score", score), ("step", step)):
        if value is not None:
            raise SettingError(f"--{name} {value!r} needs --run, the programs that print it.")
    if where is None:
        raise LearnerError(
            "The learners are missing. Give mine.py:learners, a .toml file or "
            "--run NAME=COMMAND for each program."
        )
    if not where.endswith(".toml"):
        return Source((where,), learners_at(where, need_models))
    from latebloomer.programs.race_file import read_race_file

    need_no_models(need_models)
    return Source((where,), *read_race_file(Path(where)))


def _programs(
    run: Sequence[str],
    score: str | None,
    step: str | None,
    full_steps: int | Mapping[str, int] | None,
) -> Source:
    """Return the programs of `--run NAME=COMMAND` as learners."""
    from latebloomer.programs.command import Command

    if score is None:
        raise SettingError("--run needs --score, the name of the score in what programs print.")
    learners = {}
    for text in run:
        name, separator, command = text.partition("=")
        if not (separator and name.strip() and command.strip()) or name in learners:
            wrong = "has a name that is used before" if name in learners else "has no name"
            raise SettingError(f"--run {text!r} {wrong}: give NAME='COMMAND'.")
        own = full_steps.get(name) if isinstance(full_steps, Mapping) else full_steps
        learners[name] = Command(command, score, step=step, full_steps=own)
    options = [word for text in run for word in ("--run", text)]
    steps = [] if step is None else ["--step", step]
    return Source((*options, "--score", score, *steps), learners)


def need_no_models(needed: bool) -> None:
    """Raise an error before a race of programs if its winner is to be pickled."""
    if needed:
        raise SettingError(
            "--save pickles the winner, and a program has no pickle: let it save its own files, "
            "for example in {folder}. Omit --save."
        )


NOTHING = object()
OURS = os.path.dirname(latebloomer.__file__)


def learners_at(where: str, need_models: bool = False) -> Mapping[str, Any]:
    """Return the learners at `module:name` or `path/to/file.py:name`.

    Modules are searched in the current folder first. With `need_models`, a generator that yields
    no model fails at its first pull.
    """
    source, _, name = where.rpartition(":")
    if not (source and name):
        raise LearnerError(f"{where!r} must be module:name or path/to/file.py:name.")
    named = _named(where, source, name)
    called = callable(named) and not inspect.isclass(named)
    learners: Any = _run(where, named) if called else named
    if not isinstance(learners, Mapping):
        problem = f"{where} {'returned' if called else 'is'} {type(learners).__name__}"
        raise LearnerError(f"{problem}, but it must be a dict of learners or return one.")
    if not need_models:
        return learners
    return {name: _with_models(learner) for name, learner in learners.items()}


def problem_at(text: str) -> "Problem":
    """Return a problem by its name, or the one at `path/to/file.py:name`.

    In a file it is a `Problem`, or a function that returns one.
    """
    from latebloomer.problems import Problem, problem

    source, _, name = text.rpartition(":")
    if not (source.endswith(".py") and name):
        return problem(text)
    named = _named(text, source, name)
    found: Any = _run(text, named) if callable(named) else named
    if not isinstance(found, Problem):
        what = f"{text} is {type(found).__name__}, but it must be a Problem"
        raise LearnerError(f"{what}: {name} = Problem([...], noise=...), from latebloomer.")
    return found


def policy_at(where: str, settings: str | None = None) -> "Policy":
    """Return the policy at `path/to/file.py:Class`, with settings such as "window=0.5".

    The name may also be that of an object that is a policy.
    """
    from latebloomer.policies.base import Policy  # imports NumPy
    from latebloomer.policies.registry import settings_in

    source, _, name = where.rpartition(":")
    named = _named(where, source, name)
    policy: Any = named
    if inspect.isclass(named) and issubclass(named, Policy):
        policy = _run(where, partial(named, **settings_in(named, settings or "")))
    elif settings:
        raise LearnerError(f"{where} is an object, which takes no settings. Omit {settings!r}.")
    if not isinstance(policy, Policy):
        what = "a class" if inspect.isclass(policy) else type(policy).__name__
        cure = "Derive the class from latebloomer.policies.base.Policy."
        raise LearnerError(f"{where} is {what}, but it must be a policy's class. {cure}")
    return policy


def _named(where: str, source: str, name: str) -> Any:
    """Return the value that a module has under a name."""
    module = _module(where, source)
    value = _run(where, lambda: getattr(module, name, NOTHING))
    if value is not NOTHING:
        return value
    near = difflib.get_close_matches(name, dir(module), n=1)
    cure = f"Did you mean {near[0]!r}?" if near else "Give a name that it has."
    raise LearnerError(f"Module {module.__name__!r} has no {name!r}. {cure}")


def _module(where: str, source: str) -> ModuleType:
    """Import a module and return it.

    A file is imported under its own name, so that pickles and other processes find it.
    """
    if not has_current_folder():
        raise LearnerError("The current folder has been removed. Change to another one.")
    file = Path(source).resolve() if source.endswith(".py") else None
    if file is not None and not file.is_file():
        raise LearnerError(f"There is no file {source}. Check the path, seen from {Path.cwd()}.")
    if file is None and not all(word.isidentifier() for word in source.split(".")):
        path = f"{source}.py:{where.rpartition(':')[2]}"
        raise LearnerError(f"{source!r} is not the name of a module. For a file, give {path}.")
    folder, name = (Path.cwd(), source) if file is None else (file.parent, file.stem)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = _run(where, partial(_imported, name))
    if module is None:
        path = f"{name.replace('.', '/')}.py"
        cure = f"Run the command where {path} is, or give folder/{where.replace(name, path, 1)}."
        raise LearnerError(f"There is no module {name!r} here. {cure}")
    if file is not None and os.path.realpath(module.__file__ or "") != os.path.realpath(file):
        raise LearnerError(f"{source} has the name of a module in use, {name!r}. Rename it.")
    return module


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the missing module is one that the user's module imports
        return None


def _run(where: str, call: Callable[[], Thing]) -> Thing:
    """Call the user's code; if it fails, show only the traceback lines of that code."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        shown = traceback.TracebackException.from_exception(error)
        _keep_users_frames(shown)
        advice = "Fix the line shown in the traceback above."
        if isinstance(error, TypeError) and not shown.stack:  # the call itself failed
            advice = "Give a function that needs no arguments."
        else:
            say("".join(shown.format()).rstrip(), err=True)
        reason = reason_of(error)
        raise LearnerError(f"{where} raised {reason}. {advice}").quoting(reason) from error


def _keep_users_frames(shown: traceback.TracebackException) -> None:
    """Remove the frames of this library and of Python's import system, also from causes."""
    machinery = (f"{OURS}{os.sep}", "<frozen importlib", str(importlib.__file__))
    users = [frame for frame in shown.stack if not frame.filename.startswith(machinery)]
    shown.stack = traceback.StackSummary.from_list(users)
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _keep_users_frames(other)


def _with_models(learner: Any) -> Any:
    """Return a function that checks that its generator yields models, or the learner unchanged."""
    if hasattr(learner, "pull") or inspect.isclass(learner) or not callable(learner):
        return learner

    @wraps(learner)
    def build(*args: Any, **settings: Any) -> Any:
        built = learner(*args, **settings)
        bare = isinstance(built, Iterator) and not hasattr(built, "pull")
        return map(_need_model, built) if bare else built

    return build


def _need_model(item: Any) -> Any:
    if not (isinstance(item, tuple) and len(item) == 2 and item[1] is not None):
        cure = "Yield (score, model), or omit --save."
        raise LearnerError(f"it yields only scores, and --save cannot save a generator. {cure}")
    return item
