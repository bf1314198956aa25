"""Policies by name, for the command line and for settings files."""

from __future__ import annotations

import dataclasses
from typing import Any

from latebloomer.errors import SettingError, unknown
from latebloomer.policies.adaptive_rejects import AdaptiveRejects
from latebloomer.policies.asha import ASHA
from latebloomer.policies.base import Policy
from latebloomer.policies.explore_then_commit import ExploreThenCommit
from latebloomer.policies.hyperband import Hyperband
from latebloomer.policies.prob_one import ProbOne
from latebloomer.policies.rest_sure import RestSure
from latebloomer.policies.rising_sr import RisingSR
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.policies.round_robin import RoundRobin
from latebloomer.policies.round_robin_window import RoundRobinWindow
from latebloomer.policies.successive_halving import SuccessiveHalving
from latebloomer.policies.successive_rejects import SuccessiveRejects
from latebloomer.policies.ucbe import UCBE

AUTO = "auto"  # no policy by itself: which one it is depends on K, T and H
REGISTRY: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        RisingUCBE,
        RisingSR,
        RoundRobin,
        RoundRobinWindow,
        UCBE,
        SuccessiveRejects,
        ProbOne,
        ExploreThenCommit,
        RestSure,
        SuccessiveHalving,
        AdaptiveRejects,
        ASHA,
        Hyperband,
    )
}


def make_policy(text: str | Policy) -> Policy:
    """The policy that a name with settings means; a policy itself is returned as it is.

    >>> make_policy("r-ucbe:exploration=100,noise=0.01")
    RisingUCBE(exploration=100, noise=0.01, window=0.25, recommend='estimate', delta=0.05)
    >>> make_policy("r-usr")
    Traceback (most recent call last):
    latebloomer.errors.UnknownName: no policy is called 'r-usr'; did you mean 'r-sr' or ...
    """
    if isinstance(text, Policy):
        return text
    if not isinstance(text, str):
        raise SettingError(
            f"policy={text!r}, but policy must be a Policy or a name: for example 'r-sr'"
        )
    name, _, tail = text.partition(":")
    if name == AUTO:
        raise SettingError(
            f"policy={text!r}, but which policy that is depends on the arms, the budget and the "
            "horizon, and it takes no settings: latebloomer.policies.choose_policy(arms, budget, "
            "horizon) gives it"
        )
    if name not in REGISTRY:
        raise unknown("policy", name, [*REGISTRY, AUTO])
    cls = REGISTRY[name]
    return cls(**dict(_setting(cls, part) for part in tail.split(",") if part))


def _setting(cls: type[Policy], part: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    if not equals:
        raise SettingError(f"{part!r} in the settings of {cls.name}, but a setting is key=value")
    if key not in known:
        raise unknown(f"setting of {cls.name}", key, known)
    return key, _value(value)


def _value(text: str) -> Any:
    """A number where it reads as one, None, a tuple of what slashes part, or the text itself."""
    if text.lower() == "none":
        return None
    if "/" in text:
        return tuple(_value(part) for part in text.split("/"))
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def split_policies(text: str) -> list[str]:
    """Policies between commas; a part with = but no : belongs to the settings before it.

    >>> split_policies("r-sr,r-ucbe:exploration=100,noise=0.01,sh")
    ['r-sr', 'r-ucbe:exploration=100,noise=0.01', 'sh']
    """
    policies: list[str] = []
    for part in text.split(","):
        if policies and "=" in part and ":" not in part:
            policies[-1] += f",{part}"
        else:
            policies.append(part)
    return policies
