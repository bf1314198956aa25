"""Few learners in memory: each makes its pulls of a phase, is saved, and makes room.

A policy with phases fixes how many pulls each learner makes before the next decision, so they need
not be made in turns. Who is done waits in its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import isgeneratorfunction
from typing import Any, ClassVar

from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.learner import Entry
from latebloomer.racing.runners.contract import (
    Orders,
    Report,
    Runner,
    RunnerContext,
    RunningPull,
    Unsaved,
)
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Saved, ScoreReported
from latebloomer.session.session import Session

WITHOUT = "or leave resident out to keep all learners in memory"


def limit_memory(
    runner: Runner,
    max_in_memory: int | None,
    entries: Sequence[Entry],
    session: Session,
    settings: Settings,
) -> Runner:
    """The same runner with at most `max_in_memory` learners live at once; says what cannot work."""
    if max_in_memory is None:
        return runner
    whole = isinstance(max_in_memory, int) and not isinstance(max_in_memory, bool)
    if not whole or max_in_memory < 1:
        raise SettingError(
            f"max_in_memory={max_in_memory!r}, but resident must be a whole number from 1 on: it is how "
            "many learners are in memory at once"
        )
    if max_in_memory >= len(entries):
        return runner
    _need_phases(max_in_memory, session, settings)
    for entry in entries:
        _need_function(max_in_memory, entry)
    return runner.with_resident(max_in_memory)


def _need_phases(max_in_memory: int, session: Session, settings: Settings) -> None:
    policy = session.policy
    if session.decides_every_pull or policy.decides_after_sweeps():
        after = "pull" if session.decides_every_pull else "sweep"
        raise SettingError(
            f"max_in_memory={max_in_memory} with {policy!r}, but that decides after every {after}, and "
            "learners would be saved and loaded each time: choose a policy with phases (auto, "
            f"r-sr, sh), {WITHOUT}"
        )
    if settings.seconds is not None:
        raise SettingError(
            f"max_in_memory={max_in_memory} with seconds={settings.seconds:g}, but a race by the clock is "
            "planned while all learners have had as many pulls, and these have that between "
            f"phases alone: give budget=... instead of seconds, {WITHOUT}"
        )


def _need_function(max_in_memory: int, entry: Entry) -> None:
    if not entry.rebuilds:
        raise LearnerError(
            f"max_in_memory={max_in_memory}, but learner {entry.name!r} is an object, which is in memory as "
            f"long as you hold it: give a function that builds it, {WITHOUT}"
        )
    if isgeneratorfunction(entry.given):
        raise LearnerError(
            f"max_in_memory={max_in_memory}, but {cannot_let_go(entry.name, 'a generator')}"
        )


def cannot_let_go(name: str, why: str) -> str:
    """What to do about a learner that cannot leave the memory."""
    return (
        f"learner {name!r} cannot be saved and let go ({why}): give a function that returns an "
        f"object with pull() and save(folder), load(folder), or one that can be pickled, {WITHOUT}"
    )


class ResidentRunner(Runner):
    """Lets another runner make the pulls, learner by learner, and keeps few of them live."""

    in_phases: ClassVar[bool] = True

    def __init__(self, inner: Runner, max_in_memory: int) -> None:
        super().__init__()
        self._inner, self._resident = inner, max_in_memory
        self._live: dict[int, int] = {}  # pulls of each; the one that was pulled last is last
        self.pending = inner.pending

    def start(self, stage: RunnerContext) -> None:
        self._stage = stage
        self._inner.start(stage._replace(pickles=True))

    @property
    def under_way(self) -> RunningPull | None:
        return self._inner.under_way

    def work(self, orders: Orders) -> Iterator[Report]:
        """One pull of the learner that is at it, or of the next one."""
        arm = self._next(orders)
        order = orders[arm]
        if arm not in self._live:
            yield from self._make_room(keep=self._resident - 1)
        self._live.pop(arm, None)
        self._live[arm] = order.done
        for report in self._inner.work({arm: order}):
            if type(report) is ScoreReported and arm in self._live:
                self._live[arm] = order.done + 1
            yield report

    def _next(self, orders: Orders) -> int:
        """Whoever is live has its turn before another is brought back, the last pulled first."""
        return next((arm for arm in reversed(self._live) if arm in orders), next(iter(orders)))

    def _make_room(self, keep: int) -> Iterator[Saved]:
        """Save learners and let go of them until no more than `keep` are live."""
        while len(self._live) > keep:
            arm = next(iter(self._live))
            yield from self._saved(arm, self._live[arm])
            self._inner.discard(arm)
            self._live.pop(arm, None)

    def _saved(self, arm: int, pulls: int) -> Iterator[Saved]:
        newest = self._stage.states.newest(arm, pulls)
        if not pulls or (newest is not None and newest.n == pulls):
            return
        reports = list(self._inner.save({arm: pulls}))
        for report in reports:
            if isinstance(report, Unsaved):
                raise LearnerError(cannot_let_go(self._stage.entries[arm].name, report.reason))
            yield report

    # --- what the driver asks for ---

    def hold(self) -> None:
        super().hold()
        self._inner.hold()

    def discard(self, arm: int) -> None:
        self._live.pop(arm, None)
        self._inner.discard(arm)

    def release(self, arm: int) -> None:
        self._live.pop(arm, None)
        self._inner.release(arm)

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | Unsaved]:
        return self._inner.save(pulls)

    def learner(self, arm: int, pulls: int) -> Any:
        if arm not in self._live:
            self.pending += self._make_room(keep=self._resident - 1)
        self._live[arm] = pulls
        return self._inner.learner(arm, pulls)

    def stop(self) -> None:
        self._inner.stop()
