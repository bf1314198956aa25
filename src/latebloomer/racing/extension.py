"""An extension of a race: a larger budget, another horizon, new learners.

What is requested becomes events, `Joined` and `Extended`, which go to the journal like all others:
an extended race resumes and replays like any other. The race prints their cost before it writes
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from latebloomer.errors import (
    BudgetError,
    LatebloomerError,
    SettingError,
    need_number,
    need_whole,
    require,
)
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

    @property
    def why(self) -> str:
        """What happens now, in words."""
        return "".join(event.why for event in self.events if isinstance(event, Extended))


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
                f"add={{{name!r}: ...}}, but {name!r} is in this race already. A new learner "
                f"needs its own name, other than {', '.join(race.names)}."
            )
    return {**learners, **added}


def plan_extension(
    race: RaceState,
    learners: Mapping[str, Given],
    *,
    add: Mapping[str, Given] | None = None,
    budget: int | None = None,
    trainings: float | None = None,
    seconds: float | None = None,
    horizon: int | None = None,
    revive: bool = True,
    full_steps: Any = None,
) -> Extension | None:
    """Return the events of a larger budget; None if the race already has what is requested.

    It changes nothing. A request that is not possible raises an error that says what to do.
    """
    session = race.session
    new = {name: given for name, given in dict(learners).items() if name not in session.names}
    total = _in_pulls(budget, trainings, seconds, race)
    if total is None:
        _need_budget([name for name in add or {} if name in new], horizon, session)
        return None
    _check_horizon(horizon, session)
    if not isinstance(revive, bool):
        raise SettingError(f"revive={revive!r}, but revive must be True or False")
    same_time = seconds is None or seconds == race.settings.seconds
    if total == session.budget and same_time and not new and horizon in (None, session.horizon):
        return None  # the same call again, after an interruption
    if horizon is None:  # without one, a time-based race compares learners at its budget
        follows = seconds is not None and race.settings.horizon is None
        horizon = total if follows else session.horizon
    spent = session.spent if session.winner is not None else 0
    deciding = total - set_aside(total - spent, session.winner_share)
    one = race.settings.pulls_per_training
    shares = shares_of(new, full_steps, one) if new and one is not None else {}
    joined = [
        _joined(len(session.names) + k, name, shares.get(name)) for k, name in enumerate(new)
    ]
    time = None if seconds is None else float(seconds)
    extended = Extended(total, deciding, horizon, revive, seconds=time)
    after = _after(session, [*joined, extended])
    revived = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(race, after, revived, list(new), seconds)
    return Extension((*joined, replace(extended, why=why)), revived, shares)


def _in_pulls(
    budget: int | None, trainings: float | None, seconds: float | None, race: RaceState
) -> int | None:
    """Return the new total budget in pulls; None if none is given."""
    given = {"budget": budget, "trainings": trainings, "seconds": seconds}
    names = [f"{name}={value}" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise SettingError(f"{' and '.join(names)}: give only one of them")
    one = race.settings.pulls_per_training
    if trainings is not None and one is None:
        raise SettingError(
            f"trainings={trainings}, but in this race a pull is one step: give budget= in pulls"
        )
    if seconds is not None:
        return _pulls_in(seconds, race)
    if trainings is not None and one is not None:
        need_number("trainings", trainings)
        budget = round(trainings * one)
    return None if budget is None else _checked_budget(budget, race)


def _pulls_in(seconds: float, race: RaceState) -> int:
    """Return about how many pulls fit into a larger total time, by the pace so far."""
    need_number("seconds", seconds)
    had, session = race.settings.seconds, race.session
    if had is None:
        raise SettingError(
            f"seconds={seconds:g} cannot extend a race with a budget of {session.budget} pulls. "
            "Give budget= or trainings=, or start a new race with seconds=...."
        )
    if not had <= seconds < inf:
        raise BudgetError(
            f"seconds={seconds:g} is below the race's time of {had:g} s, which cannot be cut. "
            f"Give more than {had:g}, or omit seconds to resume without extending."
        )
    if seconds == had:
        return session.budget
    left = max(0.0, seconds - race.elapsed)
    fit = round(left * session.spent / race.elapsed) if race.elapsed else 0
    return max(session.budget, session.spent + fit, session.spent + 1)


def _joined(arm: int, name: str, share: Share | None) -> Joined:
    if share is None:
        return Joined(arm, name)
    return Joined(arm, name, share.full_steps, share.repeats_scores)


def _need_budget(added: Sequence[str], horizon: int | None, session: Session) -> None:
    larger = f"resume(..., budget=N) with N above {session.budget}"
    if added:
        raise SettingError(
            f"add={{{added[0]!r}: ...}} also needs a larger budget, which pays for the new "
            f"learner: {larger}"
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


def _in_words(
    race: RaceState,
    after: Session,
    back: Sequence[int],
    new: Sequence[str],
    seconds: float | None,
) -> str:
    before, names = race.session, race.session.names
    if seconds is None:
        said = [f"Extending the budget from {before.budget} to {after.budget} pulls."]
    else:
        more = after.budget - before.spent
        said = [f"Extending the time from {race.settings.seconds:g} s to {seconds:g} s."]
        said.append(f"About {more} more pull{'s' * (more != 1)} fit.")
    if back:
        at = [f"{names[i]} (at pull {before.pulls_of(i)})" for i in back]
        said.append(f"Revived: {', '.join(at)}.")
    elif len(before.racing) < len(names):
        said.append("No learner is revived.")
    if new:
        said.append(f"New: {', '.join(new)}.")
    if seconds is not None and race.settings.horizon is None:
        pass  # the horizon is the budget, which later plans set
    elif after.horizon == before.horizon:
        said.append(f"The horizon stays at {before.horizon} pulls.")
    else:
        said.append(f"The horizon moves from {before.horizon} to {after.horizon} pulls.")
    return " ".join(said)
