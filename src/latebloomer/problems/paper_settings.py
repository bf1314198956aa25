"""The paper's problems, the instance behind its lower bound [Mussi24], and one of [Blum25]."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from latebloomer.errors import CurveError, require
from latebloomer.problems.curves import Floats, LowerBound, PaperF, PiecewiseLinear
from latebloomer.problems.noise import Gaussian, Noise, Noiseless
from latebloomer.problems.problem import Problem
from latebloomer.problems.recorded import load

DATA = "LATEBLOOMER_DATA"
IMDB_FILE = Path("reference", "imdb_curves.npz")
IMDB_PUBLIC = (
    "https://github.com/albertometelli/stochastic-rising-bandits, commit 2b49e82, "
    "'data/learning curves/npy' (MIT)"
)
# Of the 7 x 50,000 little-endian doubles, arm by arm in the file's own order.
IMDB_SHA256 = "c5297b9bff416bbdb68b9846818b4bba42e52956aec378078fd0f6ce4480b2a8"


def paper_a() -> Problem:
    """Return setting A: five arms of the paper's family; the last to rise ends highest.

    [Mussi24, Sec. 8], with the parameters of App. G.

    >>> paper_a().changes(3200)
    ((1, 2), (70, 1), (188, 0))
    """
    settings = [(37, 1.0), (10, 0.88), (1, 0.78), (10, 0.7), (20, 0.5)]
    return Problem([PaperF(b, c) for b, c in settings], Gaussian(0.01), label="paper-a")


def paper_b() -> Problem:
    """Return setting B: a straight riser, an early one and one that stops at 0.7.

    [Mussi24, App. H].

    >>> paper_b().changes(3200)
    ((1, 1), (108, 2), (280, 0))
    """
    curves = [
        PiecewiseLinear(((0, 0.0), (400, 1.0))),  # min(n / 400, 1)
        PaperF(b=10, c=0.47),
        PiecewiseLinear(((0, 0.0), (175, 0.7))),  # min(0.004 n, 0.7)
    ]
    return Problem(curves, Gaussian(0.01), label="paper-b")


def imdb() -> Problem:
    """Return seven online learners on IMDB reviews, 50,000 recorded accuracies each.

    [Mussi24, App. H].

    Means over 1000 runs of a right-or-wrong outcome, so neither monotone nor concave step by
    step. Rewards are the recorded values, as in the paper's Table 2; with `Bernoulli` noise they
    are single outcomes, as a learner trained live would show.
    """
    advice = f"`latebloomer download imdb FOLDER` fetches it ({IMDB_PUBLIC}) into {IMDB_FILE}"
    file = data_path(IMDB_FILE, "the problem 'imdb'", advice)
    found = load(file)
    digest = digest_of(found.curves)
    if digest != IMDB_SHA256:
        raise CurveError(f"{file}: these are not the paper's curves (sha256 of values {digest})")
    return Problem(found.curves, Noiseless(), found.names, "imdb")


def digest_of(curves: Floats) -> str:
    """Return the sha256 of curves' values, as little-endian doubles, arm by arm."""
    return hashlib.sha256(curves.astype("<f8").tobytes()).hexdigest()


def data_path(path: Path, purpose: str, advice: str) -> Path:
    """Return a path in the folder that LATEBLOOMER_DATA names; an error says how to get it."""
    folder = os.environ.get(DATA)
    found = Path(folder or "", path)
    if folder and found.exists():
        return found
    missing = f"{DATA}={folder} and there is no {found}" if folder else f"{DATA} is not set"
    raise CurveError(f"{purpose} needs {path} in the folder it names, but {missing}: {advice}")


def lower_bound(
    gaps: Sequence[float],
    beta: float,
    winner: int | None = None,
    noise: Noise | float | None = None,
) -> Problem:
    r"""Return the instance of [Mussi24, Thm 3, proof]: arm 0 is best, arm i ends below.

    The distance is `gaps[i - 1]`.

    `winner` frees one other arm of its cap, and makes it best at large horizons: no algorithm can
    tell the two instances apart before that arm reaches its cap.

    Parameters
    ----------
    gaps : Sequence[float]
        Gaps of all arms except the first.
    beta : float
        How fast increments fall.
    winner : int | None
        Arm that is freed of its cap.
    noise : Noise | float | None
        Noise, as in `Problem`.

    Returns
    -------
    Problem
        Problem with one arm more than there are gaps.

    Examples
    --------
    >>> lower_bound([0.25, 0.25], beta=2).means(4)[:, 3], lower_bound([0.25], 2, winner=1).best(9)
    (array([0.375, 0.25 , 0.25 ]), 1)
    """
    ok = winner is None or 1 <= winner <= len(gaps)
    require(ok, "winner", winner, f"in 1..{len(gaps)}, or None", "it is another arm than arm 0")
    others = [LowerBound(beta, gap, capped=i != winner) for i, gap in enumerate(gaps, start=1)]
    return Problem([LowerBound(beta), *others], noise, label="lower-bound")


def one_riser(arms: int = 16, budget: int = 800, noise: Noise | float | None = None) -> Problem:
    r"""Return arms that rise equally, of which all but the last stop at 1/K [Blum25].

    .. math:: \mu_K(n) = n/T, \qquad \mu_i(n) = \min(n/T,\, 1/K)

    Nothing tells them apart before pull T/K. A rule that is optimistic about all of them, as
    R-UCBE is, pulls each that often: then the budget T is spent, and what it recommends is worth
    1/K, while one arm, pulled alone, comes to 1. The best arm is last, since ties go to the
    first.

    Parameters
    ----------
    arms : int
        K, the number of arms.
    budget : int
        T, at which the last arm comes to 1.
    noise : Noise | float | None
        Noise, as in `Problem`.

    Returns
    -------
    Problem
        Problem whose last arm is best.

    Examples
    --------
    >>> one_riser(arms=4, budget=80).means(80)[:, [19, 39, 79]]
    array([[0.25, 0.25, 0.25],
           [0.25, 0.25, 0.25],
           [0.25, 0.25, 0.25],
           [0.25, 0.5 , 1.  ]])
    """
    require(isinstance(arms, int) and arms >= 2, "K", arms, "an integer >= 2",
            "a problem needs arms to choose from")  # fmt: skip
    require(isinstance(budget, int) and budget >= arms, "T", budget, f"an integer >= {arms}",
            "the others stop at pull T/K")  # fmt: skip
    stops = PiecewiseLinear(((0, 0.0), (budget / arms, 1 / arms)))
    rises = PiecewiseLinear(((0, 0.0), (budget, 1.0)))
    return Problem([stops] * (arms - 1) + [rises], noise, label="one-riser")
