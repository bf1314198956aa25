"""Sets of curves by name: recorded on tables, public ones in a data folder, and synthetic ones.

The problems of each set are fixed here, including seeds, so that all users of the bench get the
same problems. The tables are in this package, and `latebloomer download` fetches lcdb10. No
command fetches the other public sets; the README of their data says how to make them.
`LATEBLOOMER_DATA` is the folder that contains `data/`. A score before training is not a pull:
TaskSet and YAHPO have one, which is left out. The synthetic sets are six random families and the
paper's settings.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from latebloomer.bench.curves import Curves, Skipped
from latebloomer.bench.recorded_tables import TABLE_SETS
from latebloomer.errors import CurveError, unknown
from latebloomer.problems import FAMILIES, problem, random_problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.public_curves import data_path

# --- the public sets: recorded curves ---

MISSING = 65535  # mark of a missing value in the tables of LCDB 1.1
REACHED = 0.8  # share of learners that must reach an anchor
ANCHORS = 50  # minimum anchors of a data set to be used
SPLIT_SD = 5.0  # sd of a single split over the recorded standard error, which is over 25 splits
ROWS = 100  # number of pulls of a linear curve of LCDB
LEARNS = 0.65  # a configuration of TaskSet must have a validation loss below this
GROUP_SIZE = 8  # default number of arms of the problems made of groups of configurations
BEFORE_TRAINING = 1  # number of scores before training in TaskSet and YAHPO
HORIZONS = (2000, 5000, 10_000, 20_000)  # online steps
SUBSETS = 25  # number of random subsets of the 29 learners, for each horizon
STEPS = 10  # online steps per pull
SMOOTH = 101  # steps
TICK = 1e-6  # seconds: shortest pull


def lcdb11(group: str) -> Iterator[Curves]:
    """Yield LCDB 1.1: validation accuracy, with its sd over single splits, of each data set.

    In lcdb11-linear, a pull adds a hundredth of the largest training set. In lcdb11-geometric, a
    pull is the next anchor: a training set that is larger by the factor 2^(1/8).
    """
    file = archive("lcdb11")
    for place, openml in enumerate(file["openml_ids"].tolist()):
        known = file["val_acc"][place] != MISSING
        enough = np.flatnonzero(known.mean(axis=0) >= REACHED)
        last = max(enough.tolist(), default=-1)
        if last + 1 < ANCHORS:
            continue
        rows = file["anchors"][: last + 1].astype(np.float64)
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS if group == "lcdb11-linear" else rows
        arms = (place, known[:, last], slice(last + 1))
        means, errors = (_shares(file[what][arms], rows, at) for what in ("val_acc", "val_se"))
        yield Curves(group, f"openml-{openml}", means, SPLIT_SD * errors)


def _shares(table: Any, rows: Floats, at: Floats) -> Floats:
    """Return values, from 0 to 1, at training sizes `at`; skipped anchors are interpolated."""
    filled = [np.interp(rows, rows[row != MISSING], row[row != MISSING] / 10_000) for row in table]
    return np.array([np.interp(at, rows, row) for row in filled])


def lcdb10() -> Iterator[Curves]:
    """Yield real runs: a pull adds a hundredth of the largest training set, a draw is a run."""
    file = archive("lcdb10")
    for name in (key.removesuffix("|accuracy") for key in file if key.endswith("|accuracy")):
        rows, accuracy = file[f"{name}|rows"].astype(float), file[f"{name}|accuracy"] / 10_000
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS
        runs = np.array([[np.interp(at, rows, run) for run in arm] for arm in accuracy])
        took = [np.interp(at, rows, np.maximum.accumulate(s)) for s in file[f"{name}|seconds"]]
        seconds = seconds_of_pulls(np.array(took))[:, None]
        yield Curves("lcdb10", f"openml-{name}", runs.mean(axis=1), runs=runs, seconds=seconds)


def seconds_of_pulls(took: Floats) -> Floats:
    """Return the seconds of pulls from the seconds of trainings on more and more rows.

    Each size was trained from scratch, so each time includes the cost of starting. A race starts
    each learner once, but on a small data set starting costs more than everything else. So the
    first pull gets the time of an average pull.

    >>> seconds_of_pulls(np.array([[2.0, 3.0, 4.0]]))
    array([[0.666..., 1.        , 1.        ]])
    """
    steps = np.diff(took, prepend=0.0)
    steps[:, 0] = (took[:, -1] - took[:, 0]) / took.shape[1]
    return np.maximum(steps, TICK)


def taskset(arms: int = GROUP_SIZE, first: int = BEFORE_TRAINING) -> Iterator[Curves]:
    """Yield configurations whose loss falls, in disjoint random groups for each task.

    Groups of more than 8 contain all configurations that do not diverge, as in a search.
    """
    file = archive("taskset_imdb_rnn")
    rng, losses = np.random.default_rng(0), file["loss"][:, :, 1].astype(float)
    for task, loss in zip(file["tasks"].tolist(), losses, strict=True):
        finite = np.isfinite(loss).all(axis=1)
        learns = finite & (np.where(finite[:, None], loss, np.inf).min(axis=1) < LEARNS)
        order = rng.permutation(np.flatnonzero(learns if arms <= GROUP_SIZE else finite))
        yield from in_groups("taskset", task, np.exp(-loss[order, first:]), arms)


def yahpo(arms: int = GROUP_SIZE, first: int = BEFORE_TRAINING) -> Iterator[Curves]:
    """Yield consecutive groups of configurations for each task; output of a surrogate model."""
    file = archive("yahpo_lcbench_surrogate")
    for task, curves in zip(file["tasks"].tolist(), file["val_acc"].astype(float), strict=True):
        yield from in_groups("yahpo", task, curves[:, first:], arms)


def in_groups(name: str, task: str, curves: Floats, arms: int) -> Iterator[Curves]:
    """Yield disjoint groups of curves; a remainder is left out."""
    for start in range(0, len(curves) - arms + 1, arms):
        means = curves[start : start + arms]
        yield Curves(sized(name, arms), f"{task}-{start // arms}", means)


def sized(name: str, arms: int) -> str:
    """Return the name of a set with groups of `arms` arms."""
    return name if arms == GROUP_SIZE else f"{name}-{arms}"


def srb_imdb() -> Iterator[Curves]:
    """Yield random subsets of 8 of 29 online learners; a pull is the mean of 10 outcomes."""
    file = archive("srb_imdb_curves")
    rng = np.random.default_rng(0)
    level = smoothed(file["correct_of_1000"] / 1000)
    for horizon, subset in product(HORIZONS, range(SUBSETS)):
        arms = np.sort(rng.choice(len(level), GROUP_SIZE, replace=False))
        name = f"{horizon}-{subset}"
        yield Curves("srb-imdb", name, by_pull(level[arms], horizon), outcomes=STEPS)


def smoothed(curves: Floats) -> Floats:
    """Return the mean over the 101 steps around each step; over fewer at the ends."""
    kernel, ones = np.ones(SMOOTH), np.ones(curves.shape[1])
    counts = np.convolve(ones, kernel, "same")
    return np.array([np.convolve(curve, kernel, "same") for curve in curves]) / counts


def by_pull(curves: Floats, horizon: int) -> Floats:
    """Return the means over blocks of 10 steps up to the horizon."""
    return curves[:, :horizon].reshape(len(curves), -1, STEPS).mean(axis=2)


# Sources of the data of the sets; a command fetches only the first.
SOURCES = {
    "lcdb10": "`latebloomer download lcdb FOLDER` makes one with lcdb10 in it, from PyPI",
    "lcdb11": "no command fetches lcdb11: its curves are LCDB 1.1 (Yan, Mohr and Viering 2025), "
    "github.com/learning-curve-research/LCDB-1.1",
    "taskset_imdb_rnn": "no command fetches taskset: its curves are in "
    "github.com/releaunifreiburg/DPL, data/taskset",
    "srb_imdb_curves": "no command fetches srb-imdb: its curves are in "
    "github.com/albertometelli/stochastic-rising-bandits, data/learning curves",
    "yahpo_lcbench_surrogate": "no command fetches yahpo: it was evaluated with the model "
    "lcbench of github.com/slds-lmu/yahpo_data",
}
OFFLINE = "the sets tables and random need no files"


def archive(folder: str) -> dict[str, Any]:
    """Return the arrays of `data/<folder>/<folder>.npz` in the data folder."""
    path = Path("data", folder, f"{folder}.npz")
    advice = f"{SOURCES[folder]}; {OFFLINE}"
    file = data_path(path, f"the set {folder.partition('_')[0]}", advice)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


# --- synthetic sets: six random families, the paper's settings, and its IMDB race ---

ARMS, INSTANCES = (5, 10, 20), 10  # numbers of arms, and random instances of each family
LENGTH, SIGMA = 500, 0.05
PAPER_LENGTHS, PAPER_SIGMA = (200, 400, 800, 1600, 3200), 0.01
IMDB_STEPS = (2000, 5000, 10_000, 20_000, 50_000)


def random_family(name: str) -> Iterator[Curves]:
    """Yield random instances with 5, 10 and 20 arms, 500 pulls long, Gaussian noise of sd 0.05."""
    for arms, seed in product(ARMS, range(INSTANCES)):
        means = random_problem(name, arms, seed).means(LENGTH)
        yield Curves(f"random-{name}", f"K={arms}-seed={seed}", means, SIGMA)


def paper_setting(setting: str) -> Iterator[Curves]:
    """Yield a setting of the paper at several horizons; its own budget is one full training."""
    for length in PAPER_LENGTHS:
        yield Curves(setting, f"H={length}", problem(setting).means(length), PAPER_SIGMA)


def paper_imdb() -> Iterator[Curves]:
    """Yield the paper's seven learners, smoothed; a pull is 10 right-or-wrong outcomes."""
    level = smoothed(problem("imdb").means(max(IMDB_STEPS)))
    for steps in IMDB_STEPS:
        yield Curves("imdb", f"H={steps}", by_pull(level, steps), outcomes=STEPS)


# --- all by name ---

MakeSet: TypeAlias = Callable[[], Iterator[Curves]]
IN_GROUPS = {"taskset": taskset, "yahpo": yahpo}  # sets with problems of any number of arms
PUBLIC: dict[str, MakeSet] = {
    "lcdb11-linear": partial(lcdb11, "lcdb11-linear"),
    "lcdb11-geometric": partial(lcdb11, "lcdb11-geometric"),
    "taskset": taskset,
    "srb-imdb": srb_imdb,
    "yahpo": yahpo,
}
RANDOM: dict[str, MakeSet] = {f"random-{name}": partial(random_family, name) for name in FAMILIES}
PAPER: dict[str, MakeSet] = {name: partial(paper_setting, name) for name in ("paper-a", "paper-b")}
PAPER["imdb"] = paper_imdb
SETS: dict[str, MakeSet] = {**TABLE_SETS, **PUBLIC, "lcdb10": lcdb10, **RANDOM, **PAPER}
GROUPS: dict[str, dict[str, MakeSet]] = {
    "tables": {**TABLE_SETS}, "public": PUBLIC, "random": RANDOM, "paper": PAPER, "all": SETS,
}  # fmt: skip


def names_of(words: Iterable[str]) -> list[str]:
    """Return the names of sets; tables, public, random, paper and all stand for several sets.

    Parameters
    ----------
    words : Iterable[str]
        Names of sets, or tables, public, random, paper, all.

    Returns
    -------
    list[str]
        Names of sets.

    Raises
    ------
    UnknownName
        No set has that name.

    Examples
    --------
    >>> names_of(["taskset", "paper"])
    ['taskset', 'paper-a', 'paper-b', 'imdb']
    """
    names: dict[str, None] = {}
    for word in words:
        if word not in SETS and word not in GROUPS:
            raise unknown("set of curves", word, [*SETS, *GROUPS])
        names |= dict.fromkeys(GROUPS.get(word, [word]))
    return list(names)


def read_sets(
    names: Sequence[str], arms: Sequence[int] = (GROUP_SIZE,)
) -> tuple[list[Curves], list[Skipped]]:
    """Return the problems of the sets, and the sets whose data are missing.

    TaskSet and YAHPO are read once for each number of `arms`.

    Parameters
    ----------
    names : Sequence[str]
        Names of sets.
    arms : Sequence[int]
        Numbers of arms of the problems made of TaskSet and YAHPO.

    Returns
    -------
    tuple
        Problems, and skipped sets with their reasons; sets with the same reason are together.

    Raises
    ------
    CurveError
        No set could be read.
    """
    collected: list[Curves] = []
    skipped: dict[str, list[str]] = {}  # skipped sets by reason
    for group, make in [maker for name in names for maker in _makers(name, arms)]:
        try:
            problems, why = list(make()), "it has fewer arms"
        except CurveError as error:
            problems, why = [], str(error)
        collected += problems
        if not problems:
            skipped.setdefault(why, []).append(group)
    reasons = [Skipped(", ".join(groups), why) for why, groups in skipped.items()]
    if not collected:
        raise CurveError("; ".join(f"{what}: {why}" for what, why in reasons))
    return collected, reasons


def _makers(name: str, arms: Sequence[int]) -> list[tuple[str, MakeSet]]:
    if name not in IN_GROUPS:
        return [(name, SETS[name])]
    return [(sized(name, size), partial(IN_GROUPS[name], size)) for size in arms]
