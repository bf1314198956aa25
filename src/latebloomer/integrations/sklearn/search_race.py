"""The race of a search: its learners, all on the same splits, its budget, and the refit."""

import os
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib  # type: ignore[import-untyped]
from sklearn.base import is_classifier

from latebloomer import errors
from latebloomer._util.text import plain_repr, span_of_time
from latebloomer.core.ledger import ANY
from latebloomer.integrations.library_learner import at_least_1, own_folder
from latebloomer.integrations.sklearn import scoring, splits, training
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner, model_format
from latebloomer.policies.registry import policy_for
from latebloomer.racing import api, progress, training_share
from latebloomer.racing.journal import JournalFile, listing
from latebloomer.racing.learner import seed_of
from latebloomer.racing.race_state import Callback, RaceView
from latebloomer.racing.runners import contract, local
from latebloomer.racing.settings import need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import Event, ScoreReported

BATCH = 64  # rows of a pull, if pulls are counted
FOLDS = 5  # of cv=None, as in scikit-learn
LEAST = 2.0  # full trainings of a race by default, or half of one for each estimator
PULLS = 20, 100  # of a full training, at least and at most
EACH = 10  # pulls of each estimator that the budget is to be good for
REFIT_SHARE = 1 / 3  # of the pulls or the time of a policy that plans no levels
CHUNKS = 10  # parts of a refit that has to end in time
OVERTIME = 1.2  # times the time reserved for it that a refit may take
TICK = 1e-9  # no pull or step is shorter, in seconds
PASSED_ON = ("winner_share", "min_pulls", "stop")  # settings that `race` takes unchanged
EXTENDS = ("budget", "trainings", "seconds")  # a larger one extends the race of a journal


class NoneLearns(errors.AllFailed, ValueError, TypeError):
    """Every estimator has failed; the text has the reason of each.

    A `ValueError`, as in scikit-learn's searches: most often the data do not fit.
    """


class SearchRace:
    """The learners of one search, all on the same splits, and what became of them."""

    def __init__(self, search: Any, estimators: Any, X: Any, y: Any, given: Any) -> None:
        self.estimators: dict[str, Any] = estimators
        self.metrics = scoring.metrics_of(search)
        self._X, self._y = X, y = splits.checked_data(search, X, y)
        self._search, self._given = search, given
        self._params, scored, split = splits.routed_params(search, given, estimators, X)
        self.rows, self.seed = splits.row_count(y), splits.seed_from(search.random_state)
        cv, classifier = FOLDS if search.cv is None else search.cv, is_classifier(search)
        self._splits = splits.split_rows(X, y, cv, classifier, self.seed, "cv", split)
        self._folds = splits.folds_of(X, y, self._splits, {}, scored)
        self.n_splits = len(self._splits)
        # Rows of the refit compared with the rows that a step of the race trains on.
        self._refit_ratio = self.rows / sum(train.size for train, _ in self._splits)
        self._refit_is_inside = bool(search.refit) and not search.extra_refit
        self._batch = BATCH if search.batch is None and search.budget is not None else search.batch
        self._settings = {
            name: training.settings_for(one, y, self._batch, search.step, seed_of(self.seed, name))
            for name, one in estimators.items()
        }
        journal = search.journal if isinstance(search.journal, JournalFile) else JournalFile("")
        self._format = model_format(journal.checkpoint_format, journal.trusted)
        # Scores are kept next to the journal, or for as long as processes run.
        folder = None if self.runner.name == "local" else own_folder(self)
        if search.journal is not None:
            folder = Path(f"{os.fspath(search.journal)}.scores")
        self.notes = {
            name: scoring.Notes(folder and folder / f"{seed_of(0, name)}.json")
            for name in estimators
        }
        # Not trained, to ask what their steps are.
        self.examples = {name: self._learner(name, self._folds)() for name in estimators}
        self.in_one_step = [name for name, one in self.examples.items() if one.in_one_step]
        self.budget, self.refit_cost = self._shared_out()

    @property
    def has_journal(self) -> bool:
        """True if the race of a journal is resumed."""
        journal = self._search.journal
        return journal is not None and not listing.names_folder(journal) and Path(journal).exists()

    @cached_property
    def runner(self) -> contract.Runner:
        """Where pulls run: here for one job, on Ray for several; -1 means all cores."""
        n_jobs = self._search.n_jobs
        jobs = 1 if n_jobs is None else errors.need_whole("n_jobs", n_jobs)
        errors.require(jobs != 0, "n_jobs", n_jobs, "at least 1, or negative",
                "it is how many estimators train at once; -1 means all cores")  # fmt: skip
        jobs = joblib.effective_n_jobs(jobs)
        if jobs == 1:
            return local.LocalRunner(retries=0)
        from latebloomer.racing.runners.ray_runner import RayRunner

        return RayRunner(cores=jobs, retries=0)

    # --- learners ---

    def _learner(self, name: str, folds: list[splits.Fold]) -> Callable[[], SklearnLearner]:
        """Return a function that makes the learner of an estimator, in another process too."""
        settings, notes = self._settings[name], self.notes[name]
        parts = self.estimators[name], folds, settings, self.metrics, self._format, notes
        return lambda: SklearnLearner.made_of(parts)  # without `self`

    def _factories(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each estimator that makes its learner and says what it is."""
        made = {}
        for name, params in self._params.items():
            folds = [
                fold._replace(fit_params=splits.take_params(params, train, self.rows))
                for fold, (train, _) in zip(self._folds, self._splits, strict=True)
            ]
            made[name] = self._learner(name, folds)
            made[name].settings = self._described(name)  # type: ignore[attr-defined]
            made[name].full_steps = self.full_steps[name]  # type: ignore[attr-defined]
        return made

    def _described(self, name: str) -> dict[str, Any]:
        """Return what the journal keeps of a learner, to name what differs in another `fit`."""
        return training.settings_of(self.estimators[name]) | self._search_settings

    @cached_property
    def _search_settings(self) -> dict[str, Any]:
        """What the journal keeps of the search itself; estimators have settings of such names."""
        search, cv = self._search, self._search.cv
        if search.journal is None:
            return {}
        named = cv is None or isinstance(cv, int | float) or hasattr(cv, "split")
        return {
            "search data": str(joblib.hash((self._X, self._y, self._given)))[:12],
            "search cv": plain_repr(cv) if named else "splits",
            "search splits": str(joblib.hash(self._splits))[:12],
            "search random_state": self.seed,
            "search scoring": search.scoring, "search metric": self.metrics.leading,
            "search batch": self._batch, "search step": search.step,
        }  # fmt: skip

    # --- the race ---

    def run(self, callbacks: list[Callback]) -> Verdict:
        """Race, or resume the race of the journal."""
        search = self._search
        if search.seconds is not None and self._refit_is_inside:
            callbacks = [*callbacks, RefitReserve(search.seconds, self._refit_ratio)]
        how: dict[str, Any] = {
            "policy": search.policy, "runner": self.runner, "progress": bool(search.verbose),
            "callbacks": callbacks, "watch": search.watch,
        }  # fmt: skip
        passed_on = {name: getattr(search, name) for name in PASSED_ON}
        if self.has_journal:
            advice = "Give the same settings to resume it, or another journal."
            need_same(search.journal, self._recorded, passed_on, advice)
            asked = {name: self.budget[name] for name in EXTENDS if name in self.budget}
            return api.resume(search.journal, self._factories(), **asked, **how)
        ranges = {self.metrics.range_of(one) for one in self.estimators.values()}
        try:
            return api.race(
                self._factories(), **self.budget, **passed_on, **how, journal=search.journal,
                seed=self.seed, score_range=ranges.pop() if len(ranges) == 1 else None,
            )  # fmt: skip
        except errors.AllFailed as error:
            raise NoneLearns(str(error)) from error

    @cached_property
    def _recorded(self) -> Mapping[str, Any]:
        """The settings of the race in the journal; empty for a new race."""
        return race_in(self._search.journal).settings if self.has_journal else {}

    # --- the budget: what the race may spend, and what is reserved to refit the winner ---

    def _shared_out(self) -> tuple[dict[str, Any], str]:
        """Return the budget as `race` takes it, and what the refit costs, as text."""
        search = self._search
        errors.require(not search.extra_refit or search.refit, "extra_refit", search.extra_refit,
                "False with refit=False", "without a refit nothing is spent on one")  # fmt: skip
        given = {name: getattr(search, name) for name in EXTENDS}
        named = [f"{name}={value}" for name, value in given.items() if value is not None]
        if len(named) > 1:
            one = "trainings=3 (full trainings), budget=2000 (pulls) or seconds=600 (time)"
            raise errors.SettingError(f"{' and '.join(named)}, but a search has one budget: {one}")
        if search.budget is not None:
            return self._in_pulls()
        errors.require(search.horizon is None, "horizon", search.horizon, "omitted without budget",
                "otherwise learners are compared at one full training")  # fmt: skip
        cost, amount = "one full training", {"seconds": search.seconds}
        if search.seconds is None:
            amount = {"trainings": self._race_trainings()}
        elif not search.extra_refit:
            cost = "the time of its steps in the race"
        units = {"full_steps": self.full_steps, "pulls_per_training": self.pulls_per_training}
        return amount | units, cost

    @cached_property
    def pulls_per_training(self) -> int:
        """Number of pulls in a full training."""
        search = self._search
        if search.pulls_per_training is not None:
            return at_least_1("pulls_per_training", search.pulls_per_training, training.WHY)
        recorded = self._recorded.get("pulls_per_training")
        if recorded is not None:
            return int(recorded)
        # Few: a call of `fit` with warm_start may cost as much as several trees.
        few, most = PULLS
        wanted = EACH * len(self.examples) / (search.trainings or inf)
        pulls = most if search.seconds is not None else min(most, max(few, ceil(wanted)))
        steps = [one.full_steps for one in self.examples.values() if not one.in_one_step]
        shortest = min(steps, default=pulls)
        return shortest if training_share.FEWEST <= shortest < pulls else pulls

    @cached_property
    def full_steps(self) -> dict[str, int]:
        """Number of steps in each estimator's full training, by what it declares.

        Each pull of an estimator that is trained in one step asks for a step: it has finished
        after the first.
        """
        return {
            name: self.pulls_per_training if one.in_one_step else one.full_steps
            for name, one in self.examples.items()
        }

    def _race_trainings(self) -> float:
        """Return the full trainings of the race, without the refit's.

        An estimator that is trained in one step costs a full training, and is one pull of the
        race.
        """
        trainings, whole = self._search.trainings, len(self.in_one_step)
        others = len(self.estimators) - whole
        costs = ["the refit of the winner"] * self._refit_is_inside + self.in_one_step
        if trainings is None:
            trainings = len(costs) + (max(LEAST, others / 2) if others else 0)
        errors.need_in("trainings", trainings, "(0, inf)", "it is the budget, in full trainings")
        left = trainings - len(costs)
        if left < 0 or (others and not left > 0):
            *rest, last = costs
            several = f"{', '.join(rest)} and {last} take one full training each"
            reserved = several if rest else f"{last} takes one full training"
            needed = f"{'more than ' * bool(others)}{len(costs)}"
            raise _nothing_left(f"trainings={trainings:g}", reserved, needed)
        return float(left + whole / self.pulls_per_training)

    def _in_pulls(self) -> tuple[dict[str, Any], str]:
        search = self._search
        budget, horizon = errors.need_whole("budget", search.budget), search.horizon
        reserved = 0
        if self._refit_is_inside:
            reserved = horizon or _refit_pulls(search.policy, len(self.estimators), budget)
            if reserved >= budget:
                why = f"refit=True reserves {reserved} pulls to refit the winner"
                raise _nothing_left(f"budget={budget}", why, "more")
        # No learner is trained further than the refit, and all are compared where that ends.
        level = horizon or reserved or None
        asked: dict[str, Any] = {"budget": budget - reserved, "horizon": level}
        asked["pulls_per_training"] = search.pulls_per_training  # which `race` refuses
        return asked, f"{level} pulls" if level else "as many pulls as it had"

    # --- the refit ---

    def refit(self, name: str, verdict: Verdict) -> SklearnLearner | None:
        """Return a fresh clone of an estimator, trained on all rows, or None if time is short."""
        search, one = self._search, verdict[name]
        fold = splits.Fold(self._X, self._y, fit_params=self._params[name])
        learner = self._learner(name, [fold])()
        made = one.pulls if one.steps is None else one.steps
        pace = self._refit_ratio * one.seconds / max(1, made)
        steps, least, seconds = self._refit_steps(learner, one.pulls, verdict.horizon), 0, inf
        if search.seconds is not None and self._refit_is_inside and name == verdict.name:
            left = search.seconds - verdict.seconds
            steps, least = min(steps, max(made, int(left / max(pace, TICK)))), made
            seconds = OVERTIME * left
        if search.verbose:
            about = span_of_time(steps * pace)
            progress.print_aside(f"refitting {name} on all {self.rows:,} rows, about {about}")
        until = perf_counter() + seconds
        chunk = steps if seconds == inf else -(-steps // CHUNKS)
        if steps * pace <= seconds:
            while learner.steps < steps and not learner.finished and perf_counter() < until:
                learner.train(min(chunk, steps - learner.steps))
        if learner.finished or learner.steps >= max(1, least):
            return learner
        warnings.warn(
            f"The time left was too short to refit {name}: best_estimator_ is the model of the "
            f"race, trained on the training rows only ({made} steps). Give more seconds, or set "
            "refit=False or extra_refit=True.",
            RuntimeWarning, stacklevel=2,
        )  # fmt: skip
        return None

    def _refit_steps(self, learner: SklearnLearner, pulls: int, horizon: int) -> int:
        """Return a full training's steps; if pulls are counted, those reserved or the winner's."""
        search = self._search
        if search.budget is None:
            return learner.full_steps
        if not search.extra_refit:
            return int(search.budget - self.budget["budget"])
        return pulls if search.horizon is None else horizon


def _nothing_left(given: str, reserved: str, needed: str) -> errors.BudgetError:
    cure = f"Give {needed}, set refit=False, or set extra_refit=True to refit on top of it."
    return errors.BudgetError(f"{given} leaves nothing for the race: {reserved}. {cure}")


class RefitReserve:
    """Keeps time of a race to refit its leader, by the pace that was measured.

    The race of `seconds` is planned for R seconds less. Let the winner end with a fraction f of
    the T pulls, each of p seconds, and a pull take q seconds on average; then R = r p f T with r
    rows of the refit for a row of the race, and T = spent + (time left - R) / q.
    """

    def __init__(self, seconds: float, ratio: float) -> None:
        self._seconds, self._ratio = seconds, ratio
        self._times: dict[int, list[float]] = defaultdict(list)  # of the pulls of each arm
        self._looked_at = -inf

    def __call__(self, event: Event, view: RaceView) -> None:
        """Take note of a pull, and reserve time."""
        if not isinstance(event, ScoreReported):
            return
        # The first time also the pulls of earlier processes.
        for pull in [event] if self._times else view.events():
            if isinstance(pull, ScoreReported):
                self._times[pull.arm].append(pull.seconds)
        if view.elapsed - self._looked_at >= self._seconds / 100:
            view.reserve(self._needed(view))
            self._looked_at = view.elapsed

    def _needed(self, view: RaceView) -> float:
        leader, left = view.standings()[0].arm, self._seconds - view.elapsed
        mean = max(TICK, view.elapsed / view.spent)  # with what is between pulls, and at once
        times = self._times.get(leader, [mean])
        pace = sum(times) / len(times) * self._ratio
        # The winner's share of the pulls, by the policy's plan for them.
        pulls = round(view.spent + left / mean / 1.5)
        horizon = view.settings.pulls_per_training
        level = _last_level(view.settings.policy, len(view.names), pulls, horizon or pulls)
        share = level / pulls if level else REFIT_SHARE
        weight = share * pace / mean
        needed = (pace * share * view.spent + weight * left) / (1 + weight)
        return min(pace * (horizon or inf), max(needed, pace * view.pulls[leader]))


def _last_level(policy: Any, arms: int, pulls: int, horizon: int) -> int | None:
    """Return the pulls that the winner has at the end; 0 if the policy does not plan them.

    None if there are too few pulls for a race.
    """
    try:
        plan = policy_for(policy, arms, pulls, horizon).plan(arms, pulls, horizon)
    except errors.BudgetError:
        return None
    return 0 if ANY in plan.keep else int(plan.upto[-1])


def _refit_pulls(policy: Any, arms: int, budget: int) -> int:
    """Return the pulls to reserve so that the refit can have as many as the winner had."""

    def total(pulls: int) -> int:
        return pulls + (_last_level(policy, arms, pulls, pulls) or 0)

    level = _last_level(policy, arms, budget, budget)
    if not level:  # too few for the race, which raises the error; or any arm may have any number
        return 0 if level is None else round(REFIT_SHARE * budget)
    return budget - 1 - bisect_right(range(2, budget), budget, key=total)
