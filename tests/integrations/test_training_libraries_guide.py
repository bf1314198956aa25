"""The pages of training libraries: every example runs, and the table has every learner."""

import contextlib
import io
import os
import re
from importlib import import_module
from pathlib import Path

import pytest
from libraries import library

from latebloomer.racing.learner import ADAPTERS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for name in ("training-libraries", "boosting", "pytorch", "loggers")
]
GUIDE = "\n".join(PAGES)
ROWS, *EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
EXAMPLES = [example for example in EXAMPLES if example != ROWS]
OURS = re.compile(r"^from latebloomer\.integrations\.(\w+) import (\w+)", re.MULTILINE)
TITLES = [OURS.search(example)[1] for example in EXAMPLES]


def test_the_pages_race_on_the_same_rows():
    assert [page.count(ROWS) for page in PAGES] == [0, 1, 1, 0]


def test_there_is_an_example_for_each_learner_and_a_line_in_the_table():
    elsewhere = {"sklearn", "optuna"}  # docs/scikit-learn.md, docs/optuna.md
    homes = {name.split(".")[2] for name in ADAPTERS.values()} - elsewhere
    assert {*homes, "standard_logging"} == set(TITLES)
    for name in ADAPTERS.values():
        if name.split(".")[2] not in elsewhere:
            assert f"| `{name.rpartition('.')[2]}` | " in GUIDE


@pytest.mark.parametrize("title", TITLES)
def test_an_example_runs_and_names_a_learner(title, tmp_path, monkeypatch):
    if title != "standard_logging":
        library(title)
    os.environ.setdefault("KERAS_BACKEND", "torch")
    monkeypatch.chdir(tmp_path)
    example = EXAMPLES[TITLES.index(title)]
    said: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(ROWS, said)
        exec(example, said)
    if title != "standard_logging":
        kind = getattr(import_module(f"latebloomer.integrations.{title}"), OURS.search(example)[2])
        assert isinstance(said["verdict"].learner, kind)
        assert said["verdict"].learner.model is not None


def test_the_loggers_of_the_table_are_there():
    rows = re.findall(r"^\| `(\w+)\(.*?\)` in `integrations/(\w+)\.py`", GUIDE, re.MULTILINE)
    assert len(rows) == 4
    for name, module in rows:
        assert hasattr(import_module(f"latebloomer.integrations.{module}"), name)
