"""What a search races: named estimators, or settings that are drawn for one estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler

from latebloomer._util.text import NAME, brief
from latebloomer.errors import LearnerError, SettingError, need_whole, require
from latebloomer.integrations.sklearn.training import model_class

ALL = "all"  # candidates of a grid

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
    require(len(pairs) >= 2, "estimators", estimators, "at least 2",
            "a dict of names and estimators, a list of such pairs or of estimators")  # fmt: skip
    names = [name for name, _ in pairs]
    for name in names:
        text = isinstance(name, str) and name.strip() and "__" not in name
        if not text or name in reserved or names.count(name) > 1:
            raise SettingError(
                f"an estimator is called {name!r}, but a name must be text without '__' (which "
                "separates nested settings) that no other estimator or setting of the search has"
            )
    for name, estimator in pairs:
        try:
            model_class(estimator)
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


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"


# --- settings of one estimator ---


def drawn_params(distributions: Any, n_iter: Any, random_state: Any) -> list[dict[str, Any]]:
    """Return the settings that race: drawn as scikit-learn draws them, or a whole grid."""
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    try:
        lists = [{k: v for k, v in one.items() if not hasattr(v, "rvs")} for one in spaces]
        size = len(ParameterGrid(lists))  # checks the lists
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingError(
            f"param_distributions={brief(distributions)}, but param_distributions must be a dict "
            f"of settings and lists or distributions, or a list of such dicts: {error}"
        ) from None
    endless = sum(map(len, lists)) < sum(map(len, spaces))
    require(not isinstance(n_iter, str) or (n_iter == ALL and not endless), "n_iter", n_iter,
            "an integer, or 'all' of lists of values", "a distribution has no end")  # fmt: skip
    wanted = size if n_iter == ALL else need_whole("n_iter", n_iter)
    require(wanted >= 2, "n_iter", wanted, "at least 2", "with one there is nothing to choose")
    require(endless or wanted <= size, "n_iter", wanted, f"at most {size}, or 'all'",
            "there are no more settings in the lists")  # fmt: skip
    return list(ParameterSampler(spaces, wanted, random_state=random_state))


def with_params(estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a clone of an estimator for each candidate, by the candidate's name."""
    made = [clone(estimator).set_params(**clone(one, safe=False)) for one in candidates]
    return dict(zip(candidate_names(candidates), made, strict=True))


def candidate_names(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each candidate: its number, and the settings that vary, to 3 digits.

    A long name is shortened in its settings' names, never in their values.

    >>> candidate_names([{"net__alpha": 0.00123456, "net__beta": 1}, {"net__alpha": 1.0}])
    ['#0 alpha=0.00123 beta=1', '#1 alpha=1']
    >>> candidate_names([{"C": 1}, {"C": 10}])
    ['#0 C=1', '#1 C=10']
    """
    settings = dict.fromkeys(name for one in candidates for name in one)
    varying = [
        name for name in settings if len({brief(one.get(name, ALL)) for one in candidates}) > 1
    ]
    ends = [name.rpartition("__")[2] for name in varying]
    labels = {
        name: end if ends.count(end) == 1 else name
        for name, end in zip(varying, ends, strict=True)
    }
    return [
        _fitted(f"#{k}", {labels[name]: _value(one[name]) for name in varying if name in one})
        for k, one in enumerate(candidates)
    ]


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if hasattr(value, "get_params"):  # a step of a pipeline
        return type(value).__name__
    return value if isinstance(value, str) else brief(value)


def _fitted(number: str, values: Mapping[str, str]) -> str:
    """Return a name with labels as long as there is room for, and at least 3 characters."""
    for room in range(max([3, *map(len, values)]), 2, -1):
        short = (label if len(label) <= room else f"{label[: room - 1]}…" for label in values)
        text = " ".join([number, *map("=".join, zip(short, values.values(), strict=True))])
        if len(text) <= NAME:
            break
    return text
