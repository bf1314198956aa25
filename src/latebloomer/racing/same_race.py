"""Comparison of a call with the race in a journal."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief, near
from latebloomer.errors import JournalMismatch
from latebloomer.policies.base import Policy
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal_file import Place, resolved
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created

Values = Mapping[str, Any]  # settings by name


# Settings that are not compared here: the policy and learners are compared when the settings are
# read; the others change no decision.
NOT_COMPARED = ("policy", "auto", "runner", "learner_settings")
LARGER = ("trainings", "budget")  # a larger value extends the race


def holds_race(journal: Place | None) -> bool:
    """Return whether there is a journal with at least one pull; first finish its rewriting."""
    if journal is None or not Path(journal).is_file():
        return False
    files.finish_rewriting(resolved(journal))
    try:
        return files.glance(journal).pulls > 0
    except files.Blank:
        return False


def race_in(journal: Place) -> Created:
    """Return the first event of a journal."""
    return files.glance(journal).created


def need_same_settings(journal: Place, settings: Settings, policy: Policy | str | None) -> None:
    """Raise `JournalMismatch` if a journal's race was started with other settings."""
    recorded = dict(race_in(journal).settings)
    Settings.from_dict(recorded, policy)  # compares the policies
    asked = {name: value for name, value in vars(settings).items() if name not in NOT_COMPARED}
    larger = [name for name in LARGER if asked[name] and asked[name] != recorded.get(name)]
    place = near(Path(journal).absolute())
    extend = f"resume({place!r}, learners, {larger[0]}=...) to extend it, " if larger else ""
    advice = f'Give the same settings to resume it, {extend}or if_exists="new" for a new race.'
    need_same(journal, recorded, asked, advice)


def need_same(journal: Place, recorded: Values, asked: Values, advice: str) -> None:
    """Raise `JournalMismatch`, with every difference, if the call differs from the journal."""
    _need_none(journal, differences(recorded, asked), advice)


def _need_none(journal: Place, parts: list[str], advice: str) -> None:
    if parts:
        place = near(Path(journal).absolute())
        raise JournalMismatch(f"Journal {place} holds another race: {'; '.join(parts)}. {advice}")


def differences(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return the differences between recorded and requested values, by name, as sentences.

    >>> differences({"seed": 0, "forest": {"depth": 6}}, {"seed": 1, "forest": {"depth": 8}})
    ['seed was 0, is 1', 'forest: depth was 6, is 8']
    >>> differences({"learners": ["a", "b"]}, {"learners": ["b", "c"]})
    ['learner a is missing', 'learner c is new']
    """
    parts = []
    for name, now in asked.items():
        was = recorded.get(name)
        if name == "learners":
            parts += [
                f"learner {learner} is missing" for learner in was or () if learner not in now
            ]
            parts += [f"learner {learner} is new" for learner in now if learner not in (was or ())]
        elif isinstance(was, Mapping) and isinstance(now, Mapping):
            parts += [
                f"{name}: {part}" for part in differences(was, dict.fromkeys(was) | dict(now))
            ]
        elif _plain(was) != _plain(now):
            parts.append(f"{name} was {brief(was)}, is {brief(now)}")
    return parts


def _plain(value: Any) -> Any:
    """Return a value as it is read from a journal."""
    return list(value) if isinstance(value, tuple) else value


def need_same_learners(journal: Place, recorded: Values, asked: Values) -> None:
    """Raise `JournalMismatch` if learners have other settings than in the journal.

    A difference that is the same for all learners, such as the data, is named once.
    """
    both = [name for name in recorded if name in asked]
    by_name = {
        name: differences(recorded[name], dict.fromkeys(recorded[name]) | asked[name])
        for name in both
    }
    counts = Counter(part for own in by_name.values() for part in own)
    shared = [part for part, count in counts.items() if count == len(both) > 1]
    own = [f"{name}: {part}" for name in both for part in by_name[name] if part not in shared]
    _need_none(journal, shared + own, "Give the same learners to resume it, or another journal.")
