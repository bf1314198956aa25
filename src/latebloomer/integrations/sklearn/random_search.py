"""`RaceRandomSearchCV` races many settings of one estimator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.integrations.sklearn.base_search import BaseRaceSearch
from latebloomer.integrations.sklearn.results_tables import Table, cv_results_table
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.integrations.sklearn.training.model_kinds import model_class
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.arm_views import NUMBERED

ALL = "all"  # candidates of a grid


@dataclass(eq=False, repr=False)
class RaceRandomSearchCV(BaseRaceSearch):
    """Race many settings of one estimator under one budget and refit the best one.

    As scikit-learn's `RandomizedSearchCV` and `HalvingRandomSearchCV`, but by iterations, and each
    candidate continues from where it was instead of starting again. From lists alone candidates
    are drawn without repetition, and `n_iter="all"` is the whole grid.

    A race compares models; many settings of one model are better found by Optuna with its
    `MedianPruner`, which proposes settings. With 40 candidates of LightGBM at equal CPU time, this
    search is level with random search, and .0042 ± .0003 of test AUC behind Optuna.

    The budget and the refit are as in `RaceSearchCV`. `cv_results_` has a row for each candidate:
    `rank_test_score` (1 for the winner, then the candidates that stayed to the end, then by the
    level at which they were dropped), `n_resources` (steps of training: epochs, trees),
    `dropped_at` (the level, in the candidate's own pulls; nan for those that stayed).
    `mean_test_score` is the latest score of each, so compare scores within one level.

    Parameters
    ----------
    estimator : Any
        A scikit-learn estimator or pipeline.
    param_distributions : Any
        A dict of settings and lists or distributions, or a list of such dicts.
    n_iter : int | str
        Number of candidates to draw, or "all" of a grid.
    trainings : float | None
        Budget in full trainings.
    seconds : float | None
        Budget in seconds of wall-clock time.
    budget : int | None
        Budget in pulls.
    policy : Any
        Rule that decides which estimator trains next and which is dropped, as in `race`.
    scoring : Any
        Metric, as in scikit-learn; several need `refit`. Default: the estimators' own score.
    cv : Any
        Held-out rows: a share (0.2), a number of folds, a splitter, or splits.
    horizon : int | None
        Number of pulls per estimator at which estimators are compared, with `budget`.
    winner_share : float
        Fraction of the race's budget reserved for training the winner after it is selected.
    min_pulls : int | None
        Number of pulls every estimator gets before any can be dropped, as in `race`.
    pulls_per_training : int | None
        Number of pulls in a full training. Default: 20, up to 100 so that the budget is good for
        10 pulls of each, 100 with `seconds`; or the steps of the shortest training if these are
        fewer and at least 10.
    refit : bool | str | Callable[[Table], int]
        Whether to train the winner again on all rows; with several metrics, the name of the one
        that decides the race; or a function of the table of results that returns the row to keep.
    extra_refit : bool
        Whether the refit is on top of the budget.
    best_iteration : bool | None
        Whether the best model has as many iterations as scored best on the held-out rows, instead
        of a full training. Default: if its estimator asks to stop early
        (`early_stopping_rounds=20`, `early_stopping=True`).
    ensemble : bool
        Whether to predict by half the winner and half a weighted mean of all models as trained in
        the race (`ensemble_weights_`), which are kept until its end.
    batch : int | None
        Rows of a step, for estimators with `partial_fit`.
    step : int
        Trees or iterations of a step, for the others.
    return_train_score : bool
        Whether to score the training rows as well, for the tables.
    random_state : Any
        Seed for data splits, row order, estimators, and candidates that are drawn.
    n_jobs : int | None
        Number of estimators trained at the same time, with Ray; -1 means all cores.
    threads : int | None
        Number of native threads that BLAS and OpenMP may start in this process during `fit`.
        Small estimators are often faster with 1. An estimator's own `n_jobs` is not changed.
        Default: the libraries decide.
    journal : Any
        File that records every pull; `fit` resumes or extends the race that it holds. A
        `JournalFile` also says how checkpoints are written.
    verbose : bool
        Whether to show the race.
    watch : bool
        Whether to serve a live page of the race; needs a journal.
    callbacks : Any
        Functions called with every event, as in `race`.
    stop : str | None
        "certified" ends the race once its winner is certified.

    Raises
    ------
    LearnerError
        The estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every candidate fails.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"alpha": [1e-4, 1e-2, 100], "penalty": ["l2", "l1"]}
    >>> search = RaceRandomSearchCV(
    ...     SGDClassifier(max_iter=50), grid, n_iter="all", trainings=3, random_state=0
    ... ).fit(X, y)
    >>> search.best_params_["alpha"] < 100, search.cv_results_["rank_test_score"].min()
    (True, np.int64(1))
    """

    estimator: Any
    param_distributions: Any
    n_iter: int | str = 10

    def _given(self) -> dict[str, Any]:
        return {"estimator": self.estimator}

    def _raced(self) -> dict[str, Any]:
        model_class(self.estimator)  # raises an error unless it is an estimator
        self._candidates = drawn_params(self.param_distributions, self.n_iter, self.random_state)
        return with_params(self.estimator, self._candidates)

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.cv_results_ = cv_results_table(verdict, raced, self._candidates)
        return self.cv_results_

    @property
    def best_params_(self) -> dict[str, Any]:
        """Settings of the best candidate."""
        return dict(self.cv_results_["params"][self.best_index_])


# --- settings of one estimator ---


def drawn_params(distributions: Any, n_iter: Any, random_state: Any) -> list[dict[str, Any]]:
    """Return the settings that race: drawn as scikit-learn draws them, or a whole grid."""
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    try:
        lists = [{k: v for k, v in space.items() if not hasattr(v, "rvs")} for space in spaces]
        size = len(ParameterGrid(lists))  # checks the lists
    except (AttributeError, TypeError, ValueError) as error:
        needed = "a dict of settings and lists or distributions, or a list of such dicts"
        raise SettingError(
            f"param_distributions={brief(distributions)}, but param_distributions must be "
            f"{needed}: {error}"
        ) from None
    endless = sum(map(len, lists)) < sum(map(len, spaces))
    require(
        not isinstance(n_iter, str) or (n_iter == ALL and not endless),
        "n_iter",
        n_iter,
        "an integer, or 'all' of lists of values",
        "a distribution has no end",
    )
    wanted = size if n_iter == ALL else need_whole("n_iter", n_iter)
    require(wanted >= 2, "n_iter", wanted, "at least 2", "with one there is nothing to choose")
    require(
        endless or wanted <= size,
        "n_iter",
        wanted,
        f"at most {size}, or 'all'",
        "there are no more settings in the lists",
    )
    return list(ParameterSampler(spaces, wanted, random_state=random_state))


def with_params(estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a clone of an estimator for each candidate, by the candidate's number.

    >>> from sklearn.svm import SVC
    >>> list(with_params(SVC(), [{"C": 1}, {"C": 10}]))
    ['#0', '#1']
    """
    clones = [clone(estimator).set_params(**clone(params, safe=False)) for params in candidates]
    return {f"{NUMBERED}{k}": one for k, one in enumerate(clones)}
