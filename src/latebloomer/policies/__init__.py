"""One file per algorithm, a plan and a rating: `base.py` the contract, `registry.py` the list."""

from typing import TYPE_CHECKING

from latebloomer._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from latebloomer.policies.adaptive_rejects import AdaptiveRejects
    from latebloomer.policies.asha import ASHA
    from latebloomer.policies.base import Policy
    from latebloomer.policies.explore_then_commit import ExploreThenCommit
    from latebloomer.policies.foresight import Foresight
    from latebloomer.policies.hyperband import Hyperband
    from latebloomer.policies.plan_text import Description, describe
    from latebloomer.policies.prob_one import ProbOne
    from latebloomer.policies.registry import REGISTRY, choose_policy, make_policy, split_policies
    from latebloomer.policies.related.hybrid import Hybrid
    from latebloomer.policies.related.i_epoch import IEpoch
    from latebloomer.policies.related.max_ucb import MaxUCB
    from latebloomer.policies.related.ptrr import PTRR
    from latebloomer.policies.related.rising_bandits import RisingBandits
    from latebloomer.policies.rest_sure import RestSure
    from latebloomer.policies.rising_sr import RisingSR
    from latebloomer.policies.rising_ucbe import RisingUCBE
    from latebloomer.policies.round_robin import RoundRobin
    from latebloomer.policies.round_robin_window import RoundRobinWindow
    from latebloomer.policies.successive_halving import SuccessiveHalving
    from latebloomer.policies.successive_rejects import SuccessiveRejects
    from latebloomer.policies.ucbe import UCBE

__all__ = [
    "ASHA",
    "PTRR",
    "REGISTRY",
    "UCBE",
    "AdaptiveRejects",
    "Description",
    "ExploreThenCommit",
    "Foresight",
    "Hybrid",
    "Hyperband",
    "IEpoch",
    "MaxUCB",
    "Policy",
    "ProbOne",
    "RestSure",
    "RisingBandits",
    "RisingSR",
    "RisingUCBE",
    "RoundRobin",
    "RoundRobinWindow",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "choose_policy",
    "describe",
    "make_policy",
    "split_policies",
]

HOMES = {  # where each name lives
    "ASHA": "latebloomer.policies.asha",
    "PTRR": "latebloomer.policies.related.ptrr",
    "REGISTRY": "latebloomer.policies.registry",
    "UCBE": "latebloomer.policies.ucbe",
    "AdaptiveRejects": "latebloomer.policies.adaptive_rejects",
    "Description": "latebloomer.policies.plan_text",
    "ExploreThenCommit": "latebloomer.policies.explore_then_commit",
    "Foresight": "latebloomer.policies.foresight",
    "Hybrid": "latebloomer.policies.related.hybrid",
    "Hyperband": "latebloomer.policies.hyperband",
    "IEpoch": "latebloomer.policies.related.i_epoch",
    "MaxUCB": "latebloomer.policies.related.max_ucb",
    "Policy": "latebloomer.policies.base",
    "ProbOne": "latebloomer.policies.prob_one",
    "RestSure": "latebloomer.policies.rest_sure",
    "RisingBandits": "latebloomer.policies.related.rising_bandits",
    "RisingSR": "latebloomer.policies.rising_sr",
    "RisingUCBE": "latebloomer.policies.rising_ucbe",
    "RoundRobin": "latebloomer.policies.round_robin",
    "RoundRobinWindow": "latebloomer.policies.round_robin_window",
    "SuccessiveHalving": "latebloomer.policies.successive_halving",
    "SuccessiveRejects": "latebloomer.policies.successive_rejects",
    "choose_policy": "latebloomer.policies.registry",
    "describe": "latebloomer.policies.plan_text",
    "make_policy": "latebloomer.policies.registry",
    "split_policies": "latebloomer.policies.registry",
}

__getattr__, __dir__ = lazy_names(__name__, HOMES)
