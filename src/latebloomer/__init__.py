"""Divide one fixed budget among learners that improve with training, and keep the best one.

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
    from latebloomer.programs.command import Command
    from latebloomer.racing.api import race, read_verdict, resume
    from latebloomer.racing.callbacks import RaceView
    from latebloomer.racing.checks.check_learner import check_learner
    from latebloomer.racing.checks.check_runner import check_runner
    from latebloomer.racing.journal.journal_file import JournalFile
    from latebloomer.racing.learners.full_training import full_training
    from latebloomer.racing.runners.local import LocalRunner
    from latebloomer.racing.runners.ray_runner import RayRunner
    from latebloomer.racing.runners.runner import Runner
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.policy_checks import check_policy
    from latebloomer.session.session import Session
    from latebloomer.simulation.results.results import Results
    from latebloomer.simulation.simulate import simulate
    from latebloomer.simulation.trajectory import trajectory
    from latebloomer.theory.row_scores import row_scores

# Races, learners and verdicts; then policies; then simulations and checks; then errors and
# citations.
__all__ = ["JournalFile", "LocalRunner", "RaceView", "RayRunner", "Runner", "Session", "Verdict"]
__all__ += [
    "Command",
    "RaceRandomSearchCV",
    "RaceSearchCV",
    "full_training",
    "race",
    "read_verdict",
    "resume",
    "row_scores",
]
__all__ += ["ASHA", "UCBE", "AdaptiveRejects", "ExploreThenCommit", "Foresight", "Hyperband"]
__all__ += ["ProbOne", "RestSure", "RisingSR", "RisingUCBE", "RoundRobin", "RoundRobinWindow"]
__all__ += ["SuccessiveHalving", "SuccessiveRejects"]
__all__ += ["Problem", "Results", "check_learner", "check_policy", "check_runner", "simulate"]
__all__ += ["trajectory"]
__all__ += ["LatebloomerError", "__version__", "cite"]

# The modules that define the public names, except the policies. A module is imported when one of
# its names is first used, so `import latebloomer` imports nothing large but NumPy.
_HOMES = {
    "citation": "cite",
    "errors": "LatebloomerError",
    "integrations.sklearn": "RaceRandomSearchCV RaceSearchCV",
    "problems": "Problem",
    "programs.command": "Command",
    "racing.api": "race read_verdict resume",
    "racing.callbacks": "RaceView",
    "racing.journal.journal_file": "JournalFile",
    "racing.checks.check_learner": "check_learner",
    "racing.checks.check_runner": "check_runner",
    "racing.runners.runner": "Runner",
    "racing.runners.local": "LocalRunner",
    "racing.runners.ray_runner": "RayRunner",
    "racing.learners.full_training": "full_training",
    "racing.verdict.verdict": "Verdict",
    "session.policy_checks": "check_policy",
    "session.session": "Session",
    "simulation.results.results": "Results",
    "simulation.simulate": "simulate",
    "simulation.trajectory": "trajectory",
    "theory.row_scores": "row_scores",
}


def __getattr__(name: str) -> Any:
    from latebloomer.policies.registry import POLICIES  # module and class of each

    homes = {public: module for module, names in _HOMES.items() for public in names.split()}
    for module, _, policy in (home.rpartition(".") for home in POLICIES.values()):
        homes[policy] = f"policies.{module}"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"latebloomer.{homes[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
