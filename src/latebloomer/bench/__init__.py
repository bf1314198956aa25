"""Policies on curves of real learners: `latebloomer bench` and what is behind it.

`curve_sets.py` has the sets by name, of which `recorded_tables.py` lie in this package, and
`own_curves.py` reads a user's folder. `curve_runs.py` runs policies by pulls, `timed_runs.py`
races within recorded seconds, `costs.py` counts, and `benchmark.py` does all of it in one call.
"""

from latebloomer.bench.benchmark import COMPARED, BenchReport, bench
from latebloomer.bench.curves import Curves

__all__ = ["COMPARED", "BenchReport", "Curves", "bench"]
