"""When an estimator asks to stop early: after how many iterations without a better score.

In a race the score is that of the held-out rows, the mean over folds, and it is looked at after
each pull.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError
from latebloomer.integrations import boosters

LEAST_GAIN = "early_stopping_min_delta"  # LightGBM's name
DETECTOR, DETECTOR_WAIT = "IncToDec", 20  # of CatBoost: the other kind, and the usual wait


class Patience(NamedTuple):
    """How long an estimator trains on without a better score."""

    steps: int
    least_gain: float = 0.0  # by which a score must be higher to be better

    def is_over(self, since: int) -> bool:
        """Return whether training ends, some steps after the best score."""
        return since >= self.steps


def boosters_patience(kind: str, params: Mapping[str, Any], rounds: int) -> Patience | None:
    """Return the patience of a booster's estimator, of which a step has some rounds.

    None if it does not ask to stop early.

    >>> boosters_patience("LGBMRegressor", {"early_stopping_round": 25, "od_type": None}, 10)
    Patience(steps=3, least_gain=0.0)
    """
    given = {name: params[name] for name in boosters.STOPPING if params.get(name) is not None}
    test = given.pop("od_type", None)
    if given.pop("od_pval", None) or test == DETECTOR:
        raise LearnerError(
            f"{kind} stops by CatBoost's own test ({DETECTOR}), which a race cannot make: give "
            "early_stopping_rounds=20 instead, or leave od_pval and od_type out"
        )
    found = next(iter(given.values()), DETECTOR_WAIT if test is not None else 0)
    if isinstance(found, bool) or not isinstance(found, int):
        name = next(iter(given))
        needed = "an integer: rounds without a better score, after which training ends"
        raise LearnerError(f"{kind} has {name}={found!r}, but {name} must be {needed}")
    gain = float(params.get(LEAST_GAIN) or 0.0)
    return Patience(ceil(found / rounds), gain) if found > 0 else None


def without_early_stopping(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an estimator that ask it to stop early, with None for each.

    Its own training would need rows to stop by, and gets none.

    >>> without_early_stopping({"n_estimators": 100, "early_stopping_rounds": 10})
    {'early_stopping_rounds': None}
    """
    return {name: None for name in boosters.STOPPING if params.get(name) is not None}
