"""Text of a verdict about its learner in addition to scores: command, values and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util.text import near, one_line
from latebloomer.racing.learners.log_files import files_of

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict

COMMAND = "command"  # name of the setting with its own line


def about(verdict: Verdict) -> dict[str, str]:
    """Return the attribute `about` of the learner to keep, or else recorded data about it.

    Recorded data are the settings of the learner and, next to the journal, its log and its folder.
    Most learners have none of these.
    """
    told = getattr(verdict.learner, "about", None)
    if isinstance(told, Mapping):
        return {str(label): one_line(str(value)) for label, value in told.items()}
    if verdict.journal is None:
        return {}
    files = files_of(Path(verdict.journal), verdict.name)
    if not files:
        return {}
    settings = dict(verdict[verdict.name].settings)
    command = settings.pop(COMMAND, None)
    values = ", ".join(f"{name}={value}" for name, value in settings.items())
    texts = {"Program": command, "Settings": values}
    recorded = {label: one_line(str(text)) for label, text in texts.items() if text}
    return recorded | {label: near(path) for label, path in files.items()}


def about_lines(verdict: Verdict) -> list[str]:
    """Return the result of `about` as lines, which users can copy."""
    return [f"{label}: {text}" for label, text in about(verdict).items()]
