"""The commands race, resume, report and show: real learners, their journals and verdicts."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from latebloomer.errors import Interrupted, LearnerError, SettingError
from latebloomer.racing.journal.journal import near
from latebloomer.racing.learner import Given, can_save
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.verdict.verdict import Verdict

LearnersAt = Annotated[
    str, typer.Argument(help="module:function that returns the learners, a dict of names.")
]
JournalFile = Annotated[Path, typer.Argument(help="The race's journal.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
RunnerName = Annotated[
    str, typer.Option(help="local, or ray: every learner in a process of its own.")
]
Address = Annotated[str | None, typer.Option(help="Of a Ray that runs: auto or ray://host:10001.")]
Storage = Annotated[str | None, typer.Option(help="Where all of Ray's nodes keep checkpoints.")]
Cpus = Annotated[float, typer.Option(help="CPUs that one learner takes, on Ray.")]
Gpus = Annotated[float, typer.Option(help="GPUs that one learner takes, on Ray.")]
Grace = Annotated[int, typer.Option(help="Pulls before which no learner is dropped.")]
Save = Annotated[Path | None, typer.Option(help="Pickle the trained winner here.")]


def race(
    learners: LearnersAt,
    budget: Annotated[int | None, typer.Option(help="Pulls in all.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Or the time that it may take.")] = None,
    policy: Annotated[str, typer.Option(help="auto, a name, or name:setting=value,...")] = "auto",
    horizon: Annotated[int | None, typer.Option(help="Pulls at which learners compare.")] = None,
    journal: Annotated[Path, typer.Option(help="Where every pull is recorded.")] = Path("race.db"),
    report: Report = None,
    save: Save = None,
    seed: Annotated[int, typer.Option(help="For learners that take one.")] = 0,
    minimize: Annotated[bool, typer.Option("--minimize", help="Scores are losses.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one pull may take.")] = None,
    deliver: Annotated[
        float, typer.Option(help="Share of the budget kept to train the winner on.")
    ] = 0.0,
    grace: Grace = 1,
    runner: RunnerName = "local",
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    quiet: Quiet = False,
) -> None:
    """Race learners within a budget and keep the right one."""
    from latebloomer.racing.api import race as run

    with command_to_go_on(learners):
        verdict = run(
            learners_at(learners), budget, seconds=seconds, policy=policy, horizon=horizon,
            journal=journal, seed=seed, maximize=not minimize, timeout=timeout, deliver=deliver,
            grace=grace, progress=not quiet,
            runner=runner_at(runner, address, storage, cpus, gpus),
        )  # fmt: skip
    print_and_write(verdict, report, save)


def resume(
    journal: JournalFile,
    learners: LearnersAt,
    report: Report = None,
    save: Save = None,
    runner: RunnerName = "local",
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    quiet: Quiet = False,
) -> None:
    """Go on with a race after an interruption."""
    from latebloomer.racing.api import resume as run

    where = runner_at(runner, address, storage, cpus, gpus)
    with command_to_go_on(learners):
        verdict = run(journal, learners_at(learners), runner=where, progress=not quiet)
    print_and_write(verdict, report, save)


def report(
    journal: JournalFile,
    out: Annotated[
        Path | None, typer.Option(help="The file; beside the journal if not given.")
    ] = None,
) -> None:
    """Write the HTML report of a race, finished or not."""
    from latebloomer.racing.api import look

    file = look(journal).report(out or journal.with_suffix(".html"))
    typer.echo(f"wrote {file}")


def show(journal: JournalFile) -> None:
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


def print_and_write(verdict: Verdict, report: Path | None, save: Path | None) -> None:
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


@contextmanager
def command_to_go_on(learners: str) -> Iterator[None]:
    """Let an interrupted race say which command, rather than which call, goes on with it."""
    try:
        yield
    except Interrupted as stop:
        if stop.journal is None:
            raise
        said = str(stop).partition(";")[0]
        again = f"go on with: latebloomer resume {near(Path(stop.journal))} {learners}"
        raise Interrupted(f"{said}\n{again}", stop.journal) from None
