"""What tests with other libraries share: a library or a skip, data, learners that are compared."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from latebloomer import check_learner


def library(name, extra=None):
    """A library, or a skip of the whole file that says why it is not there."""
    try:
        return import_module(name)
    except OSError as error:  # it is there, but not what it needs of the system
        pytest.skip(f"{name} does not load here: {error}", allow_module_level=True)
    except ImportError:
        extra = extra or name.partition(".")[0]
        said = Path(sys.prefix) / "not-installed.txt"  # what `make test-integrations` found out
        lines = said.read_text().splitlines() if said.exists() else []
        why = next((line for line in lines if line.startswith(f"{extra}: ")), None)
        reason = why or f"{extra} is not installed"
        pytest.skip(reason, allow_module_level=True)


def two_classes(rows=300, columns=6):
    """Rows of two classes that are not easily told apart: (X, y) to train on, (X, y) held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows) > 0).astype(np.int64)
    cut = rows * 2 // 3
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def refuses(error, said, make, *given, **more):
    """A call raises this error, with these words if any are given."""
    with pytest.raises(error, match=said or None):
        make(*given, **more)


def is_exact(build, pulls=2):
    """A learner that is saved and restored is the same bit for bit."""
    check = check_learner(build, pulls=pulls)
    assert check.saves and check.exact, str(check)


def same_weights(one, other):
    """Two models of PyTorch or Keras have the same weights bit for bit."""
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(np.array_equal(mine.cpu(), its.cpu()) for mine, its in pairs)
