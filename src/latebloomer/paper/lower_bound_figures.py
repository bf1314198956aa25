"""What no algorithm can do: be right on all of Theorem 3's instances, or do without concavity.

Both figures show the error of each algorithm on the worst of a few instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from latebloomer.paper import as_written as written
from latebloomer.paper import drawing
from latebloomer.paper.figure import Figure, Made, Row, Workbench, select
from latebloomer.paper.modes import AS_WRITTEN
from latebloomer.problems import Gaussian, Problem, lower_bound
from latebloomer.theory import lower_bounds

WORST = "worst"  # the panel of the largest errors


def _play_instances(
    bench: Workbench,
    name: str,
    sigma: float,
    budgets: Sequence[int],
    panels: Sequence[str],
    instance_of: Callable[[str, int], Problem],
) -> list[Row]:
    """Every algorithm on the instance of each panel and budget, and on the worst of them."""

    def play(key: tuple[int, str]) -> list[Row]:
        budget, panel = key
        nine, problem = written.the_nine(sigma, "theory"), instance_of(panel, budget)
        return written.rows(problem, nine, budget, bench.runs, bench.jobs, panel=panel)

    keys = [(budget, panel) for budget in budgets for panel in panels]
    name = f"{name}.{AS_WRITTEN}.{bench.runs}"
    rows = bench.parts(name, keys, lambda row: (row.T, row.panel), play)
    return rows + _worst_of(rows)


def _worst_of(rows: list[Row]) -> list[Row]:
    """For each algorithm and budget the row of the instance with the largest error."""
    return [
        max(select(rows, algorithm=name, T=budget), key=lambda row: row.error)._replace(
            panel=WORST
        )
        for name, budget in dict.fromkeys((row.algorithm, row.T) for row in rows)
    ]


# --- Theorem 3: below a budget nobody is right on every instance, even without noise ---

ARMS, BETA, GAP, SIGMA = 33, 2.0, 0.005, 1e-4
TOLD = 890  # a budget below Theorem 3's at which other bounds are told
BUDGETS = (200, 300, 450, 600, 800, 1000, 1400, 2000, 3000, 5000, 10000, 20000)
WINNERS = (None, 1, ARMS // 2, ARMS - 1)  # nu, and nu^(i) for three arms i
CAP = 0.5 - GAP  # where every arm but the first stops rising on nu
TEST = 56  # pulls after which an arm that goes on rising is 10 sigma above the cap


def instance(winner: int | None) -> Problem:
    """nu, or nu^(i) where arm i goes on rising; arms 1, 2, ... are alike but for their number."""
    return lower_bound([GAP] * (ARMS - 1), BETA, winner, SIGMA)


def smallest_budget() -> int:
    """The first T with T >= sum (1 / (8 Delta_i(T)))^(1/(beta-1)), the gaps those of nu at T."""
    nu, budget = instance(None), round(1 / GAP) + 1  # arm 0 is best from 1/(2 Delta) on
    while budget < lower_bounds.minimum_budget(nu.gaps(budget), BETA):
        budget += 1
    return budget


def proved_error(budget: int) -> float:
    """What the proof of Theorem 3 supports: some error is at least (1 - T / sum n_i*) / 2.

    On nu^(i) arm i differs from nu after n_i* pulls, so errors on nu and nu^(i) sum to at least
    the probability that it is not pulled so often, and the n_i* add up to more than T.
    """
    needed = (ARMS - 1) * ((0.5 + GAP) / (2 * GAP)) ** (1 / (BETA - 1))
    return max(0.0, 1 - budget / needed) / 2


def tester_error(budget: int) -> float:
    """The worst error of a rule that tests arms drawn at random, `TEST` pulls each.

    It recommends the arm it found above the cap, and arm 0 if there is none: right on nu, and on
    nu^(i) whenever arm i is among those it tests.

    >>> tester_error(890)  # 15 of 32 arms
    0.53125
    """
    return 1 - min(budget // TEST, ARMS - 1) / (ARMS - 1)


def measure(bench: Workbench, budgets: Sequence[int] = BUDGETS) -> list[Row]:
    """Every algorithm on four instances, and on the worst of them (panel "worst")."""
    winners = {f"{winner}": winner for winner in WINNERS}

    def instance_of(panel: str, budget: int) -> Problem:
        return instance(winners[panel])

    return _play_instances(bench, "lower-bound", SIGMA, budgets, list(winners), instance_of)


def make_lower_bound(bench: Workbench) -> Made:
    """The error of each algorithm on the worst of four instances."""
    rows = measure(bench)
    worst, least, guess = select(rows, panel=WORST), smallest_budget(), 1 - 1 / ARMS
    low = min((row for row in worst if least > row.T), key=lambda row: row.error_high)
    notes = [
        f"{ARMS} arms, beta = {BETA:g}, all gaps {GAP:g} in the limit, sigma = {SIGMA:g}. Shown: "
        f"the largest error over nu and nu^(i), i in {WINNERS[1:]} (panel 'worst' of the file). "
        f"Below T = {least} Theorem 3 claims, for every algorithm, an instance with error at "
        f"least 1 - 1/K = {guess:.3f}. The nine are no better: the smallest such error is "
        f"{low.error:g} ({low.algorithm}, T = {low.T}, 95 % interval {low.error_low:.3f} to "
        f"{low.error_high:.3f}).",
        "But the proof shows only that no rule is right on both nu and nu^(i): an error of "
        f"{proved_error(TOLD):.3f} on one of them at T = {TOLD}. A rule that tests arms drawn at "
        f"random, {TEST} pulls each, errs in {tester_error(TOLD):.3f} of runs at worst there.",
    ]
    return Made(rows, lambda pyplot: _draw_lower_bound(pyplot, worst, least, guess), notes)


def _draw_lower_bound(pyplot: Any, rows: list[Row], least: int, guess: float) -> Any:
    figure, ax = pyplot.subplots(figsize=(7.4, 4.2), layout="constrained")
    ax.axvspan(rows[0].T * 0.9, least, color="0.93", lw=0, zorder=0)
    drawing.curves(ax, sorted(rows, key=lambda row: row.T))
    drawing.mark_change(ax, least)
    _line(ax, lambda budget: guess, ":", f"a guess, $1 - 1/K = {guess:.2f}$", (200, 1.06))
    _line(ax, tester_error, "-", "arms tested\nat random", (960, 0.52))
    _line(ax, proved_error, "--", "what the proof supports", (205, 0.15))
    ax.text(least * 0.97, 0.0, f"$T < {least}$: no rule is\nright on all instances",
            ha="right", fontsize=9)  # fmt: skip
    ax.set_xlim(rows[0].T * 0.9, None)
    ax.set_ylim(-0.06, 1.14)
    ax.set_ylabel("largest error over instances")
    drawing.label_ends(ax)
    return figure


def _line(
    ax: Any, value: Callable[[int], float], dashes: str, name: str, at: tuple[float, float]
) -> None:
    """A computed line in dark grey, named beside it, up to where the nine do better."""
    budgets = range(BUDGETS[0], 2001, 8)
    ax.plot(budgets, [value(budget) for budget in budgets], dashes, color="0.2", lw=1.1)
    ax.text(*at, name, fontsize=9, color="0.2")


# --- the proposition on concavity: two instances on which no algorithm's error falls with T ---

CONCAVITY_SIGMA = 1.0
CONCAVITY_BUDGETS = (10, 30, 100, 300, 1000, 3000, 10000)
CONCAVITY_PANELS = ("concave", "convex")  # nu, and nu' whose first arm jumps at its T-th pull


def _concavity_instance(panel: str, budget: int) -> Problem:
    curves = lower_bounds.concavity_instances(budget)[CONCAVITY_PANELS.index(panel)]
    return Problem(curves, Gaussian(CONCAVITY_SIGMA), label=f"concavity-{panel}")


def make_concavity(bench: Workbench) -> Made:
    """The larger of the two errors of each algorithm."""
    rows = _play_instances(
        bench,
        "concavity",
        CONCAVITY_SIGMA,
        CONCAVITY_BUDGETS,
        CONCAVITY_PANELS,
        _concavity_instance,
    )
    worst, bound = select(rows, panel=WORST), lower_bounds.concavity_lower_bound(CONCAVITY_SIGMA)
    low = min(worst, key=lambda row: row.error)
    notes = [
        "Two arms, sigma = 1: means 1/2 and 3/4, and in the second instance the first arm jumps "
        "to 1 at its T-th pull. Shown is the larger of the two errors (panel 'worst').",
        f"The proposition's bound is {bound:.4f}; the smallest measured value is {low.error:g} "
        f"({low.algorithm}, T = {low.T}).",
    ]
    return Made(rows, lambda pyplot: _draw_concavity(pyplot, worst, bound), notes)


def _draw_concavity(pyplot: Any, rows: list[Row], bound: float) -> Any:
    figure, ax = pyplot.subplots(figsize=(6.8, 3.6), layout="constrained")
    drawing.curves(ax, rows)
    ax.axhline(bound, color="black", ls="--", lw=1.2)
    ax.text(rows[0].T, bound - 0.07, f"lower bound {bound:.4f}", fontsize=9)
    ax.set_ylabel("larger error of the two instances")
    drawing.label_ends(ax)
    return figure


LOWER_BOUND = Figure(
    "lower-bound",
    "Theorem 3: a budget below which no algorithm is right on every instance",
    make_lower_bound,
)
CONCAVITY = Figure(
    "concavity", "Without concavity no error falls with T (appendix F)", make_concavity
)
