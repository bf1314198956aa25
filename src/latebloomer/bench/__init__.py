"""Comparison of policies on curves of real learners: the implementation of `latebloomer bench`.

`curve_sets.py` has the sets by name; those of `recorded_tables.py` are in this package.
`own_curves.py` reads a user's folder. `curve_runs.py` runs policies with budgets in pulls, and
`timed_runs.py` races within recorded seconds. `costs.py` computes the costs of picks, and
`benchmark.py` does everything in one call.
"""

from latebloomer.bench.benchmark import COMPARED, BenchReport, bench
from latebloomer.bench.curves import Curves

__all__ = ["COMPARED", "BenchReport", "Curves", "bench"]
