"""Figures on the paper's settings: A and B, their arms, other a and noise, running time, IMDB.

Section 8 has setting A and the multiples of a, appendix G the running time, appendix H setting B,
the noise levels and IMDB.
"""

from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.statistics import pooled_noise
from latebloomer.paper import AS_PUBLISHED, drawing
from latebloomer.paper import experiments as ex
from latebloomer.paper.evidence import short, successes, values_of
from latebloomer.paper.experiments import IMDB, SETTING_A, SETTING_B, Setting
from latebloomer.paper.workbench import (
    Figure,
    Row,
    Shown,
    Workbench,
    read_rows,
    select,
    write_rows,
)
from latebloomer.policies.base import Policy
from latebloomer.simulation.results.plots import Style
from latebloomer.simulation.simulate import simulate
from latebloomer.theory import largest_beta
from latebloomer.theory.rising_ucbe_bounds import error_right_side

AS_WRITTEN_A = (
    "As the text has no a here, R-UCBE uses the one of the published code, without the factor 10 "
    "of its runs: a formula of its own (no K - 1, no c, exponent 2/3, beta = 1.001 in B) that "
    f"squares a negative bracket. '{ex.THEORY}' has a = 10 log(2TK/delta), the a at which the "
    "error bound, where it applies, is delta = .05. Both recommend argmax B, as Algorithm 1 says; "
    f"'{ex.ESTIMATE}' makes the pulls of R-UCBE and recommends the largest estimate."
)
AS_PUBLISHED_A = (
    "The conventions of the published runs: a with a factor 10, the n-th pull has mean mu(n-1), "
    "the window of R-SR and RR-SW keeps its first three rewards, ETC has rho = .98 in setting A."
)


def notes_on_a(setting: Setting, mode: str) -> list[str]:
    """Return notes on the a that R-UCBE uses, and on why it is not the text's a."""
    if mode == AS_PUBLISHED:
        return [AS_PUBLISHED_A]
    limits = setting.exploration_limits()
    arms, (first, *_, last) = setting.problem().arms, limits
    bound = error_right_side(arms, last, limits[last])
    no_closed_form = (
        "The text sets a to a* of Corollary 1, whose closed form does not exist at these budgets: "
        f"its bracket is negative. Theorem 1's own a*(0) does, from T = {first} on: "
        f"{limits[first]:.3g}, and {limits[last]:.4g} at T = {last}, where its error bound is "
        f"{'above 1' if bound > 1 else f'{bound:.1g}'}."
    )
    return [no_closed_form, AS_WRITTEN_A]


# --- expected rewards: mu_i(n) of each arm, and changes of the best arm ---


class Point(NamedTuple):
    """The mean of an arm's n-th pull."""

    arm: str
    n: int
    mean: float


def arms_of(setting: Setting, upto: int, workbench: Workbench) -> list[Point]:
    """Return the means of a setting's arms.

    As published, they start at n = 0, and the first arm of B is drawn up to 1 instead of .99.
    """
    problem, first = setting.problem(), int(workbench.mode != AS_PUBLISHED)
    means = problem.means(upto)
    if workbench.mode == AS_PUBLISHED:
        means = np.array([curve(np.arange(upto)) for curve in problem.curves])
    return [
        Point(f"arm {arm + 1}", n, float(mean))
        for arm, curve in enumerate(means)
        for n, mean in enumerate(curve, start=first)
    ]


def arms_figure(name: str, title: str, setting: Setting, upto: int) -> Figure:
    """Return the figure of a setting's arms."""

    def show(pyplot: Any, rows: list[Point], mode: str) -> Shown:
        drawn, ax = pyplot.subplots(figsize=(5.6, 3.4), layout="constrained")
        drawing.mark_change(ax, drawing.last_change(setting, mode, upto))
        drawing.arms(ax, rows)
        ax.set_ylim(0, 1.04)
        drawing.label_ends(ax)
        changes = setting.problem().changes(upto)
        best = "; ".join(f"arm {arm + 1} from T = {start}" for start, arm in changes)
        return drawn, [f"Best at the budget T: {best}."]

    return Figure(name, title, partial(arms_of, setting, upto), show)


setting_a_arms = arms_figure("setting-a-arms", "Arms of setting A (section 8)", SETTING_A, 300)
setting_b_arms = arms_figure("setting-b-arms", "Arms of setting B (appendix H)", SETTING_B, 500)


# --- Table 1: the parameters of the arms of setting A ---


class Parameters(NamedTuple):
    """An arm of setting A: c (1 - b / (b^(1/psi) + n)^psi)."""

    arm: str
    b: float
    c: float
    psi: float


def parameters(workbench: Workbench) -> list[Parameters]:
    """Return the parameters of setting A's arms."""
    curves: Any = SETTING_A.problem().curves
    return [
        Parameters(f"arm {arm}", curve.b, curve.c, curve.psi)
        for arm, curve in enumerate(curves, start=1)
    ]


@partial(Figure, "table-1", "Table 1: the arms of setting A (appendix G)", parameters)
def table_1(pyplot: Any, rows: list[Parameters], mode: str) -> Shown:
    """Draw Table 1."""
    drawn, ax = pyplot.subplots(figsize=(5, 2.2), layout="constrained")
    text = [
        ["", "$b$", "$c$", r"$\psi$"],
        *([row.arm, *map("{:g}".format, row[1:])] for row in rows),
    ]
    tint = [[drawing.HEAD] * 4, *[[drawing.CELL] * 4] * len(rows)]
    drawing.table(ax, text, tint)
    beta = largest_beta(SETTING_A.problem().means(ex.BUDGETS[-1]), c=1.0)
    return drawn, [
        r"The mean of an arm's n-th pull is c (1 - b / (b^(1/psi) + n)^psi). The largest beta of "
        f"Assumption 2 with c = 1 is {beta:.3f} (the text says 1.3)."
    ]


# --- error and simple regret against the budget ---


def budget_figure(name: str, title: str, setting: Setting, what: str = "error") -> Figure:
    """Return a figure of all algorithms in one setting against the budget."""

    def show(pyplot: Any, rows: list[Row], mode: str) -> Shown:
        change = drawing.last_change(setting, mode)
        size = (6.4, 3.6)
        drawn, axes = drawing.budget_panels(pyplot, {"": rows}, size, change=change, what=what)
        drawing.label_ends(axes[0, 0])
        return drawn, notes_on_a(setting, mode)

    return Figure(name, title, partial(ex.errors, setting=setting), show)


setting_a = budget_figure("setting-a", "Error in setting A (section 8)", SETTING_A)
regret_title = "Simple regret in setting A (section 8)"
simple_regret = budget_figure("simple-regret", regret_title, SETTING_A, "regret")
setting_b = budget_figure("setting-b", "Error in setting B (appendix H)", SETTING_B)


@partial(Figure, "exploration", "R-UCBE at a/50, a/10, a, 10a and 50a (section 8)", ex.multiples)
def exploration(pyplot: Any, rows: list[Row], mode: str) -> Shown:
    """Draw two panels: around the change of the best arm, and all budgets."""
    panels = {}
    for series, some in _by_series(rows).items():
        for panel in ("detail", "budgets"):
            part = select(some, panel=panel)
            panels[f"{series}, $T$ up to {part[-1].T}, {part[0].runs} runs"] = part
    change = drawing.last_change(SETTING_A, mode)
    multiples = ("$a/50$", "$a/10$", "$a$", "$10a$", "$50a$")
    styles: dict[str, Style] = {}
    labels: dict[str, str] = {}
    for names in (ex.FACTORS, ex.BY_ESTIMATE):
        styles |= dict(zip(names, drawing.ARM_STYLES, strict=False))
        labels |= dict(zip(names, multiples, strict=True))
    size = (9.6, 3.4 * len(panels) / 2)
    shape = (len(panels) // 2, 2)
    drawn, axes = drawing.budget_panels(pyplot, panels, size, shape, change, styles=styles)
    for row in axes:
        drawing.label_ends(row[-1], labels)
    return drawn, ["a is the authors' in either mode; as published, the bonus has 10 times that."]


def _by_series(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rows by the name of the algorithm, without the multiple of a."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        name = ex.ESTIMATE if row.algorithm in ex.BY_ESTIMATE else "R-UCBE"
        series.setdefault(name, []).append(row)
    return series


@partial(Figure, "noise", "Error in setting A at six noise levels (appendix H)", ex.noise)
def noise(pyplot: Any, rows: list[Row], mode: str) -> Shown:
    """Draw six panels, two in a row, in order of sigma."""
    panels = {rf"$\sigma = {sigma:g}$": select(rows, sigma=sigma) for sigma in ex.SIGMAS}
    change = drawing.last_change(SETTING_A, mode)
    drawn, axes = drawing.budget_panels(pyplot, panels, (10.5, 10), (3, 2), change)
    drawing.shared_legend(drawn, axes[0, 0], columns=5)
    known = "R-UCBE knows sigma, and its a is proportional to 1/sigma^2."
    return drawn, [*notes_on_a(SETTING_A, mode), known]


# --- running time, appendix G ---

TIMED_BUDGET = 3200
PAPER_SECONDS = {"R-UCBE": 0.07, "R-SR": 0.06}  # Intel i7-9750H, Python 3.10
TIMED_RUNS = {"cpu": 100, "python": 1}


class Timing(NamedTuple):
    """Seconds for one run; nan if the paper has no number."""

    algorithm: str
    T: int
    seconds: float  # compiled, one thread
    seconds_python: float  # seconds of the same rules in plain Python
    seconds_paper: float


def timings(workbench: Workbench) -> list[Timing]:
    """Measure each algorithm on one thread of this machine, once per folder."""
    path = workbench.file_of("running-time.csv")
    if rows := read_rows(path, Timing):
        return rows
    known = ex.as_written_policies(SETTING_A.sigma, SETTING_A.exploration(TIMED_BUDGET))
    rows = []
    for name, policy in known.items():
        fast, slow = seconds_of(policy, "cpu"), seconds_of(policy, "python")
        theirs = PAPER_SECONDS.get(name, float("nan"))
        rows.append(Timing(name, TIMED_BUDGET, fast, slow, theirs))
    write_rows(path, rows)
    return rows


def seconds_of(policy: Policy, target: str) -> float:
    """Return the CPU seconds of a run, without compilation, which a short first call does."""
    problem, runs = SETTING_A.problem(), TIMED_RUNS[target]
    one_thread = partial(
        simulate, problem, policy, target=target, method="pulls", threads=1, progress=False
    )
    one_thread(budgets=100, runs=1)
    started = process_time()
    one_thread(budgets=TIMED_BUDGET, runs=runs)
    return (process_time() - started) / runs


@partial(Figure, "running-time", "Seconds for one run at T = 3200 (appendix G)", timings)
def running_time(pyplot: Any, rows: list[Timing], mode: str) -> Shown:
    """Draw three points for each algorithm: compiled, plain Python, and the paper's."""
    drawn, ax = pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")
    for place, row in enumerate(rows):
        ink = drawing.style(row.algorithm).color
        ax.plot([row.seconds, row.seconds_python], [place] * 2, color=ink, lw=1, alpha=0.5)
        ax.plot(row.seconds, place, "o", color=ink)
        ax.plot(row.seconds_python, place, "s", color=ink, mfc="white")
        ax.plot(row.seconds_paper, place, "x", color="black")
    for marker, fill, name in (
        ("o", "0.4", "compiled"),
        ("s", "white", "plain Python"),
        ("x", "0.4", "the paper"),
    ):
        ax.plot([], [], marker, mfc=fill, mec="0.2", label=name)
    ax.set_yticks(range(len(rows)), [row.algorithm for row in rows])
    ax.set(xscale="log", xlabel=f"CPU seconds for one run, $T = {TIMED_BUDGET}$, one thread")
    ax.invert_yaxis()
    drawing.grid(ax, "x")
    drawing.side_legend(ax)
    own = [row for row in rows if row.algorithm in PAPER_SECONDS]
    times = [f"{row.algorithm} {row.seconds:.2g}, {row.seconds_python:.2g} s" for row in own]
    return drawn, [f"One thread of this machine, compiled and plain Python: {'; '.join(times)}."]


# --- IMDB: Table 2 and the recorded curves, appendix H ---

TABLE_ORDER = ("R-UCBE", "R-SR", "RR", "RR-SW", "SR", "UCB-E", "Prob-1", "ETC", "Rest-Sure")
RIGHT, WRONG, HEAD = "#d8f0dc", drawing.CELL, drawing.HEAD
SMOOTH = 101  # steps
EVERY = 50  # steps between two points of the curves


@partial(Figure, "imdb", "Table 2: recommendations on IMDB (appendix H)", ex.imdb)
def imdb(pyplot: Any, rows: list[Row], mode: str) -> Shown:
    """Draw Table 2: the recommended arms at 11 budgets, and the number of right ones."""
    scored = IMDB.scored if mode == AS_PUBLISHED else None
    best = scored or (lambda budget: select(rows, T=budget)[0].best)
    optimal = [best(budget) for budget in ex.IMDB_BUDGETS]
    more = (ex.ESTIMATE, ex.THEORY)
    names = [name for name in (*TABLE_ORDER, *more) if select(rows, algorithm=name)]
    drawn, ax = pyplot.subplots(figsize=(9.6, 0.36 * (len(names) + 3)), layout="constrained")
    head = ["$T$", *map(str, ex.IMDB_BUDGETS), "right"]
    text = [head, ["optimal arm", *map(str, optimal), ""]]
    tint = [[HEAD] * len(head), [HEAD] * len(head)]
    for name in names:
        own = select(rows, algorithm=name)
        wins = [row.recommended == best for row, best in zip(own, optimal, strict=True)]
        rate = f"{short(sum(1 - row.error for row in own), 1)}/{len(own)}"
        if "." in rate:  # an algorithm with random pulls
            rate = f"mean {rate}"
        text.append([name, *(str(row.recommended) for row in own), rate])
        tint.append([WRONG, *(RIGHT if win else WRONG for win in wins), WRONG])
    widths = [0.19, *[0.064] * len(ex.IMDB_BUDGETS), 0.107]
    drawing.table(ax, text, tint, colWidths=widths)
    right = values_of(successes(rows, of=names), 2)
    sigma = pooled_noise(list(IMDB.problem().means(ex.IMDB_BUDGETS[-1])))
    also = ", as is Rest-Sure's" if mode == AS_PUBLISHED else ""
    return drawn, [
        "Arms from 0: NN112, NN1, NN2, NN22, NN222, OGD, LR. The paper's row of optimal arms (5, "
        "5, 2, 2, ...) is hard-coded, and success is counted against it as published; as written, "
        "against the recorded curves, which give 5, 5, 5, 5, 2, ...",
        f"Right at how many of {len(ex.IMDB_BUDGETS)} budgets: {right}. "
        "Prob-1 draws its pulls: its cells show the arm recommended most often, and its count is "
        f"a mean over runs{also}.",
        f"sigma = {IMDB.sigma} as in the paper; pooled second differences give {sigma:.4f}.",
    ]


class RecordedPoint(NamedTuple):
    """The recorded accuracy of a learner at a step, and its mean over the steps around it."""

    arm: str
    n: int
    mean: float
    smoothed: float


def recorded_points(workbench: Workbench) -> list[RecordedPoint]:
    """Return the seven recorded curves, raw and smoothed."""
    problem, upto, ones = IMDB.problem(), ex.IMDB_BUDGETS[-1], np.ones(SMOOTH)
    counts = np.convolve(np.ones(upto), ones, "same")
    rows = []
    for name, curve in zip(problem.names, problem.means(upto).tolist(), strict=True):
        smooth = (np.convolve(curve, ones, "same") / counts).tolist()
        rows += [RecordedPoint(name, n + 1, curve[n], smooth[n]) for n in range(0, upto, EVERY)]
    return rows


@partial(Figure, "imdb-arms", "Rewards of the seven IMDB learners (appendix H)", recorded_points)
def imdb_arms(pyplot: Any, rows: list[RecordedPoint], mode: str) -> Shown:
    """Draw the smoothed curves."""
    drawn, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    drawing.arms(ax, rows, "smoothed")
    ax.set_ylabel("accuracy")
    names = IMDB.problem().names
    drawing.label_ends(ax, {name: f"{arm} {name}" for arm, name in enumerate(names)})
    return drawn, [f"Means of about 1000 right-or-wrong outcomes, over {SMOOTH} steps."]
