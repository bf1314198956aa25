"""Do scores of averaged weights predict the end of a training under a decaying learning rate?

    python -m measurements.ema_schedules train curves.npz [--steps 3000] [--configs 24]
    python -m measurements.ema_schedules race curves.npz

The first needs PyTorch and a GPU (minutes), the second latebloomer alone.

Task: count the blobs (1 to 10) in a noisy image of 32 x 32 pixels, drawn on the fly, so nothing is
downloaded and no image is seen twice. Small convolutional networks that differ in optimizer,
learning rate, weight decay, momentum and warm-up; two seeds each; the rate follows a cosine to 0,
or stays constant. All networks of a schedule train in one grouped convolution. The validation loss
is recorded at 100 points, for the weights as they are and for an exponential moving average with a
memory of 1 % of the training. `race` then runs the default policy on groups of eight
configurations and compares the rank loss of both kinds of scores; the truth is the last raw score.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

POINTS, BATCH, SIZE, CLASSES = 100, 128, 32, 10
MEMORY = 0.01  # of the training, for the moving average
WIDTHS = ((1, 24), (24, 48), (48, 64))
GROUP, BUDGETS, DRAWS = 8, (1, 2, 4), 200


def configurations(count: int) -> list[dict[str, float | str]]:
    """Return `count` recipes; learning rates cover both sides of the best one."""
    rng = np.random.default_rng(7)
    found: list[dict[str, float | str]] = []
    for k in range(count):
        adam = k % 2 == 0
        found.append(
            {
                "optimizer": "adamw" if adam else "sgd",
                "rate": float(10 ** rng.uniform(*((-3.7, -1.8) if adam else (-2.0, -0.2)))),
                "decay": float(10 ** rng.uniform(-4, -1.5)),
                "momentum": float(rng.choice([0.8, 0.9, 0.95])),
                "warmup": float(rng.choice([0.0, 0.02, 0.1])),
            }
        )
    return found


# --- training: all lanes side by side ---


def images(torch: Any, count: int, generator: Any) -> tuple[Any, Any]:
    """Return noisy images with 1 to 10 blobs, and their counts from 0."""
    device = generator.device
    label = torch.randint(0, CLASSES, (count,), generator=generator, device=device)
    shape = (count, CLASSES, 1, 1)
    x, y = (torch.rand(shape, generator=generator, device=device) * SIZE for _ in range(2))
    width = 0.8 + 1.4 * torch.rand(shape, generator=generator, device=device)
    height = 0.5 + torch.rand(shape, generator=generator, device=device)
    there = torch.arange(CLASSES, device=device)[None, :, None, None] <= label[:, None, None, None]
    axis = torch.arange(SIZE, device=device, dtype=torch.float32)
    squares = (axis[None, None, None, :] - x) ** 2 + (axis[None, None, :, None] - y) ** 2
    image = (height * torch.exp(-squares / (2 * width**2)) * there).sum(1)
    noise = torch.randn(image.shape, generator=generator, device=device)
    return (image + 0.3 * noise)[:, None], label


def weights(torch: Any, lanes: list[int], device: str) -> list[Any]:
    """Return stacked layers of all lanes; lane i starts from seed `lanes[i]`."""
    layers = []
    for depth, (fan_in, fan_out) in enumerate((*WIDTHS, (WIDTHS[-1][1], CLASSES))):
        shape = (fan_out, fan_in, 3, 3) if depth < len(WIDTHS) else (fan_out, fan_in)
        drawn = []
        for seed in lanes:
            generator = torch.Generator().manual_seed(1000 * seed + depth)
            scale = math.sqrt(2 / math.prod(shape[1:]))
            drawn.append(torch.randn(shape, generator=generator) * scale)
        layers += [torch.stack(drawn), torch.zeros(len(lanes), fan_out)]
    return [layer.to(device).requires_grad_() for layer in layers]


def losses(torch: Any, layers: list[Any], image: Any, label: Any) -> Any:
    """Return the cross-entropy of each lane; `image` and `label` have one set per lane."""
    lanes = len(layers[0])
    functional = torch.nn.functional
    x = image.transpose(0, 1).flatten(1, 2)  # (batch, lanes * channels, height, width)
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        x = functional.conv2d(x, weight.flatten(0, 1), bias.flatten(), 2, 1, groups=lanes)
        x = functional.relu(x)
    x = x.mean((2, 3)).view(len(x), lanes, -1).transpose(0, 1)
    logits = torch.baddbmm(layers[-1][:, None], x, layers[-2].transpose(1, 2))
    loss = functional.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction="none")
    return loss.view(lanes, -1).mean(1)


def rates(torch: Any, recipes: list[dict[str, Any]], schedule: str, share: float) -> Any:
    """Return the learning rate of each lane at a share of the training."""
    shape = 0.5 * (1 + math.cos(math.pi * share)) if schedule == "cos" else 1.0
    values = [r["rate"] * shape * min(1.0, (share + 1e-4) / (r["warmup"] + 1e-4)) for r in recipes]
    return torch.tensor(values, dtype=torch.float32)


def train(count: int, steps: int, schedule: str, device: str) -> np.ndarray:
    """Return validation losses (configuration, seed, kind, point); kind 0 is raw, 1 averaged."""
    import torch

    recipes = [recipe for recipe in configurations(count) for _ in range(2)]
    seeds = [seed for _ in range(count) for seed in range(2)]
    layers = weights(torch, [2 * (k // 2) + seed for k, seed in enumerate(seeds)], device)
    average = [layer.detach().clone() for layer in layers]
    first = [torch.zeros_like(layer) for layer in layers]
    second = [torch.zeros_like(layer) for layer in layers]
    adam = torch.tensor([r["optimizer"] == "adamw" for r in recipes], device=device)
    decay, beta = (
        torch.tensor([r[name] for r in recipes], device=device) for name in ("decay", "momentum")
    )
    streams = [torch.Generator(device).manual_seed(seed) for seed in range(2)]
    valid = images(torch, 2048, torch.Generator(device).manual_seed(99))
    pick = torch.tensor(seeds, device=device)
    found = np.zeros((len(recipes), 2, POINTS))
    for step in range(1, steps + 1):
        drawn = [images(torch, BATCH, stream) for stream in streams]
        image, label = (torch.stack(part)[pick] for part in zip(*drawn, strict=True))
        gradients = torch.autograd.grad(losses(torch, layers, image, label).sum(), layers)
        rate = rates(torch, recipes, schedule, (step - 1) / steps).to(device)
        keep = 1 - 1 / min(step, max(1.0, MEMORY * steps))
        with torch.no_grad():
            for k, (layer, gradient) in enumerate(zip(layers, gradients, strict=True)):
                lane = (-1, *(1,) * (layer.dim() - 1))
                b, r, use = beta.view(lane), rate.view(lane), adam.view(lane)
                first[k].copy_(b * first[k] + torch.where(use, 1 - b, 1.0) * gradient)
                second[k].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                scale = (second[k] / (1 - 0.999**step)).sqrt() + 1e-8
                move = torch.where(use, first[k] / (1 - b**step) / scale, first[k])
                layer.sub_(r * (move + decay.view(lane) * layer))
                average[k].lerp_(layer, 1 - keep)
        if step * POINTS % steps < POINTS:
            point = step * POINTS // steps - 1
            with torch.no_grad():
                for kind, chosen in enumerate((layers, average)):
                    parts = [
                        losses(
                            torch, chosen, x.expand(len(pick), *x.shape), y.expand(len(pick), -1)
                        )
                        for x, y in zip(valid[0].split(256), valid[1].split(256), strict=True)
                    ]
                    found[:, kind, point] = torch.stack(parts).mean(0).cpu().numpy()
    return found.reshape(count, 2, 2, POINTS)


# --- races on the recorded losses ---


def rank_losses(scores: np.ndarray, truth: np.ndarray, budget: float, rng: Any) -> float:
    """Return the share of a group that truly ends above the default policy's selection."""
    from latebloomer import Session

    session = Session("auto", len(scores), round(budget * POINTS), POINTS)
    while not session.over:
        arm = session.ask()
        session.tell(arm, float(scores[arm, session.pulls[arm]]))
    return float((truth > truth[session.best_arm]).mean())


def compare(losses_of: np.ndarray) -> dict[str, list[float]]:
    """Return rank losses by kind of score and budget, and the paired difference with its error."""
    rng = np.random.default_rng(0)
    finite = np.isfinite(losses_of).all((1, 2, 3)) & (losses_of[:, :, 0, -1] < 10).all(1)
    curves = -losses_of[finite]
    table = np.zeros((2, len(BUDGETS), DRAWS))
    for draw in range(DRAWS):
        group = rng.choice(len(curves), GROUP, replace=False)
        own = curves[group, rng.integers(2, size=GROUP)]
        for kind in range(2):
            for place, budget in enumerate(BUDGETS):
                table[kind, place, draw] = rank_losses(own[:, kind], own[:, 0, -1], budget, rng)
    gap = (table[1] - table[0]).mean(0)
    return {
        "configurations": [len(curves)],
        "raw": [float(x) for x in table[0].mean(1)] + [float(table[0].mean())],
        "averaged": [float(x) for x in table[1].mean(1)] + [float(table[1].mean())],
        "difference": [float(gap.mean()), float(gap.std() / math.sqrt(DRAWS))],
    }


def main() -> None:
    """Train, or race on what was trained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("train", "race"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--configs", type=int, default=24)
    wanted = parser.parse_args()
    if wanted.task == "train":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        found = {
            kind: train(wanted.configs, wanted.steps, kind, device) for kind in ("cos", "const")
        }
        np.savez_compressed(
            wanted.file, **found, recipes=json.dumps(configurations(wanted.configs))
        )
        print(
            {
                kind: np.sort(losses[:, :, 0, -1].mean(1)).round(3).tolist()
                for kind, losses in found.items()
            }
        )
    else:
        with np.load(wanted.file) as arrays:
            print(json.dumps({kind: compare(arrays[kind]) for kind in ("cos", "const")}, indent=1))


if __name__ == "__main__":
    main()
