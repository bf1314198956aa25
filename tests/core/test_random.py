"""Counter-based random numbers: the published generator, Gaussian to the tails.

Statistical tests state the rate at which a perfect generator would fail them. Draws are
functions of the `seed` fixture: a test that passes for a seed passes for it always.
"""

import math

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from latebloomer.core import random
from latebloomer.core.kernel import cpu_jit, lower
from latebloomer.core.ledger import RUNS
from latebloomer.core.policy_moves import key
from latebloomer.errors import SettingError

FALSE_ALARMS = 1e-6  # of each test below, all its statistics together
TOP = 2**32 - 1

compiled = {
    name: lower(getattr(random, name), cpu_jit())
    for name in ("philox_block", "block", "uniform", "normal", "normal_tail", "normals", "half")
}

words = st.integers(0, TOP)
addresses = st.tuples(
    st.integers(-(2**63), 2**63 - 1),  # key(seed)
    st.integers(0, RUNS - 1),
    words,
    st.integers(0, 2**33 - 1),
)


def draws(count, seed, run=0, stream=0, start=0):
    out = np.empty(count)
    compiled["normals"](out, key(seed), run, stream, start)
    return out


@numba.njit
def _fill(out, fill, seed, runs, streams):
    for i in range(len(out)):
        fill(out[i], seed, runs[i], streams[i], 0)


def table(pulls, seed, runs, streams):
    """One row of Gaussians for each (run, stream)."""
    out = np.empty((len(runs), pulls))
    _fill(out, compiled["normals"], key(seed), runs, streams)
    return out


# The generator is the published one.


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # Random123 1.14, tests/kat_vectors, philox4x32 10
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)  # fmt: skip
def test_philox_gives_the_published_answers(counter, key, answer):
    arguments = [int(word, 16) for word in f"{counter} {key}".split()]
    for philox_block in (random.philox_block, compiled["philox_block"]):
        assert " ".join(f"{word:08x}" for word in philox_block(*arguments)) == answer


def test_the_address_is_laid_out_as_documented():
    seed, run, arm, place = 0x0123456789ABCDEF, 0x00001234_9ABCDEF0, 77, 5
    expected = random.philox_block(place, arm, 0x9ABCDEF0, 0x1234, 0x89ABCDEF, 0x01234567)
    assert random.block(seed, run, arm, place, 0) == expected
    assert random.half(seed, run, arm, 2 * place, 0) == expected[:2]
    assert random.half(seed, run, arm, 2 * place + 1, 0) == expected[2:]
    # a try of `normal` uses the domains 0, 1, 2, ...; 2^14 tries in a row have probability 0
    assert random.uniform(0, 0, 0, 0) == random.unit(*random.half(0, 0, 0, 0, random.UNIFORM))
    assert random.half(0, 0, 0, 0, random.UNIFORM) != random.half(0, 0, 0, 0, 0)


@given(st.integers(0, 2**64 - 1))
def test_key_keeps_all_bits_of_the_seed(seed):
    assert key(seed) % 2**64 == seed
    assert -(2**63) <= key(seed) < 2**63
    for bad in (-1, 2**64, 1.0, "7", None):
        with pytest.raises(SettingError, match=r"seed=.* must be an integer in \[0, 2\^64\)"):
            key(bad)


# The same bits on every target.


@given(addresses)
@example((0, 0, 0, 0))
@example((-1, RUNS - 1, TOP, 2**33 - 1))
@example((-(2**63), 2**32, 0, 2**33 - 2))
@example((2**63 - 1, TOP, TOP, 1))
def test_python_and_compiled_draws_are_the_same_bits(address):
    for name in ("uniform", "normal"):
        assert getattr(random, name)(*address) == compiled[name](*address), name
    assert random.block(*address, 0) == compiled["block"](*address, 0)
    assert random.normal_tail(*address, 1) == compiled["normal_tail"](*address, 1)
    # np.int64 products would overflow, and warn, where Python's do not
    assert random.normal(*map(np.int64, address)) == random.normal(*address)


@given(addresses, st.integers(0, 40))
def test_a_batch_holds_the_single_draws(address, count):
    seed, run, stream, start = *address[:3], min(address[3] // 2 * 2, 2**33 - 64)
    out, again = np.empty(count), np.empty(count)
    random.normals(out, seed, run, stream, start)
    compiled["normals"](again, seed, run, stream, start)
    singles = [random.normal(seed, run, stream, start + i) for i in range(count)]
    assert out.tolist() == again.tolist() == singles


# The distribution is the Gaussian one.


def two_sided(count, trials, probability):
    law = stats.binom(trials, probability)
    return min(1.0, 2 * min(law.cdf(count), law.sf(count - 1)))


def gaussian_alarms(z, bins=256):
    """p-values of what should hold of independent standard Gaussians."""
    n = len(z)
    counts = np.bincount((special.ndtr(z) * bins).astype(int), minlength=bins)
    p = {"quantiles": stats.chisquare(counts).pvalue}
    for sigmas in (3, 4, 5):
        chance = 2 * special.ndtr(-sigmas)
        p[f"beyond {sigmas}"] = two_sided(int(np.sum(np.abs(z) > sigmas)), n, chance)
        p[f"side of {sigmas}"] = two_sided(int(np.sum(z > sigmas)), n, chance / 2)
    square = z * z  # E z^2 = 1, z^4 = 3, z^6 = 15, z^8 = 105
    for name, power, mean, variance in (
        ("mean", z, 0, 1),
        ("variance", square, 1, 2),
        ("third moment", square * z, 0, 15),
        ("fourth moment", square * square, 3, 96),
    ):
        p[name] = 2 * stats.norm.sf(abs(power.mean() - mean) / math.sqrt(variance / n))
    return p


def rejected(p):
    return {name: value for name, value in p.items() if value < FALSE_ALARMS / len(p)}


# Of 2^24 draws about 1063 are beyond 4 sigma and 10 beyond 5; of 2^21, 133 and 1.
@pytest.mark.parametrize("count", [2**21, pytest.param(2**24, marks=pytest.mark.slow)])
def test_draws_are_gaussian_to_the_tails(seed, count):
    z = draws(count, seed)
    assert not rejected(gaussian_alarms(z))
    assert 4 < np.abs(z).max() < 8  # all but 1e-9 of such samples, and no cut-off


@pytest.mark.slow
@pytest.mark.parametrize("sigmas", [4.0, 5.0, 6.0])
def test_the_tail_sampler_follows_the_tail(seed, sigmas):
    tail = compiled["normal_tail"]
    z = np.array([tail(key(seed), 0, 0, i, 1) for i in range(200_000)])
    beyond = special.ndtr(-sigmas) / special.ndtr(-random.TAIL)
    assert z.min() > random.TAIL
    assert two_sided(int(np.sum(z > sigmas)), len(z), beyond) > FALSE_ALARMS
    law = special.ndtr(-z) / special.ndtr(-random.TAIL)
    assert stats.kstest(law, "uniform").pvalue > FALSE_ALARMS


def test_uniforms_are_uniform(seed):
    one = compiled["uniform"]
    u = np.array([one(key(seed), 0, 1, i) for i in range(100_000)])
    assert 0 < u.min() < u.max() < 1
    p = {
        "all": stats.chisquare(np.bincount((u * 1024).astype(int), minlength=1024)).pvalue,
        "low bits": stats.chisquare(np.bincount((u * 2**52).astype(int) % 1024)).pvalue,
    }
    assert not rejected(p)


# The ziggurat.


def test_layers_have_equal_areas_and_close_at_the_top():
    x, f = random.EDGE, random.HEIGHT
    area = special.erfc(x[1] / math.sqrt(2)) * math.sqrt(math.pi / 2) + x[1] * f[1]
    assert x[0] * f[1] == pytest.approx(area, rel=1e-14)
    assert x[1:-1] * np.diff(f[1:]) == pytest.approx(area, rel=2e-12)
    assert np.exp(-(x**2) / 2) == pytest.approx(f, rel=1e-14)
    assert np.all(np.diff(x) < 0) and x[-1] == 0 and f[-1] == 1
    assert np.mean(x[1:] / x[:-1]) == pytest.approx(0.9851, abs=1e-4)  # one try is enough


def test_layer_sign_and_magnitude_are_independent_bits(seed):
    # Doornik (2005): where they come from overlapping bits, layer and size are related
    bits = np.array([compiled["half"](seed, 0, 0, i, 0) for i in range(100_000)])
    layer, sign, size = bits[:, 1] & 255, bits[:, 0] >> 31, (bits[:, 0] >> 28) & 7
    p = stats.chisquare(np.bincount((layer * 2 + sign) * 8 + size, minlength=4096)).pvalue
    assert p > FALSE_ALARMS


# Neighbors in every direction are unrelated.


def correlation_alarms(**pairs):
    """p-values of sums of products, of values and of sizes, whose variances are known."""
    p = {}
    for name, (x, y) in pairs.items():
        size = np.sum((x * x - 1) * (y * y - 1)) / 2
        p[f"{name}, values"] = 2 * stats.norm.sf(abs(np.sum(x * y)) / math.sqrt(x.size))
        p[f"{name}, sizes"] = 2 * stats.norm.sf(abs(size) / math.sqrt(x.size))
    return p


M = 2**20


def test_neighbouring_pulls_and_halves_of_a_block_are_uncorrelated(seed):
    z = draws(M, seed)
    pairs = {f"lag {lag}": (z[lag:], z[:-lag]) for lag in (1, 2, 3, 64, 4096)}
    assert not rejected(correlation_alarms(halves=(z[0::2], z[1::2]), **pairs))


@pytest.mark.parametrize(
    "apart", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 256, 2**31))]
)
def test_neighbouring_arms_runs_and_seeds_are_uncorrelated(seed, apart):
    z = draws(M, seed)
    others = {
        "arm": draws(M, seed, stream=apart),
        "run": draws(M, seed, run=apart),
        "seed": draws(M, seed + apart),
        "high_run": draws(M, seed, run=apart << 16),
        "high_seed": draws(M, seed + (apart << 32)),
        "policy": draws(M, seed, stream=random.POLICY_STREAM - apart + 1),
    }
    assert not rejected(correlation_alarms(**{name: (z, y) for name, y in others.items()}))


def test_first_pulls_of_neighbouring_runs_and_arms_are_gaussian_and_uncorrelated(seed):
    # what a simulation meets: few pulls of many runs and arms
    run, arm = (part.ravel() for part in np.indices((2**16, 8)))
    z = table(2, seed, run, arm).reshape(2**16, 8, 2)
    pairs = {"runs": (z[1:], z[:-1]), "arms": (z[:, 1:], z[:, :-1])}
    assert not rejected(correlation_alarms(**pairs) | gaussian_alarms(z.ravel()))
