"""Metadata of rows, such as weights and groups, and the part of a search that gets it.

The rules are those of scikit-learn's own searches. If metadata routing is enabled, each part gets
what it requests. Otherwise `groups` go to the splitter and all other metadata to the estimators;
`sample_weight` also goes to a scorer that accepts it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from latebloomer.integrations.sklearn.splits import Params, need_one_per_row

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.base_search import BaseRaceSearch


def routing_enabled() -> bool:
    """Return whether scikit-learn's metadata routing is enabled."""
    return bool(get_config().get("enable_metadata_routing"))


def router_for(owner: Any, estimators: Mapping[str, Any], scorer: Any, cv: Any) -> MetadataRouter:
    """Return the router of a search, which describes what it passes on to each part."""
    fits = MethodMapping().add(caller="fit", callee="fit")
    splits = MethodMapping().add(caller="fit", callee="split")
    scores = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
    router = MetadataRouter(owner=owner).add(scorer=scorer, method_mapping=scores)
    router.add(splitter=cv, method_mapping=splits)
    # These names contain a space, so they differ from estimators' names, such as "scorer".
    routes = {f"estimator {name}": estimator for name, estimator in estimators.items()}
    return router.add(**routes, method_mapping=fits)


def routed_params(
    search: "BaseRaceSearch", params: Params, raced: Iterable[str], X: Any
) -> tuple[dict[str, Params], Params, Params]:
    """Return the parameters for each estimator, by name, for the scorer and for the splitter.

    If all learners are settings of one estimator, each gets what that estimator requests.
    """
    passed = {name: value for name, value in params.items() if value is not None}
    for name in {"sample_weight", "groups"} & set(passed):
        need_one_per_row(name, passed[name], X)
    if routing_enabled():
        routed = process_routing(search, "fit", **passed)
        shared = routed.get("estimator estimator")
        fit = {name: routed.get(f"estimator {name}", shared).fit for name in raced}
        return fit, routed.scorer.score, routed.splitter.split
    groups = {name: passed.pop(name) for name in ("groups",) if name in passed}
    weights = {name: passed[name] for name in ("sample_weight",) if name in passed}
    return dict.fromkeys(raced, passed), weights, groups


def score_params(search: "BaseRaceSearch", params: Params) -> Params:
    """Return the parameters of `score` for the scorer: all of them without metadata routing."""
    return process_routing(search, "score", **params).scorer.score if routing_enabled() else params
