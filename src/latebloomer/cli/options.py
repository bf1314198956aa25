"""The options of all commands: their help by panel, what values they take, what they write."""

import inspect
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.models import OptionInfo

from latebloomer._util.atomic_files import need_different, need_writable
from latebloomer._util.text import printable
from latebloomer.errors import MOST, LatebloomerError, OutputError, SettingError
from latebloomer.policies.registry import MAIN

Number = TypeVar("Number", int, float)
Output = tuple[Path | None, Callable[[Path], object], str]  # file, what writes it, a command
KNOWN = f"auto, {', '.join(MAIN)}. `latebloomer policies` lists all."
SECTION = "\n\nParameters\n----------\n"  # of a docstring
RUNNERS = ("local", "isolated", "ray")

PANELS = {  # of the help, and the options in each
    "Budget": "trainings budget budgets seconds full_steps pulls_per_training winner_share",
    "Policy": "policy policies baseline horizon min_pulls stop maximize seed revive add",
    "Files": "journal if_exists report save out csv plot",
    "Faults": "timeout retries checkpoint_every isolate max_in_memory",
    "Ray": "runner engine address storage cpus gpus",
    "Output": "watch json quiet verbose follow",
}
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def texts_in(command: Callable[..., None]) -> dict[str, str]:
    """Return what the docstring of a command says of its parameters."""
    section = (inspect.getdoc(command) or "").partition(SECTION)[2]
    found = re.findall(r"^(\w+)\n((?:    .+\n?)+)", section, re.MULTILINE)
    return {name: " ".join(text.split()).replace("POLICIES", KNOWN) for name, text in found}


def as_option(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """Return a parameter with its help, and with a check by its type if it has no other."""
    declared = parameter.annotation
    kind, given = declared, getattr(declared, "__metadata__", ())
    if given:
        kind, (info,) = declared.__origin__, given
    elif parameter.default is False:
        info = typer.Option(f"--{parameter.name}")
    else:
        checks = {int: count, float: number}
        kinds = [one for one in (kind, *get_args(kind)) if one in checks]
        info = checks[kinds[0]]() if kinds else typer.Option()
    info.help = text
    if isinstance(info, OptionInfo):
        info.rich_help_panel = PANEL_OF.get(parameter.name)
    return parameter.replace(annotation=Annotated[kind, info])


def count(least: int = 1, most: int = MOST) -> Any:
    """Return an option that takes an integer in a range."""
    needed = f"at least {least}" + ("" if most == MOST else f" and at most {most}")
    return _checked(lambda value: least <= value <= most, needed)


def number() -> Any:
    """Return an option that takes a finite number, at least 0."""
    return _checked(lambda value: 0 <= value < math.inf, "finite and at least 0")


def choice(*words: str) -> Any:
    """Return an option that takes one of some words."""
    return _checked(lambda value: value in words, " or ".join(map(repr, words)))


def _checked(holds: Callable[[Any], bool], needed: str) -> Any:
    def check(value: Any) -> Any:
        if value is not None and not holds(value):
            raise typer.BadParameter(f"{value!r} must be {needed}.")
        return value

    return typer.Option(callback=check)


def policies() -> Any:
    """Return an option that takes one policy, or several separated by commas."""
    from latebloomer.policies.registry import default_or_named, split_policies

    def check(value: str | None) -> str | None:
        try:
            for one in [] if value is None else split_policies(value):
                default_or_named(one)
        except LatebloomerError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return typer.Option(callback=check)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Let errors name the option that caused them."""
    try:
        yield
    except LatebloomerError as error:
        raise type(error)(f"{option}: {error}") from error


def comma_separated(option: str, words: str, kind: Callable[[str], Number]) -> list[Number]:
    """Return the numbers of an option.

    >>> comma_separated("--budget", "100,200", int)
    [100, 200]
    """
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        what = "integers" if kind is int else "numbers"
        raise SettingError(f"{option} {words!r} must be {what} separated by commas.") from None


def say(text: object, err: bool = False) -> None:
    """Print with control characters as escapes: names of learners are other people's text."""
    typer.echo(printable(str(text)), err=err)


def command(*words: object) -> str:
    """Return a command of this program as one types it."""
    return shlex.join(["latebloomer", *map(str, words)])


def redrawn(texts: Iterable[object]) -> None:
    """Show texts as they come, each in place of the last; one below the other in a file.

    Ctrl-C ends that and nothing else.
    """
    with suppress(KeyboardInterrupt):
        if not sys.stdout.isatty():
            for text in texts:
                say(f"{text}\n")
            return
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False, vertical_overflow="crop") as live:
            for text in texts:
                live.update(Text(printable(str(text))), refresh=True)


def check_outputs(files: Mapping[str, Path | None], **other: Path) -> None:
    """Raise an error before the work if the files that options name cannot be written after it."""
    need_different({**{f"the {name}": path for name, path in other.items()}, **files})
    for option, path in files.items():
        if path is not None:
            with naming(option):
                need_writable(path)


def write_each(*files: Output, err: bool = False) -> None:
    """Write all that is asked for, in order, also if one fails; then raise its error.

    Each file has a command that tries again, which an error names, or an empty text.
    """
    failures: list[LatebloomerError] = []
    for path, write, again in files:
        try:
            if path is not None:
                write(path)
                if again:
                    say(f"wrote {path}", err=err)
        except OutputError as error:
            failures.append(OutputError(f"{error} Then: {again}") if again else error)
        except LatebloomerError as error:
            failures.append(error)
    for failure in failures[1:]:
        say(f"{type(failure).__name__}: {failure}", err=True)
    if failures:
        raise failures[0]
