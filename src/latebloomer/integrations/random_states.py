"""Random states of one learner: learners in one process share their libraries' generators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np


class Snapshot(NamedTuple):
    """The states of all generators at one moment."""

    python: Any
    numpy: Any
    torch: list[Any]  # of the CPU, then of each GPU


class RandomStates:
    """The generators of Python, NumPy and (if given) PyTorch, as one learner left them.

    Inside `with states.in_use():` they continue where they were at its last end, whatever was
    drawn in between; afterwards they are as if nothing had been drawn inside.

    >>> random.seed(0)
    >>> mine = RandomStates()
    >>> with mine.in_use():
    ...     first = random.random()
    >>> with mine.in_use():
    ...     second = random.random()
    >>> [first, second] == [random.random(), random.random()]
    True
    """

    def __init__(self, torch: Any = None) -> None:
        self._torch = torch
        self.state = self.now()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Draw from this learner's own numbers."""
        others = self.now()
        self.apply(self.state)
        try:
            yield
        finally:
            self.state = self.now()
            self.apply(others)

    def now(self) -> Snapshot:
        """Return the generators' present states."""
        torch, states = self._torch, []
        if torch is not None:
            devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
            states = [torch.get_rng_state(), *devices]
        return Snapshot(random.getstate(), np.random.get_state(legacy=True), states)

    def apply(self, state: Snapshot) -> None:
        """Set the generators to a state."""
        random.setstate(state.python)
        np.random.set_state(state.numpy)
        if state.torch:
            self._torch.set_rng_state(state.torch[0])
        if state.torch[1:] and self._torch.cuda.is_available():
            self._torch.cuda.set_rng_state_all(state.torch[1:])

    def as_lists(self, state: Snapshot) -> Any:
        """Return a state as numbers in lists, which every file format can hold."""
        version, numbers, gauss = state.python
        name, key, *rest = state.numpy
        tensors = [one.tolist() for one in state.torch]
        return [[version, list(numbers), gauss], [name, key.tolist(), *rest], tensors]

    def from_lists(self, lists: Any) -> Snapshot:
        """Return the state that `as_lists` was given."""
        (version, numbers, gauss), (name, key, *rest), tensors = lists
        torch = self._torch
        return Snapshot(
            (version, tuple(numbers), gauss),
            (name, np.array(key, np.uint32), *rest),
            [torch.tensor(one, dtype=torch.uint8) for one in tensors],
        )
