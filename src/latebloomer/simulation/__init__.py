"""Plays policies millions of times on a problem, where rewards are drawn, and counts what they do.

`run_simulation.py` makes an `Experiment` (`experiment.py`) for each budget; `local_runs.py` or
`ray_tasks.py` play its runs in chunks, on the CPU (`cpu.py`) or a GPU (`gpu.py`); a `Tally` counts
each chunk; counts add up to `Results`, in a file (`results_file.py`) if wanted. For users:
"""

from typing import TYPE_CHECKING

from latebloomer.core.lazy_names import lazy_names
from latebloomer.simulation.simulate import simulate

if TYPE_CHECKING:
    from latebloomer.simulation.results import Comparison, Results

__all__ = ["Comparison", "Results", "simulate"]

HOMES = {  # where each name lives
    "Comparison": "latebloomer.simulation.results",
    "Results": "latebloomer.simulation.results",
}

__getattr__, __dir__ = lazy_names(__name__, HOMES)
