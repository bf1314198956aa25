"""The trials of a race in a study: created with the race's name, and built as learners."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import SettingError
from latebloomer.integrations.optuna.studies import settings_details
from latebloomer.racing.learners import full_training
from latebloomer.racing.learners.learner import ScoreStream

KEY = "latebloomer"  # prefix of attributes that a race keeps in a study and its trials
LEFT = f"{KEY}:left"  # attribute that says how and why a trial left the race


class TrialBuilder:
    """Build the learner of a trial; Optuna returns the same settings for a trial again."""

    def __init__(self, objective: Callable[[Any], Any], trial: Any, built: Any = None) -> None:
        self._objective, self.trial = objective, trial
        self._built = built  # used by the first call
        self.full_steps = full_training.declared(objective)

    def __call__(self) -> Any:
        built, self._built = self._built, None
        if built is None:
            built = self._objective(self.trial)
        if isinstance(built, Iterator):
            # A generator suggests its settings while it runs.
            return ScoreStream(built, lambda: settings_details(self.trial.params))
        if not hasattr(built, "score_details"):
            with suppress(AttributeError):  # the object accepts no attributes
                built.score_details = settings_details(self.trial.params)
        return built


def builders_of(optuna: Any, study: Any, objective: Any, key: str, n: int) -> list[TrialBuilder]:
    """Return builders of the trials that a killed process created, and of new trials."""
    frozen = [
        stored for stored in study.get_trials(deepcopy=False) if stored.user_attrs.get(KEY) == key
    ]
    if len(frozen) > n or (key in study.user_attrs and len(frozen) < n):
        problem = f"n_configs={n}, but this race of the study has {len(frozen)} trials"
        raise SettingError(f"{problem}: give that number to resume it, or another name=")
    waits = optuna.trial.TrialState.WAITING
    # Optuna has no public way to continue a trial that another process created.
    trials = [
        study.ask() if stored.state == waits else optuna.trial.Trial(study, stored._trial_id)
        for stored in frozen
    ]
    builders = [TrialBuilder(objective, trial) for trial in trials]
    while len(builders) < n:
        trial, built, pauses = _new_trial(optuna, study, key), None, True
        if not builders:
            with suppress(Exception):  # the race calls it again and records the failure
                built = objective(trial)
                pauses = hasattr(built, "pull") or isinstance(built, Iterator)
        if not pauses:
            trial.set_user_attr(KEY, "")  # mark it as not part of the race
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            problem = (
                f"The objective returned {brief(built)}, but race_study needs one that pauses"
            )
            raise SettingError(
                f"{problem}: write `yield value` for `trial.report(...)`, no return"
            )
        builders.append(TrialBuilder(objective, trial, built))
    return builders


def _new_trial(optuna: Any, study: Any, key: str) -> Any:
    """Return a new trial that is marked with the race's name from the start, in case of a kill.

    As with `study.ask()`, trials that the user has enqueued come first.
    """
    states = optuna.trial.TrialState
    waiting = study.get_trials(deepcopy=False, states=(states.WAITING,))
    if waiting:
        # Optuna has no public way to mark a waiting trial.
        study._storage.set_trial_user_attr(waiting[0]._trial_id, KEY, key)
        trial = study.ask()
        if trial.user_attrs.get(KEY) != key:  # another process was faster
            trial.set_user_attr(KEY, key)
        return trial
    study.add_trial(optuna.trial.create_trial(state=states.RUNNING, user_attrs={KEY: key}))
    own = [
        stored for stored in study.get_trials(deepcopy=False) if stored.user_attrs.get(KEY) == key
    ]
    return optuna.trial.Trial(study, own[-1]._trial_id)


def frozen_trials(study: Any, trials: Sequence[Any]) -> list[Any]:
    """Return the trials with their data in the storage."""
    by_number = {stored.number: stored for stored in study.get_trials(deepcopy=False)}
    return [by_number[trial.number] for trial in trials]
