"""Declarations of options, and checks of their values."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from latebloomer.errors import MOST, LatebloomerError, SettingError

Number = TypeVar("Number", int, float)
OWN_POLICY = re.compile(r"(?P<where>.+\.py:[^\W\d]\w*)(?::(?P<settings>.*))?")
Check = Callable[[Any], Any]  # returns the value, or raises `typer.BadParameter`


def option(panel: str | None, text: str, check: Check | None = None, name: str = "") -> Any:
    """Return an option with its help text; without `name`, a flag also gets a --no-... form."""
    names = [name] if name else []
    return typer.Option(*names, callback=check, help=text, rich_help_panel=panel)


def argument(metavar: str, text: str) -> Any:
    """Return an argument with its help text."""
    return typer.Argument(metavar=metavar, help=text)


def count(least: int = 1, most: int = MOST) -> Check:
    """Return a check for an integer from `least` to `most`."""
    needed = f"at least {least}" + ("" if most == MOST else f" and at most {most}")
    return _checked(lambda value: least <= value <= most, needed)


def number() -> Check:
    """Return a check for a finite number that is at least 0."""
    return _checked(lambda value: 0 <= value < math.inf, "finite and at least 0")


def choice(*words: str) -> Check:
    """Return a check that a value is one of `words`."""
    return _checked(lambda value: value in words, " or ".join(map(repr, words)))


def _checked(holds: Callable[[Any], bool], needed: str) -> Check:
    def check(value: Any) -> Any:
        if value is not None and not holds(value):
            raise typer.BadParameter(f"{value!r} must be {needed}.")
        return value

    return check


def policies(files: bool = False) -> Check:
    """Return a check for one policy, or several separated by commas.

    With `files`, a policy may also be a class or an object in a file, such as `mine.py:Class`.
    """
    from latebloomer.policies.registry import default_or_named, split_policies

    def check(value: str | None) -> str | None:
        try:
            for name in [] if value is None else split_policies(value):
                if files and name.endswith(".py"):
                    raise SettingError(f"{name!r} is a file. Add its class: {name}:CLASS.")
                if not (files and OWN_POLICY.fullmatch(name)):
                    default_or_named(name)
        except LatebloomerError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return check


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Make errors inside the block name the option that caused them."""
    try:
        yield
    except LatebloomerError as error:
        raise type(error)(f"{option}: {error}") from error


def comma_separated(option: str, words: str, kind: Callable[[str], Number]) -> list[Number]:
    """Return the numbers in the text of an option.

    >>> comma_separated("--budget", "100,200", int)
    [100, 200]
    """
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        what = "integers" if kind is int else "numbers"
        raise SettingError(f"{option} {words!r} must be {what} separated by commas.") from None


def parse_full_steps(text: str | None) -> int | dict[str, int] | None:
    """Return the steps of a full training: one number for all learners, or numbers by name.

    >>> parse_full_steps("200"), parse_full_steps("net=3600,forest=200")
    (200, {'net': 3600, 'forest': 200})
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {name.strip(): int(steps) for name, _, steps in pairs}
    except ValueError:
        needed = "an integer, or one per name: net=3600,forest=200"
        raise SettingError(f"--full-steps {text!r} must be {needed}.") from None


def parse_score_range(text: str | None) -> tuple[float | None, float | None] | None:
    """Return the lowest and the highest possible score; None for a missing limit.

    >>> parse_score_range("0,1"), parse_score_range("0,"), parse_score_range(",1")
    ((0.0, 1.0), (0.0, None), (None, 1.0))
    """
    if text is None:
        return None
    try:
        low, high = (float(part) if part.strip() else None for part in text.split(","))
    except ValueError:
        needed = "the lowest and the highest possible score, as in 0,1 or 0, or ,1"
        raise SettingError(f"--score-range {text!r} must be {needed}.") from None
    return low, high
