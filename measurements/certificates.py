"""How often a winner is certified, and how often the intervals hold.

    python -m measurements.certificates [--quick]

Random instances, sd .01, the noise estimated, horizons of 100 and 400 pulls, the default policy.
*windows* (before) and *lines* (now) are the two certificates, on the same rewards. Two others that
are not available in practice show the limit: *one check* has lines with the noise known and no
correction for repeated checks; *exact* knows the means themselves up to each arm's last pull,
after which a rising concave curve can still end anywhere from its last value to where its last
step leads. Five families rise and are concave, as certificates assume; S-shaped curves are
separate.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from scipy.stats import norm

from latebloomer import Session
from latebloomer.bench.report import table
from latebloomer.core.statistics import share
from latebloomer.problems import FAMILIES, random_problem
from latebloomer.problems.curves import Floats

NOISE, ROUNDING = 0.01, 1e-9
SHAPES = ((20, 4), (20, 8), (20, 16), (5, 2), (5, 4))  # K, T / H
GROUPS = {"five": [name for name in FAMILIES if name != "sshaped"], "S-shaped": ["sshaped"]}
METHODS = ("windows", "lines", "one check", "exact")


def play(arms: int, times: int, means: Floats, seed: int) -> Session:
    """Return a session of the default policy that has spent its budget."""
    horizon = means.shape[1]
    rng = np.random.default_rng(seed)
    session = Session("auto", arms, times * horizon, horizon)
    while not session.over:
        arm = session.ask()
        mean = means[arm, session.pulls_of(arm)]
        session.tell(arm, float(mean + NOISE * rng.standard_normal()))
    return session


def exact(session: Session, means: Floats) -> tuple[Floats, Floats]:
    """Return intervals for the final values if the means so far are known."""
    arms, n = np.arange(len(means)), np.array(session.pulls)
    last, before = means[arms, n - 1], means[arms, np.maximum(0, n - 2)]
    step = np.where(n > 1, last - before, last)  # a curve begins at 0 or above
    return last, last + (means.shape[1] - n) * step


def one_check(session: Session, means: Floats) -> tuple[Floats, Floats]:
    """Return intervals by means and lines of the latest quarter, half and all; 95 % together."""
    (arms, horizon), lower, upper = means.shape, [], []
    z = norm.isf(0.05 / (2 * arms))
    for arm in range(arms):
        scores = np.array(session.scores(arm))
        latest = [scores[-m:] for m in {max(2, len(scores) // k) for k in (4, 2, 1)}]
        lower.append(max(x.mean() - z * NOISE / len(x) ** 0.5 for x in latest))
        upper.append(min(line_at(x, len(scores), horizon, z) for x in latest if len(x) > 1))
    return np.array(lower), np.array(upper)


def line_at(latest: Floats, pulls: int, horizon: int, z: float) -> float:
    """Return the least-squares line through the latest rewards at the horizon plus z sd."""
    m = len(latest)
    ahead = horizon - (pulls - (m - 1) / 2)
    slope = (np.arange(m) - (m - 1) / 2) @ latest * 12 / (m * (m * m - 1))
    sd = NOISE * (1 / m + 12 * ahead * ahead / (m * (m * m - 1))) ** 0.5
    return float(latest.mean() + ahead * slope + z * sd)


def outcome(session: Session, means: Floats, method: str) -> tuple[int, bool, bool, bool]:
    """Return 1, whether the winner is certified, wrongly so, and whether all intervals hold."""
    ends, best = means[:, -1], session.best_arm
    if method in ("windows", "lines"):
        proof = session.certificate(method=method)
        lower, upper, sure = proof.lower, proof.upper, proof.certified(best)
    else:
        lower, upper = (one_check if method == "one check" else exact)(session, means)
        sure = bool(lower[best] > np.delete(upper, best).max())
    wrong = sure and bool(ends[best] < ends.max())
    inside = (lower <= ends + ROUNDING) & (ends <= upper + ROUNDING)
    return 1, sure, wrong, bool(inside.all())


def main(quick: bool) -> None:
    instances, horizons = (3, (100,)) if quick else (15, (100, 400))
    rows = []
    for (arms, times), (group, families) in product(SHAPES, GROUPS.items()):
        counts = {method: np.zeros(4, int) for method in METHODS}
        for family, horizon, seed in product(families, horizons, range(instances)):
            means = random_problem(family, arms, seed=seed).means(horizon)
            session = play(arms, times, means, seed)
            for method in METHODS:
                counts[method] += outcome(session, means, method)
        for method, (runs, sure, wrong, hold) in counts.items():
            held = share(int(hold), int(runs))
            ends = f"[{held.low:.2f}, {held.high:.2f}]"
            rows.append([group, f"{arms}", f"{times} H", method, f"{sure} of {runs}", f"{wrong}",
                         f"{hold} of {runs} {ends}"])  # fmt: skip
    header = ["families", "K", "T", "method", "certified", "wrongly", "intervals hold"]
    print(table([header, *rows]))


if __name__ == "__main__":
    main("--quick" in sys.argv)
