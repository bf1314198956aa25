"""Kill actors, nodes and drivers of a race on Ray at random moments: it stays the same race."""

import json
import os
import subprocess
import sys

import pytest

from tests.helpers import ray_faults
from tests.helpers.ray_faults import KINDS

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(sys.platform != "linux", reason="victims look into /proc"),
]


@pytest.fixture(scope="module")
def storms(tmp_path_factory):
    """What became of a race per kind of death, all on one cluster."""
    folder, seed = tmp_path_factory.mktemp("storms"), os.environ.get("LATEBLOOMER_SEED", "0")
    words = [sys.executable, "-m", ray_faults.__name__, "tests", folder, seed]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-5000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_race_survives(kind, storms):
    """It has the pulls, each once, the scores and the verdict of one that nothing disturbs."""
    assert storms[kind] == {"kills": KINDS[kind], "lost": 0, "double": 0, "different": 0}
