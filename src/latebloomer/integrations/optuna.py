"""Tuners as learners: race algorithms, each tuned by Optuna, one trial at a time.

Which algorithm *and* which settings is one question; a pull of a tuner is one more trial, and its
score is that of the best settings found so far, which only rises.
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
    """An Optuna study: one pull is one trial, the score is the best value found so far.

    `objective(trial)` is as Optuna wants it. A study may be given, else one is made in memory with
    `sampler` (TPE if None, seeded by `seed`). Scores are higher for better: with
    `direction="minimize"` they are the values' negatives, so race it with `maximize=True`. A trial
    that is pruned or ends in NaN is a pull, too, and leaves the best value as it was.

    Parameters
    ----------
    objective : Callable[[Any], float]
        `objective(trial)`, as Optuna wants it.
    study : Any
        One of yours; made in memory if None.
    sampler : Any
        Of a study that is made; TPE if None.
    direction : str
        "maximize" or "minimize", of a study that is made.
    seed : int | None
        Of TPE.

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
            "it returns their value",
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
        """Run one more trial; the best value so far."""
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
        """Pickle the trials and the sampler; of a study with a storage of its own, the sampler."""
        count = len(self.study.get_trials(deepcopy=False))
        study = self.study if self._in_memory() else None
        saved = (self.study.study_name, count, self.study.sampler, study)
        (Path(folder) / FILE).write_bytes(pickle.dumps(saved))

    def load(self, folder: Path) -> None:
        """Become what was saved; only files that you trust: unpickling can run any code."""
        name, count, sampler, study = pickle.loads((Path(folder) / FILE).read_bytes())
        if study is not None:
            self.study = study
            return
        has = len(self.study.get_trials(deepcopy=False))
        if self.study.study_name != name or has < count:
            raise LearnerError(
                f"the checkpoint is of study {name!r} with {count} trials, but this learner's is "
                f"{self.study.study_name!r} with {has}: give it the same study and storage"
            )
        self.study.sampler = sampler

    def _in_memory(self) -> bool:
        # Optuna has no public word for a study's storage.
        return isinstance(self.study._storage, self._optuna.storages.InMemoryStorage)


def _check_study(study: Any, sampler: Any) -> None:
    if sampler is not None:
        raise SettingError("study and sampler are both given, but a study has its own sampler")
    need_one_direction(study)


def need_one_direction(study: Any) -> None:
    """Raise a `SettingError` where a study has several objectives.

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
