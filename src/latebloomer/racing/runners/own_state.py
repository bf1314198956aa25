"""Random states and PyTorch modes that are global to a process, one set for each learner.

Learners in one process share `random`, `np.random`, PyTorch's random numbers and its modes. A
learner that seeds them, or a generator that yields inside `with torch.no_grad():`, would change
what the others do. So each learner has its own set, swapped when another learner is called, as if
it ran in its own process: curves depend neither on the order of the learners nor on the runner.
`random` and `np.random` start from the learner's seed, PyTorch as it does in a new process.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

numpy_random: Any = np.random  # its types lack the two functions that are used here
Modes: TypeAlias = list[tuple[Callable[[], Any], Callable[[Any], Any]]]


class Owner(Protocol):
    """What a set belongs to: a learner that has had `done` pulls."""

    arm: int
    done: int
    seed: int


class OwnStates:
    """Swaps the global state of this process when another learner is called."""

    def __init__(self) -> None:
        self._owner: Owner | None = None  # whose state is in force; None: the program's
        self._kept: dict[tuple[int, int] | None, Any] = {}  # by arm and its pulls
        self._inference: Any = None  # a mode without a setter, entered for the owner

    def enter(self, owner: Owner) -> None:
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

    def _switch(self, owner: Owner | None) -> None:
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


def _key(owner: Owner | None) -> tuple[int, int] | None:
    return None if owner is None else (owner.arm, owner.done)


def _new_state(owner: Owner | None) -> tuple[Any, Any, list[Any]]:
    seed = None if owner is None else owner.seed + owner.done
    return random.Random(seed).getstate(), np.random.MT19937(seed), []


def _new_modes(torch: Any) -> list[Any]:
    """Return what PyTorch has in a new process, in the order of `_modes`."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    numbers = [torch.Generator(f"cuda:{k}").get_state() for k in gpus]
    types = torch.bfloat16, torch.float16
    return [
        False, True, torch.float32, False, False, *types, torch.Generator().get_state(), numbers
    ]  # fmt: skip
