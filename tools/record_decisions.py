"""Writes what `tests/recordings` compares with: `python -m tools.record_decisions [--all]`.

Records what is new, such as an added policy. With `--all` everything is recorded again: only for a
change that is meant to change decisions, and the commit says which ones and why.
"""

import json
import sys

from tests.helpers.recorded_decisions import FILE, names, record

known = {} if "--all" in sys.argv else json.loads(FILE.read_text())
kept = {name: known[name] if name in known else record(name) for name in names()}
rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in kept.items()]
FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
print(f"{len(rows)} recordings in {FILE}")
