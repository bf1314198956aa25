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

from latebloomer.version import __version__

if TYPE_CHECKING:
    from latebloomer.citation import cite
    from latebloomer.errors import LatebloomerError
    from latebloomer.integrations.sklearn import RaceRandomSearchCV, RaceSearchCV
    from latebloomer.policies.adaptive_rejects import AdaptiveRejects
    from latebloomer.policies.asha import ASHA
    from latebloomer.policies.explore_then_commit import ExploreThenCommit
    from latebloomer.policies.foresight import Foresight
    from latebloomer.policies.hyperband import Hyperband
    from latebloomer.policies.prob_one import ProbOne
    from latebloomer.policies.rest_sure import RestSure
    from latebloomer.policies.rising_sr import RisingSR
    from latebloomer.policies.rising_ucbe import RisingUCBE
    from latebloomer.policies.round_robin import RoundRobin, RoundRobinWindow
    from latebloomer.policies.successive_halving import SuccessiveHalving
    from latebloomer.policies.successive_rejects import SuccessiveRejects
    from latebloomer.policies.ucbe import UCBE
    from latebloomer.problems import Problem
    from latebloomer.racing.api import race, read_verdict, resume
    from latebloomer.racing.callbacks import RaceView
    from latebloomer.racing.journal import JournalFile
    from latebloomer.racing.learner import check_learner
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.runners.local import LocalRunner
    from latebloomer.racing.runners.ray import RayRunner
    from latebloomer.racing.runners.runner_contract import check_runner
    from latebloomer.racing.training_share import full_training
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.policy_contract import check_policy
    from latebloomer.session.session import Session
    from latebloomer.simulation.results import Results
    from latebloomer.simulation.simulate import simulate

__all__ = [
    "ASHA",
    "UCBE",
    "AdaptiveRejects",
    "ExploreThenCommit",
    "Foresight",
    "Hyperband",
    "JournalFile",
    "LatebloomerError",
    "LocalRunner",
    "ProbOne",
    "Problem",
    "RaceRandomSearchCV",
    "RaceSearchCV",
    "RaceView",
    "RayRunner",
    "RestSure",
    "Results",
    "RisingSR",
    "RisingUCBE",
    "RoundRobin",
    "RoundRobinWindow",
    "Runner",
    "Session",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "Verdict",
    "__version__",
    "check_learner",
    "check_policy",
    "check_runner",
    "cite",
    "full_training",
    "race",
    "read_verdict",
    "resume",
    "simulate",
]


# Where each name lives. It is loaded at its first use: importing the package loads NumPy alone.
_HOMES = {
    "citation": "cite",
    "errors": "LatebloomerError",
    "integrations.sklearn": "RaceRandomSearchCV RaceSearchCV",
    "policies.adaptive_rejects": "AdaptiveRejects",
    "policies.asha": "ASHA",
    "policies.explore_then_commit": "ExploreThenCommit",
    "policies.foresight": "Foresight",
    "policies.hyperband": "Hyperband",
    "policies.prob_one": "ProbOne",
    "policies.rest_sure": "RestSure",
    "policies.rising_sr": "RisingSR",
    "policies.rising_ucbe": "RisingUCBE",
    "policies.round_robin": "RoundRobin RoundRobinWindow",
    "policies.successive_halving": "SuccessiveHalving",
    "policies.successive_rejects": "SuccessiveRejects",
    "policies.ucbe": "UCBE",
    "problems": "Problem",
    "racing.api": "race read_verdict resume",
    "racing.callbacks": "RaceView",
    "racing.journal": "JournalFile",
    "racing.learner": "check_learner",
    "racing.runners.contract": "Runner",
    "racing.runners.local": "LocalRunner",
    "racing.runners.ray": "RayRunner",
    "racing.runners.runner_contract": "check_runner",
    "racing.training_share": "full_training",
    "racing.verdict.verdict": "Verdict",
    "session.policy_contract": "check_policy",
    "session.session": "Session",
    "simulation.results": "Results",
    "simulation.simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            globals()[name] = found = getattr(import_module(f"latebloomer.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
