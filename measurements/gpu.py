"""Pulls per second on a GPU, and whether it agrees with the CPU: `python -m measurements.gpu`."""

from __future__ import annotations

import argparse
import time

import numpy as np

from latebloomer.core.policy_moves import key
from latebloomer.policies.registry import make_policy
from latebloomer.problems import problem
from latebloomer.simulation.experiment import experiment_of
from latebloomer.simulation.gpu.gpu_kernels import cuda
from latebloomer.simulation.gpu.gpu_player import gpu_player
from latebloomer.simulation.players import compiled_player

POLICIES = (
    "r-ucbe:exploration=151.05,noise=0.01", "r-ucbe", "r-sr", "rr", "rr-sw", "sr", "prob-1", "etc",
    "ucb-e:exploration=18.5", "rest-sure", "sh", "sh:judge=window", "adaptive-rejects",
    "foresight",
)  # fmt: skip


def played(player, runs: int, arms: int):
    recommended, pulls = np.zeros(runs, np.int32), np.zeros((runs, arms), np.int32)
    start = time.perf_counter()
    player(0, recommended, pulls)
    return recommended, pulls, time.perf_counter() - start


def measure(name: str, budget: int, runs: int, checked: int) -> None:
    setting = problem("paper-a")
    made = experiment_of(setting, {name: make_policy(name)}, budget, None, key(0), "pulls", "gpu")
    policy = made.policies[name]
    gpu = gpu_player(made, policy)
    _, _, compiling = played(gpu, 1000, setting.arms)
    seconds = min(played(gpu, runs, setting.arms)[2] for _ in range(3))
    recommended, pulls, _ = played(gpu, checked, setting.arms)
    wanted, counted, _ = played(compiled_player(made, policy), checked, setting.arms)
    same, equal = np.mean(recommended == wanted), np.mean((pulls == counted).all(axis=1))
    rate = pulls.sum() / checked * runs / seconds
    print(
        f"{name:40} {rate / 1e9:7.2f} billion pulls/s ({seconds:.3f} s for {runs} runs, first "
        f"{compiling:.1f} s); of {checked} runs {same:.4%} recommend as the CPU does, "
        f"{equal:.4%} pull alike", flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("--budget", type=int, default=3200)
    words.add_argument("--runs", type=int, default=1_000_000)
    words.add_argument("--checked", type=int, default=20_000)
    words.add_argument("--policy", nargs="*", default=POLICIES)
    said = words.parse_args()
    print(cuda.get_current_device().name)
    for policy in said.policy:
        measure(policy, said.budget, said.runs, said.checked)
