"""Races in a real notebook's process: run through nbclient, and looked at cell by cell."""

import os
import sys
from collections import Counter

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

CELLS = {
    "race": """
from functools import partial
from itertools import repeat
from latebloomer import Session, race, simulate
from latebloomer import RisingSR

def slow():
    for n in range(1, 999):
        yield n / (n + 9)

verdict = race({"slow": slow, "<img src=x>": partial(repeat, 0.1)}, 200, journal=None)
""",
    "verdict": "verdict",
    "session": "Session('r-sr', ['a', '<b>'], 20)",
    "plan": "RisingSR().describe(arms=3, budget=12)",
    "results": "results = simulate('paper-a', ['r-sr'], [100, 200], runs=3)\nresults",
    "plot of a verdict": "verdict.plot()",
    "plot of results": "results.plot()",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """All cells, run in one kernel."""
    place = tmp_path_factory.mktemp("notebook")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    book.cells = [nbformat.v4.new_code_cell(code) for code in CELLS.values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("IPYTHONDIR", str(place))
        client = Client(book, timeout=120, resources={"metadata": {"path": str(place)}})
        client.execute()
    return client


class Client(nbclient.NotebookClient):
    """Runs a notebook and counts what the kernel sends for each cell."""

    def process_message(self, msg, cell, cell_index):
        name = list(CELLS)[cell_index]
        self.sent = getattr(self, "sent", Counter())
        self.sent[name, msg["msg_type"]] += 1
        return super().process_message(msg, cell, cell_index)

    def outputs(self, name):
        return self.nb.cells[list(CELLS).index(name)].outputs


def html_of(book, name):
    (output,) = book.outputs(name)
    return output.data["text/html"]


def test_a_race_has_one_output_that_is_changed_in_place(book):
    assert book.sent["race", "display_data"] == 1
    assert book.sent["race", "update_display_data"] >= 2
    html = html_of(book, "race")
    assert "pull 200 of 200" in html and "slow is kept. The verdict says why" in html
    assert "&lt;img src=x&gt;" in html and "<img" not in html
    assert ">winner<" in html and " left<" not in html
    assert html.count("text-align: left") == html.count("<t") - 6  # all but table, parts and rows


def test_nothing_is_red(book):
    kinds = {(name, out.output_type) for name in CELLS for out in book.outputs(name)}
    assert not [pair for pair in kinds if pair[1] in ("stream", "error")], kinds


@pytest.mark.parametrize("name, words", [
    ("verdict", ["Keep slow", "<svg", "&lt;img src=x&gt;"]),
    ("session", ["20 of 20 pulls left", "&lt;b&gt;"]),
    ("plan", ["3 learners, 12 pulls"]),
    ("results", ["paper-a", "r-sr"]),
])  # fmt: skip
def test_objects_show_themselves_as_plain_html(book, name, words):
    html = html_of(book, name)
    assert all(word in html for word in words)
    assert "<script" not in html and "<img" not in html and "http" not in html
    style = html.partition("</style>")[0]  # which does not disturb the page
    own = style.startswith("<style>.latebloomer {") and ":root" not in style
    assert own or name != "verdict"


@pytest.mark.parametrize("name", ["plot of a verdict", "plot of results"])
def test_a_plot_is_drawn_once(book, name):
    assert sum("image/png" in out.data for out in book.outputs(name)) == 1
