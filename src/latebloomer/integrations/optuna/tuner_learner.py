"""A study as a learner, and the best settings that a race of tuners has found."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from latebloomer._util.interrupts import TimeIsOver, interrupted_after
from latebloomer.errors import LearnerError, SettingError, need_in, require
from latebloomer.integrations.library_learner import library
from latebloomer.integrations.optuna.studies import need_one_direction, settings_details
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.arm_views import SETTINGS

FILE = "optuna.pickle"
FIRST_TRIALS = 4  # maximum further trials in a pull, until one is complete


class TunerLearner:
    """Wrap an Optuna study as a learner. One pull is one trial, or those that fit into a time.

    The score is the best value so far, negated with `direction="minimize"`, so that higher is
    better: race with `maximize=True`. A trial that is pruned, takes too long or ends in NaN is a
    pull, too, and leaves the best value unchanged. `best_configuration` returns the best settings
    of all learners of a race, including learners that were dropped.

    Parameters
    ----------
    objective : Callable[[Any], float]
        Function of a trial that returns its value, as for `study.optimize`.
    study : Any
        Your own study. Default: a new study in memory.
    sampler : Any
        Sampler of the new study. Default: TPE, seeded by `seed`.
    direction : str
        "maximize" or "minimize", for the new study.
    seed : int | None
        Seed for TPE. Default: random.
    default : Mapping[str, Any] | None
        Settings of the first trial, such as the defaults of a library. Default: the sampler
        proposes them.
    seconds_per_pull : float | None
        CPU seconds of this process per pull: n pulls are the trials that fit into n times this
        time; the last one may take longer. Default: one trial per pull, however long it takes.
    timeout : float | None
        Seconds after which a trial is interrupted at its next Python instruction; it then ends as
        pruned. Compiled code is interrupted when it returns. Default: no limit.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The study has several objectives, or both a study and a sampler are given.

    Examples
    --------
    ::

        from latebloomer import race
        from latebloomer.integrations.optuna import TunerLearner

        def hill(trial):
            return -((trial.suggest_float("x", -10, 10) - 2) ** 2)

        def ridge(trial):
            return -abs(trial.suggest_float("x", -10, 10) - 2) - 5

        tuners = {"hill": lambda seed: TunerLearner(hill, seed=seed),
                  "ridge": lambda seed: TunerLearner(ridge, seed=seed)}
        verdict = race(tuners, budget=20)
    """

    def __init__(
        self,
        objective: Callable[[Any], float],
        *,
        study: Any = None,
        sampler: Any = None,
        direction: str = "maximize",
        seed: int | None = None,
        default: Mapping[str, Any] | None = None,
        seconds_per_pull: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self._optuna = library("optuna", "tuners", "optuna")
        why = "it returns the trial's value"
        require(callable(objective), "objective", objective, "a function of a trial", why)
        if study is None:
            sampler = sampler or self._optuna.samplers.TPESampler(seed=seed)
            study = self._optuna.create_study(sampler=sampler, direction=direction)
        elif sampler is not None:
            raise SettingError("study and sampler are both given, but a study has its own sampler")
        need_one_direction(study)
        for name, seconds in (("seconds_per_pull", seconds_per_pull), ("timeout", timeout)):
            if seconds is not None:
                need_in(name, seconds, "(0, inf)", "it is a time in seconds")
        self._objective, self.study = objective, study
        self._sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        self._default, self._slice, self._timeout = default, seconds_per_pull, timeout
        self._pulls, self._spent = 0, 0.0  # number of pulls, and CPU seconds of all trials

    def pull(self) -> float:
        """Run more trials and return the best value so far."""
        if self._default is not None and not self.study.get_trials(deepcopy=False):
            self.study.enqueue_trial(dict(self._default))
        self._pulls += 1
        if self._slice is None:
            self._try_one()
        while self._slice is not None and self._spent < self._pulls * self._slice:
            self._try_one()
        for _ in range(FIRST_TRIALS):  # the first ones may be pruned
            if not self._has_value():
                self._try_one()
        return self._sign * float(self.study.best_value)  # raises an error if no trial is complete

    def _try_one(self) -> None:
        """Run one more trial."""
        trial, began = self.study.ask(), process_time()
        value, state = None, self._optuna.trial.TrialState.FAIL
        try:
            with interrupted_after(self._timeout):
                value = self._objective(trial)
            state = None
        except (self._optuna.TrialPruned, TimeIsOver):
            value, state = None, self._optuna.trial.TrialState.PRUNED
        finally:
            self._spent += process_time() - began
            self.study.tell(trial, value, state=state)

    def _has_value(self) -> bool:
        done = self._optuna.trial.TrialState.COMPLETE
        return bool(self.study.get_trials(deepcopy=False, states=(done,)))

    @property
    def score_details(self) -> dict[str, Any]:
        """The best settings so far, for the journal of a race."""
        return settings_details(self.model)

    @property
    def model(self) -> dict[str, Any]:
        """The best settings so far."""
        return dict(self.study.best_params)

    def save(self, folder: Path) -> None:
        """Pickle the trials and the sampler."""
        saved = (self.study.get_trials(), self.study.sampler, self._pulls, self._spent)
        (Path(folder) / FILE).write_bytes(pickle.dumps(saved))

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`, which you must trust: a pickle can run code.

        Trials that are already in the study's own storage are not added again.
        """
        trials, self.study.sampler, self._pulls, self._spent = pickle.loads(
            (Path(folder) / FILE).read_bytes()
        )
        self.study.add_trials(trials[len(self.study.get_trials(deepcopy=False)) :])


class Configuration(NamedTuple):
    """The best settings that the learners of a race have found.

    Attributes
    ----------
    learner : str
        Name of the learner that found the settings.
    params : dict[str, Any]
        The best settings.
    score : float
        Score of the settings.
    """

    learner: str
    params: dict[str, Any]
    score: float


def best_configuration(verdict: Verdict) -> Configuration:
    """Return the best settings that any learner of a race has found, including dropped learners.

    A race keeps the learner that is expected to be best at the horizon, but a dropped learner may
    have found the best settings so far.

    Parameters
    ----------
    verdict : Verdict
        Verdict of a race of tuners (`TunerLearner`); it may be read from a journal.

    Returns
    -------
    Configuration
        The learner's name, its best settings and their score.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    LearnerError
        No learner of the race is a `TunerLearner`.

    Examples
    --------
    ::

        verdict = race(tuners, budget=20)
        name, params, score = best_configuration(verdict)
    """
    library("optuna", "tuners", "optuna")
    tuned = [view for view in verdict.learners if SETTINGS in view.details]
    if not tuned:
        raise LearnerError("No learner of this race is a TunerLearner: they have no settings.")
    best = max(tuned, key=lambda view: view.score if verdict.history.sign > 0 else -view.score)
    return Configuration(best.name, dict(best.details[SETTINGS]), best.score)
