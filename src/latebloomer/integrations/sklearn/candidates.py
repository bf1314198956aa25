"""What a search races: named estimators, or settings that are drawn for one estimator."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler

from latebloomer._util.text import NAME, brief
from latebloomer.errors import LearnerError, SettingError, need_whole, require, unknown
from latebloomer.integrations.sklearn.sklearn_learner import model_class

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
    many, seen = Counter(kinds), Counter[str]()
    names = []
    for kind in kinds:
        seen[kind] += 1
        names.append(f"{kind}-{seen[kind]}" if many[kind] > 1 else kind)
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
    _check_names([name for name, _ in pairs], estimators, reserved)
    for name, estimator in pairs:
        need_trainable(f"estimator {name!r}", estimator)
    kinds = {name: _kind(estimator) for name, estimator in pairs}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is a {kind}" for name, kind in kinds.items())
        raise SettingError(
            f"estimators are of different kinds ({listed}), but their scores must be comparable: "
            "race classifiers with classifiers and regressors with regressors"
        )
    return dict(pairs)


def need_trainable(what: str, estimator: Any) -> None:
    """Raise a `LearnerError` unless an estimator can be trained a little at a time."""
    try:
        model_class(estimator)
    except LearnerError as error:
        raise LearnerError(f"{what}: {error}") from None


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
                "separates nested settings), and not a setting of the search itself"
            )


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    return "regressor" if is_regressor(estimator) else "neither classifier nor regressor"


# --- settings of one estimator ---


def drawn_iter(
    estimator: Any, distributions: Any, n_iter: Any, random_state: Any
) -> list[dict[str, Any]]:
    """Return the settings that race: drawn as scikit-learn draws them, or a whole grid."""
    spaces = _checked_spaces(distributions, estimator)
    size = None
    if all(not hasattr(values, "rvs") for space in spaces for values in space.values()):
        size = len(ParameterGrid(spaces))
    wanted = size if n_iter == ALL and size is not None else _whole(n_iter)
    require(wanted >= 2, "n_iter", wanted, "at least 2",
            "with one there is nothing to choose")  # fmt: skip
    if size is not None and wanted > size:
        raise SettingError(
            f"n_iter={wanted}, but there are {size} settings in total: give "
            "n_iter='all', more values, or a distribution to draw from"
        )
    return list(ParameterSampler(spaces, wanted, random_state=random_state))


def _whole(n_iter: Any) -> int:
    if n_iter == ALL:
        raise SettingError(
            "n_iter='all', but param_distributions has a distribution, which has no end: "
            "give a number, or lists of values alone"
        )
    if isinstance(n_iter, str):
        raise SettingError(
            f"n_iter={n_iter!r}, but n_iter must be an integer, or 'all' for a grid"
        )
    return need_whole("n_iter", n_iter)


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
    """Return whether an estimator, or a part of it, has a setting; boosters do not list all."""
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


def candidate_names(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each candidate: its number, and the settings that vary, to 3 digits.

    A long name is shortened in its settings' names, never in their values.

    >>> candidate_names([{"net__alpha": 0.00123456, "net__beta": 1}, {"net__alpha": 1.0}])
    ['#0 alpha=0.00123 beta=1', '#1 alpha=1']
    """
    settings = list(dict.fromkeys(name for one in candidates for name in one))
    varying = [
        name for name in settings if len({brief(one.get(name, ALL)) for one in candidates}) > 1
    ]
    last_parts = Counter(name.rpartition("__")[2] for name in varying)
    labels = {
        name: last if last_parts[last := name.rpartition("__")[2]] == 1 else name
        for name in varying
    }
    return [
        _fitted(f"#{k}", [(labels[name], _value(one[name])) for name in varying if name in one])
        for k, one in enumerate(candidates)
    ]


def _value(value: Any) -> str:
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{float(value):.3g}"
    if hasattr(value, "get_params"):  # a step of a pipeline
        return type(value).__name__
    return value if isinstance(value, str) else brief(value)


def _fitted(number: str, pairs: list[tuple[str, str]]) -> str:
    """Return a name with labels as long as there is room for, and at least 3 characters."""
    for room in range(max((len(label) for label, _ in pairs), default=0), 2, -1):
        short = (label if len(label) <= room else f"{label[: room - 1]}…" for label, _ in pairs)
        values = (value for _, value in pairs)
        text = " ".join([number, *map("=".join, zip(short, values, strict=True))])
        if len(text) <= NAME:
            break
    return text if pairs else number
