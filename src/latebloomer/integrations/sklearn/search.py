"""`RaceSearchCV`: a race between estimators that a user names."""

from __future__ import annotations

from typing import Any, Self

from latebloomer.integrations.sklearn.base_search import BaseRaceSearch
from latebloomer.integrations.sklearn.search_learners import (
    SearchLearners,
    checked_estimators,
    named_estimators,
    with_replaced,
)
from latebloomer.integrations.sklearn.search_results import results_table
from latebloomer.racing.verdict.verdict import Verdict


class RaceSearchCV(BaseRaceSearch):
    """Race estimators for one budget of training and become the best of them.

    Each pull trains one estimator a little more (`SklearnLearner`); those that fall behind are
    dropped, the others keep what they have learned.

    There is one budget. `trainings=3` is worth three full trainings, by what each estimator
    declares (`max_iter` epochs, `n_estimators` trees, one pass over the rows): a pull is the same
    share of each. `seconds=600` is time. `budget=2000` counts pulls, each a batch of `batch` rows
    (64) or `step` trees. Without any of them it is half a training for each estimator, 2 at least,
    and one for the refit.

    `refit=True` trains a fresh clone of the winner on all rows, as in scikit-learn, and what that
    takes is set aside from the budget first: one full training, a third of the time, or as many
    pulls as the winner had (`horizon`, where given). `extra_refit=True` spends it on top, and
    `refit_pulls_` says how much. With `refit=False` the winner stays as the race trained it:
    `winner_share=0.3` keeps that share of the budget for it.

    `cv` says which rows are held out: a share (0.2), a number of folds, a splitter, or splits.
    With several metrics (`scoring=["accuracy", "f1"]`) `refit="f1"` names the one that the race
    goes by; the others are in `results_`.

    `policy`, `min_pulls`, `stop` and `callbacks` are as in `race`; scores with a known range (an
    accuracy, an R2) are certified within it. `checkpoint_format` and `trusted` are as in
    `SklearnLearner`.

    Parameters
    ----------
    estimators : Any
        A dict of names and estimators, a list of pairs, or bare estimators, named by their class.
    trainings : float | None
        The budget in full trainings.
    seconds : float | None
        The budget in time.
    budget : int | None
        The budget in pulls.
    policy : Any
        As in `race`.
    scoring : Any
        As in scikit-learn; the estimator's own score if None.
    cv : Any
        Which rows are held out: a share, a number of folds, a splitter, or splits.
    horizon : int | None
        The pull at which estimators are compared.
    winner_share : float
        The share of the race's budget to train the best on.
    min_pulls : int
        As in `race`.
    refit : bool | str
        Whether the winner is trained again on all rows; with several metrics, the name of one.
    extra_refit : bool
        Whether the refit is on top of the budget.
    batch : int | None
        Rows of a step for estimators with `partial_fit`.
    step : int
        Trees or iterations of a step.
    random_state : Any
        Of splits, orders and estimators.
    n_jobs : int | None
        Estimators trained at once, with Ray.
    journal : Any
        A file for every pull; `fit` goes on with it.
    checkpoint_format : str
        As in `SklearnLearner`.
    trusted : Any
        As in `SklearnLearner`.
    verbose : bool
        Whether the race is shown.
    callbacks : Any
        As in `race`.
    stop : str | None
        As in `race`.

    Raises
    ------
    LearnerError
        An estimator has no way to be trained step by step.
    NoneLearns
        In `fit`: every estimator refuses the data.

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

    def __init__(
        self,
        estimators: Any,
        *,
        trainings: float | None = None,
        seconds: float | None = None,
        budget: int | None = None,
        policy: Any = "auto",
        scoring: Any = None,
        cv: Any = 0.2,
        horizon: int | None = None,
        winner_share: float = 0.0,
        min_pulls: int = 1,
        refit: bool | str = True,
        extra_refit: bool = False,
        batch: int | None = None,
        step: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        journal: Any = None,
        checkpoint_format: str = "pickle",
        trusted: Any = None,
        verbose: bool = False,
        callbacks: Any = None,
        stop: str | None = None,
    ) -> None:
        super().__init__(
            trainings=trainings, seconds=seconds, budget=budget, policy=policy, scoring=scoring,
            cv=cv, horizon=horizon, winner_share=winner_share, min_pulls=min_pulls, refit=refit,
            extra_refit=extra_refit, batch=batch, step=step, random_state=random_state,
            n_jobs=n_jobs, journal=journal, checkpoint_format=checkpoint_format, trusted=trusted,
            verbose=verbose, callbacks=callbacks, stop=stop,
        )  # fmt: skip
        self.estimators = estimators

    # --- settings, with those of the estimators by name ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings; with `deep` also `name` and `name__setting` of every estimator."""
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
        for name in {name for name, _ in named_estimators(self.estimators)} & set(params):
            self.estimators = with_replaced(self.estimators, name, params.pop(name))
        super().set_params(**params)
        return self

    # --- what a search is made of ---

    def _given(self) -> dict[str, Any]:
        return dict(named_estimators(self.estimators))

    def _raced(self) -> dict[str, Any]:
        return checked_estimators(self.estimators, set(self.get_params(deep=False)))

    def _publish(self, verdict: Verdict, learners: SearchLearners) -> None:
        self.best_name_ = verdict.name
        self.results_ = results_table(verdict, learners)
