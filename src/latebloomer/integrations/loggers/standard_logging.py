"""Python's own `logging`: `race(..., callbacks=[LoggingLogger()])`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from latebloomer.integrations.loggers.race_logger import RaceLogger, settings_in_words
from latebloomer.racing.callbacks import RaceView

__all__ = ["LoggingLogger"]


class LoggingLogger(RaceLogger):
    """Write a line for each pull (at `level`), note (warning) and verdict (info).

    Parameters
    ----------
    logger : logging.Logger | str
        Logger to write to, or its name.
    level : int
        Level of the lines about pulls.

    Examples
    --------
    >>> import sys, latebloomer
    >>> logging.basicConfig(stream=sys.stdout, format="%(name)s %(message)s", force=True)
    >>> logger = LoggingLogger(level=logging.WARNING)
    >>> learners = {"a": lambda: iter([0.1, 0.2, 0.3]), "b": lambda: iter([0.4, 0.5, 0.6])}
    >>> verdict = latebloomer.race(learners, 4, journal=None, progress=False, callbacks=[logger])
    latebloomer a: pull 1 scored 0.1
    latebloomer b: pull 1 scored 0.4
    latebloomer a: pull 2 scored 0.2
    latebloomer b: pull 2 scored 0.5
    """

    def __init__(
        self, logger: logging.Logger | str = "latebloomer", level: int = logging.DEBUG
    ) -> None:
        super().__init__()
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level

    def begin(self, view: RaceView) -> None:
        self._logger.info("race %s at pull %d: %s", view.id, view.spent, settings_in_words(view))

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._logger.log(self._level, "%s: pull %d scored %.6g", view.names[arm], pull, score)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        who = "race" if arm is None else view.names[arm]
        self._logger.warning("%s: %s", who, text)

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        self._logger.info("race %s keeps %s", view.id, summary["name"])
