"""Random numbers of one's own: learners in one process share the generators of their libraries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class RandomStates:
    """The generators of Python, NumPy and (where it is given) PyTorch, as this learner left them.

    Inside `with states.in_use():` they go on where they were at its last end, whatever others drew
    in between; afterwards they are for the others as if nothing had been drawn. `state` is plain
    numbers in lists, which every format can hold.

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
        self._set(self.state)
        try:
            yield
        finally:
            self.state = self.now()
            self._set(others)

    def now(self) -> dict[str, Any]:
        """The generators as they are, whoever's numbers they draw."""
        version, numbers, gauss = random.getstate()
        state: Any = np.random.get_state(legacy=True)
        name, key, *rest = state
        return {
            "python": [version, list(numbers), gauss],
            "numpy": [name, key.tolist(), *rest],
            "torch": [state.tolist() for state in self._tensors()],  # the CPU's, then each GPU's
        }

    def _tensors(self) -> list[Any]:
        torch = self._torch
        if torch is None:
            return []
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return [torch.get_rng_state(), *devices]

    def _set(self, state: dict[str, Any]) -> None:
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers), gauss))
        name, key, *rest = state["numpy"]
        np.random.set_state((name, np.array(key, np.uint32), *rest))
        torch = self._torch
        tensors = [torch.tensor(numbers, dtype=torch.uint8) for numbers in state["torch"]]
        if tensors:
            torch.set_rng_state(tensors[0])
        if tensors[1:] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(tensors[1:])
