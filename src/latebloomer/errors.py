"""The errors of this library: each says what was passed, what is needed and what to do.

::

    LatebloomerError
    ├── SettingError      (ValueError)       a setting outside its allowed range
    │   ├── BudgetError                      a budget that is too small
    │   └── UnknownName   (LookupError)      no policy, problem or setting of that name
    ├── ArmError          (LookupError)      no arm has that number or name
    ├── RewardError       (ValueError)       a score that is not a finite number
    ├── TellError         (RuntimeError)     a score for a pull that was not requested
    ├── NoScoresYet       (RuntimeError)     a recommendation before the first pull
    ├── CurveError        (ValueError)       curves that cannot be used
    ├── ResultsError      (ValueError)       results that cannot be read, merged or compared
    ├── ChunkError        (MemoryError)      something that does not fit into memory
    ├── NoDevice          (RuntimeError)     no GPU can be used
    ├── ClusterError      (RuntimeError)     a Ray cluster that cannot be used as requested
    ├── ContractError     (AssertionError)   a policy that breaks the contract of policies
    ├── MissingExtra      (ImportError)      an optional dependency that is not installed
    ├── LearnerError      (TypeError)        something that cannot be trained pull by pull
    ├── AllFailed         (RuntimeError)     every learner failed; the text has each reason
    ├── OutputError       (OSError)          a file that cannot be written: folder, rights, disk
    └── JournalError      (RuntimeError)     a journal that cannot be written, read or continued
        ├── JournalInUse                     another process writes to it
        └── JournalMismatch                  it holds another race
    Interrupted           (KeyboardInterrupt) Ctrl-C ended a race or a simulation; nothing is lost

If a method raises one of these errors, its object is unchanged.
"""

import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import Any, ParamSpec, Self, TypeVar

MOST = 2**53  # larger counts are not exact in a double
ENDS = {"(": (operator.gt, "above"), "[": (operator.ge, "at least"),
        ")": (operator.lt, "below"), "]": (operator.le, "at most")}  # fmt: skip


class LatebloomerError(Exception):
    """Base class of the errors that this library raises on purpose."""

    # Parts of the text that this library did not write, such as the message of a learner's
    # exception. The command line replaces Python arguments in messages by its options, except in
    # these parts.
    quoted: tuple[str, ...] = ()

    def quoting(self, *texts: str) -> Self:
        """Mark parts of the text as not written by this library, and return the error."""
        self.quoted = (*self.quoted, *texts)
        return self


class SettingError(LatebloomerError, ValueError):
    """A setting outside its allowed range."""


class BudgetError(SettingError):
    """A budget that is too small."""


class UnknownName(SettingError, LookupError):
    """No policy, problem or setting has that name."""


class ArmError(LatebloomerError, LookupError):
    """No arm has that number or name."""


class RewardError(LatebloomerError, ValueError):
    """A score that is not a finite number."""


class TellError(LatebloomerError, RuntimeError):
    """A score for a pull that was not requested."""


class NoScoresYet(LatebloomerError, RuntimeError):
    """A recommendation before the first pull."""


class CurveError(LatebloomerError, ValueError):
    """Curves that cannot be used."""


class ResultsError(LatebloomerError, ValueError):
    """Results that cannot be read, merged or compared."""


class ChunkError(LatebloomerError, MemoryError):
    """Something, such as a chunk of runs, that does not fit into memory."""


class NoDevice(LatebloomerError, RuntimeError):
    """No GPU that can be used."""


class ClusterError(LatebloomerError, RuntimeError):
    """A Ray cluster that cannot be reached or used as requested."""


class ContractError(LatebloomerError, AssertionError):
    """A policy, runner or noise that does not do what every object of its kind must do."""


class MissingExtra(LatebloomerError, ImportError):
    """An optional dependency that is not installed or cannot be loaded."""


class LearnerError(LatebloomerError, TypeError):
    """An object that cannot be trained one pull at a time.

    Attributes
    ----------
    final : bool
        Whether every further attempt would fail in the same way. Default: False.
    """

    final = False


class AllFailed(LatebloomerError, RuntimeError):
    """Every learner failed; the text has each reason."""


class OutputError(LatebloomerError, OSError):
    """A file that cannot be written: no such folder, no permission, a full disk."""


class JournalError(LatebloomerError, RuntimeError):
    """A journal that cannot be written, read or continued."""


class JournalInUse(JournalError):
    """A journal to which another process is writing."""


class JournalMismatch(JournalError):
    """A journal that holds another race, with other learners or settings."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a race or a simulation; the finished pulls or runs are kept.

    Attributes
    ----------
    state : str
        Text that says how far the race or the simulation got.
    journal : str | None
        Path of the journal to resume; None if there is none.
    results : Any
        A `Results` of the simulation's complete runs. None for a race.
    """

    def __init__(
        self, state: str, journal: str | None = None, advice: str = "", results: Any = None
    ) -> None:
        super().__init__(f"{state}{advice}")
        self.state, self.journal, self.results = state, journal, results


def require(holds: bool, name: str, value: object, needed: str, why: str) -> None:
    """Raise a `SettingError` unless `holds` is true.

    >>> require(False, "window", 0.7, "in (0, 1/2]", "it spans at most half of the rewards")
    Traceback (most recent call last):
    latebloomer.errors.SettingError: window=0.7, but window must be in (0, 1/2]: it spans ...
    """
    if not holds:
        raise SettingError(f"{name}={value!r}, but {name} must be {needed}: {why}")


def is_flag(value: object) -> bool:
    """Return whether a value is a Boolean of Python or NumPy, which does not count as a number."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def need_flag(name: str, value: object, meaning: str) -> bool:
    """Return `value` as a bool; raise a `SettingError` unless it is one.

    >>> need_flag("maximize", "minimize", "True if higher scores are better, False for losses")
    Traceback (most recent call last):
    latebloomer.errors.SettingError: maximize='minimize', but maximize must be True if higher ...
    """
    if not is_flag(value):
        raise SettingError(f"{name}={value!r}, but {name} must be {meaning}")
    return bool(value)


def need_number(name: str, value: object) -> None:
    """Raise a `SettingError` unless `value` is a real number (bool does not count as one)."""
    if is_flag(value) or not isinstance(value, Real):
        raise SettingError(f"{name}={value!r}, but {name} must be a number")
    try:
        float(value)
    except OverflowError:
        raise SettingError(f"{name} is larger than any floating-point number") from None


def need_in(name: str, value: Any, interval: str, why: str) -> None:
    """Raise a `SettingError` unless `value` is a number in an interval such as "(0, 0.5]".

    >>> need_in("delta", 1, "(0, 1)", "it is a probability")
    Traceback (most recent call last):
    latebloomer.errors.SettingError: delta=1, but delta must be above 0 and below 1: it is a ...
    """
    need_number(name, value)
    low, high = interval[1:-1].split(", ")
    ends = [(*ENDS[interval[0]], low), (*ENDS[interval[-1]], high)]
    needed = [f"{word} {end}" for _, word, end in ends if "inf" not in end or value == float(end)]
    inside = all(compare(value, float(end)) for compare, _, end in ends)
    require(inside, name, value, " and ".join(needed) or "finite", why)


def need_whole(name: str, value: object, least: int | None = None, why: str = "") -> int:
    """Return `value` as an int; raise a `SettingError` unless it is whole and at least `least`.

    >>> need_whole("budget", 2.5)
    Traceback (most recent call last):
    latebloomer.errors.SettingError: budget=2.5, but budget must be a whole number
    """
    try:
        number = None if is_flag(value) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise SettingError(f"{name}={value!r}, but {name} must be a whole number")
    if abs(number) > MOST:  # the number is not shown, because it may have thousands of digits
        bits = number.bit_length()
        raise SettingError(f"{name} has {bits} bits, but {name} must be at most 2^53")
    require(least is None or number >= least, name, value, f"at least {least}", why)
    return number


def unknown(
    kind: str, name: str, known: Iterable[str], in_full: Mapping[str, str] | None = None
) -> UnknownName:
    """Return the error for a name that is not in `known`; it suggests the most similar names.

    `in_full` has longer names for some of them. A part of a longer name also leads to a
    suggestion.

    >>> raise unknown("policy", "r-usr", ["r-sr", "sh"])
    Traceback (most recent call last):
    latebloomer.errors.UnknownName: no policy is called 'r-usr'; did you mean 'r-sr'? All: r-sr, sh
    >>> raise unknown("policy", "halving", ["r-sr", "sh"], {"sh": "SuccessiveHalving"})
    Traceback (most recent call last):
    latebloomer.errors.UnknownName: no policy is called 'halving'; did you mean 'sh'? All: ...
    """
    names, letters = sorted(known), _letters(name)
    part_of = [key for key, full in (in_full or {}).items() if letters in _letters(full)]
    near = part_of if part_of and letters else []
    near = near or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near[:3]))}?" if near else "."
    return UnknownName(f"no {kind} is called {name!r}{hint} All: {', '.join(names)}")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def names_arguments(
    **instead: str,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Make a function suggest the right argument if it receives one that it does not have.

    `instead` maps names that users know from other libraries to the function's own arguments.

    >>> @names_arguments(verbose="progress")
    ... def race(learners, progress=True): ...
    >>> race({}, verbose=False)
    Traceback (most recent call last):
    TypeError: race() has no argument 'verbose'; did you mean 'progress'?
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        code: Any = getattr(function, "__code__")  # noqa: B009
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

        @wraps(function)
        def checked(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            for name in named:
                if name not in known:
                    near = [instead[name]] if name in instead else []
                    near = near or difflib.get_close_matches(name, known, n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else f". All: {', '.join(known)}"
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{hint}")
            return function(*arguments, **named)

        return checked

    return decorate


def install_command(*extras: str, upgrade: bool = False) -> str:
    """Return what to type to install extras, from the place that this copy was installed from.

    A copy that was installed from a folder or a wheel, such as a clone, names that place: PyPI may
    have no package of this name, or another one.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    source, options = "latebloomer", ["--upgrade"] * upgrade
    try:
        record = distribution("latebloomer").read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    origin = json.loads(record) if record else {}
    folder = Path(url2pathname(urlsplit(origin.get("url", "")).path))
    if origin.get("url", "").startswith("file:") and folder.exists():
        source = str(folder)
        options += ["--editable"] * bool(origin.get("dir_info", {}).get("editable"))
    return " ".join(["pip install", *options, f"'{source}[{','.join(extras)}]'"])


def need_extras(purpose: str, **modules: str) -> None:
    """Raise one error that names every extra whose module is missing.

    >>> need_extras("figures", sim="math", plots="no_such_module", ray="nor_this")
    Traceback (most recent call last):
    latebloomer.errors.MissingExtra: figures need no_such_module and nor_this: pip install ...
    """
    missing = {name: module for name, module in modules.items() if find_spec(module) is None}
    if missing:
        needed = " and ".join(missing.values())
        raise MissingExtra(f"{purpose} need {needed}: {install_command(*missing)}")


def extra(module: str, purpose: str, name: str) -> Any:
    """Import an optional dependency, or raise an error that says how to install it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f"{purpose} need {package}: {install_command(name)}") from error
    except OSError as error:  # LightGBM's wheel needs OpenMP from the system
        cure = "; on Debian: apt-get install libgomp1" if "libgomp" in str(error) else ""
        wrong = "which is installed but cannot be imported"
        raise MissingExtra(f"{purpose} need {package}, {wrong}: {error}{cure}") from error
