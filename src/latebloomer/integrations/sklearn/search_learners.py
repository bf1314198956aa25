"""The learners of one search, all on the same split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from latebloomer.errors import OtherRace, SettingError, need_whole, require
from latebloomer.integrations.sklearn.data_splits import (
    Part,
    count,
    rows_of,
    same_length,
    splits_of,
    take,
)
from latebloomer.integrations.sklearn.sklearn_learner import (
    SklearnLearner,
    classes_of,
    positive,
    scorer_for,
    seed_from,
)
from latebloomer.integrations.sklearn.training_modes import last_step
from latebloomer.racing.api import settings_in
from latebloomer.racing.learner import seed_of
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.simulation.local_runs import cores


class Squad:
    """Makes the learners of one search, all on the same split, and remembers what they raise."""

    def __init__(self, search: Any, candidates: dict[str, Any], X: Any, y: Any) -> None:
        self.candidates, self._search, self._X, self._y = candidates, search, X, y
        self._seed = seed_from(search.random_state)
        first = next(iter(candidates.values()))
        classifier = is_classifier(first)
        self._setup = {
            "batch": positive("batch", search.batch),
            "step": positive("step", search.step),
        }
        self._classes = {name: classes_of(one, y) for name, one in candidates.items()}
        self._scorers = {
            name: scorer_for(last_step(one), search.scoring) for name, one in candidates.items()
        }
        self._parts = [
            Part(take(X, train), take(y, train), take(X, held), take(y, held))
            for train, held in splits_of(X, y, search.validation, classifier, self._seed)
        ]
        self.errors: dict[str, Exception] = {}
        self.how: dict[str, str] = {}

    @cached_property
    def token(self) -> int:
        """The race's seed: another one for other data, estimators or settings."""
        s = self._search
        what = (self._X, self._y, repr(self.candidates), repr(s.scoring), repr(s.validation))
        return int(joblib.hash((what, self._setup, self._seed))[:8], 16)

    def factory(self, name: str) -> Callable[[], Any]:
        def build() -> Heard:
            return Heard(self.learner(name, self._parts), name, self.errors)

        self.how[name] = self.learner(name, self._parts).how
        return build

    def learner(self, name: str, parts: list[Part]) -> SklearnLearner:
        return SklearnLearner.on(
            self.candidates[name], parts, self._classes[name], **self._setup,
            scorer=self._scorers[name], seed=seed_of(self._seed, name),
        )  # fmt: skip

    def train_on(self, verdict: Verdict) -> int:
        """Train the winner up to the horizon on all rows; the pulls that this took."""
        learner = verdict.learner.learner
        if not learner.widen(self._X, self._y):
            learner = self.learner(verdict.name, [Part(self._X, self._y, None, None)])
        pulls = max(verdict.horizon - learner.pulls, 0)
        for _ in range(pulls):
            learner.train()
        self.refitted = learner
        return pulls

    def must_be_mine(self, journal: Any, budget: int) -> None:
        """Raise `OtherRace` unless a journal is of this search on these rows."""
        values = settings_in(journal)
        search = self._search
        mine = {"seed": self.token, "horizon": search.horizon, "budget": budget,
                "deliver": search.deliver}  # fmt: skip
        other = [name for name, value in mine.items() if values[name] != value]
        if other:
            raise OtherRace(
                f"the journal {journal} is of another race (its {other[0]} differs): with the "
                "same estimators, data, settings and a number as random_state, fit goes on with "
                "it; else give another journal"
            )


class Heard:
    """A learner whose exceptions are remembered, for a race in which all fail."""

    def __init__(self, learner: SklearnLearner, name: str, errors: dict[str, Exception]) -> None:
        self.learner, self._name, self._errors = learner, name, errors
        self.save, self.load = learner.save, learner.load

    def pull(self) -> float:
        try:
            return self.learner.pull()
        except Exception as error:
            self._errors[self._name] = error
            raise

    @property
    def model(self) -> Any:
        return self.learner.model


def data_of(X: Any, y: Any, search: Any) -> tuple[Any, Any]:
    """Rows that can be picked by number, and the target, checked."""
    if y is None:
        raise SettingError(
            "RaceSearchCV requires y to be passed, but the target y is None: fit(X, y)"
        )
    X, y = rows_of(X), rows_of(y)
    y = y if hasattr(y, "shape") else np.asarray(y)
    same_length(X, y, "X", "y")
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if np.asarray(y).dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    if is_classifier(search):
        check_classification_targets(y)
    if count(X) < 2:
        raise SettingError(
            f"X has {count(X)} sample, but at least 2 are needed: one to train on, one to score"
        )
    return X, y


def runner_for(n_jobs: Any) -> str | Runner:
    """Here for one job; on Ray for several, -1 being all cores, as scikit-learn counts them."""
    if n_jobs is None:
        return "local"
    jobs = need_whole("n_jobs", n_jobs)
    found = jobs if jobs > 0 else cores() + 1 + jobs
    require(jobs != 0 and found >= 1, "n_jobs", n_jobs, f"from 1 on, or from -{cores()} to -1",
            "it is how many estimators train at once; -1 is one for every core")  # fmt: skip
    if found == 1:
        return "local"
    from latebloomer.racing.runners.ray import RayRunner

    return RayRunner(cores=found)
