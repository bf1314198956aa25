"""Fixtures and settings of the whole suite."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

# Compiled code makes the first example slow, and a slow machine is not a failure.
settings.register_profile(
    "latebloomer", deadline=None, derandomize="LATEBLOOMER_SEED" not in os.environ
)
settings.load_profile("latebloomer")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed 0 unless LATEBLOOMER_SEED says otherwise; a failure shows it among its properties."""
    value = int(os.environ.get("LATEBLOOMER_SEED", "0"))
    request.node.user_properties.append(("seed", value))
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where the tests were started with SIGINT ignored (nohup)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def ignored_ctrl_c() -> Iterator[None]:
    """SIGINT ignored, as a shell without job control starts what stands before an `&`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)
