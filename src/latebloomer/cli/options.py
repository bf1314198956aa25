"""The options of all commands: their help texts by panel, and what values they take."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import typer

from latebloomer._util.atomic_files import need_different, need_writable
from latebloomer._util.text import printable
from latebloomer.errors import MOST, LatebloomerError, OutputError, SettingError
from latebloomer.policies.registry import MAIN

Number = TypeVar("Number", int, float)
KNOWN = f"auto, {', '.join(MAIN)}. `latebloomer policies` lists all."
RUNNERS = ("local", "isolated", "ray")

# By panel of the help; "resume.budget" is the option --budget of resume where its text differs.
HELP = {
    "Budget": {
        "trainings": "Budget in full trainings. Give one of --trainings, --budget and --seconds.",
        "budget": "Budget in pulls, over all learners. One pull is one step, or a fraction of a "
        "full training with --full-steps.",
        "seconds": "Budget in seconds of wall-clock time.",
        "full_steps": "Steps in a full training: 200 for all, or net=3600,forest=200. Default: "
        "each learner's `full_steps` attribute.",
        "pulls_per_training": "Pulls in a full training. Default: 100, or the shortest training's "
        "steps if 10 to 99.",
        "winner_share": "Fraction of the budget reserved for training the winner further.",
        "plan.budget": "Budget in pulls, over all learners.",
        "plan.trainings": "Budget in full trainings of 100 pulls. Give --trainings or --budget.",
        "resume.budget": "New total budget in pulls, including pulls already spent.",
        "resume.trainings": "New total budget in full trainings.",
        "resume.seconds": "New total time in seconds, including the time already spent.",
        "resume.full_steps": "Steps in a full training of the added learners, as in `race`.",
        "simulate.budget": "Budget in pulls, over all arms; several separated by commas.",
        "bench.budgets": "Budgets in full trainings, separated by commas.",
    },
    "Policy": {
        "policy": "Rule that decides which learner trains next and which is dropped: NAME or "
        f"NAME:SETTING=VALUE,... of {KNOWN}",
        "policies": f"Policies separated by commas, each NAME or NAME:SETTING=VALUE,...: {KNOWN}",
        "bench.policies": "Policies separated by commas. Default: all that need no settings.",
        "horizon": "Pulls at which learners are compared. Default: the budget or a full training.",
        "resume.horizon": "New number of pulls at which learners are compared.",
        "min_pulls": "Pulls every learner gets before any can be dropped.",
        "stop": "Stop early. `certified`: once the winner is proved best (95 %).",
        "maximize": "Whether higher scores are better, or lower ones.",
        "seed": "Random seed for the policy and for learners that take a seed.",
        "revive": "Let dropped learners rejoin if the new plan would have kept them.",
        "add": "Name of a learner to add; repeat for several.",
    },
    "Files": {
        "journal": "Journal of every pull: a file, or a folder ending in / for a new file.",
        "if_exists": "If the journal holds a race: error, resume, or new (a new file next to it).",
        "report": "Write an HTML report to this file.",
        "save": "Pickle the trained winner to this file.",
        "report.out": "File to write. Default: next to the journal.",
        "repair.out": "New file. Default: NAME.repaired.db next to the journal.",
        "simulate.out": "Results file. If it exists, only missing runs are simulated.",
    },
    "Faults": {
        "timeout": "Give up on a pull after this many seconds and count it as failed.",
        "retries": "Times to retry a failed pull before the learner counts as failed.",
        "checkpoint_every": "Save each learner every N pulls. Default: if 20 s would be lost.",
        "isolate": "Run each learner in its own process, so that a crash ends only that learner.",
        "max_in_memory": "Maximum number of learners in memory; the others wait in checkpoints.",
    },
    "Ray": {
        "runner": "Where pulls run: local (this process), isolated (one local process per "
        "learner) or ray (one Ray actor per learner).",
        "resume.runner": "Where pulls run: local, isolated or ray. Default: as recorded, unless "
        "another option of the runner is given.",
        "engine": "Where runs are simulated: local, or ray for tasks on a cluster.",
        "address": "Ray cluster: auto or ray://host:10001. Default: `RAY_ADDRESS`, or start one.",
        "storage": "Checkpoint folder or URL for all Ray nodes. Default: next to the journal.",
        "cpus": "CPUs for one learner.",
        "gpus": "GPUs for one learner.",
    },
    "Output": {
        "watch": "Serve a live page on this machine and print its URL.",
        "json": "Print one JSON object.",
        "quiet": "Show no progress.",
        "verbose": "Print the full verdict: every learner, reason and warning.",
        "follow": "Redraw while the race runs; with --json, print one line for each change.",
    },
    None: {
        "clean": "Remove the checkpoints of all learners but the winners of finished races.",
        "mode": "as-written or as-published.",
        "exit_after_idle": "Exit this many seconds after the last race and the last tab ended.",
        "problem": "paper-a, paper-b, imdb, one-riser:K=16:T=800, random:FAMILY:K=10:seed=3, or a "
        "file of curves.",
        "runs": "Runs of each policy at each budget.",
        "method": "pulls: draw every reward; sums: draw window sums (Gaussian noise, fixed "
        "plans); auto: sums if possible.",
        "threads": "CPU threads. Default: all cores.",
        "sets": "Sets separated by commas: lcdb11-linear, lcdb11-geometric, taskset, srb-imdb, "
        "yahpo (these five: public), lcdb10 (real runs), random-FAMILY (six of them: random), "
        "paper-a, paper-b, imdb (paper), or all.",
        "arms": "Arms of the problems of taskset and yahpo: some of 8,16,32,64,128.",
        "costs": "Compare the learners of lcdb10 within a time, per full training and per second.",
    },
}  # fmt: skip
TEXTS = {name: (panel, text) for panel, texts in HELP.items() for name, text in texts.items()}


def text(name: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """Return the option of a name in `HELP`, or with this help text; it takes any text or path."""
    panel, words = TEXTS.get(name, (panel, name))
    return typer.Option(*flags, help=words, rich_help_panel=panel, **more)


def flag(name: str) -> Any:
    """Return an option without a value."""
    return text(name, f"--{name}")


def count(name: str, least: int = 1, most: int = MOST, **more: Any) -> Any:
    """Return an option that takes an integer in a range."""
    needed = f"at least {least}" + ("" if most == MOST else f" and at most {most}")
    return _checked(name, lambda value: least <= value <= most, needed, **more)


def number(name: str) -> Any:
    """Return an option that takes a finite number, at least 0."""
    return _checked(name, lambda value: 0 <= value < math.inf, "finite and at least 0")


def choice(name: str, *words: str) -> Any:
    """Return an option that takes one of some words."""
    return _checked(name, lambda value: value in words, " or ".join(words))


def _checked(name: str, holds: Callable[[Any], bool], needed: str, **more: Any) -> Any:
    def check(value: Any) -> Any:
        if value is not None and not holds(value):
            raise typer.BadParameter(f"{value} must be {needed}.")
        return value

    return text(name, callback=check, **more)


def policies(name: str, **more: Any) -> Any:
    """Return an option that takes one policy, or several separated by commas."""
    from latebloomer.policies.registry import default_or_named, split_policies

    def check(value: str | None) -> str | None:
        try:
            for one in [] if value is None else split_policies(value):
                default_or_named(one)
        except LatebloomerError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return text(name, callback=check, **more)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Let errors name the option that caused them."""
    try:
        yield
    except LatebloomerError as error:
        raise type(error)(f"{option}: {error}") from error


def comma_separated(option: str, words: str, kind: Callable[[str], Number]) -> list[Number]:
    """Return the numbers of an option.

    >>> comma_separated("--budget", "100,200", int)
    [100, 200]
    """
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        what = "integers" if kind is int else "numbers"
        raise SettingError(f"{option} {words!r} must be {what} separated by commas.") from None


def say(text: object, err: bool = False) -> None:
    """Print with control characters as escapes: names of learners are other people's text."""
    typer.echo(printable(str(text)), err=err)


def command(*words: object) -> str:
    """Return a command of this program as one types it."""
    return shlex.join(["latebloomer", *map(str, words)])


def redrawn(texts: Iterable[object]) -> None:
    """Show texts as they come, each in place of the last; one below the other in a file.

    Ctrl-C ends that and nothing else.
    """
    with suppress(KeyboardInterrupt):
        if not sys.stdout.isatty():
            for text in texts:
                say(f"{text}\n")
            return
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False, vertical_overflow="crop") as live:
            for text in texts:
                live.update(Text(printable(str(text))), refresh=True)


def check_outputs(files: Mapping[str, Path | None], **other: Path) -> None:
    """Raise an error before the work if the files that options name cannot be written after it."""
    need_different({**{f"the {name}": path for name, path in other.items()}, **files})
    for option, path in files.items():
        if path is not None:
            with naming(option):
                need_writable(path)


def write_each(
    *files: tuple[Path | None, Callable[[Path], object], str], err: bool = False
) -> None:
    """Write all that is asked for, in order, also if one fails; then raise its error.

    Each file has a command that tries again, which an error names, or an empty text.
    """
    failures: list[LatebloomerError] = []
    for path, write, again in files:
        try:
            if path is not None:
                write(path)
                if again:
                    say(f"wrote {path}", err=err)
        except OutputError as error:
            failures.append(OutputError(f"{error}; then: {again}") if again else error)
        except LatebloomerError as error:
            failures.append(error)
    for failure in failures[1:]:
        say(f"{type(failure).__name__}: {failure}", err=True)
    if failures:
        raise failures[0]
