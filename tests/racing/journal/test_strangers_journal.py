"""A journal from elsewhere, with right checksums and any values: an error of ours, or no harm."""

import os
import pickle
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer.cli.command_line import app
from latebloomer.errors import LatebloomerError, SettingError
from latebloomer.racing.checkpoints.restored_learners import LEARNER
from latebloomer.racing.checkpoints.storage import digest_of, place_of
from latebloomer.racing.journal import files, schema
from latebloomer.racing.journal.locks import RaceLock
from latebloomer.racing.journal.races_folder import list_races
from latebloomer.racing.runners.runner_names import runner_to_name
from latebloomer.session import events
from latebloomer.watch.race_folder import RaceFolder
from tests.helpers.journals import entries_in
from tests.helpers.learners import LEARNERS, rising

LEAVES = st.sampled_from([None, True, -1, 0, 3, 10**20, 0.5, float("inf"), float("nan"), "", "hi"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2)
    | st.lists(inner, max_size=2).map(tuple)
    | st.dictionaries(st.sampled_from(["name", "a", "repr"]) | LEAVES, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


class Good(NamedTuple):
    file: Path
    entries: list


def fails():
    yield 0.1
    raise ValueError("no")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A race with every common event."""
    path = tmp_path_factory.mktemp("good") / "good.db"
    learners = {"a": LEARNERS["a"], "b": LEARNERS["b"], "f": fails}
    race(learners, 30, journal=path, progress=False)
    resume(path, learners, budget=40, add={"n": rising(0.8)}, progress=False)
    return Good(path, entries_in(path))


def written(path, entries):
    files.write_new(path, entries, "normal").close()


@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.data())
def test_no_value_in_a_journal_breaks_the_list_of_its_folder(good, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("folder")
    kinds = sorted({type(entry.event).__name__ for entry in good.entries})
    kind = data.draw(st.sampled_from(kinds))
    at = next(k for k, entry in enumerate(good.entries) if type(entry.event).__name__ == kind)
    event = good.entries[at].event
    fields = list(schema.FIELDS[type(event)])
    if not fields:
        return
    field, value = data.draw(st.sampled_from(fields)), data.draw(VALUES)
    inner = getattr(event, field)
    if isinstance(inner, dict) and data.draw(st.booleans()):
        value = {**inner, data.draw(st.sampled_from(sorted(inner))): value}
    forged = event._replace(**{field: value}) if isinstance(event, tuple) else None
    forged = replace(event, **{field: value}) if forged is None else forged
    entries = [
        *good.entries[:at],
        good.entries[at]._replace(event=forged),
        *good.entries[at + 1 :],
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "checked", lambda name, value, declared: value)
        try:
            written(folder / "bad.db", entries)
        except Exception:  # no file can hold this
            return
    shutil.copy(good.file, folder / "good.db")
    listed = {race.path.rpartition("/")[2]: race for race in list_races(folder)}
    assert listed["good.db"].state == "finished" and "bad.db" in listed
    assert "good.db" in RaceFolder(folder).list_html()
    shown = CliRunner().invoke(app, ["races", str(folder)])
    assert "good.db" in shown.output and shown.exception is None
    with suppress(LatebloomerError):
        verdict = read_verdict(folder / "bad.db")
        verdict.summary()
        str(verdict)


@pytest.mark.parametrize("value", [{"a": 1}, ("hi",)], ids=repr)
@pytest.mark.parametrize(
    ("kind", "field", "key"),
    [
        (events.Created, "settings", "budget"),
        (events.Created, "settings", "seconds"),
        (events.RaceFinished, "summary", "name"),
        (events.RaceFinished, "summary", "score"),
    ],
)
def test_what_a_list_shows_has_its_type_or_the_journal_is_listed_as_damaged(
    good, tmp_path, kind, field, key, value
):
    def forged(event):
        if not isinstance(event, kind):
            return event
        return replace(event, **{field: {**getattr(event, field), key: value}})

    shutil.copy(good.file, tmp_path / "good.db")
    entries = [entry._replace(event=forged(entry.event)) for entry in good.entries]
    written(tmp_path / "bad.db", entries)
    listed = {Path(race.path).name: race for race in list_races(tmp_path)}
    assert listed["bad.db"].state == "damaged" and listed["bad.db"].wrong
    assert "good.db" in RaceFolder(tmp_path).list_html()
    shown = CliRunner().invoke(app, ["races", str(tmp_path)])
    assert shown.exception is None and "good.db" in shown.output and "damaged" in shown.output


class Plain:
    """Without save and load: few in memory, it is pickled."""

    def __init__(self, best=0.5):
        self.best, self.n = best, 0

    def pull(self):
        self.n += 1
        return self.best * self.n / (self.n + 5)


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


PLAIN = {"a": Plain, "b": lambda: Plain(0.7), "c": lambda: Plain(0.9)}


def prepared(tmp_path, runner, store):
    """A journal that names a runner, with pickles of a stranger in its storage."""
    race(PLAIN, 60, journal=tmp_path / "race.db", progress=False, horizon=99,
         runner=LocalRunner(max_in_memory=2))  # fmt: skip
    entries = []
    for entry in entries_in(tmp_path / "race.db"):
        event = entry.event
        if isinstance(event, events.Created):
            event = replace(event, settings={**event.settings, "runner": runner})
            store = store / event.race
        if isinstance(event, events.Saved):
            place = store / place_of(event.arm, event.n)
            place.mkdir(parents=True, exist_ok=True)
            (place / LEARNER).write_bytes(pickle.dumps(Evil(tmp_path / "mark")))
            digest, size = digest_of(place)
            event = replace(event, digest=digest, size=size)
        if not isinstance(event, events.RaceFinished | events.ProcessClosed):
            entries.append(entry._replace(event=event, number=len(entries) + 1))
    (tmp_path / "mail").mkdir()
    written(tmp_path / "mail" / "sent.db", entries)
    return tmp_path / "mail" / "sent.db"


@pytest.mark.parametrize(
    "places",
    [
        {"storage": "{}/downloads"},
        {"storage": "s3://bucket/races"},
        {"address": "ray://10.0.0.1:10001"},
        {"storage": "{}/mail/../downloads", "address": "auto"},
    ],
    ids=str,
)
def test_a_journal_from_elsewhere_does_not_name_the_place_that_learners_are_loaded_from(
    tmp_path, places
):
    places = {name: value.format(tmp_path) for name, value in places.items()}
    path = prepared(tmp_path, {"name": "ray", "cores": 1, **places}, tmp_path / "downloads")
    with pytest.raises(SettingError, match="name its runner again: resume") as caught:
        resume(path, PLAIN, budget=90, progress=False)
    for name, value in places.items():
        assert f"{name}={value!r}" in str(caught.value)
    assert not (tmp_path / "mark").exists()
    with closing(RaceLock(path)):
        pass  # and the journal is closed


def test_a_storage_in_the_journals_own_folder_needs_no_name(tmp_path):
    path = tmp_path / "race.db"
    inside = {"name": "ray", "storage": str(tmp_path / "store"), "address": None}
    assert runner_to_name(inside, path) == ""
    assert runner_to_name({"name": "local", "timeout": 5.0}, path) == ""


def test_the_command_line_says_which_options_name_the_runner_again(tmp_path):
    runner = {"name": "ray", "cores": 1, "storage": "s3://bucket/races", "address": "auto"}
    path = prepared(tmp_path, runner, tmp_path / "downloads")
    (tmp_path / "learners.py").write_text("LEARNERS = {'a': int, 'b': int, 'c': int}")
    words = ["resume", str(path), f"{tmp_path}/learners.py:LEARNERS", "--quiet"]
    shown = CliRunner().invoke(app, words)
    said = " ".join(shown.output.replace("│", " ").split())
    assert "LEARNERS --runner ray --address auto --storage s3://bucket/races" in said, said
