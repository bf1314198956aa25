"""The paper's small networks, compiled: scikit-learn's `MLPClassifier`, fitted review by review.

ReLU layers and a logistic output, Adam at a constant rate and the L2 penalty of scikit-learn's
defaults, in the same order of operations; a test compares the two. A step costs microseconds
instead of a millisecond, so that hundreds of runs, which the recorded curves average, are cheap.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import exp, sqrt
from typing import Any

import numpy as np

from latebloomer.core.kernel import kernel, lower
from latebloomer.errors import extra
from latebloomer.problems.curves import Floats

RATE, FIRST, SECOND, TINY, PENALTY = 0.001, 0.9, 0.999, 1e-8, 1e-4  # scikit-learn's defaults


def initial(sizes: tuple[int, ...], seed: int) -> Floats:
    """Glorot's uniform weights, each layer's and then its intercepts, as scikit-learn draws."""
    draw = np.random.RandomState(seed)
    parts = []
    for fan_in, fan_out in pairwise(sizes):
        bound = sqrt(6.0 / (fan_in + fan_out))
        parts += [
            draw.uniform(-bound, bound, fan_in * fan_out),
            draw.uniform(-bound, bound, fan_out),
        ]
    return np.concatenate(parts)


@kernel
def forward(sizes: Any, theta: Any, words: Any, counts: Any, acts: Any) -> float:
    """The probability of a positive review; `acts` receives the hidden layers' activations."""
    at, before, here = 0, 0, 0  # of this layer's weights, the last layer's and this one's outputs
    for layer in range(len(sizes) - 1):
        fan_in, fan_out = sizes[layer], sizes[layer + 1]
        for j in range(fan_out):
            total = theta[at + fan_in * fan_out + j]
            if layer == 0:
                for k in range(len(words)):
                    total += counts[k] * theta[at + words[k] * fan_out + j]
            else:
                for i in range(fan_in):
                    total += acts[before + i] * theta[at + i * fan_out + j]
            acts[here + j] = total if layer == len(sizes) - 2 else max(total, 0.0)
        at += (fan_in + 1) * fan_out
        before, here = here, here + fan_out
    return 1.0 / (1.0 + exp(-min(max(acts[before], -500.0), 500.0)))


@kernel
def backward(
    sizes: Any, theta: Any, words: Any, counts: Any, acts: Any, error: float, grad: Any, delta: Any
) -> None:
    """The gradient of the penalised log loss, from the output's `error` = p - y."""
    for k in range(len(theta)):
        grad[k] = 0.0
    at, here = len(theta), 0
    for layer in range(len(sizes) - 1):
        here += sizes[layer + 1]
    delta[here - 1] = error
    for layer in range(len(sizes) - 2, -1, -1):
        fan_in, fan_out = sizes[layer], sizes[layer + 1]
        at -= (fan_in + 1) * fan_out
        here -= fan_out
        for k in range(fan_in * fan_out):
            grad[at + k] = PENALTY * theta[at + k]
        for j in range(fan_out):
            grad[at + fan_in * fan_out + j] = delta[here + j]
        if layer == 0:
            spread_words(at, fan_out, words, counts, delta, here, grad)
        else:
            spread(at, fan_in, fan_out, theta, acts, delta, here, grad)


@kernel
def spread_words(
    at: int, fan_out: int, words: Any, counts: Any, delta: Any, here: int, grad: Any
) -> None:
    """The first layer: only the words of the review have a gradient beside the penalty's."""
    for k in range(len(words)):
        for j in range(fan_out):
            grad[at + words[k] * fan_out + j] += counts[k] * delta[here + j]


@kernel
def spread(
    at: int, fan_in: int, fan_out: int, theta: Any, acts: Any, delta: Any, here: int, grad: Any
) -> None:
    """A later layer: its weights' gradient, and the errors of the layer before it."""
    before = here - fan_in
    for i in range(fan_in):
        back = 0.0
        for j in range(fan_out):
            back += theta[at + i * fan_out + j] * delta[here + j]
            grad[at + i * fan_out + j] += acts[before + i] * delta[here + j]
        delta[before + i] = back if acts[before + i] > 0.0 else 0.0


@kernel
def adam(theta: Any, grad: Any, first: Any, second: Any, t: int) -> None:
    """One step of Adam, the t-th from 1."""
    rate = RATE * sqrt(1.0 - SECOND**t) / (1.0 - FIRST**t)
    for k in range(len(theta)):
        first[k] = FIRST * first[k] + (1.0 - FIRST) * grad[k]
        second[k] = SECOND * second[k] + (1.0 - SECOND) * (grad[k] * grad[k])
        theta[k] -= rate * first[k] / (sqrt(second[k]) + TINY)


@kernel
def learn_network(
    reviews: Any, order: Any, sizes: Any, theta: Any, memory: Any, right: Any, p_of: Any
) -> None:
    """One run: predict, be right or wrong, learn. `memory` has five rows as long as `theta`."""
    grad, first, second, acts, delta = memory[0], memory[1], memory[2], memory[3], memory[4]
    for t in range(len(right)):
        i = order[t]
        a, b = reviews.start[i], reviews.start[i + 1]
        words, counts = reviews.words[a:b], reviews.counts[a:b]
        p = forward(sizes, theta, words, counts, acts)
        p_of[t] = p if t > 0 else 0.5  # a network that was never fitted says .5
        right[t] = (p_of[t] > 0.5) == (reviews.label[i] == 1)
        backward(sizes, theta, words, counts, acts, p - reviews.label[i], grad, delta)
        adam(theta, grad, first, second, t + 1)


@cache
def compiled() -> Any:
    return lower(
        learn_network, extra("numba", "training live", "sim").njit(cache=True, nogil=True)
    )


def train(reviews: Any, order: Any, sizes: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    """Right or wrong, and the predicted probability, at each review of `order`."""
    theta = initial(sizes, seed)
    right, p_of = np.zeros(len(order), np.bool_), np.zeros(len(order))
    memory = np.zeros((5, len(theta)))
    compiled()(reviews, order, np.array(sizes), theta, memory, right, p_of)
    return right, p_of
