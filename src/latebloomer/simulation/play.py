"""Whole runs on a problem: the loop around the moves, written once for every target."""

from __future__ import annotations

from typing import Any, NamedTuple

from latebloomer.core.kernel import kernel
from latebloomer.core.ledger import ANY, OVER, Floats, Ledger, reset
from latebloomer.core.moves import Game, advance, observe, recommend
from latebloomer.problems.noise import reward, variates

AHEAD = 32  # variates drawn at once for an arm; even, and a power of two


class Source(NamedTuple):
    """Where rewards come from: the problem's means and noise, and each arm's next variates."""

    means: Floats  # (arms, pulls)
    kind: int
    scales: Floats  # (arms,)
    shape: float
    ahead: Floats  # (arms, AHEAD)


@kernel
def pull(source: Source, seed: int, run: int, i: int, n: int) -> float:
    """The reward of arm `i`'s pull number `n`, counted from 0."""
    slot = n & (AHEAD - 1)
    ahead = source.ahead[i]
    if slot == 0:
        variates(ahead, source.kind, source.shape, seed, run, i, n)
    return reward(source.kind, source.scales[i], source.means[i][n], ahead[slot])


@kernel
def play(game: Game, ledger: Ledger, source: Source, run: int) -> int:
    """Play one run; the recommended arm. The ledger then says how often each arm was pulled."""
    reset(ledger)
    i = advance(game, ledger, ANY, run)
    while i != OVER:
        observe(game, ledger, i, pull(source, game.seed, run, i, ledger.n[i]))
        i = advance(game, ledger, i, run)
    return recommend(game, ledger)


@kernel
def play_many(
    game: Game, ledger: Ledger, source: Source, first: int, recommended: Any, pulls: Any
) -> None:
    """Play the runs from `first` on: an entry of `recommended` and a row of `pulls` for each."""
    for place in range(len(recommended)):
        recommended[place] = play(game, ledger, source, first + place)
        for i in range(len(ledger.n)):
            pulls[place][i] = ledger.n[i]
