"""The reproduction of the paper: one file per figure or table, its claims in one place.

`latebloomer reproduce` makes them, in two modes. *as-written* plays the library's own policies,
which follow the text (`as_written.py`). *as-published* plays the conventions that made the
published numbers (`as_published.py`), which live in `published_algorithms.py` and nowhere else.

Where to look: `reproduction.py` lists the figures and writes their files, `experiments.py` has the
paper's settings, `series.py` the runs that several figures share, `section_8_claims.py` and
`appendix_claims.py` each sentence of the paper beside its check, and `claim_results.py` decides
them, with more runs where these leave one open. To add a figure, make a `Figure` and list it.
"""

from typing import TYPE_CHECKING

from latebloomer._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from latebloomer.paper.figure import Figure, Made, Workbench
    from latebloomer.paper.modes import AS_PUBLISHED, AS_WRITTEN, MODES, PUBLISHED_RUNS
    from latebloomer.paper.reproduction import FIGURES, reproduce

__all__ = [
    "AS_PUBLISHED",
    "AS_WRITTEN",
    "FIGURES",
    "MODES",
    "PUBLISHED_RUNS",
    "Figure",
    "Made",
    "Workbench",
    "reproduce",
]

HOMES = {  # where each name lives
    "AS_PUBLISHED": "latebloomer.paper.modes",
    "AS_WRITTEN": "latebloomer.paper.modes",
    "FIGURES": "latebloomer.paper.reproduction",
    "MODES": "latebloomer.paper.modes",
    "PUBLISHED_RUNS": "latebloomer.paper.modes",
    "Figure": "latebloomer.paper.figure",
    "Made": "latebloomer.paper.figure",
    "Workbench": "latebloomer.paper.figure",
    "reproduce": "latebloomer.paper.reproduction",
}

__getattr__, __dir__ = lazy_names(__name__, HOMES)
