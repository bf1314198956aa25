"""Check what a session receives (names, scores, sizes), and divide its budget."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import floor, nan

import numpy as np

from latebloomer._util.memory import need_memory
from latebloomer._util.text import brief
from latebloomer.errors import RewardError, SettingError, is_flag, need_in, need_whole, require

LARGEST = 1e100  # squares of larger scores would leave the range of a double
ARM_BYTES = 500  # bytes per arm before its first pull, for its name and its place in each list

MAXIMIZE = "True if higher scores are better, or False if scores are losses"
ROUNDING = 1e-9  # added before rounding down: 0.29 * 100 is a little below 29


def arm_names(arms: int | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the arms; these are "0", "1", ... if `arms` is a count."""
    if hasattr(arms, "__index__"):
        count = need_whole("arms", arms, 2, "with one arm there is nothing to choose")
        need_memory(ARM_BYTES * count, f"a session of {count} arms", "give fewer arms")
        return tuple(map(str, range(count)))
    in_order = isinstance(arms, Sequence) and not isinstance(arms, str)
    if not in_order or not all(isinstance(name, str) for name in arms):
        raise SettingError(f"arms={arms!r} must be a number or a list of names.")
    twice = [name for name, count in Counter(arms).items() if count > 1]
    require(not twice, "arms", list(arms), "named differently", f"{listed(twice)} appears twice")
    return tuple(arms)


def as_score(score: object, of: str = "") -> float:
    """Return a score as a float; raise a `RewardError` unless it is a real and finite number."""
    wrong, value = _kind_of_no_number(score), nan
    if not wrong:
        with suppress(Exception):  # the value's own code may raise anything
            value = float(score)  # type: ignore[arg-type]
    if not -LARGEST <= value <= LARGEST:
        needed = f"a finite number between {-LARGEST:g} and {LARGEST:g}"
        needed += f", not {wrong}" if wrong else ""
        raise RewardError(f"score={brief(score)}{of} must be {needed}. Check the metric.")
    return value


def _kind_of_no_number(score: object) -> str:
    """Return the kind of a value that `float` accepts but that is not a number; else empty."""
    # In every array library, the name of the array's type is like "bool", "torch.bool" or "<U3".
    array = str(getattr(score, "dtype", ""))
    if is_flag(score) or array.endswith("bool"):
        return "True or False"
    if isinstance(score, str | bytes | bytearray) or array[1:2] in ("U", "S"):
        return "text"
    if isinstance(score, complex | np.complexfloating) or "complex" in array:
        return "complex"  # NumPy would drop the imaginary part
    return "an array of objects" if array == "object" else ""


def listed(names: Sequence[str]) -> str:
    """Return at most eight of the names as text."""
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


# --- the winner's share of the budget ---


def check_share(winner_share: float) -> None:
    """Raise a `SettingError` unless the winner's share is at least 0 and below 1."""
    why = "it is the fraction of the budget that trains the winner"
    need_in("winner_share", winner_share, "[0, 1)", why)


def set_aside(budget: int, winner_share: float) -> int:
    """Return the number of pulls of a budget that are reserved for the winner.

    >>> set_aside(100, 0.3), set_aside(100, 0.29), set_aside(9, 0.5), set_aside(9, 0.0)
    (30, 29, 4, 0)
    """
    return floor(winner_share * budget + ROUNDING)


def whole_budget(deciding: int, winner_share: float) -> int:
    """Return the total budget of which about `deciding` pulls select the winner.

    >>> whole_budget(70, 0.3), whole_budget(5, 0.5)
    (100, 10)
    """
    return round(deciding / (1 - winner_share))
