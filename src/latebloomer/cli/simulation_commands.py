"""The commands that train no learners: plans, simulations and comparisons."""

import inspect
import json as jsons
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util.atomic_files import need_folder
from latebloomer.cli import option_types as o
from latebloomer.cli.option_checks import OWN_POLICY, comma_separated, naming
from latebloomer.cli.output import check_outputs, say, say_in_lines, write_each
from latebloomer.errors import Interrupted, SettingError, need_extras, unknown
from latebloomer.policies import registry

if TYPE_CHECKING:
    from latebloomer.programs.race_file import ProgramRace

NAME = 17  # columns of a policy's name


def policies() -> None:
    """List all policies, including those from related work."""
    texts = {registry.AUTO: f"Use the recommended policy, {registry.DEFAULT} (the default)."}
    texts |= {
        name: (inspect.getdoc(cls) or "").splitlines()[0]
        for name, cls in registry.REGISTRY.items()
    }
    for name, text in texts.items():
        say_in_lines(f"{name:<{NAME}} {text}", indent=NAME + 1)


def plan(
    race_file: o.PlannedRace = None,
    learners: o.LearnerCount = None,
    budget: o.PlannedBudget = None,
    trainings: o.PlannedTrainings = None,
    policy: o.PolicyName = "auto",
    horizon: o.Horizon = None,
    min_pulls: o.MinPulls = None,
    json: o.Json = False,
) -> None:
    """Show how a policy would spend a budget, before it is spent."""
    from latebloomer.racing.announcement import plan_in_words, workers_in_words
    from latebloomer.racing.learners.full_training import PULLS
    from latebloomer.racing.request import Budget, usual_min_pulls

    file = _race_in(race_file, learners)
    if budget is None and trainings is None:
        budget, trainings = (file.settings.get(name) for name in ("budget", "trainings"))
    if (budget is None) == (trainings is None):
        raise SettingError("Give exactly one of --budget and --trainings.")
    steps = None if budget or race_file else PULLS
    asked = Budget(
        pulls=budget,
        trainings=trainings,
        horizon=horizon,
        full_steps=steps,
        pulls_per_training=file.settings.get("pulls_per_training"),
    )
    units, learners = asked.units(file.learners), learners or len(file.learners)
    if policy == registry.AUTO:
        policy = file.settings.get("policy", policy)
    pulls, at = units.budget or 0, units.horizon
    resolved = registry.policy_for(policy, learners, pulls, pulls if at is None else at)
    min_pulls = file.settings.get("min_pulls") if min_pulls is None else min_pulls
    if min_pulls is None:
        min_pulls = usual_min_pulls(policy, learners, pulls)
    described = resolved.describe(learners, pulls, at, min_pulls)
    if json:
        say(described.to_json())
    else:
        chosen = f", chosen by {registry.AUTO}" * registry.is_auto(policy)
        # At the end of the line with the policy.
        words = str(described).replace("\n", f"{chosen}\n", 1)
        if trainings is not None:
            words = plan_in_words(
                described, registry.label_of(resolved) + chosen, pulls_per_training=at
            )
        lines = [words.replace("Racing", "Plan for", 1), *workers_in_words(described)]
        say_in_lines("\n".join(lines))


def _race_in(path: Path | None, learners: int | None) -> "ProgramRace":
    """Return the race in a file, or a race of which only the number of learners is known."""
    from latebloomer.programs.race_file import ProgramRace, read_race_file

    if (path is None) == (learners is None):
        raise SettingError("Give --learners, their number, or a .toml file that has them.")
    return ProgramRace({"any": None}, {}) if path is None else read_race_file(path)


def simulate(
    problem: o.ProblemName,
    budget: o.ArmBudgets,
    policy: o.PolicyNames = "r-ucbe,r-sr,sh",
    runs: o.Runs = 1000,
    seed: o.RunsSeed = 0,
    horizon: o.ArmHorizon = None,
    target: o.Target = "cpu",
    method: o.Method = "auto",
    threads: o.Threads = None,
    chunk: o.Chunk = None,
    first_run: o.FirstRun = 0,
    out: o.ResultsFile = None,
    csv: o.TableFile = None,
    plot: o.PlotFile = None,
    engine: o.Engine = "local",
    address: o.Address = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Simulate policies on a problem.

    Print errors, regrets and pulls with 95 % intervals.
    """
    from latebloomer.cli.learner_source import problem_at
    from latebloomer.simulation.simulate import simulate as run

    check_outputs({"--out": out, "--csv": csv, "--plot": plot})
    if plot is not None:
        need_extras("simulations with --plot", sim="numba", plots="matplotlib")
    budgets = comma_separated("--budget", budget, int)
    with naming("--problem"):
        setting = problem_at(problem)
    simulated = partial(
        run,
        setting,
        own_or_named(policy),
        budgets,
        runs,
        seed,
        horizon=horizon,
        target=target,
        method=method,
        threads=threads,
        chunk=chunk,
        first_run=first_run,
        out=out,
        engine=engine,
        address=address,
        progress=not quiet,
    )
    try:
        results = simulated()
    except Interrupted as stop:
        if stop.results.cells:
            say(stop.results.to_json() if json else str(stop.results))
        raise Interrupted(stop.state, advice=f". Kept in {out}." if out else ".") from None
    say(results.to_json() if json else str(results))
    write_each((csv, results.to_csv, ""), (plot, partial(results.plot, what="both"), ""))


def own_or_named(text: str) -> list[Any]:
    """Return policies by name or from files, in the order of the text."""
    from latebloomer.cli.learner_source import policy_at

    matches = [(name, OWN_POLICY.fullmatch(name)) for name in registry.split_policies(text)]
    return [policy_at(**match.groupdict()) if match else name for name, match in matches]


def bench(
    folder: o.CurvesFolder = None,
    sets: o.CurveSets = "tables,random",
    budgets: o.BenchBudgets = None,
    policies: o.BenchPolicies = None,
    units: o.Units = "pulls,seconds",
    draws: o.Draws = 10,
    baseline: o.Baseline = "auto",
    sigma: o.Sigma = None,
    arms: o.Arms = "8",
    seed: o.RunsSeed = 0,
    out: o.BenchFolder = None,
    threads: o.Threads = None,
    quiet: o.Quiet = False,
) -> None:
    """Compare policies on recorded learning curves, or on your own."""
    from latebloomer.bench import bench as compare
    from latebloomer.bench.curve_sets import names_of

    if out is not None:
        need_folder(out)
    with naming("--sets"):
        names_of(sets.split(","))
    report = compare(
        folder if folder is not None else sets.split(","),
        None if policies is None else registry.split_policies(policies),
        None if budgets is None else comma_separated("--budgets", budgets, float),
        draws,
        baseline=baseline,
        units=units.split(","),
        seed=seed,
        sigma=sigma,
        threads=threads,
        shown=not quiet,
        arms=comma_separated("--arms", arms, int),
    )
    say(report)
    written = report.write(out) if out is not None else []
    if report.skipped:
        say(f"skipped {len(report.skipped)}: see the end of the report", err=True)
    for path in written:
        say(f"wrote {path}", err=True)


def download(what: o.DataSet, folder: o.DataFolder) -> None:
    """Fetch public recorded curves and check their sha256."""
    from latebloomer.problems.public_curves import (
        LCDB,
        LCDB_MEGABYTES,
        download_imdb,
        download_lcdb,
    )

    if what not in ("imdb", "lcdb"):
        raise unknown("data set", what, ["imdb", "lcdb"])
    if what == "lcdb":
        say(f"fetching {LCDB} from PyPI, {LCDB_MEGABYTES} MB", err=True)
    say(f"wrote {(download_imdb if what == 'imdb' else download_lcdb)(folder)}")


def guarantees(
    problem: o.ProblemName,
    budget: o.BoundBudgets,
    noise: o.NoiseLevel = None,
    window: o.WindowShare = 0.25,
    exploration: o.Exploration = None,
    beta: o.Exponent = None,
    c: o.Constant = None,
    iota: o.Iota = 0.5,
    json: o.Json = False,
) -> None:
    """Show what the paper guarantees for a problem.

    For a bound that does not apply, the reason is shown, with the numbers of the failed condition.
    """
    from latebloomer.cli.learner_source import problem_at
    from latebloomer.theory import guarantees as guarantees_of

    with naming("--problem"):
        setting = problem_at(problem)
    listed = [
        guarantees_of(
            setting,
            at,
            noise=noise,
            window=window,
            exploration=exploration,
            beta=beta,
            c=c,
            iota=iota,
        )
        for at in comma_separated("--budget", budget, int)
    ]
    tables = [table.to_dict() for table in listed]
    say(jsons.dumps({"guarantees": tables}) if json else "\n\n".join(map(str, listed)))
