"""Callbacks that write a race to MLflow, Weights & Biases, TensorBoard or `logging`."""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from latebloomer.integrations.library_learner import library
from latebloomer.racing.callbacks import RaceView
from latebloomer.session import events

__all__ = ["LoggingLogger", "MLflowLogger", "RaceLogger", "TensorBoardLogger", "WandbLogger"]

RACE, LEARNER = "latebloomer.race", "latebloomer.learner"  # tags by which runs are found in MLflow
MOST = 500  # maximum characters of a parameter in MLflow


class RaceLogger(ABC):
    """Base class of callbacks that write a race to another tool.

    Pass a logger as `race(..., callbacks=[logger])`. To write your own logger, define `begin`,
    `score` and `decide`, and if needed `drop`, `note` and `end`. If a logger fails, the race notes
    a warning and does not call it again: otherwise a server that does not answer would cost a
    time-out at every pull.

    Examples
    --------
    >>> from latebloomer import race
    >>> class Best(RaceLogger):
    ...     def begin(self, view):
    ...         self.best = 0.0
    ...     def score(self, arm, pull, score, view):
    ...         self.best = max(self.best, score)
    ...     def decide(self, summary, view):
    ...         print(f"{summary['name']}, and the best score was {self.best}")
    >>> learners = {"a": lambda: iter([0.1, 0.2, 0.3]), "b": lambda: iter([0.4, 0.5, 0.6])}
    >>> verdict = race(learners, 4, journal=None, progress=False, callbacks=[Best()])
    b, and the best score was 0.5
    """

    _failed: str | None = None  # ID of the race in which it failed

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if self._failed == view.id and not isinstance(event, events.ProcessStarted):
            return
        self._failed = view.id  # reset below if nothing raises an error
        match event:
            case events.ProcessStarted():
                self.begin(view)
            case events.ScoreReported():
                self.score(event.arm, view.pulls[event.arm], event.score, view)
            case events.Dropped():
                self.drop(event, view)
            case events.Revived():
                self.note(event.arm, events.text_of(event), view)
            case events.LearnerLeft():
                self.note(event.arm, f"{event.how}: {event.why}" if event.why else event.how, view)
            case events.PullFailed():
                self.note(event.arm, f"a pull failed ({event.reason})", view)
            case events.WarningNoted():
                self.note(event.arm, event.text, view)
            case events.RaceFinished():
                self.decide(event.summary, view)
            case events.ProcessClosed():
                self.end(view)
        self._failed = None

    @abstractmethod
    def begin(self, view: RaceView) -> None:
        """Prepare for a race, at its start or when it is resumed."""

    @abstractmethod
    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        """Log the score of one pull of a learner; `pull` is the number of that pull."""

    def note(self, arm: int | None, text: str, view: RaceView) -> None:  # noqa: B027
        """Log an event of a learner as text, or of the race if `arm` is None."""

    def drop(self, drop: events.Dropped, view: RaceView) -> None:
        """Log that a learner was dropped. Default: a note with the numbers that decided."""
        self.note(drop.arm, events.text_of(drop), view)

    @abstractmethod
    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        """Log the verdict of a race that has finished."""

    def end(self, view: RaceView) -> None:  # noqa: B027
        """Close what `begin` opened; the race may not have finished."""


class LoggingLogger(RaceLogger):
    """Write a log line for each pull, note, drop and verdict.

    Parameters
    ----------
    logger : logging.Logger | str
        Logger to write to, or its name.
    level : int
        Level of the lines about pulls. Notes are warnings; drops and verdicts have level INFO.

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
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level

    def begin(self, view: RaceView) -> None:
        self._logger.info("race %s at pull %d: %s", view.id, view.spent, settings_in_words(view))

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._logger.log(self._level, "%s: pull %d scored %.6g", view.names[arm], pull, score)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        self._logger.warning("%s: %s", "race" if arm is None else view.names[arm], text)

    def drop(self, drop: events.Dropped, view: RaceView) -> None:
        self._logger.info("%s", events.in_words(drop, lambda arm: view.names[arm]))

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        self._logger.info("race %s keeps %s", view.id, summary["name"])


class WriterPerLearner(RaceLogger):
    """Base class of loggers that open a separate writer at the first pull of each learner."""

    def begin(self, view: RaceView) -> None:
        self._writers: dict[int | None, Any] = {}

    def end(self, view: RaceView) -> None:
        for writer in self._writers.values():
            self._close(writer)
        self._writers = {}

    def _writer(self, arm: int | None, view: RaceView) -> Any:
        if arm not in self._writers:
            self._writers[arm] = self._open(arm, view)
        return self._writers[arm]

    @abstractmethod
    def _open(self, arm: Any, view: RaceView) -> Any:
        """Return the writer of a learner."""

    @abstractmethod
    def _close(self, writer: Any) -> None:
        """Close a writer."""


class TensorBoardLogger(WriterPerLearner):
    """Write a folder for each race with a folder per learner; TensorBoard overlays the curves.

    The tag is `score`, and the step is the number of the learner's pull. The tag `dropped` is 1 at
    the step where a learner was dropped, and `kept` is 1 for the learner that is kept.

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
        from latebloomer.integrations.loggers import TensorBoardLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        verdict = race(learners, budget=60, callbacks=[TensorBoardLogger("runs")])
    """

    def __init__(self, folder: str | os.PathLike[str] = "runs") -> None:
        self._summary = library("tensorboard.summary", "TensorBoard logs", "tensorboard")
        self._folder = Path(folder)

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        writer = self._writer(arm, view)
        writer.add_scalar("score", score, pull)
        writer.flush()  # else a kill would lose the values in memory

    def drop(self, drop: events.Dropped, view: RaceView) -> None:
        self._writer(drop.arm, view).add_scalar("dropped", 1.0, view.pulls[drop.arm])

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        for arm, name in enumerate(view.names):
            kept = float(name == summary["name"])
            self._writer(arm, view).add_scalar("kept", kept, view.pulls[arm])

    def _open(self, arm: Any, view: RaceView) -> Any:
        place = self._folder / view.id / quote(view.names[arm], safe=" ")
        place.mkdir(parents=True, exist_ok=True)
        return self._summary.Writer(str(place))

    def _close(self, writer: Any) -> None:
        writer.close()


class WandbLogger(WriterPerLearner):
    """Log a group per race and a run per learner; `score` has the learner's pull as its step.

    A resumed race continues in the same runs.

    Parameters
    ----------
    project : str
        Name of the Weights & Biases project.
    settings : Any
        All other arguments are passed to `wandb.init`, such as `mode="offline"`, `entity`, `dir`
        and `tags`.

    Raises
    ------
    MissingExtra
        wandb is not installed, or too old.

    Examples
    --------
    ::

        from itertools import count
        from latebloomer import race
        from latebloomer.integrations.loggers import WandbLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        verdict = race(learners, budget=20, callbacks=[WandbLogger(mode="offline")])
    """

    def __init__(self, project: str = "latebloomer", **settings: Any) -> None:
        self._wandb = library("wandb", "Weights & Biases logs", "wandb")
        self._settings = {"project": project, "resume": "allow", "reinit": "create_new"} | settings

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._writer(arm, view).log({"score": score, "pull": pull}, step=pull)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        if arm is not None:
            self._writer(arm, view).summary["note"] = text

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        for arm, name in enumerate(view.names):
            self._writer(arm, view).summary["kept"] = name == summary["name"]

    def _open(self, arm: Any, view: RaceView) -> Any:
        run = {"group": view.id, "id": f"{view.id}-{arm}", "name": view.names[arm]}
        return self._wandb.init(**run, config=settings_in_words(view), **self._settings)

    def _close(self, writer: Any) -> None:
        writer.finish()


class MLflowLogger(WriterPerLearner):
    """Log a parent run per race and a child run per learner; `score` has the pull as its step.

    A resumed race continues in the same runs.

    Parameters
    ----------
    experiment : str
        Name of the experiment; it is created if it does not exist.
    tracking_uri : str | None
        Where MLflow keeps runs. Default: MLflow's own setting.

    Raises
    ------
    MissingExtra
        MLflow is not installed, or too old.

    Examples
    --------
    ::

        from itertools import count
        from latebloomer import race
        from latebloomer.integrations.loggers import MLflowLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        logger = MLflowLogger(tracking_uri="sqlite:///runs.db")
        verdict = race(learners, budget=60, callbacks=[logger])
    """

    def __init__(self, experiment: str = "latebloomer", tracking_uri: str | None = None) -> None:
        mlflow = library("mlflow", "MLflow logs", "mlflow")
        self._client = mlflow.MlflowClient(tracking_uri=tracking_uri)
        self._name = experiment

    def begin(self, view: RaceView) -> None:
        super().begin(view)
        client = self._client
        experiment = client.get_experiment_by_name(self._name)
        self._experiment = (
            experiment.experiment_id if experiment else client.create_experiment(self._name)
        )
        for run in client.search_runs([self._experiment], f"tags.`{RACE}` = '{view.id}'"):
            arm = run.data.tags.get(LEARNER)  # None for the parent run
            self._writers[None if arm is None else int(arm)] = run.info.run_id
            client.update_run(run.info.run_id, status="RUNNING")
        self._writer(None, view)

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._client.log_metric(self._writer(arm, view), "score", score, step=pull)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        self._client.set_tag(self._writer(arm, view), "note", text)

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        own = self._writer(None, view)
        self._client.set_tag(own, "kept", summary["name"])
        self._client.log_metric(own, "spent", view.spent, step=view.spent)
        self._client.set_terminated(own, "FINISHED")
        for row in view.standings():
            run, failed = self._writer(row.arm, view), row.state == events.FAILED
            self._client.set_tag(run, "kept", str(row.name == summary["name"]))
            self._client.set_terminated(run, "FAILED" if failed else "FINISHED")

    def _open(self, arm: int | None, view: RaceView) -> str:
        name, tags = f"race {view.id}", {RACE: view.id}
        if arm is not None:
            name = view.names[arm]
            tags |= {"mlflow.parentRunId": self._writers[None], LEARNER: str(arm)}
        run = self._client.create_run(self._experiment, tags=tags, run_name=name).info.run_id
        for key, value in settings_in_words(view).items() if arm is None else ():
            self._client.log_param(run, key, value[:MOST])
        return str(run)

    def _close(self, writer: Any) -> None:
        """Mark the run of an unfinished race as killed; a resumed race continues it."""
        if self._client.get_run(writer).info.status == "RUNNING":
            self._client.set_terminated(writer, status="KILLED")


def settings_in_words(view: RaceView) -> dict[str, str]:
    """Return the settings of a race as text, by name."""
    asked = view.settings.as_dict() | {"policy": view.settings.rule, "race": view.id}
    asked.pop("learner_settings")  # they are long and belong to the learners
    return {name: str(value) for name, value in asked.items() if value is not None}
