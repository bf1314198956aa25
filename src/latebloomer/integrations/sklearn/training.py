"""One model in training: its rows, the way it learns, and where it is in the current epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from latebloomer.errors import LearnerError
from latebloomer.integrations.sklearn.data_splits import Part, Rows, count, take
from latebloomer.integrations.sklearn.training_modes import last_step, way_for

Scorer = Callable[[Any, Any, Any], float]


class Batches:
    """Row numbers in batches, endlessly; each epoch in a new order.

    >>> batches = Batches(rows=5, size=2, seed=0)
    >>> sorted(int(row) for _ in range(5) for row in batches.next())  # two epochs
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """

    def __init__(self, rows: int, size: int, seed: int) -> None:
        self.rows, self.size = rows, min(size, rows)
        self._rng = np.random.default_rng(seed)
        self._left: Rows = np.empty(0, dtype=np.intp)

    def next(self) -> Rows:
        """The next batch; one may hold the end of an epoch and the beginning of another."""
        if self._left.size < self.size:
            self._left = np.concatenate([self._left, self._rng.permutation(self.rows)])
        batch, self._left = self._left[: self.size], self._left[self.size :]
        return batch

    def widen(self, rows: int, size: int) -> None:
        """Draw from more rows, beginning with a new epoch."""
        self.rows, self.size = rows, min(size, rows)
        self._left = self._left[:0]


class Trainee:
    """A clone of an estimator that trains on one part of the rows and is scored on the other."""

    def __init__(
        self, estimator: Any, part: Part, classes: Any, batch: int, step: int, seed: int
    ) -> None:
        self._estimator = seeded(estimator, seed)
        self._part, self._batch = part, batch
        self.batches = Batches(count(part.X), batch, seed)
        self.pulls = 0
        self._way = way_for(self._estimator, classes, step)
        self._model: Any = None
        self._head: Any = None  # the fitted steps before the last one of a pipeline

    def train(self) -> None:
        """One more pull."""
        if self._model is None:
            self._begin(clone(last_step(self._estimator)))
            self._way.begin(self._model)
        X, y = self._X, self._part.y
        if self._way.batched:
            rows = self.batches.next()
            X, y = take(X, rows), take(y, rows)
        self._way.more(self._model, X, y, self.pulls)
        self.pulls += 1

    def score(self, scorer: Scorer) -> float:
        """By the rows held out."""
        if self._part.y_val is None:
            raise LearnerError("no rows are held out any more: call train() instead of pull()")
        return float(scorer(self._model, self._X_val, self._part.y_val))

    def widen(self, part: Part) -> bool:
        """Go on with more rows; False where what was learned does not bear that."""
        if not self._way.widens:
            return False
        self._part = part
        self._X = part.X if self._head is None else self._head.transform(part.X)
        self.batches.widen(count(part.X), self._batch)
        return True

    @property
    def model(self) -> Any:
        """The trained estimator, as the user gave it: a pipeline where it was one."""
        if self._head is None:
            return self._model
        whole = clone(self._estimator)
        whole.steps = [*self._head.steps, (self._estimator.steps[-1][0], self._model)]
        return whole

    @property
    def how(self) -> str:
        words = self._way.words(self.batches.size, self.batches.rows)
        return f"{words}, after steps fitted once" if _has_head(self._estimator) else words

    def state(self) -> tuple[Any, Batches, int]:
        """All that training has changed; the steps before the last are fitted again."""
        return self._model, self.batches, self.pulls

    def restore(self, state: tuple[Any, Batches, int]) -> None:
        """Become what `state` gave."""
        model, self.batches, self.pulls = state
        self._begin(model)

    def _begin(self, model: Any) -> None:
        """Fit the steps before the last on all training rows; what they make of rows is kept."""
        self._X, self._X_val = self._part.X, self._part.X_val
        if _has_head(self._estimator):
            self._head = clone(self._estimator[:-1])
            self._X = self._head.fit_transform(self._X, self._part.y)
            if self._X_val is not None:
                self._X_val = self._head.transform(self._X_val)
        self._model = model


def _has_head(estimator: Any) -> bool:
    return isinstance(estimator, Pipeline) and len(estimator.steps) > 1


def seeded(estimator: Any, seed: int) -> Any:
    """A clone whose every `random_state=None` is a number, so that it can be trained again."""
    made = clone(estimator)
    rng = np.random.default_rng([seed, 1])
    params = made.get_params(deep=True)
    free = [k for k in sorted(params) if k.split("__")[-1] == "random_state" and params[k] is None]
    return made.set_params(**{key: int(rng.integers(2**31)) for key in free})
