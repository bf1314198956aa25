"""A check, before training, that estimators can use the columns of a data frame."""

from collections.abc import Mapping
from typing import Any

from sklearn.utils import get_tags

from latebloomer.errors import SettingError
from latebloomer.integrations.sklearn.training.estimators import last_step

# First parts of the modules of estimators that accept only numbers. Other estimators, such as
# meta-estimators and a user's own, may encode a frame themselves: the race tries them.
NUMBERS_ONLY = (
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.naive_bayes",
    "sklearn.neighbors",
    "sklearn.neural_network",
    "sklearn.svm",
    "sklearn.tree",
    "lightgbm",
    "xgboost",
)
TAKE_CATEGORIES = ("HistGradientBoosting", "LGBM")  # first parts of the class names
SHOWN = 3  # maximum number of columns named in an error


def need_encoders(X: Any, estimators: Mapping[str, Any]) -> None:
    """Raise a `SettingError` if a data frame has a column that an estimator cannot use.

    Such columns hold text or dates, hold categories of text, or have missing values.
    """
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return
    plain = {name: model for name, model in estimators.items() if _reads_numbers_only(model)}
    if not plain:
        return
    text, categories = columns_of_text(X), columns_of_categories(X)
    gaps = [name for name in columns_with_gaps(X) if name not in {*text, *categories}]
    problems = {
        "text or dates": (text, list(plain)),
        "text categories": (categories, [k for k, v in plain.items() if not _takes_categories(v)]),
        "gaps": (gaps, [k for k, v in plain.items() if not get_tags(v).input_tags.allow_nan]),
    }
    for what, (columns, names) in problems.items():
        if columns and names:
            shown = ", ".join(map(repr, columns[:SHOWN])) + ", ..." * (len(columns) > SHOWN)
            raise SettingError(
                f"X has columns with {what} ({shown}), which {', '.join(names)} cannot train on. "
                f"Race tabular_models('classification') or tabular_models('regression') of "
                f"latebloomer.integrations.sklearn, or put an encoder before each estimator: "
                f"make_pipeline(TableEncoder(), estimator)."
            )


def columns_of_text(X: Any) -> list[Any]:
    """Return the names of the columns of text or dates of a pandas frame."""
    from pandas.api import types

    kinds = types.is_object_dtype, types.is_string_dtype, types.is_datetime64_any_dtype
    return [
        name
        for name, dtype in zip(X.columns, X.dtypes, strict=True)
        if not isinstance(dtype, types.CategoricalDtype)
        and any(is_kind(dtype) for is_kind in kinds)
    ]


def columns_of_categories(X: Any) -> list[Any]:
    """Return the names of the columns of a pandas frame whose categories are not numbers."""
    from pandas.api import types

    return [
        name
        for name, dtype in zip(X.columns, X.dtypes, strict=True)
        if isinstance(dtype, types.CategoricalDtype)
        and not types.is_numeric_dtype(dtype.categories.dtype)
    ]


def columns_with_gaps(X: Any) -> list[Any]:
    """Return the names of the columns of a pandas frame in which values are missing."""
    return [name for name, has_gaps in zip(X.columns, X.isna().any(), strict=True) if has_gaps]


def _takes_categories(estimator: Any) -> bool:
    """Return whether an estimator accepts columns of categories."""
    asked = estimator.get_params(deep=False).get("enable_categorical")  # XGBoost's setting
    return bool(asked) or type(estimator).__name__.startswith(TAKE_CATEGORIES)


def _reads_numbers_only(estimator: Any) -> bool:
    """Return whether an estimator, without steps before it, accepts only numbers."""
    if last_step(estimator) is not estimator:
        return False
    if any(name.startswith("estimator") for name in estimator.get_params(deep=False)):
        return False  # the estimators inside it may encode the frame
    return any(base.__module__.startswith(NUMBERS_ONLY) for base in type(estimator).__mro__)
