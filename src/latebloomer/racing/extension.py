"""A race is given more: a larger budget, another horizon, newcomers.

What is asked for becomes events, `Joined` and `Extended`, which go to the journal like all others:
a race that was extended resumes and replays as any does. Before they are written, it is said what
they cost.
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


class More(NamedTuple):
    """What `resume` is asked to add to a race; nothing by default."""

    budget: int | None = None  # pulls in all, those that are spent among them
    horizon: int | None = None
    revive: bool = True
    add: Mapping[str, Given] | None = None
    trainings: float | None = None  # the same in full trainings
    full_steps: Any = None  # of the newcomers, as in `race`


class Extension(NamedTuple):
    """The events of an extension, and what is said before they are written."""

    events: tuple[Joined | Extended, ...]
    back: tuple[int, ...]  # arms that were out and race again
    shares: Mapping[str, Share]  # of a full training that a newcomer's pull is; none: one step

    @property
    def newcomers(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(event.name for event in self.events if isinstance(event, Joined))

    def announcement(self, race: RaceState, states: SavedStates) -> str:
        """What comes now, and what it costs to bring learners back."""
        why = "".join(event.why for event in self.events if isinstance(event, Extended))
        return f"{why}{_restoring(self.back, race, states)}"


def with_newcomers(
    learners: Mapping[str, Given], more: More, names: Sequence[str], first: Sequence[str]
) -> Mapping[str, Given]:
    """The learners of a race and those to be added; each must have a name of its own.

    `names` are in the journal, the `first` of them from its beginning on. Who joined before, by a
    call that was stopped and is repeated, is not added again.
    """
    added = {} if more.add is None else more.add
    if not isinstance(added, Mapping):
        raise SettingError(f"add={added!r}, but add must be a dict of names and learners")
    if not isinstance(learners, Mapping):
        return learners
    for name in added:
        if name in learners or name in first:
            raise SettingError(
                f"add={{{name!r}: ...}}, but {name!r} is in this race already: a newcomer needs a "
                f"name of its own, other than {', '.join(names)}"
            )
    return {**learners, **added}


def plan_extension(more: More, race: RaceState) -> Extension | None:
    """The events that `more` asks for; None where the race is as it was asked for.

    It changes nothing. What cannot be is an error that says what to do.
    """
    session = race.session
    more = _in_pulls(more, race)
    new = [name for name in more.add or {} if name not in session.names]
    if more.budget is None:
        _need_budget(more, new, session)
        return None
    budget = _checked_budget(more, race)
    if budget == session.budget and not new and more.horizon in (None, session.horizon):
        return None  # the same call again, after an interruption
    horizon = session.horizon if more.horizon is None else more.horizon
    named = session.winner is not None
    aside = set_aside(budget - session.spent if named else budget, session.winner_share)
    shares = _shares_of_newcomers(more, new, race)
    joined = [
        _joined(len(session.names) + k, name, shares.get(name)) for k, name in enumerate(new)
    ]
    extended = Extended(budget, budget - aside, horizon, more.revive)
    after = _after(session, [*joined, extended], race)
    back = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(session, after, back, new)
    extended = Extended(budget, budget - aside, horizon, more.revive, why)
    return Extension((*joined, extended), back, shares)


def _in_pulls(more: More, race: RaceState) -> More:
    """A budget in full trainings as one in pulls."""
    one = race.settings.pulls_per_training
    if more.trainings is None:
        return more
    if more.budget is not None:
        raise SettingError(
            f"trainings={more.trainings} and budget={more.budget}, but one of them is enough"
        )
    if one is None:
        raise SettingError(
            f"trainings={more.trainings}, but in this race a pull is one step: give budget= in "
            "pulls"
        )
    need_number("trainings", more.trainings)
    return more._replace(budget=round(more.trainings * one))


def _shares_of_newcomers(more: More, new: list[str], race: RaceState) -> dict[str, Share]:
    one = race.settings.pulls_per_training
    if one is None or not new:
        return {}
    newcomers = {name: given for name, given in (more.add or {}).items() if name in new}
    return shares_of(newcomers, more.full_steps, one)


def _joined(arm: int, name: str, share: Share | None) -> Joined:
    return (
        Joined(arm, name)
        if share is None
        else Joined(arm, name, share.full_steps, share.repeats_scores)
    )


def _need_budget(more: More, new: list[str], session: Session) -> None:
    if new:
        raise SettingError(
            f"add={{{new[0]!r}: ...}} without budget, but a newcomer is paid from a larger "
            f"budget: resume(..., budget=...) with more than {session.budget}"
        )
    if more.horizon is not None and more.horizon != session.horizon:
        raise SettingError(
            f"horizon={more.horizon} without budget, but the horizon moves only with a larger "
            f"budget: resume(..., budget=...) with more than {session.budget}"
        )


def _checked_budget(more: More, race: RaceState) -> int:
    session, budget = race.session, need_whole("budget", more.budget)
    if race.settings.seconds is not None:
        raise SettingError(
            f"budget={budget}, but this race is by the clock (seconds={race.settings.seconds:g}): "
            "its pulls follow from its time; race anew with budget=..."
        )
    if budget < session.spent:
        raise BudgetError(
            f"budget={budget}, but {session.spent} pulls are spent already: give more than "
            f"{session.budget}, or leave budget out to resume as it is"
        )
    if budget < session.budget:
        raise BudgetError(
            f"budget={budget}, but the race has {session.budget}, and a race is extended, not "
            f"cut: give more than {session.budget}, or leave budget out to resume as it is"
        )
    if more.horizon is not None:
        horizon, most = need_whole("horizon", more.horizon), max(session.pulls)
        require(horizon >= max(1, most), "horizon", horizon, f"at least {most}",
                "a learner has had so many pulls")  # fmt: skip
    if not isinstance(more.revive, bool):
        raise SettingError(f"revive={more.revive!r}, but revive must be True or False")
    return budget


def _after(session: Session, events: Sequence[Joined | Extended], race: RaceState) -> Session:
    """How the session will stand; the one of the race stays as it is."""
    after = deepcopy(session)
    for event in events:
        try:
            after.apply(event)
        except LatebloomerError as error:
            raise type(error)(f"{error}; the race is as it was") from error
    return after


# --- what is said ---


def _in_words(before: Session, after: Session, back: Sequence[int], new: Sequence[str]) -> str:
    names = before.names
    said = [f"extends from {before.budget} to {after.budget} pulls"]
    if back:
        pulls = _listed([str(before.pulls_of(i)) for i in back])
        word = "comes back" if len(back) == 1 else "come back"
        said.append(f"{_listed([names[i] for i in back])} {word} (from pull {pulls})")
    elif len(before.racing) < len(names):
        said.append("nobody comes back")
    if new:
        said.append(f"{_listed(new)} {'joins' if len(new) == 1 else 'join'} (from pull 0)")
    if after.horizon == before.horizon:
        said.append(f"the horizon stays at {before.horizon} pulls")
    else:
        said.append(f"the horizon moves from {before.horizon} to {after.horizon} pulls")
    return f"{said[0]}: {', '.join(said[1:])}"


def _restoring(back: Sequence[int], race: RaceState, states: SavedStates) -> str:
    """What bringing those back costs that were out."""
    kept, again, time = 0, 0, 0.0
    for arm in back:
        n = race.session.pulls_of(arm)
        saved = states.available(arm, n)
        missing = n - (saved.n if saved else 0)
        kept, again = kept + n - missing, again + missing
        time += missing * race.seconds[arm] / max(1, n)
    parts = [f"{kept} pulls of theirs are in checkpoints"] if kept else []
    if again:
        parts.append(f"{again} pulls are trained again (about {time:.3g} s)")
    return f"; {', '.join(parts)}" if parts else ""


def _listed(names: Sequence[Any]) -> str:
    """
    >>> _listed(["net"]), _listed(["net", "forest"]), _listed(["a", "b", "c"])
    ('net', 'net and forest', 'a, b and c')
    """
    *most, last = map(str, names)
    return f"{', '.join(most)} and {last}" if most else last
