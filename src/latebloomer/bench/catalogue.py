"""The sets of the bench by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from latebloomer.bench import made_curves as made
from latebloomer.bench import public_sets as public
from latebloomer.bench.curve_files import Skipped
from latebloomer.bench.curve_sets import Curves
from latebloomer.errors import CurveError, unknown

PUBLIC: dict[str, Callable[[], Iterator[Curves]]] = {
    "lcdb11-linear": public.lcdb11_linear,
    "lcdb11-geometric": public.lcdb11_geometric,
    "taskset": public.taskset,
    "srb-imdb": public.srb_imdb,
    "yahpo": public.yahpo,
}
RANDOM: dict[str, Callable[[], Iterator[Curves]]] = {
    f"random-{name}": partial(made.family, name) for name in made.families()
}
PAPER: dict[str, Callable[[], Iterator[Curves]]] = {
    "paper-a": partial(made.paper, "paper-a"),
    "paper-b": partial(made.paper, "paper-b"),
    "imdb": made.imdb,
}
SETS = PUBLIC | RANDOM | PAPER
GROUPS = {"public": PUBLIC, "random": RANDOM, "paper": PAPER, "all": SETS}


def names_of(words: Iterable[str]) -> list[str]:
    """The sets that are meant; public, random, paper and all stand for several.

    >>> names_of(["taskset", "paper"])
    ['taskset', 'paper-a', 'paper-b', 'imdb']
    """
    names: dict[str, None] = {}
    for word in words:
        if word not in SETS and word not in GROUPS:
            raise unknown("set of curves", word, [*SETS, *GROUPS])
        names |= dict.fromkeys(GROUPS.get(word, [word]))
    return list(names)


def read_sets(names: Sequence[str]) -> tuple[list[Curves], list[Skipped]]:
    """The problems of the sets, and the sets whose data are not there."""
    found: list[Curves] = []
    skipped: list[Skipped] = []
    for name in names:
        try:
            found += list(SETS[name]())
        except CurveError as error:
            skipped.append(Skipped(name, str(error)))
    if not found:
        raise CurveError("; ".join(f"{what}: {why}" for what, why in skipped))
    return found, skipped
