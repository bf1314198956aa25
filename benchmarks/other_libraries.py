"""latebloomer beside Optuna's pruners, Ray Tune's ASHA and scikit-learn's halving.

    python -m benchmarks.other_libraries           plays, writes docs/comparison.csv
    python -m benchmarks.other_libraries --page    draws and prints what docs/comparison.md shows

The libraries themselves decide; curves are recorded, and all see the same. A budget of c full
trainings is c times the length of a curve, in pulls. Whoever is given scores one by one (pruners)
is played twice: arms one after the other, as with one worker, and all side by side, which suits
them better. The pick is the best latest score. scikit-learn trains anew at each rung, which
is charged; its rungs are the largest that the budget pays for.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from math import ceil, floor, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from latebloomer import Session
from latebloomer.bench import Curves, read_sets

SETS = ("lcdb11-linear", "lcdb11-geometric", "taskset", "srb-imdb", "yahpo")
BUDGETS = (1, 2, 4, 8)
PROBLEMS = 20  # of each set
BEST = "latebloomer auto"
DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("player", "set", "budget", "rank_loss", "regret", "spent", "microseconds")


class Played(NamedTuple):
    """What a player did with a budget."""

    pick: int
    spent: int
    seconds: float  # spent on decisions
    decisions: int


Player = Callable[[np.ndarray, int], Played]


# --- ours ---


def session_of(policy: str) -> Player:
    def play(rewards: np.ndarray, budget: int) -> Played:
        arms, length = rewards.shape
        began = time.perf_counter()
        session = Session(policy, arms, budget, length)
        while not session.over:
            arm = session.ask()
            session.tell(arm, rewards[arm, session.pulls[arm]])
        pick = session.recommend().arm
        return Played(pick, session.spent, time.perf_counter() - began, session.spent)

    return play


def at_random(rewards: np.ndarray, budget: int) -> Played:
    return Played(int(np.random.default_rng(budget).integers(len(rewards))), 0, 0.0, 1)


# --- pruners: told a score, they say whether that arm goes on ---


Stops = Callable[[int, int, float], bool]  # of an arm, its pulls and the score now


def pruned(make: Callable[[int, int], Stops], together: bool) -> Player:
    """A player that drops an arm when the function made for K arms of length L says so."""

    def play(rewards: np.ndarray, budget: int) -> Played:
        arms, length = rewards.shape
        stops, n, seconds = make(arms, length), [0] * arms, 0.0
        waiting = list(range(arms))
        while waiting and sum(n) < budget:
            arm = waiting.pop(0)
            n[arm] += 1
            began = time.perf_counter()
            over = stops(arm, n[arm], float(rewards[arm, n[arm] - 1]))
            seconds += time.perf_counter() - began
            if not over and n[arm] < length:
                waiting.insert(len(waiting) if together else 0, arm)
        latest = [rewards[arm, n[arm] - 1] if n[arm] else -np.inf for arm in range(arms)]
        return Played(int(np.argmax(latest)), sum(n), seconds, sum(n))

    return play


def optuna_halving(arms: int, length: int) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.SuccessiveHalvingPruner())


def optuna_hyperband(arms: int, length: int) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.HyperbandPruner(max_resource=length))


def by_optuna(pruner: Any) -> Stops:
    """Trials of a study in memory, one for each arm, in Optuna's own words."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    trials: dict[int, Any] = {}

    def stops(arm: int, n: int, score: float) -> bool:
        if arm not in trials:
            trials[arm] = study.ask()
        trials[arm].report(score, n)
        over = trials[arm].should_prune()
        if over:
            study.tell(trials[arm], state=optuna.trial.TrialState.PRUNED)
        return bool(over)

    return stops


def ray_asha(arms: int, length: int) -> Stops:
    """Ray Tune's scheduler without Ray: told results in its own form."""
    from ray.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(metric="score", mode="max", max_t=length)
    trials: dict[int, Any] = {}

    def stops(arm: int, n: int, score: float) -> bool:
        if arm not in trials:
            trials[arm] = SimpleNamespace(trial_id=str(arm))
            scheduler.on_trial_add(None, trials[arm])
        result = {"training_iteration": n, "score": score}
        return bool(scheduler.on_trial_result(None, trials[arm], result) == "STOP")

    return stops


# --- scikit-learn's halving: trains anew at each rung ---

SHOWN: dict[str, np.ndarray] = {}  # the rewards that the estimator below replays


def replaying() -> Any:
    from sklearn.base import BaseEstimator

    class Replay(BaseEstimator):
        """An arm, trained for n pulls."""

        def __init__(self, arm: int = 0, n: int = 1) -> None:
            self.arm, self.n = arm, n

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def score(self, X: Any, y: Any) -> float:
            return float(SHOWN["rewards"][self.arm, self.n - 1])

    return Replay()


def rung_sizes(arms: int, factor: int = 3) -> list[int]:
    return [ceil(arms / factor**i) for i in range(1 + floor(log(arms, factor) + 1e-9))]


def sklearn_halving(rewards: np.ndarray, budget: int) -> Played:
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV, PredefinedSplit

    arms, length = rewards.shape
    sizes = rung_sizes(arms)
    least = budget // sum(size * 3**i for i, size in enumerate(sizes))
    least = min(least, length // 3 ** (len(sizes) - 1))
    if least == 0:
        return at_random(rewards, budget)
    SHOWN["rewards"] = rewards
    began = time.perf_counter()
    search = HalvingGridSearchCV(
        replaying(), {"arm": list(range(arms))}, resource="n", factor=3, refit=False,
        min_resources=least, max_resources=least * 3 ** (len(sizes) - 1),
        cv=PredefinedSplit([-1, 0]),
    ).fit([[0], [0]], [0, 1])  # fmt: skip
    took = time.perf_counter() - began
    spent = int(np.dot(search.n_candidates_, search.n_resources_))
    return Played(search.best_params_["arm"], spent, took, sum(search.n_candidates_))


PLAYERS: dict[str, Player] = {
    "latebloomer auto": session_of("auto"),
    "latebloomer r-sr": session_of("r-sr"),
    "i-epoch (i = 1)": session_of("i-epoch"),
    "i-epoch (i = 10)": session_of("i-epoch:i=10"),
    "scikit-learn halving": sklearn_halving,
    "Optuna halving": pruned(optuna_halving, together=False),
    "Optuna halving, side by side": pruned(optuna_halving, together=True),
    "Optuna Hyperband": pruned(optuna_hyperband, together=False),
    "Optuna Hyperband, side by side": pruned(optuna_hyperband, together=True),
    "Ray Tune ASHA": pruned(ray_asha, together=False),
    "Ray Tune ASHA, side by side": pruned(ray_asha, together=True),
    "random": at_random,
}


# --- the comparison ---


def rows(problems: list[Curves]) -> Iterator[dict[str, Any]]:
    """A row for each player, problem and budget."""
    for number, curves in enumerate(problems):
        rng = np.random.default_rng(number)
        order = rng.permutation(curves.arms)
        rewards, truth = curves.tables(1, 0)[0][order], curves.truth[order]
        scale = max(1e-12, float(np.ptp(truth)))
        for name, play in PLAYERS.items():
            for budget in BUDGETS:
                played = play_some(play, rewards, curves.pulls_of(budget))
                loss = float(np.mean(truth > truth[played.pick]))
                regret = float(truth.max() - truth[played.pick]) / scale
                yield dict(zip(COLUMNS, (
                    name, curves.group, budget, round(loss, 5), round(regret, 5),
                    round(played.spent / curves.pulls_of(budget), 4),
                    round(1e6 * played.seconds / max(1, played.decisions), 2),
                ), strict=True))  # fmt: skip


def play_some(play: Player, rewards: np.ndarray, budget: int) -> Played:
    """On all arms, or on as many of the first (their order is random) as the player can play."""
    from latebloomer.errors import BudgetError

    for arms in range(len(rewards), 1, -1):
        try:
            return play(rewards[:arms], budget)
        except BudgetError:
            continue
    return at_random(rewards, budget)


def sampled() -> list[Curves]:
    """Problems of each set, drawn once and for all."""
    found, skipped = read_sets(SETS)
    for what, why in skipped:
        print(f"{what} is left out: {why}", file=sys.stderr)
    chosen: list[Curves] = []
    for group in SETS:
        of_group = [curves for curves in found if curves.group == group]
        places = np.random.default_rng(0).permutation(len(of_group))[:PROBLEMS]
        chosen += [of_group[place] for place in sorted(places)]
    return chosen


def summed(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Means over the problems of a set, and of the paired difference to `auto` its error."""
    ours = by_place(found, BEST)
    for player in PLAYERS:
        for (group, budget), rows_here in by_place(found, player).items():
            gap = np.subtract(
                column(rows_here, "rank_loss"), column(ours[group, budget], "rank_loss")
            )
            yield {
                "player": player, "set": group, "budget": budget, "problems": len(rows_here),
                "rank_loss": f"{np.mean(column(rows_here, 'rank_loss')):.4f}",
                "regret": f"{np.mean(column(rows_here, 'regret')):.4f}",
                "spent": f"{np.mean(column(rows_here, 'spent')):.3f}",
                "microseconds": f"{np.median(column(rows_here, 'microseconds')):.1f}",
                "error": f"{np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0:.4f}",
            }  # fmt: skip


def by_place(found: list[dict[str, Any]], player: str) -> dict[tuple[str, int], list[Any]]:
    """The rows of a player by set and budget."""
    places: dict[tuple[str, int], list[Any]] = {}
    for row in found:
        if row["player"] == player:
            places.setdefault((row["set"], row["budget"]), []).append(row)
    return places


def column(rows_here: list[dict[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows_here]


# --- the tables of docs/comparison.md ---


def mean(table: list[dict[str, Any]], player: str, what: str, **where: Any) -> float:
    """Over the sets and budgets that are meant, each counted once."""
    found = [
        float(row[what])
        for row in table
        if row["player"] == player and all(row[key] == value for key, value in where.items())
    ]
    return sum(found) / len(found)


def tables(table: list[dict[str, Any]]) -> str:
    """Rank loss by set and by budget, and the rest; the best of a column is bold."""
    places: list[tuple[str, str, dict[str, str]]] = [
        *((group, "rank_loss", {"set": group}) for group in SETS),
        *((f"c = {budget}", "rank_loss", {"budget": str(budget)}) for budget in BUDGETS),
        ("all", "rank_loss", {}),
        ("regret", "regret", {}),
    ]
    heads = ["", *(head for head, _, _ in places), "spent"]
    lines = [heads, ["---"] * len(heads)]
    best = [min(mean(table, one, what, **where) for one in PLAYERS) for _, what, where in places]
    for player in PLAYERS:
        values = [mean(table, player, what, **where) for _, what, where in places]
        shown = [
            f"**{decimal(value)}**" if value == least else decimal(value)
            for value, least in zip(values, best, strict=True)
        ]
        lines.append([player, *shown, f"{mean(table, player, 'spent'):.0%}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def decimal(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def lost(table: list[dict[str, Any]]) -> str:
    """Where somebody else picks better than `auto`, set by set and budget by budget."""
    lines = [["set", "budget", "who picks best", "its rank loss", BEST], ["---"] * 5]
    for group in SETS:
        for budget in map(str, BUDGETS):
            losses = {
                one: mean(table, one, "rank_loss", set=group, budget=budget) for one in PLAYERS
            }
            first = min(losses, key=losses.__getitem__)
            if losses[first] < losses[BEST]:
                lines.append([group, f"c = {budget}", first, decimal(losses[first]),
                              decimal(losses[BEST])])  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(table: list[dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.6, 4), layout="constrained")
    inks = plt.get_cmap("tab20")(np.linspace(0, 1, len(PLAYERS)))
    for player, ink in zip(PLAYERS, inks, strict=True):
        losses = [mean(table, player, "rank_loss", budget=str(budget)) for budget in BUDGETS]
        ours = player == BEST
        axes.plot(
            BUDGETS, losses, marker="o", lw=2.8 if ours else 1.3, zorder=3 if ours else 2,
            color="#c1272d" if ours else ink, ls="--" if "side by side" in player else "-",
            label=player,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(BUDGETS, [f"{budget}" for budget in BUDGETS])
    axes.set(xlabel="budget, in full trainings", ylabel="rank loss (0 is best)", ylim=(0, 0.52))
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "comparison.png", dpi=130)


def recorded() -> list[dict[str, Any]]:
    with (DOCS / "comparison.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    if "--page" not in sys.argv:
        table = list(summed(list(rows(sampled()))))
        with (DOCS / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    draw(recorded())
    print(tables(recorded()), lost(recorded()), sep="\n\n")


if __name__ == "__main__":
    main()
