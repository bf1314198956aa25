"""Spend one fixed budget over learners that get better with training, and keep the right one.

>>> import latebloomer as lb
>>> def tortoise():
...     for n in range(1, 1000):
...         yield n / (n + 20)  # train one more step, then yield the score
>>> def hare():
...     for n in range(1, 1000):
...         yield 0.4 * n / (n + 2)
>>> lb.race({"tortoise": tortoise, "hare": hare}, budget=40, journal=None, progress=False).name
'tortoise'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latebloomer.citation import cite
from latebloomer.errors import LatebloomerError
from latebloomer.policies import (
    UCBE,
    AdaptiveRejects,
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
from latebloomer.racing import Verdict, race, resume
from latebloomer.session.policy_contract import check_policy
from latebloomer.session.session import Session
from latebloomer.simulation.results import Results
from latebloomer.simulation.simulate import simulate
from latebloomer.version import __version__

if TYPE_CHECKING:
    from latebloomer.integrations.sklearn import RaceSearchCV
    from latebloomer.racing.runners.ray import RayRunner

__all__ = [
    "UCBE",
    "AdaptiveRejects",
    "ExploreThenCommit",
    "LatebloomerError",
    "ProbOne",
    "Problem",
    "RaceSearchCV",
    "RayRunner",
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
    "__version__",
    "check_policy",
    "cite",
    "race",
    "resume",
    "simulate",
]


# What needs an extra is loaded when it is first asked for.
LATER = {
    "RaceSearchCV": "latebloomer.integrations.sklearn",
    "RayRunner": "latebloomer.racing.runners.ray",
}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
