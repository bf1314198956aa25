"""One learner where it is trained: in this process, in a child process or in a Ray actor.

A host answers calls with plain values and never decides anything. An exception of the learner is
an answer too. Only the loss of a process, and a call that takes too long, are seen from outside:
`LimitedHost`, in a second thread or in a process of this machine, makes answers of these. A
learner that crashes in compiled code, calls `os._exit` or is killed ends only its own process.

To other processes go the functions that build learners, pickled, with the folders of their
modules. Back comes the trained winner: pickled, or by its save and load. Pickles go from the
driver to its own processes and back, never to or from anyone else.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import inf
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from time import perf_counter, sleep
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from latebloomer._util.text import printable, reason_of, shortened
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints import saved_states
from latebloomer.racing.checkpoints.saved_states import Restorable, SavedStates
from latebloomer.racing.checkpoints.storage import Storage, place_of
from latebloomer.racing.learner import Entry, already_had, as_score, can_save, steps_of, trained
from latebloomer.racing.runners.contract import HandedOver, Report, Runner, RunnerContext
from latebloomer.session import events
from latebloomer.session.events import PullFailed, Saved, SaveFailed, ScoreReported

LONGEST = 12_000  # characters of a traceback that are kept
SLICE = 0.25  # seconds of pulls in one call of `train`: some 200 times what a call costs on Ray
BARE = (
    "it yields only scores and trains in another process, so nothing of it can be returned if it "
    "wins. Let it yield (score, model)"
)
Saving: TypeAlias = Callable[[], Saved | SaveFailed | None]
PullReport: TypeAlias = ScoreReported | events.LearnerLeft | PullFailed


class Ready(NamedTuple):
    """The learner is restored; the verdict should mention the notes."""

    notes: list[str]
    repeated: int  # pulls that were trained again


class Batch(NamedTuple):
    """Pulls that were made in one call."""

    reports: list[PullReport]  # scores, and why there are no more
    only_scores: bool  # whether the learner is a generator without a model


class LearnerHost:
    """Builds a learner, trains it and saves it; packed learners, in its own process."""

    def __init__(
        self, arm: int, given: Entry | PackedLearners, states: OwnStates | None = None
    ) -> None:
        self.arm, self._given = arm, given
        self.apart = isinstance(given, PackedLearners)  # Ctrl-C does not arrive here
        self._states = OwnStates() if states is None else states
        self.learner: Any = None
        self.seed = 0
        self.done = 0  # pulls that it has had
        self.lost = False  # whether it cannot be used any more

    def hello(self) -> None:
        """Answer that the process is running."""

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build the learner and bring it to its pulls."""
        try:
            if isinstance(self._given, PackedLearners):
                self._given = unpack(self._given)[self.arm]  # the others are not needed here
            self.seed, self.done = self._given.seed, at.saved.n if at.saved else 0
            self._states.enter(self)
            self.learner, notes, repeated = saved_states.restore(self._given, at, self._pull_of)
        except BaseException as error:  # in the learner's code or its modules
            return self._failure(at.done + 1, error, "restore")
        self.done = at.done
        return Ready(notes, repeated)

    def _pull_of(self, learner: Any) -> Any:
        self._states.enter(self)
        return learner.pull()

    def pull(self) -> PullReport:
        """Make one pull."""
        self._states.enter(self)
        began = perf_counter()
        try:
            value = self.learner.pull()
        except StopIteration:
            return self._finished()
        except BaseException as error:
            seconds = perf_counter() - began
            return replace(self._failure(self.done + 1, error, "exception"), seconds=seconds)
        seconds = perf_counter() - began
        try:
            score = as_score(value)
        except LearnerError as error:
            return PullFailed(self.arm, self.done + 1, "score", str(error), seconds=seconds)
        self.done += 1
        return ScoreReported(self.arm, score, seconds, steps_of(self.learner))

    def train(self, start: int, count: int) -> Batch:
        """Make up to `count` pulls within about `SLICE` seconds, after `start` earlier ones."""
        if self.done != start:
            text = f"it has had {self.done} pulls and should have had {start}"
            return Batch([PullFailed(self.arm, start + 1, "lost", text)], False)
        until = perf_counter() + SLICE
        reports = [self.pull()]
        while (
            len(reports) < count and type(reports[-1]) is ScoreReported and perf_counter() < until
        ):
            reports.append(self.pull())
        return Batch(reports, self.yields_only_scores())

    def _finished(self) -> events.LearnerLeft | PullFailed:
        n = self.done
        if n == 0:
            text = "it ended before its first score"
            return PullFailed(self.arm, 1, "score", text, final=True)
        why = f"finished after {n} pull{'s' * (n != 1)}"
        return events.LearnerLeft(self.arm, events.FINISHED, why)

    def _failure(self, n: int, error: BaseException, kind: str) -> PullFailed:
        """Return the failure that an exception in the learner's code is; Ctrl-C is none."""
        if isinstance(error, KeyboardInterrupt) and not self.apart:
            raise error
        details = shortened("".join(traceback.format_exception(error)), LONGEST)
        return PullFailed(self.arm, n, kind, reason_of(error), printable(details))

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        """Save the state; None if there is no save and load, and it is not to be pickled."""
        learner, place = self.learner, place_of(self.arm, self.done)
        if not (pickled or can_save(learner)):
            return None
        self._states.enter(self)
        own = learner.save if can_save(learner) else partial(saved_states.pickle_learner, learner)
        try:
            stored = storage.keep(place, own)
        except BaseException as error:  # of the learner's own code, or of the disk
            reason = self._failure(self.done + 1, error, "save").reason
            return SaveFailed(self.arm, self.done, reason)
        return Saved(self.arm, self.done, place, *stored)

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why it cannot be pickled."""
        try:
            return dumps(trained(self.learner))
        except BaseException as error:  # of the learner's own pickling
            return reason_of(error)

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return saved_states.is_bare(trained(self.learner))

    def close(self) -> None:
        """Free the learner. A generator ends the modes that it is in, so they are put in force."""
        self._states.enter(self)
        self.learner = None


# --- to other processes ---


class PackedLearners(NamedTuple):
    """The learners of a race, to be built in other processes."""

    entries: bytes | Sequence[Entry]  # one pickle: data that learners share travels once
    path: tuple[str, ...]  # where the driver looks for modules


def pack(entries: Sequence[Entry], copied: bool = False) -> PackedLearners:
    """Return the learners for other processes; raise an error that names one that cannot be sent.

    For processes that are a copy of this one they are not pickled.
    """
    for entry in entries:
        if not entry.rebuilds:
            already_had(entry.given, 0)  # one that was trained here does not begin there
    if copied:
        return PackedLearners(entries, ())
    try:
        return PackedLearners(dumps(list(entries)), tuple(sys.path))
    except Exception:  # whatever pickling a user's object raises
        for entry in entries:
            try:
                dumps(entry)
            except Exception as error:
                raise LearnerError(
                    f"learner {entry.name!r} cannot be sent to another process "
                    f"({type(error).__name__}: {error}): give a function that makes what it needs "
                    "(files, locks, connections, models on a GPU) when it is called"
                ) from error
        raise


def dumps(value: object) -> bytes:
    """Return a pickle; by cloudpickle if it is installed, which takes interactive functions."""
    for module in ("cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):
            return bytes(import_module(module).dumps(value))
    return pickle.dumps(value)


def unpack(packed: PackedLearners) -> Sequence[Entry]:
    """Return the learners in the process that builds them; search the driver's folders too."""
    if not isinstance(packed.entries, bytes):
        return packed.entries
    sys.path += [folder for folder in packed.path if folder not in sys.path]
    return pickle.loads(packed.entries)


# --- and back ---


def hand_over(
    states: SavedStates, entry: Entry, arm: int, pulls: int, fetched: bytes | str, save: Saving,
    reports: list[Report],
) -> HandedOver:  # fmt: skip
    """Return the learner from what its process answered: its pickle, or why there is none.

    `save` lets its process save it now; `reports` are recorded too.
    """
    why = fetched
    if isinstance(fetched, bytes):
        try:
            return HandedOver(pickle.loads(fetched), reports)  # written by our own process
        except Exception as error:  # of a GPU or a module that is not here
            why = reason_of(error)
    try:
        at = states.restorable(arm, pulls, seen=False)
        if at.saved is None or at.saved.n != pulls:
            saved = save()
            if not isinstance(saved, Saved):
                raise LearnerError("it cannot be saved")
            reports.append(saved)
            at = at._replace(saved=saved, storage=states.storage)
        learner, _, _ = saved_states.restore(entry, at)
        return HandedOver(trained(learner), reports)
    except Exception:  # the learner's own: what it needs is not on this machine
        text = (
            f"it was trained in another process and cannot be returned ({why!s}). Give it "
            "save(folder) and load(folder), or let a generator yield (score, model)"
        )
        return HandedOver(None, [*reports, events.WarningNoted(arm, text)])


DOES = {"prepare": "building it", "pull": "a pull", "save": "saving it"}
OUT_OF_TIME = "it was still running when the race's time and its grace period were over"
FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # there, forked libraries crash
CHECK = 1.0  # seconds between two checks whether the race's own process is still there
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


class NoAnswer(Exception):
    """A call has no answer: the kind of failure, and why."""


def took_longer(method: str, timeout: float | None) -> tuple[str, str]:
    """Return the kind of failure that a call is that takes longer than `timeout`, and why."""
    return events.TIMEOUT, f"{DOES[method]} took longer than timeout={timeout:g} s"


class LimitedHost(ABC):
    """A host whose calls end: with an answer, or with a failure when their time is over."""

    def __init__(self, arm: int, timeout: float | None) -> None:
        self.arm, self.lost, self.done = arm, False, 0
        self._timeout = timeout

    @abstractmethod
    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        """Return the host's answer; raise `NoAnswer` if there is none."""

    @abstractmethod
    def close(self) -> None:
        """Free the learner."""

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        began = perf_counter()
        try:
            return self._answer(limit, method, *args)
        except NoAnswer as error:
            (kind, why), took, self.lost = error.args, perf_counter() - began, True
            return PullFailed(self.arm, self.done + 1, kind, why, seconds=took)

    def prepare(self, at: Restorable) -> Ready | PullFailed:
        """Build the learner and bring it to its pulls; each repeated pull has its own time."""
        self.done = at.done
        again = at.done - (at.saved.n if at.saved else 0)
        limit = None if self._timeout is None else self._timeout * (1 + again)
        return self._call(limit, "prepare", at)

    def pull(self) -> PullReport:
        """Make one pull."""
        answer: PullReport = self._call(self._timeout, "pull")
        if type(answer) is ScoreReported:
            self.done += 1
        return answer

    def save(self, storage: Storage, pickled: bool) -> Saved | SaveFailed | None:
        """Save the state; None if there is no save and load, and it is not to be pickled."""
        answer: Any = self._call(self._timeout, "save", storage, pickled)
        failed = isinstance(answer, PullFailed)
        return SaveFailed(self.arm, self.done, answer.reason) if failed else answer

    def fetch(self) -> bytes | str:
        """Return the trained learner, pickled; or why that is not available."""
        answer: Any = self._call(None, "fetch")
        return answer.reason if isinstance(answer, PullFailed) else answer

    def yields_only_scores(self) -> bool:
        """Return whether the learner is a generator without a model, which cannot be kept."""
        return self._call(None, "yields_only_scores") is True


# --- in this process ---


class ThreadHost(LimitedHost):
    """A host in this process. A call that takes too long is abandoned with its learner."""

    def __init__(
        self, host: LearnerHost, timeout: float, thread: CallThread, rebuilds: bool
    ) -> None:
        super().__init__(host.arm, timeout)
        self._host, self._thread, self._rebuilds = host, thread, rebuilds
        host.apart = True  # Ctrl-C does not arrive in the thread, and no call may raise there

    @property
    def learner(self) -> Any:
        """The learner itself."""
        return self._host.learner

    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = getattr(self._host, method)
        if limit is None:
            return answer(*args)
        try:
            return self._thread.within(limit, lambda: answer(*args))
        except Empty:
            raise NoAnswer(*took_longer(method, self._timeout)) from None

    def _call(self, limit: float | None, method: str, *args: Any) -> Any:
        answer = super()._call(limit, method, *args)
        if self.lost and not self._rebuilds:
            text = f"{answer.reason}, and it cannot be tried again: the abandoned call still "
            text += "holds the object. Pass a function that builds the learner"
            return replace(answer, reason=text, final=True)
        return answer

    def close(self) -> None:
        """Free the learner; an abandoned call keeps it until it returns."""
        if not self.lost:
            self._thread.within(inf, self._host.close)


class CallThread:
    """Makes calls in a second thread and waits for each only so long.

    Python cannot end a thread. A call that takes too long is abandoned: it runs in the background
    until it returns, holding its memory, and its result is discarded. Its thread does not keep the
    program from ending.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def within(self, seconds: float, call: Callable[[], Any]) -> Any:
        """Return what a call returns; raise `Empty` if that takes more than `seconds`."""
        if self._thread is None:
            self._jobs = SimpleQueue()
            self._thread = threading.Thread(target=_make_calls, args=(self._jobs,), daemon=True)
            self._thread.start()
        answer: SimpleQueue[Any] = SimpleQueue()
        self._jobs.put((call, answer))
        try:
            return answer.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        except Empty:
            self._jobs.put(None)  # the thread ends when the abandoned call does
            self._thread = None
            raise

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _make_calls(jobs: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        call, answer = job
        answer.put(call())
        del job, call, answer  # else the learner stays in memory until the next call


# --- in its own process ---


class ChildProcess(LimitedHost):
    """A host in its own process, which ends with the race's process."""

    def __init__(
        self, arm: int, packed: PackedLearners, runner: Runner, race: RunnerContext, forker: Forker
    ) -> None:
        super().__init__(arm, runner.timeout)
        self._race = race
        processes: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
        self._line, theirs = processes.Pipe()
        self._process = processes.Process(
            target=_serve, args=(theirs, arm, packed, os.getpid()), daemon=True
        )
        forker.submit(self._process.start).result()
        theirs.close()

    def _answer(self, limit: float | None, method: str, *args: Any) -> Any:
        left = max(self._race.seconds_left(), self._race.grace)
        may_take = min(left, inf if limit is None else limit)
        try:
            self._line.send((method, args))
            if may_take < inf and not self._line.poll(min(may_take, 1e9)):
                if left == may_take:
                    raise NoAnswer(events.INTERRUPTED, OUT_OF_TIME)
                raise NoAnswer(*took_longer(method, self._timeout))
            return self._line.recv()
        except (EOFError, OSError):
            self._process.join()
            raise NoAnswer("died", f"its process {_ending(self._process.exitcode)}") from None

    def close(self) -> None:
        """End the process."""
        self._line.close()
        self._process.kill()
        self._process.join()
        self._process.close()


class Forker(ThreadPoolExecutor):
    """The thread that child processes are forked from; it must live as long as they do.

    OpenMP keeps its pool of threads with the thread that used it. A copy of that thread would wait
    for ever for threads that were not copied (LightGBM, XGBoost, scikit-learn, PyTorch); a copy of
    a thread that has computed nothing makes its own pool. And Linux ends the children together
    with the thread that has forked them (`PR_SET_PDEATHSIG`).
    """

    def __init__(self) -> None:
        super().__init__(1, "latebloomer-forker")


def _serve(line: Connection, arm: int, packed: PackedLearners, parent: int) -> None:
    """Answer calls in the learner's process until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the race to handle
    _end_with(parent)
    host = LearnerHost(arm, packed)
    with suppress(EOFError, OSError):
        while True:
            method, args = line.recv()
            line.send(getattr(host, method)(*args))


def _end_with(parent: int) -> None:
    """End this process when the race's process ends, also in the middle of a pull."""
    if sys.platform == "linux":
        with suppress(Exception):  # a C library without prctl: as elsewhere
            if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0:
                if os.getppid() != parent:  # it ended before the call
                    os._exit(1)
                return
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        sleep(CHECK)
    os._exit(1)


def _ending(code: int | None) -> str:
    """Return how a process has ended.

    >>> _ending(3), _ending(-11)
    ('exited with code 3', 'was ended by SIGSEGV')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"


numpy_random: Any = np.random  # its types lack the two functions that are used here
Modes: TypeAlias = list[tuple[Callable[[], Any], Callable[[Any], Any]]]


_entered: list[Any] = []  # modes of the program: PyTorch leaves one when its object is freed


class OwnStates:
    """Swaps the global state of this process when another learner is called.

    Learners in one process share `random`, `np.random`, PyTorch's random numbers and its modes. A
    learner that seeds them, or a generator that yields inside `with torch.no_grad():`, would
    change what the others do. So each learner has its own set, as if it ran in its own process:
    curves depend neither on the order of the learners nor on the runner. `random` and `np.random`
    start from the learner's seed, PyTorch as it does in a new process.
    """

    def __init__(self) -> None:
        self._owner: LearnerHost | None = None  # whose state is in force; None: the program's
        self._kept: dict[tuple[int, int] | None, Any] = {}  # by arm and its pulls
        self._inference: Any = None  # a mode without a setter, entered for the owner

    def enter(self, owner: LearnerHost) -> None:
        """Put a learner's state in force; a new one unless it was kept after the same pulls.

        NumPy drops the second of two Gaussian numbers that it draws together when its generator is
        set. That is done for every call, so that a pull does not depend on what came before it.
        """
        if owner is not self._owner:
            self._switch(owner)
        numpy_random.set_bit_generator(numpy_random.get_bit_generator())

    def leave(self) -> None:
        """Put the program's own state in force again."""
        if self._owner is not None:
            self._switch(None)
        self._kept.clear()
        _entered.extend(filter(None, [self._inference]))

    def _switch(self, owner: LearnerHost | None) -> None:
        torch: Any = sys.modules.get("torch")
        modes = [] if torch is None else self._modes(torch)
        self._kept[_key(self._owner)] = (
            random.getstate(), numpy_random.get_bit_generator(), [get() for get, _ in modes]
        )  # fmt: skip
        self._owner = owner
        numbers, bits, values = self._kept.pop(_key(owner), None) or _new_state(owner)
        random.setstate(numbers)
        numpy_random.set_bit_generator(bits)
        if len(values) < len(modes):  # PyTorch, or its GPUs, were not in use then
            values = [*values, *_new_modes(torch)[len(values) :]]
        for (_, put), value in zip(modes, values, strict=False):
            put(value)

    def _modes(self, torch: Any) -> Modes:
        """Return how each of PyTorch's modes and random numbers is read and set."""
        found: Modes = [
            (torch.is_inference_mode_enabled, partial(self._set_inference, torch)),
            (torch.is_grad_enabled, torch.set_grad_enabled),
            (torch.get_default_dtype, torch.set_default_dtype),
        ]
        for get, put in (
            (torch.is_autocast_enabled, torch.set_autocast_enabled),
            (torch.get_autocast_dtype, torch.set_autocast_dtype),
        ):
            found += [(partial(get, device), partial(put, device)) for device in ("cpu", "cuda")]
        found.append((partial(_nesting, torch), partial(_set_nesting, torch)))
        found.append((torch.get_rng_state, torch.set_rng_state))
        if torch.cuda.is_initialized():
            found.append((torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
        return found

    def _set_inference(self, torch: Any, on: bool) -> None:
        if self._inference is not None:
            self._inference.__exit__(None, None, None)
            self._inference = None
        if on != torch.is_inference_mode_enabled():
            self._inference = torch.inference_mode(on)
            self._inference.__enter__()


def _nesting(torch: Any) -> int:
    """Return how many `torch.autocast` are in force; within them copies of weights are kept."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _set_nesting(torch: Any, depth: int) -> None:
    torch.clear_autocast_cache()  # copies of another learner's weights
    for _ in range(now := _nesting(torch), depth):
        torch.autocast_increment_nesting()
    for _ in range(depth, now):
        torch.autocast_decrement_nesting()


def _key(owner: LearnerHost | None) -> tuple[int, int] | None:
    return None if owner is None else (owner.arm, owner.done)


def _new_state(owner: LearnerHost | None) -> tuple[Any, Any, list[Any]]:
    seed = None if owner is None else owner.seed + owner.done
    return random.Random(seed).getstate(), np.random.MT19937(seed), []


def _new_modes(torch: Any) -> list[Any]:
    """Return what PyTorch has in a new process, in the order of `_modes`."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    numbers = [torch.Generator(f"cuda:{k}").get_state() for k in gpus]
    types = torch.bfloat16, torch.float16
    return [
        False, True, torch.float32, False, False, *types, 0, torch.Generator().get_state(), numbers
    ]  # fmt: skip
