"""The commands races, show, report and repair: journals, without their learners."""

from __future__ import annotations

import json as jsons
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latebloomer._util.text import one_line
from latebloomer.cli.terminal_output import Json, command, redrawn, say
from latebloomer.racing.journal import RACES

if TYPE_CHECKING:
    from latebloomer.racing.journal.listing import Cleaned, ListedRace

NEWEST_HELP = "The race's journal, or a folder for the newest in it; that of races/ by default."
FOLDER_HELP = "Where the journals are."
CLEAN_HELP = "Remove the checkpoints of all but the winners, of finished races."
WATCH_HELP = "Redraw while the race runs in another process; with --json, a line for each change."
JournalFile = Annotated[Path, typer.Argument(help="The race's journal.")]
NewestJournal = Annotated[Path | None, typer.Argument(help=NEWEST_HELP)]


def races(
    folder: Annotated[Path, typer.Argument(help=FOLDER_HELP)] = Path(RACES),
    clean_up: Annotated[bool, typer.Option("--clean", help=CLEAN_HELP)] = False,
    json: Json = False,
) -> None:
    """List the races of a folder, the newest last.

    Each with its state, learners, pulls, size and verdict. Checkpoints of learners that lost are
    kept, since a race may be given more; --clean removes them where a race is over.
    """
    from latebloomer.racing.journal.listing import clean, list_races

    cleaned = list(clean(folder)) if clean_up else []
    found = list_races(folder)
    if json:
        listed = {"races": [race.as_dict() for race in found]}
        removed = {"cleaned": [vars(one) for one in cleaned]} if clean_up else {}
        say(jsons.dumps(listed | removed))
        return
    if clean_up:
        say(_cleaned(cleaned))
    say(_table(found) if found else f"no races in {folder}")


def _cleaned(removed: list[Cleaned]) -> str:
    if not removed:
        return "nothing to remove: no finished race has checkpoints of learners that lost"
    learners, freed = sum(one.learners for one in removed), sum(one.bytes for one in removed)
    return (
        f"removed the checkpoints of {learners} learners that lost, in {len(removed)} finished "
        f"races: {_size(freed)}"
    )


def _table(found: list[ListedRace]) -> str:
    head = ["race", "state", "written", "learners", "pulls", "size", "checkpoints", "verdict"]
    rows = [head, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    right = {3, 4, 5, 6}
    cells = (
        cell.rjust(width) if k in right else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _row(race: ListedRace) -> list[str]:
    of = f" of {race.budget}" if race.budget is not None and race.pulls < race.budget else ""
    written = f"{datetime.fromtimestamp(race.written):%Y-%m-%d %H:%M}"
    return [
        one_line(Path(race.path).name), race.state, written,
        str(len(race.learners)), f"{race.pulls}{of}", _size(race.bytes),
        _size(race.checkpoint_bytes) if race.checkpoint_bytes else "-", _verdict(race),
    ]  # fmt: skip


def _verdict(race: ListedRace) -> str:
    if race.wrong:
        return one_line(race.wrong)
    if race.winner is None or race.score is None:
        return ""
    sure = ", certified" if race.certified else ""
    return one_line(f"{race.winner}, {race.score:.6g}{sure}")


def _size(count: int) -> str:
    """
    >>> _size(0), _size(32768), _size(5 * 10**9)
    ('0 B', '33 kB', '5 GB')
    """
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}" if size < 10 else f"{size:.0f} {units[0]}"


def report(
    journal: NewestJournal = None,
    out: Annotated[
        Path | None, typer.Option(help="The file; beside the journal if not given.")
    ] = None,
) -> None:
    """Write the HTML report of a race, finished or not."""
    from latebloomer.racing.api import read_verdict
    from latebloomer.racing.journal.names import journal_at

    found = journal_at(journal)
    file = read_verdict(found).report(out or found.with_suffix(".html"))
    say(f"wrote {file}")


def show(
    journal: NewestJournal = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Every reason and warning.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help=WATCH_HELP)] = False,
    json: Json = False,
) -> None:
    """Show the standings of a race, also while it runs."""
    from latebloomer.racing.api import read_verdict
    from latebloomer.racing.following import follow

    if not watch:
        verdict = read_verdict(journal)
        say(verdict.to_json() if json else verdict.details() if verbose else verdict)
    elif json:
        for verdict in follow(journal):
            say(verdict.to_json())
    else:
        redrawn(follow(journal))


def repair(
    journal: JournalFile,
    out: Annotated[
        Path | None, typer.Option(help="The new file; NAME.repaired.db beside it if not given.")
    ] = None,
) -> None:
    """Keep the sound beginning of a damaged journal in a new file."""
    from latebloomer.racing.journal.recovery import repair as copy_intact

    new = out or journal.with_name(f"{journal.stem}.repaired{journal.suffix}")
    found = copy_intact(journal, new)
    if not found.cause:
        say(
            f"{journal} is not damaged: all its {found.pulls} pulls are intact. Nothing was written."
        )
        return
    say(f"{journal} is damaged after event {found.events} ({found.cause}).")
    say(f"Wrote {new} with {found.pulls} pulls; {journal} is unchanged.")
    states, theirs = Path(f"{journal}.checkpoints"), f"{new}.checkpoints"
    if states.is_dir():
        say(f"to use its checkpoints, first: {shlex.join(['mv', str(states), theirs])}")
    say(f"go on with: {command('resume', new)} module:function")
