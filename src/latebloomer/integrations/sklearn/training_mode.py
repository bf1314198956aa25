"""What every way to train a model a little more has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class TrainingMode(ABC):
    """One way to train a model a little more."""

    batched: bool  # by batches of rows, or on all of them
    epochs: int | None = None  # that a full training has, where it is batched and says so

    @abstractmethod
    def prepare(self, model: Any) -> None:
        """Set up a model that has not been trained."""

    @abstractmethod
    def train(
        self, model: Any, X: Any, y: Any, done: int, steps: int, params: Mapping[str, Any]
    ) -> bool:
        """Train a model that has had `done` steps `steps` more; whether that is all it can do.

        `params` are what its own method takes beside rows and target, weights for example.
        """

    @abstractmethod
    def full_steps(self, batch: int, rows: int) -> int:
        """Steps of a full training, by what the estimator declares."""

    @abstractmethod
    def describe(self, batch: int, rows: int) -> str:
        """What a step is, for the user."""

    def state(self) -> dict[str, Any]:
        """What training has changed beside the model."""
        return {}

    def restore(self, model: Any, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Become what `state` gave, for a model that was saved with it."""
