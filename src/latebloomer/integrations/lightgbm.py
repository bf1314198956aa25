"""LightGBM: a learner that adds boosting rounds to a live booster."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.boosters import BoosterLearner

__all__ = ["LightGBMLearner"]

FILE = "lightgbm.txt"
OF_ROWS = ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
OF_COLUMNS = ("feature_fraction", "feature_fraction_bynode")
FIELDS = ("weight", "group", "feature_name", "categorical_feature")
SEEDS = ("bagging_seed", "feature_fraction_seed", "extra_seed", "objective_seed")


class BinnedRows(NamedTuple):
    """A `Dataset` that several boosters share, so that its rows are binned only once.

    The boosters must have equal settings for bins. A booster that continues another booster gets a
    copy, because it would change the `Dataset`: its rows would start from the predictions of the
    other booster.
    """

    dataset: Any


class LightGBMLearner(BoosterLearner):
    """Wrap a LightGBM booster as a learner. One step is one boosting round.

    The score is the metric on `valid`, negated for a loss, so that higher is better: race with
    `maximize=True`. The learner bins its own copy of the rows, so learners with different settings
    may share `train` and `valid`.

    A restored learner continues bit for bit like the original. LightGBM does not save the states
    of its generators. So if rows or columns are sampled, the learner seeds the generators again at
    every round (every `bagging_freq` rounds), by the seed and the number of the round. Therefore
    `lightgbm.train` with the same seed draws different samples. A restore repeats the last round.
    It repeats all rounds for "dart", "goss", `rank_xendcg`, quantized gradients, linear trees and
    `cegb_penalty_feature_coupled`, because their states cannot be set.

    Parameters
    ----------
    params : Mapping[str, Any]
        LightGBM's settings. `objective` may be a function `(predictions, train)` that returns
        gradients and Hessians, `learning_rate` a function of the round.
    train : Any
        Rows to train on: a `Dataset` that still has its rows (`free_raw_data=False`), `(X, y)` or
        `(X, y, weights)`.
    valid : Any
        Rows to score on, in one of the same forms.
    metric : Metric | None
        One of LightGBM's metrics, or a function `(booster, valid)` that returns a number and gets
        `valid` unchanged. Default: `metric` of the params.
    maximize : bool | None
        Whether higher metric values are better. Default: what LightGBM says of its own metrics,
        True for a function.
    full_steps : int | None
        Number of rounds in a full training. Default: `num_iterations` of the params, else no
        limit.

    Raises
    ------
    MissingExtra
        LightGBM is not installed, or too old.
    LearnerError
        `train` or `valid` is missing, has another form or no rows, or boosting is "rf".
    SettingError
        There is no metric, there are two metrics, or the metric is unknown; `full_steps` and the
        params differ; the params have a setting for early stopping.

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
                {"objective": "binary", "num_leaves": leaves}, train, valid, metric="auc",
                full_steps=20,
            )
            for leaves in (3, 7, 31)
        }
        verdict = race(learners, trainings=2)
    """

    package, title, dataset = "lightgbm", "LightGBM", "Dataset"

    def _start(self) -> None:
        named = self._metric if isinstance(self._metric, str) else "None"
        self._params = {"verbosity": -1} | self._params | {"metric": named}
        objective = self._params.get("objective")
        self._objective = objective if callable(objective) else None
        self._params |= {"objective": "none"} if self._objective else {}
        self._begin()
        self._known = settings_of(self.model)
        if self._known["boosting"] == "rf":
            raise LearnerError("LightGBM cannot train boosting='rf' further: use gbdt or dart")
        self._bags = draws_rows(self._known)
        self._freq = int(self._known["bagging_freq"]) if self._bags else 1

    def _begin(self, copied: bool = False) -> tuple[Any, list[Any]]:
        """Create a model without rounds; return it and its rows, which are copies if `copied`."""
        train = self._model_rows("train", self._train_rows, copied)
        self.model = self._library.Booster(self._params, train)
        scored = () if self._valid_rows is None else (self._valid_rows,)
        valid = [self._model_rows("valid", rows, copied, train) for rows in scored]
        for rows in valid:
            self.model.add_valid(rows, "valid")
        return train, valid

    def _round(self, number: int) -> None:
        settings = self._settings_at(number)
        if "bagging_freq" in settings:
            # LightGBM seeds its generators for rows again only if a sampling setting changes.
            self.model.reset_parameter({"bagging_freq": self._freq + 1})
        if settings:
            self.model.reset_parameter(settings)
        self.model.update(fobj=self._objective)

    def _settings_at(self, number: int) -> dict[str, Any]:
        """Return the settings that change in round `number`."""
        rate = {} if self._rate is None else {"learning_rate": self._rate(number)}
        if number % self._freq or not draws_at_random(self._known):
            return rate
        seeds = {name: int(self._known[name]) + number for name in SEEDS}
        return rate | seeds | ({"bagging_freq": self._freq} if self._bags else {})

    def _named_value(self) -> float:
        return float(self._result()[2])

    def _higher_is_better(self, metric: str) -> bool:
        return bool(self._result()[3])

    def _result(self) -> Any:
        results = self.model.eval_valid()
        if len(results) != 1:
            names = ", ".join(str(result[1]) for result in results) or "nothing"
            problem = f"metric={self._metric!r} gives {names}, but a race has one score"
            raise SettingError(f"{problem}: use one of LightGBM's metrics, with one eval_at")
        return results[0]

    def _made_rows(self, X: Any, y: Any, weight: Any = None) -> Any:
        return self._library.Dataset(X, y, weight=weight, free_raw_data=False)

    def _rows(self, name: str, data: Any) -> Any:
        return data if isinstance(data, BinnedRows) else super()._rows(name, data)

    def _model_rows(self, name: str, rows: Any, copied: bool, reference: Any = None) -> Any:
        """Return rows for a booster: shared rows, or a copy for this learner."""
        if isinstance(rows, BinnedRows):
            if not copied:
                return rows.dataset
            rows = rows.dataset
        return self._own_rows(name, rows, reference)

    def predictions(self) -> Any:
        """Return the predictions for the rows in `valid` after the latest round.

        LightGBM updates them with each new tree, so no tree is evaluated again.
        """
        kept: list[Any] = []

        def note(predictions: Any, rows: Any) -> tuple[str, float, bool]:
            kept.append(predictions.copy())
            return "predictions", 0.0, True

        self.model.eval_valid(feval=note)
        return kept[0]

    def _own_rows(self, name: str, rows: Any, reference: Any = None) -> Any:
        """Return a copy of rows for this learner, which it can read again after a restore."""
        if rows.data is None or rows.init_score is not None:
            why = "has released its rows, or has an init_score, and cannot be restored"
            raise LearnerError(f"{name} {why}: use Dataset(X, y, free_raw_data=False), or (X, y)")
        own = {field: getattr(rows, field) for field in FIELDS}
        own |= {"params": (rows.params or {}) | self._params, "reference": reference}
        return self._library.Dataset(rows.data, rows.label, free_raw_data=False, **own)

    def _write(self, folder: Path) -> None:
        self.model.save_model(folder / FILE, num_iteration=-1)

    def _read(self, folder: Path, steps: int) -> None:
        self.continue_from(self._library.Booster(model_file=folder / FILE), steps)

    def continue_from(self, model: Any, steps: int) -> None:
        """Restore the state after `steps` rounds from a booster that has these rounds."""
        hidden = keeps_hidden_states(self._known)
        kept = 0 if hidden else max(0, steps - 1) // self._freq * self._freq
        train, valid = self._begin(copied=kept > 0)
        if kept:
            first = self._library.Booster(model_str=model.model_to_string(num_iteration=kept))
            objective = {"objective": self._objective} if self._objective else {}
            self.model = self._library.train(
                self._params | objective | self._settings_at(kept),
                train,
                1,
                valid_sets=valid,
                valid_names=["valid"] * len(valid),
                init_model=first,
                keep_training_booster=True,
            )
        for number in range(kept + bool(kept), steps):
            self._round(number)
        self.steps = steps


def settings_of(booster: Any) -> dict[str, str]:
    """Return all settings as LightGBM uses them, by LightGBM's names."""
    return dict(re.findall(r"^\[(\w+): (.*)\]$", booster.model_to_string(), re.MULTILINE))


def keeps_hidden_states(settings: Mapping[str, str]) -> bool:
    """Return whether rounds depend on states that can neither be saved nor seeded again."""
    return (
        settings["boosting"] == "dart"
        or settings["data_sample_strategy"] == "goss"
        or settings["objective"].startswith("rank_xendcg")
        or "1" in (settings["use_quantized_grad"], settings["linear_tree"])
        or settings["cegb_penalty_feature_coupled"] != ""
    )


def draws_rows(settings: Mapping[str, str]) -> bool:
    """Return whether rows are sampled; without `bagging_freq`, LightGBM uses all rows."""
    return settings["bagging_freq"] != "0" and _below_1(settings, OF_ROWS)


def _below_1(settings: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return any(float(settings[name]) != 1 for name in names)


def draws_at_random(settings: Mapping[str, str]) -> bool:
    """Return whether rounds use random numbers from generators that can be seeded again."""
    if keeps_hidden_states(settings):
        return False
    columns = settings["extra_trees"] == "1" or _below_1(settings, OF_COLUMNS)
    return columns or draws_rows(settings)
