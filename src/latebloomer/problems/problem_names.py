"""Problems by name, as on the command line: the paper's, random and recorded ones.

In addition to the paper's settings, there are the instances of its lower bounds [Mussi24] and one
instance of [Blum25].

A text has a name and then settings, each after a colon: ``paper-a``, ``paper-a:sigma=0.05``,
``imdb:noise=bernoulli``, ``random:exponential:K=10:seed=3``, ``lower-bound:K=9:beta=2:gap=0.1``,
``theorem-4:K=9:beta=2:winner=3``, ``one-riser:K=16:T=800``, or a file of recorded curves,
``runs/curves.csv:sigma=0.01``.

``sigma`` (standard deviation of Gaussian noise) and ``noise`` (``bernoulli`` or ``none``) can be
used with every problem. Without them, the problem has its own noise.

The curves of all arms of a random problem are drawn independently from one family. Their numbers
are uniform unless the table says otherwise:

============  =================================================================================
F             b log-uniform in [1, 100], c in [0.3, 1], psi in [0.5, 2]
exponential   limit in [0.3, 1], tau log-uniform in [10, 1000], start in [0, 0.3]
power         limit in [0.5, 1], drop in [0.2, 0.5], rate in [0.2, 1]
piecewise     three straight pieces of falling slope, each 20 to 300 pulls long (log-uniform), from
              a start in [0, 0.2] at n = 1 to a limit in [0.3, 1], level from there
stationary    mean in [0.3, 0.9]
sshaped       limit in [0.5, 1], middle log-uniform in [30, 600], width 0.1 to 0.3 of the middle,
              start in [0, 0.2]; breaks the concavity of Assumption 1, as no other family does
============  =================================================================================
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from latebloomer._util.text import number_or_text
from latebloomer.errors import SettingError, need_whole, require, unknown
from latebloomer.problems import curves
from latebloomer.problems.curves import LowerBound
from latebloomer.problems.noise import Bernoulli, Gaussian, Noise, Noiseless
from latebloomer.problems.problem import Problem, need_room_for
from latebloomer.problems.public_curves import imdb
from latebloomer.problems.recorded import READERS, load

# A string, because importing np.random takes 5 ms.
Draw: TypeAlias = "Callable[[np.random.Generator], curves.Curve]"

NOISES: dict[str, Noise] = {"bernoulli": Bernoulli(), "none": Noiseless()}
_FILE = re.compile(r"(.*(?:{}))((?::[^:/\\]*)*)".format("|".join(map(re.escape, READERS))))


# --- the paper's problems, and two more ---


def paper_a() -> Problem:
    """Return setting A: five arms of the paper's family; the arm that rises last ends highest.

    It is from [Mussi24, Sec. 8], with the parameters of App. G.

    >>> paper_a().changes(3200)
    ((1, 2), (70, 1), (188, 0))
    """
    settings = [(37, 1.0), (10, 0.88), (1, 0.78), (10, 0.7), (20, 0.5)]
    return Problem([curves.PaperF(b, c) for b, c in settings], Gaussian(0.01), label="paper-a")


def paper_b() -> Problem:
    """Return setting B: a straight riser, an early riser and an arm that stops at 0.7.

    [Mussi24, App. H].

    >>> paper_b().changes(3200)
    ((1, 1), (108, 2), (280, 0))
    """
    arms = [
        curves.PiecewiseLinear(((0, 0.0), (400, 1.0))),  # min(n / 400, 1)
        curves.PaperF(b=10, c=0.47),
        curves.PiecewiseLinear(((0, 0.0), (175, 0.7))),  # min(0.004 n, 0.7)
    ]
    return Problem(arms, Gaussian(0.01), label="paper-b")


def lower_bound(
    gaps: Sequence[float],
    beta: float,
    winner: int | None = None,
    noise: Noise | float | None = None,
) -> Problem:
    r"""Return the instance of [Mussi24, Thm 3, proof]: arm 0 is the best arm.

    Arm i ends `gaps[i - 1]` below arm 0.

    `winner` removes the cap of one other arm, which makes it the best arm at large horizons. No
    algorithm can distinguish the two instances before that arm reaches the cap.

    Parameters
    ----------
    gaps : Sequence[float]
        Gaps of all arms except the first.
    beta : float
        Exponent with which increments fall, above 1.
    winner : int | None
        Arm whose cap is removed. Default: no arm.
    noise : Noise | float | None
        Noise, as in `Problem`.

    Returns
    -------
    Problem
        Problem with one more arm than gaps.

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
    r"""Return arms that rise equally, of which all but the last stop rising at 1/K [Blum25].

    .. math:: \mu_K(n) = n/T, \qquad \mu_i(n) = \min(n/T,\, 1/K)

    Before pull T/K, the arms cannot be distinguished. A rule that is optimistic about all arms,
    such as R-UCBE, pulls each arm that often; then the budget T is spent, and the recommended arm
    is worth 1/K, although one arm, pulled alone, would reach 1. The best arm is the last one,
    because the first arm wins ties.

    Parameters
    ----------
    arms : int
        Number of arms, K.
    budget : int
        Number of pulls at which the last arm reaches 1, T.
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
    need_whole("K", arms, 2, "a problem needs arms to choose from")
    need_whole("T", budget, arms, "the others stop at pull T/K")
    stops = curves.PiecewiseLinear(((0, 0.0), (budget / arms, 1 / arms)))
    rises = curves.PiecewiseLinear(((0, 0.0), (budget, 1.0)))
    return Problem([stops] * (arms - 1) + [rises], noise, label="one-riser")


# --- problems by name ---


def problem(name: str | Problem) -> Problem:
    """Return the problem with a name; return a problem unchanged.

    Parameters
    ----------
    name : str | Problem
        A name with settings such as "paper-a:sigma=0.1", a file of curves, or a problem.

    Returns
    -------
    Problem
        The problem with this name and these settings.

    Raises
    ------
    UnknownName
        No problem has that name.

    Examples
    --------
    >>> problem("paper-a:sigma=0.1").noise, problem("random:F:K=4:seed=3").arms
    (Gaussian(sd=0.1), 4)
    >>> problem("papr-a")
    Traceback (most recent call last):
    latebloomer.errors.UnknownName: no problem is called 'papr-a'; did you mean 'paper-a' or ...
    """
    if isinstance(name, Problem):
        return name
    if not isinstance(name, str):
        raise SettingError(f"problem={name!r}, but problem must be a Problem or a name")
    kind, words = _split(name)
    settings = dict(_setting(name, word) for word in words)
    noise = _noise(settings)
    named = _make(kind, settings)
    return dataclasses.replace(named, label=name, noise=named.noise if noise is None else noise)


def known_problems() -> list[str]:
    """Return the names that `problem` accepts, without settings and paths of files."""
    return [*NAMED, *(f"random:{family}" for family in FAMILIES)]


def _split(name: str) -> tuple[str, list[str]]:
    """Return the name (for a random problem, with its family) and the settings."""
    file = _FILE.fullmatch(name)
    if file:
        return file[1], file[2].split(":")[1:]
    kind, *words = name.split(":")
    if kind == "random" and words and "=" not in words[0]:
        kind = f"random:{words.pop(0)}"
    return kind, words


def _make(kind: str, settings: dict[str, Any]) -> Problem:
    make: Callable[..., Problem]
    first, _, family = kind.partition(":")
    if first == "random" and family:
        make, keys = partial(random_problem, family), {"K": "arms", "seed": "seed"}
    elif kind in NAMED:
        make, keys = NAMED[kind]
    elif Path(kind).suffix in READERS:
        make, keys = partial(load, kind), {}
    else:
        raise unknown("problem", kind, known_problems())
    for key in settings:
        if key not in keys:
            raise unknown(f"setting of {kind}", key, [*keys, "sigma", "noise"])
    return make(**{keys[key]: value for key, value in settings.items()})


def _lower_bound(
    K: int = 9, beta: float = 2.0, gap: float = 0.1, winner: int | None = None
) -> Problem:
    need_room_for(K)
    return lower_bound([gap] * (K - 1), beta, winner)


def theorem_4(
    arms: int = 9,
    beta: float = 2.0,
    winner: int | None = None,
    noise: Noise | float | None = None,
) -> Problem:
    r"""Return the instance of [Mussi24, Thm 4, proof]: `lower_bound` with gaps k/(4K), k >= 2.

    Parameters
    ----------
    arms : int
        Number of arms, K.
    beta : float
        Exponent with which increments fall, above 1.
    winner : int | None
        Arm whose cap is removed. Default: no arm.
    noise : Noise | float | None
        Noise, as in `Problem`.

    Returns
    -------
    Problem
        Problem whose arm 0 is the best at large horizons, unless `winner` is set.

    Examples
    --------
    >>> theorem_4(arms=4).means(10**6)[:, -1].round(4)
    array([0.5   , 0.375 , 0.3125, 0.25  ])
    """
    need_whole("K", arms, 2, "a problem needs arms to choose from")
    need_room_for(arms)
    problem = lower_bound([k / (4 * arms) for k in range(2, arms + 1)], beta, winner, noise)
    return dataclasses.replace(problem, label="theorem-4")


NAMED: dict[str, tuple[Callable[..., Problem], dict[str, str]]] = {
    "paper-a": (paper_a, {}),
    "paper-b": (paper_b, {}),
    "imdb": (imdb, {}),
    "lower-bound": (_lower_bound, {"K": "K", "beta": "beta", "gap": "gap", "winner": "winner"}),
    "theorem-4": (theorem_4, {"K": "arms", "beta": "beta", "winner": "winner"}),
    "one-riser": (one_riser, {"K": "arms", "T": "budget"}),
}


def _setting(name: str, word: str) -> tuple[str, int | float | str]:
    key, equals, text = word.partition("=")
    if not equals:
        raise SettingError(f"{word!r} in {name!r}, but a setting is key=value")
    return key, number_or_text(text)


def _noise(settings: dict[str, Any]) -> Noise | None:
    """Remove the noise from the settings and return it; None if there is none."""
    sigma, name = settings.pop("sigma", None), settings.pop("noise", None)
    if sigma is not None and name is not None:
        raise SettingError("both sigma and noise are given, but a problem has one kind of noise")
    if name is None:
        return None if sigma is None else Gaussian(sigma)
    if name not in NOISES:
        raise unknown("noise", str(name), NOISES)
    return NOISES[name]


# --- random problems ---


def random_problem(
    family: str, arms: int = 10, seed: int = 0, noise: Noise | float | None = 0.01
) -> Problem:
    """Return a random problem, which depends only on family, number of arms and seed.

    Parameters
    ----------
    family : str
        One of `FAMILIES`.
    arms : int
        Number of arms, K.
    seed : int
        Seed for the random numbers.
    noise : Noise | float | None
        Noise, as in `Problem`.

    Returns
    -------
    Problem
        The random problem.

    Raises
    ------
    UnknownName
        No family has that name.

    Examples
    --------
    >>> random_problem("stationary", arms=2, seed=3).means(1).round(3).tolist()
    [[0.351], [0.442]]
    """
    match = {name.lower(): name for name in FAMILIES}.get(str(family).lower())
    if match is None:
        raise unknown("family of curves", str(family), FAMILIES)
    need_whole("K", arms, 2, "a problem needs arms to choose from")
    need_whole("seed", seed, 0, "it seeds NumPy's default generator")
    need_room_for(arms)
    rng = np.random.default_rng(seed)
    drawn = [FAMILIES[match](rng) for _ in range(arms)]
    label = f"random:{match}:K={arms}:seed={seed}"
    return Problem(drawn, noise, label=label)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _piecewise(rng: np.random.Generator) -> curves.Curve:
    start, limit = rng.uniform(0, 0.2), rng.uniform(0.3, 1)
    lengths = np.array([_log_uniform(rng, 20, 300) for _ in range(3)])
    # Rise of each piece: slope times length.
    rises = np.sort(rng.uniform(0.1, 1, 3))[::-1] * lengths
    values = start + (limit - start) * np.cumsum(rises) / rises.sum()
    knots = zip((1 + np.cumsum(lengths)).tolist(), values.tolist(), strict=True)
    return curves.PiecewiseLinear(((1.0, start), *knots))


def _s_shaped(rng: np.random.Generator) -> curves.Curve:
    middle, uniform = _log_uniform(rng, 30, 600), rng.uniform
    return curves.SShaped(uniform(0.5, 1), middle, middle * uniform(0.1, 0.3), uniform(0, 0.2))


FAMILIES: dict[str, Draw] = {
    "F": lambda rng: curves.PaperF(
        _log_uniform(rng, 1, 100), rng.uniform(0.3, 1), rng.uniform(0.5, 2)
    ),
    "exponential": lambda rng: curves.Exponential(
        rng.uniform(0.3, 1), _log_uniform(rng, 10, 1000), rng.uniform(0, 0.3)
    ),
    "power": lambda rng: curves.PowerLaw(
        rng.uniform(0.5, 1), rng.uniform(0.2, 0.5), rng.uniform(0.2, 1)
    ),
    "piecewise": _piecewise,
    "stationary": lambda rng: curves.Stationary(rng.uniform(0.3, 0.9)),
    "sshaped": _s_shaped,
}
