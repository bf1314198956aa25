"""What a race was asked to do; kept in its journal."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from latebloomer._util.text import brief
from latebloomer.errors import JournalMismatch, SettingError, need_number, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import (
    REGISTRY,
    is_auto,
    is_registered,
    label_of,
    make_policy,
)
from latebloomer.racing.training_share import Share
from latebloomer.session.winner_training import check_share
from latebloomer.version import __version__

CERTIFIED = "certified"  # stop once the winner is


@dataclass(frozen=True)
class Settings:
    """All that decides how a race goes, except for the learners."""

    policy: Policy
    budget: int | None  # total pulls; None if `seconds` is given
    seconds: float | None = None
    horizon: int | None = None
    seed: int = 0
    maximize: bool = True
    runner: Mapping[str, Any] = field(default_factory=lambda: {"name": "local"})  # where pulls run
    winner_share: float = 0.0  # share of the budget, or of the time, kept to train the winner on
    # What a score's mean cannot leave; None for an end that is open.
    score_range: tuple[float | None, float | None] | None = None
    auto: bool = False  # whether the policy was left to the library, which chose this one
    min_pulls: int = 1  # pulls before which no learner is dropped
    trainings: float | None = None  # the budget as it was given, in full trainings
    full_steps: dict[str, int] | None = (
        None  # steps of each full training; None: a pull is one step
    )
    pulls_per_training: int | None = None
    stop: str | None = None  # "certified": end once the winner is
    learner_settings: Mapping[str, Mapping[str, Any]] | None = None  # what each says of itself

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.seconds is None):
            given = f"trainings={self.trainings}" if self.trainings else f"budget={self.budget}"
            raise SettingError(
                f"{given} and seconds={self.seconds}: give exactly one budget, trainings=3 (full "
                "trainings), budget=2000 (pulls) or seconds=600 (time)"
            )
        check_share(self.winner_share)
        if self.score_range is not None:
            object.__setattr__(self, "score_range", _range(self.score_range))
        _positive("seconds", self.seconds, "it is the time that the race may take")
        require(
            self.stop in (None, CERTIFIED), "stop", self.stop,
            "'certified', or None for the whole budget", "it says when a race may end early",
        )  # fmt: skip

    @property
    def score_bounds(self) -> tuple[float, float] | None:
        """The range of scores as two numbers."""
        if self.score_range is None:
            return None
        low, high = self.score_range
        return -inf if low is None else low, inf if high is None else high

    @property
    def shares(self) -> dict[str, Share]:
        """Share of its full training that a pull of each learner is; empty if it is one step."""
        if self.full_steps is None or self.pulls_per_training is None:
            return {}
        return {
            name: Share(steps, self.pulls_per_training) for name, steps in self.full_steps.items()
        }

    @property
    def rule(self) -> str:
        """The policy, and whether it was chosen by "auto"."""
        return rule_in(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the journal."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields: dict[str, Any] = dataclasses.asdict(self.policy)  # type: ignore[call-overload]
        return values | {
            "policy": {
                "name": self.policy.name if is_registered(self.policy) else None,
                "settings": json.loads(json.dumps(fields, default=_plain)),
                "repr": repr(self.policy),
            }
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], policy: Policy | str | None = None) -> Settings:
        """Return settings from what `as_dict` gave; another library's policy must be passed."""
        kept = values["policy"]
        if is_auto(policy):
            _need_auto(values)
            policy = None  # the journal has what it became, by the rule of its version
        recorded = _recorded(kept)
        made = recorded if policy is None else make_policy(policy)
        if made is None:
            raise JournalMismatch(
                f"This journal was written with {kept['repr']}, which is not a policy of this "
                "library: pass it as resume(..., policy=...)"
            )
        if made != recorded and repr(made) != kept["repr"]:
            raise JournalMismatch(
                f"policy={made!r}, but this journal was written with {kept['repr']}: a race "
                "is resumed by the rule that it started with"
            )
        return cls(**values | {"policy": made})


def varying_settings(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each learner says of itself, as far as learners differ in it, by name.

    >>> kept = {"a": {"depth": 2, "seed": 0}, "b": {"depth": 3, "seed": 0}}
    >>> varying_settings({"learner_settings": kept})
    {'a': {'depth': 2}, 'b': {'depth': 3}}
    """
    kept = values.get("learner_settings") or {}
    names = dict.fromkeys(name for one in kept.values() for name in one)
    varying = [name for name in names if len({str(one.get(name)) for one in kept.values()}) > 1]
    return {
        learner: {name: one[name] for name in varying if name in one}
        for learner, one in kept.items()
    }


def rule_in(values: Mapping[str, Any]) -> str:
    """Return the policy of recorded settings as text, after "auto: " if it was chosen by auto.

    In the words that one types; a policy of one's own as Python shows it.
    """
    recorded = _recorded(values["policy"])
    text = values["policy"]["repr"] if recorded is None else label_of(recorded)
    return f"auto: {text}" if values["auto"] else text


def _recorded(kept: dict[str, Any]) -> Policy | None:
    """Return the policy of a journal, if it is one of this library."""
    if kept["name"] not in REGISTRY:
        return None
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in kept["settings"].items()}
    return REGISTRY[kept["name"]](**fields)


def _need_auto(values: dict[str, Any]) -> None:
    """Raise `JournalMismatch` where a journal's policy was not left to the library."""
    if not values.get("auto", False):
        raise JournalMismatch(
            f"policy='auto', but this journal was written with {values['policy']['repr']}, which "
            "was named: leave policy out, or name it again"
        )


def _plain(value: Any) -> Any:
    """Return a value for JSON: NumPy's numbers as Python's, anything else by its name."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def process_name() -> str:
    """Return the name of this process, for readers of the journal."""
    return f"process {os.getpid()} on {platform.node()}"


def versions() -> dict[str, str]:
    """Return the versions that the race runs on."""
    return {
        "latebloomer": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sqlite": sqlite3.sqlite_version,
        "platform": f"{platform.system()} {platform.machine()}",
        "byteorder": sys.byteorder,
    }


def declared_range(learners: Mapping[str, Any]) -> tuple[float | None, float | None] | None:
    """Return the range that holds all scores, if every learner has an attribute `score_range`."""
    found = [getattr(given, "score_range", None) for given in learners.values()]
    if not found or any(one is None or isinstance(one, property) for one in found):
        return None
    lows, highs = zip(*map(_range, found), strict=True)
    return None if None in lows else min(lows), None if None in highs else max(highs)


def _range(given: Any) -> tuple[float | None, float | None]:
    """Return a range as two numbers, None for an open end; raise a `SettingError` if wrong."""
    try:
        low, high = (end if end is None else float(end) for end in given)
        right = (-inf if low is None else low) < (inf if high is None else high)
    except (TypeError, ValueError):
        right = False
    if not right:
        raise SettingError(
            f"score_range={brief(given)}, but score_range must be (low, high), as (0, 1) for an "
            "accuracy or (None, 1) for an R2"
        )
    return low, high


def _positive(name: str, value: float | None, why: str) -> None:
    if value is not None:
        need_number(name, value)
        require(0 < value < inf, name, value, "above 0 and finite", why)
