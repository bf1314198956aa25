"""Policies on curves of real learners: `latebloomer bench` and what is behind it.

`curve_sets.py` has the problems, `curve_runs.py` plays them and counts, and
`benchmark.py` does all of it in one call and reports, also for learners whose
training costs differ.
"""

from latebloomer.bench.benchmark import COMPARED, BenchReport, bench
from latebloomer.bench.curve_sets import Curves

__all__ = ["COMPARED", "BenchReport", "Curves", "bench"]
