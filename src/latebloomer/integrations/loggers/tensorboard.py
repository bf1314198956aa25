"""TensorBoard: `race(..., callbacks=[TensorBoardLogger("runs")])`; see `tensorboard --logdir`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from latebloomer.integrations.library_learner import library
from latebloomer.integrations.loggers.race_logger import WriterPerLearner
from latebloomer.racing.callbacks import RaceView

__all__ = ["TensorBoardLogger"]


class TensorBoardLogger(WriterPerLearner):
    """A folder for each race, with one for each learner; TensorBoard overlays their curves.

    The tag is `score`, the step the learner's pull; `kept` is 1 for the learner that is kept.

    Parameters
    ----------
    folder : str | os.PathLike[str]
        Folder to pass to `tensorboard --logdir`.

    Raises
    ------
    MissingExtra
        TensorBoard is not installed, or too old.

    Examples
    --------
    ::

        from itertools import count
        from latebloomer import race
        from latebloomer.integrations.loggers.tensorboard import TensorBoardLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        verdict = race(learners, budget=60, callbacks=[TensorBoardLogger("runs")])
    """

    def __init__(self, folder: str | os.PathLike[str] = "runs") -> None:
        super().__init__()
        self._summary = library("tensorboard.summary", "TensorBoard logs", "tensorboard")
        self._folder = Path(folder)

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._writer(arm, view).add_scalar("score", score, pull)

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        for arm, name in enumerate(view.names):
            kept = float(name == summary["name"])
            self._writer(arm, view).add_scalar("kept", kept, view.pulls[arm])

    def _open(self, arm: int, view: RaceView) -> Any:
        place = self._folder / view.id / quote(view.names[arm], safe=" ")
        place.mkdir(parents=True, exist_ok=True)
        return self._summary.Writer(str(place))

    def _close(self, writer: Any) -> None:
        writer.close()
