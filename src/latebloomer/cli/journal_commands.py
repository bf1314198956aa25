"""The commands races, show, report, repair and watch: journals, without their learners."""

from __future__ import annotations

import json as jsons
import shlex
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latebloomer._util.atomic_files import need_different, write_file
from latebloomer._util.text import aligned, one_line
from latebloomer.cli import options as o
from latebloomer.cli.options import say
from latebloomer.errors import AllFailed
from latebloomer.racing.journal import RACES

if TYPE_CHECKING:
    from latebloomer.racing.journal.listing import ListedRace

LatestJournal = Annotated[Path | None, typer.Argument(metavar="[JOURNAL]")]


def races(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]")] = Path(RACES),
    clean_up: Annotated[bool, typer.Option("--clean")] = False,
    json: bool = False,
) -> None:
    """List the races of a folder, the latest last.

    Each has its state, learners, pulls, size and verdict. Checkpoints of learners that lost are
    kept, because a race may be extended; --clean removes those of finished races.

    Parameters
    ----------
    folder
        Folder of the journals.
    clean_up
        Remove the checkpoints of all learners but the winners of finished races.
    """
    from rich.filesize import decimal

    from latebloomer.racing.journal.listing import clean, list_races

    cleaned = list(clean(folder)) if clean_up else []
    found = list_races(folder)
    if json:
        listed = {"races": [vars(race) for race in found]}
        removed = {"cleaned": [vars(one) for one in cleaned]} if clean_up else {}
        say(jsons.dumps(listed | removed))
        return
    if cleaned:
        learners, freed = (sum(getattr(c, of) for c in cleaned) for of in ("learners", "bytes"))
        which = f"the checkpoints of {learners} learners that lost"
        say(f"Removed {which}, in {len(cleaned)} finished races: {decimal(freed)}.")
    elif clean_up:
        say("Nothing to remove: no finished race has checkpoints of learners that lost.")
    say(_table(found) if found else f"No races in {folder}.")


def _table(found: list[ListedRace]) -> str:
    head = ["race", "state", "written", "learners", "pulls", "size", "checkpoints", "verdict"]
    return "\n".join(aligned([head, *map(_row, found)], "<<<>>>><"))


def _row(race: ListedRace) -> list[str]:
    from rich.filesize import decimal

    of = f" of {race.budget}" if race.budget is not None and race.pulls < race.budget else ""
    verdict = race.wrong or ""
    if not verdict and race.winner is not None and race.score is not None:
        verdict = f"{race.winner}, {race.score:.6g}{', certified' * bool(race.certified)}"
    return [
        one_line(Path(race.path).name), race.state,
        f"{datetime.fromtimestamp(race.written):%Y-%m-%d %H:%M}", str(len(race.learners)),
        f"{race.pulls}{of}", decimal(race.bytes),
        decimal(race.checkpoint_bytes) if race.checkpoint_bytes else "-", one_line(verdict),
    ]  # fmt: skip


def report(journal: LatestJournal = None, out: Path | None = None) -> None:
    """Write the HTML report of a race, finished or not.

    Parameters
    ----------
    journal
        Journal of the race, or folder whose latest journal is meant. Default: races/.
    out
        File to write. Default: next to the journal.
    """
    from latebloomer.racing.api import read_verdict
    from latebloomer.racing.journal.listing import journal_at

    found = journal_at(journal)
    file = out or found.with_suffix(".html")
    with o.naming("--out") if out else nullcontext():
        try:
            read_verdict(found).report(file)
        except AllFailed:
            from latebloomer.page.race_html import race_html
            from latebloomer.watch.live_page import FollowedRace

            followed = FollowedRace(found)
            followed.update()
            need_different({"the journal": found, "the file to write": file})
            write_file(file, race_html(followed.page()))
    say(f"wrote {file}")


def show(
    journal: LatestJournal = None, verbose: bool = False, follow: bool = False, json: bool = False
) -> None:
    """Show the standings of a race, also while it runs.

    Parameters
    ----------
    journal
        Journal of the race, or folder whose latest journal is meant. Default: races/.
    follow
        Redraw while the race runs; with --json, print one line for each change.
    """
    from latebloomer.racing.api import read_verdict
    from latebloomer.racing.run_race import follow as verdicts

    try:
        if not follow:
            verdict = read_verdict(journal)
            say(verdict.to_json() if json else verdict.details() if verbose else verdict)
        elif json:
            for verdict in verdicts(journal):
                say(verdict.to_json())
        else:
            o.redrawn(verdicts(journal))
    except AllFailed as failure:
        say(jsons.dumps({"state": "failed", "why": str(failure)}) if json else failure)


def repair(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL")], out: Path | None = None
) -> None:
    """Copy the intact beginning of a damaged journal to a new file.

    Parameters
    ----------
    journal
        Journal of the race.
    out
        New file. Default: NAME.repaired.db next to the journal.
    """
    from latebloomer.racing.journal.files import repair as copy_intact

    new = out or journal.with_name(f"{journal.stem}.repaired{journal.suffix}")
    found = copy_intact(journal, new)
    if not found.cause:
        intact = f"all its {found.pulls} pulls are intact. Nothing was written."
        say(f"{journal} is not damaged: {intact}")
        return
    say(f"{journal} is damaged after event {found.events} ({found.cause}).")
    say(f"Wrote {new} with {found.pulls} pulls; {journal} is unchanged.")
    states, theirs = Path(f"{journal}.checkpoints"), f"{new}.checkpoints"
    if states.is_dir():
        say(f"To use its checkpoints, first: {shlex.join(['mv', str(states), theirs])}")
    say(f"Resume with: {o.command('resume', new)} LEARNERS")


def watch(
    place: Annotated[Path | None, typer.Argument(metavar="[PLACE]")] = None,
    port: Annotated[int, o.count(0, 65535)] = 0,
    exit_after_idle: float | None = None,
) -> None:
    """Watch races in a browser while they run.

    Its URL is printed; Ctrl-C ends it. The page is read-only and served on 127.0.0.1 only. Set
    LATEBLOOMER_WATCH_TOKEN and --port to keep its URL across restarts.

    Parameters
    ----------
    place
        Journal, or folder of journals. Default: races/ if it exists, else the current folder.
    port
        Port to listen on; 0 picks a free one.
    exit_after_idle
        Exit this many seconds after the last race and the last tab ended.
    """
    from latebloomer.watch.server import serve

    if place is None:
        place = Path(RACES) if Path(RACES).is_dir() else Path(".")
    try:
        serve(place, port, say, exit_after_idle)
    except KeyboardInterrupt:
        say("")
