"""Simulates policies millions of times on a problem and counts what they do.

`simulate.py` makes an `Experiment` (`experiment.py`) for each budget; `local_runs.py` or
`ray_tasks.py` simulate its runs in chunks, on the CPU (`cpu.py`) or a GPU (`gpu.py`); a `Tally`
counts each chunk; counts add up to `Results` (`results.py`), in a file if requested.
"""
