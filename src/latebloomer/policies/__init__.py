"""One file per algorithm, a plan and a rating: `base.py` the contract, `registry.py` the list."""

from latebloomer.policies.adaptive_rejects import AdaptiveRejects
from latebloomer.policies.asha import ASHA
from latebloomer.policies.base import Policy
from latebloomer.policies.explore_then_commit import ExploreThenCommit
from latebloomer.policies.foresight import Foresight
from latebloomer.policies.hybrid import Hybrid
from latebloomer.policies.hyperband import Hyperband
from latebloomer.policies.i_epoch import IEpoch
from latebloomer.policies.max_ucb import MaxUCB
from latebloomer.policies.plan_text import Description, describe
from latebloomer.policies.prob_one import ProbOne
from latebloomer.policies.ptrr import PTRR
from latebloomer.policies.registry import REGISTRY, choose_policy, make_policy, split_policies
from latebloomer.policies.rest_sure import RestSure
from latebloomer.policies.rising_bandits import RisingBandits
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
