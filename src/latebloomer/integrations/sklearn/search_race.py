"""The race of a search: its learners, all on the same splits, its budget, and the refit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib  # type: ignore[import-untyped]
from sklearn.base import is_classifier

from latebloomer.core.ledger import ANY
from latebloomer.errors import (
    BudgetError,
    SettingError,
    need_number,
    need_whole,
    require,
)
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.checkpoint_formats import checkpoint_format_for
from latebloomer.integrations.sklearn.scoring import Metrics, Notes, Range
from latebloomer.integrations.sklearn.sklearn_learner import (
    SklearnLearner,
    batch_rows,
    classes_of,
    need_positive,
    seed_from,
)
from latebloomer.integrations.sklearn.splits import (
    Fold,
    RoutedParams,
    folds_of,
    row_count,
    split_rows,
    take_params,
)
from latebloomer.integrations.sklearn.training import TrainingSettings, last_step
from latebloomer.policies.registry import policy_for
from latebloomer.racing.learner import seed_of
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.same_race import need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.simulation.local_runs import cores

BATCH = 64  # rows of a pull, if pulls are counted
FOLDS = 5  # of cv=None, as in scikit-learn
LEAST = 2.0  # full trainings of a race by default, or half of one for each estimator
REFIT_SHARE = 1 / 3  # of the time, or of the pulls of a policy that plans none


class SearchRace:
    """The learners of one search, all on the same splits, and what became of them."""

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
        batch = BATCH if search.batch is None and search.budget is not None else search.batch
        self._batch, self._step = batch_rows(batch), need_positive("step", search.step)
        self._format = checkpoint_format_for(search.checkpoint_format, search.trusted)
        self._classes = {name: classes_of(one, y) for name, one in estimators.items()}
        self._scorers = {name: metrics.scorer(last_step(one)) for name, one in estimators.items()}
        cv = FOLDS if search.cv is None else search.cv
        self._splits = split_rows(X, y, cv, is_classifier(search), self._seed, params=params.split)
        self._folds = folds_of(X, y, self._splits, score_params=params.score)
        folder = self._scores_folder()
        self.notes = {
            name: Notes(None if folder is None else folder / f"{k}.json")
            for k, name in enumerate(estimators)
        }

    @property
    def n_splits(self) -> int:
        """Number of models that each estimator has in the race."""
        return len(self._splits)

    def _scores_folder(self) -> Path | None:
        """Return where scores are kept: next to the journal, or for as long as processes run."""
        if self._search.journal is not None:
            return Path(f"{self._search.journal}.scores")
        here = isinstance(runner_for(self._search.n_jobs), LocalRunner)
        return None if here else own_folder(self)

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
        """Return a function for each estimator that makes its learner."""
        return {name: self._factory(name) for name in self.estimators}

    def _factory(self, name: str) -> Callable[[], Any]:
        return lambda: self._learner(name, self._folds_for(name), self.notes[name])

    def _folds_for(self, name: str) -> list[Fold]:
        """Return the folds, whose rows all estimators share, with what this one takes as well."""
        params, count = self._params.fit[name], row_count(self._y)
        return [
            fold._replace(fit_params=take_params(params, train, count))
            for fold, (train, _) in zip(self._folds, self._splits, strict=True)
        ]

    def _learner(self, name: str, folds: list[Fold], notes: Notes | None = None) -> SklearnLearner:
        settings = TrainingSettings(
            self._classes[name], self._batch, self._step, seed_of(self._seed, name)
        )
        return SklearnLearner.on_folds(
            self.estimators[name], folds, settings, self._scorers[name], self.metrics,
            self._format, notes,
        )  # fmt: skip

    @cached_property
    def examples(self) -> dict[str, SklearnLearner]:
        """A learner of each estimator that is not trained, to ask what its steps are."""
        return {name: self._learner(name, self._folds) for name in self.estimators}

    @cached_property
    def full_steps(self) -> dict[str, int]:
        """Number of steps in each estimator's full training, by what it declares."""
        return {name: one.full_steps for name, one in self.examples.items()}

    @property
    def score_range(self) -> Range | None:
        """Lowest and highest possible score; None unless it is known and the same for all."""
        ranges = {self.metrics.range_of(one) for one in self.estimators.values()}
        return ranges.pop() if len(ranges) == 1 else None

    def refit(self, name: str, steps: int, seconds: float = inf) -> SklearnLearner:
        """Return a fresh clone of an estimator, trained on all rows for some steps or time."""
        learner = self._learner(name, [Fold(self._X, self._y, fit_params=self._params.fit[name])])
        until = perf_counter() + seconds
        if seconds == inf:
            learner.train(steps)
        while learner.steps < steps and not learner.finished and perf_counter() < until:
            learner.train()
        return learner

    def need_own_journal(self, journal: Any, asked: dict[str, Any]) -> None:
        """Raise `JournalMismatch` unless a journal is of this search on these rows."""
        need_same(
            journal, race_in(journal).settings, {"seed": self.fingerprint} | asked,
            "With the same estimators, data, settings and a number as random_state, fit resumes "
            "it; otherwise give another journal.",
        )  # fmt: skip


def runner_for(n_jobs: Any) -> Runner:
    """Return where pulls run: here for one job, on Ray for several; -1 means all cores."""
    if n_jobs is None:
        return LocalRunner(retries=0)
    jobs = need_whole("n_jobs", n_jobs)
    found = jobs if jobs > 0 else cores() + 1 + jobs
    require(jobs != 0 and found >= 1, "n_jobs", n_jobs, f"at least 1, or from -{cores()} to -1",
            "it is how many estimators train at the same time; -1 means all cores")  # fmt: skip
    if found == 1:
        return LocalRunner(retries=0)
    from latebloomer.racing.runners.ray import RayRunner

    return RayRunner(cores=found, retries=0)


# --- the budget: what the race may spend, and what is reserved to refit the winner ---


class SearchBudget(NamedTuple):
    """What is asked of the race, and what the refit may take."""

    race: dict[str, Any]  # as `race` takes it
    reserved: float  # of the budget for the refit, in its unit
    announcement: str  # about the refit, printed before anything is spent; empty without one

    def refit_steps(self, search: Any, verdict: Verdict) -> int:
        """Return the steps of the refit: a full training, or as many pulls as were reserved."""
        if "full_steps" in self.race:
            return int(self.race["full_steps"][verdict.name])
        if search.extra_refit:
            return verdict.horizon if search.horizon is not None else verdict[verdict.name].pulls
        return int(self.reserved)


def search_budget(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    """Return how the budget of a search is shared out, by its settings.

    `full_steps` is each estimator's full training, in its own steps.
    """
    require(search.extra_refit in (True, False), "extra_refit", search.extra_refit,
            "True or False", "True spends the refit on top of the budget")  # fmt: skip
    if search.extra_refit and not search.refit:
        raise SettingError(
            "extra_refit=True with refit=False, but without a refit nothing is spent on one: "
            "omit one of them"
        )
    given = {name: getattr(search, name) for name in ("budget", "trainings", "seconds")}
    named = [f"{name}={value}" for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise SettingError(
            f"{' and '.join(named)}, but a search has one budget: trainings=3 (full trainings), "
            "budget=2000 (pulls) or seconds=600 (time)"
        )
    if search.budget is not None:
        return _in_pulls(search, len(full_steps))
    if search.horizon is not None:
        raise SettingError(
            f"horizon={search.horizon}, but that is for budget=: with trainings= or seconds= "
            "learners are compared at one full training"
        )
    if search.seconds is not None:
        return _in_seconds(search, full_steps)
    return _in_trainings(search, full_steps)


def refit_is_inside(search: Any) -> bool:
    """Return whether the refit is reserved from the budget."""
    return bool(search.refit) and not search.extra_refit


def _announced(search: Any, inside: str, on_top: str) -> str:
    if not search.refit:
        return ""
    return on_top if search.extra_refit else inside


def _in_trainings(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    trainings, reserved = search.trainings, int(refit_is_inside(search))
    if trainings is None:
        trainings = reserved + max(LEAST, len(full_steps) / 2)
    need_number("trainings", trainings)
    if reserved and not trainings > 1:
        raise BudgetError(
            f"trainings={trainings:g} leaves nothing for the race: refit=True reserves one "
            "training to refit the winner. Give more, set refit=False, or set extra_refit=True to "
            "refit on top of the budget."
        )
    text = _announced(
        search,
        f"1 of {trainings:g} full trainings is reserved to refit the winner on all rows",
        "one full training on top of the budget will refit the winner on all rows",
    )
    asked = {"trainings": trainings - reserved, "full_steps": full_steps}
    return SearchBudget(asked, reserved, text)


def _in_seconds(search: Any, full_steps: dict[str, int]) -> SearchBudget:
    need_number("seconds", search.seconds)
    reserved = REFIT_SHARE * search.seconds if refit_is_inside(search) else 0.0
    text = _announced(
        search,
        f"{reserved:.3g} of {search.seconds:g} s are reserved to refit the winner on all rows",
        "one full training after that time will refit the winner on all rows",
    )
    asked = {"seconds": search.seconds - reserved, "full_steps": full_steps}
    return SearchBudget(asked, reserved, text)


def _in_pulls(search: Any, arms: int) -> SearchBudget:
    budget, horizon = need_whole("budget", search.budget), search.horizon
    reserved = 0
    if refit_is_inside(search):
        reserved = _refit_pulls(search.policy, arms, budget) if horizon is None else horizon
        if reserved >= budget:
            raise BudgetError(
                f"budget={budget} leaves nothing for the race: refit=True reserves {reserved} "
                "pulls to refit the winner. Give more, set refit=False, or set extra_refit=True "
                "to refit on top of the budget."
            )
    many = f"{horizon}" if horizon is not None else "as many as it had in the race"
    text = _announced(
        search,
        f"{reserved} of {budget} pulls are reserved to refit the winner on all rows",
        f"pulls on top of the budget will refit the winner on all rows: {many}",
    )
    return SearchBudget({"budget": budget - reserved, "horizon": horizon}, reserved, text)


def _refit_pulls(policy: Any, arms: int, budget: int) -> int:
    """Return the pulls to reserve so that the refit can have as many as the winner had."""

    def last_level(pulls: int) -> int:
        plan = policy_for(policy, arms, pulls, pulls).plan(arms, pulls, pulls)
        return 0 if ANY in plan.keep else int(plan.upto[-1])

    try:
        if not last_level(budget):  # any arm may have any number: there is no level to know
            return round(REFIT_SHARE * budget)
    except BudgetError:
        return 0  # too little for the race itself, which raises the error
    low, high = 1, budget  # pulls of the race
    while high - low > 1:
        middle = (low + high) // 2
        try:
            fits = middle + last_level(middle) <= budget
        except BudgetError:
            fits = True  # too little to plan with: more are needed
        low, high = (middle, high) if fits else (low, middle)
    return budget - low
