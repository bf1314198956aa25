"""Real learners: race them, resume after anything, and keep the right one."""

from latebloomer.errors import (
    AllFailed,
    Interrupted,
    JournalError,
    JournalInUse,
    LearnerError,
    OtherRace,
)
from latebloomer.racing.api import look, race, resume
from latebloomer.racing.callbacks import Callback, RaceView
from latebloomer.racing.learner import Learner
from latebloomer.racing.learner_contract import LearnerCheck, check_learner
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.runners.runner_contract import check_runner
from latebloomer.racing.training_share import full
from latebloomer.racing.verdict.verdict import ArmResult, Verdict

__all__ = [
    "AllFailed",
    "ArmResult",
    "Callback",
    "Interrupted",
    "JournalError",
    "JournalInUse",
    "Learner",
    "LearnerCheck",
    "LearnerError",
    "OtherRace",
    "RaceView",
    "Runner",
    "Verdict",
    "check_learner",
    "check_runner",
    "full",
    "look",
    "race",
    "resume",
]
