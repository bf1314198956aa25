"""Noise of one's own: a kernel or a table of residuals, the same on every target."""

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from latebloomer import Problem, trajectory
from latebloomer.core.kernel import kernel
from latebloomer.core.random import uniform
from latebloomer.errors import ContractError, ResultsError, SettingError
from latebloomer.problems import Gaussian, Noise, Residuals, paper_a
from tests.helpers.simulations import quiet, under_the_simulator


@dataclass(frozen=True)
class Laplace(Noise):
    """Double exponential noise."""

    size: float

    @kernel
    def reward(self, mean, seed, run, arm, pull):
        u = uniform(seed, run, arm, pull) - 0.5
        return mean - math.copysign(self.size, u) * math.log(1.0 - 2.0 * abs(u))


MEASURED = Residuals(np.random.default_rng(0).normal(0, 0.1, (5, 50)))
OWN = [Laplace(0.1), MEASURED, Residuals([-0.1, 0.3, -0.2])]
every_noise = pytest.mark.parametrize("noise", OWN, ids=lambda noise: type(noise).__name__)


def setting(noise):
    return Problem(paper_a().curves, noise=noise, label="own")


@every_noise
def test_plain_and_compiled_code_draw_the_same_rewards(noise):
    policies = ["r-ucbe", "r-sr", "prob-1"]
    cpu, plain = (
        quiet(setting(noise), policies, 60, 5, target=target) for target in ("cpu", "python")
    )
    assert cpu.as_document()["cells"] == plain.as_document()["cells"]
    run = trajectory(setting(noise), "r-sr", 60, seed=4, run=2)
    of_arm = {arm: 0 for arm in range(5)}
    for arm, reward in zip(run.arms.tolist(), run.rewards.tolist(), strict=True):
        of_arm[arm] += 1
        assert setting(noise).draw(arm, of_arm[arm], seed=4, run=2) == reward


def test_the_gpu_draws_them_too_under_the_simulator():
    code = "from tests.simulation import test_own_noise as t; t.compare_targets()"
    assert under_the_simulator(code) == [["r-ucbe", True], ["foresight", True], ["asha", True]] * 2


def compare_targets():
    found = []
    for noise in OWN[:2]:
        gpu, plain = (
            quiet(setting(noise), ["r-ucbe", "foresight", "asha"], 60, 3, target=target)
            for target in ("gpu", "python")
        )
        both = zip(gpu.cells, plain.cells, strict=True)
        found += [[one.policy, one == other] for one, other in both]
    print(json.dumps(found))


def drawn(noise, count=20_000):
    flat = Problem(np.tile([[0.5], [0.5]], 2), noise=noise)
    return np.array([flat.draw(1, 2, run=run) for run in range(count)])


def test_rewards_have_the_law_of_the_kernel():
    assert stats.kstest(drawn(Laplace(0.3)), stats.laplace(0.5, 0.3).cdf).pvalue > 1e-6


def test_each_residual_of_the_arm_is_as_likely():
    noise = Residuals([[0.0, 0.0, 0.0], [0.1, 0.2, 0.6]])  # whose mean .3 is subtracted
    values, counts = np.unique(drawn(noise), return_counts=True)
    assert values == pytest.approx([0.3, 0.4, 0.8])
    assert stats.chisquare(counts).pvalue > 1e-6
    assert noise.level(2) == pytest.approx(0.25)


def test_results_of_other_residuals_are_not_merged():
    one, other = (quiet(setting(noise), "rr", 20, 2) for noise in (MEASURED, Residuals([0, 1])))
    with pytest.raises(
        ResultsError, match=r"noise is 'Residuals.5 arms with 50 values each, sha2"
    ):
        one + other


class Bare(Noise):
    @kernel
    def reward(self, mean, seed, run, arm, pull):
        return mean


@dataclass(frozen=True)
class Lost(Noise):
    @kernel
    def reward(self, mean, seed, run, arm, pull):
        return mean + self.size


@dataclass(frozen=True)
class Endless(Noise):
    @kernel
    def reward(self, mean, seed, run, arm, pull):
        return mean + math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: setting(Bare()), "class Bare must be a dataclass: put @dataclass"),
        (lambda: setting(Lost()), "Lost.reward reads self.size, which is not a numeric field"),
        (lambda: setting(Endless()), "Endless.reward=inf, but Endless.reward must be a finite"),
        (lambda: setting(Gaussian), "must be a Noise, for example Gaussian"),
        (lambda: setting("loud"), "noise='loud' must be a Noise, for example"),
        (
            lambda: setting(Residuals([[0.1, -0.1]] * 4)),
            "has rows for 4 arms, but the problem has",
        ),
        (lambda: Residuals([0.1]), "at least 2 finite residuals"),
        (lambda: Residuals([0.1, math.nan]), "at least 2 finite residuals"),
        (lambda: Residuals([[0.1, 0.2], [0.3]]), "a row of equal length for each arm. Cut longer"),
    ],
)
def test_what_is_missing_is_said(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_a_class_without_a_kernel_says_so_when_it_is_defined():
    with pytest.raises(ContractError, match="Class Silent does not say how a reward is drawn"):
        type("Silent", (Noise,), {})
    with pytest.raises(ContractError, match=r"Plain\.reward is a plain method. Put @kernel"):
        type("Plain", (Noise,), {"reward": lambda self, mean, seed, run, arm, pull: mean})
    with pytest.raises(ContractError, match=r"Few\.reward takes 3 parameters, but .* with six"):
        type("Few", (Noise,), {"reward": kernel(lambda self, mean, seed: mean)})


SCRIPT = """
from dataclasses import dataclass
from latebloomer import Problem, simulate
from latebloomer.core.kernel import kernel
from latebloomer.problems import Noise, paper_a

@dataclass(frozen=True)
class Shifted(Noise):
    by: float

    @kernel
    def reward(self, mean, seed, run, arm, pull):
        return mean + self.by

def run():
    simulate(Problem(paper_a().curves, noise=Shifted(0.1)), ["rr", "asha"], 60, 2)
"""


@pytest.mark.slow
def test_a_process_without_the_class_reads_what_another_has_compiled(tmp_path):
    (tmp_path / "with_noise.py").write_text(SCRIPT)
    plain = 'from latebloomer import simulate; simulate("paper-a", ["rr", "asha"], 60, 2)'
    paths = os.environ.get("PYTHONPATH", "")
    noisy = "import with_noise; with_noise.run()"
    for code, path in ((noisy, f"{tmp_path}{os.pathsep}{paths}"), (plain, paths)):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
        command = [sys.executable, "-P", "-c", code]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
