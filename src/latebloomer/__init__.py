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
    from latebloomer.policies.foresight import Foresight
    from latebloomer.policies.power_law import ExploreThenCommit, RestSure
    from latebloomer.policies.prob_one import ProbOne
    from latebloomer.policies.rising_sr import RisingSR
    from latebloomer.policies.rising_ucbe import UCBE, RisingUCBE
    from latebloomer.policies.rungs import ASHA, Hyperband
    from latebloomer.policies.window_ratings import (
        RoundRobin,
        RoundRobinWindow,
        SuccessiveHalving,
        SuccessiveRejects,
    )
    from latebloomer.problems import Problem
    from latebloomer.racing.api import race, read_verdict, resume
    from latebloomer.racing.journal import JournalFile
    from latebloomer.racing.learner import check_learner
    from latebloomer.racing.race_state import RaceView
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.runners.local import LocalRunner
    from latebloomer.racing.runners.ray_runner import RayRunner
    from latebloomer.racing.runners.runner_contract import check_runner
    from latebloomer.racing.training_share import full_training
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.policy_contract import check_policy
    from latebloomer.session.session import Session
    from latebloomer.simulation.results import Results
    from latebloomer.simulation.simulate import simulate

# Learners, races and what comes of them; then the policies; then simulation, contracts, the rest.
__all__ = ["JournalFile", "LocalRunner", "RaceView", "RayRunner", "Runner", "Session", "Verdict"]
__all__ += [
    "RaceRandomSearchCV",
    "RaceSearchCV",
    "full_training",
    "race",
    "read_verdict",
    "resume",
]
__all__ += ["ASHA", "UCBE", "AdaptiveRejects", "ExploreThenCommit", "Foresight", "Hyperband"]
__all__ += ["ProbOne", "RestSure", "RisingSR", "RisingUCBE", "RoundRobin", "RoundRobinWindow"]
__all__ += ["SuccessiveHalving", "SuccessiveRejects"]
__all__ += ["Problem", "Results", "check_learner", "check_policy", "check_runner", "simulate"]
__all__ += ["LatebloomerError", "__version__", "cite"]

# Where each name lives, except the policies. It is loaded at its first use: importing the package
# loads NumPy alone.
_HOMES = {
    "citation": "cite",
    "errors": "LatebloomerError",
    "integrations.sklearn": "RaceRandomSearchCV RaceSearchCV",
    "problems": "Problem",
    "racing.api": "race read_verdict resume",
    "racing.race_state": "RaceView",
    "racing.journal": "JournalFile",
    "racing.learner": "check_learner",
    "racing.runners.contract": "Runner",
    "racing.runners.local": "LocalRunner",
    "racing.runners.ray_runner": "RayRunner",
    "racing.runners.runner_contract": "check_runner",
    "racing.training_share": "full_training",
    "racing.verdict.verdict": "Verdict",
    "session.policy_contract": "check_policy",
    "session.session": "Session",
    "simulation.results": "Results",
    "simulation.simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    from latebloomer.policies.registry import POLICIES  # it has the module and class of each

    homes = {one: module for module, names in _HOMES.items() for one in names.split()}
    for module, _, policy in (home.rpartition(".") for home in POLICIES.values()):
        homes[policy] = f"policies.{module}"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"latebloomer.{homes[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
