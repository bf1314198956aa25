"""The app with all its commands, and how each of them ends."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from latebloomer.cli import journal_commands as j
from latebloomer.cli import options as o
from latebloomer.cli import race_commands as r
from latebloomer.cli import simulation_commands as s
from latebloomer.cli.options import say
from latebloomer.errors import Interrupted, LatebloomerError
from latebloomer.version import __version__

ERROR, INTERRUPTED = 2, 130  # exit codes; 130 is the shell's for Ctrl-C
COMMANDS = (
    r.race, r.resume, j.races, j.show, j.watch, j.report, j.repair, s.plan, s.policies, s.simulate,
    s.bench, s.download, s.reproduce, s.cite,
)  # fmt: skip
SUMMARY = "Train several learners under one shared budget and keep the one that ends best."

app = typer.Typer(
    name="latebloomer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help is text: `random:FAMILY:K` is not an emoji, [name] not markup
)


class CommandWithPanels(TyperCommand):
    """A command whose help groups the options by their panels, as plain text."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as they are declared; typer puts more brackets around them."""
        return ["[OPTIONS]", *(one.metavar for one in self.get_params(ctx) if one.metavar)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for the arguments, for each panel, and for the other options."""
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
    """Run a command; the options here belong to none of them."""


def with_exit_code(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors of this library into one line and code 2, Ctrl-C into code 130.

    Other errors are bugs and show.
    """

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except Interrupted as stop:
            say(stop, err=True)
            raise typer.Exit(INTERRUPTED) from None
        except LatebloomerError as error:
            say(f"{type(error).__name__}: {with_options(str(error), command)}", err=True)
            raise typer.Exit(ERROR) from None

    return wrapped


def with_options(text: str, command: Callable[..., None]) -> str:
    """Return a message with the command's options, and commands, in place of Python's.

    What only Python can do, an alternative such as ", or ... with journal=None", is left out.

    >>> with_options("retries=-1 is too small. Call resume('r.db', learners, budget=...).", r.race)
    '--retries -1 is too small. Call `latebloomer resume r.db LEARNERS --budget ...`.'
    >>> with_options("learners=['net']: give full_steps={'net': 2, 'b': 8}, or seed=None.", r.race)
    "learners=['net']: give --full-steps net=2,b=8."
    """
    call = r"resume\('([^']*)', learners(?:,( \w+=\.\.\.))?\)"
    text = re.sub(call, r"`latebloomer resume \1 LEARNERS\2`", text)
    pairs = r"\{'([^{}]*': \d+)\}"
    text = re.sub(pairs, lambda m: re.sub("'|(?<=,) ", "", m[1]).replace(": ", "="), text)
    names = "|".join({*inspect.signature(command).parameters} - {"learners"})  # an argument
    text = re.sub(rf", or [^,.]*\b({names})=None\b", "", text)

    def option(match: re.Match[str]) -> str:
        return f"--{match[1].replace('_', '-')}{' ' * bool(match[2])}"

    return re.sub(rf"\b({names})=(?=([^\s.,)]|\.\.)?)", option, text)


def with_options_of(command: Callable[..., None]) -> None:
    """Make a command's parameters options with help; those of `carry_out` stand for `**shared`.

    The texts are in the docstrings of the command, of `carry_out`, and of `race`.
    """
    texts = o.texts_in(r.race) | o.texts_in(r.carry_out) | o.texts_in(command)
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        more = inspect.signature(r.carry_out, eval_str=True).parameters.values()
        own[-1:] = [one.replace(kind=own[0].kind) for one in more if one.kind is one.KEYWORD_ONLY]
    options = [o.as_option(one, texts[one.name]) for one in own]
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]


for command in COMMANDS:
    with_options_of(command)
    about = (inspect.getdoc(command) or "").partition(o.SECTION)[0]
    app.command(cls=CommandWithPanels, help=about)(with_exit_code(command))
