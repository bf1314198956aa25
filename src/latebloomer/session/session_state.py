"""The state of a session in named fields, from which everything else about it is computed."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from latebloomer.core.ledger import OVER
from latebloomer.errors import ArmError
from latebloomer.policies.base import Policy
from latebloomer.session.checked_inputs import listed
from latebloomer.session.decisions import Exit, WinnerSelection
from latebloomer.session.events import DROPPED, FINISHED, Dropped, Event, Joined, Revived
from latebloomer.session.plan_in_force import Terms
from latebloomer.session.play import Play


class Stage(Enum):
    """The stage of a session: what it does now."""

    DECIDING = "deciding"  # the policy requests pulls
    SELECTING = "selecting"  # the policy has finished, and the winner is not selected yet
    TRAINING_WINNER = "training the winner"
    OVER = "over"


@dataclass(kw_only=True)
class SessionState:
    """The settings of a session, the scores reported to it, and its decisions."""

    # The settings. Later events may change the names, the budget and the horizon.
    policy: Policy
    names: tuple[str, ...]
    budget: int  # total pulls, as events have set it
    horizon: int
    seed: int
    maximize: bool
    winner_share: float
    min_pulls: int
    run: int  # number of the run that sets the policy's random choices
    original: tuple[int, int | None, int]  # the original budget, horizon and number of arms
    horizon_follows_budget: bool
    deciding_budget: int  # pulls that decide; the rest trains the winner

    # Every score, in order, and every other event with the number of scores before it.
    arms: array[int] = field(default_factory=lambda: array("q"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    others: list[tuple[int, Event]] = field(default_factory=list)
    pulls: list[int] = field(default_factory=list)
    last_scores: list[float | None] = field(default_factory=list)

    # The inputs of the plan in force, in addition to the scores.
    arm_of: dict[str, int] = field(default_factory=dict)
    repeats_scores: frozenset[int] = frozenset()
    exits: dict[int, Exit] = field(default_factory=dict)  # arms that left
    joining: tuple[Joined, ...] = ()  # arms that join with the next extension
    selection: WinnerSelection | None = None  # None until the winner is selected
    stopped: str | None = None  # when and why it was ended permanently
    # If a replan set them: pulls per arm at which one of k, ..., 2 arms is dropped.
    levels: tuple[int, ...] = ()
    prices: tuple[float, ...] = ()  # per arm, if drops depend on prices
    extended: bool = False
    phases_done: int = 0  # number of phases done before the plan in force was made
    play: Play = field(init=False)  # the plan in force
    racing: tuple[int, ...] = ()  # arms that may still be recommended
    racers: int | None = None  # number of arms in play not yet dropped, when drops were last noted
    drops: list[Dropped | Revived] = field(default_factory=list)  # so far, in order

    def __post_init__(self) -> None:
        self.arm_of = {name: i for i, name in enumerate(self.names)}
        self.pulls = [0] * len(self.names)
        self.last_scores = [None] * len(self.names)

    # --- values computed from the fields ---

    @property
    def sign(self) -> float:
        """Factor between scores and rewards, in both directions: 1, or -1 for losses."""
        return 1.0 if self.maximize else -1.0

    @property
    def spent(self) -> int:
        """Number of scores reported so far."""
        return len(self.arms)

    @property
    def over(self) -> bool:
        """True if no more pulls are requested."""
        return self.play.due == OVER

    @property
    def stage(self) -> Stage:
        """The stage of the session."""
        if not self.over:
            return Stage.DECIDING if self.selection is None else Stage.TRAINING_WINNER
        undecided = self.selection is None and self.stopped is None
        if self.winner_share and undecided and any(self.pulls[i] for i in self.racing):
            return Stage.SELECTING
        return Stage.OVER

    def index(self, arm: int | str) -> int:
        """Return the number of an arm; raise an `ArmError` if there is none."""
        if isinstance(arm, str):
            if arm not in self.arm_of:
                known = listed(self.names)
                raise ArmError(f"arm={arm!r} does not exist. The arms are {known}.")
            return self.arm_of[arm]
        try:
            i = -1 if isinstance(arm, bool | np.bool_) else operator.index(arm)
        except TypeError:
            raise ArmError(f"arm={arm!r} must be a number or a name.") from None
        if not 0 <= i < len(self.names):
            raise ArmError(f"arm={arm!r} must be a number from 0 to {len(self.names) - 1}.")
        return i

    def scores_of(self, i: int) -> list[float]:
        """Return the scores of one arm, in order."""
        return [score for j, score in zip(self.arms, self.scores, strict=True) if j == i]

    def departure(self, i: int) -> str | None:
        """Return FAILED or FINISHED; None for an arm that did neither, such as a dropped one."""
        departure = self.exits.get(i)
        return None if departure is None or departure.how == DROPPED else departure.how

    @property
    def finished(self) -> list[int]:
        """The arms that finished and may still be recommended."""
        departures = self.exits.items()
        return [
            i
            for i, departure in departures
            if departure.how == FINISHED and departure.decision is None
        ]

    @property
    def trainable(self) -> list[int]:
        """The arms that may still be pulled."""
        racing = self.play.racing if self.selection is None else [self.selection.arm]
        return [i for i in racing if self.departure(i) is None]

    @property
    def pulls_for_winner(self) -> int:
        """Number of pulls that the selected winner may still get; 0 before the selection."""
        if self.selection is None:
            return 0
        arm = self.selection.arm
        room = min(self.budget - self.spent, self.horizon - self.pulls[arm])
        return 0 if arm in self.exits else max(0, room)

    def terms(self, arms: Iterable[int], level: int = 0) -> Terms:
        """Return the terms of a play for some of the arms, which all have `level` pulls."""
        arms, remaining = tuple(arms), self.deciding_budget - self.spent
        own_pulls = remaining + sum(self.pulls[i] for i in arms)
        drops = len(arms) - 1
        levels = self.levels[-drops:] if 0 < drops <= len(self.levels) else ()
        prices = tuple(self.prices[i] for i in arms) if levels and self.prices else ()
        return Terms(
            self.policy,
            len(self.names),
            arms,
            self.deciding_budget,
            remaining,
            own_pulls,
            self.horizon,
            self.seed,
            self.min_pulls,
            level,
            self.repeats_scores,
            levels,
            prices,
            self.run,
        )
