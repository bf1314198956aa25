"""Make docs/results/policies again: `python -m measurements.policies [NAME ...]`.

Each NAME is a folder with bench.csv and bench.png, as `latebloomer bench --out` writes them. Only
`tables` and `made` need no recorded curves in LATEBLOOMER_DATA; `lcdb10` needs those that
`latebloomer download lcdb` fetches.
"""

import sys
from pathlib import Path
from typing import Any

from latebloomer.bench import COMPARED, bench
from latebloomer.bench.benchmark import TIMED
from latebloomer.bench.costs import PULLS, SECONDS

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "policies"
COMMON = (*COMPARED, "adaptive-rejects", "r-ucbe")
RUNS: dict[str, list[dict[str, Any]]] = {
    "tables": [
        {"where": ["tables"], "policies": [*TIMED, "foresight"], "units": [SECONDS]},
        {"where": ["tables"], "policies": COMMON, "units": [PULLS]},
    ],
    "made": [{"where": ["random", "paper"], "policies": COMMON, "units": [PULLS]}],
    "lcdb10": [
        {"where": ["lcdb10"], "policies": TIMED, "units": [SECONDS], "draws": 2},
        {"where": ["lcdb10"], "policies": COMMON, "units": [PULLS]},
    ],
    "public": [{"where": ["public"], "policies": COMMON, "units": [PULLS]}],
    "small": [
        {"where": ["public"], "policies": COMMON, "units": [PULLS], "budgets": [0.5, 1.0]},
    ],
    "many": [
        {"where": ["taskset", "yahpo"], "policies": COMMON, "units": [PULLS],
         "arms": [16, 32, 64, 128], "budgets": [1.0, 2.0, 4.0, 8.0, 16.0], "draws": 4},
    ],
}  # fmt: skip


def main() -> None:
    """Run what is named, or all."""
    for name in sys.argv[1:] or RUNS:
        reports = [bench(**settings) for settings in RUNS[name]]
        whole = reports[0]
        for other in reports[1:]:
            whole.lines.extend(other.lines)
        for path in whole.write(FOLDER / name)[1:]:
            print(path, flush=True)
        (FOLDER / name / "bench.md").unlink()


if __name__ == "__main__":
    main()
