"""Pulls in this process, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import Any

from latebloomer.racing.checkpoints.restore import Target, restore
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import place_of
from latebloomer.racing.learner import Learner, bare, can_save, trained
from latebloomer.racing.runners.contract import (
    LearnerFinished,
    Orders,
    PullFailure,
    Report,
    Runner,
    RunnerContext,
    RunningPull,
    TooLong,
    Unsaved,
    directly,
    one_pull,
    save_learner,
    trouble_of,
)
from latebloomer.racing.runners.object_pulls import already_had, note_pulls
from latebloomer.session.events import Restored, Saved, ScoreReported, WarningNoted


class LocalRunner(Runner):
    """Builds learners when they are first pulled, and pulls them in the order that is asked."""

    def with_resident(self, max_in_memory: int) -> Runner:
        from latebloomer.racing.runners.memory_limit import ResidentRunner

        return ResidentRunner(self, max_in_memory)

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[int, Learner] = {}
        self._begun: tuple[int, int, float] | None = None  # arm, its pull, and when
        self._call: Callable[[Callable[[], Any]], Any] = directly

    @property
    def under_way(self) -> RunningPull | None:
        begun = self._begun  # once: this is another thread
        return None if begun is None else RunningPull(*begun)

    def start(self, stage: RunnerContext) -> None:
        self._stage = stage
        if stage.timeout is not None:
            self._call = Bounded(stage.timeout)

    def work(self, orders: Orders) -> Iterator[Report]:
        """One pull of the first arm that is ordered, saved after it where that is due."""
        arm = next(iter(orders))
        done = orders[arm].done
        if arm not in self._live:
            began = perf_counter()
            try:
                self._restore(arm, done)
            except (Exception, SystemExit) as error:
                trouble = self._cannot_restore(arm, error)
                yield trouble._replace(seconds=perf_counter() - began)
                return
            while self.pending:
                yield self.pending.pop(0)
            yield Restored(arm, done, perf_counter() - began)
        began = monotonic()
        self._begun = arm, done + 1, began
        report = self._pull(arm, began)
        self._begun = None
        yield report
        if type(report) is ScoreReported and self._stage.schedule.is_due(arm, done + 1):
            yield from self.save({arm: done + 1})

    def _pull(self, arm: int, began: float) -> ScoreReported | LearnerFinished | PullFailure:
        try:
            return one_pull(arm, self._live[arm], self._call)
        except TooLong as error:
            return self._too_long(arm, error)._replace(seconds=monotonic() - began)
        except BaseException:
            note_pulls(bare(self._live.pop(arm)), None)  # stopped in the middle of a pull
            raise

    def _too_long(self, arm: int, error: TooLong) -> PullFailure:
        entry = self._stage.entries[arm]
        if entry.rebuilds:
            return PullFailure(arm, "timeout", str(error))
        return PullFailure(
            arm, "timeout",
            f"{error}, and it cannot be tried again: the abandoned pull still holds the object; "
            "give a function that builds the learner",
            hopeless=True,
        )  # fmt: skip

    # --- from a checkpoint, or from nothing ---

    def _restore(self, arm: int, done: int) -> Learner:
        """A learner that has had `done` pulls: the newest checkpoint, then what is missing."""
        entry, states = self._stage.entries[arm], self._stage.states
        saved = states.available(arm, done) if done else None
        recorded = self._stage.recorded(arm) if done else []
        storage = states.storage if saved is not None else None

        def pulls_had(learner: Learner) -> int:
            return 0 if entry.rebuilds or done == 0 else already_had(bare(learner), done)

        learner, notes = restore(
            Target(entry, done, saved, recorded, storage), self._call, pulls_had
        )
        self.pending += [WarningNoted(arm, text) for text in notes]
        self._live[arm] = learner
        return learner

    def _cannot_restore(self, arm: int, error: BaseException) -> PullFailure:
        self._live.pop(arm, None)
        if isinstance(error, TooLong):
            return self._too_long(arm, error)._replace(kind="restore")
        return trouble_of(arm, error, "restore")

    # --- what the driver asks for ---

    def discard(self, arm: int) -> None:
        entry = self._stage.entries[arm]
        if entry.rebuilds or self._stage.states.available(arm, len(self._stage.recorded(arm))):
            self._live.pop(arm, None)
        # else an object is pulled again as it is: it has no other state

    def release(self, arm: int) -> None:
        if self._stage.entries[arm].rebuilds:
            self._live.pop(arm, None)

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | Unsaved]:
        storage = self._stage.states.storage
        for arm, n in pulls.items():
            learner = self._live.get(arm)
            if learner is not None and (can_save(learner) or self._stage.pickles):
                done = save_learner(learner, storage, place_of(arm, n))
                yield Unsaved(arm, done) if isinstance(done, str) else saved_event(arm, n, done)

    def stop(self) -> None:
        for arm, learner in self._live.items():
            if not self._stage.entries[arm].rebuilds:
                note_pulls(bare(learner), len(self._stage.recorded(arm)))

    def learner(self, arm: int, pulls: int) -> Any:
        live = self._live.get(arm)
        return trained(self._restore(arm, pulls) if live is None else live)


class Bounded:
    """Makes calls in a thread and waits for each no longer than `timeout` seconds.

    Python cannot end a thread. A call that takes too long is abandoned: it runs on in the
    background until it returns, holding its memory, and what it returns is thrown away. Its thread
    does not keep the program from ending.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._jobs: SimpleQueue[Any] | None = None

    def __call__(self, pull: Callable[[], Any]) -> Any:
        if self._jobs is None:
            self._jobs = SimpleQueue()
            threading.Thread(target=_worker, args=(self._jobs,), daemon=True).start()
        answer: SimpleQueue[Any] = SimpleQueue()
        self._jobs.put((pull, answer))
        try:
            value, error = answer.get(timeout=min(self._timeout, threading.TIMEOUT_MAX))
        except Empty:
            self._jobs.put(None)  # the worker ends when the abandoned call does
            self._jobs = None
            raise TooLong(self._timeout) from None
        if error is not None:
            try:
                raise error
            finally:
                del error, pull  # a cycle that would keep the learner in memory
        return value


def _worker(jobs: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        pull, answer = job
        try:
            answer.put((pull(), None))
        except BaseException as error:  # handed to the caller
            answer.put((None, error))
        del job, pull, answer  # or the learner would stay in memory until the next one's pull
