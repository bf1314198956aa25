"""Is the race that a journal holds the one that is asked for? If not, what differs is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from latebloomer._util.text import MOST, brief, one_line
from latebloomer.errors import JournalMismatch
from latebloomer.policies.base import Policy
from latebloomer.racing.journal import Place, files
from latebloomer.racing.journal.journal import near
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created

# The policy is compared when the settings are read, and so are learners; the others change no
# decision.
NOT_COMPARED = ("policy", "auto", "runner", "learner_settings")
LARGER = ("trainings", "budget")  # a race can be extended by them


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
    asked = {name: value for name, value in given.as_dict().items() if name not in NOT_COMPARED}
    call = f"resume({near(Path(journal).absolute())!r}, learners, {{}}=...)"
    larger = [name for name in LARGER if asked[name] and asked[name] != recorded.get(name)]
    extend = f"{call.format(larger[0])} to extend it, " if larger else ""
    need_same(
        journal, recorded, asked,
        f'Give the same settings to resume it, {extend}or if_exists="new" for a new race.',
    )  # fmt: skip


def need_same(
    journal: Place, recorded: Mapping[str, Any], asked: Mapping[str, Any], advice: str
) -> None:
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
            both = dict.fromkeys(was) | dict(now)
            found += [f"{name}: {one}" for one in differences(was, both)]
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
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    except Exception:  # of a user's own class
        return brief(value)
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return text if len(text) <= MOST else f"{one_line(text[:MOST])}... ({digest})"


def need_same_learners(
    journal: Place, recorded: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise `JournalMismatch` unless learners have the settings that the journal recorded.

    What differs in the same way for all of them, such as the data, is named once.
    """
    both = [name for name in recorded if name in given]
    found = {
        name: differences(recorded[name], dict.fromkeys(recorded[name]) | given[name])
        for name in both
    }
    common = (
        [one for one in found[both[0]] if all(one in of for of in found.values())] if both else []
    )
    shared = common if len(both) > 1 else []
    own = [f"{name}: {one}" for name in both for one in found[name] if one not in shared]
    _need_none(journal, shared + own, "Give the same learners to resume it, or another journal.")
