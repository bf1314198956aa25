"""What a policy is called in tables, files and figures."""

from __future__ import annotations

import dataclasses
from typing import Any

from latebloomer.policies.base import Policy
from latebloomer.policies.registry import REGISTRY

ORDER = {name: place for place, name in enumerate(REGISTRY)}
NOT_CAPITALS = {"prob-1": "Prob-1", "rest-sure": "Rest-Sure"}  # as the paper prints them


def label_of(policy: Policy) -> str:
    """The name of a policy with the settings that are not the default: what `make_policy` reads.

    >>> from latebloomer.policies import RisingSR, RisingUCBE
    >>> label_of(RisingSR()), label_of(RisingUCBE(exploration=100, noise=0.01))
    ('r-sr', 'r-ucbe:exploration=100,noise=0.01')
    """
    cls = type(policy)
    parts = [
        f"{field.name}={_text(getattr(policy, field.name))}"
        for field in dataclasses.fields(policy)  # type: ignore[arg-type]
        if getattr(policy, field.name) != field.default
    ]
    name = str(getattr(cls, "name", cls.__name__))
    return f"{name}:{','.join(parts)}" if parts else name


def _text(value: Any) -> str:
    """A setting as text; equal numbers give equal text, and a tuple has slashes for commas."""
    if isinstance(value, tuple | list):
        return "/".join(map(_text, value))
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))
    return str(value)


def rank(label: str) -> tuple[int, str]:
    """The place of a label: the paper's order of algorithms, then by settings."""
    return ORDER.get(label.partition(":")[0], len(ORDER)), label


def title(label: str) -> str:
    """A label as figures show it.

    >>> title("r-ucbe:exploration=100"), title("rest-sure")
    ('R-UCBE (exploration=100)', 'Rest-Sure')
    """
    name, _, settings = label.partition(":")
    shown = NOT_CAPITALS.get(name, name.upper() if name in ORDER else name)
    return f"{shown} ({settings})" if settings else shown
