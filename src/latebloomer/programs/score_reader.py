"""Scores in what a program prints: lines, the name or pattern of the score, numbers."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from latebloomer.errors import SettingError

NUMBER = r"[-+]?(?:(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)"
WRAPPED = rf"(?:[A-Za-z_][\w.]*\(\s*)?(?P<{{}}>{NUMBER})(?![\w.]*[A-Za-z_])"  # np.float64(0.5)
COLORS = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
ENDS = re.compile(rb"\r\n|[\r\n]")
LONGEST = 1 << 16  # bytes of a line that are looked at: longer ones are not text


class Score(NamedTuple):
    """A score that a program printed."""

    value: float
    step: int | None  # number printed with the score, if any


class Pattern:
    """Where a line has the score, and the number of the step if that is asked for.

    >>> Pattern("val_acc").scores_in('epoch 3: loss 0.21 val_acc=0.914')
    Score(value=0.914, step=None)
    >>> Pattern("val_acc", step="epoch").scores_in('{"epoch": 3, "val_acc": 9.1e-1}')
    Score(value=0.91, step=3)
    >>> Pattern(r"accuracy is (.*) %").scores_in("its accuracy is 91.5 %").value
    91.5
    """

    def __init__(self, score: str, step: str | None = None) -> None:
        self.text = score  # as the user gave it
        self.score = _compiled("score", score)
        named = "step" in self.score.groupindex
        if named and step is not None:
            raise SettingError(
                f"step={step!r}, but score={score!r} has a group for it: omit step="
            )
        self.step = None if step is None else _compiled("step", step)
        self.has_steps = named or step is not None

    def scores_in(self, line: str) -> Score | None:
        """Return the score of a line; None if it has none."""
        found = self.score.search(line)
        if found is None:
            return None
        groups = found.groupdict()
        text = groups.get("score") if "score" in groups else found[1]
        try:
            value = float(str(text).strip())
        except ValueError:
            raise NotANumber(line, str(text)) from None
        step = found if "step" in groups else self.step and self.step.search(line)
        if not step:
            return None if self.has_steps else Score(value, None)
        return Score(value, int(float(step["step"])))


class NotANumber(ValueError):
    """The pattern of the score has found a text that is not a number."""

    def __init__(self, line: str, text: str) -> None:
        super().__init__(line, text)
        self.line, self.text = line, text


def _compiled(kind: str, text: str) -> re.Pattern[str]:
    """Return the pattern of a name, or of a regular expression with a group."""
    if not isinstance(text, str) or not text.strip():
        raise SettingError(f"{kind}={text!r}, but {kind} must be a name or a regular expression")
    if re.fullmatch(r"[\w./@ -]+", text):
        name = rf"(?<![\w./-])[\"']?{re.escape(text)}[\"']?\s*[=:]?\s*"
        return re.compile(name + WRAPPED.format(kind))
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise SettingError(f"{kind}={text!r} is not a regular expression: {error}") from None
    if pattern.groups == 0:
        raise SettingError(
            f"{kind}={text!r} has no group: put the number in parentheses, as in 'accuracy: (.*)'"
        )
    if kind == "step" and "step" not in pattern.groupindex:
        return re.compile(text.replace("(", "(?P<step>", 1)) if pattern.groups == 1 else pattern
    return pattern


class Lines:
    r"""Lines of an output that arrives in pieces; a carriage return ends one, too.

    >>> lines = Lines()
    >>> [*lines.add(b"acc=0."), *lines.add(b"5\n\x1b[31mred\x1b[0m\racc"), *lines.rest()]
    ['acc=0.5', 'red', 'acc']
    >>> [*lines.add(b"a table:\r"), *lines.add(b"\n\n  1 2\n")]
    ['a table:', '', '  1 2']
    """

    def __init__(self) -> None:
        self._begun = b""
        self._returned = False  # whether a carriage return came last, which "\n" may follow

    def add(self, data: bytes) -> Iterator[str]:
        """Yield the lines that are complete now; a blank line needs a line feed."""
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r")
        at, whole = 0, self._begun + data
        for end in ENDS.finditer(whole):
            line, at = whole[at : end.start()], end.end()
            if line or end[0] == b"\n":
                yield _text(line)
        self._begun = whole[at:]
        if len(self._begun) > LONGEST:
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """Yield what the output ended with, if that has no end of line."""
        begun, self._begun = self._begun, b""
        if begun:
            yield _text(begun)


def _text(line: bytes) -> str:
    return COLORS.sub(b"", line[:LONGEST]).decode("utf-8", "replace").rstrip()
