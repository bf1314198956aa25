"""The commands race, resume and extend: real learners, and what is kept of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latebloomer.cli.learner_source import learners_at
from latebloomer.cli.saved_winner import with_models
from latebloomer.cli.terminal_output import Json, check_outputs, command, say, write_each
from latebloomer.errors import Interrupted, OutputError, SettingError
from latebloomer.racing.journal import ERROR, RACES
from latebloomer.racing.learner import Given, can_save

if TYPE_CHECKING:
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.verdict.verdict import Verdict

LEARNERS_HELP = (
    "module:function or path/to/file.py:function that returns the learners, a dict of names."
)
RESUME_HELP = f"The race's journal, if it is not the newest in races/; then {LEARNERS_HELP}"
LearnersAt = Annotated[str, typer.Argument(help=LEARNERS_HELP)]
SIGN_HELP = "Scores are to be high, or are losses."
CHECKPOINT_HELP = "Pulls of a learner between two checkpoints; by time if not given."
STOP_HELP = "certified: end once the winner is certified."
JOURNAL_HELP = "Where every pull is recorded: a file, or a folder/ for a new file in it."
IF_EXISTS_HELP = "Where the journal holds a race already: error, resume it, or new, a file beside."
Report = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="End with every learner, reason and warning.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
RunnerName = Annotated[
    str, typer.Option(help="local, or ray: every learner in a process of its own.")
]
OtherRunner = Annotated[
    str | None,
    typer.Option(help="local, isolated or ray. Default: the recorded runner and settings."),
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
Watched = Annotated[
    bool, typer.Option("--watch", help="Show the race in a browser, on this machine.")
]
Save = Annotated[Path | None, typer.Option(help="Pickle the trained winner here.")]


def race(
    learners: LearnersAt,
    trainings: Annotated[
        float | None, typer.Option(help="The budget in full trainings; see --full-steps.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Or in pulls, each one step.")] = None,
    full_steps: Annotated[
        str | None,
        typer.Option(
            help="Steps of a full training: 200, or net=3600,forest=200; by default "
            "what each learner says."
        ),
    ] = None,
    pulls_per_training: Annotated[
        int | None, typer.Option(help="Pulls of a full training: 100 by default.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Or the time that it may take.")] = None,
    policy: Annotated[str, typer.Option(help="auto, a name, or name:setting=value,...")] = "auto",
    horizon: Annotated[int | None, typer.Option(help="Pulls at which learners compare.")] = None,
    journal: Annotated[str, typer.Option(help=JOURNAL_HELP)] = RACES,
    if_exists: Annotated[str, typer.Option(help=IF_EXISTS_HELP)] = ERROR,
    report: Report = None,
    save: Save = None,
    seed: Annotated[int, typer.Option(help="For learners that take one.")] = 0,
    maximize: Annotated[bool, typer.Option("--maximize/--minimize", help=SIGN_HELP)] = True,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one pull may take.")] = None,
    retries: Annotated[int, typer.Option(help="How often a failed pull is tried again.")] = 1,
    checkpoint_every: Annotated[int | None, typer.Option(help=CHECKPOINT_HELP)] = None,
    winner_share: Annotated[
        float, typer.Option(help="Share of the budget kept to train the winner on.")
    ] = 0.0,
    min_pulls: Grace = 1,
    stop: Annotated[str | None, typer.Option(help=STOP_HELP)] = None,
    isolate: Isolate = False,
    max_in_memory: Resident = None,
    runner: RunnerName = "local",
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    watch: Watched = False,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Race learners within a budget and keep the right one.

    Exit code 2: the call cannot be carried out, or your own module or function fails, and its
    lines are shown. Exit code 130: Ctrl-C, and the command that goes on is shown.
    """
    from latebloomer.racing.api import race as run

    check_outputs({"--report": report, "--save": save}, {"the journal": Path(journal)})
    with command_to_go_on(learners):
        given = learners_at(learners)
        verdict = run(
            given if save is None else with_models(given), budget, trainings=trainings,
            full_steps=parse_full_steps(full_steps), pulls_per_training=pulls_per_training,
            seconds=seconds, policy=policy, horizon=horizon,
            journal=journal, if_exists=if_exists, seed=seed, maximize=maximize,
            winner_share=winner_share, min_pulls=min_pulls, stop=stop,
            progress=shown_while_running(quiet, json), watch=watch,
            runner=runner_at(
                runner, address, storage, cpus, gpus, isolate=isolate,
                max_in_memory=max_in_memory, timeout=timeout, retries=retries,
                checkpoint_every=checkpoint_every,
            ) or "local",
        )  # fmt: skip
    say_verdict(verdict, quiet, json, verbose)
    write_files(verdict, learners, report, save, json)


def resume(
    words: Annotated[list[str], typer.Argument(metavar="[JOURNAL] LEARNERS", help=RESUME_HELP)],
    report: Report = None,
    save: Save = None,
    runner: OtherRunner = None,
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    isolate: Isolate = False,
    watch: Watched = False,
    json: Json = False,
    max_in_memory: Resident = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a race after an interruption.

    Without a journal it is the newest in races/.
    """
    from latebloomer.racing.api import resume as run

    journal, learners = journal_and_learners(words)
    check_outputs({"--report": report, "--save": save}, {"the journal": journal})
    where = runner_at(
        runner, address, storage, cpus, gpus, isolate=isolate, max_in_memory=max_in_memory
    )
    with command_to_go_on(learners):
        given = learners_at(learners)
        given = given if save is None else with_models(given)
        verdict = run(
            journal,
            given,
            runner=where,
            progress=shown_while_running(quiet, json),
            watch=watch,
        )
    say_verdict(verdict, quiet, json, verbose)
    write_files(verdict, learners, report, save, json)


def journal_and_learners(words: list[str]) -> tuple[Path, str]:
    """What to go on with: two words, or the learners alone for the newest race."""
    from latebloomer.racing.journal.names import journal_at

    if len(words) > 2:
        raise SettingError(
            f"{shlex.join(words)}, but a journal and the learners are needed, or the learners "
            "alone for the newest race"
        )
    return journal_at(words[0] if len(words) == 2 else None), words[-1]


def extend(
    journal: Annotated[Path, typer.Argument(help="The race's journal.")],
    learners: LearnersAt,
    budget: Annotated[
        int | None, typer.Option(help="Pulls in all, those that are spent among them.")
    ] = None,
    trainings: Annotated[float | None, typer.Option(help="Or full trainings in all.")] = None,
    full_steps: Annotated[
        str | None, typer.Option(help="Steps of newcomers' full trainings; see race.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Pulls at which learners compare.")] = None,
    revive: Annotated[bool, typer.Option(help="Whether who is out may come back.")] = True,
    add: Annotated[list[str] | None, typer.Option(help="A newcomer, by name; repeatable.")] = None,
    report: Report = None,
    save: Save = None,
    runner: OtherRunner = None,
    address: Address = None,
    storage: Storage = None,
    cpus: Cpus = 1.0,
    gpus: Gpus = 0.0,
    isolate: Isolate = False,
    max_in_memory: Resident = None,
    quiet: Quiet = False,
    watch: Watched = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Give a race, finished or not, a larger budget, and newcomers.

    Newcomers are among the learners that are given. An interrupted call can be repeated as it is.
    """
    from latebloomer.racing.api import resume as run

    check_outputs({"--report": report, "--save": save}, {"the journal": journal})
    where = runner_at(
        runner, address, storage, cpus, gpus, isolate=isolate, max_in_memory=max_in_memory
    )
    with command_to_go_on(learners):
        given, newcomers = newcomers_apart(learners_at(learners), add or [])
        verdict = run(
            journal, given, budget=budget, trainings=trainings, full_steps=parse_full_steps(full_steps),
            horizon=horizon, revive=revive, add=newcomers,
            runner=where, progress=shown_while_running(quiet, json), watch=watch,
        )  # fmt: skip
    say_verdict(verdict, quiet, json, verbose)
    write_files(verdict, learners, report, save, json)


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


def parse_full_steps(text: str | None) -> int | dict[str, int] | None:
    """Steps of a full training: one number, or some by name.

    >>> parse_full_steps("200"), parse_full_steps("net=3600,forest=200")
    (200, {'net': 3600, 'forest': 200})
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {name.strip(): int(steps) for name, _, steps in pairs}
    except ValueError:
        raise SettingError(
            f"--full-steps {text!r}, but it must be a whole number, or net=3600,forest=200"
        ) from None


def runner_at(
    name: str | None,
    address: str | None,
    storage: str | None,
    cpus: float,
    gpus: float,
    isolate: bool,
    **settings: Any,
) -> Runner | None:
    """Return the runner that the options describe; None if they describe none."""
    if name is None and not isolate and all(value is None for value in settings.values()):
        return None
    if name == "ray":
        if isolate:
            raise SettingError(
                "--isolate is for --runner local: on Ray every learner has its own process"
            )
        from latebloomer.racing.runners.ray import RayRunner

        return RayRunner(address, {"num_cpus": cpus, "num_gpus": gpus}, storage, **settings)
    if address is not None or storage is not None or (cpus, gpus) != (1.0, 0.0):
        raise SettingError(
            f"--runner {name or 'local'}, but --address, --storage, --cpus and --gpus are for Ray:"
            " add --runner ray"
        )
    from latebloomer.racing.runners.contract import make_runner
    from latebloomer.racing.runners.local import LocalRunner

    if name in (None, "local", "isolated"):
        return LocalRunner(isolate=isolate or name == "isolated", **settings)
    return make_runner(str(name))


def shown_while_running(quiet: bool, json: bool) -> bool | str:
    """What `race` shows on stderr: the verdict only where stdout has it in another form."""
    from latebloomer.racing.progress import WHILE_RUNNING

    return False if quiet else True if json else WHILE_RUNNING


def say_verdict(verdict: Verdict, quiet: bool, json: bool, verbose: bool) -> None:
    """The verdict on stdout, once: learners that a live table has shown are not listed again."""
    from latebloomer.racing.progress import display_mode
    from latebloomer.racing.verdict.verdict_text import brief

    if json or verbose:
        say(verdict.to_json() if json else verdict.details())
        return
    seen = not quiet and display_mode() == "live" and sys.stdout.isatty()
    say(brief(verdict, table=not seen))


def write_files(
    verdict: Verdict, learners: str, report: Path | None, save: Path | None, json: bool
) -> None:
    """The winner and the report into files, the winner first."""
    from latebloomer.racing.journal.journal import near

    if save is None and not can_save(verdict.learner):
        say("the trained winner ends with this command: --save winner.pkl keeps it", err=True)
    journal = near(Path(str(verdict.journal)))
    resumed = command("resume", journal, learners, "--save", save)
    reported = command("report", journal, "--out", report)
    write_each(
        (save, partial(write_or_say, verdict.save, resumed, json)),
        (report, partial(write_or_say, verdict.report, reported, json)),
    )


def write_or_say(write: Callable[[Path], object], again: str, json: bool, path: Path) -> None:
    """Write a file of a race that is over; where that fails, say which command tries again."""
    try:
        write(path)
    except OutputError as error:
        raise OutputError(f"{error}; then: {again}") from error
    say(f"wrote {path}", err=json)  # stdout is one JSON object


@contextmanager
def command_to_go_on(learners: str) -> Iterator[None]:
    """Let an interrupted race say which command, rather than which call, goes on with it."""
    try:
        yield
    except Interrupted as stop:
        if stop.journal is None:
            raise
        from latebloomer.racing.journal.journal import near

        said = str(stop).partition(";")[0]
        again = command("resume", near(Path(stop.journal)), learners)
        raise Interrupted(f"{said}\ngo on with: {again}", stop.journal) from None
