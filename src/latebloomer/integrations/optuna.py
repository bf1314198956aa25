"""Tuners as learners: race algorithms, each tuned by Optuna, one trial at a time.

Which algorithm *and* which settings is one question. A pull of a tuner is one more trial, and its
score is the best value found so far, which only rises.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latebloomer.errors import LearnerError, SettingError, extra, require

FILE = "optuna.pickle"
DIRECTIONS = ("maximize", "minimize")


class TunerLearner:
    """Wrap an Optuna study as a learner. One pull is one trial.

    The score is the best value so far, negated with `direction="minimize"`, so that higher is
    better: race with `maximize=True`. A trial that is pruned or ends in NaN is a pull, too, and
    leaves the best value unchanged.

    Parameters
    ----------
    objective : Callable[[Any], float]
        Function of a trial that returns its value, as for `study.optimize`.
    study : Any
        Your own study. Default: a study in memory.
    sampler : Any
        Sampler of the study in memory. Default: TPE, seeded by `seed`.
    direction : str
        "maximize" or "minimize", for the study in memory.
    seed : int | None
        Seed of TPE.

    Raises
    ------
    MissingExtra
        Optuna is not installed.
    """

    def __init__(
        self,
        objective: Callable[[Any], float],
        *,
        study: Any = None,
        sampler: Any = None,
        direction: str = "maximize",
        seed: int | None = None,
    ) -> None:
        self._optuna = extra("optuna", "tuners", "optuna")
        require(
            callable(objective), "objective", objective, "a function of a trial",
            "it returns the trial's value",
        )  # fmt: skip
        require(
            direction in DIRECTIONS, "direction", direction, "'maximize' or 'minimize'",
            "it says which values are better",
        )  # fmt: skip
        self._objective = objective
        self.study = self._new_study(sampler, direction, seed) if study is None else study
        if study is not None:
            _check_study(study, sampler)
        self._sign = 1.0 if self.study.direction.name == "MAXIMIZE" else -1.0

    def _new_study(self, sampler: Any, direction: str, seed: int | None) -> Any:
        if sampler is None:
            sampler = self._optuna.samplers.TPESampler(seed=seed)
        storage = self._optuna.storages.InMemoryStorage()
        return self._optuna.create_study(storage=storage, sampler=sampler, direction=direction)

    def pull(self) -> float:
        """Run one more trial and return the best value so far."""
        trial = self.study.ask()
        states = self._optuna.trial.TrialState
        try:
            value = self._objective(trial)
        except self._optuna.TrialPruned:
            self.study.tell(trial, state=states.PRUNED)
        except BaseException:
            self.study.tell(trial, state=states.FAIL)
            raise
        else:
            self.study.tell(trial, value)
        if not self.study.get_trials(deepcopy=False, states=(states.COMPLETE,)):
            raise LearnerError(
                "no trial is complete yet (all were pruned or failed), so there is no score"
            )
        return self._sign * float(self.study.best_value)

    @property
    def model(self) -> dict[str, Any]:
        """The best settings so far."""
        return dict(self.study.best_params)

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Pickle the trials and the sampler."""
        saved = (self.study.get_trials(), self.study.sampler)
        (Path(folder) / FILE).write_bytes(pickle.dumps(saved))

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`, which you must trust: unpickling can run any code.

        Trials that the study's own storage has kept are not added again.
        """
        trials, self.study.sampler = pickle.loads((Path(folder) / FILE).read_bytes())
        self.study.add_trials(trials[len(self.study.get_trials(deepcopy=False)) :])


def _check_study(study: Any, sampler: Any) -> None:
    if sampler is not None:
        raise SettingError("study and sampler are both given, but a study has its own sampler")
    need_one_direction(study)


def need_one_direction(study: Any) -> None:
    """Raise a `SettingError` if a study has several objectives.

    Parameters
    ----------
    study : Any
        An Optuna study.

    Raises
    ------
    SettingError
        It has several objectives.
    """
    if len(study.directions) > 1:
        raise SettingError(
            f"the study has {len(study.directions)} directions, but a race needs 1: its scores "
            "must have an order"
        )
