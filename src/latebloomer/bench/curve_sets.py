"""Sets of curves, by name or from a user's own folder, and how rewards scatter around them.

The public sets are made as the README of their data says; `LATEBLOOMER_DATA` names the folder
that holds `data/`. What counts as a problem is fixed here, seeds included, so that two people who
run the bench get the same. A score before training is not a pull: TaskSet and YAHPO record one,
which is left out. The other sets are synthetic: six random families and the paper's settings.

In a user's folder every file is a problem, each subfolder a set. Layouts are those of
`latebloomer.problems.recorded`: a ``.csv`` or ``.parquet`` with one column per learner and one row
per pull, or an ``.npz`` with one array per learner (or a table ``curves``); and journals of
finished races. Runs of the same learners are one problem: an ``.npz`` whose ``curves`` are
(learners, runs, pulls), or files ``name.run1.csv``, ``name.run2.csv`` and so on. Higher is better.
Files that cannot be used are skipped and reported.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from latebloomer.errors import CurveError, LatebloomerError, unknown
from latebloomer.policies.plan_text import counted
from latebloomer.problems import FAMILIES, problem, random_problem
from latebloomer.problems.curves import Floats
from latebloomer.problems.recorded import READERS, data_path, load_runs
from latebloomer.racing.journal.files import read
from latebloomer.session.events import FAILED, Created, Decided, Joined, LearnerLeft, ScoreReported


@dataclass(frozen=True, eq=False)
class Curves:
    """K arms whose mean rewards after 1..L pulls are recorded; higher is better.

    Rewards are the curves themselves unless `sd`, `outcomes` or `runs` is given.

    Attributes
    ----------
    group : str
        Set that the problem belongs to.
    name : str
        Name of the problem.
    means : Floats
        Mean rewards (arms, pulls).
    sd : Any
        Gaussian noise: one standard deviation, or one per arm and pull.
    outcomes : int
        Number of right-or-wrong outcomes that a reward is the mean of; 0 for none.
    runs : Floats | None
        Recorded runs (arms, runs, pulls), whose means the curves are.
    seconds : Any
        Time of training so far (arms, pulls), if it was recorded.
    note : str
        For the report: what differs from what was recorded.
    """

    group: str
    name: str
    means: Floats
    sd: Any = None
    outcomes: int = 0
    runs: Floats | None = None
    seconds: Any = None
    note: str = ""

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.means)

    @property
    def length(self) -> int:
        """L, the number of recorded pulls of each arm: the horizon of the bench."""
        return int(self.means.shape[1])

    def pulls_of(self, trainings: float) -> int:
        """Return T, the pulls of a budget in full trainings, at least two."""
        return max(2, round(trainings * self.length))

    @property
    def noisy(self) -> bool:
        """True if rewards differ from draw to draw."""
        return self.sd is not None or self.outcomes > 0 or self.runs is not None

    @property
    def truth(self) -> Floats:
        """What each arm is worth: the mean of its last L/50 pulls, at least one."""
        return self.means[:, -max(1, self.length // 50) :].mean(axis=1)

    def tables(self, draws: int, seed: int) -> Floats:
        """Return rewards (draws, arms, pulls), equal for every policy; one draw if not noisy."""
        if not self.noisy:
            return np.ascontiguousarray(self.means[None])
        words = (self.group, self.name)
        rng = np.random.default_rng([seed, *(zlib.crc32(word.encode()) for word in words)])
        shape = (draws, *self.means.shape)
        if self.runs is not None:  # each arm shows one of its own runs
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
LEARNS = 0.65  # a configuration of TaskSet must have a validation loss below this
GROUP_SIZE = 8  # default number of arms of the problems made of groups of configurations
BEFORE_TRAINING = 1  # scores of TaskSet and YAHPO that are of a model before training
HORIZONS = (2000, 5000, 10_000, 20_000)  # online steps
SUBSETS = 25  # of the 29 learners, at each horizon
STEPS = 10  # online steps to a pull
SMOOTH = 101  # steps


def lcdb11(group: str) -> Iterator[Curves]:
    """Yield LCDB 1.1: validation accuracy, with its sd over single splits, of each data set.

    In lcdb11-linear a pull is a hundredth of the largest training set, in lcdb11-geometric the
    next anchor: a training set larger by 2^(1/8).
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
    """Return shares of one at these training sizes, with skipped anchors interpolated."""
    filled = [np.interp(rows, rows[row != MISSING], row[row != MISSING] / 10_000) for row in table]
    return np.array([np.interp(at, rows, row) for row in filled])


def lcdb10() -> Iterator[Curves]:
    """Yield real runs: one pull is a hundredth of the largest training set, a draw one run."""
    file = archive("lcdb10")
    for name in (key.removesuffix("|accuracy") for key in file if key.endswith("|accuracy")):
        rows, accuracy = file[f"{name}|rows"].astype(float), file[f"{name}|accuracy"] / 10_000
        at = rows[-1] * np.arange(1, ROWS + 1) / ROWS
        runs = np.array([[np.interp(at, rows, run) for run in arm] for arm in accuracy])
        took = [np.interp(at, rows, np.maximum.accumulate(s)) for s in file[f"{name}|seconds"]]
        means, seconds = runs.mean(axis=1), np.array(took)
        yield Curves("lcdb10", f"openml-{name}", means, runs=runs, seconds=seconds)


def taskset(arms: int = GROUP_SIZE, first: int = BEFORE_TRAINING) -> Iterator[Curves]:
    """Yield configurations that learn, in disjoint random groups for each task.

    Groups of more than 8 are of all configurations that do not diverge, as in a search.
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
    """Return the name of a set in groups of that many arms."""
    return name if arms == GROUP_SIZE else f"{name}-{arms}"


def srb_imdb() -> Iterator[Curves]:
    """Yield random eights of 29 online learners; a pull is the mean of 10 outcomes."""
    file = archive("srb_imdb_curves")
    rng = np.random.default_rng(0)
    level = smoothed(file["correct_of_1000"] / 1000)
    for horizon, subset in product(HORIZONS, range(SUBSETS)):
        arms = np.sort(rng.choice(len(level), GROUP_SIZE, replace=False))
        name = f"{horizon}-{subset}"
        yield Curves("srb-imdb", name, by_pull(level[arms], horizon), outcomes=STEPS)


def smoothed(curves: Floats) -> Floats:
    """Return the mean over 101 steps around each, fewer at the ends."""
    kernel, ones = np.ones(SMOOTH), np.ones(curves.shape[1])
    counts = np.convolve(ones, kernel, "same")
    return np.array([np.convolve(curve, kernel, "same") for curve in curves]) / counts


def by_pull(curves: Floats, horizon: int) -> Floats:
    """Return the means over each 10 steps up to the horizon."""
    return curves[:, :horizon].reshape(len(curves), -1, STEPS).mean(axis=2)


def archive(folder: str) -> dict[str, Any]:
    """Return the arrays of `data/<folder>/<folder>.npz`."""
    file = data_folder() / folder / f"{folder}.npz"
    if not file.is_file():
        raise CurveError(f"there is no {file}")
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def data_folder() -> Path:
    """Return the folder with recorded curves."""
    advice = "`latebloomer download lcdb FOLDER` makes one with the set lcdb10 in it"
    return data_path(Path("data"), "a set of recorded curves", advice)


# --- synthetic sets: six random families, the paper's settings, and its IMDB race ---

ARMS, INSTANCES = (5, 10, 20), 10  # of each family
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
IN_GROUPS = {"taskset": taskset, "yahpo": yahpo}  # sets whose problems may have more arms
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
SETS: dict[str, MakeSet] = PUBLIC | {"lcdb10": lcdb10} | RANDOM | PAPER
GROUPS = {"public": PUBLIC, "random": RANDOM, "paper": PAPER, "all": SETS}


def names_of(words: Iterable[str]) -> list[str]:
    """Return the sets that are meant; public, random, paper and all stand for several.

    Parameters
    ----------
    words : Iterable[str]
        Names of sets, or public, random, paper, all.

    Returns
    -------
    list[str]
        Names of sets.

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
        Problems, and what was skipped with its reason; sets with the same reason together.

    Raises
    ------
    CurveError
        No set could be read.
    """
    found: list[Curves] = []
    skipped: dict[str, list[str]] = {}  # by reason
    for group, make in [maker for name in names for maker in _makers(name, arms)]:
        try:
            problems, why = list(make()), "it has fewer arms"
        except CurveError as error:
            problems, why = [], str(error)
        found += problems
        if not problems:
            skipped.setdefault(why, []).append(group)
    reasons = [Skipped(", ".join(groups), why) for why, groups in skipped.items()]
    if not found:
        raise CurveError("; ".join(f"{what}: {why}" for what, why in reasons))
    return found, reasons


def _makers(name: str, arms: Sequence[int]) -> list[tuple[str, MakeSet]]:
    if name not in IN_GROUPS:
        return [(name, SETS[name])]
    return [(sized(name, size), partial(IN_GROUPS[name], size)) for size in arms]


# --- a user's own files ---

SHORTEST = 4  # pulls
RUN = re.compile(r"(.+)\.run(\d+)")  # the stem of a file that holds one run
SQLITE = b"SQLite format 3\x00"  # how every journal begins
COMPANIONS = ("-wal", "-shm", ".lock")  # endings of files that a journal leaves next to it
CHECKPOINTS = ".checkpoints"  # ending of the folder that it leaves next to it


def read_folder(folder: Path, sigma: float | None = None) -> tuple[list[Curves], list[Skipped]]:
    """Return the problems of a folder, and what was skipped.

    Parameters
    ----------
    folder : Path
        Folder with a file for each past race.
    sigma : float | None
        Standard deviation of noise that is added. Default: no noise.

    Returns
    -------
    tuple
        Problems, and what was skipped with its reason.

    Raises
    ------
    CurveError
        There is no such folder, or no file in it can be used.
    """
    if not folder.is_dir():
        raise CurveError(f"{folder}: there is no such folder")
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for name, paths in files_by_problem(folder).items():
        try:
            found.append(_problem(folder, name, paths, sigma))
        except LatebloomerError as error:
            why = str(error).removeprefix(str(paths[0])).lstrip(": ")
            skipped.append(Skipped(str(name.relative_to(folder)), why))
    if not found:
        shown = [f"{what}: {why}" for what, why in skipped[:5]] or ["it is empty"]
        shown += [f"and {len(skipped) - 5} more"] if len(skipped) > 5 else []
        raise CurveError(f"{folder}: no curves in it that can be used: {'; '.join(shown)}")
    return found, skipped


def files_by_problem(folder: Path) -> dict[Path, list[Path]]:
    """Return the files of each problem; files of its runs, in their order, under one name."""
    found: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        of_journal = any(part.endswith(CHECKPOINTS) for part in inside.parts[:-1])
        if path.is_file() and not path.name.endswith(COMPANIONS) and not of_journal:
            run = RUN.fullmatch(path.stem) if path.suffix in READERS else None
            name = path.with_name(run[1] + path.suffix) if run else path
            found.setdefault(name, []).append((int(run[2]) if run else 0, path))
    return {name: [path for _, path in sorted(runs)] for name, runs in found.items()}


def _problem(folder: Path, name: Path, paths: list[Path], sigma: float | None) -> Curves:
    runs, note = _runs(paths)
    pulls = runs.shape[2]
    if pulls < SHORTEST:
        raise CurveError(f"{paths[0]}: {counted(pulls)}, but a race needs at least {SHORTEST}")
    inside = name.parent.relative_to(folder)
    group = folder.resolve().name if inside == Path() else str(inside)
    if runs.shape[1] > 1:
        return Curves(group, name.name, runs.mean(axis=1), runs=runs, note=note)
    return Curves(group, name.name, runs[:, 0], sigma, note=note)


def _runs(paths: list[Path]) -> tuple[Floats, str]:
    """Return rewards (learners, runs, pulls), and a note on them."""
    path = paths[0]
    try:
        if path.suffix not in READERS:
            return read_journal(path)
        first, *others = runs = [run for one in paths for run in load_runs(one)]
    except (OSError, UnicodeDecodeError, ArithmeticError) as error:
        raise CurveError(f"{path}: cannot be read ({error})") from error
    for run in others:
        if first.names != run.names:
            raise CurveError(f"{path}: {run.label} holds other learners than {first.label}")
        if first.length != run.length:
            lengths = f"{first.length} pulls in {first.label}, {run.length} in {run.label}"
            raise CurveError(f"{path}: runs of unequal length: {lengths}")
    return np.stack([run.curves for run in runs], axis=1), ""


def read_journal(path: Path) -> tuple[Floats, str]:
    """Return the rewards (learners, 1, pulls) of a finished race, and a note.

    Curves end where the first of them ends. Learners that failed are left out.
    """
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            raise CurveError(f"{path}: not a file of curves ({', '.join(READERS)}) or a journal")
    with closing(read(path)) as journal:
        events = [entry.event for entry in journal.read()]
    if not any(isinstance(event, Decided) for event in events):
        raise CurveError(f"{path}: the race is not finished")
    created = next(event for event in events if isinstance(event, Created))
    sign = 1.0 if created.settings.get("maximize", True) else -1.0
    names = [*created.names, *(event.name for event in events if isinstance(event, Joined))]
    left = [event for event in events if isinstance(event, LearnerLeft) and event.how == FAILED]
    failed = sorted({event.arm for event in left})
    curves: dict[int, list[float]] = {arm: [] for arm in range(len(names)) if arm not in failed}
    for event in events:
        if isinstance(event, ScoreReported) and event.arm in curves:
            curves[event.arm].append(sign * event.score)
    if len(curves) < 2:
        raise CurveError(f"{path}: {len(curves)} of its learners did not fail, but 2 are needed")
    shortest = min(curves, key=lambda arm: len(curves[arm]))
    known, most = len(curves[shortest]), max(map(len, curves.values()))
    notes = []
    if known < most:
        notes.append(
            f"learners are compared at pull {known}, up to which all are known: "
            f"{names[shortest]!r} was trained no further, another up to {most}"
        )
    if failed:
        notes.append(f"without {', '.join(names[arm] for arm in failed)}, which failed")
    return np.array([[scores[:known]] for scores in curves.values()]), "; ".join(notes)
