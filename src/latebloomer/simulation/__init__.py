"""Simulation of many runs of policies on a problem, and statistics of these runs.

`simulate.py` makes an `Experiment` (`experiment.py`) for each budget. `local_runs.py` or
`ray_tasks.py` simulate its runs in chunks, on the CPU (`cpu.py`) or a GPU (`gpu.py`). A `Tally`
counts each chunk, and the counts add up to `Results` (`results.py`), which are written to a file
if requested.
"""
