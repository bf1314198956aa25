"""How the scikit-learn classes of XGBoost, LightGBM and CatBoost are trained by rounds.

None of them has `warm_start`. The first two go on from the booster that they have, which without
sampling of rows or columns is one long training, bit for bit; with sampling each pull draws by the
seed and the number of its first round, as after a resume. CatBoost goes on from its own snapshot,
with all its random states: that is one long training always. A training in one go, as the refit
is, is the library's own.
"""

from __future__ import annotations

import shutil
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.integrations import boosters, catboost, lightgbm, xgboost
from latebloomer.integrations.library_learner import own_folder
from latebloomer.integrations.sklearn.training_mode import TrainingMode


def booster_mode(model: Any, step: int) -> TrainingMode | None:
    """How a booster's scikit-learn class is trained by rounds; None for anything else."""
    names = {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(model).__mro__}
    if any(name.startswith("xgboost.XGBRF") for name in names):
        return None  # its trees are one round
    found = next((mode for name, mode in MODES.items() if name in names), None)
    if found is None:
        return None
    params = {name: value for name, value in model.get_params().items() if value is not None}
    early = next((name for name in boosters.STOPPING if name in params), None)
    if early is not None and found is not CatBoostRounds:  # which has it only with an eval_set
        raise LearnerError(
            f"{type(model).__name__} has {early}={params[early]}, but in a race the race decides "
            "who stops: leave it out"
        )
    return found(params, step)


class Rounds(TrainingMode):
    """Boosting rounds on all rows."""

    batched = False
    names: tuple[str, ...] = ("n_estimators",)  # of the setting that says how many
    usual = 100  # rounds, where it is not said

    def __init__(self, params: Mapping[str, Any], step: int) -> None:
        self._params, self._step = params, step
        self._whole = next((params[name] for name in self.names if name in params), self.usual)

    def full_steps(self, batch: int, rows: int) -> int:
        return max(1, self._whole // self._step)

    def describe(self, batch: int, rows: int) -> str:
        return f"boosting: {self._step} more rounds a step, on all {rows} rows"


class ContinuedFit(Rounds):
    """`fit` again with the booster so far, and as many rounds as are to be added."""

    def train(
        self, model: Any, X: Any, y: Any, done: int, steps: int, params: Mapping[str, Any]
    ) -> bool:
        seed = self._params.get("random_state")
        if done and isinstance(seed, int) and self._draws(model):
            model.set_params(random_state=seed + done)  # else each call would draw the same rows
        model.set_params(n_estimators=self._step * steps)
        model.fit(X, y, **params, **(self._booster(model) if done else {}))
        model.set_params(n_estimators=self._step * (done + steps))
        if seed is not None:
            model.set_params(random_state=seed)
        return False

    @abstractmethod
    def _booster(self, model: Any) -> dict[str, Any]:
        """What `fit` is given to go on from."""

    @abstractmethod
    def _draws(self, model: Any) -> bool:
        """Whether rounds are drawn at random."""


class XGBoostRounds(ContinuedFit):
    """Of `XGBClassifier` and `XGBRegressor`."""

    def prepare(self, model: Any) -> None:
        pass

    def _booster(self, model: Any) -> dict[str, Any]:
        return {"xgb_model": model.get_booster()}

    def _draws(self, model: Any) -> bool:
        return xgboost.draws_at_random(self._params)


class LightGBMRounds(ContinuedFit):
    """Of `LGBMClassifier` and `LGBMRegressor`."""

    def __init__(self, params: Mapping[str, Any], step: int) -> None:
        super().__init__(params, step)
        if params.get("boosting_type") == "rf":
            raise LearnerError(
                "boosting_type='rf' cannot be trained on by LightGBM: use 'gbdt' or 'dart'"
            )

    def prepare(self, model: Any) -> None:
        if not {"verbose", "verbosity"} & set(self._params):
            model.set_params(verbosity=-1)  # it would say the same at each pull

    def _booster(self, model: Any) -> dict[str, Any]:
        return {"init_model": model.booster_}

    def _draws(self, model: Any) -> bool:
        return lightgbm.draws_at_random(lightgbm.settings_of(model.booster_))


class CatBoostRounds(Rounds):
    """Of `CatBoostClassifier` and `CatBoostRegressor`: snapshots keep all its random states."""

    names, usual = boosters.ROUNDS, catboost.MOST

    def __init__(self, params: Mapping[str, Any], step: int) -> None:
        super().__init__(params, step)
        self._folder = own_folder(self)

    @property
    def _snapshot(self) -> Path:
        return self._folder / catboost.SNAPSHOT

    def prepare(self, model: Any) -> None:
        model.set_params(train_dir=str(self._folder))  # what it writes goes with the learner
        if not catboost.talks(self._params):
            model.set_params(logging_level="Silent")

    def train(
        self, model: Any, X: Any, y: Any, done: int, steps: int, params: Mapping[str, Any]
    ) -> bool:
        last = self._step * (done + steps)
        model.fit(
            X, y, **params, callbacks=[StopAt(last)], save_snapshot=True,
            snapshot_file=str(self._snapshot), snapshot_interval=catboost.NEVER,
        )  # fmt: skip
        return bool(model.tree_count_ < last)

    def state(self) -> dict[str, Any]:
        return {"snapshot": self._snapshot.read_bytes()} if self._snapshot.exists() else {}

    def restore(self, model: Any, state: Mapping[str, Any]) -> None:
        self._snapshot.unlink(missing_ok=True)
        if "snapshot" in state:
            self._snapshot.write_bytes(state["snapshot"])
        place = model.get_params().get("train_dir")  # of the process that saved it
        if place not in (None, str(self._folder)):
            weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)


class StopAt:
    """Ends a training after so many rounds, those of earlier pulls among them."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds

    def after_iteration(self, info: Any) -> bool:
        """Return whether to continue; CatBoost asks after each round."""
        return bool(info.iteration < self._rounds)


MODES: dict[str, type[Rounds]] = {
    "xgboost.XGBModel": XGBoostRounds,
    "lightgbm.LGBMModel": LightGBMRounds,
    "catboost.CatBoost": CatBoostRounds,
}
