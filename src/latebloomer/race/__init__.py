"""Real learners: race them, resume after anything, and keep the right one."""

from latebloomer.race.check import LearnerCheck, check_learner
from latebloomer.race.errors import (
    AllFailed,
    Interrupted,
    JournalError,
    JournalInUse,
    LearnerError,
    OtherRace,
)
from latebloomer.race.learner import Learner
from latebloomer.race.outcome import ArmResult, Verdict
from latebloomer.race.races import look, race, resume
from latebloomer.race.runner import Runner

__all__ = [
    "AllFailed",
    "ArmResult",
    "Interrupted",
    "JournalError",
    "JournalInUse",
    "Learner",
    "LearnerCheck",
    "LearnerError",
    "OtherRace",
    "Runner",
    "Verdict",
    "check_learner",
    "look",
    "race",
    "resume",
]
