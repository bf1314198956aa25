"""Simulations on Ray: the same bits, whoever dies meanwhile."""

import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from typer.testing import CliRunner

from latebloomer import simulate
from latebloomer.cli import app
from latebloomer.cluster import Cluster
from latebloomer.core.kernel import kernel
from latebloomer.errors import (
    BudgetError,
    ClusterError,
    Interrupted,
    MissingExtra,
    SettingError,
)
from latebloomer.policies.base import Policy
from latebloomer.simulation import ray_tasks as remote
from latebloomer.simulation.experiment import Experiment
from tests.helpers.simulations import content

pytest.importorskip("ray")
pytestmark = pytest.mark.ray

PULLS = ["r-ucbe:exploration=20,noise=0.05", "r-sr", "sh:judge=window"]
SUMS = ["r-sr", "sh:judge=window"]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One Ray with two CPUs for all of these tests: it takes seconds to start."""
    with Cluster(cores=2) as started:
        pickle, here = started.ray.cloudpickle, sys.modules[__name__]
        pickle.register_pickle_by_value(here)  # workers cannot import a test
        yield started
        pickle.unregister_pickle_by_value(here)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.json"


def quiet(policies=PULLS, budgets=(60, 150), runs=100, **other):
    return simulate("paper-a:sigma=0.1", policies, budgets, runs, progress=False, **other)


def on_ray(*args, **other):
    return quiet(*args, engine="ray", **other)


@dataclass(frozen=True)
class Trouble(Policy):
    """Round robin that does something else the first `times` times it is planned by a worker."""

    name = "trouble"
    folder: str = ""
    what: str = ""
    times: int = 0
    driver: int = 0
    thing: Any = None

    def levels(self, arms, budget, horizon):
        if os.getpid() != self.driver and self._is_time():
            self._act()
        return [(arms, budget // arms)]

    @kernel
    def rating(self, ledger, i, horizon):
        return ledger.last[i]

    def _is_time(self):
        for number in range(self.times):
            try:
                Path(self.folder, f"{self.what}-{number}").touch(exist_ok=False)
                return True
            except FileExistsError:
                continue
        return False

    def _act(self):
        if self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "interrupt":
            os.kill(self.driver, signal.SIGINT)
        if self.what == "raise":
            raise BudgetError("of my own")


def trouble(tmp_path, what, times=1):
    return Trouble(str(tmp_path), what, times, os.getpid())


def plainly(policy, run=quiet, **other):
    """20 runs in tasks of 2, in plain Python."""
    return run(["r-sr", policy], 60, 20, target="python", method="pulls", chunk=2, **other)


@pytest.mark.parametrize(
    ("policies", "runs", "method", "how"),
    [(PULLS, 100, "pulls", {"chunk": 7}), (PULLS, 100, "pulls", {"chunk": 33}),
     (PULLS, 100, "pulls", {}), (SUMS, 3000, "sums", {"chunk": 777}),
     (SUMS, 3000, "sums", {"threads": 1})],
)  # fmt: skip
def test_ray_gives_the_bits_of_one_machine(policies, runs, method, how):
    whole = content(quiet(policies, runs=runs, method=method))
    assert content(on_ray(policies, runs=runs, method=method, **how)) == whole


def test_what_is_all_there_needs_no_ray(out, monkeypatch):
    whole = content(quiet(out=out))
    monkeypatch.setattr(Cluster, "open", None)
    assert content(on_ray(out=out)) == whole


MAIN = """
import sys
from dataclasses import dataclass
from latebloomer import simulate
from latebloomer.core.kernel import kernel
from latebloomer.policies.base import Policy

@dataclass(frozen=True)
class Mine(Policy):
    name = "mine"
    share: float = 0.5

    def levels(self, arms, budget, horizon):
        return [(arms, budget // arms)]

    @kernel
    def rating(self, ledger, i, horizon):
        return self.share * ledger.last[i]

if __name__ == "__main__":
    simulate("paper-a", Mine(), 60, 20, progress=False, engine="ray", address=sys.argv[1],
             method="pulls", threads=1, out=sys.argv[2])
    simulate("paper-a", Mine(), 60, 20, progress=False, method="pulls", target="python",
             out=sys.argv[3])
"""


def address_of(cluster):
    return cluster.ray.get_runtime_context().gcs_address


def test_a_policy_of_the_program_itself_is_sent_along(cluster, tmp_path):
    (tmp_path / "script.py").write_text(MAIN)
    words = [sys.executable, "script.py", address_of(cluster), "ray.json", "local.json"]
    subprocess.run(words, cwd=tmp_path, check=True)
    there, here = (json.loads((tmp_path / file).read_text()) for file in words[-2:])
    assert (there.pop("targets"), here.pop("targets")) == (["cpu"], ["python"])  # who compiles
    assert there == here


def test_a_task_whose_worker_is_killed_is_played_again(tmp_path):
    policy = trouble(tmp_path, "die")
    assert content(plainly(policy, on_ray)) == content(plainly(policy))
    assert Path(tmp_path, "die-0").exists()


def test_a_worker_that_always_dies_is_an_error_and_the_rest_is_kept(tmp_path, out, monkeypatch):
    monkeypatch.setattr(remote, "RETRIES", 0)
    policy = trouble(tmp_path, "die", times=100)
    on_ray(["r-sr"], 60, 20, target="python", method="pulls", out=out)
    before = out.read_bytes()
    with pytest.raises(ClusterError, match=r"runs \d+ to \d+ at budget 60 died 1 times"):
        plainly(policy, on_ray, threads=1, out=out)  # one task at a time dies
    assert out.read_bytes() == before


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_came_in_and_the_file_is_continued(out, tmp_path):
    policy = trouble(tmp_path, "interrupt")
    with pytest.raises(Interrupted) as stopped:
        plainly(policy, on_ray, out=out)
    some = stopped.value.results
    assert content(some) == out.read_bytes()
    assert sum(cell.runs for cell in some.cells) < 40
    whole = content(plainly(policy, on_ray, out=out))
    assert whole == content(plainly(policy)) == out.read_bytes()


def test_an_exception_of_a_policy_is_raised_as_it_is_here(tmp_path):
    with pytest.raises(BudgetError, match=r"^of my own$"):
        plainly(trouble(tmp_path, "raise"), on_ray)


def test_a_policy_whose_module_is_not_on_the_node_is_said(tmp_path, monkeypatch):
    text = f"from {__name__} import Trouble\nclass Elsewhere(Trouble):\n    name = 'far'"
    (tmp_path / "module_of_mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("module_of_mine")
    with pytest.raises(ClusterError, match=r"No module named 'module_of_mine'.*on every node"):
        plainly(module.Elsewhere(), on_ray)


def test_what_ray_cannot_do_is_said(monkeypatch):
    with pytest.raises(SettingError, match=r"trouble:thing=.* cannot be sent to other processes"):
        on_ray([Trouble(thing=Lock())])

    with pytest.raises(ClusterError, match=r"but 0\.0 was sent\. Install the same version"):
        remote.play_range(None, 0, 1, "0.0")  # on a node that joins later
    with pytest.raises(ClusterError, match="asks for 1 CPU, 1 GPU, but no node"):
        on_ray(method="pulls", target="gpu")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"need ray: pip install .*\[ray\]'"):
        on_ray()


def test_the_command_runs_on_ray_and_goes_on_with_a_file(cluster, out):
    words = ["simulate", "--problem", "paper-a:sigma=0.1", "--policy", ",".join(PULLS),
             "--budget", "60,150", "--engine", "ray", "--address", address_of(cluster),
             "--out", str(out), "--runs"]  # fmt: skip
    for runs in ("40", "100"):
        ran = CliRunner().invoke(app, [*words, runs])
        assert ran.exit_code == 0, ran.output
    assert out.read_bytes() == content(quiet())


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_tasks_take_seconds_and_the_last_ones_are_short(cores):
    sizes = cut(cores, pulls_per_second=1e7, seconds=1000.0)
    assert sizes[0] == remote.FIRST * 2  # the speed was guessed too high by two
    assert max(sizes) == pytest.approx(remote.SECONDS, rel=0.01)
    assert sizes[-2] == pytest.approx(remote.SHORTEST, rel=0.01)
    assert sum(sizes) == pytest.approx(1000.0)


def cut(cores, pulls_per_second, seconds):
    """The seconds of the tasks of an experiment if all workers are as fast as given."""
    from types import SimpleNamespace as Thing

    queue = remote.TaskQueue.__new__(remote.TaskQueue)
    last = int(seconds * pulls_per_second / 100)
    made = Experiment({"one": None}, None, None, 100, 100, 0, last=last)
    queue._cores, queue._counting = cores, 0.0
    queue._unsent, queue._pulls_per_second = made.cost, None
    queue._ray = Thing(put=lambda thing: thing)
    sizes = []
    for _, part in queue._tasks([made]):
        sizes.append(part.cost / pulls_per_second)
        queue._pulls_per_second = pulls_per_second
    return sizes
