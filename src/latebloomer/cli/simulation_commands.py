"""The commands that train nothing: plans, simulations, benchmarks, the paper's figures."""

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
from latebloomer.policies import registry


def policies() -> None:
    """List all policies, including comparators from related work."""
    say(f"{registry.AUTO:<17} Use the recommended policy, {registry.DEFAULT} (the default).")
    for name, cls in registry.REGISTRY.items():
        say(f"{name:<17} {(inspect.getdoc(cls) or '').splitlines()[0]}")


def plan(
    learners: Annotated[int, o.count(2)],
    budget: int | None = None,
    trainings: float | None = None,
    policy: Annotated[str, o.policies()] = "auto",
    horizon: int | None = None,
    min_pulls: int = 1,
    json: bool = False,
) -> None:
    """Show how a policy would spend a budget, before it is spent.

    Parameters
    ----------
    learners
        Number of learners.
    budget
        Budget in pulls, over all learners.
    trainings
        Budget in full trainings of 100 pulls. Give --trainings or --budget.
    """
    from latebloomer.racing.training_share import PULLS, plan_in_words, units_of, workers_in_words

    if (budget is None) == (trainings is None):
        raise SettingError("Give exactly one of --budget and --trainings.")
    units = units_of({"any": None}, budget, horizon, trainings, None if budget else PULLS, None)
    pulls, at = units["budget"], units["horizon"]
    found = registry.policy_for(policy, learners, pulls, pulls if at is None else at)
    described = found.describe(learners, pulls, at, min_pulls)
    if json:
        say(described.to_json())
    else:
        chosen = f", chosen by {registry.AUTO}" * registry.is_auto(policy)
        words = str(described).replace("\n", f"{chosen}\n", 1)  # of the policy's line
        if trainings is not None:
            words = plan_in_words(described, registry.label_of(found) + chosen, one=at)
        say("\n".join([words.replace("Racing", "Plan for", 1), *workers_in_words(described)]))


def simulate(
    problem: Annotated[str, typer.Option()],
    budget: Annotated[str, typer.Option()],
    policy: Annotated[str, o.policies()] = "r-ucbe,r-sr,sh",
    runs: int = 1000,
    seed: Annotated[int, o.count(0)] = 0,
    horizon: int | None = None,
    target: Annotated[str, o.choice("cpu", "gpu", "python")] = "cpu",
    method: Annotated[str, o.choice("auto", "pulls", "sums")] = "auto",
    threads: int | None = None,
    chunk: int | None = None,
    first_run: Annotated[int, o.count(0)] = 0,
    out: Path | None = None,
    csv: Path | None = None,
    plot: Path | None = None,
    engine: Annotated[str, o.choice("local", "ray")] = "local",
    address: str | None = None,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Simulate policies on a problem.

    Errors, regrets and pulls are printed with 95 % intervals.

    Parameters
    ----------
    problem
        paper-a, paper-b, imdb, one-riser:K=16:T=800, random:FAMILY:K=10:seed=3, or a file of
        curves.
    budget
        Budget in pulls, over all arms; several separated by commas.
    policy
        Policies separated by commas, each NAME or NAME:SETTING=VALUE,...: POLICIES
    runs
        Runs of each policy at each budget.
    seed
        Random seed.
    horizon
        Pulls per arm at which arms are compared. Default: each budget.
    target
        cpu, gpu or python.
    method
        pulls: draw every reward; sums: draw window sums (Gaussian noise, fixed plans); auto: sums
        if possible.
    threads
        CPU threads. Default: all cores.
    chunk
        Runs per unit of work. Default: automatic.
    first_run
        Number of the first run.
    out
        Results file. If it exists, only missing runs are simulated.
    csv
        Write the table to this file.
    plot
        Plot error and regret here.
    engine
        Where runs are simulated: local, or ray for tasks on a cluster.
    """
    from latebloomer.problems import problem as problem_at
    from latebloomer.simulation.simulate import simulate as run

    o.check_outputs({"--out": out, "--csv": csv, "--plot": plot})
    budgets = o.comma_separated("--budget", budget, int)
    with o.naming("--problem"):
        given = problem_at(problem)
    found = run(
        given, registry.split_policies(policy), budgets, runs, seed, horizon=horizon,
        target=target, method=method, threads=threads, chunk=chunk, first_run=first_run, out=out,
        engine=engine, address=address, progress=not quiet,
    )  # fmt: skip
    say(found.to_json() if json else str(found))
    o.write_each((csv, found.to_csv, ""), (plot, partial(found.plot, what="both"), ""))


def bench(
    folder: Annotated[Path | None, typer.Argument(metavar="[FOLDER]")] = None,
    sets: str = "public",
    budgets: str = "1,2,4,8",
    policies: Annotated[str | None, o.policies()] = None,
    draws: int = 10,
    baseline: Annotated[str, o.policies()] = "r-sr",
    sigma: float | None = None,
    arms: str = "8",
    seed: Annotated[int, o.count(0)] = 0,
    out: Path | None = None,
    threads: int | None = None,
    costs: bool = False,
    quiet: bool = False,
) -> None:
    """Compare policies on recorded learning curves, or on your own.

    Parameters
    ----------
    folder
        Your own curves instead: a folder of .csv, .parquet or .npz files, or of journals of
        finished races, one per problem; name.run1.csv, name.run2.csv, ... are runs of one.
    sets
        Sets separated by commas: lcdb11-linear, lcdb11-geometric, taskset, srb-imdb, yahpo (these
        five: public), lcdb10 (real runs), random-FAMILY (six of them: random), paper-a, paper-b,
        imdb (paper), or all.
    budgets
        Budgets in full trainings, separated by commas.
    policies
        Policies separated by commas. Default: all that need no settings.
    draws
        Draws of the noise for each problem.
    baseline
        Policy to compare with.
    sigma
        Noise added to curves recorded once.
    arms
        Arms of the problems of taskset and yahpo: some of 8,16,32,64,128.
    seed
        Random seed.
    out
        Folder for bench.md, .csv, .png.
    threads
        CPU threads. Default: all cores.
    costs
        Compare the learners of lcdb10 within a time, per full training and per second.
    """
    from latebloomer.bench import COMPARED
    from latebloomer.bench import bench as compare
    from latebloomer.bench.benchmark import TIMED_POLICIES, bench_times
    from latebloomer.bench.curve_sets import names_of

    if out is not None:
        need_folder(out)
    with o.naming("--sets"):
        names_of(sets.split(","))
    trainings = o.comma_separated("--budgets", budgets, float)
    names = None if policies is None else registry.split_policies(policies)
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
    what: Annotated[str, typer.Argument(metavar="NAME")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
) -> None:
    """Fetch public recorded curves, checked by their sha256.

    Parameters
    ----------
    what
        imdb: the paper's seven recorded curves. lcdb: LCDB 1.0 from PyPI, real runs of about 16
        learners on 181 data sets, the bench's set lcdb10 (68 MB are fetched).
    folder
        Folder to write to; LATEBLOOMER_DATA names it.
    """
    from latebloomer.problems.recorded import LCDB, LCDB_MEGABYTES, download_imdb, download_lcdb

    if what not in ("imdb", "lcdb"):
        raise unknown("data set", what, ["imdb", "lcdb"])
    if what == "lcdb":
        say(f"fetching {LCDB} from PyPI, {LCDB_MEGABYTES} MB", err=True)
    say(f"wrote {(download_imdb if what == 'imdb' else download_lcdb)(folder)}")


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]...")] = None,
    listed: Annotated[bool, typer.Option("--list")] = False,
    runs: int = PUBLISHED_RUNS,
    mode: Annotated[str, o.choice(AS_WRITTEN, AS_PUBLISHED)] = AS_WRITTEN,
    out: Path = Path("reproduction"),
    jobs: int | None = None,
    quiet: bool = False,
) -> None:
    """Reproduce the paper's figures, tables and claims.

    Parameters
    ----------
    names
        Figures or tables by name, or all.
    listed
        List the names.
    runs
        Runs of each policy at each budget.
    mode
        as-written or as-published.
    out
        Folder for the files.
    jobs
        Threads. Default: all cores.
    """
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


def cite(what: Annotated[str, typer.Argument(metavar="[NAME]")] = "Mussi24") -> None:
    """Print the BibTeX entry to cite.

    Parameters
    ----------
    what
        Policy, or key of a reference.
    """
    say(bibtex(what))
