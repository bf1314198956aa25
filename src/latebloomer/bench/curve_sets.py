"""What the bench plays on: sets of curves, by name, and how rewards scatter about them.

The public sets are made as the README of their data says; `LATEBLOOMER_DATA` names the folder
that holds `data/`. What counts as a problem is fixed here, so that two people who run the bench
mean the same: seeds included. A score before training is not a pull: TaskSet and YAHPO record one,
which is left out. The others are made: six random families and the paper's settings.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from latebloomer.errors import CurveError, unknown
from latebloomer.problems import FAMILIES, problem, random_problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.paper_settings import DATA


@dataclass(frozen=True, eq=False)
class Curves:
    """K arms whose mean rewards after 1..L pulls are recorded; higher is better.

    Rewards are the curves themselves where neither `sd` (Gaussian noise, one standard deviation
    for all or one per arm and pull) nor `outcomes` (the mean of that many right-or-wrong outcomes)
    nor `runs` (recorded runs, whose mean the curves are) is given.

    Attributes
    ----------
    group : str
        The set that the problem belongs to.
    name : str
        Of the problem.
    means : Floats
        (arms, pulls).
    sd : Any
        Gaussian noise: one standard deviation, or one per arm and pull.
    outcomes : int
        Right-or-wrong outcomes that a reward is the mean of; 0 for none.
    runs : Floats | None
        (arms, runs, pulls).
    note : str
        For the report: what is not as recorded.
    """

    group: str
    name: str
    means: Floats
    sd: Any = None
    outcomes: int = 0
    runs: Floats | None = None
    note: str = ""

    @property
    def arms(self) -> int:
        return len(self.means)

    @property
    def length(self) -> int:
        """L: pulls that are recorded of each arm; the horizon of the bench."""
        return int(self.means.shape[1])

    def pulls_of(self, trainings: float) -> int:
        """T: the pulls of a budget of so many full trainings, at least two."""
        return max(2, round(trainings * self.length))

    @property
    def noisy(self) -> bool:
        return self.sd is not None or self.outcomes > 0 or self.runs is not None

    @property
    def truth(self) -> Floats:
        """What each arm is worth: the mean of its last L/50 pulls, at least one."""
        return self.means[:, -max(1, self.length // 50) :].mean(axis=1)

    def tables(self, draws: int, seed: int) -> Floats:
        """Rewards (draws, arms, pulls), the same for every policy; one draw where none differ."""
        if not self.noisy:
            return np.ascontiguousarray(self.means[None])
        words = (self.group, self.name)
        rng = np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])
        shape = (draws, *self.means.shape)
        if self.runs is not None:  # each arm shows one of its runs, the others' luck is its own
            which = rng.integers(self.runs.shape[1], size=(draws, self.arms))
            return self.runs[np.arange(self.arms), which]
        if self.outcomes:
            return rng.binomial(self.outcomes, self.means, shape) / self.outcomes
        return self.means + self.sd * rng.standard_normal(shape)


class Skipped(NamedTuple):
    """A file or a set that could not be used, and why."""

    what: str
    why: str


# --- the public sets: recorded curves ---

MISSING = 65535  # in the tables of LCDB 1.1
REACHED = 0.8  # share of learners that must reach an anchor
ANCHORS = 50  # fewest anchors of a data set that is used
SPLIT_SD = 5.0  # standard errors are over 25 splits
ROWS = 100  # pulls of a linear curve of LCDB
LEARNS = 0.65  # valid loss that a configuration of TaskSet must undercut
GROUP_SIZE = 8  # arms of the problems made of groups of configurations, unless said otherwise
BEFORE_TRAINING = 1  # scores of TaskSet and YAHPO that are of a model before training
HORIZONS = (2000, 5000, 10_000, 20_000)  # online steps
SUBSETS = 25  # of the 29 learners, at each horizon
STEPS = 10  # online steps to a pull
SMOOTH = 101  # steps


def lcdb11_linear() -> Iterator[Curves]:
    """One pull is a hundredth of the largest training set."""
    for name, rows, acc, sd in _lcdb11():
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS
        means, sds = (np.array([np.interp(at, rows, row) for row in part]) for part in (acc, sd))
        yield Curves("lcdb11-linear", name, means, sds)


def lcdb11_geometric() -> Iterator[Curves]:
    """One pull is the next anchor: a training set larger by 2^(1/8)."""
    for name, _, acc, sd in _lcdb11():
        yield Curves("lcdb11-geometric", name, acc, sd)


def _lcdb11() -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Of each data set: its name, anchors, validation accuracy and its sd over single splits."""
    file = archive("lcdb11")
    acc, se = file["val_acc"], file["val_se"]
    for place, openml in enumerate(file["openml_ids"].tolist()):
        known = acc[place] != MISSING
        enough = np.flatnonzero(known.mean(axis=0) >= REACHED)
        if len(enough) == 0 or enough[-1] + 1 < ANCHORS:
            continue
        last = int(enough[-1])
        reaching = known[:, last]
        rows = file["anchors"][: last + 1].astype(np.float64)
        parts = [_filled(rows, table[place, reaching, : last + 1]) for table in (acc, se)]
        yield f"openml-{openml}", rows, parts[0], SPLIT_SD * parts[1]


def _filled(rows: Floats, table: Any) -> Floats:
    """Shares of one, with the anchors that were skipped interpolated."""
    known = table != MISSING
    return np.array(
        [
            np.interp(rows, rows[there], row[there] / 10_000)
            for row, there in zip(table, known, strict=True)
        ]
    )


def lcdb10() -> Iterator[Curves]:
    """Real runs: one pull is a hundredth of the largest training set, a draw one of ten runs."""
    for name, runs, _ in lcdb10_with_times():
        yield Curves("lcdb10", name, runs.mean(axis=1), runs=runs)


def lcdb10_with_times() -> Iterator[tuple[str, Floats, Floats]]:
    """Of each data set its name, real runs (arms, runs, pulls) and seconds (arms, pulls)."""
    file = archive("lcdb10")
    for name in (key.removesuffix("|accuracy") for key in file if key.endswith("|accuracy")):
        rows, accuracy = file[f"{name}|rows"].astype(float), file[f"{name}|accuracy"] / 10_000
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS
        runs = np.array([[np.interp(at, rows, run) for run in arm] for arm in accuracy])
        took = [np.interp(at, rows, np.maximum.accumulate(s)) for s in file[f"{name}|seconds"]]
        yield f"openml-{name}", runs, np.array(took)


def taskset(arms: int = GROUP_SIZE, first: int = BEFORE_TRAINING) -> Iterator[Curves]:
    """Configurations that learn, in disjoint random groups for each task.

    Groups of more than 8 are of all configurations that do not diverge, as a search meets them.
    """
    file = archive("taskset_imdb_rnn")
    rng = np.random.default_rng(0)
    for task, loss in zip(
        file["tasks"].tolist(), file["loss"][:, :, 1].astype(float), strict=True
    ):
        finite = np.isfinite(loss).all(axis=1)
        learns = finite & (np.where(finite[:, None], loss, np.inf).min(axis=1) < LEARNS)
        order = rng.permutation(np.flatnonzero(learns if arms <= GROUP_SIZE else finite))
        for start in range(0, len(order) - arms + 1, arms):
            means = np.exp(-loss[order[start : start + arms], first:])
            yield Curves(sized("taskset", arms), f"{task}-{start // arms}", means)


def srb_imdb() -> Iterator[Curves]:
    """Random eights of 29 online learners; a pull is the mean of 10 right-or-wrong outcomes."""
    file = archive("srb_imdb_curves")
    rng = np.random.default_rng(0)
    level = smoothed(file["correct_of_1000"] / 1000)
    for horizon in HORIZONS:
        for subset in range(SUBSETS):
            arms = np.sort(rng.choice(len(level), GROUP_SIZE, replace=False))
            name = f"{horizon}-{subset}"
            yield Curves("srb-imdb", name, by_pull(level[arms], horizon), outcomes=STEPS)


def smoothed(curves: Floats) -> Floats:
    """The mean over 101 steps around each, fewer at the ends."""
    kernel, ones = np.ones(SMOOTH), np.ones(curves.shape[1])
    counts = np.convolve(ones, kernel, "same")
    return np.array([np.convolve(curve, kernel, "same") for curve in curves]) / counts


def by_pull(curves: Floats, horizon: int) -> Floats:
    """The means over each 10 steps up to the horizon."""
    return curves[:, :horizon].reshape(len(curves), -1, STEPS).mean(axis=2)


def yahpo(arms: int = GROUP_SIZE, first: int = BEFORE_TRAINING) -> Iterator[Curves]:
    """Consecutive groups of configurations for each task; surrogate output, a supplement."""
    file = archive("yahpo_lcbench_surrogate")
    for task, curves in zip(file["tasks"].tolist(), file["val_acc"].astype(float), strict=True):
        for start in range(0, len(curves) - arms + 1, arms):
            means = curves[start : start + arms, first:]
            yield Curves(sized("yahpo", arms), f"{task}-{start // arms}", means)


def sized(name: str, arms: int) -> str:
    """The name of a set in groups of so many arms."""
    return name if arms == GROUP_SIZE else f"{name}-{arms}"


def archive(folder: str) -> dict[str, Any]:
    """The arrays of `data/<folder>/<folder>.npz`."""
    file = data_folder() / folder / f"{folder}.npz"
    if not file.is_file():
        raise CurveError(f"there is no {file}")
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def data_folder() -> Path:
    """Where recorded curves are kept."""
    root = os.environ.get(DATA)
    advice = (
        "it names the folder that holds data/; `latebloomer download lcdb FOLDER` makes one with "
        "the set lcdb10 in it"
    )
    if not root:
        raise CurveError(f"recorded curves are needed, but {DATA} is not set: {advice}")
    if not Path(root, "data").is_dir():
        raise CurveError(f"{DATA}={root}, but there is no folder data in it: {advice}")
    return Path(root, "data")


# --- made ones: six random families, the paper's settings, and its IMDB race ---

ARMS, INSTANCES = (5, 10, 20), 10  # of each family
LENGTH, SIGMA = 500, 0.05
PAPER_LENGTHS, PAPER_SIGMA = (200, 400, 800, 1600, 3200), 0.01
IMDB_STEPS = (2000, 5000, 10_000, 20_000, 50_000)


def random_family(name: str) -> Iterator[Curves]:
    """Random instances with 5, 10 and 20 arms, 500 pulls long, Gaussian noise of sd 0.05."""
    for arms, seed in product(ARMS, range(INSTANCES)):
        means = random_problem(name, arms, seed).means(LENGTH)
        yield Curves(f"random-{name}", f"K={arms}-seed={seed}", means, SIGMA)


def paper_setting(setting: str) -> Iterator[Curves]:
    """A setting of the paper at several horizons; its own budget is that of one full training."""
    for length in PAPER_LENGTHS:
        means = problem(setting).means(length)
        yield Curves(setting, f"H={length}", means, PAPER_SIGMA)


def paper_imdb() -> Iterator[Curves]:
    """The paper's seven learners; curves smoothed, a pull is 10 right-or-wrong outcomes."""
    level = smoothed(problem("imdb").means(max(IMDB_STEPS)))
    for steps in IMDB_STEPS:
        yield Curves("imdb", f"H={steps}", by_pull(level, steps), outcomes=STEPS)


# --- all by name ---

MakeSet: TypeAlias = Callable[[], Iterator[Curves]]
PUBLIC: dict[str, MakeSet] = {
    "lcdb11-linear": lcdb11_linear,
    "lcdb11-geometric": lcdb11_geometric,
    "taskset": taskset,
    "srb-imdb": srb_imdb,
    "yahpo": yahpo,
}
RANDOM: dict[str, MakeSet] = {f"random-{name}": partial(random_family, name) for name in FAMILIES}
PAPER: dict[str, MakeSet] = {
    "paper-a": partial(paper_setting, "paper-a"),
    "paper-b": partial(paper_setting, "paper-b"),
    "imdb": paper_imdb,
}
REAL_RUNS: dict[str, MakeSet] = {"lcdb10": lcdb10}
IN_GROUPS = {"taskset": taskset, "yahpo": yahpo}  # sets whose problems may have more arms
SETS = PUBLIC | REAL_RUNS | RANDOM | PAPER
GROUPS = {"public": PUBLIC, "random": RANDOM, "paper": PAPER, "all": SETS}


def names_of(words: Iterable[str]) -> list[str]:
    """The sets that are meant; public, random, paper and all stand for several.

    Parameters
    ----------
    words : Iterable[str]
        Names of sets, or public, random, paper, all.

    Returns
    -------
    list[str]
        The sets.

    Raises
    ------
    UnknownName
        No such set.

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
    """The problems of the sets, and the sets whose data are not there.

    TaskSet and YAHPO are read once for each number of `arms`.

    Parameters
    ----------
    names : Sequence[str]
        Of sets.
    arms : Sequence[int]
        Of each problem of TaskSet and YAHPO.

    Returns
    -------
    tuple
        Problems, and sets whose data are not there.
    """
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for group, make in [maker for name in names for maker in _makers(name, arms)]:
        try:
            problems = list(make())
        except CurveError as error:
            skipped.append(Skipped(group, str(error)))
            continue
        found += problems
        if not problems:
            skipped.append(Skipped(group, "there are not so many arms"))
    skipped = said_once(skipped)
    if not found:
        raise CurveError("; ".join(f"{what}: {why}" for what, why in skipped))
    return found, skipped


def _makers(name: str, arms: Sequence[int]) -> list[tuple[str, MakeSet]]:
    if name not in IN_GROUPS:
        return [(name, SETS[name])]
    return [(sized(name, size), partial(IN_GROUPS[name], size)) for size in arms]


def said_once(skipped: Sequence[Skipped]) -> list[Skipped]:
    """What was skipped for the same reason, in one line.

    >>> said_once([Skipped("a", "is late"), Skipped("b", "is ill"), Skipped("c", "is late")])
    [Skipped(what='a, c', why='is late'), Skipped(what='b', why='is ill')]
    """
    by_reason: dict[str, list[str]] = {}
    for what, why in skipped:
        by_reason.setdefault(why, []).append(what)
    return [Skipped(", ".join(names), why) for why, names in by_reason.items()]
