"""What a limited number of learners in memory needs: phases, and learners that can be released.

A policy with phases fixes how many pulls each learner makes before the next decision, so they can
be made learner by learner. The others wait in their checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isgeneratorfunction

from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.learner import Entry
from latebloomer.racing.settings import Settings
from latebloomer.session.session import Session

WITHOUT = "or omit max_in_memory to keep all learners in memory"


def check_memory_limit(
    most: int | None, entries: Sequence[Entry], session: Session, settings: Settings
) -> None:
    """Raise an error if these learners cannot be raced with at most `most` of them in memory."""
    if most is None or most >= len(entries):
        return
    given, policy = f"max_in_memory={most}", session.policy
    if session.decides_every_pull or policy.decides_after_sweeps():
        after = "pull" if session.decides_every_pull else "sweep"
        raise SettingError(
            f"{given} cannot be used with {policy!r}, which decides after every {after}: learners "
            "would be saved and loaded each time. Choose a policy with phases (auto, r-sr, sh), "
            f"{WITHOUT}."
        )
    if settings.seconds is not None:
        raise SettingError(
            f"{given} cannot be combined with seconds={settings.seconds:g}: a time-based race is "
            "re-planned when all learners have equal pulls, and with max_in_memory= that happens "
            f"only between phases. Use budget=..., {WITHOUT}."
        )
    for entry in entries:
        if not entry.rebuilds:
            raise LearnerError(
                f"{given}, but learner {entry.name!r} is an object, which is in memory as long as "
                f"you hold it. Pass a function that builds it, {WITHOUT}."
            )
        if isgeneratorfunction(entry.given):
            raise LearnerError(f"{given}: {cannot_let_go(entry.name, 'it is a generator')}")


def cannot_let_go(name: str, why: str) -> str:
    """Return what to do about a learner that cannot leave the memory."""
    return (
        f"Learner {name!r} cannot be saved and released ({why}). Pass a function that returns an "
        "object with pull(), save(folder) and load(folder), or one that can be pickled, "
        f"{WITHOUT}."
    )
