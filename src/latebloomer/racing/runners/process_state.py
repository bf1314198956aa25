"""Separate random numbers, modes and streams for each learner of a shared process."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from latebloomer._util.own_process import in_own_process
from latebloomer.racing.runners.turns import TURNS

NUMBERS = "latebloomer-random.json"  # file of a checkpoint with the random numbers of the learner

# The original modules, because a learner may replace attributes of `random` and `np.random`.
numpy_random: Any = np.random  # NumPy's type stubs lack the two functions that are used here
get_bits, set_bits = numpy_random.get_bit_generator, numpy_random.set_bit_generator
get_numbers, set_numbers = random.getstate, random.setstate

# Functions that read and set each part of a state. Parts of libraries come after those of Python.
Parts: TypeAlias = list[tuple[Callable[[], Any], Callable[[Any], Any]]]
Streams: TypeAlias = tuple[Any, Any]


class Owner(Protocol):
    """The learner to which a state belongs, with its seed and its number of pulls."""

    arm: int
    done: int
    seed: int


class CalledLearner(NamedTuple):
    """The learner of a race whose code runs now."""

    race: object  # the same one for all learners of a race in this process
    arm: int


def called_learner() -> CalledLearner | None:
    """Return the learner whose code runs now; None if this code is not called by a race."""
    states = TURNS.calls[-1] if TURNS.calls else None
    return states.called_learner() if isinstance(states, OwnStates) else None


class OwnStates:
    """Give each learner of a race its own copy of the global state of this process.

    Learners in one process share `random`, `np.random`, PyTorch's random numbers and its modes,
    settings of Keras and accelerate, `sys.stdout` and `sys.stderr`. A learner that seeds them, or
    a generator that yields inside `with torch.no_grad():`, would affect the other learners. So
    each learner has its own state, as if it ran in its own process: its curve does not depend on
    the order of learners, the runner, callbacks or races in other threads. `random` and
    `np.random` start from the learner's seed, and PyTorch starts as in a new process.

    After a call, the state of the learner stays in force until another learner or the program
    needs its own state, because each switch takes about 20 µs.
    """

    def __init__(self) -> None:
        self._numbers = _Swapped(_number_parts, _new_numbers)
        self._modes = _Swapped(_mode_parts, _new_modes)
        self._libraries = _Swapped(_library_parts, self._programs_libraries)
        self._modes_thread = 0  # thread of PyTorch's modes, which belong to a thread
        self._streams: MutableMapping[Owner, Streams] = WeakKeyDictionary()
        self._around: OwnStates | None = None  # states of the race inside of which this race runs
        self._race = object()  # another one for the next race of the same runner

    def called_learner(self) -> CalledLearner | None:
        """Return the learner that is called now; None in a callback."""
        owner = self._numbers.owner
        return None if owner is None else CalledLearner(self._race, owner.arm)

    @contextmanager
    def calling(self, owner: Owner) -> Iterator[None]:
        """Return a context to call code of a learner, with the learner's own state in force.

        NumPy draws two Gaussian numbers together; setting its generator drops the second one. The
        generator is set before every call, so that a pull does not depend on earlier calls.
        """
        taken = self._take_turn()
        program = sys.stdout, sys.stderr
        try:
            TURNS.calls.append(self)
            self._numbers.switch(owner)
            self._libraries.switch(owner)
            self._switch_modes(owner)
            set_bits(get_bits())
            sys.stdout, sys.stderr = self._streams.pop(owner, program)
            with in_own_process():
                yield
        finally:
            if (sys.stdout, sys.stderr) != program:
                self._streams[owner] = sys.stdout, sys.stderr
                sys.stdout, sys.stderr = program
            TURNS.end_call(taken)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Return a context with the program's own state in force, for its callbacks."""
        taken = self._take_turn()
        try:
            TURNS.calls.append(self)
            self._put_aside()
            yield
        finally:
            TURNS.end_call(taken)

    def leave(self) -> None:
        """Restore the program's own state permanently."""
        global _latest
        taken = self._take_turn()
        try:
            self._put_aside()
            for states in (self._numbers, self._modes, self._libraries):
                states.forget()
            _latest, self._race = self._around, object()
        finally:
            # A second Ctrl-C may have interrupted this between taking the turn and the call.
            if taken or not (self._around or TURNS.lent):
                TURNS.give()

    def _take_turn(self) -> bool:
        """Wait for the turn; restore the program's state if another race has left its own."""
        global _latest
        taken = TURNS.take()
        if _latest is not self:
            if TURNS.calls:
                # This race runs inside a learner or a callback of that race.
                self._around = _latest
            elif _latest is not None:
                _latest._numbers.switch(None)
                _latest._libraries.switch(None)
            _latest = self
        return taken

    def _programs_libraries(self, owner: Owner | None, count: int) -> list[Any]:
        """Return the program's settings of libraries, with which learners begin."""
        own = self._libraries.kept(None)
        return [*own, *_new_libraries()[len(own) :]]

    def _put_aside(self) -> None:
        self._numbers.switch(None)
        self._libraries.switch(None)
        if self._modes_thread == threading.get_ident():
            self._modes.switch(None)

    def _switch_modes(self, owner: Owner) -> None:
        me = threading.get_ident()
        if self._modes_thread != me:  # the earlier thread was abandoned during a call
            self._modes_thread, self._modes.owner = me, None
        self._modes.switch(owner)


_latest: OwnStates | None = None  # the race whose state may be in force


class _Swapped:
    """Values of a process or thread, stored separately for each learner and the program."""

    def __init__(
        self, parts: Callable[[], Parts], new: Callable[[Owner | None, int], list[Any]]
    ) -> None:
        self.owner: Owner | None = None  # owner of the values in force; None: the program
        self._parts, self._new = parts, new
        # Values not in force, by (arm, pulls).
        self._kept: dict[tuple[int, int] | None, list[Any]] = {}

    def switch(self, owner: Owner | None) -> None:
        """Put an owner's values in force: those stored after the same pulls, or new ones."""
        if owner is self.owner:
            return
        parts = self._parts()
        self._kept[_key(self.owner)] = [get() for get, _ in parts]
        self.owner = owner
        values = self._kept.pop(_key(owner), [])
        if len(values) < len(parts):  # a library or its GPUs were not in use when they were stored
            values += self._new(owner, len(parts))[len(values) :]
        for (_, put), value in zip(parts, values, strict=False):
            put(value)

    def kept(self, owner: Owner | None) -> list[Any]:
        """Return the stored values of an owner that is not in force; empty if it has none."""
        return self._kept.get(_key(owner), [])

    def forget(self) -> None:
        """Forget the values of all learners."""
        self._kept.clear()


def _key(owner: Owner | None) -> tuple[int, int] | None:
    return None if owner is None else (owner.arm, owner.done)


def _torch() -> Any:
    return sys.modules.get("torch")


# --- random numbers of the process ---


def _number_parts() -> Parts:
    parts: Parts = [(get_numbers, set_numbers), (get_bits, set_bits)]
    if torch := _torch():
        parts.append((torch.get_default_dtype, torch.set_default_dtype))
        parts.append((torch.get_rng_state, torch.set_rng_state))
        if torch.cuda.is_initialized():
            parts.append((torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
    return parts


def _new_numbers(owner: Owner | None, count: int) -> list[Any]:
    """Return the values of a new process, with the owner's seed; see `_number_parts`."""
    seed = None if owner is None else owner.seed + owner.done
    new = [random.Random(seed).getstate(), np.random.MT19937(seed)]
    if count == len(new):
        return new
    torch = _torch()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    numbers = [torch.Generator(f"cuda:{k}").get_state() for k in gpus]
    return [*new, torch.float32, torch.Generator().get_state(), numbers]


# --- random numbers in a checkpoint ---


@contextmanager
def _numbers_unchanged() -> Iterator[None]:
    """Return a context that restores the random numbers in force at its end."""
    parts = [part for part in _number_parts() if part[0] is not get_bits]
    before, bits = [get() for get, _ in parts], get_bits()
    state = bits.state
    try:
        yield
    finally:
        for (_, put), value in zip(parts, before, strict=True):
            put(value)
        bits.state = state
        set_bits(bits)


@contextmanager
def program_numbers_kept() -> Iterator[None]:
    """Return a context to build or load a learner once, outside of its race.

    Whatever this draws or seeds, the program's random numbers are restored afterwards.
    """
    states = OwnStates()
    try:
        with states.aside(), _numbers_unchanged():
            yield
    finally:
        states.leave()


def _plain_numbers() -> dict[str, Any]:
    numbers: dict[str, Any] = {"random": get_numbers(), "numpy": _as_lists(get_bits().state)}
    if torch := _torch():
        numbers["torch"] = torch.get_rng_state().tolist()
        if torch.cuda.is_initialized():
            numbers["cuda"] = [state.tolist() for state in torch.cuda.get_rng_state_all()]
    return numbers


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def save_with_numbers(save: Callable[[Path], object], folder: Path) -> None:
    """Save a learner in a folder with the random numbers in force, which are not changed."""
    numbers = _plain_numbers()
    with _numbers_unchanged(), in_own_process():
        save(folder)
    (folder / NUMBERS).write_text(json.dumps(numbers))


def read_numbers(folder: Path) -> None:
    """Set the random numbers to those of a checkpoint."""
    if not (folder / NUMBERS).is_file():  # the learner's save() has replaced the folder
        return
    numbers = json.loads((folder / NUMBERS).read_text())
    version, words, gauss = numbers["random"]
    set_numbers((version, tuple(words), gauss))
    kind = getattr(np.random, numbers["numpy"]["bit_generator"], None)
    if kind is not None:  # a generator of another library must be saved by the learner itself
        bits = kind()
        bits.state = numbers["numpy"]
        set_bits(bits)
    if "torch" in numbers:
        with suppress(ImportError):  # the library is not used here
            torch: Any = import_module("torch")
            torch.set_rng_state(torch.tensor(numbers["torch"], dtype=torch.uint8))
            states = [torch.tensor(state, dtype=torch.uint8) for state in numbers.get("cuda", ())]
            if len(states) == torch.cuda.device_count() > 0:
                torch.cuda.set_rng_state_all(states)


# --- PyTorch's modes of the thread ---


def _mode_parts() -> Parts:
    """Return the functions that read and set each of PyTorch's modes."""
    torch = _torch()
    if torch is None:
        return []
    parts: Parts = [
        (torch.is_inference_mode_enabled, partial(_set_inference, torch)),
        (torch.is_grad_enabled, torch.set_grad_enabled),
    ]
    for get, put in (
        (torch.is_autocast_enabled, torch.set_autocast_enabled),
        (torch.get_autocast_dtype, torch.set_autocast_dtype),
    ):
        parts += [(partial(get, device), partial(put, device)) for device in ("cpu", "cuda")]
    return [*parts, (partial(_nesting, torch), partial(_set_nesting, torch))]


def _new_modes(owner: Owner | None, count: int) -> list[Any]:
    """Return PyTorch's modes in a new process, in the order of `_mode_parts`."""
    torch = _torch()
    return [False, True, False, False, torch.bfloat16, torch.float16, 0]


# Keeps the object that entered the mode: PyTorch leaves it when that object is freed.
_entered = threading.local()


def _set_inference(torch: Any, on: bool) -> None:
    """Set the inference mode, which has no setter but can be entered and left."""
    mode = getattr(_entered, "mode", None)
    if mode is not None:
        mode.__exit__(None, None, None)
        _entered.mode = None
    if on != torch.is_inference_mode_enabled():
        _entered.mode = torch.inference_mode(on)
        _entered.mode.__enter__()


def _nesting(torch: Any) -> int:
    """Return how many `torch.autocast` are in force; inside them, copies of weights are cached."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _set_nesting(torch: Any, depth: int) -> None:
    torch.clear_autocast_cache()  # it has copies of another learner's weights
    for _ in range(now := _nesting(torch), depth):
        torch.autocast_increment_nesting()
    for _ in range(depth, now):
        torch.autocast_decrement_nesting()


# --- settings of other libraries of the process ---


def _library_parts() -> Parts:
    """Return functions that read and set settings of Keras and accelerate, if imported."""
    keras, accelerate = sys.modules.get("keras"), sys.modules.get("accelerate.state")
    has_keras = hasattr(keras, "config")  # its import is complete
    nothing: tuple[Callable[[], Any], Callable[[Any], Any]] = (lambda: None, lambda _: None)
    parts: Parts = [nothing] * 4
    if has_keras:
        config: Any = keras.config  # type: ignore[union-attr]
        names = "floatx", "epsilon", "image_data_format", "dtype_policy"
        parts = [
            (getattr(config, name), partial(_set_if_known, getattr(config, f"set_{name}")))
            for name in names
        ]
    if not has_keras and not hasattr(accelerate, "GradientState"):
        return []
    return [*parts, (partial(_gradients, accelerate), partial(_set_gradients, accelerate))]


def _new_libraries() -> list[Any]:
    """Return these settings in a new process, in the order of `_library_parts`."""
    return ["float32", 1e-7, "channels_last", "float32", {}]


def _set_if_known(put: Callable[[Any], Any], value: Any) -> None:
    if value is not None:  # Keras was not imported when the value was stored
        put(value)


def _gradients(accelerate: Any) -> dict[str, Any]:
    """Return the state that all of accelerate's objects share, such as accumulation steps."""
    return dict(vars(accelerate.GradientState())) if hasattr(accelerate, "GradientState") else {}


def _set_gradients(accelerate: Any, values: dict[str, Any] | None) -> None:
    if hasattr(accelerate, "GradientState"):
        shared = vars(accelerate.GradientState())  # one dict, shared by all its objects
        shared.clear()
        shared.update(values or {})
