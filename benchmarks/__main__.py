"""Measure everything that can be measured on this machine, part by part: `make bench`."""

import runpy

for part in ("cpu_table", "session", "simulator", "race_ray", "ray_simulation"):
    print(f"\n=== {part} ===", flush=True)
    runpy.run_module(f"benchmarks.{part}", run_name="__main__")
