"""A command line as a learner: what to run, where its scores come from, how it pauses."""

import shlex
import string
import sys
import tempfile
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from latebloomer._util.text import brief
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.programs.program_learner import ProgramLearner, UntilLearner
from latebloomer.programs.running_program import Recipe
from latebloomer.programs.score_file import ScoreFile
from latebloomer.programs.score_reader import Pattern
from latebloomer.racing.learners.log_files import file_name

__all__ = ["Command"]

OWN = ("seed", "name", "folder", "steps")  # placeholders that the race fills in
PAUSES = ("signal", "restart", "until")


class Command:
    """Race a program unchanged: one step is one score that it prints.

    The program is stopped by a signal when it has printed a score and continued for its next pull.
    It runs in its own session: Ctrl-C reaches the race, not the program. Its output is in
    `<journal>.logs/NAME.log`. Programs race on Linux and macOS.

    Parameters
    ----------
    run : str | Sequence[str]
        The command, as text or as words. `{seed}`, `{name}`, `{folder}` (a folder for what the
        program saves), `{steps}` and the names in `values` are filled in; `{{` is a brace.
    score : str
        Name of the score in the output, as in `val_acc=0.91` and `"val_acc": 9.1e-1`, or a regular
        expression whose group `score`, or first group, is the number. A group `step` is its step.
    step : str | None
        Name of the step in the same line, such as "epoch", or a regular expression. Default: the
        n-th score is step n.
    full_steps : int | None
        Number of steps in a full training. Default: `race(..., full_steps=)` says it.
    score_file : str | None
        File whose new rows have the scores, in place of the output: "metrics.csv:val_acc" or
        "log.jsonl:val_acc". `{folder}` and the other placeholders are filled in.
    pause : str | None
        "signal": stop the program between its pulls. "restart": also end it and start it again,
        which needs `{folder}` and `step`. "until": run it once for each pull, up to `{steps}`.
        Default: "until" if the command has `{steps}`, "restart" if it has `{folder}`, else
        "signal".
    values : Mapping[str, Any] | None
        Further placeholders and what they stand for.
    shell : bool
        Whether a shell (`sh -c`) runs the text. Values are quoted.
    cwd : str | None
        Folder to run in. Default: the current one.
    env : Mapping[str, str] | None
        Variables of the environment to add. They are never recorded.

    Raises
    ------
    SettingError
        The command is empty, a placeholder is unknown, or the way to pause does not fit.

    Examples
    --------
    >>> small = Command("python train.py --width {width}", score="val_acc", values={"width": 64})
    >>> small.settings["command"]
    'python train.py --width 64'
    """

    def __init__(
        self,
        run: str | Sequence[str],
        score: str,
        *,
        step: str | None = None,
        full_steps: int | None = None,
        score_file: str | None = None,
        pause: str | None = None,
        values: Mapping[str, Any] | None = None,
        shell: bool = False,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        need_posix()
        require(isinstance(shell, bool), "shell", shell, "True or False", "it is off by default")
        self._words = _words_of(run, shell)
        self._values = dict(values or {})
        for name in OWN:
            require(
                name not in self._values,
                "values",
                name,
                f"none of {', '.join(OWN)}",
                "the race fills these in",
            )
        self._shell, self._cwd, self._env = shell, cwd, dict(env or {})
        self._base = Path()  # folder to which `cwd` is relative
        self._score, self._step, self._file = score, step, score_file
        self._pattern = None if score_file else Pattern(score, step)
        used = _placeholders([*self._words, score_file or ""])
        known = {*OWN, *self._values}
        if unknown := sorted(used - known):
            raise SettingError(
                f"{{{unknown[0]}}} in {brief(run)} is unknown. Known are "
                f"{', '.join(f'{{{name}}}' for name in (*OWN, *self._values))}; "
                "write {{ and }} for braces."
            )
        self.pause = pause or (
            "until" if "steps" in used else "restart" if "folder" in used else "signal"
        )
        require(
            self.pause in PAUSES,
            "pause",
            pause,
            "'signal', 'restart' or 'until'",
            "it is how the program waits for its next pull",
        )
        self._check_pause(used)
        self.full_steps = None if full_steps is None else need_whole("full_steps", full_steps, 1)

    def _check_pause(self, used: set[str]) -> None:
        needs = {"until": "steps", "restart": "folder"}.get(self.pause)
        if needs is not None and needs not in used:
            why = "up to which step to train" if needs == "steps" else "where to save itself"
            raise SettingError(
                f"pause={self.pause!r}, but the command has no {{{needs}}}, which tells the "
                f"program {why}"
            )
        if self.pause != "until" and "steps" in used:
            raise SettingError(f"pause={self.pause!r}, but {{steps}} is for pause='until' alone")
        steps_known = self._step is not None or (self._pattern and self._pattern.has_steps)
        if self.pause == "restart" and not steps_known:
            where = "line" if self._file is None else "row"
            raise SettingError(
                "a program that is started again repeats steps: give step=, the name of the step "
                f"in the {where} of the score, such as step='epoch'; or pause='signal' if the "
                "program does not continue from what it has saved in {folder}"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that must be the same when the race is resumed; tables show them, too."""
        filled = [_fill(word, self._values, known_only=True) for word in self._words]
        text = (
            filled[0] if self._shell else shlex.join(filled).replace("'{", "{").replace("}'", "}")
        )
        more = {"step": self._step, "score_file": self._file, "cwd": self._cwd}
        found = {"command": text, "score": self._score} | self._values
        return found | {key: value for key, value in more.items() if value is not None}

    @property
    def bound_to_process(self) -> str | None:
        """Reason why only the race's own process can train the learner; None if any can."""
        if self.pause == "until":
            return None
        return (
            f"is a program with pause={self.pause!r}, which only the race's own process can do. "
            "Programs have their own processes anyway: race them with the default runner. On Ray, "
            "let each run train up to {steps} (pause='until')"
        )

    def based_in(self, folder: Path) -> Self:
        """Return the command with a folder to which `cwd` is relative; it is not recorded."""
        other = copy(self)
        other._base = folder
        return other

    def __call__(self, seed: int = 0) -> ProgramLearner | UntilLearner:
        """Return a learner without a race; its log is in a folder that is removed with it."""
        return self.build_in_race(seed, "program", None)

    def build_in_race(
        self, seed: int, name: str, logs: Path | None
    ) -> ProgramLearner | UntilLearner:
        """Return the learner of a race; its program starts at its first pull."""
        place = Path(tempfile.mkdtemp(prefix="latebloomer-")) if logs is None else Path(logs)
        own = file_name(name)
        filled = self._values | {
            "seed": seed,
            "name": name,
            "folder": str((place / own).resolve()),
        }
        file, cwd = None, self._folder
        if self._file is not None:
            file = ScoreFile(_fill(self._file, filled), self._score, self._step, cwd)
        learner = UntilLearner if self.pause == "until" else ProgramLearner
        recipe = Recipe(
            name=name,
            values=self._values,
            words=lambda steps: self._filled(filled | {"steps": steps}),
            pattern=self._pattern,
            file=file,
            env=self._env,
            cwd=cwd,
            log=place / f"{own}.log",
            folder=place / own,
            temporary=logs is None,
            full_steps=self.full_steps,
            saves=self.pause != "signal" and "folder" in _placeholders(self._words),
        )
        return learner(recipe)

    @property
    def _folder(self) -> str:
        """Folder in which the program runs. The guardian may have been started in another one."""
        return str((self._base / (self._cwd or "")).absolute())

    def _filled(self, values: Mapping[str, Any]) -> list[str]:
        if self._shell:
            quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
            return ["sh", "-c", _fill(self._words[0], quoted)]
        return [_fill(word, values) for word in self._words]


def need_posix() -> None:
    """Raise an error where programs cannot be raced."""
    if sys.platform == "win32":
        raise SettingError(
            "programs race on Linux and macOS, where a process can be paused: on Windows, use WSL"
        )


def _words_of(run: Any, shell: bool) -> list[str]:
    """Return the words of a command; the whole text if a shell runs it."""
    try:
        listed = isinstance(run, Sequence) and not isinstance(run, str)
        words = [str(word) for word in run] if listed else [run] if shell else shlex.split(run)
    except (ValueError, AttributeError, TypeError) as error:
        raise SettingError(f"run={brief(run)} is not a command: {error}") from None
    if not words or not words[0].strip() or (shell and listed):
        needed = "a text" if shell else "a text or a list of words, and not empty"
        raise SettingError(f"run={brief(run)}, but run must be {needed}")
    return words


def _placeholders(texts: Sequence[str]) -> set[str]:
    try:
        return {
            name
            for text in texts
            for _, name, *_ in string.Formatter().parse(text)
            if name is not None
        }
    except ValueError as error:
        raise SettingError(f"the braces of {brief(list(texts))} do not match: {error}") from None


def _fill(text: str, values: Mapping[str, Any], known_only: bool = False) -> str:
    parts = []
    for plain, name, *_ in string.Formatter().parse(text):
        parts.append(plain)
        if name is not None:
            parts.append(str(values[name]) if name in values or not known_only else f"{{{name}}}")
    return "".join(parts)
