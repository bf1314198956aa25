"""The commands of the paper: its figures and tables, and what to cite."""

from pathlib import Path

import typer

from latebloomer.citation import cite as bibtex
from latebloomer.cli import option_types as o
from latebloomer.cli.output import say
from latebloomer.errors import Interrupted
from latebloomer.paper import AS_WRITTEN, PUBLISHED_RUNS


def reproduce(
    names: o.FigureNames = None,
    listed: o.Listed = False,
    runs: o.Runs = PUBLISHED_RUNS,
    mode: o.Mode = AS_WRITTEN,
    out: o.FigureFolder = Path("reproduction"),
    jobs: o.Jobs = None,
    quiet: o.Quiet = False,
) -> None:
    """Reproduce the paper's figures, tables and claims.

    as-written runs the algorithms of the text: R-UCBE is Algorithm 1, which recommends argmax B,
    and "R-UCBE (estimate)" has the recommendation of this library. as-published follows the
    conventions of the published code, which were found by a comparison of every cell. Each claim
    is decided for both, and with our recommendation.

    imdb and imdb-arms need recorded curves: `latebloomer download imdb FOLDER`, then set
    LATEBLOOMER_DATA=FOLDER. imdb-live needs word counts, which `python -m
    latebloomer.paper.imdb_reviews` makes from the public reviews; "all" does not include it. All
    other figures need no data.
    """
    from latebloomer.paper.reproduction import FIGURES
    from latebloomer.paper.reproduction import reproduce as make
    from latebloomer.paper.workbench import Workbench
    from latebloomer.simulation.local_runs import cores

    if listed or not names:
        for figure in FIGURES:
            say(f"{figure.name:16} {figure.title}{'' if figure.in_all else ' (not part of all)'}")
        return
    workbench = Workbench(out, runs, mode, cores() if jobs is None else jobs, shown=not quiet)
    try:
        failures = make(names, workbench)
    except KeyboardInterrupt:
        advice = f". Repeat the command to make what is missing in {out}."
        raise Interrupted("Stopped", None, advice) from None
    if failures:
        if quiet:  # otherwise each error was shown when it happened
            say("\n".join(failures), err=True)
        raise typer.Exit(2)


def cite(what: o.Cited = "Mussi24") -> None:
    """Print the BibTeX entry to cite."""
    say(bibtex(what))
