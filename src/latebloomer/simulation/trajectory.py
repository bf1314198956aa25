"""One simulated run, pull by pull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from latebloomer._util.text import aligned, data_frame
from latebloomer.core.history import forget
from latebloomer.core.kernel import cpu_jit, kernel, plain
from latebloomer.core.ledger import ANY, OVER, RACERS, RUNS, Game, Ledger, reset
from latebloomer.core.moves import advance, final_rating, observe, recommend
from latebloomer.core.policy_moves import AT_PULLS, game_of, key, moves_of
from latebloomer.core.run_memory import arrays_for, lists_for
from latebloomer.errors import extra, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of
from latebloomer.problems import Problem
from latebloomer.problems import problem as problem_of
from latebloomer.simulation.experiment import experiment_of
from latebloomer.simulation.one_run import (
    RewardSource,
    draw_of,
    leave_order,
    order_of,
    pull,
    same_arm,
)
from latebloomer.simulation.players import source_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 20  # maximum pulls that are printed: the first and the last ones
COLUMNS = ("pull", "arm", "of_arm", "reward", "estimate", "rating", "racing")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run of a policy on a problem, pull by pull; `print` it.

    Attributes
    ----------
    problem : str
        Label of the problem.
    policy : str
        Label of the policy.
    names : tuple[str, ...]
        Names of the arms.
    seed : int
        Seed of the run.
    run : int
        Number of the run.
    arms : Any
        Arm of each pull, as an array.
    rewards : Any
        Reward of each pull.
    estimates : Any
        Value by which the pulled arm is ranked for the recommendation, after the pull.
    ratings : Any
        Value by which the policy ranks the pulled arm, after the pull; for R-UCBE, its bound.
    racing : Any
        Number of arms that are not dropped yet, after the pull.
    recommended : int
        Arm that the policy recommends at the end.
    """

    problem: str
    policy: str
    names: tuple[str, ...]
    seed: int
    run: int
    arms: Any
    rewards: Any
    estimates: Any
    ratings: Any
    racing: Any
    recommended: int

    def __len__(self) -> int:
        return len(self.arms)

    def rows(self, first: int = 1, last: int | None = None) -> list[dict[str, Any]]:
        """Return the pulls `first` to `last`, counted from 1. Default: all pulls."""
        part = slice(first - 1, last)
        of_arm = self._of_arm()
        several = (self.arms, of_arm, self.rewards, self.estimates, self.ratings, self.racing)
        lists = (column[part].tolist() for column in several)
        return [
            dict(zip(COLUMNS, (first + k, self.names[arm], *rest), strict=True))
            for k, (arm, *rest) in enumerate(zip(*lists, strict=True))
        ]

    def _of_arm(self) -> Any:
        """Return, for each pull, its number among the pulls of its arm, from 1."""
        numbers = np.zeros(len(self), np.int64)
        for arm in range(len(self.names)):
            mine = np.flatnonzero(self.arms == arm)
            numbers[mine] = np.arange(1, len(mine) + 1)
        return numbers

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """Return all pulls as a pandas data frame; `index` names columns for its index."""
        names = np.array(self.names, dtype=object)[self.arms]
        several = (names, self._of_arm(), self.rewards, self.estimates, self.ratings, self.racing)
        pulls = np.arange(1, len(self) + 1)
        return data_frame(dict(zip(COLUMNS, (pulls, *several), strict=True)), index)

    def __str__(self) -> str:
        about = f"{self.policy} on {self.problem}, seed {self.seed}, run {self.run}"
        head = [name.replace("_", " ") for name in COLUMNS]
        half, count = SHOWN // 2, len(self)
        shown = self.rows(1, half if count > SHOWN else None)
        lines = [head, *(_cells(row) for row in shown)]
        if count > SHOWN:
            lines.append(["...", *[""] * (len(head) - 1)])
            lines += [_cells(row) for row in self.rows(count - half + 1)]
        ends = f"recommended: {self.names[self.recommended]}"
        return "\n".join([about, *aligned(lines, "><" + ">" * (len(head) - 2)), ends])

    def plot(self, what: str = "estimate", ax: Any = None) -> Axes:
        """Draw the "estimate", "rating" or "reward" of each arm, or its number of "pulls".

        Each arm has a line over the pulls of the run.
        """
        columns = {"estimate": self.estimates, "rating": self.ratings, "reward": self.rewards}
        columns["pulls"] = self._of_arm()
        require(what in columns, "what", what, f"one of {', '.join(columns)}", "these are drawn")
        pyplot = extra("matplotlib.pyplot", "plots", "plots")
        from latebloomer.page.figures import COLORS, finish, label_ends

        ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        ends = []
        for arm, name in enumerate(self.names):
            at = np.flatnonzero(self.arms == arm)
            if len(at):
                color, values = COLORS[arm % len(COLORS)], columns[what][at]
                ax.plot(at + 1, values, color=color, marker=".", markersize=3, linewidth=1)
                ends.append((float(values[-1]), name, color))
        ax.set(xlabel="pulls of the run", ylabel=what)
        label_ends(ax, ends)
        finish(ax, f"{self.policy} on {self.problem}, run {self.run}")
        return ax


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]


@kernel
def trace(
    game: Game,
    ledger: Ledger,
    source: RewardSource,
    run: int,
    arms: Any,
    rewards: Any,
    estimates: Any,
    ratings: Any,
    racing: Any,
) -> int:
    """Simulate one run like `play`, record every pull, and return the recommended arm."""
    reset(ledger)
    forget(ledger)
    leave_order(source.order, game.seed, run)
    i = advance(game, ledger, ANY, run)
    t = 0
    while i != OVER:
        arm = same_arm(source.order, i)
        reward = pull(source, game.seed, run, arm, ledger.n[i])
        observe(game, ledger, i, reward)
        arms[t], rewards[t], ratings[t] = arm, reward, ledger.rating[i]
        estimates[t] = final_rating(game.settings, ledger, i, game.budget, game.horizon)
        i = advance(game, ledger, i, run)
        racing[t] = ledger.cursor[RACERS]
        t += 1
    return same_arm(source.order, recommend(game, ledger))


def trajectory(
    problem: Problem | str,
    policy: Policy | str,
    budget: int,
    seed: int = 0,
    run: int = 0,
    *,
    horizon: int | None = None,
) -> Trajectory:
    """Return one run of a policy pull by pull: the same run that `simulate` counts.

    Parameters
    ----------
    problem : Problem | str
        Problem or its name.
    policy : Policy | str
        Policy or its name.
    budget : int
        Total number of pulls.
    seed : int
        Seed for rewards and random policies.
    run : int
        Number of the run.
    horizon : int | None
        Number of pulls per arm at which arms are compared. Default: the budget.

    Returns
    -------
    Trajectory
        The pulls, with rewards and estimates; `print`, `plot` or `to_frame`.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.

    Examples
    --------
    >>> print(trajectory("paper-a:noise=none", "r-sr", 8))
    r-sr on paper-a:noise=none, seed 0, run 0
    pull  arm    of arm   reward  estimate   rating  racing
       1  arm 0       1  0.02...
    """
    setting = problem_of(problem)
    need_whole("budget", budget)
    require(0 <= need_whole("run", run) < RUNS, "run", run, f"from 0 to {RUNS - 1}",
            "runs are numbered below 2^48")  # fmt: skip
    experiment = experiment_of(setting, {"one": policy}, budget, horizon, key(seed), "pulls")
    (chosen,) = experiment.policies.values()
    compiled = find_spec("numba") is not None
    sizes = (experiment.arms, budget, experiment.horizon, experiment.seed)
    game = game_of(chosen, *sizes, compiled=compiled)
    longest = experiment.most_pulls(chosen)
    ledger = (arrays_for if compiled else lists_for)(chosen, experiment.arms, longest)
    columns = [np.zeros(budget, kind) for kind in (np.int64, float, float, float, np.int64)]
    bound = (*AT_PULLS, *order_of(type(chosen)), *draw_of(setting.noise))
    play = moves_of(type(chosen), trace, cpu_jit() if compiled else plain, bound)
    best = play(game, ledger, source_of(experiment), run, *columns)
    done = int(sum(ledger.n))
    arms, rewards, estimates, ratings, racing = (column[:done] for column in columns)
    names = tuple(setting.names)
    return Trajectory(
        setting.label, label_of(chosen), names, seed, run, arms, rewards, estimates, ratings,
        racing, int(best),
    )  # fmt: skip
