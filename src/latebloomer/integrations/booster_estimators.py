"""How the scikit-learn classes of XGBoost, LightGBM and CatBoost are trained by rounds.

None of them has `warm_start`. The first two continue from the booster that they have, which
without sampling of rows or columns is one long training, bit for bit; with sampling each pull
draws by the seed and the number of its first round, as after a resume. CatBoost continues from its
own snapshot, with all its random states: that is one long training always. A training in one go,
as the refit is, is the library's own.
"""

from __future__ import annotations

import base64
import shutil
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.integrations import boosters, catboost, lightgbm, xgboost
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.splits import Fold
from latebloomer.integrations.sklearn.training import FoldModel, TrainingSettings, last_step


def booster_model(model: Any) -> type[FoldModel] | None:
    """Return how a booster's scikit-learn class is trained by rounds; None for anything else."""
    names = {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(model).__mro__}
    found = next((kind for name, kind in MODELS.items() if name in names), None)
    if found is None or any(name.startswith("xgboost.XGBRF") for name in names):
        return None  # the trees of a forest are one round
    params = model.get_params()
    early = next((name for name in boosters.STOPPING if params.get(name) is not None), None)
    if early is not None and found is not CatBoostModel:  # which has it only with an eval_set
        raise LearnerError(
            f"{type(model).__name__} has {early}={params[early]}, but in a race the race decides "
            "when a learner stops: leave it out"
        )
    return None if params.get("boosting_type") == "rf" else found


class BoosterModel(FoldModel):
    """Trains by boosting rounds on all rows."""

    names: tuple[str, ...] = ("n_estimators",)  # of the setting that says how many
    usual = 100  # rounds, if it is not said

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        super().__init__(estimator, fold, settings)
        given = last_step(self._estimator).get_params()
        self._given = {name: value for name, value in given.items() if value is not None}

    @property
    def full_steps(self) -> int:
        found = (self._given[name] for name in self.names if name in self._given)
        return max(1, next(found, self.usual) // self._settings.step)

    def describe(self) -> str:
        return f"boosting: {self._settings.step} more rounds a step, on all {self._rows} rows"


class ContinuedModel(BoosterModel):
    """Trains by `fit` with the booster so far, and as many rounds as are to be added."""

    def _train(self, steps: int) -> None:
        model, step, seed = self._model, self._settings.step, self._given.get("random_state")
        if self.steps and isinstance(seed, int) and self._draws():
            model.set_params(random_state=seed + self.steps)  # else each call draws the same rows
        model.set_params(n_estimators=step * steps)
        more = self._booster() if self.steps else {}
        self._call(model.fit, self._X, self._fold.y, **self._params, **more)
        self.steps += steps
        model.set_params(n_estimators=step * self.steps)
        if seed is not None:
            model.set_params(random_state=seed)

    @abstractmethod
    def _booster(self) -> dict[str, Any]:
        """Return what `fit` is given to continue from."""

    @abstractmethod
    def _draws(self) -> bool:
        """Return whether rounds are drawn at random."""


class XGBoostModel(ContinuedModel):
    """Trains `XGBClassifier` and `XGBRegressor`."""

    def _booster(self) -> dict[str, Any]:
        return {"xgb_model": self._model.get_booster()}

    def _draws(self) -> bool:
        return xgboost.draws_at_random(self._given)


class LightGBMModel(ContinuedModel):
    """Trains `LGBMClassifier` and `LGBMRegressor`."""

    def _prepare(self) -> None:
        if not {"verbose", "verbosity"} & set(self._given):
            self._model.set_params(verbosity=-1)  # it would print the same at each pull

    def _booster(self) -> dict[str, Any]:
        return {"init_model": self._model.booster_}

    def _draws(self) -> bool:
        settings = lightgbm.settings_of(self._model.booster_)
        return lightgbm.draws_at_random(settings) or lightgbm.keeps_hidden_states(settings)


class CatBoostModel(BoosterModel):
    """Trains `CatBoostClassifier` and `CatBoostRegressor`: snapshots keep all random states."""

    names, usual = boosters.ROUNDS, catboost.MOST

    def __init__(self, estimator: Any, fold: Fold, settings: TrainingSettings) -> None:
        super().__init__(estimator, fold, settings)
        self._folder = own_folder(self)

    @property
    def _snapshot(self) -> Path:
        return self._folder / catboost.SNAPSHOT

    def _prepare(self) -> None:
        self._model.set_params(train_dir=str(self._folder))  # it is removed with the learner
        if not catboost.talks(self._given):
            self._model.set_params(logging_level="Silent")

    def _train(self, steps: int) -> None:
        last = self._settings.step * (self.steps + steps)
        self._call(
            self._model.fit, self._X, self._fold.y, **self._params,
            callbacks=[StopAt(last)], save_snapshot=True,
            snapshot_file=str(self._snapshot), snapshot_interval=catboost.NEVER,
        )  # fmt: skip
        self.steps += steps
        self.finished = bool(self._model.tree_count_ < last)

    def _progress(self) -> dict[str, Any]:
        if not self._snapshot.exists():
            return {}
        return {"snapshot": base64.b64encode(self._snapshot.read_bytes()).decode("ascii")}

    def _restore_progress(self, progress: Mapping[str, Any]) -> None:
        self._snapshot.unlink(missing_ok=True)
        if "snapshot" in progress:
            self._snapshot.write_bytes(base64.b64decode(progress["snapshot"]))
        place = self._model.get_params().get("train_dir")  # of the process that saved it
        if place not in (None, str(self._folder)):
            weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)


class StopAt:
    """Ends a training after a number of rounds, including those of earlier pulls."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    def after_iteration(self, info: Any) -> bool:
        """Return whether to continue; CatBoost calls this after each round."""
        return bool(info.iteration < self._rounds)


MODELS: dict[str, type[FoldModel]] = {
    "xgboost.XGBModel": XGBoostModel,
    "lightgbm.LGBMModel": LightGBMModel,
    "catboost.CatBoost": CatBoostModel,
}
