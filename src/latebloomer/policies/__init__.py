"""One file per algorithm, a plan and a score: `base.py` the contract, `names.py` the registry."""

from latebloomer.policies.base import Policy
from latebloomer.policies.describe import Description, describe
from latebloomer.policies.explore_then_commit import ExploreThenCommit
from latebloomer.policies.names import REGISTRY, make_policy
from latebloomer.policies.prob_one import ProbOne
from latebloomer.policies.rest_sure import RestSure
from latebloomer.policies.rising_sr import RisingSR
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.policies.round_robin import RoundRobin
from latebloomer.policies.round_robin_window import RoundRobinWindow
from latebloomer.policies.successive_halving import SuccessiveHalving
from latebloomer.policies.successive_rejects import SuccessiveRejects
from latebloomer.policies.ucbe import UCBE

__all__ = [
    "REGISTRY",
    "UCBE",
    "Description",
    "ExploreThenCommit",
    "Policy",
    "ProbOne",
    "RestSure",
    "RisingSR",
    "RisingUCBE",
    "RoundRobin",
    "RoundRobinWindow",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "describe",
    "make_policy",
]
