"""The settings of a race, which its journal stores, and comparisons with other settings."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from operator import index
from typing import Any

from latebloomer._util.text import brief
from latebloomer.core.policy_moves import key
from latebloomer.errors import (
    JournalMismatch,
    SettingError,
    need_flag,
    need_in,
    need_number,
    need_whole,
    require,
)
from latebloomer.policies import registry
from latebloomer.policies.base import Policy
from latebloomer.racing.journal.schema import CHECKS, checked
from latebloomer.racing.journal.value_codec import NotPlain, decoded, encoded
from latebloomer.racing.learners.entries import range_of_scores
from latebloomer.racing.learners.learner import Share
from latebloomer.session.checked_inputs import MAXIMIZE, check_share

CERTIFIED = "certified"  # value of `stop`: end when the winner is certified
# Values of `drops`, for a budget in seconds: drop the learner with the worst estimate, or the one
# with the largest product of its gap to the leader and the seconds that it would still cost.
WORST, WASTE = "worst", "waste"
WHOLE = ("budget", "horizon", "min_pulls", "pulls_per_training")
MAY_BE_NONE = ("budget", "horizon", "pulls_per_training")
REAL = ("seconds", "winner_share", "trainings")


@dataclass(frozen=True)
class Settings:
    """All settings that decide how a race goes, except for the learners."""

    policy: Policy
    budget: int | None  # total pulls; None if the budget is in seconds
    seconds: float | None = None
    horizon: int | None = None
    seed: int = 0
    maximize: bool = True
    runner: Mapping[str, Any] = field(default_factory=lambda: {"name": "local"})  # the runner
    winner_share: float = 0.0  # share of the budget that is reserved to train the winner
    # Lowest and highest possible mean score; None for no limit.
    score_range: tuple[float | None, float | None] | None = None
    auto: bool = False  # whether the call had policy "auto", for which the library chose this one
    min_pulls: int = 1  # number of pulls every learner gets before any can be dropped
    trainings: float | None = None  # the budget of the call, if it was in full trainings
    # Steps of each full training; None: a pull is one step.
    full_steps: dict[str, int] | None = None
    pulls_per_training: int | None = None
    stop: str | None = None  # "certified": end when the winner is certified
    drops: str | None = None  # WORST or WASTE, for a budget in seconds
    # The attribute `settings` of each learner.
    learner_settings: Mapping[str, Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.seconds is None):
            amount = f"trainings={self.trainings}" if self.trainings else f"budget={self.budget}"
            both = f"{amount} and seconds={self.seconds} were both given."
            raise SettingError(
                f"{'No budget was given.' if self.budget is None else both} Give exactly one of "
                "trainings=3 (full trainings), budget=2000 (pulls) and seconds=600 (time)."
            )
        check_share(self.winner_share)
        object.__setattr__(self, "maximize", need_flag("maximize", self.maximize, MAXIMIZE))
        if self.score_range is not None:
            object.__setattr__(self, "score_range", range_of_scores(self.score_range))
        if self.seconds is not None:
            need_in("seconds", self.seconds, "(0, inf)", "it is the time that the race may take")
        self._check_drops()
        require(
            self.stop in (None, CERTIFIED),
            "stop",
            self.stop,
            "'certified', or None",
            "it says when a race may end early",
        )
        key(self.seed)  # raises an error if it is not a seed
        require(self.seed < 2**63, "seed", self.seed, "below 2^63", "a journal has room for that")
        object.__setattr__(self, "seed", int(self.seed))
        for name in WHOLE:
            value = getattr(self, name)
            if value is not None or name not in MAY_BE_NONE:
                object.__setattr__(self, name, need_whole(name, value))
        for name in REAL:
            value = getattr(self, name)
            if value is not None:
                need_number(name, value)
                object.__setattr__(self, name, _real(value))
        if self.full_steps is not None:
            steps = {name: _whole(each) for name, each in self.full_steps.items()}
            object.__setattr__(self, "full_steps", steps)

    def _check_drops(self) -> None:
        known, needed = self.drops in (None, WORST, WASTE), f"{WORST!r} or {WASTE!r}"
        require(known, "drops", self.drops, needed, "it says which learner is dropped")
        if self.drops == WASTE and not (self.auto and self.seconds is not None):
            raise SettingError(
                f"drops={WASTE!r} needs seconds= and policy='auto': only such a race knows what "
                "learners cost. Give both, or omit drops."
            )

    @property
    def shares(self) -> dict[str, Share]:
        """Share of a full training that is one pull, by learner; empty if a pull is a step."""
        pulls = self.pulls_per_training or 1
        return {name: Share(steps, pulls) for name, steps in (self.full_steps or {}).items()}

    @property
    def score_bounds(self) -> tuple[float, float]:
        """The range of scores as two numbers, with infinities for no limit."""
        low, high = self.score_range or (None, None)
        return -inf if low is None else low, inf if high is None else high

    @property
    def rule(self) -> str:
        """The policy as text, after "auto: " if "auto" chose it."""
        return rule_in(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for the journal."""
        known = registry.is_registered(self.policy)
        policy = {
            "name": self.policy.name if known else None,
            "settings": dataclasses.asdict(self.policy) if known else {},  # type: ignore[call-overload]
            "repr": repr(self.policy),
        }
        return vars(self) | {"policy": policy}

    @classmethod
    def from_dict(cls, values: dict[str, Any], policy: Policy | str | None = None) -> "Settings":
        """Return settings from the values of `as_dict`; pass a policy of your own."""
        kept = values["policy"]
        if registry.is_auto(policy):
            if not values["auto"]:
                raise JournalMismatch(
                    f"policy='auto', but this journal was written with {kept['repr']}, which was "
                    "named: leave policy out, or name it again"
                )
            policy = None  # the journal has the policy that "auto" stood for
        recorded = _recorded_policy(kept)
        chosen = recorded if policy is None else with_plain_settings(registry.make_policy(policy))
        if chosen is None:
            raise JournalMismatch(
                f"This journal was written with {kept['repr']}, which is not a policy of this "
                "library: pass it as resume(..., policy=...)"
            )
        if chosen != recorded and repr(chosen) != kept["repr"]:
            raise JournalMismatch(
                f"policy={chosen!r}, but this journal was written with {kept['repr']}: a race "
                "is resumed by the rule that it started with"
            )
        return cls(**_typed(values) | {"policy": chosen})


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    """Return recorded settings with checked types; raise `NotPlain` if one is wrong."""
    typed = dict(values)
    for item in dataclasses.fields(Settings):
        if item.type in CHECKS and item.name in values:
            typed[item.name] = checked(item.name, values[item.name], item.type)
    for name, steps in (values.get("full_steps") or {}).items():
        checked(f"full_steps[{brief(name)}]", steps, int)
    for name, own in (values.get("learner_settings") or {}).items():
        checked(f"learner_settings[{brief(name)}]", own, Mapping[str, Any])
    return typed


def with_plain_settings(policy: Policy) -> Policy:
    """Return a policy with its settings as read from a journal, so that a resume has the same.

    Raises
    ------
    SettingError
        A journal cannot store the type of a setting.
    """
    if not registry.is_registered(policy):  # the user passes it again when the race is resumed
        return policy
    plain = {}
    for item in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, item.name)
        try:
            back = decoded(encoded(value, item.name))
        except NotPlain as error:
            raise SettingError(f"policy={policy!r}: {error}.") from None
        if repr(back) != repr(value):
            plain[item.name] = back
    return dataclasses.replace(policy, **plain) if plain else policy  # type: ignore[type-var]


def _real(value: Any) -> float:
    """Return a real number of any type as a Python float; an int stays an int."""
    return value if type(value) is int else float(value)


def _whole(value: Any) -> Any:
    """Return an integer of any type as a Python int; other values, which fail later, unchanged."""
    try:
        return index(value)
    except TypeError:
        return value


def rule_in(values: Mapping[str, Any]) -> str:
    """Return the policy of recorded settings as text, after "auto: " if "auto" chose it.

    The text is the name with settings, or the `repr` of a user's own policy.
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
