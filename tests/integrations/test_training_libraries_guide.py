"""docs/training-libraries.md and loggers: every example runs, and the table has every learner."""

import contextlib
import io
import os
import re
from importlib import import_module
from pathlib import Path

import pytest
from libraries import library

from latebloomer.integrations import loggers
from latebloomer.racing.learner import ADAPTERS

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "training-libraries.md").read_text(encoding="utf-8")
LOGGERS = (DOCS / "callbacks.md").read_text(encoding="utf-8")
ROWS, *EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
OURS = re.compile(r"^from latebloomer\.integrations\.(\w+) import (\w+)", re.MULTILINE)
TITLES = [OURS.search(example)[1] for example in EXAMPLES]


def test_there_is_an_example_for_each_learner_and_a_line_in_the_table():
    elsewhere = {"sklearn", "optuna"}  # docs/scikit-learn.md, docs/tuners.md
    homes = {name.split(".")[2] for name in ADAPTERS.values()} - elsewhere
    assert homes == set(TITLES)
    for name in ADAPTERS.values():
        if name.split(".")[2] not in elsewhere:
            assert f"| `{name.rpartition('.')[2]}` | " in GUIDE


@pytest.mark.parametrize("title", TITLES)
def test_an_example_runs_and_two_runs_are_the_same(title, tmp_path, monkeypatch):
    library(title)
    os.environ.setdefault("KERAS_BACKEND", "torch")
    example = EXAMPLES[TITLES.index(title)]
    verdicts = []
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        monkeypatch.chdir(tmp_path / run)
        said: dict = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(ROWS, said)
            exec(example, said)
        verdicts.append(said["verdict"])
    kind = getattr(import_module(f"latebloomer.integrations.{title}"), OURS.search(example)[2])
    assert isinstance(verdicts[0].learner, kind) and verdicts[0].learner.model is not None
    assert verdicts[0].summary() == verdicts[1].summary()


def test_the_loggers_of_the_table_are_there():
    rows = re.findall(r"^\| `(\w+Logger)\(.*?\)` \|", LOGGERS, re.MULTILINE)
    assert {*rows, "RaceLogger"} == set(loggers.__all__)
