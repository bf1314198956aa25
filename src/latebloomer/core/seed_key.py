"""The seed of all random numbers, without the tables that drawing them takes."""

from __future__ import annotations

import numpy as np

from latebloomer.errors import require


def key(seed: int) -> int:
    """The seed as kernels take it: the same 64 bits as a signed number.

    >>> key(7), key(2**64 - 1)
    (7, -1)
    """
    require(
        isinstance(seed, int | np.integer) and 0 <= seed < 2**64,
        "seed", seed, "an integer in [0, 2^64)", "it is the key of a counter-based generator",
    )  # fmt: skip
    return int(seed) - (2**64 if seed >= 2**63 else 0)
