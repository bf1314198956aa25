"""All policies of the library: their names, "auto", and their labels in files and figures.

A policy is registered by its entry in `POLICIES`, where tests, commands and journals look it up.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from latebloomer._util.text import number_or_text
from latebloomer.errors import ContractError, SettingError, unknown

if TYPE_CHECKING:  # so that names can be listed without NumPy
    from latebloomer.policies.base import Policy

AUTO = "auto"  # stands for a policy that may depend on K, T and H
DEFAULT = "foresight"  # the policy that "auto" stands for
# File and class of each policy by its name, in the order of tables and figures. Policies that only
# serve comparisons in research are in `related/`; help texts list the others, `MAIN`.
POLICIES = {
    "r-ucbe": "rising_ucbe.RisingUCBE",
    "r-sr": "rising_sr.RisingSR",
    "rr": "window_ratings.RoundRobin",
    "rr-sw": "window_ratings.RoundRobinWindow",
    "ucb-e": "rising_ucbe.UCBE",
    "sr": "window_ratings.SuccessiveRejects",
    "prob-1": "prob_one.ProbOne",
    "etc": "power_law.ExploreThenCommit",
    "rest-sure": "power_law.RestSure",
    "sh": "window_ratings.SuccessiveHalving",
    "adaptive-rejects": "adaptive_rejects.AdaptiveRejects",
    "foresight": "foresight.Foresight",
    "asha": "rungs.ASHA",
    "hyperband": "rungs.Hyperband",
    "i-epoch": "related.tuner_rules.IEpoch",
    "rising-bandits": "related.tuner_rules.RisingBandits",
    "max-ucb": "related.tuner_rules.MaxUCB",
    "r-ed-ucb": "related.rested_ucb.RestedUCB",
    "ptrr": "related.power_thresholds.PTRR",
    "hybrid": "related.power_thresholds.Hybrid",
}
MAIN = tuple(name for name, home in POLICIES.items() if not home.startswith("related."))
NOT_CAPITALS = {  # labels that are not capitals, as the papers print them
    "prob-1": "Prob-1", "rest-sure": "Rest-Sure", "i-epoch": "i-Epoch", "max-ucb": "MaxUCB",
    "rising-bandits": "Rising Bandits", "hybrid": "Hybrid", "foresight": "Foresight",
    "adaptive-rejects": "Adaptive Rejects", "hyperband": "Hyperband",
}  # fmt: skip


class Registry(Mapping[str, "type[Policy]"]):
    """Policy classes by name; each is imported when it is first used.

    >>> Registry({"r-sr": "rising_sr.RisingSR"})["r-sr"]
    <class '...RisingSR'>
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> type[Policy]:
        file, _, cls = self._homes[name].rpartition(".")
        policy_class: type[Policy] = getattr(import_module(f"latebloomer.policies.{file}"), cls)
        check_name(name, policy_class)
        return policy_class

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def check_name(listed: str, cls: type[Policy]) -> None:
    """Raise a `ContractError` if the name of a class is not the one under which it is listed."""
    name: Any = getattr(cls, "name", None)
    if name != listed or not re.fullmatch("[a-z0-9-]+", str(name)) or name == AUTO:
        raise ContractError(
            f"{cls.__name__} is listed as {listed!r} in POLICIES, and its name is {name!r}. Both "
            "must be the same text of a-z, 0-9 and - (settings follow it, name:key=value), not "
            f'{AUTO!r}. In the class: name: ClassVar[str] = "{listed}"'
        )


REGISTRY = Registry(POLICIES)
ORDER = {name: place for place, name in enumerate(REGISTRY)}


def is_registered(policy: Policy) -> bool:
    """Return whether a policy belongs to the library, so that name and settings describe it."""
    name: Any = getattr(policy, "name", None)
    return name in REGISTRY and REGISTRY[name] is type(policy)


# --- policies by name ---


def make_policy(text: str | Policy) -> Policy:
    """Return the policy for a name with settings; return a policy unchanged.

    Parameters
    ----------
    text : str | Policy
        Name with settings, such as "r-ucbe:noise=0.01", or a policy.

    Returns
    -------
    Policy
        Policy with these settings.

    Raises
    ------
    UnknownName
        No policy or setting has that name.
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
        raise SettingError(f"policy={text!r} must be a Policy or a name, for example 'r-sr'.")
    name, _, tail = text.partition(":")
    if name == AUTO:
        raise SettingError(
            f"policy={text!r} takes no settings, and which policy it stands for may depend on the "
            "learners, the budget and the horizon. Use latebloomer.policies.registry."
            "choose_policy(arms, budget, horizon) to get it."
        )
    if name not in REGISTRY:
        in_full = {known: home.rpartition(".")[2] for known, home in POLICIES.items()}
        raise unknown("policy", name, [*REGISTRY, AUTO], in_full)
    cls = REGISTRY[name]
    return cls(**settings_in(cls, tail))


def settings_in(cls: type[Policy], text: str) -> dict[str, Any]:
    """Return the settings in a text such as "window=0.5,delta=0.1", for a class of policies."""
    return dict(_setting(cls, part) for part in text.split(",") if part)


def _setting(cls: type[Policy], part: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    if not equals:
        raise SettingError(f"{part!r} in the settings of {cls.name} must be key=value.")
    if key not in known:
        raise unknown(f"setting of {cls.name}", key, known)
    return key, _value(value)


def _value(text: str) -> Any:
    """Return the value of a text: None, a number, a tuple (parts between slashes) or the text."""
    if text.lower() == "none":
        return None
    if "/" in text:
        return tuple(_value(part) for part in text.split("/"))
    return number_or_text(text)


def split_policies(text: str) -> list[str]:
    """Split a list of policies; a part with "=" but without ":" belongs to the policy before it.

    Parameters
    ----------
    text : str
        Policies, separated by commas.

    Returns
    -------
    list[str]
        One text per policy.

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


# --- "auto": the default policy of `race`, chosen by evidence ---


def choose_policy(arms: int, budget: int, horizon: int) -> Policy:
    """Return the policy that "auto" stands for with K arms, T pulls and horizon H.

    It is Foresight. On recorded curves Foresight does as well as Adaptive Rejects, which has the
    lowest mean rank loss of the policies in docs/choose-a-policy.md on five public sets of curves.
    On smooth curves it keeps late bloomers that Adaptive Rejects drops. How steeply its levels
    rise depends on K, T and H. Its error has no bound; for a bound, use `policy="r-sr"`.

    Parameters
    ----------
    arms : int
        Number of arms, K.
    budget : int
        Total number of pulls, T.
    horizon : int
        Number of pulls per arm at which arms are compared, H.

    Returns
    -------
    Policy
        Policy that "auto" stands for.

    Examples
    --------
    >>> choose_policy(arms=8, budget=400, horizon=100)
    Foresight(power=None)
    """
    policy = make_policy(DEFAULT)  # its plan depends on K, T and H
    policy.check(arms, budget, horizon)
    return policy


def policy_for(policy: str | Policy, arms: int, budget: int, horizon: int) -> Policy:
    """Return a policy like `make_policy`; "auto" is allowed, too.

    >>> policy_for("auto", 8, 400, 100), policy_for("adaptive-rejects:power=2", 8, 400, 100)
    (Foresight(power=None), AdaptiveRejects(power=2, shortest=0.0))
    """
    return choose_policy(arms, budget, horizon) if is_auto(policy) else make_policy(policy)


def default_or_named(policy: str | Policy) -> Policy:
    """Return a policy like `make_policy`, with the default for "auto", without checks."""
    return make_policy(DEFAULT if is_auto(policy) else policy)


def is_auto(policy: object) -> bool:
    """Return whether `policy` is the text "auto"."""
    return isinstance(policy, str) and policy == AUTO


# --- labels of policies in tables, files and figures ---


def label_of(policy: Policy) -> str:
    """Return the name of a policy with its non-default settings, which `make_policy` can read.

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
    """Return a setting as text; equal numbers give equal text, and tuples have slashes.

    Numbers in a tuple are rounded to four digits.
    """
    if isinstance(value, tuple | list):  # one number per arm: 17 digits of each are hard to read
        return "/".join(
            f"{part:.4g}" if isinstance(part, float) else _text(part) for part in value
        )
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))
    return str(value)


def rank(label: str) -> tuple[int, str]:
    """Return a sort key for labels: the paper's order of algorithms, then the settings."""
    return ORDER.get(label.partition(":")[0], len(ORDER)), label


def title(label: str) -> str:
    """Return a label as figures show it.

    >>> title("r-ucbe:exploration=100"), title("rest-sure"), title("foresight")
    ('R-UCBE (exploration=100)', 'Rest-Sure', 'Foresight')
    """
    name, _, settings = label.partition(":")
    shown = NOT_CAPITALS.get(name, name.upper() if name in ORDER else name)
    return f"{shown} ({settings})" if settings else shown
