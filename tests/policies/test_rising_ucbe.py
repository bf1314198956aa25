"""R-UCBE against its definition, reward by reward: what it asks for, and what it recommends."""

import numpy as np
import pytest

from latebloomer import RisingUCBE
from latebloomer.session.session import Session
from tests.helpers.played_policies import asked, play


def mean_bound(x, horizon, noise, a):
    """B of an arm with rewards x, by its definition; without noise its estimate."""
    n, h = len(x), len(x) // 4
    window = [x[k] + (horizon - k - 1) * (x[k] - x[k - h]) / h for k in range(n - h, n)]
    return np.mean(window) + noise * (horizon - n + h - 1) * np.sqrt(a / h**3)


def by_definition(X, budget, a, recommend, repeats=frozenset()):
    """Arms asked for and the arm kept, with noise from second differences of all other arms.

    A bound is made when its arm is pulled, and all are made again when the pulls have doubled.
    """
    arms, path = len(X), [arm for _ in range(4) for arm in range(len(X))]
    had, squares, renew = [4] * arms, [], 1
    for t, arm in enumerate(path, 1):
        n = path[:t].count(arm)
        if n >= 3 and arm not in repeats:
            squares.append(np.diff(X[arm][n - 3 : n], 2)[0] ** 2)
        renew = 2 * t if t >= renew else renew

    def bound(arm, weight=1.0):
        noise = weight * np.sqrt(np.mean(squares) / 6)
        return mean_bound(X[arm][: had[arm]], budget, noise, a)

    bounds = [bound(arm) for arm in range(arms)]
    while len(path) < budget:
        arm = int(np.argmax(bounds))
        path.append(arm)
        had[arm] += 1
        if arm not in repeats:
            squares.append(np.diff(X[arm][had[arm] - 3 : had[arm]], 2)[0] ** 2)
        bounds[arm] = bound(arm)
        if len(path) >= renew:
            renew = 2 * len(path)
            bounds = [bound(arm) for arm in range(arms)]
    final = [bound(arm, weight=1.0 if recommend == "bound" else 0.0) for arm in range(arms)]
    return path, int(np.argmax(final))


EXPLORATION = 8.0


@pytest.mark.parametrize("recommend", ["estimate", "bound"])
@pytest.mark.parametrize("trend", [-3.0, 3.0])
def test_bounds_follow_the_noise_as_it_is_estimated(recommend, trend):
    """With noise that falls or grows twentyfold, bounds that are not renewed pull other arms."""
    kept = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = np.arange(300)
        noise = 0.02 * np.exp(trend * np.minimum(n, 40) / 40) * rng.standard_normal((4, 300))
        X = rng.uniform(0.3, 1, (4, 1)) * (1 - np.exp(-(n + 1) / 30)) + noise
        policy = RisingUCBE(exploration=EXPLORATION, recommend=recommend)
        session = play(policy, X, 300)
        path, arm = by_definition(X.tolist(), 300, EXPLORATION, recommend)
        assert asked(session) == path
        assert session.recommend().arm == arm
        kept.add(arm == by_definition(X.tolist(), 300, EXPLORATION, "estimate")[1])
    if recommend == "bound":
        assert kept == {True, False}  # the two rules differ here


def test_an_arm_that_repeats_its_rewards_says_nothing_about_the_noise(rng):
    """Between its steps it has none, and bounds would trust the others' rewards too much."""
    X = rng.uniform(0.3, 1, (4, 1)) * (1 - np.exp(-np.arange(1, 301) / 30))
    X += 0.02 * rng.standard_normal((4, 300))
    X[3] = np.repeat(X[3, ::10], 10)
    session = play(Session(RisingUCBE(EXPLORATION), 4, 300, repeats_scores=[3]), X)
    path, arm = by_definition(X.tolist(), 300, EXPLORATION, "estimate", repeats={3})
    assert asked(session) == path != by_definition(X.tolist(), 300, EXPLORATION, "estimate")[0]
    assert session.recommend().arm == arm
