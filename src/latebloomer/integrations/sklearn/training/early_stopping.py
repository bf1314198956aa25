"""The patience of estimators with early stopping: iterations without a better score.

In a race, the score is the mean over folds on the held-out rows, and it is checked after each
pull.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.integrations import boosters

LEAST_GAIN = "early_stopping_min_delta"  # LightGBM's name
# CatBoost's other detector of overfitting, and its default patience.
DETECTOR, DETECTOR_WAIT = "IncToDec", 20


class Patience(NamedTuple):
    """The number of steps for which training continues without a better score."""

    steps: int
    least_gain: float = 0.0  # a better score is higher by more than this

    def is_over(self, since: int) -> bool:
        """Return whether training ends `since` steps after the best score."""
        return since >= self.steps


def boosters_patience(kind: str, params: Mapping[str, Any], rounds: int) -> Patience | None:
    """Return the patience of a booster's estimator in steps of `rounds` rounds.

    The result is None if the estimator has no setting for early stopping.

    >>> boosters_patience("LGBMRegressor", {"early_stopping_round": 25, "od_type": None}, 10)
    Patience(steps=3, least_gain=0.0)
    """
    settings = {name: params[name] for name in boosters.STOPPING if params.get(name) is not None}
    test = settings.pop("od_type", None)
    if settings.pop("od_pval", None) or test == DETECTOR:
        raise LearnerError(
            f"{kind} stops by CatBoost's own test ({DETECTOR}), which a race cannot make: give "
            "early_stopping_rounds=20 instead, or leave od_pval and od_type out"
        )
    patience = next(iter(settings.values()), DETECTOR_WAIT if test is not None else 0)
    if isinstance(patience, bool) or not isinstance(patience, int):
        name = next(iter(settings))
        needed = "an integer: rounds without a better score, after which training ends"
        raise LearnerError(f"{kind} has {name}={patience!r}, but {name} must be {needed}")
    gain = float(params.get(LEAST_GAIN) or 0.0)
    return Patience(ceil(patience / rounds), gain) if patience > 0 else None


def without_early_stopping(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes that turn early stopping off: each such setting becomes None.

    The estimator's own early stopping would need validation rows, which it does not get.

    >>> without_early_stopping({"n_estimators": 100, "early_stopping_rounds": 10})
    {'early_stopping_rounds': None}
    """
    return {name: None for name in boosters.STOPPING if params.get(name) is not None}
