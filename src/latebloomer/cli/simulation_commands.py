"""The commands plan, policies, simulate, bench and download: policies on curves, where nothing trains."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from latebloomer._util.atomic_files import need_folder
from latebloomer.cli.terminal_output import Json, check_outputs, say, write_each
from latebloomer.errors import SettingError, unknown
from latebloomer.policies.registry import MAIN, REGISTRY, policy_for, split_policies
from latebloomer.racing.training_share import PULLS, units_of

Number = TypeVar("Number", int, float)

KNOWN = f"auto, {', '.join(MAIN)}. `latebloomer policies` lists all."
POLICY_HELP = f"Policy: NAME or NAME:SETTING=VALUE,...: {KNOWN}"
SEVERAL_HELP = f"Policies, separated by commas, each NAME or NAME:SETTING=VALUE,...: {KNOWN}"
OUT_HELP = "Keep all counts in this file; if it exists, play what it lacks and show the whole."
ADDRESS_HELP = "Of a Ray cluster: auto, ray://host:10001; without one, Ray is started here."
PROBLEM_HELP = (
    "paper-a, paper-b, imdb, one-riser:K=16:T=800, random:FAMILY:K=10:seed=3, or a file of curves."
)
SETS_HELP = (
    "Sets with commas between: lcdb11-linear, lcdb11-geometric, taskset, srb-imdb, yahpo (these "
    "five: public), lcdb10 (real runs), random-FAMILY (six of them: random), paper-a, paper-b, "
    "imdb (paper), or all."
)
ARMS_HELP = "Arms of the problems of taskset and yahpo, with commas: 8, 16, 32, 64, 128."
FOLDER_HELP = (
    "Your own curves instead: a folder of .csv, .parquet or .npz files, or of journals of "
    "finished races, one per problem; name.run1.csv, name.run2.csv, ... are runs of one."
)
DOWNLOAD_HELP = (
    "imdb: the paper's seven recorded curves. lcdb: LCDB 1.0 from PyPI, real runs of about 20 "
    "learners on 181 data sets, the bench's set lcdb10 (68 MB are fetched)."
)
SIGMA_HELP = "Noise added to curves of a folder that were recorded once."
COSTS_HELP = (
    "On the set lcdb10, which knows what training took: learners compared at the same share of "
    "their training and after the same time, within a time. Writes costs.md to --out."
)
COMPARED_HELP = "With commas; by default all that can be played without settings."

Horizon = Annotated[
    int | None, typer.Option(help="Pulls at which arms are compared; the budget if not given.")
]
Seed = Annotated[int, typer.Option(help="Another seed is another luck.")]


def policies() -> None:
    """List all policies, the comparators from related work included."""
    for name, cls in REGISTRY.items():
        say(f"{name:<17} {(inspect.getdoc(cls) or '').splitlines()[0]}")


def plan(
    arms: Annotated[int, typer.Option(help="How many learners compete.")],
    budget: Annotated[int | None, typer.Option(help="Pulls in all.")] = None,
    trainings: Annotated[
        float | None, typer.Option(help="Or full trainings, of 100 pulls each.")
    ] = None,
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "auto",
    horizon: Horizon = None,
    min_pulls: Annotated[int, typer.Option(help="Pulls before which no arm is dropped.")] = 1,
    json: Json = False,
) -> None:
    """Show how a policy would spend a budget, before it is spent."""
    from latebloomer.racing.brief_plan import plan_in_words, workers_in_words

    if (budget is None) == (trainings is None):
        raise SettingError(
            f"--budget {budget} and --trainings {trainings}, but a plan needs exactly one"
        )
    units = units_of({"any": None}, budget, horizon, trainings, None if budget else PULLS, None)
    pulls, at = int(units.budget or 0), units.horizon
    found = policy_for(policy, arms, pulls, pulls if at is None else at)
    described = found.describe(arms, pulls, at, min_pulls)
    if json:
        say(described.to_json())
    else:
        words = described if trainings is None else plan_in_words(described, repr(found), one=at)
        say("\n".join([str(words), *workers_in_words(described)]))


def simulate(
    problem: Annotated[str, typer.Option(help=PROBLEM_HELP)],
    budget: Annotated[str, typer.Option(help="Pulls in all; several with commas.")],
    policy: Annotated[str, typer.Option(help=SEVERAL_HELP)] = "r-ucbe,r-sr,sh",
    runs: Annotated[int, typer.Option(help="Runs of each policy at each budget.")] = 1000,
    seed: Seed = 0,
    horizon: Horizon = None,
    target: Annotated[str, typer.Option(help="cpu, gpu or python.")] = "cpu",
    method: Annotated[str, typer.Option(help="auto, pulls or sums.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Of the CPU; all cores by default.")] = None,
    chunk: Annotated[int | None, typer.Option(help="Runs that are counted together.")] = None,
    first_run: Annotated[int, typer.Option(help="The number of the first run.")] = 0,
    json: Json = False,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw error and regret to this file.")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray: tasks on a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help=ADDRESS_HELP)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Play policies on a problem many times. Shows errors, regrets and pulls with intervals."""
    from latebloomer.simulation.simulate import simulate as run

    check_outputs({"--csv": csv, "--plot": plot}, {"--out": out})
    needed = "a whole number, or some with commas between"
    found = run(
        problem, split_policies(policy), comma_separated("--budget", budget, int, needed), runs,
        seed, horizon=horizon, target=target, method=method, threads=threads, chunk=chunk,
        first_run=first_run, out=out, engine=engine, address=address, progress=not quiet,
    )  # fmt: skip
    say(found.to_json() if json else str(found))
    write_each((csv, found.to_csv), (plot, partial(found.plot, what="both")))


def bench(
    folder: Annotated[Path | None, typer.Argument(help=FOLDER_HELP)] = None,
    sets: Annotated[str, typer.Option(help=SETS_HELP)] = "public",
    budgets: Annotated[str, typer.Option(help="In full trainings, with commas.")] = "1,2,4,8",
    policies: Annotated[str | None, typer.Option(help=COMPARED_HELP)] = None,
    draws: Annotated[int, typer.Option(help="Draws of the noise for each problem.")] = 10,
    baseline: Annotated[str, typer.Option(help="Whom the others are compared with.")] = "r-sr",
    sigma: Annotated[float | None, typer.Option(help=SIGMA_HELP)] = None,
    arms: Annotated[str, typer.Option(help=ARMS_HELP)] = "8",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.md, .csv and .png.")] = None,
    threads: Annotated[int | None, typer.Option(help="All cores by default.")] = None,
    costs: Annotated[bool, typer.Option("--costs", help=COSTS_HELP)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Compare policies on recorded learning curves, or on your own."""
    from latebloomer.bench import COMPARED
    from latebloomer.bench import bench as compare
    from latebloomer.bench.training_times import POLICIES, bench_times

    if out is not None:
        need_folder(out)
    trainings = comma_separated("--budgets", budgets, float, "numbers with commas between")
    names = None if policies is None else split_policies(policies)
    if costs:
        found = bench_times(names or POLICIES, trainings, draws, seed)
    else:
        found = compare(
            folder if folder is not None else sets.split(","), names or COMPARED, trainings,
            draws, baseline=baseline, seed=seed, sigma=sigma, threads=threads, shown=not quiet,
            arms=comma_separated("--arms", arms, int, "whole numbers with commas between"),
        )  # fmt: skip
    say(found)
    written = found.write(out) if out is not None else []
    if found.skipped:
        say(f"skipped {len(found.skipped)}: see the end of the report", err=True)
    for path in written:
        say(f"wrote {path}", err=True)


def download(
    what: Annotated[str, typer.Argument(help=DOWNLOAD_HELP)],
    folder: Annotated[Path, typer.Argument(help="Where to put them; LATEBLOOMER_DATA names it.")],
) -> None:
    """Fetch public recorded curves, checked by their sha256."""
    from latebloomer.problems.downloads import LCDB, LCDB_MEGABYTES, download_imdb, download_lcdb

    if what not in ("imdb", "lcdb"):
        raise unknown("data set", what, ["imdb", "lcdb"])
    if what == "lcdb":
        say(f"fetching {LCDB} from PyPI, {LCDB_MEGABYTES} MB", err=True)
    say(f"wrote {(download_imdb if what == 'imdb' else download_lcdb)(folder)}")


def comma_separated(
    option: str, text: str, number: Callable[[str], Number], needed: str
) -> list[Number]:
    """The numbers of an option.

    >>> comma_separated("--budget", "100,200", int, "whole numbers")
    [100, 200]
    """
    found = []
    for word in text.split(","):
        try:
            found.append(number(word))
        except ValueError:
            raise SettingError(f"{option} {word!r}, but it must be {needed}") from None
    return found
