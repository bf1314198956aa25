"""What `fit` is given beside rows and target, such as weights and groups, and who gets it.

As in scikit-learn's own searches: with metadata routing switched on each part gets what it asks
for; without it `groups` go to the splitter, and all else to the estimators, `sample_weight` also
to a scorer that takes it. Whether it is trained by `fit` or by `partial_fit`, an estimator gets
what it asks for in `fit`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from latebloomer.errors import SettingError
from latebloomer.integrations.sklearn.data_splits import row_count

Params = Mapping[str, Any]


class RoutedParams(NamedTuple):
    """What each part of a search gets."""

    fit: Mapping[str, Params]  # each estimator, by name
    score: Params
    split: Params


def routing_enabled() -> bool:
    """Whether scikit-learn's metadata routing is switched on."""
    return bool(get_config().get("enable_metadata_routing"))


def router_for(owner: Any, estimators: Mapping[str, Any], scorer: Any, cv: Any) -> MetadataRouter:
    """What a search passes on, for scikit-learn."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    to_score = MethodMapping().add(caller="score", callee="score")
    router = MetadataRouter(owner=owner)
    for name, estimator in estimators.items():
        router.add(**{_route(name): estimator}, method_mapping=to_fit)
    router.add(scorer=scorer, method_mapping=to_score.add(caller="fit", callee="score"))
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    return router


def _route(name: str) -> str:
    """An estimator may be called as a part of the search is."""
    return f"estimator {name}"


def routed_params(
    search: Any, params: Params, routes: Mapping[str, str], scorer: Any, X: Any
) -> RoutedParams:
    """Who gets what of the params of `fit`; what races, and by whose requests, is in `routes`."""
    given = {name: value for name, value in params.items() if value is not None}
    for name in {"sample_weight", "groups"} & set(given):
        need_one_per_row(name, given[name], X)
    if routing_enabled():
        routed = process_routing(search, "fit", **given)
        fit = {name: routed[_route(given_name)].fit for name, given_name in routes.items()}
        return RoutedParams(fit, routed.scorer.score, routed.splitter.split)
    groups = {name: given.pop(name) for name in ("groups",) if name in given}
    weights = {name: given[name] for name in ("sample_weight",) if name in given}
    return RoutedParams(
        dict.fromkeys(routes, given), weights if takes_weights(scorer) else {}, groups
    )


def score_params(search: Any, params: Params) -> Params:
    """What the scorer gets of the params of `score`."""
    if not params:
        return {}
    if not routing_enabled():
        raise SettingError(
            f"score is given {', '.join(params)}, but that is passed on only with "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    routed: Params = process_routing(search, "score", **params).scorer.score
    return routed


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer can be given `sample_weight`; of several metrics, whether one can."""
    own = getattr(scorer, "_accept_sample_weight", None)  # of scikit-learn's own, from 1.7 on
    if own is not None:
        return bool(own())
    several = getattr(scorer, "_scorers", None)
    if several is not None:  # older ones hand weights to all of them
        return all(takes_weights(one) for one in several.values())
    estimator = getattr(scorer, "_estimator", None)  # whose own `score` it is
    called = getattr(scorer, "_score_func", scorer) if estimator is None else estimator.score
    try:
        return "sample_weight" in inspect.signature(called).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


def need_one_per_row(name: str, values: Any, X: Any) -> None:
    """Raise a `SettingError` unless there is a value for each row."""
    count = row_count(values) if hasattr(values, "__len__") else None
    if count != row_count(X):
        found = "no list of values" if count is None else f"{count} values"
        raise SettingError(
            f"{name} has {found}, but X has {row_count(X)} rows: give one value for each"
        )


def step_params(estimator: Any, params: Params) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the steps of a pipeline before the last get, and what the last does.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), SGDClassifier())
    >>> step_params(pipeline, {"standardscaler__sample_weight": 1, "sample_weight": 2})
    ({'standardscaler__sample_weight': 1}, {'sample_weight': 2})
    """
    if not isinstance(estimator, Pipeline) or not params:
        return {}, dict(params)
    last = estimator.steps[-1][0]
    if routing_enabled():
        head = set()
        if len(estimator.steps) > 1:
            head = estimator[:-1].get_metadata_routing().consumes("fit_transform", params)
        routed = process_routing(estimator, "fit", **params)[last].fit
        return {name: params[name] for name in head}, dict(routed)
    own = {name.removeprefix(f"{last}__"): value for name, value in params.items()}
    return (
        {name: value for name, value in own.items() if "__" in name},
        {name: value for name, value in own.items() if "__" not in name},
    )
