"""Philox in words of 32 bits: what a GPU multiplies in one instruction.

`core.random` holds words in signed 64-bit integers, which every target knows; a card then computes
with twice the width it needs. The bits are the same.
"""

from __future__ import annotations

import numpy as np

from latebloomer.core.kernel import kernel
from latebloomer.core.random import MASK, Words


@kernel
def philox_block_in_32_bits(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> Words:
    """`philox_block`, ten rounds of it.

    >>> [f"{word:08x}" for word in philox_block_in_32_bits(0, 0, 0, 0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    a, b, c, d = np.uint32(c0), np.uint32(c1), np.uint32(c2), np.uint32(c3)
    low_key, high_key = np.uint32(k0), np.uint32(k1)
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * np.uint64(a), np.uint64(0xCD9E8D57) * np.uint64(c)
        a, b = np.uint32(q >> np.uint64(32)) ^ b ^ low_key, np.uint32(q & np.uint64(MASK))
        c, d = np.uint32(p >> np.uint64(32)) ^ d ^ high_key, np.uint32(p & np.uint64(MASK))
        low_key = np.uint32((np.uint64(low_key) + np.uint64(0x9E3779B9)) & np.uint64(MASK))
        high_key = np.uint32((np.uint64(high_key) + np.uint64(0xBB67AE85)) & np.uint64(MASK))
    return int(a), int(b), int(c), int(d)
