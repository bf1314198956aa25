"""Spend one fixed budget over learners that get better with training, and keep the right one.

>>> import latebloomer as lb
>>> session = lb.Session("r-sr", arms=["tortoise", "hare"], budget=40)
>>> while not session.over:
...     arm = session.ask()
...     n = session.pulls[arm] + 1
...     session.tell(arm, n / (n + 20) if arm == 0 else 0.4 * n / (n + 2))
>>> session.recommend().name
'tortoise'
"""

from latebloomer.citation import cite
from latebloomer.engine.check import check_policy
from latebloomer.engine.results import Results
from latebloomer.engine.session import Session
from latebloomer.engine.simulate import simulate
from latebloomer.engine.verdict import Verdict
from latebloomer.errors import LatebloomerError
from latebloomer.policies import (
    UCBE,
    ExploreThenCommit,
    ProbOne,
    RestSure,
    RisingSR,
    RisingUCBE,
    RoundRobin,
    RoundRobinWindow,
    SuccessiveHalving,
    SuccessiveRejects,
)
from latebloomer.problems import Problem

__version__ = "0.1.0"

__all__ = [
    "UCBE",
    "ExploreThenCommit",
    "LatebloomerError",
    "ProbOne",
    "Problem",
    "RestSure",
    "Results",
    "RisingSR",
    "RisingUCBE",
    "RoundRobin",
    "RoundRobinWindow",
    "Session",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "Verdict",
    "check_policy",
    "cite",
    "simulate",
]
