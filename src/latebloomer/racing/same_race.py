"""Is the race that a journal holds the one that is asked for?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import JournalMismatch
from latebloomer.policies.base import Policy
from latebloomer.racing.journal import Place, files
from latebloomer.racing.journal.journal import near
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created

# The policy is compared when the journal is replayed; the others change no decision.
NOT_COMPARED = {"policy", "auto", "runner", "learners"}
MORE = ("trainings", "budget")  # looked at first: the second follows from the first


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
    """Raise `JournalMismatch` unless a journal's race was begun with these settings."""
    begun = Settings.from_dict(dict(race_in(journal).settings), policy)
    for name in (*MORE, *(field.name for field in fields(Settings))):
        was, now = getattr(begun, name), getattr(given, name)
        if name not in NOT_COMPARED and _plain(was) != _plain(now):
            raise JournalMismatch(
                f"{name}={now!r}, but the race of {near(Path(journal).absolute())} was begun with "
                f"{name}={was!r}: give the same to go on with it{_more(name, journal)}, or "
                'if_exists="new" for a race of its own'
            )


def _more(name: str, journal: Place) -> str:
    """How a race is given more, where that is what differs."""
    call = f"resume({near(Path(journal).absolute())!r}, learners, {name}=...)"
    return f", {call} to give it more" if name in MORE else ""


def _plain(value: Any) -> Any:
    """As a journal gives it back."""
    return list(value) if isinstance(value, tuple) else value


# --- the learners ---


def described(learners: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the attribute `settings` of each learner that has one, a dict of plain values."""
    if not isinstance(learners, Mapping):  # which is an error elsewhere
        return {}
    found = {name: getattr(one, "settings", None) for name, one in learners.items()}
    return {name: dict(value) for name, value in found.items() if isinstance(value, Mapping)}


def need_same_learners(
    journal: Place,
    recorded: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Mapping[str, Any]],
) -> None:
    """Raise `JournalMismatch` unless learners have the settings that the journal recorded.

    A setting that differs for all learners in the same way is not a learner's own: it is named
    alone.
    """
    both = [name for name in recorded if name in given]
    different = [list(_differences(recorded[name], given[name])) for name in both]
    first = next((found[0] for found in different if found), None)
    if first is None:
        return
    shared = len(both) > 1 and all(first in found for found in different)
    whose = "" if shared else f"{both[next(k for k, found in enumerate(different) if found)]}: "
    raise _mismatch(journal, f"{whose}{first}")


def need_same_values(journal: Place, given: Mapping[str, Any]) -> None:
    """Raise `JournalMismatch` unless some settings are those that the journal recorded."""
    recorded = race_in(journal).settings
    found = next(_differences({name: recorded[name] for name in given}, given), None)
    if found is not None:
        raise _mismatch(journal, found)


def _mismatch(journal: Place, what: str) -> JournalMismatch:
    return JournalMismatch(
        f"The race of {near(Path(journal).absolute())} was started differently: {what}. Give what "
        "it was started with to resume it, or another journal."
    )


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in {**was, **now}:
        if key not in now:
            yield f"{key} was {brief(was[key])}, is not given"
        elif key not in was:
            yield f"{key} was not given, is {brief(now[key])}"
        elif was[key] != now[key]:
            yield f"{key} was {brief(was[key])}, is {brief(now[key])}"
