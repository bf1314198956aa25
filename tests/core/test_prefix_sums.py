"""Prefix sums of a formula: those of one long addition, and no more of them than were read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latebloomer.core.estimators import FIRST_BLOCK, PrefixSums


def powers(last):
    return PrefixSums(lambda m: m**-0.8, last)


@given(st.lists(st.integers(0, 5 * FIRST_BLOCK), max_size=5))
def test_whatever_is_read_first_the_sums_are_those_of_one_addition_to_the_bit(reads):
    sums = powers(5 * FIRST_BLOCK)
    whole = np.cumsum([0.0, *np.arange(1.0, 5 * FIRST_BLOCK + 1) ** -0.8])
    assert [sums[m] for m in reads] == whole[reads].tolist() if reads else True
    assert sums.array().tolist() == whole.tolist()


def test_sums_cost_what_is_read_and_not_what_could_be(peak_bytes):
    assert peak_bytes(lambda: powers(2**53)[5000]) < 2**21


def test_there_are_no_sums_beyond_the_last():
    sums = powers(7)
    assert sums[7] == pytest.approx(sum(m**-0.8 for m in range(1, 8)))
    for m in (8, -1):
        with pytest.raises(IndexError, match="sums 0 to 7"):
            sums[m]
