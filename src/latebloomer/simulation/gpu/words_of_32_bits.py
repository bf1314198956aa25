"""Random numbers in words of 32 bits, which a GPU draws fastest.

The random bits equal those of `core.random`, which stores words in signed 64-bit integers, because
every target has them. A card multiplies words of 32 bits in one instruction. The three rewards
that a pull needs are drawn in one loop, because each single draw is a chain of operations that
wait for each other.
"""

from typing import Any

import numpy as np

from latebloomer.core.kernel import numpy_kernel
from latebloomer.core.random import (
    MASK,
    Words,
    first_try,
    normal_beyond,
)

_RUN_HIGH = 0xFFFF


# --- random numbers ---


@numpy_kernel
def round_in_32_bits(a: Any, b: Any, c: Any, d: Any, low_key: Any, high_key: Any) -> Any:
    """Return one round of Philox4x32."""
    p, q = np.uint64(0xD2511F53) * np.uint64(a), np.uint64(0xCD9E8D57) * np.uint64(c)
    return (
        np.uint32(q >> np.uint64(32)) ^ b ^ low_key,
        np.uint32(q & np.uint64(MASK)),
        np.uint32(p >> np.uint64(32)) ^ d ^ high_key,
        np.uint32(p & np.uint64(MASK)),
    )


@numpy_kernel
def philox_block_in_32_bits(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> Words:
    """Return the same words as `philox_block`.

    >>> [f"{word:08x}" for word in philox_block_in_32_bits(0, 0, 0, 0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    a, b, c, d = np.uint32(c0), np.uint32(c1), np.uint32(c2), np.uint32(c3)
    low_key, high_key = np.uint32(k0), np.uint32(k1)
    for _ in range(10):
        a, b, c, d = round_in_32_bits(a, b, c, d, low_key, high_key)
        low_key = np.uint32((np.uint64(low_key) + np.uint64(0x9E3779B9)) & np.uint64(MASK))
        high_key = np.uint32((np.uint64(high_key) + np.uint64(0xBB67AE85)) & np.uint64(MASK))
    return int(a), int(b), int(c), int(d)


@numpy_kernel
def half_in_32_bits(index: int, a: Any, b: Any, c: Any, d: Any) -> tuple[int, int]:
    """Return the two words of a block for one of its two draws."""
    if index & 1 == 0:
        return int(a), int(b)
    return int(c), int(d)


@numpy_kernel
def three_normals(
    table: Any, seed: int, run: int, stream: int, i: int, j: int, k: int
) -> tuple[float, float, float]:
    """Return the Gaussians of `normal_by` for three indices of a stream.

    >>> from latebloomer.core.random import ZIGGURAT, normal
    >>> three = three_normals(ZIGGURAT, 1, 2, 3, 40, 31, 22)
    >>> three == tuple(normal(1, 2, 3, index) for index in (40, 31, 22))
    True
    """
    a0, b0, c0 = np.uint32((i >> 1) & MASK), np.uint32((j >> 1) & MASK), np.uint32((k >> 1) & MASK)
    a1 = b1 = c1 = np.uint32(stream & MASK)
    a2 = b2 = c2 = np.uint32(run & MASK)
    a3 = b3 = c3 = np.uint32((run >> 32) & _RUN_HIGH)
    low_key, high_key = np.uint32(seed & MASK), np.uint32((seed >> 32) & MASK)
    for _ in range(10):
        a0, a1, a2, a3 = round_in_32_bits(a0, a1, a2, a3, low_key, high_key)
        b0, b1, b2, b3 = round_in_32_bits(b0, b1, b2, b3, low_key, high_key)
        c0, c1, c2, c3 = round_in_32_bits(c0, c1, c2, c3, low_key, high_key)
        low_key = np.uint32((np.uint64(low_key) + np.uint64(0x9E3779B9)) & np.uint64(MASK))
        high_key = np.uint32((np.uint64(high_key) + np.uint64(0xBB67AE85)) & np.uint64(MASK))
    high_i, low_i = half_in_32_bits(i, a0, a1, a2, a3)
    high_j, low_j = half_in_32_bits(j, b0, b1, b2, b3)
    high_k, low_k = half_in_32_bits(k, c0, c1, c2, c3)
    x, y = first_try(table, high_i, low_i), first_try(table, high_j, low_j)
    z = first_try(table, high_k, low_k)
    # Threads that need more tries for any of the three numbers make them together.
    while x == 0.0 or y == 0.0 or z == 0.0:
        if x == 0.0:
            n, high, low = i, high_i, low_i
        elif y == 0.0:
            n, high, low = j, high_j, low_j
        else:
            n, high, low = k, high_k, low_k
        value = normal_beyond(table, seed, run, stream, n, high, low)
        if x == 0.0:
            x = value
        elif y == 0.0:
            y = value
        else:
            z = value
    return x, y, z
