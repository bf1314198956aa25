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

from typing import TYPE_CHECKING

from latebloomer._util.lazy_names import lazy_names
from latebloomer.version import __version__

if TYPE_CHECKING:
    from latebloomer.citation import cite
    from latebloomer.errors import LatebloomerError
    from latebloomer.integrations.sklearn import RaceRandomSearchCV, RaceSearchCV
    from latebloomer.policies import (
        UCBE,
        AdaptiveRejects,
        ExploreThenCommit,
        Foresight,
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
    from latebloomer.racing import (
        Verdict,
        check_learner,
        full_training,
        race,
        read_verdict,
        resume,
    )
    from latebloomer.racing.runners.ray import RayRunner
    from latebloomer.session.policy_contract import check_policy
    from latebloomer.session.session import Session
    from latebloomer.simulation.results import Results
    from latebloomer.simulation.simulate import simulate

__all__ = [
    "UCBE",
    "AdaptiveRejects",
    "ExploreThenCommit",
    "Foresight",
    "LatebloomerError",
    "ProbOne",
    "Problem",
    "RaceRandomSearchCV",
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
    "check_learner",
    "check_policy",
    "cite",
    "full_training",
    "race",
    "read_verdict",
    "resume",
    "simulate",
]


# Where each name lives.
HOMES = {
    "cite": "latebloomer.citation",
    "LatebloomerError": "latebloomer.errors",
    "RaceRandomSearchCV": "latebloomer.integrations.sklearn",
    "RaceSearchCV": "latebloomer.integrations.sklearn",
    "UCBE": "latebloomer.policies",
    "AdaptiveRejects": "latebloomer.policies",
    "ExploreThenCommit": "latebloomer.policies",
    "Foresight": "latebloomer.policies",
    "ProbOne": "latebloomer.policies",
    "RestSure": "latebloomer.policies",
    "RisingSR": "latebloomer.policies",
    "RisingUCBE": "latebloomer.policies",
    "RoundRobin": "latebloomer.policies",
    "RoundRobinWindow": "latebloomer.policies",
    "SuccessiveHalving": "latebloomer.policies",
    "SuccessiveRejects": "latebloomer.policies",
    "Problem": "latebloomer.problems",
    "Verdict": "latebloomer.racing",
    "check_learner": "latebloomer.racing",
    "full_training": "latebloomer.racing",
    "read_verdict": "latebloomer.racing",
    "race": "latebloomer.racing",
    "resume": "latebloomer.racing",
    "RayRunner": "latebloomer.racing.runners.ray",
    "check_policy": "latebloomer.session.policy_contract",
    "Session": "latebloomer.session.session",
    "Results": "latebloomer.simulation.results",
    "simulate": "latebloomer.simulation.simulate",
}

__getattr__, __dir__ = lazy_names(__name__, HOMES)
