"""MLflow: `race(..., callbacks=[MLflowLogger()])`; a run per race, one below per learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latebloomer.integrations.library_learner import library
from latebloomer.integrations.loggers.race_logger import RaceLogger, settings_in_words
from latebloomer.racing.callbacks import RaceView
from latebloomer.session.events import FAILED

__all__ = ["MLflowLogger"]

RACE, LEARNER = "latebloomer.race", "latebloomer.learner"  # tags by which runs are found again
MOST = 500  # characters of a parameter that MLflow takes


class MLflowLogger(RaceLogger):
    """A parent run per race and a child run per learner: metric `score`, whose step is the pull.

    A race that is resumed continues in its runs.

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
        from latebloomer.integrations.loggers.mlflow import MLflowLogger

        learners = {
            "late": lambda: (n / (n + 9) for n in count(1)),
            "early": lambda: (0.6 * n / (n + 1) for n in count(1)),
        }
        logger = MLflowLogger(tracking_uri="sqlite:///runs.db")
        verdict = race(learners, budget=60, callbacks=[logger])
    """

    def __init__(self, experiment: str = "latebloomer", tracking_uri: str | None = None) -> None:
        super().__init__()
        mlflow = library("mlflow", "MLflow logs", "mlflow")
        self._client = mlflow.MlflowClient(tracking_uri=tracking_uri)
        self._name = experiment
        self._experiment = ""
        self._runs: dict[int | None, str] = {}  # by arm; None for the race's own

    def begin(self, view: RaceView) -> None:
        found = self._client.get_experiment_by_name(self._name)
        self._experiment = (
            found.experiment_id if found else self._client.create_experiment(self._name)
        )
        self._runs = {}
        self._find_earlier(view)
        if None not in self._runs:
            self._runs[None] = self._create(view, f"race {view.id}", {})
            for name, value in settings_in_words(view).items():
                self._client.log_param(self._runs[None], name, value[:MOST])
        for run in self._runs.values():
            self._client.update_run(run, status="RUNNING")

    def score(self, arm: int, pull: int, score: float, view: RaceView) -> None:
        self._client.log_metric(self._run(arm, view), "score", score, step=pull)

    def note(self, arm: int | None, text: str, view: RaceView) -> None:
        run = self._runs[None] if arm is None else self._run(arm, view)
        self._client.set_tag(run, "note", text)

    def decide(self, summary: Mapping[str, Any], view: RaceView) -> None:
        self._client.set_tag(self._runs[None], "kept", summary["name"])
        self._client.log_metric(self._runs[None], "spent", view.spent, step=view.spent)
        failed = {row.arm for row in view.standings() if row.state == FAILED}
        for arm, name in enumerate(view.names):
            self._client.set_tag(self._run(arm, view), "kept", str(name == summary["name"]))
        for owner, run in self._runs.items():
            self._client.set_terminated(run, "FAILED" if owner in failed else "FINISHED")

    def end(self, view: RaceView) -> None:
        """Mark runs of an unfinished race as killed; a resume continues them."""
        for run in self._runs.values():
            if self._client.get_run(run).info.status == "RUNNING":
                self._client.set_terminated(run, status="KILLED")

    def _run(self, arm: int, view: RaceView) -> str:
        """Return the run of a learner, made at its first pull."""
        if arm not in self._runs:
            tags = {"mlflow.parentRunId": self._runs[None], LEARNER: str(arm)}
            self._runs[arm] = self._create(view, view.names[arm], tags)
        return self._runs[arm]

    def _create(self, view: RaceView, name: str, tags: dict[str, str]) -> str:
        own = tags | {RACE: view.id}
        return str(self._client.create_run(self._experiment, tags=own, run_name=name).info.run_id)

    def _find_earlier(self, view: RaceView) -> None:
        """Find the runs that an earlier process made for this race."""
        for run in self._client.search_runs([self._experiment], f"tags.`{RACE}` = '{view.id}'"):
            arm = run.data.tags.get(LEARNER)
            self._runs[None if arm is None else int(arm)] = run.info.run_id
