"""Loggers: a race as MLflow, Weights & Biases, TensorBoard and `logging` show it."""

import json
import logging
from itertools import count
from unittest.mock import Mock

import pytest

from latebloomer import LocalRunner, race, resume
from latebloomer.integrations import loggers
from tests.helpers.killed_races import told


def moody():
    yield 0.1
    raise RuntimeError("no second pull")


LATE = "late / bloomer"
LEARNERS = {
    LATE: lambda: (n / (n + 9) for n in count(1)),
    "early": lambda: (0.5 * n / (n + 1) for n in count(1)),
    "moody": moody,
}
BUDGET = 30


def kill(event, view):
    if view.spent >= 13:
        raise SystemExit


def raced(path, *callbacks):
    own = {"journal": path, "callbacks": [*callbacks], "runner": LocalRunner(retries=0)}
    return race(LEARNERS, BUDGET, progress=False, policy="r-sr", **own)


def dropped_in(verdict):
    (one,) = [one for one in verdict.learners if one.state == "dropped"]
    return one


def stopped_and_resumed(make, path):
    """A race that is ended in the middle and goes on with another logger, as in a new process."""
    with pytest.raises(SystemExit):
        raced(path, make(), kill)
    return resume(path, LEARNERS, progress=False, callbacks=[make()])


def scores(path, arm):
    return [(n, score) for _, a, n, score in told(path) if a == arm]


@pytest.mark.parametrize("logger", ["mine", logging.getLogger("mine")], ids=type)
def test_logging_has_a_line_for_each_pull_and_the_verdict(tmp_path, caplog, logger):
    caplog.set_level(logging.DEBUG, "mine")
    verdict = raced(tmp_path / "race.db", loggers.LoggingLogger(logger))
    lines = [record.getMessage() for record in caplog.records if record.name == "mine"]
    assert len([line for line in lines if " scored " in line]) == verdict.spent
    assert lines[-1].endswith(f"keeps {verdict.name}")
    assert any("moody: failed: " in line and "no second pull" in line for line in lines)
    out = dropped_in(verdict)
    assert f"{out.name}: {out.why}" in lines


def test_tensorboard_has_a_curve_for_each_learner(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    path = tmp_path / "race.db"
    verdict = stopped_and_resumed(lambda: loggers.TensorBoardLogger(tmp_path / "runs"), path)
    (place,) = (tmp_path / "runs").iterdir()
    folders = sorted(folder.name for folder in place.iterdir())
    assert folders == ["early", "late %2F bloomer", "moody"]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(place / "late %2F bloomer"), size_guidance={"tensors": 0}).Reload()
    found, kept = (
        {event.step: event.tensor_proto.float_val[0] for event in read.Tensors(tag)}
        for tag in ("score", "kept")
    )
    assert found == pytest.approx(dict(scores(path, 0)))
    assert list(kept.values()) == [float(verdict.name == LATE)]
    out = dropped_in(verdict)
    other = EventAccumulator(str(place / out.name.replace("/", "%2F"))).Reload()
    assert [event.step for event in other.Tensors("dropped")] == [out.pulls]


@pytest.mark.filterwarnings("ignore:The ``noload``")  # of MLflow's own queries
def test_mlflow_has_a_parent_run_and_a_child_for_each_learner(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    place = f"sqlite:///{tmp_path}/mlflow.db"
    path = tmp_path / "race.db"
    verdict = stopped_and_resumed(lambda: loggers.MLflowLogger("mine", place), path)
    client = mlflow.MlflowClient(place)
    runs = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = {run.info.run_name: run for run in runs if run is not parent}
    assert parent.data.tags["kept"] == verdict.name
    assert parent.data.params["budget"] == str(BUDGET)
    assert set(children) == set(LEARNERS)
    for arm, name in enumerate(LEARNERS):
        run = children[name]
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        points = client.get_metric_history(run.info.run_id, "score")
        # A resumed race gives callbacks the latest score again.
        assert sorted({(point.step, point.value) for point in points}) == scores(path, arm)
        assert run.info.status == ("FAILED" if name == "moody" else "FINISHED")
    assert "no second pull" in children["moody"].data.tags["note"]
    out = dropped_in(verdict)
    assert children[out.name].data.tags["note"] == out.why


def test_a_server_that_is_gone_does_not_end_the_race(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    verdict = raced(tmp_path / "race.db", loggers.MLflowLogger(tracking_uri="http://127.0.0.1:9"))
    assert verdict.spent >= BUDGET - 1
    (note,) = (note for note in verdict.warnings if "callback MLflowLogger failed" in note)
    assert "the race continued" in note


def test_wandb_has_a_group_with_a_run_for_each_learner(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    path = tmp_path / "race.db"
    verdict = raced(path, loggers.WandbLogger("mine", mode="offline", dir=tmp_path))
    files = sorted(tmp_path.glob("wandb/offline-run-*/run-*.wandb"), key=lambda file: file.name)
    assert len(files) == len(LEARNERS)
    groups = {file.stem.split("-")[1] for file in files}
    for arm, name in enumerate(LEARNERS):
        record = files[arm].read_bytes().decode("utf-8", "replace")  # values in it are JSON
        assert name in record and "score" in record and "mine" in record
        assert all(repr(score) in record for _, score in scores(path, arm))
        assert f"{next(iter(groups))}-{arm}" in record
        why = json.dumps(dropped_in(verdict).why)[1:-1]  # with its quotation marks escaped
        assert (why in record) == (name == dropped_in(verdict).name)
    assert len(groups) == 1


def test_a_logger_that_fails_is_mentioned_once_and_not_called_again(tmp_path):
    logger = loggers.LoggingLogger()
    logger.score = Mock(side_effect=OSError("no space left"))
    verdict = raced(tmp_path / "race.db", logger)
    assert logger.score.call_count == 1
    (note,) = (note for note in verdict.warnings if "LoggingLogger" in note)
    assert note.startswith("the callback LoggingLogger failed on ScoreReported (OSError: no space")
