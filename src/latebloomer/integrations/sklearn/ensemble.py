"""The ensemble of a race: half the winner, half a weighted mean of all models of the race.

The weights are found by greedy forward selection with replacement (Caruana et al. 2004): 25 times
it adds the model with which the mean of all added models scores best on the validation rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator

from latebloomer._util.text import reason_of
from latebloomer.errors import LatebloomerError
from latebloomer.integrations.sklearn.metadata_routing import routing_enabled
from latebloomer.integrations.sklearn.predicted_models import predicted_model
from latebloomer.integrations.sklearn.search_race import SearchRace
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner
from latebloomer.integrations.sklearn.splits import Fold
from latebloomer.integrations.sklearn.user_warnings import warn_user
from latebloomer.racing.verdict.verdict import Ensemble, Verdict
from latebloomer.session.events import FAILED

ROUNDS = 25
OWN = 0.5  # share of the winner: the greedy mean alone did not beat the winner (.001 ± .002)

Floats: TypeAlias = NDArray[np.float64]
Predictions: TypeAlias = Sequence[Floats]  # predictions for the held-out rows of each fold


class Members(NamedTuple):
    """The learners of an ensemble as the race trained them, and their weights."""

    ensemble: Ensemble
    learners: Mapping[str, SklearnLearner]

    def with_winner(self, winner: Any, y: Any) -> Any:
        """Return the ensemble as an estimator: half the trained `winner`, half the members."""
        parts, weights = [(f"{self.ensemble.winner} (winner)", winner)], [OWN]
        for name, weight in self.ensemble.weights.items():
            models = self.learners[name].models
            for fold, model in enumerate(models, 1):
                of_fold = f", fold {fold}" if len(models) > 1 else ""
                parts.append((f"{name} (as raced{of_fold})", model))
                weights.append((1 - OWN) * weight / len(models))
        frozen = [(name.replace("__", "."), FrozenEstimator(model)) for name, model in parts]
        if is_classifier(winner):
            return VotingClassifier(frozen, voting="soft", weights=weights).fit(None, y)
        return VotingRegressor(frozen, weights=weights).fit(None, y)


def members_of(race: SearchRace, verdict: Verdict, winner: str) -> Members | None:
    """Return the members of the ensemble; None, with a warning, if the winner cannot be one."""
    learners, predictions = {}, {}
    # The winner first, so that it wins ties.
    for name in sorted(race.estimators, key=lambda name: name != winner):
        learner = _trained(race, verdict, name)
        predicted = None if learner is None else learner.predictions(race.classes)
        if learner is not None and predicted is not None:
            learners[name], predictions[name] = learner, predicted
    if winner not in predictions:
        warn_user(
            f"ensemble=True needs the probabilities of all classes, but {winner} has none: "
            "best_estimator_ is the winner alone."
        )
        return None

    score = MeanScore(race)
    weights = greedy_weights(predictions, score)
    mixed = [
        OWN * own + (1 - OWN) * sum(weights[name] * predictions[name][fold] for name in weights)
        for fold, own in enumerate(predictions[winner])
    ]
    refitted = bool(race.search.refit)
    return Members(Ensemble(winner, refitted, weights, OWN, score(mixed)), learners)


def _trained(race: SearchRace, verdict: Verdict, name: str) -> SklearnLearner | None:
    """Return a learner in its state after the race; None if it failed or cannot be restored."""
    if verdict[name].state == FAILED or not verdict[name].pulls:
        return None
    try:
        return race.trained(name, verdict)
    except LatebloomerError as error:
        text = f"{name} is left out of the ensemble: {reason_of(error)}"
        warn_user(text)
        return None


def greedy_weights(
    predictions: Mapping[str, Predictions],
    score: Callable[[Predictions], float],
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """Return weights of models, which sum to 1, by greedy forward selection with replacement.

    If several models are equally good to add, the first of them is added.

    >>> y = np.array([1.0, 2.0, 4.0])
    >>> models = {"low": [y - 1], "high": [y + 3], "wild": [y * 9]}
    >>> greedy_weights(models, lambda p: -float(np.square(p[0] - y).mean()), rounds=8)
    {'low': 0.75, 'high': 0.25}
    """
    folds = range(len(next(iter(predictions.values()))))
    sums: list[Any] = [0.0 for _ in folds]
    added = Counter[str]()
    for size in range(1, rounds + 1):
        best = max(
            predictions,
            key=lambda name: score([(sums[k] + predictions[name][k]) / size for k in folds]),
        )
        sums = [sums[k] + predictions[best][k] for k in folds]
        added[best] += 1
    return {name: added[name] / rounds for name in predictions if added[name]}


class MeanScore:
    """Score predictions for the held-out rows by the search's metric, as the mean over folds."""

    def __init__(self, race: SearchRace) -> None:
        self._race = race
        self._scorer = race.metrics.scorer(predicted_model(None, race.classes))

    def __call__(self, predicted: Predictions) -> float:
        """Return the mean score of the predictions, which are one array per fold."""
        pairs = zip(self._race.folds, predicted, strict=True)
        with config_context(skip_parameter_validation=True):
            return float(np.mean([self._of_fold(fold, values) for fold, values in pairs]))

    def _of_fold(self, fold: Fold, predicted: Floats) -> float:
        model = predicted_model(predicted, self._race.classes)
        params = dict(fold.score_params)
        try:
            value = self._scorer(model, fold.X_val, fold.y_val, **params)
        except TypeError:
            if not params or routing_enabled():
                raise
            value = self._scorer(model, fold.X_val, fold.y_val)  # this scorer uses no weights
        return float(value[self._race.metrics.leading] if isinstance(value, Mapping) else value)
