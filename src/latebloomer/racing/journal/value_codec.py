"""Values in a journal as JSON: each value is read back unchanged; others raise an error.

JSON has null, true, false, numbers, text, arrays and objects. An array stands for a tuple and an
object for a dict whose keys are text. Values that JSON lacks are objects with one key: `$float`
for infinities and nan, `$int` beyond 64 bits (as hexadecimal), `$text` with half characters or
NUL, `$list`, and `$dict` with other keys. So every version of SQLite can read the JSON of every
journal. A NumPy scalar is read back as the equal Python number.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from json import dumps, loads
from math import isfinite
from typing import Any

from latebloomer._util.text import brief

WORD = 2**63  # SQLite's integers are smaller
PLAIN = "a number, text, True, False, None, or a tuple, list or dict of these"


class NotPlain(TypeError):
    """A value that a journal cannot store; the message says where it is and what it is."""


def to_json(value: Any, place: str = "") -> str:
    """Return a value as JSON text; raise `NotPlain` if a journal cannot store it."""
    return dumps(encoded(value, place), allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """Return the value of a JSON text from `to_json`; raise a `ValueError` for other text."""
    return decoded(loads(text, parse_constant=_no_constant))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# --- values to JSON ---


def encoded(value: Any, place: str = "") -> Any:
    """Return a value in types that JSON has; `place` is its place, for errors.

    >>> encoded({"range": (0, float("inf")), 1: [True]})
    {'$dict': [['range', [0, {'$float': 'inf'}]], [1, {'$list': [True]}]]}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, float):
        return _float(float.__float__(value))
    if isinstance(value, int):
        return _int(int.__int__(value))
    try:
        if isinstance(value, tuple):
            return _all(value, place)
        if isinstance(value, list):
            return {"$list": _all(value, place)}
        if isinstance(value, Mapping):
            return _dict(value, place)
    except RecursionError:
        raise NotPlain(f"{place or 'a value'} is nested too deeply") from None
    return encoded(scalar(value, place), place)


def _text(value: str) -> Any:
    return value if _is_whole(value) else {"$text": value}


def _is_whole(text: str) -> bool:
    """Return whether SQLite stores a text unchanged: it has no NUL and no half characters."""
    if text.isascii():
        return "\0" not in text
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def _float(value: float) -> Any:
    return value if isfinite(value) else {"$float": repr(value)}


def _int(value: int) -> Any:
    return value if -WORD <= value < WORD else {"$int": hex(value)}


def _all(values: Sequence[Any], place: str) -> list[Any]:
    return [encoded(value, f"{place}[{k}]") for k, value in enumerate(values)]


def _dict(values: Mapping[Any, Any], place: str) -> Any:
    if all(type(key) is str and _is_whole(key) and key[:1] != "$" for key in values):
        return {key: encoded(value, _below(place, key)) for key, value in values.items()}
    pairs = [[encoded(key, place), encoded(value, place)] for key, value in values.items()]
    return {"$dict": pairs}


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def scalar(value: Any, place: str = "") -> bool | int | float:
    """Return a truth value or a number as a Python value; raise `NotPlain` for other values."""
    if isinstance(value, bool | int | float):
        return value
    numpy = sys.modules.get("numpy")  # if NumPy is not imported, there are no such values
    if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        plain = value.item()
        if isinstance(plain, bool | int | float):  # a long double is not one of these
            return plain
    what = f"{place}={brief(value)}" if place else brief(value)
    raise NotPlain(f"{what} cannot be stored in a journal, which can store {PLAIN}")


# --- values from JSON ---


def decoded(value: Any) -> Any:
    """Return the value from which `encoded` made this one.

    >>> decoded({"$float": "-inf"}), decoded([1, {"$int": "0x10000000000000000"}])
    (-inf, (1, 18446744073709551616))
    """
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if tag[:1] != "$":
        return {key: decoded(each) for key, each in value.items()}
    (inner,) = value.values()
    return TAGS[tag](inner)


def _special_float(text: str) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"{brief(text)} is not a special number")
    return float(text)


TAGS: dict[str, Callable[[Any], Any]] = {
    "$float": _special_float,
    "$int": lambda text: int(text, 16),
    "$text": str,
    "$list": lambda values: list(map(decoded, values)),
    "$dict": lambda pairs: {decoded(key): decoded(value) for key, value in pairs},
}
