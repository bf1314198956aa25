"""What a race was asked to do, kept in its journal; and how another request differs from it."""

import dataclasses
import os
import platform
import sqlite3
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer._util.text import MOST, brief, one_line, plain_repr
from latebloomer.errors import JournalMismatch, SettingError, need_in, require
from latebloomer.policies import registry
from latebloomer.policies.base import Policy
from latebloomer.racing.journal import Place, files
from latebloomer.racing.journal.journal import near
from latebloomer.racing.learner import Share
from latebloomer.session.checked_inputs import check_share
from latebloomer.session.events import Created
from latebloomer.version import __version__

Values = Mapping[str, Any]  # settings by name
CERTIFIED = "certified"  # stop once the winner is
# The policy is compared when the settings are read, and so are learners; the others change no
# decision.
NOT_COMPARED = ("policy", "auto", "runner", "learner_settings")
LARGER = ("trainings", "budget")  # a race can be extended by them


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
    # Steps of each full training; None: a pull is one step.
    full_steps: dict[str, int] | None = None
    pulls_per_training: int | None = None
    stop: str | None = None  # "certified": end once the winner is
    learner_settings: Mapping[str, Mapping[str, Any]] | None = None  # what each says of itself

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.seconds is None):
            given = f"trainings={self.trainings}" if self.trainings else f"budget={self.budget}"
            both = f"{given} and seconds={self.seconds} were both given."
            raise SettingError(
                f"{'No budget was given.' if self.budget is None else both} Give exactly one of "
                "trainings=3 (full trainings), budget=2000 (pulls) and seconds=600 (time)."
            )
        check_share(self.winner_share)
        if self.score_range is not None:
            object.__setattr__(self, "score_range", _range(self.score_range))
        if self.seconds is not None:
            need_in("seconds", self.seconds, "(0, inf)", "it is the time that the race may take")
        require(self.stop in (None, CERTIFIED), "stop", self.stop, "'certified', or None",
                "it says when a race may end early")  # fmt: skip

    @property
    def shares(self) -> dict[str, Share]:
        """Share of its full training that a pull of each learner is; empty if it is one step."""
        one = self.pulls_per_training or 1
        return {name: Share(steps, one) for name, steps in (self.full_steps or {}).items()}

    @property
    def score_bounds(self) -> tuple[float, float]:
        """The range of scores as two numbers."""
        low, high = self.score_range or (None, None)
        return -inf if low is None else low, inf if high is None else high

    @property
    def rule(self) -> str:
        """The policy, and whether it was chosen by "auto"."""
        return rule_in(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the journal."""
        policy = {
            "name": self.policy.name if registry.is_registered(self.policy) else None,
            "settings": dataclasses.asdict(self.policy),  # type: ignore[call-overload]
            "repr": repr(self.policy),
        }
        return vars(self) | {"policy": policy}

    @classmethod
    def from_dict(cls, values: dict[str, Any], policy: Policy | str | None = None) -> "Settings":
        """Return settings from what `as_dict` gave; another library's policy must be passed."""
        kept = values["policy"]
        if registry.is_auto(policy):
            if not values["auto"]:
                raise JournalMismatch(
                    f"policy='auto', but this journal was written with {kept['repr']}, which was "
                    "named: leave policy out, or name it again"
                )
            policy = None  # the journal has what it became, by the rule of its version
        recorded = _recorded_policy(kept)
        made = recorded if policy is None else registry.make_policy(policy)
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


def settings_of(policy: Policy | str, **others: Any) -> Settings:
    """Return the settings of a race, checked, with the policy that was given or is named."""
    auto = registry.is_auto(policy)
    return Settings(policy=registry.default_or_named(policy), auto=auto, **others)


def rule_in(values: Mapping[str, Any]) -> str:
    """Return the policy of recorded settings as text, after "auto: " if it was chosen by auto.

    In the words that one types; a policy of one's own as Python shows it.
    """
    recorded = _recorded_policy(values["policy"])
    text = values["policy"]["repr"] if recorded is None else registry.label_of(recorded)
    return f"auto: {text}" if values["auto"] else text


def _recorded_policy(kept: Mapping[str, Any]) -> Policy | None:
    """Return the policy of a journal, if it is one of this library."""
    if kept["name"] not in registry.REGISTRY:
        return None
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in kept["settings"].items()}
    return registry.REGISTRY[kept["name"]](**fields)


def varying_settings(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each learner says of itself, as far as learners differ in it, by name.

    >>> kept = {"a": {"depth": 2, "seed": 0}, "b": {"depth": 3, "seed": 0}}
    >>> varying_settings({"learner_settings": kept})
    {'a': {'depth': 2}, 'b': {'depth': 3}}
    """
    kept = values.get("learner_settings") or {}
    names = dict.fromkeys(name for one in kept.values() for name in one)
    varying = [name for name in names if len({str(one.get(name)) for one in kept.values()}) > 1]
    return {of: {name: one[name] for name in varying if name in one} for of, one in kept.items()}


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


# --- is it the same race? ---


def holds_race(journal: Place | None) -> bool:
    """Return whether there is a journal with at least one pull."""
    if journal is None or not Path(journal).is_file():
        return False
    try:
        return files.glance(journal).pulls > 0
    except files.Blank:
        return False


def race_in(journal: Place) -> Created:
    """Return the event that a journal begins with."""
    return files.glance(journal).created


def need_same_settings(journal: Place, given: Settings, policy: Policy | str | None) -> None:
    """Raise `JournalMismatch` unless a journal's race was started with these settings."""
    recorded = dict(race_in(journal).settings)
    Settings.from_dict(recorded, policy)  # compares the policy
    asked = {name: value for name, value in vars(given).items() if name not in NOT_COMPARED}
    larger = [name for name in LARGER if asked[name] and asked[name] != recorded.get(name)]
    place = near(Path(journal).absolute())
    extend = f"resume({place!r}, learners, {larger[0]}=...) to extend it, " if larger else ""
    advice = f'Give the same settings to resume it, {extend}or if_exists="new" for a new race.'
    need_same(journal, recorded, asked, advice)


def need_same(journal: Place, recorded: Values, asked: Values, advice: str) -> None:
    """Raise `JournalMismatch`, with every difference, unless what is asked for is recorded."""
    _need_none(journal, differences(recorded, asked), advice)


def _need_none(journal: Place, found: list[str], advice: str) -> None:
    if found:
        place = near(Path(journal).absolute())
        raise JournalMismatch(f"Journal {place} holds another race: {'; '.join(found)}. {advice}")


def differences(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return what is asked for and was recorded otherwise; mappings are compared name by name.

    >>> differences({"seed": 0, "forest": {"depth": 6}}, {"seed": 1, "forest": {"depth": 8}})
    ['seed was 0, is 1', 'forest: depth was 6, is 8']
    >>> differences({"learners": ["a", "b"]}, {"learners": ["b", "c"]})
    ['learner a is missing', 'learner c is new']
    """
    found = []
    for name, now in asked.items():
        was = recorded.get(name)
        if name == "learners":
            found += [f"learner {one} is missing" for one in was or () if one not in now]
            found += [f"learner {one} is new" for one in now if one not in (was or ())]
        elif isinstance(was, Mapping) and isinstance(now, Mapping):
            found += [f"{name}: {one}" for one in differences(was, dict.fromkeys(was) | dict(now))]
        elif _plain(was) != _plain(now):
            found.append(f"{name} was {brief(was)}, is {brief(now)}")
    return found


def _plain(value: Any) -> Any:
    """Return a value as a journal returns it."""
    return list(value) if isinstance(value, tuple) else value


def described(learners: Any) -> dict[str, dict[str, Any]]:
    """Return the attribute `settings` of each learner that has one, as a journal returns it."""
    given = learners.items() if isinstance(learners, Mapping) else ()
    found = {name: getattr(one, "settings", None) for name, one in given}
    return {
        name: {str(key): _recorded(value) for key, value in settings.items()}
        for name, settings in found.items()
        if isinstance(settings, Mapping)
    }


def _recorded(value: Any) -> Any:
    """Return a plain value; any other as text, without its address in memory."""
    plain = value is None or type(value) in (bool, int, str)
    if plain or (isinstance(value, float) and isfinite(value)):
        return value
    try:
        text = plain_repr(value)
    except Exception:  # of a user's own class
        return brief(value)
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return text if len(text) <= MOST else f"{one_line(text[:MOST])}... ({digest})"


def need_same_learners(journal: Place, recorded: Values, given: Values) -> None:
    """Raise `JournalMismatch` unless learners have the settings that the journal recorded.

    What differs in the same way for all of them, such as the data, is named once.
    """
    both = [name for name in recorded if name in given]
    found = {
        name: differences(recorded[name], dict.fromkeys(recorded[name]) | given[name])
        for name in both
    }
    counts = Counter(one for own in found.values() for one in own)
    shared = [one for one, count in counts.items() if count == len(both) > 1]
    own = [f"{name}: {one}" for name in both for one in found[name] if one not in shared]
    _need_none(journal, shared + own, "Give the same learners to resume it, or another journal.")
