"""Policies on curves of real learners: `latebloomer bench` and what is behind it.

`curve_sets.py`, `curve_files.py` and `journal_curves.py` say where problems come from,
`compared_policies.py` who plays, `curve_runs.py` plays, `losses.py` counts, `bench_report.py`
shows, and `benchmark.py` is all of it in one call.
"""

from latebloomer.bench.bench_report import BenchReport
from latebloomer.bench.benchmark import BUDGETS, bench
from latebloomer.bench.compared_policies import COMPARED
from latebloomer.bench.curve_files import read_folder
from latebloomer.bench.curve_sets import Curves, names_of, read_sets

__all__ = [
    "BUDGETS",
    "COMPARED",
    "BenchReport",
    "Curves",
    "bench",
    "names_of",
    "read_folder",
    "read_sets",
]
