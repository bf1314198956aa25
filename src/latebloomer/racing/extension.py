"""An extension of a race: a larger budget, another horizon, new learners.

What is requested becomes events, `Joined` and `Extended`, which go to the journal like all others:
an extended race resumes and replays like any other. The race prints their cost before it writes
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from latebloomer.errors import (
    BudgetError,
    LatebloomerError,
    SettingError,
    need_number,
    need_whole,
    require,
)
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.learner import Given
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.training_share import Share, shares_of
from latebloomer.session.events import Extended, Joined
from latebloomer.session.session import Session
from latebloomer.session.winner_training import set_aside


class Extension(NamedTuple):
    """The events of an extension, and what is printed before they are written."""

    events: tuple[Joined | Extended, ...]
    revived: tuple[int, ...]  # arms that had been dropped and race again
    shares: Mapping[str, Share]  # fraction of a full training per pull; none: one step

    @property
    def new_names(self) -> tuple[str, ...]:
        """Names of the new learners."""
        return tuple(event.name for event in self.events if isinstance(event, Joined))

    def announcement(self, race: RaceState, states: SavedStates) -> str:
        """Return what happens now, and what it costs to restore learners."""
        why = "".join(event.why for event in self.events if isinstance(event, Extended))
        return f"{why}{_restoring(self.revived, race, states)}"


def with_new_learners(
    learners: Mapping[str, Given], add: Mapping[str, Given] | None, race: RaceState
) -> Mapping[str, Given]:
    """Return the learners of a race together with those to add, which may stand in both.

    A learner that joined before, by a call that was stopped and is repeated, is not added again.
    """
    added = {} if add is None else add
    if not isinstance(added, Mapping):
        raise SettingError(f"add={added!r}, but add must be a dict of names and learners")
    if not isinstance(learners, Mapping):
        return learners
    for name in added:
        if name in race.created.names:
            raise SettingError(
                f"add={{{name!r}: ...}}, but {name!r} is in this race already: a new learner needs "
                f"its own name, other than {', '.join(race.names)}"
            )
    return {**learners, **added}


def plan_extension(
    race: RaceState,
    learners: Mapping[str, Given],
    *,
    add: Mapping[str, Given] | None = None,
    budget: int | None = None,
    trainings: float | None = None,
    horizon: int | None = None,
    revive: bool = True,
    full_steps: Any = None,
) -> Extension | None:
    """Return the events of a larger budget; None if the race already has what is requested.

    It changes nothing. A request that is not possible raises an error that says what to do.
    """
    session = race.session
    budget = _in_pulls(budget, trainings, race)
    new = {name: given for name, given in dict(learners).items() if name not in session.names}
    if budget is None:
        _need_budget([name for name in add or {} if name in new], horizon, session)
        return None
    budget = _checked_budget(budget, race)
    _check_horizon(horizon, session)
    if not isinstance(revive, bool):
        raise SettingError(f"revive={revive!r}, but revive must be True or False")
    if budget == session.budget and not new and horizon in (None, session.horizon):
        return None  # the same call again, after an interruption
    horizon = session.horizon if horizon is None else horizon
    selected = session.winner is not None
    aside = set_aside(budget - session.spent if selected else budget, session.winner_share)
    one = race.settings.pulls_per_training
    shares = shares_of(new, full_steps, one) if new and one is not None else {}
    joined = [
        _joined(len(session.names) + k, name, shares.get(name)) for k, name in enumerate(new)
    ]
    extended = Extended(budget, budget - aside, horizon, revive)
    after = _after(session, [*joined, extended])
    revived = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(session, after, revived, list(new))
    extended = Extended(budget, budget - aside, horizon, revive, why)
    return Extension((*joined, extended), revived, shares)


def _in_pulls(budget: int | None, trainings: float | None, race: RaceState) -> int | None:
    """Return the new budget in pulls."""
    if trainings is None:
        return budget
    if budget is not None:
        raise SettingError(f"trainings={trainings} and budget={budget}: give only one of them")
    one = race.settings.pulls_per_training
    if one is None:
        raise SettingError(
            f"trainings={trainings}, but in this race a pull is one step: give budget= in pulls"
        )
    need_number("trainings", trainings)
    return round(trainings * one)


def _joined(arm: int, name: str, share: Share | None) -> Joined:
    if share is None:
        return Joined(arm, name)
    return Joined(arm, name, share.full_steps, share.repeats_scores)


def _need_budget(added: Sequence[str], horizon: int | None, session: Session) -> None:
    larger = f"resume(..., budget=N) with N above {session.budget}"
    if added:
        raise SettingError(
            f"add={{{added[0]!r}: ...}} also needs a larger budget, which pays for the new learner:"
            f" {larger}"
        )
    if horizon is not None and horizon != session.horizon:
        raise SettingError(
            f"horizon={horizon} also needs a larger budget, with which alone it moves: {larger}"
        )


def _checked_budget(given: Any, race: RaceState) -> int:
    session, budget = race.session, need_whole("budget", given)
    if race.settings.seconds is not None:
        raise SettingError(
            f"budget={budget} cannot extend a time-based race (seconds={race.settings.seconds:g})."
            " Start a new race with budget=...."
        )
    if budget < session.spent:
        raise BudgetError(
            f"budget={budget} is below the {session.spent} pulls already spent. Give more than "
            f"{session.budget}, or omit budget to resume without extending."
        )
    if budget < session.budget:
        raise BudgetError(
            f"budget={budget} is below the race's budget of {session.budget}, which cannot be cut."
            f" Give more than {session.budget}, or omit budget to resume without extending."
        )
    return budget


def _check_horizon(given: Any, session: Session) -> None:
    if given is not None:
        horizon, most = need_whole("horizon", given), max(session.pulls)
        require(horizon >= max(1, most), "horizon", horizon, f"at least {most}",
                "a learner has had that many pulls")  # fmt: skip


def _after(session: Session, events: Sequence[Joined | Extended]) -> Session:
    """Return the session as it will be; the one of the race stays unchanged."""
    after = deepcopy(session)
    for event in events:
        try:
            after.apply(event)
        except LatebloomerError as error:
            raise type(error)(f"{error} The race is unchanged.") from error
    return after


# --- what is printed ---


def _in_words(before: Session, after: Session, back: Sequence[int], new: Sequence[str]) -> str:
    names = before.names
    said = [f"Extending the budget from {before.budget} to {after.budget} pulls."]
    if back:
        at = [f"{names[i]} (at pull {before.pulls_of(i)})" for i in back]
        said.append(f"Revived: {', '.join(at)}.")
    elif len(before.racing) < len(names):
        said.append("No learner is revived.")
    if new:
        said.append(f"New: {', '.join(new)}.")
    if after.horizon == before.horizon:
        said.append(f"The horizon stays at {before.horizon} pulls.")
    else:
        said.append(f"The horizon moves from {before.horizon} to {after.horizon} pulls.")
    return " ".join(said)


def _restoring(back: Sequence[int], race: RaceState, states: SavedStates) -> str:
    """Return what it costs to restore the revived learners."""
    again, time = 0, 0.0
    for arm in back:
        n = race.session.pulls_of(arm)
        saved = states.available(arm, n)
        missing = n - (saved.n if saved else 0)
        again += missing
        time += missing * race.seconds[arm] / max(1, n)
    if not again:
        return ""
    return f" Retraining {again} pulls that no checkpoint covers (about {time:.3g} s)."
