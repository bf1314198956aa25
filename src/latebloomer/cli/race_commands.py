"""The commands race, resume, report and show; `register` adds them to the command line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from latebloomer.errors import Interrupted, LatebloomerError, LearnerError, SettingError
from latebloomer.racing.learner import Given, can_save
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.verdict.verdict import Verdict

Where = Annotated[
    str, typer.Argument(help="module:function that returns the learners, a dict of names.")
]
File = Annotated[Path, typer.Argument(help="The race's journal.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
On = Annotated[str, typer.Option(help="local, or ray: every learner in a process of its own.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray that runs: auto or ray://host:10001.")]
Store = Annotated[str | None, typer.Option(help="Where all of Ray's nodes keep checkpoints.")]
Cores = Annotated[float, typer.Option(help="CPUs that one learner takes, on Ray.")]
Cards = Annotated[float, typer.Option(help="GPUs that one learner takes, on Ray.")]
Keep = Annotated[Path | None, typer.Option(help="Pickle the trained winner here.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (race, resume, report, show):
        app.command()(_ends_well(command))


def _ends_well(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of this library are one line and code 2; Ctrl-C says how to go on and is code 130."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except Interrupted as stop:
            where = kwargs.get("learners", "module:function")
            typer.echo(str(stop).partition(";")[0], err=True)
            if stop.journal is not None:
                typer.echo(
                    f"go on with: latebloomer resume {_near(stop.journal)} {where}", err=True
                )
            raise typer.Exit(130) from None
        except LatebloomerError as error:
            typer.echo(f"{type(error).__name__}: {error}", err=True)
            raise typer.Exit(2) from None

    return wrapped


def race(
    learners: Where,
    budget: Annotated[int | None, typer.Option(help="Pulls in all.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Or the time that it may take.")] = None,
    policy: Annotated[str, typer.Option(help="auto, a name, or name:setting=value,...")] = "auto",
    horizon: Annotated[int | None, typer.Option(help="Pulls at which learners compare.")] = None,
    journal: Annotated[Path, typer.Option(help="Where every pull is recorded.")] = Path("race.db"),
    report: Report = None,
    save: Keep = None,
    seed: Annotated[int, typer.Option(help="For learners that take one.")] = 0,
    minimize: Annotated[bool, typer.Option("--minimize", help="Scores are losses.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one pull may take.")] = None,
    deliver: Annotated[
        float, typer.Option(help="Share of the budget kept to train the winner on.")
    ] = 0.0,
    runner: On = "local",
    address: Address = None,
    storage: Store = None,
    cpus: Cores = 1.0,
    gpus: Cards = 0.0,
    quiet: Quiet = False,
) -> None:
    """Race learners within a budget and keep the right one."""
    from latebloomer.racing.api import race as run

    verdict = run(
        learners_at(learners), budget, seconds=seconds, policy=policy, horizon=horizon,
        journal=journal, seed=seed, maximize=not minimize, timeout=timeout, deliver=deliver,
        runner=runner_at(runner, address, storage, cpus, gpus), progress=not quiet,
    )  # fmt: skip
    _finish(verdict, report, save)


def resume(
    journal: File,
    learners: Where,
    report: Report = None,
    save: Keep = None,
    runner: On = "local",
    address: Address = None,
    storage: Store = None,
    cpus: Cores = 1.0,
    gpus: Cards = 0.0,
    quiet: Quiet = False,
) -> None:
    """Go on with a race after an interruption."""
    from latebloomer.racing.api import resume as run

    where = runner_at(runner, address, storage, cpus, gpus)
    _finish(run(journal, learners_at(learners), runner=where, progress=not quiet), report, save)


def report(
    journal: File,
    out: Annotated[
        Path | None, typer.Option(help="The file; beside the journal if not given.")
    ] = None,
) -> None:
    """Write the HTML report of a race, finished or not."""
    from latebloomer.racing.api import look

    file = look(journal).report(out or journal.with_suffix(".html"))
    typer.echo(f"wrote {file}")


def show(journal: File) -> None:
    """Show the standings of a race, also while it runs."""
    from latebloomer.racing.api import look

    typer.echo(look(journal))


def learners_at(where: str) -> Mapping[str, Given]:
    """The learners that `module:function` returns; the current folder is looked in first."""
    module, colon, name = where.partition(":")
    if not (module and colon and name):
        raise LearnerError(f"{where!r}, but learners are named as module:function")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise LearnerError(
            f"there is no module {module!r} here: run the command where {module}.py is"
        ) from error
    if not hasattr(found, name):
        raise LearnerError(f"module {module!r} has no {name!r}")
    given = getattr(found, name)
    made = given() if callable(given) and not inspect.isclass(given) else given
    if not isinstance(made, Mapping):
        raise LearnerError(
            f"{where} gave {type(made).__name__}, but it must give a dict of learners"
        )
    return made


def runner_at(
    name: str, address: str | None, storage: str | None, cpus: float, gpus: float
) -> str | Runner:
    """The runner that the options describe."""
    if name != "ray":
        if address is not None or storage is not None or (cpus, gpus) != (1.0, 0.0):
            raise SettingError(
                f"--runner {name}, but --address, --storage, --cpus and --gpus are for Ray: add "
                "--runner ray"
            )
        return name
    from latebloomer.racing.runners.ray import RayRunner

    return RayRunner(address, {"num_cpus": cpus, "num_gpus": gpus}, storage)


def _finish(verdict: Verdict, report: Path | None, save: Path | None) -> None:
    """The verdict on stdout; the winner and the report into files."""
    typer.echo("\n".join([verdict.sentence, *verdict.both]))
    if report is not None:
        typer.echo(f"wrote {verdict.report(report)}")
    if save is not None:
        verdict.save(save)
        typer.echo(f"wrote {save}")
    elif not can_save(verdict.learner):
        typer.echo(
            "the trained winner ends with this command: --save winner.pkl keeps it", err=True
        )


def _near(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
