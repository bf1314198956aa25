"""Pulls on this machine, one after the other: in this process or in one process per learner."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import monotonic, perf_counter
from typing import ClassVar, TypeAlias

from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.learner import bare, note_pulls, trained
from latebloomer.racing.runners import contract, learner_host
from latebloomer.racing.runners.contract import HandedOver, Orders, Report, Runner, RunnerContext
from latebloomer.racing.runners.learner_host import ChildProcess, LearnerHost, ThreadHost, unpack
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

Host: TypeAlias = LearnerHost | ThreadHost | ChildProcess


@dataclass(kw_only=True, eq=False, repr=False)
class LocalRunner(Runner):
    """Train learners on this machine, one pull after the other.

    Parameters
    ----------
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take. A call that
        takes longer counts as failed. In this process it cannot be ended: it runs on in the
        background until it returns. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed.
    checkpoint_every : int | None
        Save each learner every this many pulls. Default: once 20 s of its training, and 20 times
        the duration of its last save, are unsaved.
    max_in_memory : int | None
        Maximum number of learners in memory; the others wait in checkpoints. Requires a policy
        with phases. Default: no limit.
    isolate : bool
        Whether each learner has its own local process, so that a crash in compiled code ends only
        that learner.
    """

    isolate: bool = False

    name: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.isolate, bool):
            raise SettingError(f"isolate={self.isolate!r}, but isolate must be True or False")
        self.interrupts = self.isolate
        self._live: dict[int, Host] = {}  # the learner that was pulled last comes last
        self._states = learner_host.OwnStates()
        self._thread = learner_host.CallThread()
        self._forker: learner_host.Forker | None = None

    def start(self, context: RunnerContext) -> None:
        """Take the learners; each is built when it is first pulled."""
        self.held, self._context, self._live = False, context, {}
        self._checked: set[int] = set()  # learners known to yield more than scores, or warned of
        most, entries = self.max_in_memory, context.entries
        self.in_phases = self._few = most is not None and most < len(entries)
        if self.isolate:
            # A forked process has all learners in its memory; a spawned one receives them.
            self._packed = learner_host.pack(entries, copied=learner_host.FORKS)
            self._forker = learner_host.Forker()

    # --- pulls ---

    def work(self, orders: Orders) -> Iterator[Report]:
        """Make one pull of one arm and save it after that if a save is due."""
        arm = self._next(orders)
        done = orders[arm].done
        if arm not in self._live:
            yield from self._restore(arm, done)
            if arm not in self._live:  # it failed, or the race has given it up meanwhile
                return
        if self._context.shown:
            yield events.PullStarted(arm, done + 1, monotonic())
        host = self._live[arm]
        if self._few:
            self._live[arm] = self._live.pop(arm)
        try:
            report = host.pull()
        except BaseException:  # Ctrl-C in the middle of a pull
            del self._live[arm]
            if not isinstance(host, ChildProcess):
                note_pulls(bare(host.learner), None)
            raise
        yield report
        if type(report) is ScoreReported and arm in self._live:
            if self.isolate and arm not in self._checked:
                self._checked.add(arm)
                if host.yields_only_scores():
                    yield events.WarningNoted(arm, learner_host.BARE)
            if self._context.schedule.is_due(arm, done + 1):
                yield from self.save({arm: done + 1})

    def _next(self, orders: Orders) -> int:
        """Return the arm to pull: with a memory limit a live one first, the last pulled of all."""
        live = (arm for arm in reversed(self._live) if arm in orders) if self._few else iter(())
        return next(live, next(iter(orders)))

    # --- from a checkpoint, or from nothing ---

    def _restore(self, arm: int, done: int) -> Iterator[Report]:
        """Bring a learner to `done` pulls: from its latest checkpoint, then pull by pull."""
        if self._few:
            yield from self._make_room()
        began = perf_counter()
        host = self._live[arm] = self._host(arm)
        answer = host.prepare(self._context.states.restorable(arm, done))
        seconds = perf_counter() - began
        if isinstance(answer, PullFailed):
            self._drop(arm)
            yield replace(answer, seconds=seconds)
            return
        yield from (events.WarningNoted(arm, text) for text in answer.notes)
        yield events.Restored(arm, done, seconds)

    def _host(self, arm: int) -> Host:
        entry = self._context.entries[arm]
        if self._forker is not None:
            return ChildProcess(arm, self._packed, self, self._context, self._forker)
        host = LearnerHost(arm, entry, self._states)
        if self.timeout is None:
            return host
        return ThreadHost(host, self.timeout, self._thread, entry.rebuilds)

    def _make_room(self) -> Iterator[Saved]:
        """Save learners and release them until one more fits into memory."""
        while len(self._live) >= (self.max_in_memory or 1):
            arm = next(iter(self._live))
            pulls = self._live[arm].done
            latest = self._context.states.newest(arm, pulls)
            if pulls and (latest is None or latest.n != pulls):
                for report in self.save({arm: pulls}):
                    if isinstance(report, SaveFailed):
                        raise contract.cannot_let_go(self._context.entries[arm], report.reason)
                    yield report
            self._drop(arm)

    # --- what the driver requests ---

    def _drop(self, arm: int) -> None:
        host = self._live.pop(arm, None)
        if host is not None:
            host.close()

    def discard(self, arm: int) -> None:
        """Give up the live state of an arm; an object without a checkpoint has no other state."""
        pulls = len(self._context.recorded(arm))
        if self._can_be_rebuilt(arm) or self._context.states.available(arm, pulls):
            self._drop(arm)

    def release(self, arm: int) -> None:
        """Free an arm that has left the race."""
        if self._can_be_rebuilt(arm):
            self._drop(arm)

    def _can_be_rebuilt(self, arm: int) -> bool:
        return self.isolate or self._context.entries[arm].rebuilds

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | SaveFailed]:
        """Save live arms that can be saved."""
        storage = self._context.states.storage
        for arm in pulls:
            if (host := self._live.get(arm)) is None:
                continue
            saved = host.save(storage, self._few)
            if host.lost:
                self._drop(arm)
            if saved is not None:
                yield saved

    def learner(self, arm: int, pulls: int) -> HandedOver:
        """Return the trained learner, restored if it is not live."""
        reports: list[Report] = []
        if arm not in self._live:
            for report in self._restore(arm, pulls):
                if isinstance(report, PullFailed):
                    error = LearnerError(report.reason)
                    error.add_note(report.details)
                    raise error
                reports.append(report)
        host = self._live[arm]
        if not isinstance(host, ChildProcess):
            return HandedOver(trained(host.learner), reports)
        states, entry = self._context.states, unpack(self._packed)[arm]
        saving = partial(host.save, states.storage, self._few)
        return learner_host.hand_over(states, entry, arm, pulls, host.fetch(), saving, reports)

    def stop(self) -> None:
        """End all processes and threads; remember how often objects were pulled."""
        for arm, host in list(self._live.items()):
            if not self._can_be_rebuilt(arm) and not isinstance(host, ChildProcess):
                note_pulls(bare(host.learner), len(self._context.recorded(arm)))
            self._drop(arm)
        if self.timeout is None:
            self._states.leave()
        else:  # modes of PyTorch belong to a thread
            self._thread.within(inf, self._states.leave)
        self._thread.close()
        if self._forker is not None:
            self._forker.shutdown()
            self._forker = None
