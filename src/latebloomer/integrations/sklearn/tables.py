"""Models for a table with text, categories, dates and missing values, by name."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module, util
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from latebloomer.errors import MissingExtra, SettingError, install_command, unknown
from latebloomer.integrations.sklearn.table_encoder import TableEncoder

KINDS = {"classification": "Classifier", "regression": "Regressor"}
LINEAR = {"Classifier": "LogisticRegression", "Regressor": "Ridge"}
OUTERMOST = 4.0  # values are cut at this number of standard deviations, for linear models and nets


class Recipe(NamedTuple):
    """The class of a model, the encoding of columns that it needs, and its settings."""

    module: str
    stem: str  # class name without Classifier or Regressor; empty: linear model
    codes: str
    settings: dict[str, Any]


# Trees and boosters get ordinal codes. In our measurements, XGBoost's native categories were .012
# ± .005 worse, and CatBoost's cost 3.2 times the processor time for a gain of .001.
RECIPES = {
    "lightgbm": Recipe(
        "lightgbm",
        "LGBM",
        "ordinal",
        {"n_estimators": 300, "learning_rate": 0.05, "verbose": -1},
    ),
    "xgboost": Recipe("xgboost", "XGB", "ordinal", {"n_estimators": 300, "learning_rate": 0.1}),
    "catboost": Recipe(
        "catboost", "CatBoost", "ordinal", {"iterations": 300, "verbose": 0, "thread_count": 1}
    ),
    "hist": Recipe(
        "sklearn.ensemble",
        "HistGradientBoosting",
        "ordinal",
        {"max_iter": 200, "early_stopping": False},
    ),
    "forest": Recipe("sklearn.ensemble", "RandomForest", "ordinal", {"n_estimators": 200}),
    "extra trees": Recipe("sklearn.ensemble", "ExtraTrees", "ordinal", {"n_estimators": 200}),
    "net": Recipe(
        "sklearn.neural_network",
        "MLP",
        "onehot",
        {"hidden_layer_sizes": (64, 64), "max_iter": 60},
    ),
    "linear": Recipe("sklearn.linear_model", "", "onehot", {}),
}


def tabular_models(
    task: str, names: Iterable[str] | None = None, random_state: int | None = None
) -> dict[str, Pipeline]:
    """Return models for a table by name; each is a pipeline that accepts the raw table.

    Parameters
    ----------
    task : str
        "classification" (labels may be text) or "regression".
    names : iterable of str, optional
        Names of the models, among lightgbm, xgboost, catboost, hist, forest, extra trees, net and
        linear. Default: all models whose library is installed.
    random_state : int, optional
        Seed of every model. Default: the race gives each model a seed.

    Returns
    -------
    dict[str, sklearn.pipeline.Pipeline]
        Untrained pipelines by name.

    Examples
    --------
    >>> models = tabular_models("classification", ["forest", "linear"])
    >>> [type(model[-1]).__name__ for model in models.values()]
    ['RandomForestClassifier', 'LogisticRegression']
    """
    if task not in KINDS:
        raise SettingError(f"task={task!r}, but task must be 'classification' or 'regression'.")
    if names is None:
        chosen = [name for name, recipe in RECIPES.items() if _is_installed(recipe)]
    else:
        chosen = [_checked_name(name) for name in names]
    return {name: _pipeline(RECIPES[name], KINDS[task], random_state) for name in chosen}


def _is_installed(recipe: Recipe) -> bool:
    return util.find_spec(recipe.module.partition(".")[0]) is not None


def _checked_name(name: str) -> str:
    if name not in RECIPES:
        raise unknown("tabular model", name, RECIPES)
    if not _is_installed(RECIPES[name]):
        raise MissingExtra(f"the model {name!r} needs {name}: {install_command(name)}")
    return name


def _pipeline(recipe: Recipe, kind: str, random_state: int | None) -> Pipeline:
    steps = [TableEncoder(recipe.codes)]
    if recipe.codes == "onehot":
        steps += [
            SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
            StandardScaler(),
            FunctionTransformer(np.clip, kw_args={"a_min": -OUTERMOST, "a_max": OUTERMOST}),
        ]
    return make_pipeline(*steps, _model(recipe, kind, random_state))


def _model(recipe: Recipe, kind: str, random_state: int | None) -> Any:
    """Return the model, set to one thread, because a race trains one model at a time."""
    name = recipe.stem + kind if recipe.stem else LINEAR[kind]
    home = recipe.module
    if name == "XGBClassifier":  # it accepts no text labels
        home, name = "latebloomer.integrations.sklearn.text_label_boosters", f"TextLabel{name}"
    model = getattr(import_module(home), name)(**recipe.settings)
    wanted: dict[str, Any] = {"n_jobs": 1}
    if name == "LogisticRegression":
        wanted = {"max_iter": 200}  # n_jobs has no effect
    if random_state is not None:
        wanted["random_state"] = random_state
    takes = {*model.get_params(), *(["random_state"] if recipe.module == "catboost" else [])}
    return model.set_params(**{key: value for key, value in wanted.items() if key in takes})
