"""`make fuzz`: a million random calls on sessions and journals; only our own errors come out.

    python -m tools.fuzz [--calls 1000000] [--journals 10000] [--seed 0]

Sessions are asked, told, replanned, extended, stopped, explained, pickled and replayed with
arguments of all kinds, sensible and not. Journals have bytes flipped, cut off, swapped or
overwritten, and are then listed, read, repaired and resumed. What must hold: a refused call leaves
the session as it was, no more is spent than the budget, a replay is equal, and a damaged journal
is refused or unharmed.
"""

import argparse

from tests.helpers.journal_fuzz import fuzz_journals
from tests.helpers.session_fuzz import fuzz_sessions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--journals", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    print("sessions:", fuzz_sessions(wanted.calls, wanted.seed), flush=True)
    print("journals:", fuzz_journals(wanted.journals, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
