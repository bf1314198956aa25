"""The extension of a race: the events for a larger budget."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from latebloomer import errors
from latebloomer._util.text import quoted
from latebloomer.errors import SettingError
from latebloomer.racing.learners.entries import need_learners
from latebloomer.racing.learners.full_training import shares_of
from latebloomer.racing.learners.learner import Share
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.request import ResumeRequest
from latebloomer.racing.settings import Settings
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.session import Session


class Extension(NamedTuple):
    """The events of an extension, and the text that is printed before they are recorded."""

    happens: tuple[events.Joined | events.Extended, ...] = ()
    # Fraction of a full training per pull, for new learners; empty: one step.
    shares: Mapping[str, Share] = {}
    why: str = ""  # text that says what happens now


def plan_extension(race: RaceState, request: ResumeRequest) -> Extension:
    """Return the events for a larger budget; none if the race already has the requested budget.

    The race is not changed. If a request is not possible, an error says what to do.
    """
    learners, horizon, revive = request.learners, request.budget.horizon, request.revive
    seconds, session, settings = request.budget.seconds, race.session, race.settings
    need_learners(learners)
    errors.need_flag("revive", revive, "True or False")
    new = {name: learner for name, learner in learners.items() if name not in session.names}
    total = _in_pulls(request.budget.amounts, race)
    if total is None:
        _need_plain_resume(session, request, new)
        return Extension()
    if horizon is not None:
        most = max(1, *session.pulls)
        errors.need_whole("horizon", horizon, most, "a learner already has that many pulls")
    same = total == session.budget and seconds in (None, settings.seconds)
    if same and not new and horizon in (None, session.horizon):
        return Extension()  # the same call was repeated after an interruption
    if horizon is None:  # a time-based race without a horizon compares learners at its budget
        follows = seconds is not None and settings.horizon is None
        horizon = total if follows else session.horizon
    spent = session.spent if session.winner is not None else 0
    deciding = total - set_aside(total - spent, session.winner_share)
    shares = _shares_of_new(new, settings, request.budget.full_steps)
    joined = [
        _joined(arm, name, shares.get(name)) for arm, name in enumerate(new, len(session.names))
    ]
    time = None if seconds is None else float(seconds)
    extended = events.Extended(total, deciding, horizon, revive, seconds=time)
    after = _applied(session, (*joined, extended))
    revived = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(race, after, revived, tuple(new), time)
    return Extension((*joined, replace(extended, why=why)), shares, why)


def _need_plain_resume(session: Session, request: ResumeRequest, new: Mapping[str, Any]) -> None:
    """Raise an error if a call without a larger budget has options that only extensions have."""
    larger = f"resume(..., budget=N) with N above {session.budget}"
    horizon, full_steps = request.budget.horizon, request.budget.full_steps
    costs = [f"add={{{name!r}: ...}}" for name in request.add or {} if name in new]
    costs += [] if horizon in (None, session.horizon) else [f"horizon={horizon}"]
    if costs:
        raise SettingError(f"{costs[0]} also needs a larger budget, which pays for it: {larger}")
    asked = [] if request.revive else ["revive=False"]
    asked += [] if full_steps is None else [f"full_steps={full_steps}"]
    if asked:
        raise SettingError(
            f"{asked[0]} is an option of extensions, but this call only resumes the race: omit "
            f"it, or extend the race: {larger}"
        )


def _shares_of_new(
    new: Mapping[str, Any], settings: Settings, full_steps: Any
) -> dict[str, Share]:
    """Return the share of its full training that each new learner gets per pull, if any."""
    per_training = settings.pulls_per_training
    if full_steps is not None and not (new and per_training):
        why = "no learner is new" if per_training else "a pull of this race is one step"
        raise SettingError(f"full_steps={full_steps} applies to new learners, but {why}: omit it")
    if not new or per_training is None:
        return {}
    return shares_of(new, full_steps, per_training, settings.seed)


def _joined(arm: int, name: str, share: Share | None) -> events.Joined:
    steps = () if share is None else (share.full_steps, share.repeats_scores)
    return events.Joined(arm, name, *steps)


def _applied(session: Session, happens: Sequence[events.Event]) -> Session:
    """Return a copy of the session, to which the events are applied."""
    after = deepcopy(session)
    try:
        for event in happens:
            after.apply(event)
    except errors.LatebloomerError as error:
        raise type(error)(f"{error} The race is unchanged.") from error
    return after


def _in_pulls(amounts: Mapping[str, Any], race: RaceState) -> int | None:
    """Return the new total budget in pulls; None if the request has no budget."""
    session, settings, per_training = race.session, race.settings, race.settings.pulls_per_training
    if not amounts:
        return None
    if len(amounts) > 1:
        asked = " and ".join(f"{unit}={value}" for unit, value in amounts.items())
        raise SettingError(f"{asked}: give only one of them")
    ((unit, value),) = amounts.items()
    had: float = session.budget
    kind = "pulls"
    units = ["budget"] if per_training is None else ["budget", "trainings"]
    if settings.seconds is not None:
        had, kind, units = settings.seconds, "seconds", ["seconds"]
    if unit not in units:
        raise SettingError(
            f"{unit}={value} cannot extend this race, whose budget is in {kind}. Give "
            f"{' or '.join(units)}=, or start a new race."
        )
    check = errors.need_whole if unit == "budget" else errors.need_number
    check(unit, value)
    total = (
        round(value * per_training)
        if unit == "trainings" and per_training and value < inf
        else value
    )
    if not had <= total < inf:
        raise errors.BudgetError(
            f"{unit}={value} is below the race's budget of {had:g} {kind}, which cannot be cut. "
            f"Give more, or omit {unit} to resume without extending."
        )
    if kind == "pulls":
        return int(total)
    if total == had:
        return session.budget
    remaining = max(0.0, total - race.elapsed)  # estimate how many pulls fit by the pace so far
    fit = round(remaining * session.spent / race.elapsed) if race.elapsed else 0
    return max(session.budget, session.spent + fit, session.spent + 1)


def _in_words(
    race: RaceState, after: Session, back: Sequence[int], new: Sequence[str], seconds: float | None
) -> str:
    """Return text that says what the extension will do."""
    before, names = race.session, race.session.names
    if seconds is None:
        lines = [f"Extending the budget from {before.budget} to {after.budget} pulls."]
    else:
        more = after.budget - before.spent
        lines = [f"Extending the time from {race.settings.seconds:g} s to {seconds:g} s."]
        lines.append(f"About {more} more pull{'s' * (more != 1)} fit.")
    if back:
        at = [f"{quoted(names[i])} (at pull {before.pulls_of(i)})" for i in back]
        lines.append(f"Revived: {', '.join(at)}.")
    elif len(before.racing) < len(names):
        lines.append("No learner is revived.")
    if new:
        lines.append(f"New: {', '.join(new)}.")
    if after.horizon == before.horizon:
        lines.append(f"The horizon stays at {before.horizon} pulls.")
    # Otherwise, later plans set the horizon.
    elif seconds is None or race.settings.horizon is not None:
        lines.append(f"The horizon moves from {before.horizon} to {after.horizon} pulls.")
    return " ".join(lines)
