"""The function `bench`, which compares policies on sets of curves, and its report."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from latebloomer._util.atomic_files import make_folder, write_csv, write_file
from latebloomer.bench import curve_sets, own_curves, report
from latebloomer.bench.costs import PULLS, SECONDS, Line, by_set, lines_of
from latebloomer.bench.curve_runs import Player, play_all
from latebloomer.bench.curves import Skipped
from latebloomer.bench.timed_runs import Ways, race_all
from latebloomer.errors import CurveError, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import AUTO, REGISTRY, default_or_named, is_auto, label_of
from latebloomer.simulation.local_runs import cores, progress_bar

DEFAULT_SETS = ("tables", "random")  # they need no files
BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings
TIMED_BUDGETS = (1.0, 2.0, 4.0)  # in the time of full trainings of average cost
UNITS = (PULLS, SECONDS)
# The best one, on the public sets, of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
VARIANTS = ("sh:judge=window", TUNED_ASHA)  # further settings that users may expect
LEFT_OUT = {  # policies that are only compared on request, with the reason
    "foresight": "it is what auto uses",
    "ucb-e": "it needs the gaps, which are not known for recorded curves",
    "etc": "its published width never decides, so that it is a round robin",
    "rest-sure": "its published width never decides, so that it is a round robin",
}
EVERY = (AUTO, *(name for name in REGISTRY if name not in LEFT_OUT), *VARIANTS)
# The default policies: compiling one takes seconds, so comparing all takes minutes.
COMPARED = (AUTO, "r-sr", "sh", "rr-sw", "hyperband", *VARIANTS)
TIMED = (AUTO, "r-sr", "sh", "rr-sw", *VARIANTS)  # default policies for budgets in seconds
ALL_POLICIES = "all"


def bench(
    where: Sequence[str] | Path = DEFAULT_SETS,
    policies: Sequence[str | Policy] | None = None,
    budgets: Sequence[float] | None = None,
    draws: int = 10,
    *,
    baseline: str = AUTO,
    units: Sequence[str] = UNITS,
    seed: int = 0,
    sigma: float | None = None,
    arms: Sequence[int] = (curve_sets.GROUP_SIZE,),
    threads: int | None = None,
    shown: bool = False,
) -> "BenchReport":
    """Compare policies on sets of recorded curves, or on your own folder of curves.

    Each problem has K arms of L recorded pulls. A budget of c full trainings is T = c L pulls, and
    arms are compared at the horizon H = L. For problems with recorded seconds, races within c
    times the seconds of an average full training are run, too.

    Parameters
    ----------
    where : Sequence[str] | Path
        Names of sets, or a folder of curves.
    policies : Sequence[str | Policy] | None
        Policies or their names, or "all". Default: a selection of the best and the usual policies.
    budgets : Sequence[float] | None
        Budgets in full trainings. Default: 1, 2, 4 and 8; in seconds 1, 2 and 4.
    draws : int
        Number of draws of the noise and of the order of arms, for each problem.
    baseline : str
        Policy with which the others are compared.
    units : Sequence[str]
        Units of the budgets: "pulls", "seconds" or both.
    seed : int
        Random seed of the draws.
    sigma : float | None
        Standard deviation of Gaussian noise added to a folder's curves. Default: no noise.
    arms : Sequence[int]
        Numbers of arms of the problems made of TaskSet and YAHPO.
    threads : int | None
        Maximum number of threads. Default: all cores.
    shown : bool
        Whether to show progress.

    Returns
    -------
    BenchReport
        Rank loss, regret and error; `print` it.

    Raises
    ------
    UnknownName
        No set or policy has that name.
    CurveError
        No curves could be read.
    """
    players = _players(COMPARED if policies is None else policies, baseline)
    ways = _ways(_players(TIMED if policies is None else policies, baseline))
    _check(budgets, draws, arms, units)
    start = time.perf_counter()
    if isinstance(where, Path):
        problems, skipped = own_curves.read_folder(where, sigma)
    else:
        problems, skipped = curve_sets.read_sets(curve_sets.names_of(where), arms)
    timed = [curves for curves in problems if curves.seconds is not None and SECONDS in units]
    by_pulls = problems if PULLS in units else []
    if not timed and not by_pulls:
        raise CurveError(
            "no set that was named has recorded seconds: use tables or lcdb10, or budgets in pulls"
        )
    stopped = Event()
    # Races in seconds are plain Python. Policies by pulls are compiled and run without Python's
    # lock.
    with (
        progress_bar(len(timed) + len(by_pulls), "problems", shown) as advance,
        ThreadPoolExecutor(1) as aside,
    ):
        try:
            racing = aside.submit(
                race_all, timed, ways, budgets or TIMED_BUDGETS, draws, seed, advance,
                stopped.is_set,
            )  # fmt: skip
            costs = play_all(
                by_pulls, players, budgets or BUDGETS, draws, seed, threads or cores(), advance
            )
            costs_in_seconds = racing.result()
        except BaseException:
            stopped.set()
            raise
    lines: list[Line] = []
    if timed:
        results = by_set(timed, costs_in_seconds)
        lines += lines_of(results, [*ways], budgets or TIMED_BUDGETS, baseline, SECONDS)
    if by_pulls:
        results = by_set(by_pulls, costs)
        lines += lines_of(results, [*players], budgets or BUDGETS, baseline, PULLS)
    notes = [f"{curves.name}: {curves.note}" for curves in problems if curves.note]
    seconds, drawn = time.perf_counter() - start, report.what_is_drawn(problems, draws)
    return BenchReport(lines, skipped, baseline, seconds, drawn, notes)


def _players(policies: Sequence[str | Policy], baseline: str) -> dict[str, Player]:
    """Return the policies by label; the baseline is always one of them."""
    players: dict[str, Player] = {}
    for policy in (*(EVERY if [*policies] == [ALL_POLICIES] else policies), baseline):
        player = default_or_named(policy)
        players[str(policy) if is_auto(policy) else label_of(player)] = player
    return players


def _ways(players: dict[str, Player]) -> Ways:
    """Return the race settings of each policy for budgets in seconds; only "auto" uses prices."""
    return {
        label: {"policy": label if is_auto(label) else policy} for label, policy in players.items()
    }


def _check(
    budgets: Sequence[float] | None, draws: int, arms: Sequence[int], units: Sequence[str]
) -> None:
    need_whole("draws", draws, 1, "noise is drawn")
    if budgets is not None:
        right = len(budgets) > 0 and all(0 < c < 1e6 for c in budgets)
        right = right and len(set(budgets)) == len(budgets)
        needed = "above 0, below a million and all different"
        require(right, "budgets", list(budgets), needed, "they count full trainings")
    right = len(units) > 0 and set(units) <= set(UNITS)
    require(right, "units", list(units), "pulls, seconds or both", "budgets count them")
    for size in arms:
        need_whole("arms", size, 2, "with one arm there is nothing to choose")


@dataclass(frozen=True)
class BenchReport:
    """The report of a bench; `print` it.

    Attributes
    ----------
    lines : list[Line]
        One line for each policy, set, budget and unit of the budget.
    skipped : list[Skipped]
        Files and sets that could not be read, with the reason.
    baseline : str
        Policy with which the others are compared.
    seconds : float
        Duration of the bench, in seconds.
    drawn : str
        Text about what was drawn at random, from `what_is_drawn`.
    notes : list[str]
        Notes on problems that differ from the recorded data.
    """

    lines: list[Line]
    skipped: list[Skipped]
    baseline: str
    seconds: float
    drawn: str
    notes: list[str]

    def __str__(self) -> str:
        return report.markdown(
            self.lines, self.baseline, self.drawn, self.seconds, self.notes, self.skipped
        )

    def loss(self, policy: str, group: str | None = None, unit: str = PULLS) -> float:
        """Return the mean rank loss of a policy over all budgets, on one set or on all."""
        lines = [line for line in self.lines if line.unit == unit]
        group = lines[-1].group if group is None else group
        return {line.policy: line.rank_loss for line in report.ranked(lines, group)}[policy]

    def write(self, folder: Path) -> list[Path]:
        """Write bench.md, bench.csv and bench.png; return their paths."""
        make_folder(folder)
        paths = [folder / f"bench.{kind}" for kind in ("md", "csv", "png")]
        write_file(paths[0], str(self))
        rows = ([f"{cell:.5f}" if isinstance(cell, float) else cell for cell in line]
                for line in self.lines)  # fmt: skip
        write_csv(paths[1], [Line._fields, *rows])
        report.draw_picture(self.lines, paths[2])
        return paths
