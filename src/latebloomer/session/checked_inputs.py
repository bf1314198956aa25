"""What a session is given, checked: the arms' names, scores, sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer._util.text import brief
from latebloomer.errors import RewardError, SettingError, need_whole, require

ARM_BYTES = 500  # of an arm before its first pull: its name and its place in each list


def batch_size(batch: int) -> int:
    batch = need_whole("batch", batch)
    require(batch >= 1, "batch", batch, "at least 1", "it is how many arms may be pulled at once")
    return batch


def arm_names(arms: int | Sequence[str]) -> tuple[str, ...]:
    if hasattr(arms, "__index__"):
        count = need_whole("arms", arms)
        require(count >= 2, "arms", count, "at least 2", "with one arm there is nothing to choose")
        need_memory(ARM_BYTES * count, f"a session of {count} arms", "give fewer arms")
        return tuple(map(str, range(count)))
    in_order = isinstance(arms, Sequence) and not isinstance(arms, str)
    if not in_order or not all(isinstance(name, str) for name in arms):
        raise SettingError(f"arms={arms!r}, but arms must be a number or a list of names")
    twice = [name for name, count in Counter(arms).items() if count > 1]
    require(not twice, "arms", list(arms), "named differently", f"{listed(twice)} stands twice")
    return tuple(arms)


def as_number(score: object) -> float:
    if isinstance(score, str | bytes | bytearray):
        raise RewardError(f"reward={brief(score)}, but a reward must be a number, not text")
    if isinstance(score, complex | np.complexfloating):  # NumPy would drop the imaginary part
        raise RewardError(f"reward={brief(score)}, but a reward must be a real number")
    try:
        return float(score)  # type: ignore[arg-type]
    except OverflowError:
        return inf  # a whole number beyond the range of a double: `tell` says what is allowed
    except Exception:  # whatever the value's own code raises
        raise RewardError(f"reward={brief(score)}, but a reward must be a number") from None


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
