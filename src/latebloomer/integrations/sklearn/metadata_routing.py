"""What goes with rows (weights, groups), and which part of a search gets it.

As in scikit-learn's own searches: with metadata routing switched on each part gets what it asks
for; without it `groups` go to the splitter, and all else to the estimators, `sample_weight` also
to a scorer that takes it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from latebloomer.integrations.sklearn.splits import Params, need_one_per_row

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn.base_search import BaseRaceSearch


def routing_enabled() -> bool:
    """Return whether scikit-learn's metadata routing is switched on."""
    return bool(get_config().get("enable_metadata_routing"))


def router_for(owner: Any, estimators: Mapping[str, Any], scorer: Any, cv: Any) -> MetadataRouter:
    """Return what a search passes on, for scikit-learn's metadata routing."""
    fits = MethodMapping().add(caller="fit", callee="fit")
    splits = MethodMapping().add(caller="fit", callee="split")
    scores = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
    router = MetadataRouter(owner=owner).add(scorer=scorer, method_mapping=scores)
    router.add(splitter=cv, method_mapping=splits)
    # By names that no part of the search has: an estimator may be called "scorer".
    routes = {f"estimator {name}": estimator for name, estimator in estimators.items()}
    return router.add(**routes, method_mapping=fits)


def routed_params(
    search: "BaseRaceSearch", params: Params, raced: Iterable[str], X: Any
) -> tuple[dict[str, Params], Params, Params]:
    """Return what each estimator gets, by name, and what the scorer and the splitter get.

    Settings of one "estimator" all get what that asks for.
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
    """Return what the scorer gets of the parameters of `score`: all, if nothing is routed."""
    return process_routing(search, "score", **params).scorer.score if routing_enabled() else params
