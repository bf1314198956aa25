"""The learners of a search, all on the same splits, and their race."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import is_classifier, is_regressor

from latebloomer import errors
from latebloomer._util.text import plain_repr
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn import splits
from latebloomer.integrations.sklearn.metadata_routing import routed_params
from latebloomer.integrations.sklearn.metrics import metrics_of
from latebloomer.integrations.sklearn.model_files import model_format
from latebloomer.integrations.sklearn.raw_frames import need_encoders
from latebloomer.integrations.sklearn.refit_reserve import RefitReserve
from latebloomer.integrations.sklearn.search_budget import refit_is_inside, search_budget
from latebloomer.integrations.sklearn.sklearn_learner import LearnerParts, SklearnLearner
from latebloomer.integrations.sklearn.training.estimators import settings_of
from latebloomer.integrations.sklearn.training.fold_model import settings_for
from latebloomer.racing.callbacks import Callback
from latebloomer.racing.journal import new_names
from latebloomer.racing.journal.journal_file import JournalFile
from latebloomer.racing.learners.entries import seed_of
from latebloomer.racing.request import RaceRequest, ResumeRequest, Rules, RunOptions
from latebloomer.racing.run_race import resume_race, start_race
from latebloomer.racing.runners import local
from latebloomer.racing.runners.runner import Runner
from latebloomer.racing.same_race import holds_race, need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.base_search import BaseRaceSearch

BATCH = 64  # rows in a pull, if the budget is in pulls
FOLDS = 5  # number of folds for cv=None, as in scikit-learn
COMPARED = ("winner_share", "min_pulls", "stop")  # settings that must equal those in the journal


class NoneLearns(errors.AllFailed, ValueError, TypeError):
    """Every estimator has failed; the message has the reason of each.

    It is a `ValueError`, as in scikit-learn's searches, because the cause is usually the data.
    """


@dataclass(frozen=True)
class LearnerFactory:
    """Build the learner of an estimator, also in another process, and describe it."""

    parts: LearnerParts
    # Description of the learner for the journal.
    settings: dict[str, Any] = field(default_factory=dict)
    full_steps: int | None = None
    keep: Callable[[SklearnLearner], None] | None = None  # called with each new learner

    def __call__(self) -> SklearnLearner:
        """Return a new learner."""
        learner = SklearnLearner.from_parts(self.parts)
        if self.keep is not None:
            self.keep(learner)
        return learner


class SearchRace:
    """The race of one search: its learners, which all use the same splits."""

    def __init__(
        self,
        search: "BaseRaceSearch",
        estimators: dict[str, Any],
        X: Any,
        y: Any,
        fit_params: splits.Params,
    ) -> None:
        new_names.check_journal_options(search.journal, "resume")
        self.search, self.estimators = search, estimators
        self.metrics = metrics_of(search)
        self._X, self.y = X, y = splits.checked_data(search, X, y)
        need_encoders(X, estimators)
        self._fit_params = fit_params
        self._params, scored, split = routed_params(search, fit_params, estimators, X)
        self.rows, self.seed = splits.row_count(y), splits.seed_from(search.random_state)
        cv, classifier = FOLDS if search.cv is None else search.cv, is_classifier(search)
        self._splits = splits.split_rows(X, y, cv, classifier, self.seed, "cv", split)
        groups = split.get("groups")
        units = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        self.folds = splits.folds_of(X, y, self._splits, {}, scored, units)
        self.n_splits = len(self._splits)
        for name in ("ensemble", "extra_refit", "return_train_score"):
            errors.need_flag(name, getattr(search, name), "True or False")
        if search.ensemble:
            need_one_target(search, y)
        self.classes = np.unique(np.asarray(y)) if is_classifier(search) else None
        self._kept: dict[str, SklearnLearner] = {}  # learners trained in this process, by name
        # Number of rows of the refit divided by the number of training rows in the race.
        self.refit_ratio = self.rows / sum(train.size for train, _ in self._splits)
        self._batch = BATCH if search.batch is None and search.budget is not None else search.batch
        journal = search.journal if isinstance(search.journal, JournalFile) else JournalFile("")
        self._checkpoints = model_format(journal.checkpoint_format, journal.trusted)
        self._settings = {
            name: settings_for(
                model,
                y,
                self._batch,
                search.step,
                seed_of(self.seed, name),
                search.best_iteration,
            )
            for name, model in estimators.items()
        }
        # Untrained learners of one fold, used only to read the length of their steps.
        self.examples = {name: self._factory(name, self.folds[:1])() for name in estimators}
        self.budget = search_budget(search, self.examples, self._recorded)
        self.refit_reserve: RefitReserve | None = None  # set if the refit must end in time
        if search.seconds is not None and refit_is_inside(search):
            in_one_step = {name for name, learner in self.examples.items() if learner.in_one_step}
            self.refit_reserve = RefitReserve(search.seconds, self.refit_ratio, in_one_step)

    @property
    def has_journal(self) -> bool:
        """True if the journal already holds a race, which is then resumed."""
        journal = self.search.journal
        return not new_names.names_folder(journal) and holds_race(journal)

    @cached_property
    def runner(self) -> Runner:
        """The runner: this process for one job, Ray for several; -1 means all cores."""
        n_jobs = self.search.n_jobs
        jobs = 1 if n_jobs is None else errors.need_whole("n_jobs", n_jobs)
        errors.require(
            jobs != 0,
            "n_jobs",
            n_jobs,
            "at least 1, or negative",
            "it is how many estimators train at once; -1 means all cores",
        )
        jobs = joblib.effective_n_jobs(jobs)
        if jobs == 1:
            return local.LocalRunner(retries=0, threads=self.search.threads)
        from latebloomer.racing.runners.ray_runner import RayRunner

        return RayRunner(cores=jobs, retries=0)

    # --- learners ---

    def _factory(self, name: str, folds: list[splits.Fold]) -> LearnerFactory:
        """Return the factory of an estimator's learner."""
        return LearnerFactory(
            LearnerParts(
                self.estimators[name],
                folds,
                self._settings[name],
                self.metrics,
                self._checkpoints,
            )
        )

    def _factories(self) -> dict[str, LearnerFactory]:
        """Return the factory of each estimator's learner, in the order of the race.

        Learners that are trained in one step come first, because one pull shows their whole cost.
        """
        full_steps = self.budget.full_steps or {}
        factories = {}
        for name in sorted(self._params, key=lambda name: not self.examples[name].in_one_step):
            params = self._params[name]
            folds = [
                fold._replace(fit_params=splits.take_params(params, train, self.rows))
                for fold, (train, _) in zip(self.folds, self._splits, strict=True)
            ]
            factories[name] = replace(
                self._factory(name, folds),
                settings=self._described(name),
                full_steps=full_steps.get(name),
                keep=partial(self._kept.__setitem__, name) if self._keeps_learners else None,
            )
        return factories

    @property
    def _keeps_learners(self) -> bool:
        """True if learners are trained in this process and are needed after the race."""
        return bool(self.search.ensemble) and self.runner.name == "local"

    def trained(self, name: str, verdict: Verdict) -> SklearnLearner:
        """Return a learner in its state after its last pull in the race.

        If it was trained in another process, it is restored from its checkpoint or trained again.
        """
        kept = self._kept.get(name)
        if kept is not None and kept.score == verdict[name].score:
            return kept
        restored: SklearnLearner = verdict.load(name)
        return restored

    def why_no_row_scores(self) -> str | None:
        """Return why scores of this search cannot be taken apart by row; None if they may be."""
        if any(fold.held is None for fold in self.folds):
            return "cv holds rows out more than once, or in their order in time"
        if any(fold.score_params for fold in self.folds):
            return "the scores are weighted"
        if self.metrics.is_users_own:
            return "scoring is a function of your own, which gives one number for all rows"
        if sum(splits.row_count(fold.y_val) for fold in self.folds) == 1:
            return "there is one validation row"
        return None

    def learner_of_all_rows(self, name: str) -> SklearnLearner:
        """Return an untrained learner for the refit of an estimator."""
        fold = splits.Fold(self._X, self.y, fit_params=self._params[name])
        return self._factory(name, [fold])()

    def _described(self, name: str) -> dict[str, Any]:
        """Return a learner's description for the journal, which a later `fit` compares."""
        return settings_of(self.estimators[name]) | self._search_settings

    @cached_property
    def _search_settings(self) -> dict[str, Any]:
        """The search's own settings for the journal; their names begin with "search"."""
        search, cv = self.search, self.search.cv
        if search.journal is None:
            return {}
        named = cv is None or isinstance(cv, int | float) or hasattr(cv, "split")
        return {
            "search data": str(joblib.hash((self._X, self.y, self._fit_params)))[:12],
            "search cv": plain_repr(cv) if named else "splits",
            "search splits": str(joblib.hash(self._splits))[:12],
            "search random_state": self.seed,
            "search scoring": search.scoring,
            "search metric": self.metrics.leading,
            "search batch": self._batch,
            "search step": search.step,
            "search best_iteration": search.best_iteration,
        }

    # --- the race ---

    @cached_property
    def _place(self) -> Any:
        """The journal; a temporary one if learners trained elsewhere are needed here."""
        if self.search.journal is None and self.search.ensemble and not self._keeps_learners:
            return own_folder(self) / "race.db"
        return self.search.journal

    def run(self, callbacks: list[Callback]) -> Verdict:
        """Run the race, or resume the race of the journal."""
        search = self.search
        if self.refit_reserve is not None:
            callbacks = [*callbacks, self.refit_reserve]
        options = RunOptions(
            runner=self.runner,
            progress=bool(search.verbose),
            callbacks=callbacks,
            watch=search.watch,
        )
        learners, budget = self._factories(), self.budget.race
        if self.has_journal:
            advice = "Give the same settings to resume it, or another journal."
            asked = {name: getattr(search, name) for name in COMPARED}
            if search.min_pulls is None:
                asked.pop("min_pulls")
            need_same(search.journal, self._recorded, asked, advice)
            more = budget.amount_alone()
            again = ResumeRequest(
                learners=learners, budget=more, policy=search.policy, options=options
            )
            return resume_race(search.journal, again)
        rules = Rules(
            policy=search.policy,
            seed=self.seed,
            winner_share=search.winner_share,
            min_pulls=self.budget.min_pulls,
            score_range=self._score_range(),
            stop=search.stop,
        )
        request = RaceRequest(learners=learners, budget=budget, rules=rules, options=options)
        try:
            verdict = start_race(request, self._place)
        except errors.AllFailed as error:
            raise NoneLearns(str(error)) from error
        if search.journal is None:  # a temporary journal cannot be resumed
            verdict = replace(verdict, journal=None)
        return verdict

    def _score_range(self) -> tuple[float | None, float | None] | None:
        """Return the range of the scores, if it is the same for all estimators."""
        ranges = {self.metrics.range_of(model) for model in self.estimators.values()}
        return ranges.pop() if len(ranges) == 1 else None

    @cached_property
    def _recorded(self) -> Mapping[str, Any]:
        """The settings of the race in the journal; empty for a new race."""
        return race_in(self.search.journal).settings if self.has_journal else {}


def need_one_target(search: "BaseRaceSearch", y: Any) -> None:
    """Raise a `SettingError` if predictions of several estimators cannot be averaged."""
    kinds = is_classifier(search) or is_regressor(search)
    if not kinds or np.ndim(y) != 1:
        what = f"y has the shape {np.shape(y)}" if kinds else "these are neither"
        raise errors.SettingError(
            f"ensemble=True needs classifiers or regressors of one target, but {what}. Set "
            "ensemble=False."
        )
