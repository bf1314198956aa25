"""A race of programs in a TOML file: commands, a grid of values, and the settings of the race."""

import difflib
import itertools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer._util.text import brief
from latebloomer.errors import SettingError
from latebloomer.programs.command import Command

OF_COMMANDS = ("run", "score", "step", "score_file", "pause", "shell", "cwd", "env", "full_steps")
OF_RACES = (
    "budget",
    "trainings",
    "seconds",
    "pulls_per_training",
    "winner_share",
    "policy",
    "horizon",
    "min_pulls",
    "stop",
    "drops",
    "maximize",
    "score_range",
    "seed",
)
TABLES = ("grid", "learners")
EXAMPLES = {"run": "python train.py --lr {lr}", "score": "val_acc"}
RUNS = 10  # pulls of a full training if each is a separate run, which pays its start-up


class ProgramRace(NamedTuple):
    """Learners, and what a file says about their race."""

    learners: Mapping[str, Command | None]  # None: the learner is counted, but not built
    settings: dict[str, Any]


def read_race_file(path: Path) -> ProgramRace:
    """Return the race that a file describes; raise a `SettingError` that names what is wrong."""
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise SettingError(f"{path} cannot be read ({error.strerror}). Check the path.") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} is not TOML: {error}.") from None
    try:
        return race_of(given, path.parent)
    except SettingError as error:
        raise SettingError(f"{path}: {error}").quoting(*error.quoted) from None


def race_of(given: Mapping[str, Any], folder: Path) -> ProgramRace:
    """Return the race of a table. Its programs run in `folder` unless they name another one."""
    known = (*OF_COMMANDS, *OF_RACES, *TABLES)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}."
            raise SettingError(f"{name!r} is unknown. {hint}")
    shared = {name: given[name] for name in OF_COMMANDS if name in given}
    grid, named = given.get("grid"), given.get("learners")
    if (grid is None) == (named is None):
        raise SettingError("give [grid], values for the placeholders of run, or [learners]: one")
    made = _of_grid(grid, shared) if grid is not None else _named(named, shared)
    learners = {name: command.based_in(folder) for name, command in made.items()}
    settings = {name: given[name] for name in OF_RACES if name in given}
    runs = any(command.pause == "until" for command in learners.values())
    if runs and ("full_steps" in given or "trainings" in settings):
        settings.setdefault("pulls_per_training", RUNS)
    return ProgramRace(learners, settings)


def _of_grid(grid: Any, shared: Mapping[str, Any]) -> dict[str, Command]:
    if not isinstance(grid, Mapping) or not grid:
        raise SettingError(f"grid={brief(grid)}, but [grid] must have a list of values for a name")
    values = {name: one if isinstance(one, list) else [one] for name, one in grid.items()}
    rows = (dict(zip(values, row, strict=True)) for row in itertools.product(*values.values()))
    return {
        ",".join(f"{name}={value}" for name, value in row.items()): _command(shared, values=row)
        for row in rows
    }


def _named(named: Any, shared: Mapping[str, Any]) -> dict[str, Command]:
    if not isinstance(named, Mapping):
        raise SettingError(f"learners={brief(named)}, but [learners] must have a line for each")
    found = {}
    for name, line in named.items():
        own = dict(line) if isinstance(line, Mapping) else {"run": line}
        settings = {key: own.pop(key) for key in OF_COMMANDS if key in own}
        found[name] = _command({**shared, **settings}, values=own)
    return found


def _command(settings: Mapping[str, Any], values: Mapping[str, Any]) -> Command:
    for name in ("run", "score"):
        if name not in settings:
            raise SettingError(f'{name} is missing. Add a line: {name} = "{EXAMPLES[name]}"')
    return Command(**settings, values=values)
