r"""Random numbers that are pure functions of their address: Philox4x32-10 [Salmon11].

There is no state, so a draw depends only on its arguments, and not on threads, batches, the order
of policies or the target. The address of a draw has these parts:

==========  ==============  ===================================================================
``seed``    64 bits         the key; kernels take it as a signed word, which `key` makes of it
``run``     48 bits         words 2 and 3 (the low half) of the counter
``stream``  32 bits         word 1: the arm (below 2^32 - 1), or `POLICY_STREAM`
``index``   33 bits         word 0 is ``index // 2``: pulls 2k and 2k+1 take half a block each
domain      16 bits         the high half of word 3: 0 for a Gaussian's first try, 1, 2, ... for
                            what the rare later tries need, `UNIFORM` for uniforms
==========  ==============  ===================================================================

so two draws share random bits only when all five agree. Words are 32 bits wide and held in signed
64-bit integers: a product of two may wrap around there (and does not in plain Python), but both
its halves, masked, are the same bits either way.

Gaussians come from a 256-layer ziggurat [MarsagliaTsang00] whose layer, sign and magnitude are
disjoint bits [Doornik05]: 98.5 % take one look-up, one product and one comparison, which round
alike on every target. Measured with numba on one core of a shared 2.8 GHz Xeon, Philox included
(ns each, the range over several runs): 7-12 in batches (`normals`, which LLVM vectorizes), 20-22
one by one (`normal`) and 22-29 with a block for each draw instead of one for two; AS241's inverse
of the distribution function 37-52 one by one, Box-Muller 29-39 in pairs.
"""

import math
from decimal import Decimal, localcontext
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.core.kernel import kernel

Table: TypeAlias = npt.NDArray[np.float64]
Words: TypeAlias = tuple[int, int, int, int]

POLICY_STREAM = 0xFFFFFFFF  # stream of the policies' draws; no arm has this number
SHUFFLE_STREAM = POLICY_STREAM - 1  # stream for the order of arms
UNIFORM = 0x8000  # domain of `uniform`; the tries of `normal` never reach it
LAYERS = 256
MASK = 0xFFFFFFFF
_RUN_HIGH = 0xFFFF
_CENTRE = 2**52

# Right edge of the ziggurat's base, and area of each layer. With these values (computed by the
# secant method with 60 digits), 256 layers meet the top of exp(-x^2/2) to 1e-27.
_BASE_EDGE = Decimal("3.65415288536100877164542972039951576")
_AREA = Decimal("0.00492867323397465534736177540233602807")


def _ziggurat() -> tuple[Table, Table]:
    """Return the layers' right edges, base first, and the heights of exp(-x^2/2) there.

    They are computed in decimal arithmetic, which rounds equally on all machines, and then rounded
    to double. A `libm` with an error of one ulp would give different rewards on different
    machines.
    """
    with localcontext() as context:
        context.prec = 28
        edges = [_AREA / (-_BASE_EDGE * _BASE_EDGE / 2).exp(), _BASE_EDGE]
        heights = [(-x * x / 2).exp() for x in edges]
        while len(edges) < LAYERS:
            heights.append(_AREA / edges[-1] + heights[-1])
            edges.append((-2 * heights[-1].ln()).sqrt())
    return np.array([*map(float, edges), 0.0]), np.array([*map(float, heights), 1.0])


EDGE, HEIGHT = _ziggurat()
# For layer k, entry 2 k is its width divided by a power of two (exact), and entry 2 k + 1 is the
# edge of the next layer, up to which all of layer k is under the curve.
ZIGGURAT = np.stack([EDGE[:-1] / _CENTRE, EDGE[1:]], axis=1).ravel()
TAIL = float(_BASE_EDGE)


@kernel
def philox_round(
    c0: int, c1: int, c2: int, c3: int, k0: int, k1: int
) -> tuple[int, int, int, int, int, int]:
    """Return one round of Philox4x32 and the key of the next one."""
    p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
    return (
        ((q >> 32) & MASK) ^ c1 ^ k0,
        q & MASK,
        ((p >> 32) & MASK) ^ c3 ^ k1,
        p & MASK,
        (k0 + 0x9E3779B9) & MASK,
        (k1 + 0xBB67AE85) & MASK,
    )


@kernel
def philox_block(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> Words:
    """Return the four words of Philox4x32-10 for four counter words and two key words.

    >>> [f"{word:08x}" for word in philox_block(0, 0, 0, 0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    for _ in range(10):
        c0, c1, c2, c3, k0, k1 = philox_round(c0, c1, c2, c3, k0, k1)
    return c0, c1, c2, c3


@kernel
def block(seed: int, run: int, stream: int, place: int, domain: int) -> Words:
    """Return the four words for draws 2 place and 2 place + 1 of a stream and a domain."""
    return philox_block(
        int(place) & MASK,
        int(stream) & MASK,
        int(run) & MASK,
        ((int(run) >> 32) & _RUN_HIGH) | (domain << 16),
        int(seed) & MASK,
        (int(seed) >> 32) & MASK,
    )


@kernel
def half(seed: int, run: int, stream: int, index: int, domain: int) -> tuple[int, int]:
    """Return the 64 bits of one draw, as two words."""
    c0, c1, c2, c3 = block(seed, run, stream, index >> 1, domain)
    if index & 1 == 0:
        return c0, c1
    return c2, c3


@kernel
def unit(high: int, low: int) -> float:
    """Return the middle of one of 2^52 equal cells of (0, 1); it is exact, and never 0 or 1.

    >>> unit(0, 0) == 2.0**-53, unit(MASK, MASK) == 1 - 2.0**-53
    (True, True)
    """
    return (((high << 20) | (low >> 12)) + 0.5) * 2.220446049250313e-16  # 2^-52


@kernel
def uniform(seed: int, run: int, stream: int, index: int) -> float:
    """Return a uniform number in (0, 1), ends excluded, with 52 random bits.

    >>> uniform(seed=0, run=0, stream=POLICY_STREAM, index=0)
    0.1412804929095265
    """
    high, low = half(seed, run, stream, index, UNIFORM)
    return unit(high, low)


@kernel
def place_in_layer(table: Any, high: int, low: int) -> float:
    """Return a uniform place, from the top 53 bits, in the layer of the lowest 8 bits."""
    return (((high << 21) | (low >> 11)) - _CENTRE + 0.5) * float(table[2 * (low & 255)])


@kernel
def first_try(table: Any, high: int, low: int) -> float:
    """Return a Gaussian from one look-up; 0, which no Gaussian is, if more is needed."""
    x = place_in_layer(table, high, low)
    return x if abs(x) < table[2 * (low & 255) + 1] else 0.0


@kernel
def normal(seed: int, run: int, stream: int, index: int) -> float:
    """Return a standard Gaussian.

    >>> [round(normal(seed=0, run=0, stream=arm, index=0), 3) for arm in range(3)]
    [-0.292, -0.322, -0.343]
    """
    return normal_by(ZIGGURAT, seed, run, stream, index)


@kernel
def normal_by(table: Any, seed: int, run: int, stream: int, index: int) -> float:
    r"""Return a standard Gaussian from a table of the ziggurat, of which a GPU has its own copy.

    First a layer is drawn, and then :math:`x` in it. If all of the layer at :math:`x` is under
    :math:`f(x) = e^{-x^2/2}`, :math:`x` is the result. Otherwise a height in the layer is drawn,
    too, and :math:`x` is the result if the point is under :math:`f`. Beyond the edge of the base,
    the tail is sampled.
    """
    high, low = half(seed, run, stream, index, 0)
    x = place_in_layer(table, high, low)
    if abs(x) < table[2 * (low & 255) + 1]:
        return x
    return normal_beyond(table, seed, run, stream, index, high, low)


@kernel
def normal_beyond(
    table: Any, seed: int, run: int, stream: int, index: int, high: int, low: int
) -> float:
    """Return a Gaussian if the words of the first try are in an uncertain part of a layer."""
    domain = 0
    while True:
        layer = low & 255
        x = place_in_layer(table, high, low)
        if abs(x) < table[2 * layer + 1]:
            return x
        if layer == 0:
            return math.copysign(normal_tail(seed, run, stream, index, domain + 1), x)
        high, low = half(seed, run, stream, index, domain + 1)
        height = HEIGHT[layer] + unit(high, low) * (HEIGHT[layer + 1] - HEIGHT[layer])
        if height < math.exp(-0.5 * x * x):
            return x
        domain += 2
        high, low = half(seed, run, stream, index, domain)


@kernel
def normal_tail(seed: int, run: int, stream: int, index: int, domain: int) -> float:
    """Return a Gaussian beyond the base's edge, 3.654 [Marsaglia64]; none is above 13.7."""
    while True:
        high, low = half(seed, run, stream, index, domain)
        beyond = -math.log(unit(high, low)) / TAIL
        high, low = half(seed, run, stream, index, domain + 1)
        if -2.0 * math.log(unit(high, low)) > beyond * beyond:
            return TAIL + beyond
        domain += 2


@kernel
def normals(out: Any, seed: int, run: int, stream: int, start: int) -> None:
    """Fill `out` with the Gaussians of the pulls `start`, `start` + 1, ...; `start` is even.

    The rounds are in a separate loop without branches, so that LLVM computes several blocks at the
    same time. No Gaussian is exactly 0, so 0 marks numbers that need more than one try.

    >>> out = np.empty(5)
    >>> normals(out, seed=1, run=2, stream=3, start=4)
    >>> out.tolist() == [normal(1, 2, 3, pull) for pull in range(4, 9)]
    True
    """
    count = len(out)
    if count & 1:
        out[count - 1] = 0.0
    for pair in range(count >> 1):
        c0, c1 = ((int(start) >> 1) + pair) & MASK, int(stream) & MASK
        c2, c3 = int(run) & MASK, (int(run) >> 32) & _RUN_HIGH
        k0, k1 = int(seed) & MASK, (int(seed) >> 32) & MASK
        for _ in range(10):
            c0, c1, c2, c3, k0, k1 = philox_round(c0, c1, c2, c3, k0, k1)
        out[2 * pair] = first_try(ZIGGURAT, c0, c1)
        out[2 * pair + 1] = first_try(ZIGGURAT, c2, c3)
    for i in range(count):
        if out[i] == 0.0:
            out[i] = normal(seed, run, stream, start + i)
