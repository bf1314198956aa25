"""Tidy tables: a list of rows, each a dict of the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from latebloomer.errors import SettingError, extra


def data_frame(rows: Sequence[Mapping[str, Any]], index: str | Sequence[str] | None = None) -> Any:
    """The rows as a pandas data frame; `index` names columns to find rows by.

    >>> data_frame([{"name": "a", "pulls": 3}], index="name").loc["a", "pulls"].item()
    3
    """
    pandas = extra("pandas", "data frames", "pandas")
    frame = pandas.DataFrame(list(rows))
    if index is None:
        return frame
    wanted = [index] if isinstance(index, str) else list(index)
    for name in wanted:
        if name not in frame.columns:
            raise SettingError(
                f"index={name!r}, but index must be of the columns {', '.join(frame.columns)}"
            )
    return frame.set_index(wanted[0] if isinstance(index, str) else wanted)
