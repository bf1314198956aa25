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

from latebloomer import errors
from latebloomer.errors import BudgetError, SettingError, require
from latebloomer.racing.learner import Given, Share
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.training_share import shares_of
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.events import Extended, Joined
from latebloomer.session.session import Session


class Extension(NamedTuple):
    """The events of an extension, and what is printed before they are written."""

    events: tuple[Joined | Extended, ...] = ()
    revived: tuple[int, ...] = ()  # arms that had been dropped and race again
    shares: Mapping[str, Share] = {}  # fraction of a full training per pull; none: one step
    new: tuple[str, ...] = ()  # names of the new learners
    why: str = ""  # what happens now, in words


def with_new_learners(
    learners: Mapping[str, Given], add: Mapping[str, Given] | None, race: RaceState
) -> Mapping[str, Given]:
    """Return the learners of a race together with those to add, which may stand in both.

    A learner that joined before, by a call that was stopped and is repeated, is not added again.
    """
    added = {} if add is None else add
    if not isinstance(added, Mapping):
        raise SettingError(f"add={added!r}, but add must be a dict of names and learners")
    for name in added:
        if name in race.created.names:
            raise SettingError(
                f"add={{{name!r}: ...}}, but {name!r} is in this race already. A new learner "
                f"needs its own name, other than {', '.join(race.names)}."
            )
    return {**learners, **added} if isinstance(learners, Mapping) else learners


def plan_extension(
    race: RaceState,
    learners: Mapping[str, Given],
    add: Mapping[str, Given] | None = None,
    *,
    horizon: int | None = None,
    revive: bool = True,
    full_steps: Any = None,
    **totals: float | None,
) -> Extension:
    """Return the events of a larger budget; none if the race already has what is requested.

    `totals` are budget, trainings and seconds, of which one may be given. It changes nothing. A
    request that is not possible raises an error that says what to do.
    """
    session, settings = race.session, race.settings
    new = {name: given for name, given in dict(learners).items() if name not in session.names}
    total = _in_pulls({unit: value for unit, value in totals.items() if value is not None}, race)
    if total is None:
        asked = [f"add={{{name!r}: ...}}" for name in add or {} if name in new]
        if horizon not in (None, session.horizon):
            asked.append(f"horizon={horizon}")
        if asked:
            raise SettingError(
                f"{asked[0]} also needs a larger budget, which pays for it: resume(..., budget=N) "
                f"with N above {session.budget}"
            )
        return Extension()
    if horizon is not None:
        at, most = errors.need_whole("horizon", horizon), max(session.pulls)
        require(at >= max(1, most), "horizon", at, f"at least {most}",
                "a learner has had that many pulls")  # fmt: skip
    if not isinstance(revive, bool):
        raise SettingError(f"revive={revive!r}, but revive must be True or False")
    seconds = totals.get("seconds")
    same = total == session.budget and seconds in (None, settings.seconds)
    if same and not new and horizon in (None, session.horizon):
        return Extension()  # the same call again, after an interruption
    if horizon is None:  # without one, a time-based race compares learners at its budget
        follows = seconds is not None and settings.horizon is None
        horizon = total if follows else session.horizon
    spent = session.spent if session.winner is not None else 0
    deciding = total - set_aside(total - spent, session.winner_share)
    one = settings.pulls_per_training
    shares = shares_of(new, full_steps, one, settings.seed) if new and one is not None else {}
    joined = []
    for arm, name in enumerate(new, len(session.names)):
        share = shares.get(name)
        steps = (share.full_steps, share.repeats_scores) if share else ()
        joined.append(Joined(arm, name, *steps))
    time = None if seconds is None else float(seconds)
    extended = Extended(total, deciding, horizon, revive, seconds=time)
    after = deepcopy(session)  # as it will be
    try:
        for event in (*joined, extended):
            after.apply(event)
    except errors.LatebloomerError as error:
        raise type(error)(f"{error} The race is unchanged.") from error
    revived = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(race, after, revived, tuple(new), time)
    return Extension((*joined, replace(extended, why=why)), revived, shares, tuple(new), why)


def _in_pulls(given: Mapping[str, Any], race: RaceState) -> int | None:
    """Return the new total budget in pulls; None if none is given."""
    session, settings, one = race.session, race.settings, race.settings.pulls_per_training
    if not given:
        return None
    if len(given) > 1:
        asked = " and ".join(f"{unit}={value}" for unit, value in given.items())
        raise SettingError(f"{asked}: give only one of them")
    ((unit, value),) = given.items()
    had: float = session.budget
    kind = "pulls"
    units = ["budget"] if one is None else ["budget", "trainings"]
    if settings.seconds is not None:
        had, kind, units = settings.seconds, "seconds", ["seconds"]
    if unit not in units:
        raise SettingError(
            f"{unit}={value} cannot extend this race, whose budget is in {kind}. Give "
            f"{' or '.join(units)}=, or start a new race."
        )
    check = errors.need_whole if unit == "budget" else errors.need_number
    check(unit, value)
    total = round(value * one) if unit == "trainings" and one and value < inf else value
    if not had <= total < inf:
        raise BudgetError(
            f"{unit}={value} is below the race's budget of {had} {kind}, which cannot be cut. "
            f"Give more, or omit {unit} to resume without extending."
        )
    if kind == "pulls":
        return int(total)
    if total == had:
        return session.budget
    left = max(0.0, total - race.elapsed)  # about how many pulls fit, by the pace so far
    fit = round(left * session.spent / race.elapsed) if race.elapsed else 0
    return max(session.budget, session.spent + fit, session.spent + 1)


def _in_words(
    race: RaceState, after: Session, back: Sequence[int], new: Sequence[str], seconds: float | None
) -> str:
    """Return what the extension does, to be printed before it is done."""
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
    if after.horizon == before.horizon:
        said.append(f"The horizon stays at {before.horizon} pulls.")
    elif seconds is None or race.settings.horizon is not None:  # else later plans set it
        said.append(f"The horizon moves from {before.horizon} to {after.horizon} pulls.")
    return " ".join(said)
