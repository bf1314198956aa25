"""Pulls in this process, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from latebloomer.race.errors import LearnerError
from latebloomer.race.field import Field
from latebloomer.race.learner import Learner, as_score, keeps, trained
from latebloomer.race.odometer import already_had, note_pulls
from latebloomer.race.runner import (
    Ended,
    Note,
    Pulled,
    Report,
    Runner,
    Stage,
    Trouble,
    trouble_of,
)


class LocalRunner(Runner):
    """Builds learners when they are first pulled, and pulls them in the order that is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[int, Learner] = {}
        self._call: Callable[[Callable[[], Any]], Any] = _directly

    def start(self, stage: Stage) -> None:
        self._stage = stage
        if stage.timeout is not None:
            self._call = Bounded(stage.timeout)

    def work(self, session: Field) -> Iterator[Report]:
        while not session.over:
            arm = session.ask()
            report = self._pull(arm, session.had(arm))
            while self.notes:
                yield self.notes.pop(0)
            yield report

    def _pull(self, arm: int, done: int) -> Report:
        learner = self._live.get(arm)
        if learner is None:
            try:
                learner = self._restore(arm, done)
            except Exception as error:
                return self._cannot_restore(arm, error)
        began = perf_counter()
        try:
            value = self._call(learner.pull)
        except StopIteration:
            return Ended(arm)
        except TooLong as error:
            return self._too_long(arm, error)
        except Exception as error:
            return trouble_of(arm, error)
        except BaseException:
            note_pulls(self._live.pop(arm), None)  # stopped in the middle of a pull
            raise
        seconds = perf_counter() - began
        try:
            return Pulled(arm, as_score(value), seconds)
        except LearnerError as error:
            return Trouble(arm, "score", str(error))

    def _too_long(self, arm: int, error: TooLong) -> Trouble:
        entry = self._stage.entries[arm]
        if entry.rebuilds:
            return Trouble(arm, "timeout", str(error))
        return Trouble(
            arm, "timeout",
            f"{error}, and it cannot be tried again: the abandoned pull still holds the object; "
            "give a function that builds the learner",
            hopeless=True,
        )  # fmt: skip

    # --- from a checkpoint, or from nothing ---

    def _restore(self, arm: int, done: int) -> Learner:
        """A learner that has had `done` pulls: the newest checkpoint, then what is missing."""
        entry = self._stage.entries[arm]
        learner = entry.build()
        newest = self._stage.checkpoints.newest(arm, done) if done and keeps(learner) else None
        if newest is not None:
            start, folder = newest
            learner.load(folder)  # type: ignore[attr-defined]
        else:
            start = 0 if entry.rebuilds or done == 0 else already_had(learner, done)
        if start < done:
            self._repeat(arm, learner, start, done)
        self._live[arm] = learner
        return learner

    def _repeat(self, arm: int, learner: Learner, start: int, done: int) -> None:
        recorded = self._stage.recorded(arm)
        for n in range(start, done):
            try:
                score = as_score(self._call(learner.pull))
            except StopIteration:
                raise LearnerError(
                    f"it ended after {n} pulls when it was trained again; it had {done} before"
                ) from None
            if score != recorded[n]:
                self._tell_difference(arm, n + 1, score, recorded[n])

    def _tell_difference(self, arm: int, n: int, score: float, recorded: float) -> None:
        if not any(note.arm == arm for note in self.notes):
            text = (
                f"trained again, pull {n} scored {score:.6g}, but {recorded:.6g} is recorded: the "
                "learner is not deterministic; the recorded scores count"
            )
            self.notes.append(Note(arm, text))

    def _cannot_restore(self, arm: int, error: Exception) -> Trouble:
        self._live.pop(arm, None)
        if isinstance(error, TooLong):
            return self._too_long(arm, error)._replace(kind="restore")
        return trouble_of(arm, error, "restore")

    # --- what the driver asks for ---

    def again(self, arm: int) -> None:
        entry = self._stage.entries[arm]
        if entry.rebuilds:
            self._live.pop(arm, None)
            return
        newest = self._stage.checkpoints.newest(arm, len(self._stage.recorded(arm)))
        if newest is not None:  # else an object is pulled again as it is: it has no other state
            self._live.pop(arm, None)

    def save(self, arm: int, folder: Path) -> None:
        self._live[arm].save(folder)  # type: ignore[attr-defined]

    def saves(self, arm: int) -> bool:
        return arm in self._live and keeps(self._live[arm])

    def stop(self) -> None:
        for arm, learner in self._live.items():
            if not self._stage.entries[arm].rebuilds:
                note_pulls(learner, len(self._stage.recorded(arm)))

    def learner(self, arm: int, pulls: int) -> Any:
        live = self._live.get(arm)
        return trained(self._restore(arm, pulls) if live is None else live)


class TooLong(Exception):
    """A pull took longer than `timeout`."""


def _directly(pull: Callable[[], Any]) -> Any:
    return pull()


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
            value, error = answer.get(timeout=self._timeout)
        except Empty:
            self._jobs.put(None)  # the worker ends when the abandoned call does
            self._jobs = None
            raise TooLong(f"a pull took longer than timeout={self._timeout:g} s") from None
        if error is not None:
            raise error
        return value


def _worker(jobs: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        pull, answer = job
        try:
            answer.put((pull(), None))
        except BaseException as error:  # handed to the caller
            answer.put((None, error))
