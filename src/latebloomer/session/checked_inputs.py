"""Checks of what a session receives: names, scores, sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer._util.text import brief
from latebloomer.errors import RewardError, SettingError, need_whole, require

ARM_BYTES = 500  # memory of an arm before its first pull: its name and its place in each list


def batch_size(batch: int) -> int:
    """Return `batch` if it is a valid number of arms."""
    batch = need_whole("batch", batch)
    require(batch >= 1, "batch", batch, "at least 1", "it is a number of arms to pull together")
    return batch


def arm_names(arms: int | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the arms; their numbers, if only their count is given."""
    if hasattr(arms, "__index__"):
        count = need_whole("arms", arms)
        require(count >= 2, "arms", count, "at least 2", "with one arm there is nothing to choose")
        need_memory(ARM_BYTES * count, f"a session of {count} arms", "give fewer arms")
        return tuple(map(str, range(count)))
    in_order = isinstance(arms, Sequence) and not isinstance(arms, str)
    if not in_order or not all(isinstance(name, str) for name in arms):
        raise SettingError(f"arms={arms!r} must be a number or a list of names.")
    twice = [name for name, count in Counter(arms).items() if count > 1]
    require(not twice, "arms", list(arms), "named differently", f"{listed(twice)} appears twice")
    return tuple(arms)


def as_number(score: object) -> float:
    """Return a score as a float, if it is a real number."""
    if isinstance(score, str | bytes | bytearray):
        raise RewardError(f"score={brief(score)} must be a number, not text.")
    if isinstance(score, complex | np.complexfloating):  # NumPy would drop the imaginary part
        raise RewardError(f"score={brief(score)} must be a real number.")
    try:
        return float(score)  # type: ignore[arg-type]
    except OverflowError:
        return inf  # an integer beyond the range of a double: `tell` says what is allowed
    except Exception:  # whatever the value's own code raises
        raise RewardError(f"score={brief(score)} must be a number.") from None


def listed(names: Sequence[str]) -> str:
    """Return names as text, at most eight of them."""
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
