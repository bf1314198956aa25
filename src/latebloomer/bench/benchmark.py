"""Policies on sets of curves, start to end, and the report: Markdown, CSV and PNG."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from latebloomer._util.atomic_files import make_folder, write_csv, write_file
from latebloomer.bench import curve_runs, curve_sets
from latebloomer.bench.curve_runs import ALL, Found, Line, Played, Player
from latebloomer.bench.curve_sets import GROUP_SIZE, Curves, Skipped
from latebloomer.errors import extra, need_whole, require
from latebloomer.page.figures import TEXT
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import AUTO, REGISTRY, default_or_named, is_auto, label_of
from latebloomer.problems.curves import Floats
from latebloomer.racing.stopping import PROVISIONAL, TimeBudget
from latebloomer.session import events
from latebloomer.session.session import Session
from latebloomer.simulation.local_runs import cores
from latebloomer.simulation.plots import Style, styles_of, write_figure

BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in full trainings
# The best on the public sets of the 13 settings in docs/research-log.md.
TUNED_ASHA = "asha:eta=2,grace=4,workers=1000"
VARIANTS = ("sh:judge=window", TUNED_ASHA)  # settings that people would ask for
LEFT_OUT = {  # policies that are not compared unless requested, and why
    "foresight": "it is what auto uses",
    "ucb-e": "it needs the gaps, which are not known for recorded curves",
    "etc": "its published width never decides, so that it is a round robin",
    "rest-sure": "its published width never decides, so that it is a round robin",
}
COMPARED = (AUTO, *(name for name in REGISTRY if name not in LEFT_OUT), *VARIANTS)
CAUTION = (
    "± is one standard error, over problems, of the difference to {baseline} on the same problems "
    "and draws. Problems share learners, tasks or data, so it is too small."
)
LEFT_OUT_SCORE = (
    "The first score that TaskSet and YAHPO record is of a model before training; a score before "
    "training is not a pull, and it is left out."
)
SHOWN_SKIPS = 20
EMPHASIZED, WIDE = "auto", 3.0  # the default has the wide line
PANELS_A_ROW = 3


def bench(
    where: Sequence[str] | Path = ("public",),
    policies: Sequence[str | Policy] = COMPARED,
    budgets: Sequence[float] = BUDGETS,
    draws: int = 10,
    *,
    baseline: str = "r-sr",
    seed: int = 0,
    sigma: float | None = None,
    arms: Sequence[int] = (GROUP_SIZE,),
    threads: int | None = None,
    shown: bool = False,
) -> "BenchReport":
    """Compare policies on sets of recorded curves, or on your own folder of curves.

    Each problem has K arms of L recorded pulls. A budget of c full trainings is T = c L pulls, and
    arms are compared at the horizon H = L.

    Parameters
    ----------
    where : Sequence[str] | Path
        Names of sets, or a folder of curves.
    policies : Sequence[str | Policy]
        Policies or their names.
    budgets : Sequence[float]
        Budgets in full trainings.
    draws : int
        Number of draws of the noise and of the order of arms, for each problem.
    baseline : str
        Policy that the others are compared with.
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
        No such set or policy.
    CurveError
        Nothing could be read.
    """
    players = _players(policies, baseline)
    _check(budgets, draws, arms)
    start = time.perf_counter()
    if isinstance(where, Path):
        problems, skipped = curve_sets.read_folder(where, sigma)
    else:
        problems, skipped = curve_sets.read_sets(curve_sets.names_of(where), arms)
    runs = (draws, seed, threads or cores(), shown)
    played = curve_runs.play_all(problems, players, budgets, *runs)
    costs = curve_runs.costs_by_set(problems, played)
    lines = curve_runs.lines_of(costs, [*players], budgets, baseline)
    notes = [f"{curves.name}: {curves.note}" for curves in problems if curves.note]
    seconds, drawn = time.perf_counter() - start, what_is_drawn(problems, draws)
    return BenchReport(lines, skipped, baseline, seconds, drawn, notes)


def _players(given: Sequence[str | Policy], baseline: str) -> dict[str, Player]:
    """Return the policies by label; the baseline is always one of them."""
    players: dict[str, Player] = {}
    for policy in (*given, baseline):
        made = default_or_named(policy)
        players[str(policy) if is_auto(policy) else label_of(made)] = made
    return players


def _check(budgets: Sequence[float], draws: int, arms: Sequence[int]) -> None:
    need_whole("draws", draws, 1, "noise is drawn")
    right = len(budgets) > 0 and all(0 < c < 1e6 for c in budgets)
    right = right and len(set(budgets)) == len(budgets)
    needed = "above 0, below a million and all different"
    require(right, "budgets", list(budgets), needed, "they count full trainings")
    for size in arms:
        need_whole("arms", size, 2, "with one arm there is nothing to choose")


# --- the report ---


@dataclass(frozen=True)
class BenchReport:
    """What a bench found.

    Attributes
    ----------
    lines : list[Line]
        One line for each policy, set and budget.
    skipped : list[Skipped]
        Files and sets that could not be read, with the reason.
    baseline : str
        Policy that others are compared with.
    seconds : float
        Time that the bench took.
    drawn : str
        What was drawn, as text: `what_is_drawn`.
    notes : list[str]
        Notes on problems that differ from what was recorded.
    """

    lines: list[Line]
    skipped: list[Skipped]
    baseline: str
    seconds: float
    drawn: str
    notes: list[str]

    def __str__(self) -> str:
        return markdown(self)

    def loss(self, policy: str, group: str | None = None) -> float:
        """Return the mean rank loss of a policy over all budgets, on one set or on all."""
        group = self.lines[-1].group if group is None else group
        return {line.policy: line.rank_loss for line in ranked(self.lines, group)}[policy]

    def write(self, folder: Path) -> list[Path]:
        """Write bench.md, bench.csv and bench.png; return their paths."""
        make_folder(folder)
        paths = [folder / f"bench.{kind}" for kind in ("md", "csv", "png")]
        write_file(paths[0], str(self))
        write_csv(paths[1], [Line._fields, *self.lines])
        draw_picture(self.lines, paths[2])
        return paths


# --- as text ---


def markdown(report: BenchReport) -> str:
    """Return the whole report."""
    lines, baseline = report.lines, report.baseline
    problems = {line.group: line.problems for line in lines}
    groups = list(problems)
    top = ranked(lines, groups[-1])  # on all sets, or on the only one
    order = [line.policy for line in top]
    by_group = losses_by("group", [line for line in lines if line.budget == ALL], order)
    less = [f"less than {baseline}", *(difference(line, line.policy == baseline) for line in top)]
    own = [line for line in lines if line.group == groups[-1]]
    by_budget = losses_by("budget", [line for line in own if line.budget != ALL] or own, order)
    counts = ", ".join(f"{problems[group]} of {group}" for group in groups if group != ALL)
    parts = [
        "# Bench",
        f"Rank loss: share of the arms that are truly better than the pick (0 is best), mean over "
        f"budgets. {report.drawn}; {counts} problems; {report.seconds:.0f} s.",
        table([[*row, last] for row, last in zip(by_group, less, strict=True)]),
        LEFT_OUT_SCORE if any(g.startswith(("taskset", "yahpo")) for g in groups) else "",
        CAUTION.format(baseline=baseline),
        "## By budget, in full trainings",
        table(by_budget),
        "## Other measures",
        other_measures(lines, groups[-1], order, baseline),
        "Regret is relative to the range between a problem's worst and best arm; an error is a "
        "pick that is not the best. *Left out*: share of arms left out because the budget was "
        "below the policy's minimum; the policy then had a random subset.",
    ]
    for group in groups[:-1]:
        parts += [f"## {group}", other_measures(lines, group, order, baseline)]
    skipped = [f"{what}: {why}" for what, why in report.skipped]
    if len(skipped) > SHOWN_SKIPS:
        skipped[SHOWN_SKIPS:] = [f"and {len(skipped) - SHOWN_SKIPS} more"]
    for title, listed in (("Notes", report.notes), (f"Skipped: {len(report.skipped)}", skipped)):
        if listed:
            parts += [f"## {title}", "\n".join(f"- {one}" for one in listed)]
    return "\n\n".join(part for part in parts if part) + "\n"


def what_is_drawn(problems: Sequence[Curves], draws: int) -> str:
    """Return what differs from draw to draw: noise, runs, or only the order of the learners."""
    runs = any(curves.runs is not None for curves in problems)
    noise = any(curves.noisy and curves.runs is None for curves in problems)
    if not runs and not noise:
        return f"Rewards are as recorded, the learners in {draws} random orders"
    drawn = ["of the noise"] * noise + ["of one recorded run of each learner"] * runs
    return f"{draws} draws {' and '.join(drawn)}"


def ranked(lines: Sequence[Line], group: str) -> list[Line]:
    """Return one line per policy over all budgets, the best first."""
    whole = [line for line in lines if line.group == group and line.budget == ALL]
    return sorted(whole, key=lambda line: line.rank_loss)


def losses_by(what: str, lines: Sequence[Line], order: Sequence[str]) -> list[list[str]]:
    """Return rows of rank losses with a column for each `group` or `budget`, the header first."""
    found = {(line.policy, getattr(line, what)): decimals(line.rank_loss) for line in lines}
    columns = list(dict.fromkeys(column for _, column in found))
    rows = [[policy, *(found[policy, column] for column in columns)] for policy in order]
    return [["policy", *columns], *rows]


def other_measures(lines: Sequence[Line], group: str, order: Sequence[str], baseline: str) -> str:
    """Return the table of all measures on one set."""
    found = {line.policy: line for line in ranked(lines, group)}
    less, rows = f"less than {baseline}", []
    for policy in order:
        line, row = found[policy], [policy]
        for what in ("rank_loss", "regret", "error"):
            row += [decimals(getattr(line, what)), difference(line, policy == baseline, what)]
        rows.append([*row, f"{line.spent:.0%}", f"{line.left_out:.0%}"])
    header = ["policy", "rank loss", less, "regret", less, "error", less, "spent", "left out"]
    return table([header, *rows])


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row is its header.

    >>> print(table([["policy", "loss"], ["r-sr", ".089"]]))
    | policy | loss |
    |---|---|
    | r-sr | .089 |
    """
    header, *lines = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *lines])


def decimals(value: float, places: int = 3) -> str:
    """Return a share as the tables print it.

    >>> decimals(0.0764), decimals(1.0), decimals(-0.0004, 4)
    ('.076', '1.000', '-.0004')
    """
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def difference(line: Line, base: bool, what: str = "rank_loss") -> str:
    """Return how much less than the baseline, with its standard error."""
    less, error = getattr(line, f"{what}_less"), getattr(line, f"{what}_se")
    spread = "?" if isnan(error) else decimals(error, 4)
    return "–" if base else f"{decimals(less, 4)} ± {spread}"


# --- as a picture: rank loss against the budget, set by set ---


def draw_picture(lines: Sequence[Line], path: Path) -> None:
    """Write the picture; a panel for each set and one for all."""
    pyplot = extra("matplotlib.pyplot", "pictures", "plots")
    groups = list(dict.fromkeys(line.group for line in lines))
    rows, wide = -(-len(groups) // PANELS_A_ROW), min(PANELS_A_ROW, len(groups))
    size = (4 * wide, 3 * rows)
    figure, axes = pyplot.subplots(rows, wide, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat[len(groups) :]:
        ax.set_axis_off()
    for ax, group in zip(axes.flat, groups, strict=False):
        _panel(ax, [line for line in lines if line.group == group], group)
    look = {"loc": "outside lower center", "ncols": 4, "fontsize": TEXT, "handlelength": 4}
    figure.legend(*axes.flat[0].get_legend_handles_labels(), **look)
    write_figure(figure, path, dpi=120)
    pyplot.close(figure)


def _panel(ax: Any, lines: Sequence[Line], title: str) -> None:
    styles = line_styles(list(dict.fromkeys(line.policy for line in lines)))
    for place, (policy, style) in enumerate(styles.items()):
        own = [line for line in lines if line.policy == policy]
        own = [line for line in own if line.budget != ALL] or own
        budgets = [1.0 if line.budget == ALL else float(line.budget) for line in own]
        look = style.line(place, len(styles), len(own))
        ax.plot(budgets, [line.rank_loss for line in own], label=policy, **look)
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    ax.set(title=title, xlabel="budget, full trainings", ylabel="rank loss", ylim=(0, None))
    ax.grid(True, color="0.9")


def line_styles(policies: Sequence[str]) -> dict[str, Style]:
    """Return a color, a marker and dashes for each policy; the default's line is the widest."""
    styles = styles_of(policies)
    if EMPHASIZED in styles:
        styles[EMPHASIZED] = styles[EMPHASIZED]._replace(width=WIDE)
    return styles


# --- learners whose training costs differ, compared at the same share or after the same time ---
# LCDB 1.0 records what training took. A budget is a time: a number of full trainings of a learner
# of average cost, and the race has a time budget. By *shares* a pull is a hundredth of a learner's
# own full training and costs what that took. By *time* a pull is the same time for all, a
# hundredth of the average full training; a learner that is trained in full has finished. The pick
# is judged by what it is worth when trained in full.

TIMED_POLICIES = ("auto", "r-sr", "sh")
TICK = 1e-6  # seconds: no pull is shorter
NOTE = (
    "A budget is the time of full trainings of average cost. *same share*, *same time*: learners "
    "are compared at the same share of their own training, or after the same time."
)


def bench_times(
    policies: Sequence[str], budgets: Sequence[float], draws: int = 3, seed: int = 0
) -> BenchReport:
    """Compare policies within a time, learners compared at the same share and after the same time.

    The baseline is the first policy with learners at the same share.
    """
    start, problems = time.perf_counter(), list(curve_sets.lcdb10())
    labels = [f"{name}, {unit}" for name, unit in product(policies, UNITS)]
    played = [play_times(curves, policies, budgets, draws, seed) for curves in problems]
    costs = curve_runs.costs_by_set(problems, played)
    lines = curve_runs.lines_of(costs, labels, budgets, labels[0])
    seconds, drawn = time.perf_counter() - start, f"Draws of real runs: {draws}"
    return BenchReport(lines, [], labels[0], seconds, drawn, [NOTE])


def play_times(
    curves: Curves, policies: Sequence[str], budgets: Sequence[float], draws: int, seed: int
) -> Found:
    """Return what was played on one problem, by (policy with unit, budget)."""
    took = without_start(curves.seconds)
    average = float(took[:, -1].mean())
    tables, order = curve_runs.shuffled(curves, draws, seed)
    found = {}
    for name, unit, budget in product(policies, UNITS, budgets):
        policy, picks, spent = default_or_named(name), [], []
        for table, arms in zip(tables, order, strict=True):
            pulls = UNITS[unit](table, took[arms])
            pick, seconds = race_in_time(policy, *pulls, budget * average)
            picks.append(arms[pick])
            spent.append(seconds * curves.length / average)
        found[f"{name}, {unit}", budget] = Played(np.array(picks), np.array(spent), 0)
    return found


def without_start(seconds: Floats) -> Floats:
    """Return times whose first pull costs as much as an average one.

    Every size was trained from scratch, and the cost of starting is in each time. A race starts
    once; and on a small data set, starting costs more than all that follows.

    >>> without_start(np.array([[2.0, 3.0, 4.0]]))
    array([[0.666..., 1.666..., 2.666...]])
    """
    rise = seconds - seconds[:, :1]
    return np.maximum(rise + rise[:, -1:] / seconds.shape[1], TICK * np.arange(1, len(rise.T) + 1))


def same_share(scores: Floats, seconds: Floats) -> tuple[Floats, Floats]:
    """Return scores and seconds of pulls that are shares of a learner's own training."""
    return scores, np.diff(seconds, prepend=0.0)


def same_time(scores: Floats, seconds: Floats) -> tuple[Floats, Floats]:
    """Return scores and seconds of pulls of equal time; nan after a learner is fully trained."""
    full = seconds[:, -1:]
    length = float(full.mean()) / scores.shape[1]
    starts = length * np.arange(ceil(float(full.max()) / length))
    ends = np.minimum(starts + length, full)
    found = [np.interp(*of) for of in zip(ends, seconds, scores, strict=True)]
    return np.where(starts < full, found, np.nan), ends - starts


UNITS = {"same share": same_share, "same time": same_time}


def race_in_time(
    policy: Policy, scores: Floats, seconds: Floats, limit: float
) -> tuple[int, float]:
    """Race within a time, as `race(seconds=...)` does; return the pick and the time it took.

    Scores and seconds are those of each arm's pulls; an arm has finished where its score is nan.
    """
    arms, horizon = scores.shape
    session = Session(policy, arms, PROVISIONAL * arms, horizon)
    watch: Any = SimpleNamespace(elapsed=0.0, here=0.0)  # shows what recorded pulls have taken
    clock = TimeBudget(limit, arms, watch)
    while not session.over:
        arm = session.ask()
        at = (arm, session.pulls_of(arm))
        if np.isnan(scores[at]):
            session.apply(events.LearnerLeft(arm, events.FINISHED, "trained in full"))
        else:
            reported = events.ScoreReported(arm, float(scores[at]), float(seconds[at]))
            watch.elapsed = watch.here = watch.elapsed + reported.seconds
            session.apply(reported)
            clock.on_event(reported)
        pulls = clock.budget(session)
        if pulls is not None and pulls > session.spent:
            session.apply(events.BudgetReplanned(pulls, pulls))
        elif not session.over and clock.out_of_time(session):
            session.apply(events.Stopped("the time is spent"))
    return session.best_arm, watch.elapsed
