"""latebloomer compared with Optuna's pruners, Ray Tune's ASHA and scikit-learn's halving.

    python -m measurements.other_libraries tables    some minutes: the recorded tables
    python -m measurements.other_libraries public    some minutes: five public sets of curves
    python -m measurements.other_libraries tune      settings of the others, on the design half

Each writes a file in docs/results/comparison, of which `docs/tools/evidence_pages.py` makes the
tables and the picture of docs/comparison.md.

The libraries themselves decide; curves are recorded, and all see the same. A budget of c full
trainings is c times the length of a curve in pulls, or c times the seconds of an average full
training. Seconds are processor seconds of training and of scoring the validation rows.

Each library is used as favorably as possible:

- Pruners receive scores one by one. They run with arms one after the other, as with one worker,
  and with all arms side by side, as with a worker for each, which suits them better; and side by
  side once more with the best of some settings (`TABLES`, `PUBLIC_SETS`).
- Trials that reach the full length are reported as complete: Optuna's halving learns from the
  first of them where its rungs are, and prunes nothing before.
- Brackets of Optuna's Hyperband are drawn by the name of a study: each problem has its own.
- Pruners know no total budget: they are stopped when it is spent. The pick is the best latest
  score, the best of four ways that were tried.
- scikit-learn trains from scratch at each rung and scores once, which is what it is charged; its
  rungs are the largest that the budget pays for, known in hindsight. If it pays for none, fewer
  arms are used, as with our own policies.
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
from latebloomer.bench.costs import PULLS, SECONDS
from latebloomer.bench.curve_sets import PUBLIC, read_sets
from latebloomer.bench.curves import Curves
from latebloomer.bench.recorded_tables import DESIGN, SETS, read_collection
from latebloomer.bench.timed_runs import race_in_seconds
from latebloomer.errors import BudgetError
from latebloomer.racing.request import usual_min_pulls

BUDGETS = {PULLS: (1, 2, 4, 8), SECONDS: (1, 2, 4)}
PROBLEMS = 92  # of each public set, as many as the smallest has
BEST = "latebloomer auto"
FOLDER = Path(__file__).parents[1] / "docs" / "results" / "comparison"
Row = dict[str, Any]


class Case(NamedTuple):
    """What a method sees, arms in a random order, and what a budget counts.

    In pulls every step costs 1 and scoring nothing.
    """

    rewards: np.ndarray  # (arms, pulls)
    steps: np.ndarray  # cost of each step of training (arms, pulls)
    scores: np.ndarray  # cost of each scoring (arms, pulls)
    unit: str

    def first(self, arms: int) -> Case:
        """Return the case with that many of the arms."""
        return Case(self.rewards[:arms], self.steps[:arms], self.scores[:arms], self.unit)


class Played(NamedTuple):
    """What a method did with a budget."""

    pick: int
    trained: int  # pulls of the pick
    spent: float
    decisions: int


Player = Callable[[Case, float], Played]


# --- ours, and rules that are one line ---


def ours(policy: str) -> Player:
    def play(case: Case, budget: float) -> Played:
        arms, length = case.rewards.shape
        if case.unit == SECONDS:
            state = race_in_seconds(case.rewards, case.steps + case.scores, budget, policy)
            session, spent = state.session, state.elapsed
            return Played(
                session.best_arm, session.pulls_of(session.best_arm), spent, session.spent
            )
        least = usual_min_pulls(policy, arms, round(budget))
        session = Session(policy, arms, round(budget), length, min_pulls=least)
        while not session.over:
            arm = session.ask()
            session.tell(arm, case.rewards[arm, session.pulls[arm]])
        best = session.recommend().arm
        return Played(best, session.pulls[best], session.spent, session.spent)

    return play


def at_random(case: Case, budget: float) -> Played:
    return Played(int(np.random.default_rng(0).integers(len(case.rewards))), 1, 0, 1)


def in_full(case: Case, budget: float) -> Played:
    """Train one arm after the other to the end, score it once, and keep the best.

    Arms are trained while the next one fits; the first is trained in any case.
    """
    prices = case.steps.sum(axis=1) + case.scores[:, -1]
    ends = np.cumsum(prices)
    fits = max(1, int((ends <= budget * (1 + 1e-9)).sum()))
    pick = int(np.argmax(case.rewards[:fits, -1]))
    return Played(pick, case.rewards.shape[1], float(ends[fits - 1]), fits)


def all_in_full(case: Case, budget: float) -> Played:
    """Train every arm to the end, whatever the budget, and keep the best: the wall."""
    return in_full(case, np.inf)


# --- pruners: they receive a score and return whether that arm is dropped ---


Stops = Callable[[int, int, float], bool]  # of an arm, its pulls and the score now


def pruned(make: Callable[[int, str], Stops], together: bool) -> Player:
    """Return a method that drops an arm when the function for a length and a name says so."""

    def play(case: Case, budget: float) -> Played:
        rewards, prices = case.rewards, case.steps + case.scores
        arms, length = rewards.shape
        stops, n = make(length, str(zlib.crc32(rewards.tobytes()))), [0] * arms
        waiting, spent, pulls = list(range(arms)), 0.0, 0
        while waiting:
            arm = waiting.pop(0)
            price = prices[arm, n[arm]]
            if spent + price / 2 > budget:  # to stop now is nearer to the budget
                break
            n[arm], spent, pulls = n[arm] + 1, spent + price, pulls + 1
            over = stops(arm, n[arm], float(rewards[arm, n[arm] - 1]))
            if not over and n[arm] < length:
                waiting.insert(len(waiting) if together else 0, arm)
        latest = [rewards[arm, n[arm] - 1] if n[arm] else -np.inf for arm in range(arms)]
        pick = int(np.argmax(latest))
        return Played(pick, n[pick], spent, pulls)

    return play


def keep_all(length: int, name: str) -> Stops:
    """Return a pruner that drops no arm: all are trained equally."""
    return lambda arm, n, score: False


# The best of factors 2, 3, 4 with first rungs of 1 pull and 2, 5, 10 and 20 % of a training
# (Hyperband: 1 pull, 5 and 10 %), side by side: on the design half of the tables (`tune`), and on
# 50 of the public problems, in hindsight.
Tuning = dict[str, tuple[float, int]]
TABLES: Tuning = {
    "Optuna halving": (0.02, 3), "Optuna Hyperband": (0, 4), "Ray Tune ASHA": (0.02, 3),
    "scikit-learn halving": (0, 4),
}  # fmt: skip
PUBLIC_SETS: Tuning = {
    "Optuna halving": (0.05, 3), "Optuna Hyperband": (0, 4), "Ray Tune ASHA": (0.05, 4),
    "scikit-learn halving": (0, 3),
}  # fmt: skip
RUNGS, FACTORS = (0, 0.02, 0.05, 0.1, 0.2), (2, 3, 4)


def first_rung(share: float, length: int) -> int:
    return max(1, round(share * length))


def optuna_halving(length: int, name: str) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.SuccessiveHalvingPruner(), length, name)


def optuna_halving_with(share: float, factor: int) -> Callable[[int, str], Stops]:
    def make(length: int, name: str) -> Stops:
        import optuna

        pruner = optuna.pruners.SuccessiveHalvingPruner(
            min_resource=first_rung(share, length), reduction_factor=factor
        )
        return by_optuna(pruner, length, name)

    return make


def optuna_hyperband(length: int, name: str) -> Stops:
    import optuna

    return by_optuna(optuna.pruners.HyperbandPruner(max_resource=length), length, name)


def optuna_hyperband_with(share: float, factor: int) -> Callable[[int, str], Stops]:
    def make(length: int, name: str) -> Stops:
        import optuna

        pruner = optuna.pruners.HyperbandPruner(
            min_resource=first_rung(share, length), max_resource=length, reduction_factor=factor
        )
        return by_optuna(pruner, length, name)

    return make


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


def ray_asha_with(share: float, factor: int) -> Callable[[int, str], Stops]:
    def make(length: int, name: str) -> Stops:
        return by_ray(length, grace_period=first_rung(share, length), reduction_factor=factor)

    return make


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


def halving(factor: int) -> Player:
    def play(case: Case, budget: float) -> Played:
        from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        from sklearn.model_selection import HalvingGridSearchCV, PredefinedSplit

        arms, length = case.rewards.shape
        rungs = len(rung_sizes(arms, factor))
        SHOWN["rewards"] = case.rewards
        totals = case.steps.cumsum(axis=1) + case.scores  # of a training from scratch
        for least in range(length // factor ** (rungs - 1), 0, -1):
            if cheapest(totals, least, rung_sizes(arms, factor), factor) > budget:
                continue
            search = HalvingGridSearchCV(
                replaying(), {"arm": list(range(arms))}, resource="n", factor=factor, refit=False,
                min_resources=least, max_resources=least * factor ** (rungs - 1),
                cv=PredefinedSplit([-1, 0]), return_train_score=False,
            ).fit([[0], [0]], [0, 1])  # fmt: skip
            tried = search.cv_results_
            places = [(params["arm"], n - 1) for params, n in
                      zip(tried["params"], tried["n_resources"], strict=True)]  # fmt: skip
            spent = sum(float(totals[place]) for place in places)
            if spent <= budget:
                trained = int(tried["n_resources"][search.best_index_])
                return Played(search.best_params_["arm"], trained, spent, len(places))
        raise BudgetError(f"{budget} are too few for the rungs of {arms} arms")

    return play


def cheapest(totals: np.ndarray, least: int, sizes: Sequence[int], factor: int) -> float:
    """Return the least that rungs can cost, whichever arms reach them."""
    prices = (np.sort(totals[:, least * factor**i - 1])[:k] for i, k in enumerate(sizes))
    return float(sum(price.sum() for price in prices))


MAKERS = {
    "Optuna halving": optuna_halving_with,
    "Optuna Hyperband": optuna_hyperband_with,
    "Ray Tune ASHA": ray_asha_with,
}


def players(tuning: Tuning) -> dict[str, Player]:
    """Return the methods by name; the others with their defaults, and tuned."""
    tuned = {library: pruned(make(*tuning[library]), together=True)
             for library, make in MAKERS.items()}  # fmt: skip
    return {
        "latebloomer auto": ours("auto"),
        "latebloomer r-sr": ours("r-sr"),
        "scikit-learn halving": halving(3),
        "scikit-learn halving, tuned": halving(tuning["scikit-learn halving"][1]),
        "Optuna halving, side by side": pruned(optuna_halving, together=True),
        "Optuna halving, tuned": tuned["Optuna halving"],
        "Optuna Hyperband, side by side": pruned(optuna_hyperband, together=True),
        "Optuna Hyperband, tuned": tuned["Optuna Hyperband"],
        "Ray Tune ASHA, side by side": pruned(ray_asha, together=True),
        "Ray Tune ASHA, tuned": tuned["Ray Tune ASHA"],
        "Optuna halving, one worker": pruned(optuna_halving, together=False),
        "Optuna Hyperband, one worker": pruned(optuna_hyperband, together=False),
        "Ray Tune ASHA, one worker": pruned(ray_asha, together=False),
        "i-epoch (i = 1)": ours("i-epoch"),
        "i-epoch (i = 10)": ours("i-epoch:i=10"),
        "none dropped": pruned(keep_all, together=True),
        "one after the other in full": in_full,
        "one at random": at_random,
        "all in full, whatever it costs": all_in_full,
    }


PLAYERS = players(TABLES)


# --- the comparison ---


def cases(curves: Curves, unit: str) -> Iterator[tuple[int, np.ndarray, Case]]:
    """Yield each recorded run with an order of the arms and the case; one draw if none is."""
    for run in range(curves.run_count):
        rng = np.random.default_rng([zlib.crc32(curves.name.encode()), run])
        order = rng.permutation(curves.arms)
        rewards = curves.tables(1, run)[0][order]
        steps, scores = np.ones_like(rewards), np.zeros_like(rewards)
        if unit == SECONDS:
            steps, scores = (part[order, run] for part in SECONDS_OF[curves.name])
        yield run, order, Case(rewards, steps, scores, unit)


def seconds_of_tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return seconds of training and of scoring (arm, run, pull) by problem."""
    found = {}
    for collection in ("tables", "fresh"):
        kept = read_collection(collection)
        parts = (kept.train_seconds.swapaxes(1, 2), kept.score_seconds.swapaxes(1, 2))
        found |= dict(zip(kept.problems, zip(*parts, strict=True), strict=True))
    return found


SECONDS_OF = seconds_of_tables()


def rows(
    problems: Sequence[Curves],
    methods: dict[str, Player] = PLAYERS,
    units: Sequence[str] = (PULLS,),
) -> Iterator[Row]:
    """Yield a row for each method, problem, unit and budget: means over the problem's runs."""
    for curves in problems:
        for unit in units:
            shown = list(cases(curves, unit))
            for name, player in methods.items():
                for budget in BUDGETS[unit]:
                    runs = [played_on(curves, player, budget, *one) for one in shown]
                    means = {what: float(np.mean([run[what] for run in runs])) for what in runs[0]}
                    place = {"player": name, "set": curves.group, "problem": curves.name}
                    yield place | {"unit": unit, "budget": budget} | means


def played_on(
    curves: Curves, player: Player, budget: float, run: int, order: np.ndarray, case: Case
) -> dict[str, float]:
    prices = (case.steps + case.scores).sum(axis=1)
    limit = budget * (float(prices.mean()) if case.unit == SECONDS else curves.length)
    began = time.process_time()
    played = play_some(player, case, limit)
    seconds = time.process_time() - began
    truth = curves.truth(run)[order]
    scale = max(1e-12, float(np.ptp(truth)))
    returned = curves.worth(played.trained, run)[order][played.pick]
    return {
        "rank_loss": float(np.mean(truth > truth[played.pick])),
        "regret": float(truth.max() - truth[played.pick]) / scale,
        "returned": float(truth.max() - returned) / scale,
        "spent": played.spent / limit,
        "microseconds": 1e6 * seconds / max(1, played.decisions),
    }


def play_some(play: Player, case: Case, budget: float) -> Played:
    """Use all arms, or as many of the first (their order is random) as the method can."""
    for arms in range(len(case.rewards), 1, -1):
        try:
            return play(case.first(arms), budget)
        except BudgetError:
            continue
    return at_random(case, budget)


def public_problems(count: int = PROBLEMS) -> list[Curves]:
    """Return that many problems of each public set, drawn once."""
    found = read_sets([*PUBLIC])[0]
    problems: list[Curves] = []
    for group in PUBLIC:
        of_group = [curves for curves in found if curves.group == group]
        places = np.random.default_rng(0).permutation(len(of_group))[:count]
        problems += [of_group[place] for place in places]
    return problems


MEASURES = ("rank_loss", "regret", "returned")


def summed(found: Sequence[Row]) -> Iterator[Row]:
    """Yield means over the problems of a set and over budgets, with differences to `auto`.

    A difference is the method's minus that of `auto` on the same problems; its error is a
    standard error over problems.
    """
    own: dict[tuple[Any, ...], list[Row]] = {}  # of each problem the mean over the budgets
    for row in found:
        for budget in (str(row["budget"]), "all"):
            own.setdefault((row["player"], row["set"], row["unit"], budget), []).append(row)
    for (player, group, unit, budget), lines in own.items():
        base = own[BEST, group, unit, budget]
        row = {"player": player, "set": group, "unit": unit, "budget": budget}
        row["problems"] = len(by_problem(lines, "regret"))
        for what in MEASURES:
            values = by_problem(lines, what)
            gap = values - by_problem(base, what)
            row[what] = f"{values.mean():.4f}"
            row[f"{what}_difference"] = f"{gap.mean():.4f}"
            row[f"{what}_se"] = f"{gap.std(ddof=1) / np.sqrt(len(gap)):.4f}"
        row["spent"] = f"{by_problem(lines, 'spent').mean():.3f}"
        row["microseconds"] = f"{np.median(by_problem(lines, 'microseconds')):.1f}"
        yield row


def by_problem(lines: Sequence[Row], what: str) -> np.ndarray:
    """Return a measure of each problem, the mean over its lines."""
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(line["problem"], []).append(line[what])
    return np.array([np.mean(values) for values in found.values()])


# --- settings of the others ---


def tune() -> None:
    """Print the regret of each setting on the design half, in seconds, side by side."""
    problems = read_sets([DESIGN])[0]
    for library, make in MAKERS.items():
        shares = RUNGS if library != "Optuna Hyperband" else (0, 0.05, 0.1)
        methods = {
            f"{share:g}, {factor}": pruned(make(share, factor), together=True)
            for share in shares for factor in FACTORS
        }  # fmt: skip
        show_mean_regret(library, problems, methods)
    methods = {str(factor): halving(factor) for factor in FACTORS}
    show_mean_regret("scikit-learn halving", problems, methods)


def show_mean_regret(library: str, problems: Sequence[Curves], methods: dict[str, Player]) -> None:
    found = list(rows(problems, methods, [SECONDS]))
    for name in methods:
        losses = [row["regret"] for row in found if row["player"] == name]
        ranks = [row["rank_loss"] for row in found if row["player"] == name]
        print(
            f"{library}, {name}: {np.mean(losses):.4f}, rank loss {np.mean(ranks):.4f}", flush=True
        )


# --- the files ---


def write(table: Sequence[Row], file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def recorded(what: str) -> list[Row]:
    """Return what was measured: `tables` or `public`."""
    with (FOLDER / f"{what}.csv").open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def main() -> None:
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "tune":
        tune()
    elif what in ("tables", "public"):
        units = (SECONDS, PULLS) if what == "tables" else (PULLS,)
        problems = read_sets(SETS)[0] if what == "tables" else public_problems()
        methods = players(TABLES if what == "tables" else PUBLIC_SETS)
        found: list[Row] = []
        for number, curves in enumerate(problems, start=1):
            found += rows([curves], methods, units)
            print(f"{number} of {len(problems)}", end="\r", file=sys.stderr)
        write(list(summed(found)), FOLDER / f"{what}.csv")
    else:
        sys.exit("name one of: tables, public, tune")


if __name__ == "__main__":
    main()
