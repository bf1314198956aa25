"""Pulls in a process of its own for each learner, on this machine, one after the other.

A learner that crashes in compiled code, calls `os._exit` or is killed takes only its own process
along: that is its failure, and the race goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread
from time import monotonic, perf_counter
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.saved_states import saved_event
from latebloomer.racing.checkpoints.storage import Stored
from latebloomer.racing.runners.contract import (
    Orders,
    PullFailure,
    Report,
    Runner,
    RunnerContext,
    RunningPull,
    TooLong,
    Unsaved,
)
from latebloomer.racing.runners.handover import BARE, hand_over
from latebloomer.racing.runners.packing import PackedLearners, pack, unpack
from latebloomer.racing.runners.training_actor import ActorSettings, Batch, TrainingActor
from latebloomer.session.events import Restored, Saved, ScoreReported, WarningNoted

FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # there, forked libraries crash
LOOK = 1.0  # seconds between two looks whether the race's own process is still there
GRACE = 2.0  # seconds beyond `timeout` that an answer may take


class Died(Exception):
    """A learner's process has ended; the text says how."""


class Process(NamedTuple):
    """A learner's process and the line to it."""

    process: Any
    line: Connection
    done: int  # pulls that it was brought to when it was made


class IsolatedRunner(Runner):
    """Trains each learner in a process of its own; see `race(..., isolate=True)`."""

    def with_resident(self, max_in_memory: int) -> Runner:
        from latebloomer.racing.runners.memory_limit import ResidentRunner

        return ResidentRunner(self, max_in_memory)

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[int, Process] = {}
        self._begun: RunningPull | None = None
        self._bare: set[int] = set()  # warned of once

    @property
    def under_way(self) -> RunningPull | None:
        return self._begun

    def start(self, stage: RunnerContext) -> None:
        self._stage = stage
        # A forked process has all learners by itself; a spawned one is sent them.
        self._packed = PackedLearners.unpacked(stage.entries) if FORKS else pack(stage.entries)

    def work(self, orders: Orders) -> Iterator[Report]:
        """One pull of the first arm that is ordered, saved after it where that is due."""
        arm = next(iter(orders))
        done, began = orders[arm].done, monotonic()
        try:
            if arm not in self._live:
                yield from self._build(arm, done)
            if arm not in self._live:
                return
            began = monotonic()
            self._begun = RunningPull(arm, done + 1, began)
            batch: Batch = self._call(arm, self._stage.timeout, "train", done, 1, False)
        except Died as error:
            self.discard(arm)
            yield PullFailure(arm, "died", str(error), seconds=monotonic() - began)
            return
        except TooLong as error:
            self.discard(arm)
            yield PullFailure(arm, "timeout", str(error), seconds=monotonic() - began)
            return
        finally:
            self._begun = None
        yield from (ScoreReported(arm, *pull) for pull in batch.pulls)
        if batch.bare and arm not in self._bare:
            self._bare.add(arm)
            yield WarningNoted(arm, BARE)
        if batch.end is not None:
            yield batch.end
        elif arm in self._live and self._stage.schedule.is_due(arm, done + 1):
            yield from self.save({arm: done + 1})

    def _build(self, arm: int, done: int) -> Iterator[Report]:
        """Start a process and let it bring the learner to where it was."""
        began, states = perf_counter(), self._stage.states
        context: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
        ours, theirs = context.Pipe()
        settings = ActorSettings(arm, states.storage, None, None, self._stage.pickles)
        process = context.Process(
            target=_serve, args=(theirs, settings, self._packed, os.getpid()), daemon=True
        )
        _start(process)
        theirs.close()
        self._live[arm] = Process(process, ours, done)
        saved = states.available(arm, done) if done else None
        recorded = self._stage.recorded(arm) if done else []
        answer = self._call(arm, None, "prepare", done, saved, recorded)
        seconds = perf_counter() - began
        if isinstance(answer, PullFailure):
            self.discard(arm)
            yield answer._replace(seconds=seconds)
            return
        yield from (WarningNoted(arm, text) for text in answer.notes)
        yield Restored(arm, done, seconds)

    def _call(self, arm: int, timeout: float | None, method: str, *args: Any) -> Any:
        """Let a learner's process do something; `Died` or `TooLong` where it does not answer."""
        process, line, _ = self._live[arm]
        try:
            line.send((method, args))
            if timeout is not None and not line.poll(min(timeout + GRACE, 1e9)):
                raise TooLong(timeout)
            answer = line.recv()
        except (EOFError, OSError):
            process.join()
            raise Died(f"its process {_ending(process.exitcode)}") from None
        if isinstance(answer, Batch) and timeout is not None:
            over = [seconds for _, seconds, _ in answer.pulls if seconds > timeout]
            if over:
                raise TooLong(timeout)
        return answer

    # --- what the driver asks for ---

    def discard(self, arm: int) -> None:
        process = self._live.pop(arm, None)
        if process is not None:
            process.line.close()
            process.process.kill()
            process.process.join()

    def release(self, arm: int) -> None:
        self.discard(arm)

    def save(self, pulls: Mapping[int, int]) -> Iterator[Saved | Unsaved]:
        for arm, n in pulls.items():
            stored = self._saved(arm)
            if isinstance(stored, Stored):
                yield saved_event(arm, n, stored)
            elif stored is not None:
                yield Unsaved(arm, stored)

    def _saved(self, arm: int) -> Stored | str | None:
        if arm not in self._live:
            return None
        try:
            stored: Stored | str | None = self._call(arm, None, "save")
        except Died as error:
            self.discard(arm)
            return str(error)
        return stored

    def learner(self, arm: int, pulls: int) -> Any:
        if arm not in self._live:
            for report in self._build(arm, pulls):
                if isinstance(report, PullFailure):
                    raise LearnerError(report.reason)
                if isinstance(report, WarningNoted):
                    self.pending.append(report)
        fetched = self._call(arm, None, "fetch")
        entry = unpack(self._packed)[arm]
        found = hand_over(self._stage, entry, (arm, pulls), fetched, lambda: self._saved(arm))
        self.pending += found.events
        return found.learner

    def stop(self) -> None:
        for arm in list(self._live):
            self.discard(arm)


def _start(process: Any) -> None:
    """Fork from a thread that has computed nothing yet.

    OpenMP keeps its pool of threads with the thread that used it. A copy of that one would wait
    for ever for threads that were not copied along (LightGBM, XGBoost, scikit-learn, PyTorch);
    a copy of a new one makes a pool of its own.
    """
    failures: list[Exception] = []

    def start() -> None:
        try:
            process.start()
        except Exception as error:  # such as no memory for another process
            failures.append(error)

    fresh = Thread(target=start)
    fresh.start()
    fresh.join()
    if failures:
        raise failures[0]


def _serve(line: Connection, settings: ActorSettings, packed: Any, parent: int) -> None:
    """In the learner's process: do what is asked until the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the race's to handle
    actor = TrainingActor(settings, packed)
    with suppress(EOFError, OSError):
        while True:
            while not line.poll(LOOK):
                if os.getppid() != parent:  # the race was killed
                    os._exit(1)
            method, args = line.recv()
            line.send(getattr(actor, method)(*args))


def _ending(code: int | None) -> str:
    """How a process has ended.

    >>> _ending(3), _ending(-11)
    ('exited with code 3', 'was ended by SIGSEGV')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"
