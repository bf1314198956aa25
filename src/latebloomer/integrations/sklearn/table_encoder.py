"""An encoder of data frames: text, categories, dates and booleans become numbers."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latebloomer.errors import SettingError, extra

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]

MANY = 250  # maximum codes of a column: HistGradientBoosting has at most 255 bins
FEW = 30  # maximum columns of 0 and 1 for a column
NUMBERS = 0.95  # a text column with at least this share of numbers is numeric
DATES_SEEN = 500  # checked values of a text column: it holds dates if all of them are dates
DATE_PARTS = ("year", "month", "day", "day_of_week", "hour")


class Kind(Enum):
    """The kind of values that a column holds."""

    NUMBER = "number"
    DATE = "date"
    SPAN = "span"  # a time span
    TEXT = "text"
    EMPTY = "empty"  # omitted, because some estimators fail on it


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a data frame into numbers; missing values become NaN.

    Numbers stay unchanged, and numbers stored as text are read as numbers. A date becomes its
    seconds since 1970 and its year, month, day, weekday and hour. Every other column is treated as
    categories: its most frequent values are kept, and all other values share one code. A column
    without values is omitted.

    Parameters
    ----------
    codes : str
        "ordinal": one column of codes, for trees and boosters. "onehot": a column of 0 and 1 for
        each category, for linear models and nets.
    most : int or None
        Maximum number of categories that are kept of a column. Default: 250 with "ordinal", 30
        with "onehot".

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [3.0, None], "color": ["red", "blue"]})
    >>> TableEncoder().fit_transform(frame)
    array([[ 3.,  1.],
           [nan,  0.]])
    """

    def __init__(self, codes: str = "ordinal", most: int | None = None) -> None:
        self.codes = codes
        self.most = most

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the kind of each column, and the categories that are kept of it."""
        if self.codes not in ("ordinal", "onehot"):
            raise SettingError(f"codes={self.codes!r}, but codes must be 'ordinal' or 'onehot'.")
        frame = frame_of(X)
        most = self.most or (MANY if self.codes == "ordinal" else FEW)
        self.kinds_ = {name: kind_of(column) for name, column in frame.items()}
        self.kept_ = {
            name: kept_categories(frame[name], most)
            for name, kind in self.kinds_.items()
            if kind is Kind.TEXT
        }
        self.n_features_in_ = frame.shape[1]
        return self

    def transform(self, X: Any) -> Floats:
        """Return the columns as numbers."""
        check_is_fitted(self)
        frame = frame_of(X)
        absent = [str(name) for name in self.kinds_ if name not in frame]
        if absent:
            raise SettingError(
                f"X has no column {', '.join(absent)}. Pass the columns that fit had: "
                f"{', '.join(map(str, self.kinds_))}."
            )
        columns = [values for name in self.kinds_ for values in self._encoded(name, frame[name])]
        return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of each column of numbers."""
        check_is_fitted(self)
        names: list[str] = []
        for name, kind in self.kinds_.items():
            if kind is Kind.EMPTY:
                continue
            if kind is Kind.DATE:
                names += [f"{name} {part}" for part in ("time", *DATE_PARTS)]
            elif kind is Kind.TEXT and self.codes == "onehot":
                names += [f"{name}={category}" for category in self.kept_[name]]
            else:
                names.append(str(name))
        return np.array(names, dtype=object)

    def _encoded(self, name: Hashable, column: pd.Series[Any]) -> list[Floats]:
        kind = self.kinds_[name]
        if kind is Kind.EMPTY:
            return []
        if kind is Kind.NUMBER:
            return [numbers_of(column)]
        if kind is Kind.SPAN:
            return [column.dt.total_seconds().to_numpy(dtype=np.float64)]
        if kind is Kind.DATE:
            return date_columns(column)
        codes = codes_of(column, self.kept_[name])
        if self.codes == "ordinal":
            return [codes]
        return [(codes == code).astype(np.float64) for code in range(len(self.kept_[name]))]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def frame_of(X: Any) -> pd.DataFrame:
    """Return a table as a pandas data frame."""
    pandas = extra("pandas", "tables with text columns", "pandas")
    if hasattr(X, "to_pandas"):  # polars, pyarrow
        X = X.to_pandas()
    frame = X if isinstance(X, pandas.DataFrame) else pandas.DataFrame(X).infer_objects()
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise SettingError(f"X has two columns called {twice[0]!r}: rename one of them.")
    return frame


def kind_of(column: pd.Series[Any]) -> Kind:
    """Return the kind of a column, by its type or, if it is text, by its values."""
    from pandas.api import types

    seen = column.dropna()
    if not len(seen):
        return Kind.EMPTY
    if types.is_numeric_dtype(column):
        return Kind.NUMBER
    if types.is_datetime64_any_dtype(column):
        return Kind.DATE
    if types.is_timedelta64_dtype(column):
        return Kind.SPAN
    if isinstance(column.dtype, types.CategoricalDtype):
        return Kind.TEXT
    if dates_of(seen.iloc[:DATES_SEEN]).notna().all():
        return Kind.DATE
    return Kind.NUMBER if np.isfinite(numbers_of(seen)).mean() > NUMBERS else Kind.TEXT


def numbers_of(column: pd.Series[Any]) -> Floats:
    """Return a column as floats; missing values, infinities and other text become NaN."""
    import pandas

    values = pandas.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def dates_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as dates; any other value becomes NaT."""
    import pandas

    if pandas.api.types.is_datetime64_any_dtype(column):
        return pandas.to_datetime(column, utc=True)
    text = column.astype(str)
    text = text.where(text.str.contains(r"\d[-/]\d", na=False))  # not "3" or "May"
    return pandas.to_datetime(text, errors="coerce", utc=True, format="mixed")


def date_columns(column: pd.Series[Any]) -> list[Floats]:
    """Return columns with the seconds since 1970 of each date, and with its parts."""
    import pandas

    dates = dates_of(column)
    seconds = (dates - pandas.Timestamp(0, tz="UTC")).dt.total_seconds()
    parts = [getattr(dates.dt, part) for part in DATE_PARTS]
    return [values.to_numpy(dtype=np.float64) for values in (seconds, *parts)]


def as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column's values as text; missing values stay missing."""
    return column.astype(object).where(column.notna()).map(str, na_action="ignore")


def kept_categories(column: pd.Series[Any], most: int) -> list[str]:
    """Return the most frequent values of a column, in its own order if it has one, else sorted.

    Of equally frequent values, the first in sorted order are kept, so that the order of rows does
    not matter.
    """
    counts = as_text(column).value_counts()
    frequent = sorted(counts.index, key=lambda value: (-counts[value], value))[:most]
    if getattr(column.dtype, "ordered", False):
        place = {str(value): k for k, value in enumerate(column.dtype.categories)}
        return sorted(frequent, key=lambda value: place[value])
    return sorted(frequent)


def codes_of(column: pd.Series[Any], kept: list[str]) -> Floats:
    """Return the index of each value in `kept`; `len(kept)` for others, NaN for missing ones."""
    text = as_text(column)
    codes = text.map({value: float(code) for code, value in enumerate(kept)})
    others = codes.isna() & text.notna()
    return np.where(others, float(len(kept)), codes.to_numpy(dtype=np.float64, na_value=np.nan))
