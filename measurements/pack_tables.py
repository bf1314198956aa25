"""Pack recorded tables into the package: `python -m measurements.pack_tables NAME=FILE ...`.

FILE is one that `measurements.record_tables` has written, or another of that form. NAME is its
collection in the package: `tables` or `fresh`. Collections that are not named stay as they are.
"""

import sys

import numpy as np

from latebloomer.bench.recorded_tables import FILE, packed_collection


def main() -> None:
    """Write the package's file, and print its size."""
    arrays = dict(np.load(FILE)) if FILE.is_file() else {}
    for word in sys.argv[1:]:
        name, _, file = word.partition("=")
        with np.load(file) as recorded:
            arrays |= packed_collection(name, recorded)
    np.savez_compressed(FILE, **arrays)
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
