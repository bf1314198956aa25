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
from typing import Any, NamedTuple, Protocol

import numpy as np

DEVICES = ("cpu", "cuda")  # of PyTorch's autocast
numpy_random: Any = np.random  # its types lack the two functions that are used here


class Owner(Protocol):
    """What a set belongs to: a learner that has had `done` pulls."""

    arm: int
    done: int
    seed: int


class Modes(NamedTuple):
    """PyTorch's random numbers and modes."""

    numbers: Any
    on_gpus: list[Any]
    grad: bool
    inference: bool
    dtype: Any
    autocast: list[tuple[str, bool, Any]]  # devices, whether it is on there, and with which type


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
        self._kept[_key(self._owner)] = (
            random.getstate(), numpy_random.get_bit_generator(), _torch_modes()
        )  # fmt: skip
        self._owner = owner
        numbers, bits, modes = self._kept.pop(_key(owner), None) or _new_state(owner)
        random.setstate(numbers)
        numpy_random.set_bit_generator(bits)
        if "torch" in sys.modules:
            self._set_modes(sys.modules["torch"], modes or _new_modes(sys.modules["torch"]))

    def _set_modes(self, torch: Any, modes: Modes) -> None:
        if self._inference is not None:
            self._inference.__exit__(None, None, None)
            self._inference = None
        if modes.inference != torch.is_inference_mode_enabled():
            self._inference = torch.inference_mode(modes.inference)
            self._inference.__enter__()
        torch.set_grad_enabled(modes.grad)
        torch.set_default_dtype(modes.dtype)
        for device, on, dtype in modes.autocast:
            torch.set_autocast_enabled(device, on)
            torch.set_autocast_dtype(device, dtype)
        torch.set_rng_state(modes.numbers)
        if torch.cuda.is_initialized():
            torch.cuda.set_rng_state_all(modes.on_gpus or _new_modes(torch).on_gpus)


def _key(owner: Owner | None) -> tuple[int, int] | None:
    return None if owner is None else (owner.arm, owner.done)


def _new_state(owner: Owner | None) -> tuple[Any, Any, Modes | None]:
    seed = None if owner is None else owner.seed + owner.done
    return random.Random(seed).getstate(), np.random.MT19937(seed), None


def _torch_modes() -> Modes | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return Modes(
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        [(one, torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in DEVICES],
    )


def _new_modes(torch: Any) -> Modes:
    """Return what PyTorch has in a new process."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    return Modes(
        torch.Generator().get_state(),
        [torch.Generator(f"cuda:{k}").get_state() for k in gpus],
        True,
        False,
        torch.float32,
        [("cpu", False, torch.bfloat16), ("cuda", False, torch.float16)],
    )
