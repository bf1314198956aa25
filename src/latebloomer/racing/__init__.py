"""Real learners: race them, resume after anything, and keep the right one."""

from typing import TYPE_CHECKING

from latebloomer._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from latebloomer.errors import (
        AllFailed,
        Interrupted,
        JournalError,
        JournalInUse,
        JournalMismatch,
        LearnerError,
    )
    from latebloomer.racing.api import race, read_verdict, resume
    from latebloomer.racing.callbacks import Callback, RaceView
    from latebloomer.racing.learner import Learner
    from latebloomer.racing.learner_contract import LearnerCheck, check_learner
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.runners.runner_contract import check_runner
    from latebloomer.racing.training_share import full_training
    from latebloomer.racing.verdict.verdict import LearnerResult, Verdict

__all__ = [
    "AllFailed",
    "Callback",
    "Interrupted",
    "JournalError",
    "JournalInUse",
    "JournalMismatch",
    "Learner",
    "LearnerCheck",
    "LearnerError",
    "LearnerResult",
    "RaceView",
    "Runner",
    "Verdict",
    "check_learner",
    "check_runner",
    "full_training",
    "race",
    "read_verdict",
    "resume",
]

HOMES = {  # where each name lives
    "AllFailed": "latebloomer.errors",
    "LearnerResult": "latebloomer.racing.verdict.verdict",
    "Callback": "latebloomer.racing.callbacks",
    "Interrupted": "latebloomer.errors",
    "JournalError": "latebloomer.errors",
    "JournalInUse": "latebloomer.errors",
    "Learner": "latebloomer.racing.learner",
    "LearnerCheck": "latebloomer.racing.learner_contract",
    "LearnerError": "latebloomer.errors",
    "JournalMismatch": "latebloomer.errors",
    "RaceView": "latebloomer.racing.callbacks",
    "Runner": "latebloomer.racing.runners.contract",
    "Verdict": "latebloomer.racing.verdict.verdict",
    "check_learner": "latebloomer.racing.learner_contract",
    "check_runner": "latebloomer.racing.runners.runner_contract",
    "full_training": "latebloomer.racing.training_share",
    "read_verdict": "latebloomer.racing.api",
    "race": "latebloomer.racing.api",
    "resume": "latebloomer.racing.api",
}

__getattr__, __dir__ = lazy_names(__name__, HOMES)
