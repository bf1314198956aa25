"""The seven learners of the IMDB experiment, trained live, compared with their recorded curves.

A run visits the reviews in random order, one per pull: it predicts first, is right or wrong (the
reward of the pull), then learns from the review. Features are counts of the 1000 commonest words.
All runs of a learner are trained together: arrays have one row per run.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from math import nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from latebloomer.paper import drawing
from latebloomer.paper.experiments import IMDB
from latebloomer.paper.workbench import Figure, Shown, Workbench, select
from latebloomer.problems.curves import Floats
from latebloomer.problems.public_curves import data_path
from latebloomer.simulation.local_runs import progress_bar
from latebloomer.simulation.results.plots import plain_ticks

FILE = Path("data", "imdb", "imdb_bow10k.npz")
SOURCE = (
    "the Large Movie Review Dataset of Maas et al. (ACL 2011), https://ai.stanford.edu/~amaas/"
    "data/sentiment/aclImdb_v1.tar.gz, and run `python -m latebloomer.paper.imdb_reviews "
    "aclImdb_v1.tar.gz FOLDER`, which makes it"
)
WORDS = 1000
CLIP = 1e-4  # minimum distance of predictions to 0 and 1
RATES = {"LR": 0.003, "OGD": 0.1}
LARGEST_WEIGHT = 2.0  # largest weight of OGD
HIDDEN = {"NN112": (1, 1, 2), "NN1": (1,), "NN2": (2,), "NN22": (2, 2), "NN222": (2, 2, 2)}
RATE, FIRST, SECOND, TINY, PENALTY = 0.001, 0.9, 0.999, 1e-8, 1e-4  # scikit-learn's defaults
STEPS = 30000  # steps of LR and OGD
# Steps of the networks: their runs differ much, so more and shorter runs are better.
NET_STEPS = 5000
BIN_STEPS = 500  # steps per bin in which curves are compared
EARLY = 500  # before this step, recorded and retrained curves differ by up to .02
MOST_TOGETHER = 100  # maximum runs trained together: more do not fit into the processor's cache


class Reviews(NamedTuple):
    """Counts of words, a row for each review, and 1 for a positive review."""

    counts: npt.NDArray[np.uint16]
    label: npt.NDArray[np.int64]


Predictions: TypeAlias = Iterator[tuple[Floats, Any]]  # predictions of each step, with the labels


def load_reviews() -> Reviews:
    """Read the word counts; if they are missing, raise an error that says how to get them."""
    file = data_path(FILE, "training live", f"get {SOURCE}")
    with np.load(file, allow_pickle=False) as archive:
        parts = {name: archive[name] for name in ("data", "indices", "indptr", "label")}
    common = parts["indices"] < WORDS
    review = np.repeat(np.arange(len(parts["label"])), np.diff(parts["indptr"]))
    counts = np.zeros((len(parts["label"]), WORDS), np.uint16)
    counts[review[common], parts["indices"][common]] = parts["data"][common]
    return Reviews(counts, (parts["label"] > 0).astype(np.int64))


def orders_of(reviews: Reviews, runs: range, steps: int) -> Any:
    """Return which reviews each run visits, step by step: an array (steps, runs)."""
    count = len(reviews.label)
    return np.array([np.random.default_rng(run).permutation(count)[:steps] for run in runs]).T


def train_linear(name: str, reviews: Reviews, runs: range, steps: int) -> Predictions:
    """Yield, for each step, the predictions of all runs of LR or OGD, and the labels.

    Weights start at 1/1000; w <- w - rate (p - y) x. LR has a constant rate, OGD rate / sqrt(t)
    and weights within +-2.
    """
    weights = np.full((len(runs), WORDS), 1.0 / WORDS)
    for t, at in enumerate(orders_of(reviews, runs, steps), start=1):
        x, y = reviews.counts[at].astype(float), reviews.label[at]
        total = np.clip((weights * x).sum(axis=1), -50.0, 50.0)
        p = np.clip(1.0 / (1.0 + np.exp(-total)), CLIP, 1.0 - CLIP)
        yield p, y
        rate = RATES[name] / sqrt(t) if name == "OGD" else RATES[name]
        weights -= (rate * (p - y))[:, None] * x
        if name == "OGD":
            np.clip(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT, out=weights)


def train_network(name: str, reviews: Reviews, runs: range, steps: int) -> Predictions:
    """Yield, for each step, the predictions of all runs of a small network, and the labels.

    The networks are scikit-learn's `MLPClassifier`, fitted review by review: ReLU layers, a
    logistic output, Adam at a constant rate and the L2 penalty of its defaults.
    """
    sizes = (WORDS, *HIDDEN[name], 1)
    drawn = [initial_weights(sizes, seed=run) for run in runs]
    theta = [np.array(part) for part in zip(*drawn, strict=True)]  # weights, intercepts, ...
    first, second = ([np.zeros_like(part) for part in theta] for _ in range(2))
    for t, at in enumerate(orders_of(reviews, runs, steps), start=1):
        y, inputs = reviews.label[at], [reviews.counts[at].astype(float)]
        for weights, intercepts in zip(theta[::2], theta[1::2], strict=True):
            total = (inputs[-1][:, None] @ weights)[:, 0] + intercepts
            inputs.append(np.maximum(total, 0.0))
        p = 1.0 / (1.0 + np.exp(-np.clip(total[:, 0], -500.0, 500.0)))
        yield (p if t > 1 else np.full(len(runs), 0.5)), y  # an unfitted network predicts .5
        rate = RATE * sqrt(1.0 - SECOND**t) / (1.0 - FIRST**t)
        slopes = gradients(theta, inputs, (p - y)[:, None])
        for part, grad, m, v in zip(theta, slopes, first, second, strict=True):
            m[:] = FIRST * m + (1.0 - FIRST) * grad
            v[:] = SECOND * v + (1.0 - SECOND) * grad * grad
            part -= rate * m / (np.sqrt(v) + TINY)


def initial_weights(sizes: tuple[int, ...], seed: int) -> list[Floats]:
    """Return Glorot's uniform weights and intercepts of each layer, as scikit-learn draws them."""
    draw, layers = np.random.RandomState(seed), []
    for fan_in, fan_out in pairwise(sizes):
        bound = sqrt(6.0 / (fan_in + fan_out))
        layers += [draw.uniform(-bound, bound, (fan_in, fan_out))]
        layers += [draw.uniform(-bound, bound, fan_out)]
    return layers


def gradients(theta: list[Floats], inputs: list[Floats], error: Floats) -> list[Floats]:
    """Return the gradient of the penalized log loss, from the output's `error` = p - y."""
    slopes: list[Floats] = []
    for layer in reversed(range(len(theta) // 2)):
        weights, x = theta[2 * layer], inputs[layer]
        slopes = [x[:, :, None] * error[:, None] + PENALTY * weights, error, *slopes]
        if layer > 0:
            error = (weights @ error[:, :, None])[:, :, 0] * (x > 0.0)
    return slopes


class Bin(NamedTuple):
    """Accuracy in a bin of steps, live and recorded."""

    learner: str
    n: int  # the last step of the bin
    live: float
    sd: float  # standard deviation of the live mean
    recorded: float
    difference: float
    runs: int


def live_curve(name: str, reviews: Reviews, runs: int, steps: int) -> list[Bin]:
    """Return the accuracy of a learner over runs by bins of steps, and the recorded one."""
    recorded = IMDB.problem().means(steps)[IMDB.problem().names.index(name)]
    train, right = train_linear if name in RATES else train_network, np.zeros(steps)
    with progress_bar(runs, f"runs of {name}") as advance:
        for first in range(0, runs, MOST_TOGETHER):
            batch = range(first, min(first + MOST_TOGETHER, runs))
            for t, (p, y) in enumerate(train(name, reviews, batch, steps)):
                right[t] += ((p > 0.5) == y).sum()
            advance(len(batch))
    rows = []
    for end in range(BIN_STEPS, steps + 1, BIN_STEPS):
        at = slice(end - BIN_STEPS, end)
        live, before = float(right[at].mean()) / runs, float(recorded[at].mean())
        sd = sqrt(live * (1 - live) / (BIN_STEPS * runs))
        rows.append(Bin(name, end, live, sd, before, live - before, runs))
    return rows


def live_curves(workbench: Workbench) -> list[Bin]:
    """Train all seven over `runs` runs; runs of the networks are shorter."""
    reviews, steps = load_reviews(), dict.fromkeys(RATES, STEPS) | dict.fromkeys(HIDDEN, NET_STEPS)
    return [
        row for name in steps for row in live_curve(name, reviews, workbench.runs, steps[name])
    ]


NETWORKS_DIFFER = (
    "Runs of a network differ far more than the sd shows, which is within runs only: some initial "
    "weights never leave accuracy .5. Over runs the sd is .1 to .15: .008 for a mean of 300 runs, "
    ".004 for the recorded 1000. With 300 runs of 5000 steps the differences were up to .025 "
    "(NN1), with 1000 runs of 2000 steps up to .016."
)


TITLE = "The seven IMDB learners trained live"


@partial(Figure, "imdb-live", TITLE, live_curves, in_all=False)
def imdb_live(pyplot: Any, rows: list[Bin], mode: str) -> Shown:
    """Draw the live curves, with the recorded ones dotted."""
    drawn, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
    notes = []
    for place, name in enumerate(IMDB.problem().names):
        own, style = select(rows, learner=name), drawing.ARM_STYLES[place]
        line = style.line() | {"linestyle": "-", "linewidth": 1.4}
        line["markevery"] = (0.02 * place, 0.18)  # shares of the picture's diagonal
        ax.plot([row.n for row in own], [row.live for row in own], label=name, **line)
        ax.plot([row.n for row in own], [row.recorded for row in own], ":", color=style.color)
        notes.append(_difference(name, [row for row in own if row.n > EARLY]))
    ax.plot([nan], [nan], ":", color="0.3", label="recorded")
    ax.set(xlabel="$n$", ylabel="accuracy", xscale="log")
    plain_ticks(sorted({row.n for row in rows}), ax)
    drawing.grid(ax)
    drawing.side_legend(ax)
    return drawn, [*notes, NETWORKS_DIFFER]


def _difference(name: str, rows: list[Bin]) -> str:
    worst = max(rows, key=lambda row: abs(row.difference))
    return (
        f"{name}, {worst.runs} runs: largest difference after step {EARLY} is "
        f"{worst.difference:+.4f} (steps {worst.n - BIN_STEPS + 1} to {worst.n}; the live mean's "
        f"sd is {worst.sd:.4f}), mean difference {np.mean([row.difference for row in rows]):+.4f}."
    )
