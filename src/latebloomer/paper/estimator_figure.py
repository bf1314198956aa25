"""Figure of section 3: both estimators and the bonus of one arm, from a real run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.estimators import follow, projected_mean_of, recent_mean_of
from latebloomer.paper.experiments import SETTING_B, WINDOW
from latebloomer.paper.figure import Figure, Made, Workbench
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.problems.curves import Floats
from latebloomer.session.session import Session
from latebloomer.theory import optimistic_width

BUDGET, ROUNDS, ARM = 200, 190, 1
EXPLORATION = 20.0  # less than the authors' 129, so that the bonus is not the whole picture
BLUE, RED = "#0077bb", "#cc3311"


class Point(NamedTuple):
    """A pull of the arm, or what is known of it after the last one."""

    what: str
    n: int
    value: float


class Estimates(NamedTuple):
    """What the rewards of the arm say after the last pull."""

    h: int
    pessimistic: float
    optimistic: float
    bonus: float


def make(bench: Workbench) -> Made:
    """Rewards of arm 2 of setting B after 190 rounds of R-UCBE, T = 200."""
    rewards = _rewards()
    n, sums = len(rewards), follow(rewards, WINDOW)
    bonus = float(optimistic_width(SETTING_B.sigma, EXPLORATION, n, BUDGET, WINDOW))
    estimates = Estimates(sums.h, recent_mean_of(sums), projected_mean_of(sums, BUDGET), bonus)
    means = SETTING_B.problem().means(BUDGET)[ARM]
    rows = [Point("reward", i + 1, float(x)) for i, x in enumerate(rewards)]
    rows += [Point("mean", i + 1, float(x)) for i, x in enumerate(means)]
    rows += [Point("pessimistic", n, estimates.pessimistic)]
    rows += [Point("optimistic", n, estimates.optimistic), Point("bonus", n, estimates.bonus)]
    note = (
        f"Arm 2 of setting B after {ROUNDS} of {BUDGET} rounds of R-UCBE (a = {EXPLORATION:g}): "
        f"{n} pulls, windows of {estimates.h}. Its mean at {BUDGET} pulls is {means[-1]:.3f}; the "
        f"pessimistic estimate is {estimates.pessimistic:.3f}, the optimistic one "
        f"{estimates.optimistic:.3f}, the bonus {estimates.bonus:.3f}."
    )
    return Made(rows, lambda pyplot: _draw(pyplot, rewards, means, estimates), [note])


def _rewards() -> Floats:
    """The rewards of the arm in a session of R-UCBE on setting B."""
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


def _draw(pyplot: Any, rewards: Floats, means: Floats, estimates: Estimates) -> Any:
    n, h = len(rewards), estimates.h
    figure, ax = pyplot.subplots(figsize=(7.2, 4), layout="constrained")
    ax.plot(range(1, BUDGET + 1), means, color="black", lw=1.6, label=r"$\mu_i(n)$")
    ax.plot(range(1, n + 1), rewards, ".", color="0.55", ms=4, label="rewards")
    middle = n - (h - 1) / 2
    ax.plot([middle, BUDGET], [estimates.pessimistic] * 2, "--", color=BLUE, lw=2)
    ax.plot([middle, BUDGET], [estimates.pessimistic, estimates.optimistic], "--", color=RED, lw=2)
    for edge in (n - 2 * h + 0.5, n - h + 0.5, n + 0.5, BUDGET):
        ax.axvline(edge, color="0.6", lw=0.7, ls=":")
    _label_windows(ax, n, h)
    _label_levels(ax, estimates)
    ax.set(xlabel="$n$", xlim=(0, BUDGET + 62), ylim=(0, None))
    ax.set_xticks([0, n, BUDGET], ["0", "$N_{i,t-1}$", "$T$"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False, bbox_to_anchor=(0.72, 0.05))
    return figure


def _label_windows(ax: Any, n: int, h: int) -> None:
    for right, name in ((n, r"$\tau$"), (n - h, r"$\tau'$")):
        ax.annotate("", (right + 0.5, 0.07), (right - h + 0.5, 0.07),
                    arrowprops={"arrowstyle": "<->", "lw": 0.8})  # fmt: skip
        ax.text(right - h / 2 + 0.5, 0.085, name, ha="center")
    ax.text(n - h + 0.5, 0.02, "$h(N_{i,t-1})$ each", ha="center", fontsize=9)


def _label_levels(ax: Any, estimates: Estimates) -> None:
    """Braces at the right: the two estimates, the bonus and their sum."""
    top = estimates.optimistic + estimates.bonus
    levels = (
        (BUDGET + 6, 0.0, estimates.pessimistic, BLUE, r"$\hat\mu_i$"),
        (BUDGET + 22, 0.0, estimates.optimistic, RED, r"$\overset{\vee}{\mu}_i^{\,T}$"),
        (BUDGET + 22, estimates.optimistic, top, "black", r"$\overset{\vee}{\beta}_i^{\,T}$"),
        (BUDGET + 42, 0.0, top, "black", r"$B_i^T$"),
    )
    for x, low, high, ink, name in levels:
        ax.annotate("", (x, high), (x, low), arrowprops={"arrowstyle": "<->", "color": ink})
        ax.text(x + 4, (low + high) / 2, name, color=ink, va="center")
    for level, x in ((estimates.pessimistic, 6), (estimates.optimistic, 22), (top, 42)):
        ax.plot([BUDGET, BUDGET + x], [level] * 2, color="0.6", lw=0.7, ls=":")


FIGURE = Figure(
    "estimators", "The pessimistic and the optimistic estimator, and the bonus (section 3)", make
)
