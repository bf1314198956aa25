"""The race of a search: its learners, all on the same splits, its budget, and the refit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib  # type: ignore[import-untyped]
from sklearn.base import is_classifier

from latebloomer.core.ledger import ANY
from latebloomer.errors import BudgetError, SettingError, need_number, need_whole, require
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.scoring import FoldScorer, Metrics, Notes, Range
from latebloomer.integrations.sklearn.sklearn_learner import (
    LearnerParts,
    SklearnLearner,
    classes_of,
    model_format,
)
from latebloomer.integrations.sklearn.splits import (
    Fold,
    RoutedParams,
    batch_rows,
    folds_of,
    need_positive,
    row_count,
    seed_from,
    split_rows,
    take_params,
)
from latebloomer.integrations.sklearn.training import TrainingSettings, last_step
from latebloomer.policies.registry import policy_for
from latebloomer.racing.callbacks import RaceView
from latebloomer.racing.journal import JournalFile
from latebloomer.racing.journal.names import names_folder
from latebloomer.racing.learner import seed_of
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.settings import race_in
from latebloomer.racing.training_share import FEWEST
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import Event, ScoreReported
from latebloomer.simulation.local_runs import cores

BATCH = 64  # rows of a pull, if pulls are counted
FOLDS = 5  # of cv=None, as in scikit-learn
LEAST = 2.0  # full trainings of a race by default, or half of one for each estimator
PULLS = 20, 100  # of a full training, at least and at most
EACH = 10  # pulls of each estimator that the budget is to be good for
REFIT_SHARE = 1 / 3  # of the pulls or the time of a policy that plans no levels
CHUNKS = 10  # parts of a refit that has to end in time
OVERTIME = 1.2  # times the time reserved for it that a refit may take
TICK = 1e-9  # no pull or step is shorter, in seconds


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
        self.seed = seed_from(search.random_state)
        batch = BATCH if search.batch is None and search.budget is not None else search.batch
        self._batch, self._step = batch_rows(batch), need_positive("step", search.step)
        journal = search.journal if isinstance(search.journal, JournalFile) else JournalFile("")
        self._format = model_format(journal.checkpoint_format, journal.trusted)
        self._classes = {name: classes_of(one, y) for name, one in estimators.items()}
        self._scorers = {name: self._scorer(last_step(one)) for name, one in estimators.items()}
        cv = FOLDS if search.cv is None else search.cv
        self._splits = split_rows(X, y, cv, is_classifier(search), self.seed, params=params.split)
        self._folds = folds_of(X, y, self._splits, score_params=params.score)
        folder = self._scores_folder()
        self.notes = {
            name: Notes(None if folder is None else folder / f"{k}.json")
            for k, name in enumerate(estimators)
        }

    def _scorer(self, estimator: Any) -> FoldScorer:
        scorer = self.metrics.scorer(estimator)
        return FoldScorer(scorer, self.metrics.leading, bool(self._search.return_train_score))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return row_count(self._y)

    @property
    def n_splits(self) -> int:
        """Number of models that each estimator has in the race."""
        return len(self._splits)

    @property
    def has_journal(self) -> bool:
        """True if the race of a journal is resumed."""
        journal = self._search.journal
        return journal is not None and not names_folder(journal) and Path(journal).exists()

    @cached_property
    def _recorded(self) -> Mapping[str, Any]:
        """The settings of the race in the journal; empty for a new race."""
        return race_in(self._search.journal).settings if self.has_journal else {}

    def _scores_folder(self) -> Path | None:
        """Return where scores are kept: next to the journal, or for as long as processes run."""
        if self._search.journal is not None:
            return Path(f"{os.fspath(self._search.journal)}.scores")
        return None if self.runner.name == "local" else own_folder(self)

    @cached_property
    def runner(self) -> Runner:
        """Where pulls run: here for one job, on Ray for several; -1 means all cores."""
        n_jobs = self._search.n_jobs
        jobs = 1 if n_jobs is None else need_whole("n_jobs", n_jobs)
        found = jobs if jobs > 0 else cores() + 1 + jobs
        require(jobs != 0 and found >= 1, "n_jobs", n_jobs,
                f"at least 1, or from -{cores()} to -1", "it is how many estimators train at the "
                "same time; -1 means all cores")  # fmt: skip
        if found == 1:
            return LocalRunner(retries=0)
        from latebloomer.racing.runners.ray import RayRunner

        return RayRunner(cores=found, retries=0)

    def factories(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each estimator that makes its learner and says what it is."""
        made = {name: self._factory(name) for name in self.estimators}
        for name, factory in made.items():
            factory.settings = self._settings_of(name)  # type: ignore[attr-defined]
            factory.full_steps = self.full_steps[name]  # type: ignore[attr-defined]
        return made

    def _factory(self, name: str) -> Callable[[], Any]:
        parts = self._parts(name, self._folds_for(name), self.notes[name])
        return lambda: SklearnLearner.made_of(parts)  # in another process too: without `self`

    def _settings_of(self, name: str) -> dict[str, Any]:
        """Return what the journal keeps of a learner, to name what differs in another `fit`."""
        estimator = self.estimators[name]
        own = {
            key: type(value).__name__ if hasattr(value, "get_params") else value
            for key, value in estimator.get_params().items()
            if key != "steps"  # of a pipeline, whose parts have their own names
        }
        return own | {"class": type(estimator).__name__} | self._search_settings

    @cached_property
    def _search_settings(self) -> dict[str, Any]:
        """What the journal keeps of the search itself; estimators have settings of such names."""
        search, params = self._search, self._params
        if search.journal is None:
            return {}
        fit = {key: value for one in params.fit.values() for key, value in one.items()}
        with_rows = fit, dict(params.score), dict(params.split)
        return {
            "search data": str(joblib.hash((self._X, self._y, with_rows)))[:12],
            "search cv": self._cv_text, "search random_state": self.seed,
            "search scoring": search.scoring, "search metric": self.metrics.leading,
            "search batch": self._batch, "search step": self._step,
        }  # fmt: skip

    @property
    def _cv_text(self) -> str:
        cv = self._search.cv
        named = cv is None or isinstance(cv, int | float) or hasattr(cv, "split")
        return repr(cv) if named else f"splits {str(joblib.hash(self._splits))[:12]}"

    def _folds_for(self, name: str) -> list[Fold]:
        """Return the folds, whose rows all estimators share, with what this one takes as well."""
        params = self._params.fit[name]
        return [
            fold._replace(fit_params=take_params(params, train, self.rows))
            for fold, (train, _) in zip(self._folds, self._splits, strict=True)
        ]

    def _parts(self, name: str, folds: list[Fold], notes: Notes | None = None) -> LearnerParts:
        settings = TrainingSettings(
            self._classes[name], self._batch, self._step, seed_of(self.seed, name)
        )
        scorer = self._scorers[name]
        return LearnerParts(self.estimators[name], folds, settings, scorer, self._format, notes)

    @cached_property
    def examples(self) -> dict[str, SklearnLearner]:
        """A learner of each estimator that is not trained, to ask what its steps are."""
        return {
            name: SklearnLearner.made_of(self._parts(name, self._folds))
            for name in self.estimators
        }

    @cached_property
    def in_one_step(self) -> list[str]:
        """The estimators that are trained in one step."""
        return [name for name, one in self.examples.items() if one.in_one_step]

    @cached_property
    def pulls_per_training(self) -> int:
        """Number of pulls in a full training."""
        given = self._search.pulls_per_training
        if given is not None:
            return need_positive("pulls_per_training", given)
        recorded = self._recorded.get("pulls_per_training")
        if recorded is not None:
            return int(recorded)
        # Few: a call of `fit` with warm_start may cost as much as several trees.
        (few, most), trainings = PULLS, self._search.trainings or inf
        wanted = (
            most if self._search.seconds is not None else EACH * len(self.examples) / trainings
        )
        pulls = min(most, max(few, ceil(wanted)))
        steps = [one.full_steps for one in self.examples.values() if not one.in_one_step]
        shortest = min(steps, default=pulls)
        return shortest if FEWEST <= shortest < pulls else pulls

    @cached_property
    def full_steps(self) -> dict[str, int]:
        """Number of steps in each estimator's full training, by what it declares.

        Each pull of an estimator that is trained in one step asks for a step: it has finished
        after the first.
        """
        pulls = self.pulls_per_training
        return {
            name: pulls if one.in_one_step else one.full_steps
            for name, one in self.examples.items()
        }

    @property
    def score_range(self) -> Range | None:
        """Lowest and highest possible score; None unless it is known and the same for all."""
        ranges = {self.metrics.range_of(one) for one in self.estimators.values()}
        return ranges.pop() if len(ranges) == 1 else None

    # --- the refit ---

    @property
    def refit_ratio(self) -> float:
        """Rows of the refit compared with the rows that a step of the race trains on."""
        return self.rows / sum(train.size for train, _ in self._splits)

    def on_all_rows(self, name: str) -> SklearnLearner:
        """Return a learner of an estimator that trains on all rows."""
        fold = Fold(self._X, self._y, fit_params=self._params.fit[name])
        return SklearnLearner.made_of(self._parts(name, [fold]))


def train_in_time(learner: SklearnLearner, steps: int, seconds: float) -> None:
    """Train a learner for some steps, or for as many as fit into a time."""
    until = perf_counter() + seconds
    chunk = steps if seconds == inf else -(-steps // CHUNKS)
    while learner.steps < steps and not learner.finished and perf_counter() < until:
        learner.train(min(chunk, steps - learner.steps))


class RefitReserve:
    """Keeps time of a race to refit its leader, by the pace that was measured.

    The race of `seconds` is planned for R seconds less. Let the winner end with a fraction f of
    the T pulls, each of p seconds, and a pull take q seconds on average; then R = r p f T with r
    rows of the refit for a row of the race, and T = spent + (time left - R) / q.
    """

    def __init__(self, seconds: float, ratio: float) -> None:
        self._seconds, self._ratio = seconds, ratio
        self._time: dict[int, float] = {}
        self._count: dict[int, int] = {}
        self._looked_at = -inf

    def __call__(self, event: Event, view: RaceView) -> None:
        """Take note of a pull, and reserve time."""
        if not isinstance(event, ScoreReported):
            return
        # The first time also the pulls of earlier processes.
        for pull in [event] if self._count else view.events():
            if isinstance(pull, ScoreReported):
                self._time[pull.arm] = self._time.get(pull.arm, 0.0) + pull.seconds
                self._count[pull.arm] = self._count.get(pull.arm, 0) + 1
        if view.elapsed - self._looked_at >= self._seconds / 100:
            view.reserve(self._needed(view))
            self._looked_at = view.elapsed

    def _needed(self, view: RaceView) -> float:
        leader, left = view.standings()[0].arm, self._seconds - view.elapsed
        mean = max(TICK, view.elapsed / view.spent)  # with what is between pulls, and at once
        pace = self._time.get(leader, mean) / self._count.get(leader, 1) * self._ratio
        share = self._winners_share(view, round(view.spent + left / mean / 1.5))
        weight = share * pace / mean
        needed = (pace * share * view.spent + weight * left) / (1 + weight)
        most = pace * (view.settings.pulls_per_training or inf)
        return min(most, max(needed, pace * view.pulls[leader]))

    def _winners_share(self, view: RaceView, pulls: int) -> float:
        """Return the winner's share of the pulls, by the policy's plan for so many."""
        arms, horizon = len(view.names), view.settings.pulls_per_training or pulls
        level = _last_level(view.settings.policy, arms, pulls, horizon)
        return level / pulls if level else REFIT_SHARE


def _last_level(policy: Any, arms: int, pulls: int, horizon: int) -> int:
    """Return the pulls that the winner has at the end; 0 if the policy does not plan them."""
    try:
        plan = policy_for(policy, arms, pulls, horizon).plan(arms, pulls, horizon)
    except BudgetError:
        return 0
    return 0 if ANY in plan.keep else int(plan.upto[-1])


# --- the budget: what the race may spend, and what is reserved to refit the winner ---


class SearchBudget(NamedTuple):
    """What is asked of the race, and what the refit may take."""

    race: dict[str, Any]  # as `race` takes it
    refit_cost: str
    reserved: int = 0  # pulls of the budget for the refit

    def announcement(self, search: Any) -> str:
        """Return what is printed about the refit before anything is spent."""
        whence = "on top of" if search.extra_refit else "of"
        return f"The refit of the winner on all rows takes {self.refit_cost} {whence} the budget."

    def refit_steps(self, search: Any, verdict: Verdict, name: str) -> float:
        """Return the steps of the refit: as many pulls as were reserved; inf: a full training."""
        if "full_steps" in self.race:
            return inf
        if search.extra_refit:
            return verdict.horizon if search.horizon is not None else verdict[name].pulls
        return self.reserved


def search_budget(search: Any, raced: SearchRace) -> SearchBudget:
    """Return how the budget of a search is shared out, by its settings."""
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
        return _in_pulls(search, len(raced.estimators))
    if search.horizon is not None:
        raise SettingError(
            f"horizon={search.horizon}, but that is for budget=: with trainings= or seconds= "
            "learners are compared at one full training"
        )
    if search.seconds is None:
        found = _in_trainings(search, raced)
    else:
        need_number("seconds", search.seconds)
        cost = "one full training" if search.extra_refit else "the time of its steps in the race"
        found = SearchBudget({"seconds": search.seconds}, cost)
    units = {"full_steps": raced.full_steps, "pulls_per_training": raced.pulls_per_training}
    return found._replace(race=found.race | units)


def refit_is_inside(search: Any) -> bool:
    """Return whether the refit is reserved from the budget."""
    return bool(search.refit) and not search.extra_refit


def _in_trainings(search: Any, raced: SearchRace) -> SearchBudget:
    trainings, reserved = search.trainings, int(refit_is_inside(search))
    whole = len(raced.in_one_step)  # each costs a full training, and is one pull of the race
    others = len(raced.estimators) - whole
    if trainings is None:
        trainings = reserved + whole + (max(LEAST, others / 2) if others else 0)
    need_number("trainings", trainings)
    left = trainings - reserved - whole
    if left < 0 or (others and not left > 0):
        raise BudgetError(_nothing_left(trainings, reserved, raced.in_one_step, others))
    return SearchBudget(
        {"trainings": left + whole / raced.pulls_per_training}, "one full training"
    )


def _nothing_left(trainings: float, reserved: int, whole: list[str], others: int) -> str:
    costs = []
    if reserved:
        costs.append("refit=True reserves one training to refit the winner")
    if whole:
        cost = f"{len(whole)} estimators train in one step and cost one training each"
        costs.append(f"{cost} ({', '.join(whole)})")
    needed = reserved + len(whole)
    return (
        f"trainings={trainings:g} leaves nothing for the race: {', and '.join(costs)}. Give "
        f"{f'more than {needed}' if others else needed}, set refit=False, or set extra_refit=True "
        "to refit on top of the budget."
    )


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
    # No learner is trained further than the refit, and all are compared where that ends.
    asked: dict[str, Any] = {"budget": budget - reserved, "horizon": horizon or reserved or None}
    if search.pulls_per_training is not None:
        asked["pulls_per_training"] = search.pulls_per_training  # which `race` refuses
    cost = f"{reserved or horizon} pulls" if reserved or horizon else "as many pulls as it had"
    return SearchBudget(asked, cost, reserved)


def _refit_pulls(policy: Any, arms: int, budget: int) -> int:
    """Return the pulls to reserve so that the refit can have as many as the winner had."""
    try:
        policy_for(policy, arms, budget, budget).plan(arms, budget, budget)
    except BudgetError:
        return 0  # too little for the race itself, which raises the error
    if not _last_level(policy, arms, budget, budget):  # any arm may have any number of pulls
        return round(REFIT_SHARE * budget)
    low, high = 1, budget  # pulls of the race
    while high - low > 1:
        middle = (low + high) // 2
        fits = middle + _last_level(policy, arms, middle, middle) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return budget - low
