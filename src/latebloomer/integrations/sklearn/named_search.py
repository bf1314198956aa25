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

    Each pull trains one estimator a little more (`SklearnLearner`). Estimators that fall behind
    are dropped; the others keep what they have learned.

    Give one budget. `trainings=3` is worth three full trainings. A full training is what the
    estimator declares (`max_iter` epochs, `n_estimators` trees, or one pass over the rows), and a
    pull is the same fraction of each full training. `seconds=600` is wall-clock time.
    `budget=2000` is a number of pulls, each of `batch` rows (64) or `step` trees. Default: .6 full
    trainings for each estimator, at least 2 in total, and one more for the refit. The default is
    larger if a learner would otherwise be dropped before it has had three pulls and a tenth of its
    training. If your `trainings` lead to such early drops, `fit` warns.

    An estimator that trains in one step (k-nearest neighbors, a tree, a kernel machine) is trained
    first and has finished after one pull. It costs that pull with `trainings`, and the time of its
    training with `seconds`.

    `refit=True` trains a fresh clone of the winner on all rows, as in scikit-learn. The budget
    pays for this refit, and the search reserves its cost first: one full training with
    `trainings`; the time of one full training at the measured pace, at most half of the time, with
    `seconds`; as many pulls as the winner had, or `horizon` pulls if it is set, with `budget`.
    `extra_refit=True` adds this cost to the budget instead; `refit_pulls_` is the cost. If the
    time turns out to be too short, the search warns and keeps the model of the race; `refit_kind_`
    is "refit" or "race". With `refit=False`, the best estimator is the winner's model from the
    race, and `winner_share=0.3` reserves 30 % of the budget to train that model further.

    With a journal, `fit` resumes the race in that file. A larger budget extends the race, and new
    estimators join it.

    Parameters
    ----------
    estimators : Any
        A dict of names and estimators, a list of pairs (name, estimator), or a list of estimators,
        which are then named after their classes.
    trainings : float | None
        Budget in full trainings.
    seconds : float | None
        Budget in seconds of wall-clock time.
    budget : int | None
        Budget in pulls.
    policy : Any
        Rule that decides which estimator is trained next and which is dropped, as in `race`.
    scoring : Any
        Metric, as in scikit-learn; with several metrics, `refit` names the one that decides.
        Default: the `score` method of the estimators.
    cv : Any
        Held-out rows: a share of the rows such as 0.2, a number of folds, a splitter, or splits.
    horizon : int | None
        Number of pulls per estimator at which estimators are compared; only with `budget`.
    winner_share : float
        Fraction of the race's budget reserved for training the winner after it is selected.
    min_pulls : int | None
        Number of pulls every estimator gets before any can be dropped. Default: as in `race`;
        `RaceSearchCV` gives 3 if its `trainings` pay for 7 pulls of each estimator.
    pulls_per_training : int | None
        Number of pulls in a full training. Default: 20, or more (at most 100) if the budget would
        otherwise have fewer than 10 pulls per estimator; 100 with `seconds`. If the shortest full
        training has fewer steps, but at least 10, the default is its number of steps.
    refit : bool | str | Callable[[Table], int]
        Whether to train the winner again on all rows. With several metrics, the name of the metric
        that decides the race. Or a function of the table of results that returns the number of the
        row to keep.
    extra_refit : bool
        Whether the cost of the refit is added to the budget instead of paid from it.
    best_iteration : bool | None
        Whether the best model is trained for the number of iterations with the best held-out
        score, instead of a full training. Default: True if its estimator has a setting for early
        stopping (`early_stopping_rounds=20`, `early_stopping=True`).
    ensemble : bool
        Whether predictions are half the winner's and half a weighted mean (`ensemble_weights_`) of
        the predictions of all models of the race. All models are then kept until the race ends.
    batch : int | None
        Number of rows in a step, for estimators with `partial_fit`.
    step : int
        Number of trees or iterations in a step, for the other estimators.
    return_train_score : bool
        Whether to score the training rows, too, for the tables of results.
    random_state : Any
        Seed for data splits, row order, estimators and the drawing of candidates.
    n_jobs : int | None
        Number of estimators trained at the same time, with Ray; -1 means all cores.
    threads : int | None
        Number of native threads that BLAS and OpenMP may start in this process during `fit`.
        Small estimators are often faster with 1. The `n_jobs` of an estimator is not changed.
        Default: the libraries decide.
    journal : Any
        File that records every pull; `fit` resumes or extends the race in it. A `JournalFile` also
        sets how checkpoints are written.
    verbose : bool
        Whether to show the race while it runs.
    watch : bool
        Whether to serve a live page of the race; needs a journal.
    callbacks : Any
        Functions called with every event, as in `race`.
    stop : str | None
        "certified" ends the race as soon as the winner is certified.

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
        """Return all settings; if `deep`, also `name` and `name__setting` of every estimator."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, estimator in named_estimators(self.estimators) if deep else []:
            params[name] = estimator
            if hasattr(estimator, "get_params") and not isinstance(estimator, type):
                inner = estimator.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set settings of the search, estimators by name, or their settings by `name__setting`."""
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
        """Settings of the best estimator, and its name."""
        return {"name": self.best_name_, **self.results_["params"][self.best_index_]}


# --- estimators as a dict, a list of pairs or a list, and their names ---


def named_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """Return pairs (name, estimator); estimators without a name are named after their class.

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
    """Return a copy of a collection of estimators with one of them replaced, by its name."""
    pairs = [(key, new if key == name else old) for key, old in named_estimators(estimators)]
    if isinstance(estimators, Mapping):
        return dict(pairs)
    if all(isinstance(item, tuple) for item in estimators):
        return pairs
    return [estimator for _, estimator in pairs]


def checked_estimators(estimators: Any, reserved: set[str]) -> dict[str, Any]:
    """Return the estimators by name; raise an error if their scores cannot be compared."""
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
