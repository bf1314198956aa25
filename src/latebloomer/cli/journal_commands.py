"""The commands races, show, report, repair and watch, which need journals but no learners."""

from __future__ import annotations

import json as jsons
import shlex
import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util.atomic_files import need_different, write_file
from latebloomer._util.console import line_width
from latebloomer._util.fitted_table import Column, fitted
from latebloomer._util.text import NAME, one_line, score_text, shortened
from latebloomer.cli import option_types as o
from latebloomer.cli.option_checks import naming
from latebloomer.cli.output import command, redrawn, say
from latebloomer.errors import AllFailed
from latebloomer.racing.journal.journal_file import RACES

if TYPE_CHECKING:
    from latebloomer.racing.journal.races_folder import ListedRace


HEAD = ("race", "state", "written", "learners", "pulls", "size", "checkpoints")
NUMBERS = ("learners", "pulls", "size", "checkpoints")
# Columns in the order of omission, the largest number first.
LEFT_OUT = {"pulls": 1, "learners": 2, "written": 3, "size": 4, "checkpoints": 5}


def races(
    folder: o.RacesFolder = Path(RACES), clean_up: o.CleanUp = False, json: o.Json = False
) -> None:
    """List the races of a folder, the latest last.

    Each line has the state, learners, pulls, size and verdict of a race. Checkpoints of learners
    that lost are kept, because a race may be extended; --clean removes them for finished races.
    """
    from rich.filesize import decimal

    from latebloomer.racing.journal.races_folder import clean, list_races

    cleaned = list(clean(folder)) if clean_up else []
    all_races = list_races(folder)
    if json:
        listed = {"races": [vars(race) for race in all_races]}
        removed = {"cleaned": [vars(removal) for removal in cleaned]} if clean_up else {}
        say(jsons.dumps(listed | removed))
        return
    if cleaned:
        learners, freed = (sum(getattr(c, of) for c in cleaned) for of in ("learners", "bytes"))
        which = f"the checkpoints of {learners} learners that lost"
        say(f"Removed {which}, in {len(cleaned)} finished races: {decimal(freed)}.")
    elif clean_up:
        say("Nothing to remove: no finished race has checkpoints of learners that lost.")
    say(_table(all_races) if all_races else f"No races in {folder}.")


def _table(races: list[ListedRace]) -> str:
    """Return the races as a table, one per line; a narrow terminal shows fewer columns."""
    *cells, verdicts = zip(*map(_row, races), strict=True)
    columns = [
        Column(head, own, right=head in NUMBERS, left_out=LEFT_OUT.get(head, 0))
        for head, own in zip(HEAD, cells, strict=False)
    ]
    # The verdict, or why the journal cannot be read.
    brief = [shortened(verdict, NAME) for verdict in verdicts]
    columns.append(Column("verdict", verdicts, short=("verdict", brief)))
    return "\n".join(fitted(columns, line_width(sys.stdout), whole=columns[0].width))


def _row(race: ListedRace) -> list[str]:
    from rich.filesize import decimal

    of = f" of {race.budget}" if race.budget is not None and race.pulls < race.budget else ""
    verdict = race.wrong or ""
    if not verdict and race.winner is not None and race.score is not None:
        verdict = f"{race.winner}, {score_text(race.score)}{', certified' * bool(race.certified)}"
    return [
        one_line(Path(race.path).name),
        race.state,
        f"{datetime.fromtimestamp(race.written):%Y-%m-%d %H:%M}",
        str(len(race.learners)),
        f"{race.pulls}{of}",
        decimal(race.bytes),
        decimal(race.checkpoint_bytes) if race.checkpoint_bytes else "-",
        one_line(verdict),
    ]


def report(journal: o.LatestJournal = None, out: o.ReportFile = None) -> None:
    """Write the HTML report of a race, finished or not."""
    from latebloomer.racing.api import read_verdict
    from latebloomer.racing.journal.races_folder import journal_at

    path = journal_at(journal)
    file = out or path.with_suffix(".html")
    with naming("--out") if out else nullcontext():
        try:
            read_verdict(path).report(file)
        except AllFailed:
            from latebloomer.page.race_html import race_html
            from latebloomer.watch.followed_race import FollowedRace

            followed = FollowedRace(path)
            followed.update()
            need_different({"the journal": path, "the file to write": file})
            write_file(file, race_html(followed.page()))
    say(f"wrote {file}")


def show(
    journal: o.LatestJournal = None,
    verbose: o.Verbose = False,
    follow: o.Follow = False,
    json: o.Json = False,
) -> None:
    """Show the standings of a race; the race may still be running."""
    from latebloomer.racing.api import read_verdict
    from latebloomer.watch.journal_follower import follow as verdicts

    try:
        if not follow:
            verdict = read_verdict(journal)
            say(verdict.to_json() if json else verdict.details() if verbose else verdict)
        elif json:
            for verdict in verdicts(journal):
                say(verdict.to_json())
        else:
            redrawn(verdicts(journal))
    except AllFailed as failure:
        say(jsons.dumps({"state": "failed", "why": str(failure)}) if json else failure)


def repair(journal: o.DamagedJournal, out: o.RepairedFile = None) -> None:
    """Copy the intact beginning of a damaged journal to a new file."""
    from latebloomer.racing.journal.recovery import repair as copy_intact

    new = out or journal.with_name(f"{journal.stem}.repaired{journal.suffix}")
    copy = copy_intact(journal, new)
    if not copy.cause:
        intact = f"all its {copy.pulls} pulls are intact. Nothing was written."
        say(f"{journal} is not damaged: {intact}")
        return
    say(f"{journal} is damaged after event {copy.events} ({copy.cause}).")
    say(f"Wrote {new} with {copy.pulls} pulls; {journal} is unchanged.")
    states, theirs = Path(f"{journal}.checkpoints"), f"{new}.checkpoints"
    if states.is_dir():
        say(f"To use its checkpoints, first: {shlex.join(['mv', str(states), theirs])}")
    say(f"Resume with: {command('resume', new)} LEARNERS")


def watch(
    place: o.WatchedPlace = None, port: o.Port = 0, exit_after_idle: o.ExitAfterIdle = None
) -> None:
    """Watch races in a browser while they run.

    The command prints the URL of the page; Ctrl-C ends it. The page is read-only and served on
    127.0.0.1 only. Set LATEBLOOMER_WATCH_TOKEN and --port to keep the URL across restarts.
    """
    from latebloomer.watch.server import serve

    if place is None:
        place = Path(RACES) if Path(RACES).is_dir() else Path(".")
    try:
        serve(place, port, say, exit_after_idle)
    except KeyboardInterrupt:
        say("")
