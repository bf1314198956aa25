"""The local runner: pulls one after the other, in this process or in one process per learner."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from time import monotonic, perf_counter, process_time
from typing import ClassVar

from latebloomer.errors import LearnerError, SettingError
from latebloomer.racing.runners.child_process import FORKS, ChildProcess, Forker
from latebloomer.racing.runners.learner_host import BARE, Host, LearnerHost
from latebloomer.racing.runners.native_threads import NativeThreads, ThreadWatch
from latebloomer.racing.runners.packing import pack
from latebloomer.racing.runners.process_state import OwnStates
from latebloomer.racing.runners.runner import (
    HandedOver,
    Orders,
    Report,
    Runner,
    RunnerContext,
    cannot_let_go,
)
from latebloomer.racing.runners.time_limits import CallThread, ThreadHost
from latebloomer.session import events
from latebloomer.session.events import (
    PullFailed,
    Saved,
    SaveFailed,
    ScoreReported,
)


@dataclass(kw_only=True, eq=False, repr=False)
class LocalRunner(Runner):
    """Train learners on this machine, one pull after the other.

    Parameters
    ----------
    timeout : float | None
        Seconds that building, loading or saving a learner, or one pull, may take. A call that
        takes longer counts as failed. Without `isolate`, it cannot be ended and continues in the
        background until it returns. Default: no limit.
    retries : int
        Number of times a failed pull is retried before the learner counts as failed, at least 0.
        Default: 1.
    checkpoint_every : int | None
        Number of pulls between two checkpoints of a learner. Default: a learner is saved when the
        training not saved yet took at least 20 s and at least 20 times as long as its last save.
    max_in_memory : int | None
        Maximum number of learners in memory; the others wait in checkpoints. Requires a policy
        with phases. Default: no limit.
    isolate : bool
        Whether each learner has its own local process, so that a crash in compiled code ends only
        that learner.
    threads : int | None
        Number of native threads that BLAS and OpenMP may start in a call of a learner. The threads
        of small learners often wait for each other, especially on a busy machine. Needs
        threadpoolctl. Default: the libraries decide.
    """

    isolate: bool = False
    threads: int | None = None

    name: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.isolate, bool):
            raise SettingError(f"isolate={self.isolate!r}, but isolate must be True or False")
        self._native = NativeThreads(self.threads)
        self.interrupts = self.isolate
        self._live: dict[int, Host] = {}  # in the order of their latest pulls
        self._states = OwnStates()
        self._thread = CallThread()
        self._forker: Forker | None = None

    def start(self, context: RunnerContext) -> None:
        """Receive the learners; each is built when it is first pulled."""
        self.held, self._context, self._live = False, context, {}
        self._watch = ThreadWatch()
        self._checked: set[int] = set()  # learners that yield a model, or with a warning already
        most, entries = self.max_in_memory, context.entries
        self.in_phases = self._few = most is not None and most < len(entries)
        if self.isolate:
            # A forked process already has all learners in its memory; a spawned process receives
            # them.
            self._packed = pack(entries, copied=FORKS)
            self._forker = Forker()

    # --- pulls ---

    def work(self, orders: Orders) -> Iterator[Report]:
        """Make one pull of one arm, then save it if a save is due."""
        arm = self._next(orders)
        done = orders[arm].done
        self._native.limit()
        if arm not in self._live:
            yield from self._restore(arm, done)
            if arm not in self._live:  # it failed, or the race has discarded it meanwhile
                return
        if self._context.shown:
            yield events.PullStarted(arm, done + 1, monotonic())
        host = self._live[arm]
        if self._few:
            self._live[arm] = self._live.pop(arm)
        began = process_time()
        try:
            report = host.pull()
        except BaseException:  # such as Ctrl-C in the middle of a pull
            del self._live[arm]
            host.note_pulls(None)
            raise
        cpu = process_time() - began
        if isinstance(report, PullFailed) and self._must_keep(arm) and not host.lost:
            report = replace(report, kept=True)
        yield report
        if type(report) is ScoreReported and not self.isolate:
            text = self._watch.add(report.seconds, cpu)
            if text is not None:
                yield events.WarningNoted(None, text)
        if type(report) is ScoreReported and arm in self._live:
            if self.isolate and arm not in self._checked:
                self._checked.add(arm)
                if host.yields_only_scores():
                    yield events.WarningNoted(arm, BARE)
            if self._context.schedule.is_due(arm, done + 1):
                yield from self.save({arm: done + 1})

    def _next(self, orders: Orders) -> int:
        """Return the arm to pull; with a memory limit, prefer live arms, the latest one first."""
        live = (arm for arm in reversed(self._live) if arm in orders) if self._few else iter(())
        return next(live, next(iter(orders)))

    def aside(self) -> AbstractContextManager[None]:
        """Return a context with the program's own state in force, for its callbacks."""
        return nullcontext() if self.isolate else self._states.aside()

    # --- building and restoring learners ---

    def _restore(self, arm: int, done: int) -> Iterator[Report]:
        """Restore a learner to `done` pulls: load its latest checkpoint, then repeat pulls."""
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
            return ChildProcess(arm, self._packed, self, self._context, self._forker, self.threads)
        host = LearnerHost(arm, entry, self._states, self._native)
        if self.timeout is None:
            return host
        return ThreadHost(host, self.timeout, self._thread, entry.rebuilds)

    def _make_room(self) -> Iterator[Report]:
        """Save learners and release them until one more fits into memory."""
        while len(self._live) >= (self.max_in_memory or 1):
            arm = next(iter(self._live))
            pulls = self._live[arm].done
            latest = self._context.states.newest(arm, pulls)
            if pulls and (latest is None or latest.n != pulls):
                for report in self.save({arm: pulls}):
                    if isinstance(report, SaveFailed):
                        raise cannot_let_go(self._context.entries[arm], report.reason)
                    yield report
            yield from self.score_rows([arm])  # it may be dropped before it is restored
            self._drop(arm)

    # --- requests of the driver ---

    def _drop(self, arm: int) -> None:
        host = self._live.pop(arm, None)
        if host is not None:
            host.close()

    def discard(self, arm: int) -> None:
        """Discard the live state of an arm, unless it is its only state."""
        if not self._must_keep(arm):
            self._drop(arm)

    def release(self, arm: int) -> None:
        """Release an arm that has left the race."""
        if self._can_be_rebuilt(arm):
            self._drop(arm)

    def _must_keep(self, arm: int) -> bool:
        """Return whether the live state is the only state of an arm."""
        pulls = len(self._context.recorded(arm))
        return not (self._can_be_rebuilt(arm) or self._context.states.available(arm, pulls))

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

    def score_rows(self, arms: Iterable[int]) -> Iterator[Report]:
        """Report the row scores of live arms that have row scores."""
        for arm in arms:
            host = self._live.get(arm)
            scored = None if host is None else host.score_rows()
            if scored is not None:
                yield scored

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
        return self._live[arm].hand_over(self._context.states, self._few, reports)

    def stop(self) -> None:
        """End all processes and threads; store how often objects were pulled."""
        for arm, host in list(self._live.items()):
            if not self._can_be_rebuilt(arm):
                host.note_pulls(len(self._context.recorded(arm)))
            self._drop(arm)
        if self.timeout is None:
            self._states.leave()
        else:  # close here, because modes of PyTorch belong to a thread
            self._thread.within(inf, self._states.leave)
        self._thread.close()
        self._native.release()
        if self._forker is not None:
            self._forker.shutdown()
            self._forker = None
