"""latebloomer compared with Optuna's pruners, Ray Tune's ASHA and scikit-learn's halving.

    python -m benchmarks.other_libraries    takes several minutes, writes docs/comparison.csv

The libraries themselves decide; curves are recorded, and all see the same. A budget of c full
trainings is c times the length of a curve, in pulls. `docs/tools/comparison_page.py` makes the
tables and the picture of docs/comparison.md, and runs a sample whenever the site is built.

Each library is used as favorably as possible:

- Pruners receive scores one by one. They run with arms one after the other, as with one worker,
  and with all arms side by side, as with a worker for each, which suits them better; and side by
  side once more with the best of some settings, chosen in hindsight (`TUNED`).
- Trials that reach the full length are reported as complete: Optuna's halving learns from the
  first of them where its rungs are, and prunes nothing before.
- Brackets of Optuna's Hyperband are drawn by the name of a study: each problem has its own.
- Pruners know no total budget: they are stopped when it is spent. The pick is the best latest
  score, the best of four ways that were tried.
- scikit-learn trains from scratch at each rung, which is charged; its rungs are the largest that
  the budget pays for. If it pays for none, fewer arms are used, as with our own policies.
"""

from __future__ import annotations

import csv
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from latebloomer import Session
from latebloomer.bench.curve_sets import Curves, read_sets
from latebloomer.errors import BudgetError

SETS = ("lcdb11-linear", "lcdb11-geometric", "taskset", "srb-imdb", "yahpo")
BUDGETS = (1, 2, 4, 8)
PROBLEMS = 92  # of each set, as many as the smallest has
SAMPLE = 20  # of these, which run whenever the site is built
BEST = "latebloomer auto"
FILE = Path(__file__).parents[1] / "docs" / "comparison.csv"
Row = dict[str, Any]


class Played(NamedTuple):
    """What a method did with a budget."""

    pick: int
    spent: int
    decisions: int


Player = Callable[[np.ndarray, int], Played]


# --- ours, and rules that are one line ---


def session_of(policy: str) -> Player:
    def play(rewards: np.ndarray, budget: int) -> Played:
        arms, length = rewards.shape
        session = Session(policy, arms, budget, length)
        while not session.over:
            arm = session.ask()
            session.tell(arm, rewards[arm, session.pulls[arm]])
        return Played(session.recommend().arm, session.spent, session.spent)

    return play


def at_random(rewards: np.ndarray, budget: int) -> Played:
    return Played(int(np.random.default_rng(budget).integers(len(rewards))), 0, 1)


# --- pruners: they receive a score and return whether that arm is dropped ---


Stops = Callable[[int, int, float], bool]  # of an arm, its pulls and the score now


def pruned(make: Callable[[int, str], Stops], together: bool) -> Player:
    """Return a method that drops an arm when the function for a length and a name says so."""

    def play(rewards: np.ndarray, budget: int) -> Played:
        arms, length = rewards.shape
        stops, n = make(length, str(zlib.crc32(rewards.tobytes()))), [0] * arms
        waiting, spent = list(range(arms)), 0
        while waiting and spent < budget:
            arm = waiting.pop(0)
            n[arm], spent = n[arm] + 1, spent + 1
            over = stops(arm, n[arm], float(rewards[arm, n[arm] - 1]))
            if not over and n[arm] < length:
                waiting.insert(len(waiting) if together else 0, arm)
        latest = [rewards[arm, n[arm] - 1] if n[arm] else -np.inf for arm in range(arms)]
        return Played(int(np.argmax(latest)), spent, spent)

    return play


def keep_all(length: int, name: str) -> Stops:
    """Return a pruner that drops no arm: all are trained equally."""
    return lambda arm, n, score: False


# The best of factors 2, 3, 4 with first rungs of 1 pull and 2, 5, 10 and 20 % of a training
# (Hyperband: 1 pull, 5 and 10 %), by the mean rank loss on half of the sample, side by side.
TUNED = {"Optuna halving": (0.05, 3), "Optuna Hyperband": (0, 4), "Ray Tune ASHA": (0.05, 4)}


def first_rung(library: str, length: int) -> int:
    return max(1, round(TUNED[library][0] * length))


def optuna_halving(length: int, name: str) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.SuccessiveHalvingPruner(), length, name)


def optuna_halving_tuned(length: int, name: str) -> Stops:
    import optuna

    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=first_rung("Optuna halving", length),
        reduction_factor=TUNED["Optuna halving"][1],
    )
    return by_optuna(pruner, length, name)


def optuna_hyperband(length: int, name: str) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.HyperbandPruner(max_resource=length), length, name)


def optuna_hyperband_tuned(length: int, name: str) -> Stops:
    import optuna

    pruner = optuna.pruners.HyperbandPruner(
        min_resource=first_rung("Optuna Hyperband", length), max_resource=length,
        reduction_factor=TUNED["Optuna Hyperband"][1],
    )  # fmt: skip
    return by_optuna(pruner, length, name)


def by_optuna(pruner: Any, length: int, name: str) -> Stops:
    """Use trials of a study in memory, one for each arm."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", pruner=pruner, study_name=name)
    trials: dict[int, Any] = {}

    def stops(arm: int, n: int, score: float) -> bool:
        if arm not in trials:
            trials[arm] = study.ask()
        trial = trials[arm]
        trial.report(score, n)
        over = trial.should_prune()
        if over:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif n == length:
            study.tell(trial, score)
        return bool(over)

    return stops


def ray_asha(length: int, name: str) -> Stops:
    return by_ray(length)


def ray_asha_tuned(length: int, name: str) -> Stops:
    return by_ray(
        length,
        grace_period=first_rung("Ray Tune ASHA", length),
        reduction_factor=TUNED["Ray Tune ASHA"][1],
    )


def by_ray(length: int, **settings: Any) -> Stops:
    """Use Ray Tune's scheduler without Ray; it receives results in its own form."""
    from ray.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(metric="score", mode="max", max_t=length, **settings)
    trials: dict[int, Any] = {}

    def stops(arm: int, n: int, score: float) -> bool:
        if arm not in trials:
            trials[arm] = SimpleNamespace(trial_id=str(arm))
            scheduler.on_trial_add(None, trials[arm])
        result = {"training_iteration": n, "score": score}
        return bool(scheduler.on_trial_result(None, trials[arm], result) == "STOP")

    return stops


# --- scikit-learn's halving: trains from scratch at each rung ---

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
        raise BudgetError(f"{budget} pulls are too few for the rungs of {arms} arms")
    SHOWN["rewards"] = rewards
    search = HalvingGridSearchCV(
        replaying(), {"arm": list(range(arms))}, resource="n", factor=3, refit=False,
        min_resources=least, max_resources=least * 3 ** (len(sizes) - 1),
        cv=PredefinedSplit([-1, 0]), return_train_score=False,
    ).fit([[0], [0]], [0, 1])  # fmt: skip
    spent = int(np.dot(search.n_candidates_, search.n_resources_))
    return Played(search.best_params_["arm"], spent, sum(search.n_candidates_))


PLAYERS: dict[str, Player] = {
    "latebloomer auto": session_of("auto"),
    "latebloomer r-sr": session_of("r-sr"),
    "i-epoch (i = 1)": session_of("i-epoch"),
    "i-epoch (i = 10)": session_of("i-epoch:i=10"),
    "nobody dropped": pruned(keep_all, together=True),
    "scikit-learn halving": sklearn_halving,
    "Optuna halving, one worker": pruned(optuna_halving, together=False),
    "Optuna halving, side by side": pruned(optuna_halving, together=True),
    "Optuna halving, tuned": pruned(optuna_halving_tuned, together=True),
    "Optuna Hyperband, one worker": pruned(optuna_hyperband, together=False),
    "Optuna Hyperband, side by side": pruned(optuna_hyperband, together=True),
    "Optuna Hyperband, tuned": pruned(optuna_hyperband_tuned, together=True),
    "Ray Tune ASHA, one worker": pruned(ray_asha, together=False),
    "Ray Tune ASHA, side by side": pruned(ray_asha, together=True),
    "Ray Tune ASHA, tuned": pruned(ray_asha_tuned, together=True),
    "random": at_random,
}


# --- the comparison ---


def rows(problems: Sequence[Curves], players: Sequence[str] = tuple(PLAYERS)) -> Iterator[Row]:
    """Yield a row for each method, problem and budget; arms are in a random order."""
    for curves in problems:
        order = np.random.default_rng(zlib.crc32(curves.name.encode())).permutation(curves.arms)
        rewards, truth = curves.tables(1, 0)[0][order], curves.truth[order]
        scale = max(1e-12, float(np.ptp(truth)))
        for name in players:
            for budget in BUDGETS:
                pulls = curves.pulls_of(budget)
                began = time.process_time()
                played = play_some(PLAYERS[name], rewards, pulls)
                seconds = time.process_time() - began
                yield {
                    "player": name, "set": curves.group, "budget": budget,
                    "rank_loss": float(np.mean(truth > truth[played.pick])),
                    "regret": float(truth.max() - truth[played.pick]) / scale,
                    "spent": played.spent / pulls,
                    "microseconds": 1e6 * seconds / max(1, played.decisions),
                }  # fmt: skip


def play_some(play: Player, rewards: np.ndarray, budget: int) -> Played:
    """Use all arms, or as many of the first (their order is random) as the method can."""
    for arms in range(len(rewards), 1, -1):
        try:
            return play(rewards[:arms], budget)
        except BudgetError:
            continue
    return at_random(rewards, budget)


def chosen(count: int) -> list[Curves]:
    """Return that many problems of each set, drawn once; the first are those of the sample."""
    found, skipped = read_sets(SETS)
    for what, why in skipped:
        print(f"{what} is left out: {why}", file=sys.stderr)
    problems: list[Curves] = []
    for group in SETS:
        of_group = [curves for curves in found if curves.group == group]
        places = np.random.default_rng(0).permutation(len(of_group))[:count]
        problems += [of_group[place] for place in places]
    return problems


def summed(found: Sequence[Row]) -> Iterator[Row]:
    """Yield means over the problems of a set, and the error of the difference to `auto`."""
    ours = by_place(found, BEST)
    for player in dict.fromkeys(row["player"] for row in found):
        for (group, budget), here in by_place(found, player).items():
            gap = column(here, "rank_loss") - column(ours[group, budget], "rank_loss")
            error = np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
            yield {
                "player": player, "set": group, "budget": str(budget), "problems": str(len(here)),
                "rank_loss": f"{np.mean(column(here, 'rank_loss')):.4f}",
                "regret": f"{np.mean(column(here, 'regret')):.4f}",
                "spent": f"{np.mean(column(here, 'spent')):.3f}",
                "microseconds": f"{np.median(column(here, 'microseconds')):.1f}",
                "error": f"{error:.4f}",
            }  # fmt: skip


def by_place(found: Sequence[Row], player: str) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of a method by set and budget."""
    places: dict[tuple[str, int], list[Row]] = {}
    for row in found:
        if row["player"] == player:
            places.setdefault((row["set"], row["budget"]), []).append(row)
    return places


def column(found: Sequence[Row], name: str) -> np.ndarray:
    return np.array([row[name] for row in found])


# --- the file ---


def write(table: Sequence[Row], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def recorded(problems: int = PROBLEMS, file: Path = FILE) -> list[Row]:
    """Return what was measured with that many problems of each set."""
    with file.open(newline="", encoding="utf-8") as opened:
        return [row for row in csv.DictReader(opened) if row["problems"] == str(problems)]


def main() -> None:
    whole: list[Row] = []
    sample: list[Row] = []
    problems = chosen(PROBLEMS)
    for number, curves in enumerate(problems):
        played = list(rows([curves]))
        whole += played
        sample += played if number % PROBLEMS < SAMPLE else []
        print(f"{number + 1} of {len(problems)}", end="\r", file=sys.stderr)
    write([*summed(whole), *summed(sample)], FILE)


if __name__ == "__main__":
    main()
