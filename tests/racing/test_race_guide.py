"""docs/callbacks.md and docs/budget.md: examples say what they say, tables name all there is."""

import re
from pathlib import Path

from latebloomer.racing.race_state import RaceView
from latebloomer.session import events

DOCS = Path(__file__).parents[2] / "docs"


def section(title, page="callbacks.md"):
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.split(f"\n## {title}")[1].split("\n## ")[0]


def introduction(page="callbacks.md"):
    return (DOCS / page).read_text(encoding="utf-8").split("\n## ")[0]


def test_the_example_of_callbacks_prints_and_stops_the_race(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", introduction(), re.DOTALL)
    made = {}
    exec(code, made)
    assert capsys.readouterr().out == "short left: finished after 19 pulls\n"
    assert made["verdict"].reason.endswith("slow is good enough")


def test_the_example_of_full_trainings_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", section("Full trainings", "budget.md"), re.DOTALL)
    made = {}
    exec(code, made)
    assert (made["verdict"].name, made["verdict"].spent) == ("net", 150)


def first_cells(text):
    """The names in the first column of a section's table."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name.partition("(")[0] for row in rows for name in re.findall(r"`(.*?)`", row)}


def test_the_table_of_the_view_has_all_that_a_view_has():
    public = {name for name in vars(RaceView) if not name.startswith("_")}
    assert first_cells(introduction()) == public


def test_the_table_of_events_has_every_event_with_its_fields():
    text = section("Events")
    kinds = events.KINDS
    assert first_cells(text) == set(kinds)
    for line in re.findall(r"^\| `.*", text, re.MULTILINE):
        names, _, fields = line.strip("| ").split(" | ")
        found = {name for n in re.findall(r"`(\w+)`", names) for name in kinds[n].__match_args__}
        assert found == set(re.findall(r"`(\w+)`", fields)), names
