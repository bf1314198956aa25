"""Every policy of the library: its name, "auto", and what it is called in files and figures.

A policy is registered by its place in `POLICIES`; tests, commands and files take it from there.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from latebloomer.errors import ContractError, SettingError, unknown

if TYPE_CHECKING:  # names can be listed without NumPy
    from latebloomer.policies.base import Policy

AUTO = "auto"  # no policy by itself: which one it is may depend on K, T and H
DEFAULT = "foresight"  # what "auto" is
# By name, the file of a policy and its class, in the order in which tables and figures show them.
# Comparators that only research needs are in `related/`; help texts list the others, `MAIN`.
POLICIES = {
    "r-ucbe": "rising_ucbe.RisingUCBE",
    "r-sr": "rising_sr.RisingSR",
    "rr": "round_robin.RoundRobin",
    "rr-sw": "round_robin_window.RoundRobinWindow",
    "ucb-e": "ucbe.UCBE",
    "sr": "successive_rejects.SuccessiveRejects",
    "prob-1": "prob_one.ProbOne",
    "etc": "explore_then_commit.ExploreThenCommit",
    "rest-sure": "rest_sure.RestSure",
    "sh": "successive_halving.SuccessiveHalving",
    "adaptive-rejects": "adaptive_rejects.AdaptiveRejects",
    "foresight": "foresight.Foresight",
    "asha": "asha.ASHA",
    "hyperband": "hyperband.Hyperband",
    "i-epoch": "related.i_epoch.IEpoch",
    "rising-bandits": "related.rising_bandits.RisingBandits",
    "max-ucb": "related.max_ucb.MaxUCB",
    "ptrr": "related.ptrr.PTRR",
    "hybrid": "related.hybrid.Hybrid",
}
MAIN = tuple(name for name, home in POLICIES.items() if not home.startswith("related."))
NOT_CAPITALS = {  # as their papers print them
    "prob-1": "Prob-1", "rest-sure": "Rest-Sure", "i-epoch": "i-Epoch", "max-ucb": "MaxUCB",
    "rising-bandits": "Rising Bandits", "hybrid": "Hybrid",
}  # fmt: skip


class Registry(Mapping[str, "type[Policy]"]):
    """Policies by their names, each loaded when it is first asked for.

    >>> Registry({"r-sr": "rising_sr.RisingSR"})["r-sr"]
    <class '...RisingSR'>
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> type[Policy]:
        file, _, cls = self._homes[name].rpartition(".")
        found: type[Policy] = getattr(import_module(f"latebloomer.policies.{file}"), cls)
        check_name(name, found)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def check_name(listed: str, cls: type[Policy]) -> None:
    """A `ContractError` unless the class has a name that can be asked for: the listed one."""
    name: Any = getattr(cls, "name", None)
    if name is None:
        likely = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        raise ContractError(
            f"{cls.__name__} has no name to be asked for by: give the class one, "
            f'name: ClassVar[str] = "{likely}"'
        )
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9-]+", name) or name == AUTO:
        raise ContractError(
            f"{cls.__name__} is called {name!r}, but a name is made of a-z, 0-9 and -, for "
            f"settings follow it (name:key=value), and is not {AUTO!r}, which stands for others"
        )
    if name != listed:
        raise ContractError(
            f"{cls.__name__} is called {name!r}, but it is listed as {listed!r} in POLICIES"
        )


REGISTRY = Registry(POLICIES)
ORDER = {name: place for place, name in enumerate(REGISTRY)}


def is_registered(policy: Policy) -> bool:
    """Whether it is one of the library's own, which a name and settings can say."""
    name: Any = getattr(policy, "name", None)
    return name in REGISTRY and REGISTRY[name] is type(policy)


# --- by name ---


def make_policy(text: str | Policy) -> Policy:
    """The policy that a name with settings means; a policy itself is returned as it is.

    Parameters
    ----------
    text : str | Policy
        Such as "r-ucbe:noise=0.01", or a policy.

    Returns
    -------
    Policy
        With these settings.

    Raises
    ------
    UnknownName
        No policy or setting of that name.
    SettingError
        A setting is outside its range.

    Examples
    --------
    >>> make_policy("r-ucbe:exploration=100,noise=0.01")
    RisingUCBE(exploration=100, noise=0.01, window=0.25, recommend='estimate', delta=0.05)
    >>> make_policy("r-usr")
    Traceback (most recent call last):
    latebloomer.errors.UnknownName: no policy is called 'r-usr'; did you mean 'r-sr' or ...
    """
    from latebloomer.policies.base import Policy

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

    Parameters
    ----------
    text : str
        Policies between commas.

    Returns
    -------
    list[str]
        One text for each.

    Examples
    --------
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


# --- "auto": what `race` plays by default, which is what the evidence favours ---


def choose_policy(arms: int, budget: int, horizon: int) -> Policy:
    """The policy for K arms, T pulls in all and arms compared at H pulls.

    Foresight: on recorded curves it is level with Adaptive Rejects, which has the lowest mean rank
    loss of the twelve policies in docs/which-policy.md at every budget from one to eight full
    trainings, and where curves are smooth it sees late bloomers that the other drops. How steep
    its plan is follows from K, T and H. It claims no bound on its error; where one is asked for,
    say `policy="r-sr"`.

    Parameters
    ----------
    arms : int
        K, how many arms there are.
    budget : int
        T, pulls in all.
    horizon : int
        H, the pull at which arms are compared.

    Returns
    -------
    Policy
        What "auto" is.

    Examples
    --------
    >>> choose_policy(arms=8, budget=400, horizon=100)
    Foresight(power=None)
    """
    policy = make_policy(DEFAULT)  # whose plan follows K, T and H by itself
    policy.check(arms, budget, horizon)
    return policy


def policy_for(policy: str | Policy, arms: int, budget: int, horizon: int) -> Policy:
    """Like `make_policy`, where K, T and H are known and "auto" has a meaning.

    >>> policy_for("auto", 8, 400, 100), policy_for("adaptive-rejects:power=2", 8, 400, 100)
    (Foresight(power=None), AdaptiveRejects(power=2, shortest=0.0))
    """
    return choose_policy(arms, budget, horizon) if is_auto(policy) else make_policy(policy)


def default_or_named(policy: str | Policy) -> Policy:
    """Like `make_policy`, with the default for "auto", whether or not it can be played."""
    return make_policy(DEFAULT if is_auto(policy) else policy)


def is_auto(policy: object) -> bool:
    """Whether the choice is left to the rule."""
    return isinstance(policy, str) and policy == AUTO


# --- labels: what a policy is called in tables, files and figures ---


def label_of(policy: Policy) -> str:
    """The name of a policy with the settings that are not the default: what `make_policy` reads.

    >>> from latebloomer.policies.rising_sr import RisingSR
    >>> from latebloomer.policies.rising_ucbe import RisingUCBE
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
