"""Hints and errors for a program that prints no score, while it runs and after it has ended.

A program may need an hour to its first score, so these are hints: they end nothing.
"""

import difflib
import re
from collections.abc import Callable, Sequence

from latebloomer.programs.output_log import OutputLog
from latebloomer.programs.score_file import ScoreFile
from latebloomer.programs.score_reader import NUMBER, Pattern

MANY = 50  # lines with numbers after which a score should have been among them
SHARE = 0.05  # minimum share of lines with numbers: binary output has digits by chance
LONG = 60.0  # seconds without a score after which a hint is useful
SHOWN = 5  # last lines in a message
MOST_NAMES = 8  # names in a message
NAMED = re.compile(rf"([A-Za-z_][\w./@-]*)[\"']?\s*[=:]\s*[\"']?{NUMBER}(?![\w.]*[A-Za-z_])")
WAITS = "The race waits for it. If the name of the score is wrong, press Ctrl-C and correct it."
BUFFERED = (
    "If it keeps its output back, start it with `stdbuf -oL` (the output of Python is never "
    "kept back)."
)


class MissingScore:
    """Counts what a program prints before its first score, and says once if that is too much."""

    def __init__(
        self,
        name: str,
        log: OutputLog,
        pattern: Pattern | None,
        file: ScoreFile | None,
        tell: Callable[[str], object],
    ) -> None:
        self._name, self._log, self._tell = name, log, tell
        self._pattern, self._file = pattern, file
        self.lines = self.with_numbers = 0
        self._seconds = 0.0
        self._done = self._told_lines = self._told_time = False

    def found(self) -> None:
        """Note the first score: nothing is missing any more."""
        self._done = True

    def note(self, line: str) -> None:
        """Count a line that has no score."""
        if self._done or not line:
            return
        self.lines += 1
        self.with_numbers += _has_number(line)
        enough = self.with_numbers >= max(MANY, self.lines * SHARE)
        if enough and self._file is None and not self._told_lines:
            self._told_lines = True
            self._tell(
                f"{self._name} has printed {self.with_numbers} lines with numbers, but none with "
                f"{self._wanted()}. {self._last_lines()}"
            )

    def wait(self, seconds: float) -> None:
        """Count seconds during which the program ran and no score came."""
        self._seconds += seconds
        if self._done or self._told_time or self._told_lines or self._seconds < LONG:
            return
        self._told_time = True
        so_far = f"{self._name} has run for {LONG:g} s"
        if self._file is not None:
            there = self._file.path.exists()
            missing = f"has no row with {self._wanted()}" if there else "does not exist"
            self._tell(f"{so_far}, and {self._file.path} {missing}. {WAITS}")
        elif not self.lines:
            self._tell(f"{so_far} and has printed nothing. {BUFFERED} {WAITS}")
        else:
            lines = f"{self.lines} line{'s' * (self.lines != 1)}"
            self._tell(
                f"{so_far} and has printed {lines}, none with {self._wanted()}. {BUFFERED} "
                f"{self._last_lines()}"
            )

    def _wanted(self) -> str:
        if self._file is not None:
            return f"the score {self._file.column!r}"
        assert self._pattern is not None
        return f"the score {self._pattern.text!r}" + " and its step" * self._pattern.has_steps

    def _last_lines(self) -> str:
        return f"{described(self._log, self._pattern)}\n{WAITS}"


def no_score_in(log: OutputLog, pattern: Pattern, counted: MissingScore) -> str:
    """Return what is wrong with a program that has ended and printed no score."""
    wanted = f"the score {pattern.text!r}" + " with a step" * pattern.has_steps
    text = f"the program ended, and no line of its output has {wanted}"
    if counted.lines > SHOWN:
        text = (
            f"the program ended, and none of its {counted.lines:,} lines, "
            f"{counted.with_numbers:,} of them with numbers, has {wanted}"
        )
    return f"{text}. {described(log, pattern)}\nCorrect the name of the score."


def described(log: OutputLog, pattern: Pattern | None) -> str:
    """Return the last lines, how many of them have numbers, and under which names."""
    lines = list(log.last)[-SHOWN:]
    numbers = sum(map(_has_number, lines))
    count = f"{numbers} of them {'have' if numbers != 1 else 'has'} numbers"
    if not numbers:
        count = "none of them has a number"
    text = f"Its last lines ({count}):\n{log.ends(SHOWN)}"
    names = names_in(log.last)
    if not names or pattern is None:
        return text
    near = difflib.get_close_matches(pattern.text, names, n=1)
    if near and near[0] != pattern.text:
        return f"{text}\nDid you mean {near[0]!r}?"
    return f"{text}\nNames with numbers in its output: {', '.join(names[:MOST_NAMES])}."


def names_in(lines: Sequence[str]) -> list[str]:
    """Return the names that stand before numbers.

    >>> names_in(["epoch 3: loss=0.2", '{"val_accuracy": 9.1e-1}'])
    ['loss', 'val_accuracy']
    """
    return list(dict.fromkeys(name for line in lines for name in NAMED.findall(line)))


def _has_number(line: str) -> bool:
    """Return whether a line of text has a digit; other bytes have digits by chance."""
    return "\ufffd" not in line and any(character.isdigit() for character in line)
