"""The estimators of a search, checked, and the learners made of them, all on the same split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from latebloomer.errors import JournalMismatch, LearnerError, SettingError, need_whole, require
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.checkpoint_formats import checkpoint_format_for
from latebloomer.integrations.sklearn.data_splits import (
    Fold,
    folds_of,
    indexable_data,
    row_count,
    split_rows,
    take_params,
)
from latebloomer.integrations.sklearn.fit_params import RoutedParams
from latebloomer.integrations.sklearn.search_scoring import LastScores, Metrics
from latebloomer.integrations.sklearn.sklearn_learner import (
    SklearnLearner,
    classes_of,
    need_positive,
    seed_from,
)
from latebloomer.integrations.sklearn.training import TrainingSettings, last_step, training_mode
from latebloomer.racing.learner import seed_of
from latebloomer.racing.run_race import settings_in
from latebloomer.racing.runners.contract import Runner
from latebloomer.simulation.local_runs import cores

FOLDS = 5  # of cv=None, as in scikit-learn

# --- the estimators, as a dict, a list of pairs or a bare list; and their names ---


def named_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """Names and estimators, however they were given; bare ones are named by their class.

    >>> from sklearn.naive_bayes import BernoulliNB, GaussianNB
    >>> [name for name, _ in named_estimators([GaussianNB(), BernoulliNB(), BernoulliNB(alpha=2)])]
    ['gaussiannb', 'bernoullinb-1', 'bernoullinb-2']
    """
    if isinstance(estimators, Mapping):
        return list(estimators.items())
    if not isinstance(estimators, list | tuple):
        return []
    if all(isinstance(item, tuple) and len(item) == 2 for item in estimators):
        return list(estimators)
    kinds = [type(item).__name__.lower() for item in estimators]
    many, seen = Counter(kinds), Counter[str]()
    names = []
    for kind in kinds:
        seen[kind] += 1
        names.append(f"{kind}-{seen[kind]}" if many[kind] > 1 else kind)
    return list(zip(names, estimators, strict=True))


def with_replaced(estimators: Any, name: str, new: Any) -> Any:
    """The same collection with another estimator under a name; the given one is not changed."""
    pairs = [(key, new if key == name else old) for key, old in named_estimators(estimators)]
    if isinstance(estimators, Mapping):
        return dict(pairs)
    if all(isinstance(item, tuple) for item in estimators):
        return pairs
    return [estimator for _, estimator in pairs]


def checked_estimators(estimators: Any, reserved: set[str]) -> dict[str, Any]:
    """The estimators by name, all of which can race against each other."""
    pairs = named_estimators(estimators)
    _check_names([name for name, _ in pairs], estimators, reserved)
    for name, estimator in pairs:
        need_trainable(f"estimator {name!r}", estimator)
    kinds = {name: _kind(estimator) for name, estimator in pairs}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is a {kind}" for name, kind in kinds.items())
        raise SettingError(
            f"estimators are of different kinds ({listed}), but their scores must be comparable: "
            "race classifiers with classifiers and regressors with regressors"
        )
    return dict(pairs)


def need_trainable(what: str, estimator: Any) -> None:
    """Raise a `LearnerError` unless an estimator can be trained a little at a time."""
    try:
        training_mode(estimator)
    except LearnerError as error:
        raise LearnerError(f"{what}: {error}") from None


def _check_names(names: list[str], given: Any, reserved: set[str]) -> None:
    if len(names) < 2:
        raise SettingError(
            f"estimators={given!r}, but estimators must be at least 2, as a dict of names and "
            "estimators, a list of such pairs or a list of estimators"
        )
    for name, times in Counter(names).items():
        if times > 1:
            raise SettingError(f"{times} estimators are called {name!r}, but names must differ")
        if not isinstance(name, str) or not name.strip() or "__" in name or name in reserved:
            raise SettingError(
                f"an estimator is called {name!r}, but a name must be text without '__' (which "
                "parts nested settings) that is no setting of the search itself"
            )


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"


# --- the data and the runner ---


def checked_data(search: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Rows that can be picked by number, and the target, checked."""
    if y is None:
        raise SettingError(
            f"{type(search).__name__} requires y to be passed, but the target y is None: fit(X, y)"
        )
    X, y = indexable_data(X, y)
    y = y if hasattr(y, "shape") else np.asarray(y)
    if len(y.shape) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if np.asarray(y).dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    if is_classifier(search):
        check_classification_targets(y)
    if row_count(X) < 2:
        raise SettingError(
            f"X has {row_count(X)} sample, but at least 2 are needed: one to train on, one to "
            "score"
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


# --- the learners ---


class SearchLearners:
    """Makes the learners of one search, all on the same splits, and knows what became of them."""

    def __init__(
        self,
        search: Any,
        estimators: dict[str, Any],
        metrics: Metrics,
        X: Any,
        y: Any,
        params: RoutedParams,
    ) -> None:
        self.estimators, self.metrics, self._params = estimators, metrics, params
        self._search, self._X, self._y = search, X, y
        self._seed = seed_from(search.random_state)
        self._batch = search.batch_rows()
        self._step = need_positive("step", search.step)
        self._format = checkpoint_format_for(search.checkpoint_format, search.trusted)
        self._classes = {name: classes_of(one, y) for name, one in estimators.items()}
        self._scorers = {name: metrics.scorer(last_step(one)) for name, one in estimators.items()}
        cv = FOLDS if search.cv is None else search.cv
        self._splits = split_rows(X, y, cv, is_classifier(search), self._seed, params=params.split)
        self._folds = folds_of(X, y, self._splits, score_params=params.score)
        self.errors: dict[str, Exception] = {}
        self.scores = LastScores(list(estimators), self._scores_folder())

    @property
    def n_splits(self) -> int:
        """How many models each estimator has in the race."""
        return len(self._splits)

    def _scores_folder(self) -> Path | None:
        """Where scores are kept: beside the journal; in passing where there are processes."""
        if self._search.journal is not None:
            return Path(f"{self._search.journal}.scores")
        return None if runner_for(self._search.n_jobs) == "local" else own_folder(self)

    @cached_property
    def fingerprint(self) -> int:
        """The race's seed: another one for other data, estimators or settings."""
        s = self._search
        named = isinstance(s.cv, int | float) or hasattr(s.cv, "split")
        cv = repr(s.cv) if named else self._splits
        what = (self._X, self._y, repr(self.estimators), repr(s.scoring), cv)
        sizes = {"batch": self._batch, "step": self._step, "refit": s.refit}
        given = [dict(self._params.fit[name]) for name in self.estimators]
        if any(given) or self._params.score or self._params.split:
            sizes["params"] = (given[0], dict(self._params.score), dict(self._params.split))
        return int(joblib.hash((what, sizes, self._seed))[:8], 16)

    def factories(self) -> dict[str, Callable[[], Any]]:
        """A function for each estimator that makes its learner."""
        return {name: self._factory(name) for name in self.estimators}

    def _factory(self, name: str) -> Callable[[], Any]:
        def build() -> Candidate:
            learner = self._learner(name, self._folds_for(name))
            return Candidate(learner, name, self.metrics, self.scores, self.errors)

        return build

    def _folds_for(self, name: str) -> list[Fold]:
        """The folds, whose rows all estimators share, with what this one takes beside them."""
        params, count = self._params.fit[name], row_count(self._y)
        return [
            fold._replace(fit_params=take_params(params, train, count))
            for fold, (train, _) in zip(self._folds, self._splits, strict=True)
        ]

    def _learner(self, name: str, folds: list[Fold]) -> SklearnLearner:
        settings = TrainingSettings(
            self._classes[name], self._batch, self._step, seed_of(self._seed, name)
        )
        return SklearnLearner.on_folds(
            self.estimators[name], folds, self._scorers[name], settings, self._format
        )

    @cached_property
    def pulls_in_words(self) -> dict[str, str]:
        """What a pull of each estimator is."""
        return {name: one.how for name, one in self._examples.items()}

    @cached_property
    def full_steps(self) -> dict[str, int]:
        """Steps of each estimator's full training, by what it declares."""
        return {name: one.full_steps for name, one in self._examples.items()}

    @cached_property
    def _examples(self) -> dict[str, SklearnLearner]:
        return {name: self._learner(name, self._folds) for name in self.estimators}

    def refit(self, name: str, steps: int, seconds: float = inf) -> SklearnLearner:
        """A fresh clone of an estimator, trained on all rows for so many steps, or for a time."""
        learner = self._learner(name, [Fold(self._X, self._y, fit_params=self._params.fit[name])])
        until = perf_counter() + seconds
        if seconds == inf:
            learner.train(steps)
        while learner.steps < steps and not learner.finished and perf_counter() < until:
            learner.train()
        return learner

    @property
    def score_range(self) -> tuple[float | None, float | None] | None:
        """What no estimator's score can leave; None where that is not known of all."""
        ranges = {self.metrics.range_of(one) for one in self.estimators.values()}
        return ranges.pop() if len(ranges) == 1 else None

    def need_own_journal(self, journal: Any, asked: dict[str, Any]) -> None:
        """Raise `JournalMismatch` unless a journal is of this search on these rows."""
        values = {"min_pulls": 1} | dict(settings_in(journal))
        search = self._search
        own = {"seed": self.fingerprint, **asked, "winner_share": search.winner_share, "min_pulls": search.min_pulls,
               "stop": search.stop}  # fmt: skip
        other = [name for name, value in own.items() if values.get(name) != value]
        if other:
            raise JournalMismatch(
                f"the journal {journal} is of another race (its {other[0]} differs): with the "
                "same estimators, data, settings and a number as random_state, fit goes on with "
                "it; else give another journal"
            )


class Candidate:
    """A learner of a search: what it scores is noted fold by fold, and so is what it raises."""

    def __init__(
        self,
        learner: SklearnLearner,
        name: str,
        metrics: Metrics,
        scores: LastScores,
        errors: dict[str, Exception],
    ) -> None:
        self.learner, self._name, self._metrics = learner, name, metrics
        self._scores, self._errors = scores, errors
        self.save, self.load = learner.save, learner.load

    def pull(self, steps: int = 1) -> float:
        if self.learner.finished:
            raise StopIteration
        try:
            self.learner.train(steps)
            found = self._metrics.by_fold(self.learner.fold_scores())
        except Exception as error:
            self._errors[self._name] = error
            raise
        self._scores.note(self._name, found)
        return float(np.mean(found[self._metrics.leading]))

    @property
    def model(self) -> Any:
        return self.learner.model
