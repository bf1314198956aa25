"""Races in a notebook: one output in place of red lines, and results that show themselves."""

import sys
from html.parser import HTMLParser
from types import ModuleType, SimpleNamespace

import pytest

from latebloomer import RisingSR, race
from latebloomer.session.session import Session
from latebloomer.simulation.simulate import simulate


class Output:
    """What a front end has drawn, and how often it was changed."""

    def __init__(self):
        self.drawn = []

    def display(self, html, display_id):
        self.drawn.append([html])
        return SimpleNamespace(update=self.drawn[-1].append)


@pytest.fixture
def notebook(monkeypatch):
    """A process that looks like a notebook's."""
    output = Output()
    made, part = ModuleType("IPython"), ModuleType("IPython.display")
    made.get_ipython = lambda: SimpleNamespace(kernel=object())
    part.HTML, part.display = str, output.display
    monkeypatch.setitem(sys.modules, "IPython", made)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    return output


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


LEARNERS = {
    "slow": lambda: (n / (n + 9) for n in range(1, 999)),
    "<img src=x>": lambda: (0.1 for _ in range(999)),
}


def test_a_race_has_one_output_that_changes_and_nothing_is_red(notebook, capfd):
    verdict = race(LEARNERS, 200, journal=None)
    assert capfd.readouterr() == ("", "")
    (states,) = notebook.drawn
    last = Tags(states[-1])
    assert len(states) > 2 and "img" not in last.tags
    assert "<img src=x>" in last.text and verdict.sentence in last.text
    assert f"pull {verdict.spent} of 200" in last.text
    assert "winner, kept" in last.text and " left" not in last.text
    assert (
        states[-1].count("text-align: left") == states[-1].count("<t") - 6
    )  # all cells: not table, thead, tbody and 3 rows


def test_a_verdict_shows_itself_without_disturbing_the_page():
    verdict = race(LEARNERS, 200, journal=None, progress=False)
    html = verdict._repr_html_()
    seen = Tags(html)
    assert "Keep slow" in seen.text and "<img src=x>" in seen.text and "img" not in seen.tags
    assert not {"script", "input", "html", "body"} & set(seen.tags) and "svg" in seen.tags
    style = html.partition("</style>")[0]
    assert style.startswith("<style>.latebloomer {") and ":root" not in style


def test_sessions_plans_and_results_show_themselves():
    session = Session("r-sr", ["a", "<b>"], 20)
    session.tell(session.ask(), 0.5)
    seen = Tags(session._repr_html_())
    assert "19 of 20 pulls left" in seen.text and "<b>" in seen.text and "0.5" in seen.text
    plan = RisingSR().describe(arms=200, budget=20_000)
    seen = Tags(plan._repr_html_())
    assert "200 learners, 20,000 pulls" in seen.text and "more" in seen.text  # long ones are cut
    results = simulate("paper-a", ["r-sr"], 200, runs=3, progress=False)
    seen = Tags(results._repr_html_())
    assert "r-sr" in seen.text and seen.tags.count("tr") == 2
