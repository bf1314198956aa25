"""The commands that train nothing: plans, simulations, benchmarks, the paper's figures."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from latebloomer._util.atomic_files import need_folder
from latebloomer.citation import cite as bibtex
from latebloomer.cli import options as o
from latebloomer.cli.options import say
from latebloomer.errors import Interrupted, SettingError, unknown
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN, PUBLISHED_RUNS
from latebloomer.policies.registry import REGISTRY, policy_for, split_policies

FOLDER_HELP = (
    "Your own curves instead: a folder of .csv, .parquet or .npz files, or of journals of "
    "finished races, one per problem; name.run1.csv, name.run2.csv, ... are runs of one."
)
DOWNLOAD_HELP = (
    "imdb: the paper's seven recorded curves. lcdb: LCDB 1.0 from PyPI, real runs of about 20 "
    "learners on 181 data sets, the bench's set lcdb10 (68 MB are fetched)."
)


def policies() -> None:
    """List all policies, including comparators from related work."""
    for name, cls in REGISTRY.items():
        say(f"{name:<17} {(inspect.getdoc(cls) or '').splitlines()[0]}")


def plan(
    learners: Annotated[int, o.count("Number of learners.", 2)],
    budget: Annotated[int | None, o.count("plan.budget")] = None,
    trainings: Annotated[float | None, o.number("plan.trainings")] = None,
    policy: Annotated[str, o.policies("policy")] = "auto",
    horizon: Annotated[int | None, o.count("horizon")] = None,
    min_pulls: Annotated[int, o.count("min_pulls")] = 1,
    json: Annotated[bool, o.flag("json")] = False,
) -> None:
    """Show how a policy would spend a budget, before it is spent."""
    from latebloomer.racing.training_share import PULLS, plan_in_words, units_of, workers_in_words

    if (budget is None) == (trainings is None):
        raise SettingError("Give exactly one of --budget and --trainings.")
    units = units_of({"any": None}, budget, horizon, trainings, None if budget else PULLS, None)
    pulls, at = units["budget"], units["horizon"]
    found = policy_for(policy, learners, pulls, pulls if at is None else at)
    described = found.describe(learners, pulls, at, min_pulls)
    if json:
        say(described.to_json())
    else:
        words = described if trainings is None else plan_in_words(described, repr(found), one=at)
        say("\n".join([str(words), *workers_in_words(described)]))


def simulate(
    problem: Annotated[str, o.text("problem")],
    budget: Annotated[str, o.text("simulate.budget")],
    policy: Annotated[str, o.policies("policies")] = "r-ucbe,r-sr,sh",
    runs: Annotated[int, o.count("runs")] = 1000,
    seed: Annotated[int, o.count("Random seed.", 0, panel="Policy")] = 0,
    horizon: Annotated[
        int | None,
        o.count("Pulls per arm at which arms are compared. Default: each budget.", panel="Policy"),
    ] = None,
    target: Annotated[str, o.choice("cpu, gpu or python.", "cpu", "gpu", "python")] = "cpu",
    method: Annotated[str, o.choice("method", "auto", "pulls", "sums")] = "auto",
    threads: Annotated[int | None, o.count("threads")] = None,
    chunk: Annotated[int | None, o.count("Runs per unit of work. Default: automatic.")] = None,
    first_run: Annotated[int, o.count("Number of the first run.", 0)] = 0,
    out: Annotated[Path | None, o.text("simulate.out")] = None,
    csv: Annotated[Path | None, o.text("Write the table to this file.", panel="Files")] = None,
    plot: Annotated[Path | None, o.text("Plot error and regret here.", panel="Files")] = None,
    engine: Annotated[str, o.choice("engine", "local", "ray")] = "local",
    address: Annotated[str | None, o.text("address")] = None,
    json: Annotated[bool, o.flag("json")] = False,
    quiet: Annotated[bool, o.flag("quiet")] = False,
) -> None:
    """Simulate policies on a problem.

    Errors, regrets and pulls are printed with 95 % intervals.
    """
    from latebloomer.problems import problem as problem_at
    from latebloomer.simulation.simulate import simulate as run

    o.check_outputs({"--out": out, "--csv": csv, "--plot": plot})
    budgets = o.comma_separated("--budget", budget, int)
    with o.naming("--problem"):
        given = problem_at(problem)
    found = run(
        given, split_policies(policy), budgets, runs, seed, horizon=horizon, target=target,
        method=method, threads=threads, chunk=chunk, first_run=first_run, out=out,
        engine=engine, address=address, progress=not quiet,
    )  # fmt: skip
    say(found.to_json() if json else str(found))
    o.write_each((csv, found.to_csv, ""), (plot, partial(found.plot, what="both"), ""))


def bench(
    folder: Annotated[Path | None, typer.Argument(metavar="[FOLDER]", help=FOLDER_HELP)] = None,
    sets: Annotated[str, o.text("sets")] = "public",
    budgets: Annotated[str, o.text("bench.budgets")] = "1,2,4,8",
    policies: Annotated[str | None, o.policies("bench.policies")] = None,
    draws: Annotated[int, o.count("Draws of the noise for each problem.")] = 10,
    baseline: Annotated[str, o.policies("Policy to compare with.", panel="Policy")] = "r-sr",
    sigma: Annotated[float | None, o.number("Noise added to curves recorded once.")] = None,
    arms: Annotated[str, o.text("arms")] = "8",
    seed: Annotated[int, o.count("Random seed.", 0, panel="Policy")] = 0,
    out: Annotated[Path | None, o.text("Folder for bench.md, .csv, .png.", panel="Files")] = None,
    threads: Annotated[int | None, o.count("threads")] = None,
    costs: Annotated[bool, o.flag("costs")] = False,
    quiet: Annotated[bool, o.flag("quiet")] = False,
) -> None:
    """Compare policies on recorded learning curves, or on your own."""
    from latebloomer.bench import COMPARED
    from latebloomer.bench import bench as compare
    from latebloomer.bench.benchmark import TIMED_POLICIES, bench_times
    from latebloomer.bench.curve_sets import names_of

    if out is not None:
        need_folder(out)
    with o.naming("--sets"):
        names_of(sets.split(","))
    trainings = o.comma_separated("--budgets", budgets, float)
    names = None if policies is None else split_policies(policies)
    if costs:
        found = bench_times(names or TIMED_POLICIES, trainings, draws, seed)
    else:
        found = compare(
            folder if folder is not None else sets.split(","), names or COMPARED, trainings,
            draws, baseline=baseline, seed=seed, sigma=sigma, threads=threads, shown=not quiet,
            arms=o.comma_separated("--arms", arms, int),
        )  # fmt: skip
    say(found)
    written = found.write(out) if out is not None else []
    if found.skipped:
        say(f"skipped {len(found.skipped)}: see the end of the report", err=True)
    for path in written:
        say(f"wrote {path}", err=True)


def download(
    what: Annotated[str, typer.Argument(metavar="NAME", help=DOWNLOAD_HELP)],
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder to write to; LATEBLOOMER_DATA names it."),
    ],
) -> None:
    """Fetch public recorded curves, checked by their sha256."""
    from latebloomer.problems.recorded import LCDB, LCDB_MEGABYTES, download_imdb, download_lcdb

    if what not in ("imdb", "lcdb"):
        raise unknown("data set", what, ["imdb", "lcdb"])
    if what == "lcdb":
        say(f"fetching {LCDB} from PyPI, {LCDB_MEGABYTES} MB", err=True)
    say(f"wrote {(download_imdb if what == 'imdb' else download_lcdb)(folder)}")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAMES]...", help="Figures or tables by name, or all."),
    ] = None,
    listed: Annotated[bool, o.text("List the names.", "--list")] = False,
    runs: Annotated[int, o.count("runs")] = PUBLISHED_RUNS,
    mode: Annotated[str, o.choice("mode", AS_WRITTEN, AS_PUBLISHED)] = AS_WRITTEN,
    out: Annotated[Path, o.text("Folder for the files.", panel="Files")] = Path("reproduction"),
    jobs: Annotated[int | None, o.count("Threads. Default: all cores.")] = None,
    quiet: Annotated[bool, o.flag("quiet")] = False,
) -> None:
    """Reproduce the paper's figures, tables and claims."""
    from latebloomer.paper.reproduction import FIGURES
    from latebloomer.paper.reproduction import reproduce as make
    from latebloomer.paper.workbench import Workbench
    from latebloomer.simulation.local_runs import cores

    if listed or not names:
        for figure in FIGURES:
            say(f"{figure.name:16} {figure.title}")
        return
    bench = Workbench(out, runs, mode, cores() if jobs is None else jobs, shown=not quiet)
    try:
        failures = make(names, bench)
    except KeyboardInterrupt:
        advice = f". Repeat the command to make what is missing in {out}."
        raise Interrupted("Stopped", None, advice) from None
    if failures:
        if quiet:  # otherwise each was shown when it happened
            say("\n".join(failures), err=True)
        raise typer.Exit(2)


def cite(
    what: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Policy, or key of a reference.")
    ] = "Mussi24",
) -> None:
    """Print the BibTeX entry to cite."""
    say(bibtex(what))
