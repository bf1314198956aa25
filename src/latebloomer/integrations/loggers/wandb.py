"""Weights & Biases: `race(..., callbacks=[WandbLogger()])`; a group per race, runs of learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latebloomer.integrations.library_learner import library
from latebloomer.integrations.loggers.race_logger import WriterPerLearner, settings_in_words
from latebloomer.racing.callbacks import RaceView

__all__ = ["WandbLogger"]


class WandbLogger(WriterPerLearner):
    """A group per race with a run per learner: `score`, whose step is the learner's pull.

    A race that is resumed continues in its runs.

    Parameters
    ----------
    project : str
        Name of the project.
    settings : Any
        All other settings go to `wandb.init`: `mode="offline"`, `entity`, `dir`, `tags`.

    Raises
    ------
    MissingExtra
        wandb is not installed, or too old.

    Examples
    --------
    ::

        from itertools import count
        from latebloomer import race
        from latebloomer.integrations.loggers.wandb import WandbLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        verdict = race(learners, budget=20, callbacks=[WandbLogger(mode="offline")])
    """

    def __init__(self, project: str = "latebloomer", **settings: Any) -> None:
        super().__init__()
        self._wandb = library("wandb", "Weights & Biases logs", "wandb")
        self._settings = {"project": project} | settings

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._writer(arm, view).log({"score": score, "pull": pull}, step=pull)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        if arm is not None:
            self._writer(arm, view).summary["note"] = text

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        for arm, name in enumerate(view.names):
            self._writer(arm, view).summary["kept"] = name == summary["name"]

    def _open(self, arm: int, view: RaceView) -> Any:
        return self._wandb.init(
            group=view.id, id=f"{view.id}-{arm}", name=view.names[arm], resume="allow",
            reinit="create_new", config=settings_in_words(view), **self._settings,
        )  # fmt: skip

    def _close(self, writer: Any) -> None:
        writer.finish()
