"""Problems by name, for the command line and for settings files.

A name, then settings, each after a colon: ``paper-a``, ``paper-a:sigma=0.05``,
``imdb:noise=bernoulli``, ``random:exponential:K=10:seed=3``, ``lower-bound:K=9:beta=2:gap=0.1``,
``one-riser:K=16:T=800``, or a file of recorded curves, ``runs/curves.csv:sigma=0.01``.

``sigma`` (Gaussian noise of that standard deviation) and ``noise`` (``bernoulli`` or ``none``) go
with every problem; left out, the problem has its own.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latebloomer.errors import SettingError, unknown
from latebloomer.problems.noise import Bernoulli, Gaussian, Noise, Noiseless
from latebloomer.problems.paper_settings import imdb, lower_bound, one_riser, paper_a, paper_b
from latebloomer.problems.problem import Problem, need_room_for
from latebloomer.problems.random_families import FAMILIES, random_problem
from latebloomer.problems.recorded import READERS, load

NOISES: dict[str, Noise] = {"bernoulli": Bernoulli(), "none": Noiseless()}
_FILE = re.compile(r"(.*(?:{}))((?::[^:/\\]*)*)".format("|".join(map(re.escape, READERS))))


def problem(name: str | Problem) -> Problem:
    """The problem that a name means; a problem itself is returned as it is.

    Parameters
    ----------
    name : str | Problem
        Such as "paper-a:sigma=0.1", a file of curves, or a problem.

    Returns
    -------
    Problem
        What the name means.

    Raises
    ------
    UnknownName
        No such problem.

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
    made = _make(kind, settings)
    return dataclasses.replace(made, label=name, noise=made.noise if noise is None else noise)


def known_problems() -> list[str]:
    """The names `problem` knows, without settings; a path of a curve file is one too."""
    return [*NAMED, *(f"random:{family}" for family in FAMILIES)]


def _split(name: str) -> tuple[str, list[str]]:
    """The name proper, a family's included, and its settings."""
    file = _FILE.fullmatch(name)
    if file:
        return file[1], file[2].split(":")[1:]
    kind, *words = name.split(":")
    if kind == "random" and words and "=" not in words[0]:
        kind = f"random:{words.pop(0)}"
    return kind, words


def _make(kind: str, settings: dict[str, Any]) -> Problem:
    if kind.startswith("random:"):
        family = kind.partition(":")[2]
        return random_problem(family, **_only(kind, settings, K="arms", seed="seed"))
    if kind in NAMED:
        make, keys = NAMED[kind]
        return make(**_only(kind, settings, **keys))
    if Path(kind).suffix in READERS:
        _only(kind, settings)
        return load(kind)
    raise unknown("problem", kind, known_problems())


def _lower_bound(K: int = 9, beta: float = 2.0, gap: float = 0.1) -> Problem:
    need_room_for(K)
    return lower_bound([gap] * (K - 1), beta)


NAMED: dict[str, tuple[Callable[..., Problem], dict[str, str]]] = {
    "paper-a": (paper_a, {}),
    "paper-b": (paper_b, {}),
    "imdb": (imdb, {}),
    "lower-bound": (_lower_bound, {"K": "K", "beta": "beta", "gap": "gap"}),
    "one-riser": (one_riser, {"K": "arms", "T": "budget"}),
}


def _only(kind: str, settings: dict[str, Any], **keys: str) -> dict[str, Any]:
    """The settings under the names of their arguments; any other is an error."""
    for key in settings:
        if key not in keys:
            raise unknown(f"setting of {kind}", key, [*keys, "sigma", "noise"])
    return {keys[key]: value for key, value in settings.items()}


def _setting(name: str, word: str) -> tuple[str, int | float | str]:
    key, equals, text = word.partition("=")
    if not equals:
        raise SettingError(f"{word!r} in {name!r}, but a setting is key=value")
    for read in (int, float):
        try:
            return key, read(text)
        except ValueError:
            continue
    return key, text


def _noise(settings: dict[str, Any]) -> Noise | None:
    """Take the noise out of the settings; None if they name none."""
    if "sigma" in settings and "noise" in settings:
        raise SettingError("both sigma and noise are given, but a problem has one kind of noise")
    if "sigma" in settings:
        return Gaussian(settings.pop("sigma"))
    if "noise" in settings:
        name = str(settings.pop("noise"))
        if name not in NOISES:
            raise unknown("noise", name, NOISES)
        return NOISES[name]
    return None
