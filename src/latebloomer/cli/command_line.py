"""The command-line app with all commands, and their exit codes."""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from latebloomer.cli import journal_commands as j
from latebloomer.cli import paper_commands as p
from latebloomer.cli import race_commands as r
from latebloomer.cli import simulation_commands as s
from latebloomer.cli.output import say
from latebloomer.errors import Interrupted, LatebloomerError
from latebloomer.version import __version__

ERROR, INTERRUPTED = 2, 130  # exit codes; shells use 130 for Ctrl-C
COMMANDS = (
    r.race,
    r.resume,
    j.races,
    j.show,
    j.watch,
    j.report,
    j.repair,
    s.plan,
    s.policies,
    s.simulate,
    s.guarantees,
    s.bench,
    s.download,
    p.reproduce,
    p.cite,
)
SUMMARY = "Train several learners under one shared budget and keep the one that ends best."

app = typer.Typer(
    name="latebloomer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help is plain text: else `random:FAMILY:K` would show an emoji, and [name] be markup.
    rich_markup_mode=None,
)


class CommandWithPanels(TyperCommand):
    """A command whose help groups the options by their panels, as plain text."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as they are declared, without the extra brackets of typer."""
        return [
            "[OPTIONS]",
            *(parameter.metavar for parameter in self.get_params(ctx) if parameter.metavar),
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for the arguments, one for each panel, and one for the other options."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            kind = "Arguments" if param.param_type_name == "argument" else "Options"
            panel = getattr(param, "rich_help_panel", None) or kind
            panels.setdefault(panel, []).extend([record] if record else [])
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        say(f"latebloomer {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Run a command. The options below belong to `latebloomer` itself."""


def with_exit_code(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors of this library into one line and exit code 2, and Ctrl-C into exit code 130.

    Other errors are bugs and show a traceback.
    """

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except Interrupted as stop:
            say(stop, err=True)
            raise typer.Exit(INTERRUPTED) from None
        except LatebloomerError as error:
            text = with_options(str(error), command, error.quoted)
            say(f"{type(error).__name__}: {text}", err=True)
            raise typer.Exit(ERROR) from None

    return wrapped


def with_options(text: str, command: Callable[..., None], quoted: Sequence[str] = ()) -> str:
    """Return a message with options and commands in place of Python arguments and calls.

    An alternative that only Python has, such as ", or ... with journal=None", is left out.
    `quoted` are parts of the text that this library did not write; they stay unchanged.

    >>> with_options("retries=-1 is too small. Call resume('r.db', learners, budget=...).", r.race)
    '--retries -1 is too small. Call `latebloomer resume r.db LEARNERS --budget ...`.'
    >>> with_options("learners=['net']: give full_steps={'net': 2, 'b': 8}, or seed=None.", r.race)
    "learners=['net']: give --full-steps net=2,b=8."
    >>> with_options("seed=1: net raised KeyError: seed=None.", r.race, ["KeyError: seed=None"])
    '--seed 1: net raised KeyError: seed=None.'
    """
    for part in quoted:
        before, separator, after = text.partition(part)
        if separator:
            sides = (with_options(side, command, quoted) for side in (before, after))
            return separator.join(sides)
    on_ray = r"(resume\('[^']*', learners), runner=RayRunner\(([^()]*)\)\)"
    text = re.sub(on_ray, lambda m: f"{m[1]}, --runner ray {_ray_options(m[2])})", text)
    call = r"resume\('([^']*)', learners(?:,( \w+=\.\.\.| --runner ray [^)]*))?\)"
    text = re.sub(call, r"`latebloomer resume \1 LEARNERS\2`", text)
    pairs = r"\{'([^{}]*': \d+)\}"
    text = re.sub(pairs, lambda m: re.sub("'|(?<=,) ", "", m[1]).replace(": ", "="), text)
    names = "|".join({*inspect.signature(command).parameters} - {"learners"})  # an argument
    text = re.sub(rf", or [^,.]*\b({names})=None\b", "", text)

    def option(match: re.Match[str]) -> str:
        return f"--{match[1].replace('_', '-')}{' ' * bool(match[2])}"

    text = re.sub(rf"\b({names})=False\b", lambda m: f"--no-{m[1]}", text)

    return re.sub(rf"\b({names})=(?=([^\s.,)]|\.\.)?)", option, text)


def _ray_options(settings: str) -> str:
    """Return the settings of a `RayRunner` as options.

    >>> _ray_options("address='auto', storage='s3://bucket/races'")
    '--address auto --storage s3://bucket/races'
    """
    pairs = re.findall(r"(\w+)='([^']*)'", settings)
    return " ".join(f"--{name} {value}" for name, value in pairs)


for command in COMMANDS:
    about = inspect.getdoc(command)
    app.command(cls=CommandWithPanels, help=about)(with_exit_code(command))
