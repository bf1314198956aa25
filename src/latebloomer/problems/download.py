"""Public recorded curves, fetched on request and kept only if their values are the right ones."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np

from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.errors import CurveError
from latebloomer.problems.curves import Floats
from latebloomer.problems.paper_settings import IMDB_FILE, IMDB_SHA256, digest_of

# The paper's seven curves stand in the repository of its predecessor, under the MIT licence.
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
SECONDS = 60  # to wait for an answer


def download_imdb(folder: str | os.PathLike[str], source: str = IMDB_SOURCE) -> Path:
    """Fetch the curves of the problem `imdb` into `folder`; the file they are in.

    The sha256 of their values must be the known one; else nothing is written. Set
    LATEBLOOMER_DATA to `folder` to use them.
    """
    curves = {name: _fetch(source, file) for name, file in IMDB_FILES.items()}
    digest = digest_of(np.array(list(curves.values())))
    if digest != IMDB_SHA256:
        raise CurveError(
            f"what came from {source} are not the paper's curves: the sha256 of their values is "
            f"{digest}, not {IMDB_SHA256}; nothing was written"
        )
    return write_whole(Path(folder) / IMDB_FILE, {**curves, "order": np.array(list(curves))})


def write_whole(file: Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays into an .npz that is there as a whole or not at all."""
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    make_folder(file.parent)
    return write_file(file, data.getvalue())


def _fetch(source: str, name: str) -> Floats:
    address = source + name
    try:
        with urlopen(quote(address, safe=":/"), timeout=SECONDS) as answer:
            values = np.load(io.BytesIO(answer.read()), allow_pickle=False)
    except (URLError, OSError, ValueError) as error:
        raise CurveError(
            f"{address} could not be read ({error}): check the connection and try again"
        ) from error
    return np.asarray(values, dtype=np.float64).ravel()
