"""Names that a package shows, each loaded when it is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; `homes` says which module each name lives in."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        vars(sys.modules[package])[name] = found  # asked for once
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
