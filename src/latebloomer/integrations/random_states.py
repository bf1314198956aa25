"""Random numbers of one's own: learners in one process share the generators of their libraries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class RandomStates:
    """The generators of Python, NumPy and PyTorch, as this learner left them.

    Inside `with states.in_use():` they go on where they were at its last end, whatever others drew
    in between; afterwards they are for the others as if nothing had been drawn. `state` is plain
    numbers and tensors, so that PyTorch saves it without a pickle.
    """

    def __init__(self, torch: Any) -> None:
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
        torch = self._torch
        version, numbers, gauss = random.getstate()
        name, key, position, has_gauss, cached = np.random.get_state(legacy=True)
        return {
            "python": [version, list(numbers), gauss],
            "numpy": [
                name,
                torch.from_numpy(np.asarray(key, np.int64)),
                position,
                has_gauss,
                cached,
            ],
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        }

    def _set(self, state: dict[str, Any]) -> None:
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers), gauss))
        name, key, position, has_gauss, cached = state["numpy"]
        np.random.set_state((name, key.numpy().astype(np.uint32), position, has_gauss, cached))
        self._torch.set_rng_state(state["torch"])
        if state["cuda"] and self._torch.cuda.is_available():
            self._torch.cuda.set_rng_state_all(state["cuda"])
