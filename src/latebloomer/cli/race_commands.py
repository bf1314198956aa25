"""The commands race, resume, extend, report, show and repair: real learners and their journals."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from latebloomer.cli.learner_source import learners_at
from latebloomer.cli.terminal_output import check_outputs, say, write_each
from latebloomer.errors import Interrupted, OutputError, SettingError
from latebloomer.racing.journal.journal import near
from latebloomer.racing.learner import Given, can_save
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.verdict.verdict import Verdict

LEARNERS_HELP = (
    "module:function or path/to/file.py:function that returns the learners, a dict of names."
)
LearnersAt = Annotated[str, typer.Argument(help=LEARNERS_HELP)]
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
Isolate = Annotated[
    bool, typer.Option("--isolate", help="A local process for each learner: a crash is its own.")
]
Resident = Annotated[int | None, typer.Option(help="Learners in memory at once, at most.")]
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
    isolate: Isolate = False,
    resident: Resident = None,
    runner: RunnerName = "local",
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    quiet: Quiet = False,
) -> None:
    """Race learners within a budget and keep the right one.

    Exit code 2: the call cannot be carried out, or your own module or function fails, and its
    lines are shown. Exit code 130: Ctrl-C, and the command that goes on is shown.
    """
    from latebloomer.racing.api import race as run

    check_outputs({"--report": report, "--save": save}, {"the journal": journal})
    with command_to_go_on(learners):
        verdict = run(
            learners_at(learners), budget, seconds=seconds, policy=policy, horizon=horizon,
            journal=journal, seed=seed, maximize=not minimize, timeout=timeout, deliver=deliver,
            grace=grace, isolate=isolate, resident=resident, progress=not quiet,
            runner=runner_at(runner, address, storage, cpus, gpus),
        )  # fmt: skip
    print_and_write(verdict, learners, report, save)


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
    isolate: Isolate = False,
    resident: Resident = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a race after an interruption."""
    from latebloomer.racing.api import resume as run

    check_outputs({"--report": report, "--save": save}, {"the journal": journal})
    where = runner_at(runner, address, storage, cpus, gpus)
    with command_to_go_on(learners):
        given = learners_at(learners)
        verdict = run(
            journal, given, runner=where, progress=not quiet, isolate=isolate, resident=resident
        )
    print_and_write(verdict, learners, report, save)


def extend(
    journal: JournalFile,
    learners: LearnersAt,
    budget: Annotated[int, typer.Option(help="Pulls in all, those that are spent among them.")],
    horizon: Annotated[int | None, typer.Option(help="Pulls at which learners compare.")] = None,
    revive: Annotated[bool, typer.Option(help="Whether who is out may come back.")] = True,
    add: Annotated[list[str] | None, typer.Option(help="A newcomer, by name; repeatable.")] = None,
    report: Report = None,
    save: Save = None,
    runner: RunnerName = "local",
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    isolate: Isolate = False,
    resident: Resident = None,
    quiet: Quiet = False,
) -> None:
    """Give a race, finished or not, a larger budget, and newcomers.

    Newcomers are among the learners that are given. An interrupted call can be repeated as it is.
    """
    from latebloomer.racing.api import resume as run

    check_outputs({"--report": report, "--save": save}, {"the journal": journal})
    where = runner_at(runner, address, storage, cpus, gpus)
    with command_to_go_on(learners):
        given, newcomers = newcomers_apart(learners_at(learners), add or [])
        verdict = run(
            journal, given, budget=budget, horizon=horizon, revive=revive, add=newcomers,
            runner=where, progress=not quiet, isolate=isolate, resident=resident,
        )  # fmt: skip
    print_and_write(verdict, learners, report, save)


def newcomers_apart(
    given: Mapping[str, Given], names: list[str]
) -> tuple[dict[str, Given], dict[str, Given]]:
    """The learners without those of these names, and those."""
    for name in names:
        if name not in given:
            raise SettingError(
                f"--add {name}, but the learners given are {', '.join(given)}: name one of them"
            )
    old = {name: learner for name, learner in given.items() if name not in names}
    return old, {name: given[name] for name in names}


def report(
    journal: JournalFile,
    out: Annotated[
        Path | None, typer.Option(help="The file; beside the journal if not given.")
    ] = None,
) -> None:
    """Write the HTML report of a race, finished or not."""
    from latebloomer.racing.api import look

    file = look(journal).report(out or journal.with_suffix(".html"))
    say(f"wrote {file}")


def show(journal: JournalFile) -> None:
    """Show the standings of a race, also while it runs."""
    from latebloomer.racing.api import look

    say(look(journal))


def repair(
    journal: JournalFile,
    out: Annotated[
        Path | None, typer.Option(help="The new file; NAME.repaired.db beside it if not given.")
    ] = None,
) -> None:
    """Keep the sound beginning of a damaged journal in a new file."""
    from latebloomer.racing.journal.files import repair as keep_sound

    new = out or journal.with_name(f"{journal.stem}.repaired{journal.suffix}")
    pulls, wrong = keep_sound(journal, new)
    if not wrong:
        say(f"{journal} is not damaged: all its {pulls} pulls are sound, nothing was written")
        return
    say(f"{journal} is {wrong}")
    say(f"wrote {new}: {pulls} pulls are kept; {journal} stays as it is")
    states, theirs = Path(f"{journal}.checkpoints"), f"{new}.checkpoints"
    if states.is_dir():
        say(f"to use its checkpoints, first: {shlex.join(['mv', str(states), theirs])}")
    say(f"go on with: {command('resume', new)} module:function")


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


def print_and_write(
    verdict: Verdict, learners: str, report: Path | None, save: Path | None
) -> None:
    """The verdict on stdout; the winner and the report into files, the winner first."""
    say("\n".join([verdict.sentence, *verdict.both]))
    if save is None and not can_save(verdict.learner):
        say("the trained winner ends with this command: --save winner.pkl keeps it", err=True)
    journal = near(Path(str(verdict.journal)))
    resumed = command("resume", journal, learners, "--save", save)
    reported = command("report", journal, "--out", report)
    write_each(
        (save, partial(write_or_say, verdict.save, resumed)),
        (report, partial(write_or_say, verdict.report, reported)),
    )


def write_or_say(write: Callable[[Path], object], again: str, path: Path) -> None:
    """Write a file of a race that is over; where that fails, say which command tries again."""
    try:
        write(path)
    except OutputError as error:
        raise OutputError(f"{error}; then: {again}") from error
    say(f"wrote {path}")


def command(*words: object) -> str:
    """A command of this program as one types it."""
    return shlex.join(["latebloomer", *map(str, words)])


@contextmanager
def command_to_go_on(learners: str) -> Iterator[None]:
    """Let an interrupted race say which command, rather than which call, goes on with it."""
    try:
        yield
    except Interrupted as stop:
        if stop.journal is None:
            raise
        said = str(stop).partition(";")[0]
        again = command("resume", near(Path(stop.journal)), learners)
        raise Interrupted(f"{said}\ngo on with: {again}", stop.journal) from None
