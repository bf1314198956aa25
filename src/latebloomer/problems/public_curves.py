"""Public curves, which are downloaded on request and checked.

Public curves are stored only if their checksum is right. ``imdb`` has the paper's seven curves.
``lcdb`` is LCDB 1.0, real runs of learners on growing training sets: the package `lcdb` 0.1.0 on
PyPI (Mohr et al. 2022, MIT license) holds the validation accuracy of about 20 learners on 248 data
sets of OpenML, for up to 125 splits each. The set `lcdb10` keeps the data sets whose largest
training set has 1,000 rows and on which five learners have ten complete runs.
"""

import csv
import hashlib
import io
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from latebloomer._util.atomic_files import File, make_folder, write_file
from latebloomer._util.text import one_line
from latebloomer.errors import CurveError
from latebloomer.problems.curves import Floats
from latebloomer.problems.problem import Problem
from latebloomer.problems.recorded import load

DATA = "LATEBLOOMER_DATA"
IMDB_FILE = Path("reference", "imdb_curves.npz")
# Checksum of the 7 x 50,000 little-endian doubles, arm by arm in the order of the file.
IMDB_SHA256 = "c5297b9bff416bbdb68b9846818b4bba42e52956aec378078fd0f6ce4480b2a8"
# The paper's seven curves are in the repository of its predecessor, under the MIT license.
IMDB_SOURCE = (
    "https://raw.githubusercontent.com/albertometelli/stochastic-rising-bandits/"
    "2b49e82e734e64afe554befc95dfaf7d8e9cae41/data/learning curves/npy/"
)
IMDB_FILES = {
    "NN112": "NN: (1, 1, 2)_avg.npy",
    "NN1": "NN: (1,)_avg.npy",
    "NN2": "NN: (2,)_avg.npy",
    "NN22": "NN: (2, 2)_avg.npy",
    "NN222": "NN: (2, 2, 2)_avg.npy",
    "OGD": "OGD beta = 0.1_avg.npy",
    "LR": "Logistic Regression alpha = 0.003_avg.npy",
}
SECONDS = 60  # time-out of a download


def data_path(path: Path, purpose: str, advice: str) -> Path:
    """Return a path in the folder of LATEBLOOMER_DATA; raise an error with `advice` if missing."""
    folder = os.environ.get(DATA)
    file = Path(folder or "", path)
    if folder and file.exists():
        return file
    missing = f"there is no {file}" if folder else f"{DATA} is not set"
    raise CurveError(f"{purpose} needs {path} in the folder of {DATA}, but {missing}: {advice}")


def imdb() -> Problem:
    """Return seven online learners on IMDB reviews, with 50,000 recorded accuracies each.

    [Mussi24, App. H].

    Each value is the mean of a right-or-wrong outcome over 1000 runs, so the curves are neither
    monotone nor concave from step to step. Rewards are the recorded values, as in the paper's
    Table 2. With `Bernoulli` noise they are single outcomes, as of a learner that is trained live.
    """
    advice = (
        "type `latebloomer download imdb FOLDER`, which fetches it from the authors' repository "
        f"({IMDB_SOURCE}), and set {DATA}=FOLDER"
    )
    file = data_path(IMDB_FILE, "the problem 'imdb'", advice)
    recorded = load(file)
    if digest_of(recorded.curves) != IMDB_SHA256:
        raise CurveError(f"{file}: these are not the paper's curves, by the sha256 of the values")
    return Problem(recorded.curves, None, recorded.names, "imdb")


def digest_of(curves: Floats) -> str:
    """Return the sha256 of the values of curves, as little-endian doubles, arm by arm."""
    return hashlib.sha256(curves.astype("<f8").tobytes()).hexdigest()


def download_imdb(folder: File, source: str = IMDB_SOURCE) -> Path:
    """Download the curves of the problem `imdb` into `folder`; return their file.

    If the sha256 of their values is not the expected one, nothing is written. Set
    LATEBLOOMER_DATA to `folder` to use them.
    """
    curves = {name: _fetch(source, file) for name, file in IMDB_FILES.items()}
    digest = digest_of(np.array(list(curves.values())))
    if digest != IMDB_SHA256:
        raise CurveError(
            f"the files from {source} are not the paper's curves: the sha256 of their values is "
            f"{digest}, not {IMDB_SHA256}; nothing was written"
        )
    return write_whole(Path(folder) / IMDB_FILE, {**curves, "order": np.array(list(curves))})


def write_whole(file: Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays into an .npz file that is complete or does not exist."""
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    make_folder(file.parent)
    return write_file(file, data.getvalue())


def _fetch(source: str, name: str) -> Floats:
    from urllib.parse import quote
    from urllib.request import urlopen  # its import takes long

    address = source + name
    try:
        with urlopen(quote(address, safe=":/"), timeout=SECONDS) as answer:
            values = np.load(io.BytesIO(answer.read()), allow_pickle=False)
    except (OSError, ValueError) as error:
        raise CurveError(
            f"{address} could not be read ({error}): check the connection and try again"
        ) from error
    return np.asarray(values, dtype=np.float64).ravel()


# --- LCDB ---

LCDB, LCDB_MEGABYTES = "lcdb==0.1.0", 68
LCDB_ARCHIVE, LCDB_TABLE = "lcdb-0.1.0.tar.gz", "lcdb-0.1.0/lcdb/database-accuracy.csv"
LCDB_SHA256 = "450ea69b249866298653f718d66a825e3d19a4024dd4ff140b89f2e04d4777ae"
LCDB_FILE = Path("data", "lcdb10", "lcdb10.npz")

COLUMNS = ("openmlid", "learner", "outer_seed", "inner_seed",
           "size_train", "score_valid", "traintime")  # fmt: skip
FEWEST_ROWS, FEWEST_LEARNERS, RUNS = 1000, 5, 10
WHOLE = 0.8  # share of a data set's sizes, with the largest one, that a complete run must have

# By learner and (outer, inner) seed: a flat list of size, accuracy and seconds.
Runs: TypeAlias = dict[str, dict[tuple[int, int], Any]]


def download_lcdb(
    folder: File, fetch: Callable[[Path], Path] | None = None, sha256: str = LCDB_SHA256
) -> Path:
    """Download LCDB 1.0 (68 MB) and write the set `lcdb10` into `folder`; return its file.

    If the sha256 of the package is not the expected one, nothing is written. Set
    LATEBLOOMER_DATA to `folder` to use the set.
    """
    import tarfile
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        package = (fetch or fetch_with_pip)(Path(place))
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        if digest != sha256:
            raise CurveError(
                f"the downloaded file is not {LCDB}: its sha256 is {digest}, not {sha256}; "
                "nothing was written"
            )
        with tarfile.open(package) as archive:
            table: Any = archive.extractfile(LCDB_TABLE)
            arrays = made_smaller(io.TextIOWrapper(table, encoding="utf-8"))
    return write_whole(Path(folder) / LCDB_FILE, arrays)


def fetch_with_pip(place: Path) -> Path:
    """Download the package from PyPI; pip runs none of its code unless its sha256 is right."""
    import subprocess

    wanted = place / "wanted.txt"
    wanted.write_text(f"{LCDB} --hash=sha256:{LCDB_SHA256}\n", encoding="utf-8")
    words = [
        "download",
        "--no-deps",
        "--require-hashes",
        "--quiet",
        "--disable-pip-version-check",
        "--dest",
        str(place),
        "--requirement",
        str(wanted),
    ]
    ran = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    if ran.returncode != 0:
        reason = one_line(ran.stderr.strip().rpartition("\n")[2])
        raise CurveError(f"pip could not fetch {LCDB} ({reason}): check the connection and repeat")
    return place / LCDB_ARCHIVE


def made_smaller(lines: Iterable[str]) -> dict[str, Any]:
    """Return the arrays of `lcdb10.npz`, from the package's table of accuracies.

    For each data set `d`: ``d|learners``; ``d|rows``, the sizes of the training set;
    ``d|accuracy`` (learners, 10 runs, sizes) in ten-thousandths; ``d|seconds`` (learners, sizes).
    """
    arrays: dict[str, Any] = {}
    recorded = _recorded(lines)
    for data_set in sorted(recorded):
        rows, learners = whole_runs(recorded[data_set])
        if rows[-1] >= FEWEST_ROWS and len(learners) >= FEWEST_LEARNERS:
            accuracy = np.array([runs[:RUNS, 0] for runs in learners.values()])
            arrays[f"{data_set}|learners"] = np.array([*learners])
            arrays[f"{data_set}|rows"] = rows.astype(np.int32)
            arrays[f"{data_set}|accuracy"] = np.round(10_000 * accuracy).astype(np.uint16)
            seconds = np.array([runs[:, 1].mean(axis=0) for runs in learners.values()])
            arrays[f"{data_set}|seconds"] = seconds.astype(np.float32)
    return arrays


def _recorded(lines: Iterable[str]) -> dict[int, Runs]:
    table = csv.reader(lines)
    header = next(table)
    places = [header.index(name) for name in COLUMNS]
    data_sets: dict[int, Runs] = {}
    for row in table:
        data_set, learner, outer, inner, *numbers = (row[place] for place in places)
        runs = data_sets.setdefault(int(data_set), {}).setdefault(learner, {})
        runs.setdefault((int(outer), int(inner)), array("d")).extend(map(float, numbers))
    return data_sets


def whole_runs(recorded: Runs) -> tuple[Floats, dict[str, Floats]]:
    """Return the sizes of a data set, and the complete runs of each learner (runs, 2, sizes).

    The second axis is accuracy and seconds. Sizes that a run lacks are interpolated.
    """
    tables = {
        learner: [np.reshape(runs[seeds], (-1, 3)) for seeds in sorted(runs)]
        for learner, runs in sorted(recorded.items())
    }
    rows = np.unique(np.concatenate([run[:, 0] for runs in tables.values() for run in runs]))
    whole = {learner: [*_whole(runs, rows)] for learner, runs in tables.items()}
    return rows, {name: np.array(runs) for name, runs in whole.items() if len(runs) >= RUNS}


def _whole(runs: list[Floats], rows: Floats) -> Iterator[list[Floats]]:
    for run in runs:
        sizes, *values = run[np.argsort(run[:, 0])].T
        if len(sizes) >= WHOLE * len(rows) and sizes[-1] == rows[-1]:
            yield [np.interp(rows, sizes, value) for value in values]
