"""LightGBM: a learner that adds boosting rounds to a live booster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.full_training import (
    Metric,
    full_said_once,
    library,
    metric_named_once,
    need_valid,
    read_label,
    sign,
    steps_left,
    write_label,
)

__all__ = ["LightGBMLearner"]

FILE = "lightgbm.txt"
METRIC = ("metric", "metrics", "metric_types")  # LightGBM's names for the setting
ITERATIONS = (
    "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round",
    "num_rounds", "nrounds", "num_boost_round", "n_estimators", "max_iter",
)  # fmt: skip
STOPPING = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")
SHARES = ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction", "feature_fraction",
          "feature_fraction_bynode")  # fmt: skip
SEEDS = ("bagging_seed", "feature_fraction_seed", "extra_seed", "objective_seed")


class LightGBMLearner:
    """A booster: a step is one boosting round, the score the metric on the evaluation set.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`. The
    learner bins rows of its own, so that learners with other settings may share what is given.

    A resumed learner is the same bit for bit, but for `boosting="dart"`, whose earlier trees stay
    as they are after a resume. With sampling of rows or columns each pull draws by the seed and
    the number of its first round, so `lightgbm.train` with the same seed draws otherwise: LightGBM
    does not save the state of its generators.

    Parameters
    ----------
    params : Mapping[str, Any]
        LightGBM's settings.
    train : Any
        What is trained on: a `Dataset` that has kept its rows, or `(X, y)`.
    valid : Any
        What is scored on, in the same form.
    metric : Metric | None
        One of LightGBM's names, or a function `(booster, valid)`; that of the params if None.
    maximize : bool | None
        Whether a metric is better when higher; known of LightGBM's own, taken to
        be so of a function, if None.
    full_steps : int | None
        Rounds of a full training; `num_iterations` of the params if None, else without end.

    Raises
    ------
    MissingExtra
        LightGBM is not installed, or too old.
    LearnerError
        `train` or `valid` is not there, of another form or without its rows, or boosting is "rf".
    SettingError
        No metric is named, or two, or an unknown one; `full_steps` is said twice; the params stop early.

    Examples
    --------
    ::

        import numpy as np
        from latebloomer import race
        from latebloomer.integrations.lightgbm import LightGBMLearner

        X = np.random.default_rng(0).normal(size=(300, 4))
        y = X[:, 0] + X[:, 1] * X[:, 2] > 0
        train, valid = (X[:200], y[:200]), (X[200:], y[200:])
        learners = {
            f"{leaves} leaves": LightGBMLearner(
                {"objective": "binary", "num_leaves": leaves}, train, valid, metric="auc", full_steps=20
            )
            for leaves in (3, 7, 31)
        }
        verdict = race(learners, trainings=2)
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        train: Any,
        valid: Any = None,
        *,
        metric: Metric | None = None,
        maximize: bool | None = None,
        full_steps: int | None = None,
    ) -> None:
        self._lightgbm = library("lightgbm", "LightGBM learners", "lightgbm")
        need_valid(self, valid)
        self.full_steps = full_said_once(full_steps, params, ITERATIONS)
        if any(name in params for name in STOPPING):
            raise SettingError(
                "params stops early, but in a race the race decides who stops: leave it out"
            )
        self._metric = metric_named_once(metric, params, METRIC)
        named = self._metric if isinstance(self._metric, str) else "None"
        kept = {name: params[name] for name in params if name not in METRIC + ITERATIONS}
        self._params = {"verbosity": -1} | kept | {"metric": named}
        self._given = valid
        self._train = self._dataset("train", train, None)
        self._valid = self._dataset("valid", valid, self._train)
        self.model = self._lightgbm.Booster(self._params, self._train)
        self.model.add_valid(self._valid, "valid")
        self._live = True  # whether `update` goes on with it
        self._settings = settings_of(self.model)
        if self._settings["boosting"] == "rf":
            raise LearnerError("boosting='rf' cannot be trained on by LightGBM: use gbdt or dart")
        self._sign = sign(self._metric, maximize, lambda _: self._result()[3])

    def pull(self, steps: int = 1) -> float:
        """Add rounds; the metric after them."""
        done = self.rounds
        count = steps_left(steps, done, self.full_steps)
        if self._live and not (done and draws_at_random(self._settings)):
            for _ in range(count):
                self.model.update()
        else:
            self._go_on(done, count)
        if isinstance(self._metric, str):
            return self._sign * float(self._result()[2])
        return self._sign * float(self._metric(self.model, self._given))

    def _go_on(self, done: int, count: int) -> None:
        """Begin a booster that starts from the model, with generators of its own."""
        drawn = SEEDS if draws_at_random(self._settings) else ()
        seeds = {name: int(self._settings[name]) + done for name in drawn}
        self.model = self._lightgbm.train(
            self._params | seeds, self._train, count, valid_sets=[self._valid],
            valid_names=["valid"], init_model=self.model, keep_training_booster=True,
        )  # fmt: skip
        self._live = True

    @property
    def rounds(self) -> int:
        """Boosting rounds so far."""
        return int(self.model.current_iteration())

    def _result(self) -> Any:
        found = self.model.eval_valid()
        if len(found) == 1:
            return found[0]
        if not found:
            raise SettingError(
                f"metric={self._metric!r}, but LightGBM knows no such metric: its names are like "
                "'auc', 'binary_logloss', 'l2', 'multi_error'"
            )
        raise SettingError(
            f"metric={self._metric!r} gives {', '.join(str(one[1]) for one in found)}, but a race "
            "has one score: set eval_at to one number, or give a function as metric"
        )

    def _dataset(self, name: str, data: Any, reference: Any) -> Any:
        """Rows of the learner's own, which it can read again when it goes on from a checkpoint."""
        own: dict[str, Any] = {"reference": reference, "free_raw_data": False}
        own["params"] = self._params
        if isinstance(data, tuple) and len(data) == 2:
            return self._lightgbm.Dataset(*data, **own)
        if not isinstance(data, self._lightgbm.Dataset):
            raise LearnerError(f"{name}={brief(data)}, but {name} must be a Dataset or (X, y)")
        if data.data is None or data.init_score is not None:
            raise LearnerError(
                f"{name} has let go of its rows, or has an init_score, but a checkpoint needs the "
                "rows and takes that place: Dataset(X, y, free_raw_data=False), or (X, y)"
            )
        own |= {field: getattr(data, field) for field in ("weight", "group", "feature_name")}
        own["categorical_feature"] = data.categorical_feature
        own["params"] = (data.params or {}) | self._params
        return self._lightgbm.Dataset(data.data, data.label, **own)

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write the booster in LightGBM's own format."""
        self.model.save_model(Path(folder) / FILE, num_iteration=-1)
        write_label(folder, self, self._params, self.rounds)

    def load(self, folder: Path) -> None:
        """Become what was saved."""
        read_label(folder, self, self._params)
        self.model = self._lightgbm.Booster(model_file=Path(folder) / FILE)
        self._live = False


def settings_of(booster: Any) -> dict[str, str]:
    """All settings as LightGBM understood them, whatever they were called."""
    return dict(re.findall(r"^\[(\w+): (.*)\]$", booster.model_to_string(), re.MULTILINE))


def draws_at_random(settings: Mapping[str, str]) -> bool:
    """Whether rounds are drawn at random, other than by dart, which drops trees of all rounds."""
    if settings["boosting"] == "dart":
        return False
    drawn = settings["data_sample_strategy"] == "goss" or settings["extra_trees"] == "1"
    return drawn or any(float(settings[name]) != 1 for name in SHARES)
