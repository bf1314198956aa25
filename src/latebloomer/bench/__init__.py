"""Policies on curves of real learners: `latebloomer bench` and what is behind it.

`curve_sets.py` and `curve_files.py` have the problems, `curve_runs.py` plays them and counts,
`bench_report.py` shows, and `benchmark.py` does all of it in one call. `training_times.py`
compares learners whose training costs differ.
"""

from latebloomer.bench.bench_report import BenchReport
from latebloomer.bench.benchmark import COMPARED, bench
from latebloomer.bench.curve_sets import Curves

__all__ = ["COMPARED", "BenchReport", "Curves", "bench"]
