"""Figures of theory: the estimators of section 3, and lower bounds for all algorithms.

No algorithm is right on all of Theorem 3's instances, or without concavity (appendix F). Both
figures show the error of each algorithm on the worst of a few instances.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.running_sums import follow, projected_mean_of
from latebloomer.paper import WINDOW, drawing
from latebloomer.paper.evidence import largest
from latebloomer.paper.experiments import SETTING_B, as_written_policies, simulated_rows
from latebloomer.paper.workbench import Figure, Row, Shown, Workbench, select
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.problems import Gaussian, Problem, lower_bound
from latebloomer.problems.curves import Floats
from latebloomer.session.session import Session
from latebloomer.theory import RATES, lower_bounds, optimistic_width

# --- section 3: both estimators and the bonus of one arm, from a real run ---

BUDGET, ROUNDS, ARM = 200, 190, 1
EXPLORATION = 20.0  # smaller than the authors' 129, so that the bonus does not fill the picture
BLUE, RED = "#0077bb", "#cc3311"


class Point(NamedTuple):
    """A pull of the arm, or an estimate after the last one."""

    what: str
    n: int
    value: float


def estimates(workbench: Workbench) -> list[Point]:
    """Return rewards, means and estimates of arm 2 of setting B after 190 rounds of R-UCBE."""
    rewards = _rewards()
    n, sums = len(rewards), follow(rewards, WINDOW)
    bonus = optimistic_width(SETTING_B.sigma, EXPLORATION, n, BUDGET, WINDOW)
    means = SETTING_B.problem().means(BUDGET)[ARM]
    return [
        *(Point("reward", i, float(x)) for i, x in enumerate(rewards, start=1)),
        *(Point("mean", i, float(x)) for i, x in enumerate(means, start=1)),
        Point("pessimistic", n, sums.a / sums.h),
        Point("optimistic", n, projected_mean_of(sums, BUDGET)),
        Point("bonus", n, float(bonus)),
    ]


def _rewards() -> Floats:
    """Return the rewards of the arm in a session of R-UCBE on setting B."""
    problem = SETTING_B.problem()
    policy = RisingUCBE(exploration=EXPLORATION, noise=SETTING_B.sigma)
    session, seen = Session(policy, arms=problem.arms, budget=BUDGET), []
    for _ in range(ROUNDS):
        arm = int(session.ask())
        x = problem.draw(arm, int(session.pulls[arm]) + 1)
        session.tell(arm, x)
        if arm == ARM:
            seen.append(x)
    return np.array(seen)


@partial(Figure, "estimators", "Both estimators and the bonus (section 3)", estimates)
def estimators(pyplot: Any, rows: list[Point], mode: str) -> Shown:
    """Draw the rewards, the two windows and the estimates read at the budget."""
    last, n = {row.what: row.value for row in rows}, rows[-1].n
    low, high, h = last["pessimistic"], last["optimistic"], int(WINDOW * n)
    drawn, ax = pyplot.subplots(figsize=(7.2, 4), layout="constrained")
    for what, label, look in (
        ("mean", r"$\mu_i(n)$", {"color": "black", "lw": 1.6}),
        ("reward", "rewards", {"color": "0.55", "ls": "", "marker": ".", "ms": 4}),
    ):
        own = select(rows, what=what)
        ax.plot([row.n for row in own], [row.value for row in own], label=label, **look)
    middle = n - (h - 1) / 2
    ax.plot([middle, BUDGET], [low, low], "--", color=BLUE, lw=2)
    ax.plot([middle, BUDGET], [low, high], "--", color=RED, lw=2)
    for edge in (n - 2 * h + 0.5, n - h + 0.5, n + 0.5, BUDGET):
        ax.axvline(edge, color="0.6", lw=0.7, ls=":")
    _label_windows(ax, n, h)
    _label_levels(ax, low, high, high + last["bonus"])
    ax.set(xlabel="$n$", xlim=(0, BUDGET + 62), ylim=(0, None))
    ax.set_xticks([0, n, BUDGET], ["0", "$N_{i,t-1}$", "$T$"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False, bbox_to_anchor=(0.72, 0.05))
    return drawn, [
        f"Arm 2 of setting B after {ROUNDS} of {BUDGET} rounds of R-UCBE (a = {EXPLORATION:g}): "
        f"{n} pulls, windows of {h}. Its mean at {BUDGET} pulls is {last['mean']:.3f}; estimates "
        f"are {low:.3f} (pessimistic) and {high:.3f}, the bonus is {last['bonus']:.3f}."
    ]


def _label_windows(ax: Any, n: int, h: int) -> None:
    for right, name in ((n, r"$\tau$"), (n - h, r"$\tau'$")):
        ax.annotate(
            "",
            (right + 0.5, 0.07),
            (right - h + 0.5, 0.07),
            arrowprops={"arrowstyle": "<->", "lw": 0.8},
        )
        ax.text(right - h / 2 + 0.5, 0.085, name, ha="center")
    ax.text(n - h + 0.5, 0.02, "$h(N_{i,t-1})$ each", ha="center", fontsize=9)


def _label_levels(ax: Any, pessimistic: float, optimistic: float, top: float) -> None:
    """Draw arrows at the right: the two estimates, the bonus and their sum."""
    levels = (
        (6, 0.0, pessimistic, BLUE, r"$\hat\mu_i$"),
        (22, 0.0, optimistic, RED, r"$\overset{\vee}{\mu}_i^{\,T}$"),
        (22, optimistic, top, "black", r"$\overset{\vee}{\beta}_i^{\,T}$"),
        (42, 0.0, top, "black", r"$B_i^T$"),
    )
    for right, low, high, ink, name in levels:
        x = BUDGET + right
        ax.annotate("", (x, high), (x, low), arrowprops={"arrowstyle": "<->", "color": ink})
        ax.text(x + 4, (low + high) / 2, name, color=ink, va="center")
        ax.plot([BUDGET, x], [high, high], color="0.6", lw=0.7, ls=":")


# --- sections 4 to 7: conditions of each algorithm, and rates of its bounds ---


class Rate(NamedTuple):
    """The orders of an algorithm's conditions and bounds, without constants and logs of T."""

    about: str
    budget: str
    error: str
    regret: str


def rate_rows(workbench: Workbench) -> list[Rate]:
    """Return the rates of `theory.RATES`."""
    return [Rate(*line) for line in RATES[1:]]


Q = r"$q = \min(\beta, 3/2)$"
FORMULAS = {  # the texts of `theory.RATES`, as pictures show them
    "H_{1,1/q}^(q/(q-1))": r"$H_{1,1/q}^{\ q/(q-1)}$",
    "a*(0)/10: eps^3 T^(2q-2)/(sigma^2 H_{1,1/q}^(2q))":
        r"$a^*(0)/10$: $\ \varepsilon^3\, T^{2q-2} / (\sigma^2 H_{1,1/q}^{\ 2q})$",
    "T^(1-beta)": r"$T^{1-\beta}$",
    "(log K max_i i Delta_(i)^(-1/beta))^(beta/(beta-1))":
        r"$(\log K\ \max_i\, i\, \Delta_{(i)}^{-1/\beta})^{\beta/(\beta-1)}$",
    "eps T/(sigma^2 log K H_2)": r"$\varepsilon\, T / (\sigma^2 \log K\ H_2)$",
    "(K^beta/Delta_(2))^(1/(beta-1))": r"$(K^\beta / \Delta_{(2)})^{1/(\beta-1)}$",
    "eps T Delta_(2)^2/(sigma^2 K)": r"$\varepsilon\, T\, \Delta_{(2)}^2 / (\sigma^2 K)$",
    "H_{1,1/(beta-1)}": r"$H_{1,1/(\beta-1)}$",
    "T/(sigma^2 log K H_{1,2})": r"$T / (\sigma^2 \log K\ H_{1,2})$",
    "T^(1-beta) (K = 2)": r"$T^{1-\beta}$ $(K = 2)$",
}  # fmt: skip


@partial(Figure, "rates", "Conditions and rates (sections 4 to 7)", rate_rows)
def rates(pyplot: Any, rows: list[Rate], mode: str) -> Shown:
    """Draw the rates as a table."""
    drawn, ax = pyplot.subplots(figsize=(11, 2.2), layout="constrained")
    text = [(Q, *RATES[0][1:]), *([FORMULAS.get(cell, cell) for cell in row] for row in rows)]
    tint = [[drawing.HEAD] * 4, *[[drawing.CELL] * 4] * len(rows)]
    drawing.table(ax, text, tint, colWidths=[0.12, 0.36, 0.36, 0.16])
    return drawn, [
        "H_{1,eta} is the sum of Delta_i^-eta over the other arms, q = min(beta, 3/2). Constants "
        "and logarithms of T are left out. `latebloomer guarantees` has the numbers of a problem."
    ]


# --- Theorem 3: the instances nu and nu' ---

SHOWN_GAP, SHOWN_BETA, SHOWN_PULLS = 0.15, 2.0, 24


class InstancePoint(NamedTuple):
    """The mean of a pull in the instances of Theorem 3."""

    curve: str
    n: float
    mean: float


def instance_points(workbench: Workbench) -> list[InstancePoint]:
    """Return arm 0, and the other arm in nu and in nu', at fine steps of n."""
    pulls = np.linspace(1, SHOWN_PULLS, 231)
    nu, other = (lower_bound([SHOWN_GAP], SHOWN_BETA, winner) for winner in (None, 1))
    curves: Any = {
        r"$\mu_1 = \mu'_1$": nu.curves[0],
        r"$\mu_i$": nu.curves[1],
        r"$\mu'_i$": other.curves[1],
    }
    return [
        InstancePoint(name, float(n), float(mean))
        for name, curve in curves.items()
        for n, mean in zip(pulls, curve(pulls), strict=True)
    ]


@partial(Figure, "instances", "Theorem 3: the instances ν and ν′", instance_points)
def instances(pyplot: Any, rows: list[InstancePoint], mode: str) -> Shown:
    """Draw the three curves, with n* and T*."""
    drawn, ax = pyplot.subplots(figsize=(6.2, 3.6), layout="constrained")
    names = [*dict.fromkeys(row.curve for row in rows)]
    for name, color, dashes in zip(names, ("black", BLUE, RED), ("-", "-", "--"), strict=True):
        own = select(rows, curve=name)
        ax.plot([row.n for row in own], [row.mean for row in own], dashes, color=color, label=name)
    parts, change = (
        needed_pulls(SHOWN_GAP, SHOWN_BETA),
        (1 / (2 * SHOWN_GAP)) ** (1 / (SHOWN_BETA - 1)),
    )
    for at, name, height in ((parts, "$n_i^*$", 0.67), (change, "$T^*$", 0.03)):
        ax.axvline(at, color="0.6", lw=0.8, ls=":")
        ax.text(at, height, f" {name} = {at:.3g}", fontsize=9)
    ax.axhline(0.5, color="0.8", lw=0.8, zorder=0)
    ax.set(xlabel="$n$", ylabel=r"$\mu(n)$", xlim=(1, SHOWN_PULLS), ylim=(0, 0.72))
    drawing.label_ends(ax)
    return drawn, [
        f"beta = {SHOWN_BETA:g}, Delta_i = {SHOWN_GAP:g}. In nu arm i stops at 1/2 - Delta_i; in "
        f"nu' it rises to 1/2 + Delta_i. Both are equal up to n_i* = {parts:.3g} pulls of arm i, "
        f"and in nu arm 1 is the best one from T* = {change:.3g} on. "
        "As problems: lower-bound:K=9:beta=2:gap=0.1, and with :winner=3 for nu'."
    ]


def needed_pulls(gap: float, beta: float) -> float:
    """Return n_i*, the pulls up to which nu and nu' are equal [Mussi24, Thm 3, proof].

    >>> round(needed_pulls(0.25, beta=2), 6)  # (3/4) / (1/2)
    1.5
    """
    return ((0.5 + gap) / (2 * gap)) ** (1 / (beta - 1))


# --- the worst of a few instances ---

WORST = "worst"  # the panel of the largest errors


def _play_instances(
    workbench: Workbench,
    name: str,
    sigma: float,
    budgets: Sequence[int],
    panels: Sequence[str],
    instance_of: Callable[[str, int], Problem],
) -> list[Row]:
    """Return rows of all algorithms on the instance of each panel and budget, and on the worst."""

    def play(key: tuple[int, str]) -> list[Row]:
        budget, panel = key
        policies, problem = as_written_policies(sigma, "theory"), instance_of(panel, budget)
        return simulated_rows(workbench, problem, policies, budget, workbench.runs, panel)

    keys = [(budget, panel) for budget in budgets for panel in panels]
    rows = workbench.rows_of(name, keys, play)
    cells = dict.fromkeys((row.algorithm, row.T) for row in rows)
    worst = [largest(select(rows, algorithm=name, T=budget)) for name, budget in cells]
    return rows + [row._replace(panel=WORST) for row in worst]


# --- Theorem 3: below a budget no rule is right on every instance, even without noise ---

ARMS, BETA, GAP, SIGMA = 33, 2.0, 0.005, 1e-4
EXAMPLE = 890  # a budget below Theorem 3's at which the notes give other bounds
BUDGETS = (200, 300, 450, 600, 800, 1000, 1400, 2000, 3000, 5000, 10000, 20000)
WINNERS = (None, 1, ARMS // 2, ARMS - 1)  # nu, and nu^(i) for three arms i
TEST = 56  # pulls after which an uncapped arm is 10 sigma above the cap


def instance(winner: int | None) -> Problem:
    """Return nu, or nu^(i), in which arm i rises beyond the cap; else arms 1, 2, ... are equal."""
    return lower_bound([GAP] * (ARMS - 1), BETA, winner, SIGMA)


def smallest_budget() -> int:
    """Return the first T with T >= sum (1 / (8 Delta_i(T)))^(1/(beta-1)), with the gaps of nu."""
    nu, budget = instance(None), round(1 / GAP) + 1  # arm 0 is best from 1/(2 Delta) on
    while budget < lower_bounds.minimum_budget(nu.gaps(budget), BETA):
        budget += 1
    return budget


def proved_error(budget: int) -> float:
    """Return the error that the proof of Theorem 3 supports: at least (1 - T / sum n_i*) / 2.

    On nu^(i) arm i differs from nu after n_i* pulls, so errors on nu and nu^(i) sum to at least
    the probability that it is not pulled that often, and the n_i* add up to more than T.
    """
    needed = (ARMS - 1) * needed_pulls(GAP, BETA)
    return max(0.0, 1 - budget / needed) / 2


def tester_error(budget: int) -> float:
    """Return the worst error of a rule that tests arms drawn at random, `TEST` pulls each.

    The rule recommends the arm that it found above the cap, and arm 0 if it found none. So it is
    right on nu, and on nu^(i) if arm i is among the tested arms.

    >>> tester_error(890)  # 15 of 32 arms
    0.53125
    """
    return 1 - min(budget // TEST, ARMS - 1) / (ARMS - 1)


def lower_bound_rows(workbench: Workbench, budgets: Sequence[int] = BUDGETS) -> list[Row]:
    """Return every algorithm on four instances, and on the worst of them (panel "worst")."""
    instances = {f"{winner}": instance(winner) for winner in WINNERS}
    where = (budgets, [*instances], lambda panel, budget: instances[panel])
    return _play_instances(workbench, "lower-bound", SIGMA, *where)


@partial(Figure, "lower-bound", "Theorem 3: worst error of four instances", lower_bound_rows)
def lower_bound_figure(pyplot: Any, rows: list[Row], mode: str) -> Shown:
    """Draw the worst errors, and three computed lines with their names."""
    worst, least, guess = select(rows, panel=WORST), smallest_budget(), 1 - 1 / ARMS
    low = min((row for row in worst if least > row.T), key=lambda row: row.error_high)
    panels = {"": sorted(worst, key=lambda row: row.T)}
    drawn, axes = drawing.budget_panels(pyplot, panels, (7.4, 4.2), change=least)
    ax, first = axes[0, 0], BUDGETS[0]
    ax.axvspan(first * 0.9, least, color="0.93", lw=0, zorder=0)
    budgets = range(first, 2001, 8)  # up to budgets at which the nine algorithms are better
    for line, dashes, name, at in (
        ([guess] * len(budgets), ":", f"a guess, $1 - 1/K = {guess:.2f}$", (200, 1.06)),
        ([*map(tester_error, budgets)], "-", "arms tested\nat random", (960, 0.52)),
        ([*map(proved_error, budgets)], "--", "what the proof supports", (205, 0.15)),
    ):
        ax.plot(budgets, line, dashes, color="0.2", lw=1.1)
        ax.text(*at, name, fontsize=9, color="0.2")
    ax.text(
        least * 0.97,
        0.0,
        f"$T < {least}$: no rule is\nright on all instances",
        ha="right",
        fontsize=9,
    )
    ax.set(xlim=(first * 0.9, None), ylim=(-0.06, 1.14), ylabel="largest error over instances")
    drawing.label_ends(ax)
    return drawn, [
        f"{ARMS} arms, beta = {BETA:g}, all gaps {GAP:g} in the limit, sigma = {SIGMA:g}. Shown: "
        f"the largest error over nu and nu^(i), i in {WINNERS[1:]} (panel 'worst' of the file). "
        f"Below T = {least} Theorem 3 claims an error of at least 1 - 1/K = {guess:.3f}. The nine "
        f"are no better: the smallest is {low.error:g} ({low.algorithm}, T = {low.T}, 95 % "
        f"interval {low.error_low:.3f} to {low.error_high:.3f}).",
        "But the proof shows only that no rule is right on both nu and nu^(i): an error of "
        f"{proved_error(EXAMPLE):.3f} on one of them at T = {EXAMPLE}. A rule that tests random "
        f"arms, {TEST} pulls each, errs in {tester_error(EXAMPLE):.3f} of runs at worst there.",
    ]


# --- the proposition on concavity: two instances on which no algorithm's error falls with T ---

CONCAVITY_SIGMA = 1.0
CONCAVITY_BUDGETS = (10, 30, 100, 300, 1000, 3000, 10000)
CONCAVITY_PANELS = ("concave", "convex")  # nu, and nu' whose first arm jumps at its T-th pull


def concavity_rows(workbench: Workbench) -> list[Row]:
    """Return every algorithm on both instances, and on the worse of them."""

    def instance_of(panel: str, budget: int) -> Problem:
        curves = lower_bounds.concavity_instances(budget)[CONCAVITY_PANELS.index(panel)]
        return Problem(curves, Gaussian(CONCAVITY_SIGMA), label=f"concavity-{panel}")

    where = (CONCAVITY_BUDGETS, CONCAVITY_PANELS, instance_of)
    return _play_instances(workbench, "concavity", CONCAVITY_SIGMA, *where)


@partial(Figure, "concavity", "Without concavity errors stay (appendix F)", concavity_rows)
def concavity(pyplot: Any, rows: list[Row], mode: str) -> Shown:
    """Draw the larger of the two errors of each algorithm, and the bound."""
    worst, bound = select(rows, panel=WORST), lower_bounds.concavity_lower_bound(CONCAVITY_SIGMA)
    low = min(worst, key=lambda row: row.error)
    drawn, axes = drawing.budget_panels(pyplot, {"": worst}, (6.8, 3.6))
    ax = axes[0, 0]
    ax.axhline(bound, color="black", ls="--", lw=1.2)
    ax.text(rows[0].T, bound - 0.07, f"lower bound {bound:.4f}", fontsize=9)
    ax.set_ylabel("larger error of the two instances")
    drawing.label_ends(ax)
    return drawn, [
        "Two arms, sigma = 1: means 1/2 and 3/4, and in the second instance the first arm jumps "
        "to 1 at its T-th pull. Shown is the larger of the two errors (panel 'worst').",
        f"The proposition's bound is {bound:.4f}; the smallest measured value is {low.error:g} "
        f"({low.algorithm}, T = {low.T}).",
    ]
