"""How often a verdict is certified and how often the intervals hold: `python -m
benchmarks.certificates [--quick]`.

Random instances of all families, K = 20, sd .01, the noise estimated, T = 4 H, played by the
default policy; the paper's windows and the lines beside each other on the same rewards.
"""

from __future__ import annotations

import sys

import numpy as np

from latebloomer import Session
from latebloomer.core.statistics import share
from latebloomer.problems import FAMILIES, random_problem

ARMS, NOISE = 20, 0.01


def play(family: str, horizon: int, seed: int) -> tuple[Session, np.ndarray]:
    """One run of the default policy on a random instance, and the means at the horizon."""
    problem = random_problem(family, ARMS, seed=seed)
    means = problem.means(horizon)
    rng = np.random.default_rng(seed)
    session = Session("auto", ARMS, 4 * horizon, horizon)
    while not session.over:
        arm = session.ask()
        mean = means[arm, session.pulls_of(arm)]
        session.tell(arm, float(mean + NOISE * rng.standard_normal()))
    return session, means[:, -1]


def main(quick: bool) -> None:
    instances, horizons = (5, (100,)) if quick else (25, (100, 400))
    print(f"{'family':14}{'H':>6}{'method':>10}{'certified':>11}{'wrongly':>9}{'hold':>7}")
    total = {method: np.zeros(4, int) for method in ("windows", "lines")}
    for family in FAMILIES:
        for horizon in horizons:
            found = {method: np.zeros(4, int) for method in total}
            for seed in range(instances):
                session, ends = play(family, horizon, seed)
                for method, counts in found.items():
                    proof = session.certificate(method=method)
                    sure = proof.certified(session.best_arm)
                    wrong = sure and ends[session.best_arm] < ends.max()
                    hold = bool(((proof.lower <= ends) & (ends <= proof.upper)).all())
                    counts += (1, sure, wrong, hold)
            for method, counts in found.items():
                total[method] += counts
                runs, sure, wrong, hold = counts
                print(f"{family:14}{horizon:>6}{method:>10}{sure / runs:>11.2f}{wrong:>9}"
                      f"{hold / runs:>7.2f}", flush=True)  # fmt: skip
    for method, (runs, sure, wrong, hold) in total.items():
        print(f"all, {method}: certified {share(int(sure), int(runs))}, wrongly {wrong}, "
              f"intervals hold {share(int(hold), int(runs))}")  # fmt: skip


if __name__ == "__main__":
    main("--quick" in sys.argv)
