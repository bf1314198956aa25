"""The named tuple of numeric fields that is `self` inside kernels.

Policies and noise have one; they are dataclasses whose methods are kernels.
"""

import dataclasses
from collections import namedtuple
from typing import Any

NUMERIC = ("bool", "int", "float", bool, int, float)  # annotations, as text or as types


class NumbersOf:
    """Make the named tuple of a dataclass's numeric fields when it is first needed.

    A method would not do. Numba's disk cache refers to the type by its name on the class, and a
    process that reads the cache looks it up there before it has called anything: reading the name
    must make it. It cannot be made together with the class, because `@dataclass` adds the fields
    after that. Each class has its own: a subclass has more fields.
    """

    def __get__(self, owner: object, cls: type) -> Any:
        fields = dataclasses.fields(cls)
        names = [field.name for field in fields if field.type in NUMERIC]
        numbers: Any = namedtuple("Numbers", names, module=cls.__module__)  # type: ignore[misc]
        numbers.__qualname__ = f"{cls.__qualname__}.Numbers"
        cls.Numbers = numbers  # type: ignore[attr-defined]
        return numbers


def numbers_of(owner: Any) -> Any:
    """Return the numeric fields of a dataclass that has a `NumbersOf`.

    An integer in a field of type float becomes a float: `power=1` and `power=1.0` are then the
    same type to a compiler, and are compiled once.
    """
    types = {field.name: field.type for field in dataclasses.fields(owner)}
    values = ((getattr(owner, name), types[name]) for name in owner.Numbers._fields)
    return owner.Numbers(*(float(x) if t in ("float", float) else x for x, t in values))
