"""The estimators of a search, as a dict, a list of pairs or a bare list; and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sklearn.base import is_classifier, is_regressor

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.sklearn.training_modes import way_for

Pairs = list[tuple[str, Any]]


def pairs_of(estimators: Any) -> Pairs:
    """Names and estimators, however they were given; bare ones are named by their class.

    >>> from sklearn.naive_bayes import BernoulliNB, GaussianNB
    >>> [name for name, _ in pairs_of([GaussianNB(), BernoulliNB(), BernoulliNB(alpha=2)])]
    ['gaussiannb', 'bernoullinb-1', 'bernoullinb-2']
    """
    if isinstance(estimators, Mapping):
        return list(estimators.items())
    if not isinstance(estimators, list | tuple):
        return []
    if all(isinstance(item, tuple) and len(item) == 2 for item in estimators):
        return list(estimators)
    kinds = [type(item).__name__.lower() for item in estimators]
    many, seen = Counter(kinds), Counter[str]()
    names = []
    for kind in kinds:
        seen[kind] += 1
        names.append(f"{kind}-{seen[kind]}" if many[kind] > 1 else kind)
    return list(zip(names, estimators, strict=True))


def with_replaced(estimators: Any, name: str, new: Any) -> Any:
    """The same collection with another estimator under a name; the given one is not changed."""
    pairs = [(key, new if key == name else old) for key, old in pairs_of(estimators)]
    if isinstance(estimators, Mapping):
        return dict(pairs)
    if all(isinstance(item, tuple) for item in estimators):
        return pairs
    return [estimator for _, estimator in pairs]


def checked(estimators: Any, reserved: set[str]) -> dict[str, Any]:
    """The estimators by name, all of which can race against each other."""
    pairs = pairs_of(estimators)
    _check_names([name for name, _ in pairs], estimators, reserved)
    for name, estimator in pairs:
        try:
            way_for(estimator)
        except LearnerError as error:
            raise LearnerError(f"estimator {name!r}: {error}") from None
    kinds = {name: _kind(estimator) for name, estimator in pairs}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is a {kind}" for name, kind in kinds.items())
        raise SettingError(
            f"estimators are of different kinds ({listed}), but their scores must be comparable: "
            "race classifiers with classifiers and regressors with regressors"
        )
    return dict(pairs)


def _check_names(names: list[str], given: Any, reserved: set[str]) -> None:
    if len(names) < 2:
        raise SettingError(
            f"estimators={given!r}, but estimators must be at least 2, as a dict of names and "
            "estimators, a list of such pairs or a list of estimators"
        )
    for name, times in Counter(names).items():
        if times > 1:
            raise SettingError(f"{times} estimators are called {name!r}, but names must differ")
        if not isinstance(name, str) or not name.strip() or "__" in name or name in reserved:
            raise SettingError(
                f"an estimator is called {name!r}, but a name must be text without '__' (which "
                "parts nested settings) that is no setting of the search itself"
            )


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"
