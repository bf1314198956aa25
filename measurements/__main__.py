"""What sessions, simulations and races cost on this machine: `make measure`.

Each other file of this folder measures one thing more, and says how it is called.
"""

import runpy

for part in ("cpu_table", "session", "simulator", "race_ray", "ray_simulation"):
    print(f"\n=== {part} ===", flush=True)
    runpy.run_module(f"measurements.{part}", run_name="__main__")
