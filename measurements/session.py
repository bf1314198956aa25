"""The cost of ask and tell: `python -m measurements.session` (CPU time, one core)."""

from __future__ import annotations

import random
import subprocess
import sys
import time

from latebloomer import Session

POLICIES = ("r-sr", "r-ucbe:exploration=20,noise=0.01", "r-ucbe", "ucb-e:exploration=1", "sh",
            "rr", "etc", "rest-sure", "prob-1")  # fmt: skip
ARMS = {5: 5, 1000: 50, 100_000: 200}  # number of arms: limit in microseconds


def cost(policy: str, arms: int, pulls: int = 20_000) -> float:
    """Return the microseconds of one ask and tell, decisions between phases included."""
    budget = max(60_000, 40 * arms)
    rewards = [random.Random(0).random() for _ in range(1000)]
    session = Session(policy, arms, budget)
    for pull in range(4 * arms + 10):  # the warm-up
        session.tell(session.ask(), rewards[pull % 1000])
    start = time.process_time()
    for pull in range(pulls):
        session.tell(session.ask(), rewards[pull % 1000])
    return 1e6 * (time.process_time() - start) / pulls


def import_time() -> float:
    code = (
        "import time; t = time.perf_counter(); import latebloomer; print(time.perf_counter() - t)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


if __name__ == "__main__":
    print(f"{'policy':36}" + "".join(f"{arms:>9} arms" for arms in ARMS))
    for policy in POLICIES:
        cells = [
            f"{min(cost(policy, arms) for _ in range(3 if arms < 10**5 else 1)):11.2f} us"
            for arms in ARMS
        ]
        print(f"{policy:36}" + "".join(cells), flush=True)
    print(f"target{'':30}" + "".join(f"{limit:11.0f} us" for limit in ARMS.values()))
    print(f"import latebloomer: {1e3 * import_time():.0f} ms")
