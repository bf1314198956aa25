"""The five public sets of recorded curves, as the README of the data says they are made.

`LATEBLOOMER_DATA` names the folder that holds `data/`. What counts as a problem is fixed here, so
that two people who run the bench mean the same: seeds included.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from latebloomer.bench.curve_sets import Curves, Floats
from latebloomer.errors import CurveError
from latebloomer.problems.paper_settings import DATA

MISSING = 65535  # in the tables of LCDB 1.1
REACHED = 0.8  # share of learners that must reach an anchor
ANCHORS = 50  # fewest anchors of a data set that is used
SPLIT_SD = 5.0  # standard errors are over 25 splits
ROWS = 100  # pulls of a linear curve of LCDB
LEARNS = 0.65  # valid loss that a configuration of TaskSet must undercut
CROWD = 8  # arms of the problems made of groups of configurations
HORIZONS = (2000, 5000, 10_000, 20_000)  # online steps
SUBSETS = 25  # of the 29 learners, at each horizon
STEPS = 10  # online steps to a pull
SMOOTH = 101  # steps


def lcdb11_linear() -> Iterator[Curves]:
    """One pull is a hundredth of the largest training set."""
    for name, rows, acc, sd in _lcdb11():
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS
        means, sds = (np.array([np.interp(at, rows, row) for row in part]) for part in (acc, sd))
        yield Curves("lcdb11-linear", name, means, sds)


def lcdb11_geometric() -> Iterator[Curves]:
    """One pull is the next anchor: a training set larger by 2^(1/8)."""
    for name, _, acc, sd in _lcdb11():
        yield Curves("lcdb11-geometric", name, acc, sd)


def _lcdb11() -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Of each data set: its name, anchors, validation accuracy and its sd over single splits."""
    file = archive("lcdb11")
    acc, se = file["val_acc"], file["val_se"]
    for place, openml in enumerate(file["openml_ids"].tolist()):
        known = acc[place] != MISSING
        enough = np.flatnonzero(known.mean(axis=0) >= REACHED)
        if len(enough) == 0 or enough[-1] + 1 < ANCHORS:
            continue
        last = int(enough[-1])
        kept = known[:, last]
        rows = file["anchors"][: last + 1].astype(np.float64)
        parts = [_filled(rows, table[place, kept, : last + 1]) for table in (acc, se)]
        yield f"openml-{openml}", rows, parts[0], SPLIT_SD * parts[1]


def _filled(rows: Floats, table: Any) -> Floats:
    """Shares of one, with the anchors that were skipped interpolated."""
    known = table != MISSING
    return np.array(
        [
            np.interp(rows, rows[there], row[there] / 10_000)
            for row, there in zip(table, known, strict=True)
        ]
    )


def taskset() -> Iterator[Curves]:
    """Configurations that learn, in disjoint random groups of 8 for each task."""
    file = archive("taskset_imdb_rnn")
    rng = np.random.default_rng(0)
    for task, loss in zip(
        file["tasks"].tolist(), file["loss"][:, :, 1].astype(float), strict=True
    ):
        finite = np.isfinite(loss).all(axis=1)
        learns = finite & (np.where(finite[:, None], loss, np.inf).min(axis=1) < LEARNS)
        order = rng.permutation(np.flatnonzero(learns))
        for start in range(0, len(order) - CROWD + 1, CROWD):
            group = order[start : start + CROWD]
            yield Curves("taskset", f"{task}-{start // CROWD}", np.exp(-loss[group]))


def srb_imdb() -> Iterator[Curves]:
    """Random eights of 29 online learners; a pull is the mean of 10 right-or-wrong outcomes."""
    file = archive("srb_imdb_curves")
    rng = np.random.default_rng(0)
    level = smoothed(file["correct_of_1000"] / 1000)
    for horizon in HORIZONS:
        for subset in range(SUBSETS):
            arms = np.sort(rng.choice(len(level), CROWD, replace=False))
            name = f"{horizon}-{subset}"
            yield Curves("srb-imdb", name, by_pull(level[arms], horizon), outcomes=STEPS)


def smoothed(curves: Floats) -> Floats:
    """The mean over 101 steps around each, fewer at the ends."""
    kernel, ones = np.ones(SMOOTH), np.ones(curves.shape[1])
    counts = np.convolve(ones, kernel, "same")
    return np.array([np.convolve(curve, kernel, "same") for curve in curves]) / counts


def by_pull(curves: Floats, horizon: int) -> Floats:
    """The means over each 10 steps up to the horizon."""
    return curves[:, :horizon].reshape(len(curves), -1, STEPS).mean(axis=2)


def yahpo() -> Iterator[Curves]:
    """Consecutive eights of configurations for each task; surrogate output, a supplement."""
    file = archive("yahpo_lcbench_surrogate")
    for task, curves in zip(file["tasks"].tolist(), file["val_acc"].astype(float), strict=True):
        for start in range(0, len(curves), CROWD):
            yield Curves("yahpo", f"{task}-{start // CROWD}", curves[start : start + CROWD])


def archive(folder: str) -> dict[str, Any]:
    """The arrays of `data/<folder>/<folder>.npz`."""
    root = os.environ.get(DATA)
    if not root:
        raise CurveError(
            f"the set needs recorded curves, but {DATA} is not set: set it to the folder that "
            f"holds data/{folder}/{folder}.npz"
        )
    file = Path(root, "data", folder, f"{folder}.npz")
    if not file.is_file():
        raise CurveError(f"{DATA}={root}, but there is no {file}")
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
