"""`RaceSearchCV` races estimators that you name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import is_classifier, is_regressor

from latebloomer.errors import LearnerError, SettingError, require
from latebloomer.integrations.sklearn.base_search import BaseRaceSearch
from latebloomer.integrations.sklearn.results_tables import Table, results_table
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.integrations.sklearn.training.model_kinds import model_class
from latebloomer.racing.verdict.verdict import Verdict


@dataclass(eq=False, repr=False)
class RaceSearchCV(BaseRaceSearch):
    """Race estimators under one budget and, by default, refit the best one on all rows.

    Each pull trains one estimator a little more (`SklearnLearner`); estimators that fall behind
    are dropped, the others keep what they have learned.

    Give one budget. `trainings=3` is worth three full trainings, by what each estimator declares
    (`max_iter` epochs, `n_estimators` trees, one pass over the rows): a pull is the same fraction
    of each. `seconds=600` is time. `budget=2000` counts pulls, each a batch of `batch` rows (64)
    or `step` trees. Default: .6 of a training for each estimator, at least 2, and one for the
    refit; more if a learner would be dropped before it has three pulls and a tenth of its
    training. With fewer `trainings`, `fit` warns of drops before that.

    An estimator that trains in one step (k-nearest neighbors, a tree, a kernel machine) is trained
    first and has finished after one pull. With `trainings` it is charged that pull, with `seconds`
    the time it takes.

    `refit=True` trains a fresh clone of the winner on all rows, as in scikit-learn. The budget
    pays for it, and its cost is reserved first: one full training, the time of one by the measured
    pace (at most half of all), or as many pulls as the winner had (`horizon`, if given).
    `extra_refit=True` spends it on top of the budget, and `refit_pulls_` is its cost. If the time
    is too short after all, the search warns and keeps the model of the race; `refit_kind_` is
    "refit" or "race". With `refit=False` the winner stays as the race trained it:
    `winner_share=0.3` reserves that share of the budget for it.

    With a journal, `fit` resumes the race that the file holds; a larger budget extends it, and
    more estimators join it.

    Parameters
    ----------
    estimators : Any
        A dict of names and estimators, a list of pairs, or bare estimators, named by their class.
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
        An estimator is a class, has no `fit`, or stops its training itself.
    NoneLearns
        In `fit`: every estimator fails.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"bayes": GaussianNB(), "linear": SGDClassifier(alpha=10)}
    >>> search = RaceSearchCV(models, trainings=2, random_state=0).fit(X, y)
    >>> search.best_name_, search.verdict_.spent, search.refit_pulls_  # one training each
    ('bayes', 12, 12)
    >>> search.predict(X[:3])
    array([0, 0, 0])
    """

    estimators: Any

    compares_models: ClassVar[bool] = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings; with `deep` also `name` and `name__setting` of every estimator."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, estimator in named_estimators(self.estimators) if deep else []:
            params[name] = estimator
            if hasattr(estimator, "get_params") and not isinstance(estimator, type):
                inner = estimator.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set settings, whole estimators by name, or an estimator's by `name__setting`."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        for name in dict(named_estimators(self.estimators)).keys() & params.keys():
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    def _given(self) -> dict[str, Any]:
        return dict(named_estimators(self.estimators))

    def _raced(self) -> dict[str, Any]:
        return checked_estimators(self.estimators, set(self.get_params(deep=False)))

    def _publish(self, verdict: Verdict, raced: SearchRace) -> Table:
        self.results_ = results_table(verdict, raced)
        return self.results_

    @property
    def best_name_(self) -> str:
        """Name of the best estimator."""
        return str(self.results_["name"][self.best_index_])

    @property
    def best_params_(self) -> dict[str, Any]:
        """Name of the best estimator, and its settings."""
        return {"name": self.best_name_, **self.results_["params"][self.best_index_]}


# --- estimators as a dict, a list of pairs or a bare list, and their names ---


def named_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """Return names and estimators in whatever form they are given; bare ones get their class's.

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
    names = [
        f"{kind}-{kinds[: k + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for k, kind in enumerate(kinds)
    ]
    return list(zip(names, estimators, strict=True))


def with_replaced(estimators: Any, name: str, new: Any) -> Any:
    """Return the same collection with another estimator under a name; the given one stays."""
    pairs = [(key, new if key == name else old) for key, old in named_estimators(estimators)]
    if isinstance(estimators, Mapping):
        return dict(pairs)
    if all(isinstance(item, tuple) for item in estimators):
        return pairs
    return [estimator for _, estimator in pairs]


def checked_estimators(estimators: Any, reserved: set[str]) -> dict[str, Any]:
    """Return the estimators by name; raise an error unless all can race against each other."""
    pairs = named_estimators(estimators)
    require(
        len(pairs) >= 2,
        "estimators",
        estimators,
        "at least 2",
        "a dict of names and estimators, a list of such pairs or of estimators",
    )
    names = [name for name, _ in pairs]
    for name in names:
        text = isinstance(name, str) and name.strip() and "__" not in name
        if not text or name in reserved or names.count(name) > 1:
            needed = "text without '__' that no other estimator or setting of the search has"
            raise SettingError(f"an estimator is called {name!r}, but a name must be {needed}")
    for name, estimator in pairs:
        try:
            model_class(estimator)
        except LearnerError as error:
            raise LearnerError(f"estimator {name!r}: {error}") from None
    kinds = {name: _kind(estimator) for name, estimator in pairs}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is a {kind}" for name, kind in kinds.items())
        why = "but their scores must be comparable: race one kind at a time"
        raise SettingError(f"estimators are of different kinds ({listed}), {why}")
    return dict(pairs)


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"
