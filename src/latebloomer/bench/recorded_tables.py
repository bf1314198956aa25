"""Learners recorded on data tables: scores and seconds of every pull, in a file of this package.

`recorded_tables.npz` holds two collections, and `recorded_tables.md` says where they come from:
``tables`` (53 public data sets) and ``fresh`` (26 data sets of scikit-learn and synthetic ones).
Each has scores on validation and on test rows (higher is better) and the processor seconds of
training and of scoring the validation rows, for each problem, split, learner and pull. All
learners of a split use the same rows, so their scores share the noise of the split.

The 53 problems are divided into two halves by a rule that uses only the name (`is_for_design`):
one half for the design of this library's races in seconds, and one half for reports.

To keep the file small, numbers are rounded, and differences between pulls are stored. Scores are
rounded to four decimals, and seconds to powers of 2^(1/16) (an error of at most 2.2 %).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latebloomer.bench.curves import Curves
from latebloomer.problems.curves import Floats

FILE = Path(__file__).with_name("recorded_tables.npz")
SCORES, SECONDS = ("valid", "test"), ("train_seconds", "score_seconds")
SCORE_STEPS = 10_000  # steps per score of 1
TIME_STEPS = 16  # steps per factor of two
SHORTEST = 1e-6  # times below this number of seconds are stored as 0
DESIGN, REPORT, FRESH = SETS = ("tables-design", "tables-report", "tables-fresh")


def is_for_design(problem: str) -> bool:
    """Return whether a problem is in the half for the design of races in seconds.

    >>> is_for_design("jb-abalone"), is_for_design("Ecdat-HI:whi")
    (False, True)
    """
    return int(sha256(problem.encode()).hexdigest(), 16) % 2 == 1


def recorded_tables(group: str) -> Iterator[Curves]:
    """Yield the problems of one of the `SETS`; a run is a split, and it has test scores."""
    kept = read_collection("fresh" if group == FRESH else "tables")
    for place, name in enumerate(kept.problems):
        if group in (FRESH, DESIGN if is_for_design(name) else REPORT):
            # (split, learner, pull) becomes (learner, split, pull)
            runs, test = (table[place].swapaxes(0, 1) for table in (kept.valid, kept.test))
            seconds = (kept.train_seconds + kept.score_seconds)[place].swapaxes(0, 1)
            yield Curves(group, name, runs.mean(axis=1), runs=runs, test=test, seconds=seconds)


TABLE_SETS = {group: partial(recorded_tables, group) for group in SETS}


class Collection(NamedTuple):
    """Scores and seconds (problem, split, learner, pull)."""

    problems: list[str]
    learners: list[str]
    valid: Floats
    test: Floats
    train_seconds: Floats
    score_seconds: Floats


def read_collection(name: str, file: Path = FILE) -> Collection:
    """Return one of the collections: ``tables`` or ``fresh``."""
    with np.load(file, allow_pickle=False) as kept:
        names = (kept[f"{name}|{what}"].tolist() for what in ("problems", "learners"))
        tables = (unpacked(kept[f"{name}|{what}"]) for what in (*SCORES, *SECONDS))
        valid, test, *logs = tables
        scores = (table / SCORE_STEPS for table in (valid, test))
        seconds = (SHORTEST * 2 ** (table / TIME_STEPS) for table in logs)
        return Collection(*names, *scores, *seconds)


def packed_collection(name: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays to store for a collection, from scores and seconds as floats."""
    content = {f"{name}|{what}": np.array(arrays[what]) for what in ("problems", "learners")}
    for what in SCORES:
        content[f"{name}|{what}"] = packed(np.rint(np.asarray(arrays[what], float) * SCORE_STEPS))
    for what in SECONDS:
        times = np.maximum(np.asarray(arrays[what], float), SHORTEST) / SHORTEST
        content[f"{name}|{what}"] = packed(np.rint(TIME_STEPS * np.log2(times)))
    return content


def packed(numbers: Any) -> Any:
    """Return differences along the last axis as two tables of bytes, which can be compressed well.

    A difference d is stored as 2 d, or as -2 d - 1 if it is negative.

    >>> packed(np.array([[3, 5, 4]])).tolist()
    [[[0, 0, 0]], [[6, 4, 1]]]
    """
    steps = np.diff(np.asarray(numbers).astype(np.int64), axis=-1, prepend=0)
    codes = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    return np.stack([codes >> 8, codes & 255]).astype(np.uint8)


def unpacked(table: Any) -> Any:
    """Return the numbers from the tables of `packed`.

    >>> unpacked(packed(np.array([[3, 5, 4]]))).tolist()
    [[3, 5, 4]]
    """
    high, low = table.astype(np.int64)
    codes = (high << 8) + low
    return np.where(codes % 2, -(codes + 1) // 2, codes // 2).cumsum(axis=-1)
