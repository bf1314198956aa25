"""`RaceRandomSearchCV`: a race between many settings of one estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, need_whole, require, unknown
from latebloomer.integrations.sklearn.base_search import BaseRaceSearch
from latebloomer.integrations.sklearn.search_learners import SearchLearners, need_trainable
from latebloomer.integrations.sklearn.search_results import cv_results_table
from latebloomer.racing.verdict.verdict import Verdict

ALL = "all"  # of a grid
LONGEST = 48  # characters of a candidate's name


class RaceRandomSearchCV(BaseRaceSearch):
    """Race `n_candidates` settings of one estimator for one budget and become the best of them.

    As scikit-learn's `RandomizedSearchCV` and `HalvingRandomSearchCV`, but by iterations, and each
    candidate goes on from where it was instead of starting again. `param_distributions` is a dict
    of settings and lists or distributions, or a list of such dicts; from lists alone candidates
    are drawn without repetition, and `n_candidates="all"` is the whole grid.

    The budget, `refit`, `cv`, `scoring` and all else are as in `RaceSearchCV`. `cv_results_` has
    a row for each candidate: `rank_test_score` (1 the winner, then those that stayed to the end,
    then by the level at which they were dropped), `n_resources` (steps of training: epochs,
    trees), `dropped_at` (the level, in pulls of its own; nan for those that stayed).
    `mean_test_score` is the newest score of each, so compare scores within one level.

    Parameters
    ----------
    estimator : Any
        A scikit-learn estimator or pipeline.
    param_distributions : Any
        A dict of settings and lists or distributions, or a list of such dicts.
    n_candidates : int | str
        How many are drawn, or "all" of a grid.
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
        The pull at which candidates are compared.
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
        Of candidates, splits, orders and estimators.
    n_jobs : int | None
        Candidates trained at once, with Ray.
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
        The estimator has no way to be trained step by step.
    NoneLearns
        In `fit`: every candidate refuses the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"alpha": [1e-4, 1e-2, 100], "penalty": ["l2", "l1"]}
    >>> search = RaceRandomSearchCV(
    ...     SGDClassifier(max_iter=50), grid, n_candidates="all", trainings=3, random_state=0
    ... ).fit(X, y)
    >>> search.best_params_["alpha"] < 100, search.cv_results_["rank_test_score"].min()
    (True, np.int64(1))
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_candidates: int | str,
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
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_candidates = n_candidates

    def _given(self) -> dict[str, Any]:
        return {"estimator": self.estimator}

    def _raced(self) -> dict[str, Any]:
        need_trainable("estimator", self.estimator)
        self._candidates = candidates_of(
            self.estimator, self.param_distributions, self.n_candidates, self.random_state
        )
        names = [candidate_name(k, one) for k, one in enumerate(self._candidates)]
        made = [
            clone(self.estimator).set_params(**clone(one, safe=False)) for one in self._candidates
        ]
        return dict(zip(names, made, strict=True))

    def _publish(self, verdict: Verdict, learners: SearchLearners) -> None:
        self.cv_results_ = cv_results_table(verdict, learners, self._candidates)
        self.best_params_ = self._candidates[self.best_index_]


# --- the candidates ---


def candidates_of(
    estimator: Any, distributions: Any, n_candidates: Any, random_state: Any
) -> list[dict[str, Any]]:
    """The settings that race: drawn as scikit-learn draws them, or a whole grid."""
    spaces = _checked_spaces(distributions, estimator)
    size = None
    if all(not hasattr(values, "rvs") for space in spaces for values in space.values()):
        size = len(ParameterGrid(spaces))
    wanted = size if n_candidates == ALL and size is not None else _whole(n_candidates)
    require(wanted >= 2, "n_candidates", wanted, "at least 2",
            "with one there is nothing to choose")  # fmt: skip
    if size is not None and wanted > size:
        raise SettingError(
            f"n_candidates={wanted}, but there are {size} settings in all: n_candidates='all', "
            "more values, or a distribution to draw from"
        )
    return list(ParameterSampler(spaces, wanted, random_state=random_state))


def _whole(n_candidates: Any) -> int:
    if n_candidates == ALL:
        raise SettingError(
            "n_candidates='all', but param_distributions has a distribution, which has no end: "
            "give a number, or lists of values alone"
        )
    if isinstance(n_candidates, str):
        raise SettingError(
            f"n_candidates={n_candidates!r}, but n_candidates must be a whole number, or 'all' "
            "for a grid"
        )
    return need_whole("n_candidates", n_candidates)


def _checked_spaces(distributions: Any, estimator: Any) -> list[dict[str, Any]]:
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    if (
        not isinstance(spaces, list | tuple)
        or not spaces
        or not all(isinstance(space, Mapping) and space for space in spaces)
    ):
        raise SettingError(
            f"param_distributions={brief(distributions)}, but param_distributions must be a dict "
            "of settings and lists or distributions, or a list of such dicts"
        )
    for name, values in [item for space in spaces for item in space.items()]:
        _need_setting(name, spaces, estimator)
        _need_values(name, values)
    return [dict(space) for space in spaces]


def _need_setting(name: Any, spaces: Any, estimator: Any) -> None:
    part, nested, _ = str(name).partition("__")
    replaced = nested and any(part in space for space in spaces)  # as a step of a pipeline may be
    if not replaced and not _takes(estimator, str(name)):
        known = estimator.get_params(deep=True)
        raise unknown(f"setting of {type(estimator).__name__}", str(name), known)


def _takes(estimator: Any, name: str) -> bool:
    """Whether an estimator, or a part of it, has a setting; boosters do not list all of theirs."""
    known = estimator.get_params(deep=True)
    owner, nested, last = name.rpartition("__")
    holder = known.get(owner) if nested else estimator
    if name in known or not hasattr(holder, "get_params"):
        return name in known
    own = inspect.signature(type(holder).__init__).parameters
    return last in own or any(one.kind is one.VAR_KEYWORD for one in own.values())


def _need_values(name: str, values: Any) -> None:
    if hasattr(values, "rvs"):
        return
    plain = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    if not plain or (isinstance(values, np.ndarray) and values.ndim != 1) or not len(list(values)):
        raise SettingError(
            f"param_distributions has {name}={brief(values)}, but its values must be a list, or a "
            "distribution with a method rvs, as scipy.stats.loguniform(1e-5, 1e-1)"
        )


def candidate_name(number: int, params: Mapping[str, Any]) -> str:
    """What a candidate is called in the race, its journal and its report.

    >>> candidate_name(3, {"alpha": 0.00123456, "net__solver": "adam"})
    "3 alpha=0.00123 solver='adam'"
    """
    said = [
        f"{name.rpartition('__')[2]}={value:.3g}"
        if isinstance(value, float)
        else f"{name.rpartition('__')[2]}={brief(value)}"
        for name, value in params.items()
    ]
    text = " ".join([str(number), *said])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
