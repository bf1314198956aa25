"""Journals of version 1, written by the release before: read as they are, migrated by a resume."""

import hashlib
import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from latebloomer.racing import JournalError, look, resume
from latebloomer.racing.journal import files, migrate
from latebloomer.session.events import Told

KEPT = Path(__file__).parent / "journals_v1"
VERDICTS = json.loads((KEPT / "verdicts.json").read_text())  # of the race that nothing stopped
FINISHED = sorted(name for name in VERDICTS if name.startswith("finished"))
UNFINISHED = sorted(name for name in VERDICTS if name.startswith("unfinished"))


class Saved:
    def __init__(self, seed, best, slow):
        self.best, self.slow, self.n, self.rng = best, slow, 0, random.Random(seed)

    def pull(self):
        self.n += 1
        return self.best * self.n / (self.n + self.slow) + self.rng.gauss(0, 0.01)

    def save(self, folder):
        (folder / "n.json").write_text(json.dumps(self.n))
        (folder / "rng.json").write_text(json.dumps(self.rng.getstate()))

    def load(self, folder):
        self.n = json.loads((folder / "n.json").read_text())
        version, state, gauss = json.loads((folder / "rng.json").read_text())
        self.rng.setstate((version, tuple(state), gauss))


def stream(best, slow, last=10**9):
    def scores(seed):
        rng = random.Random(seed)
        for n in range(1, last + 1):
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores


def moody(seed):
    rng = random.Random(seed)
    for n in range(1, 5):
        yield 0.1 * n + rng.gauss(0, 0.01)
    raise RuntimeError("no fifth pull")


LEARNERS = {
    "saved-late": lambda seed: Saved(seed, 1.0, 20.0),
    "saved-early": lambda seed: Saved(seed, 0.6, 1.0),
    "stream": stream(0.8, 6.0),
    "ends": stream(0.55, 1.0, last=7),
    "moody": moody,
}


@pytest.fixture
def journal(tmp_path, request):
    """A copy of a kept journal, with its checkpoints."""
    name = request.param
    for kept in KEPT.glob(f"{name}.db*"):
        copy = shutil.copytree if kept.is_dir() else shutil.copy
        copy(kept, tmp_path / kept.name)
    return tmp_path / f"{name}.db"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plain(summary):
    """As JSON has it, to rounding; certificates have become sharper since."""
    read = json.loads(json.dumps(summary), parse_float=lambda text: float(f"{float(text):.12g}"))
    return {key: value for key, value in read.items() if not key.startswith("certif")}


LOSSES = {  # findings speak of losses where scores are, which those of version 1 did not
    "curves that never fall": "losses that never rise",
    "bends upwards": "bends downwards",
    "curves that flatten (concave)": "losses that flatten (convex)",
}


def in_todays_words(name, summary):
    found = plain(summary)
    for old, new in LOSSES.items() if name.endswith("minimize") else ():
        found["findings"] = [text.replace(old, new) for text in found["findings"]]
    return found


VERDICTS = {name: in_todays_words(name, summary) for name, summary in VERDICTS.items()}


def events(path):
    opened = files.read(path)
    found = [entry.event for entry in opened.read()]
    opened.close()
    return found


@pytest.mark.parametrize("journal", FINISHED, indirect=True)
def test_looking_at_one_gives_its_verdict_and_changes_nothing(journal):
    before = digest(journal)
    assert plain(look(journal).summary()) == VERDICTS[journal.stem]
    assert digest(journal) == before and not Path(f"{journal}.v1").exists()


@pytest.mark.parametrize("journal", UNFINISHED, indirect=True)
def test_an_unfinished_one_is_shown_and_resumes_to_the_same_verdict(journal):
    before, old = look(journal), digest(journal)
    assert not before.over and 0 < before.spent < before.budget
    verdict = resume(journal, LEARNERS, progress=False)
    assert plain(verdict.summary()) == VERDICTS[journal.stem]
    assert look(journal).summary() == verdict.summary()
    beside = Path(f"{journal}.v1")
    assert plain(look(beside).summary()) == plain(before.summary())
    assert digest(journal) != old


@pytest.mark.parametrize("journal", sorted(VERDICTS), indirect=True)
def test_migrated_it_has_the_same_events(journal):
    before = events(journal)
    files.reopen(journal).close()
    assert events(journal) == before
    with sqlite3.connect(journal) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        pulls = db.execute("SELECT count(*), max(t) FROM pulls").fetchone()
    told = sum(isinstance(event, Told) for event in before)
    assert pulls == (told, told)


@pytest.mark.parametrize("journal", ["unfinished"], indirect=True)
def test_a_migration_that_is_cut_short_leaves_the_old_journal(journal, monkeypatch):
    def cut(*_):
        raise KeyboardInterrupt

    before = plain(look(journal).summary())
    with monkeypatch.context() as patched:
        patched.setattr(migrate.FileJournal, "write", cut)
        with pytest.raises(KeyboardInterrupt):
            files.reopen(journal)
    assert plain(look(journal).summary()) == before
    assert plain(resume(journal, LEARNERS, progress=False).summary()) == VERDICTS["unfinished"]


@pytest.mark.parametrize("journal", ["unfinished"], indirect=True)
def test_one_of_version_1_is_only_read(journal):
    opened = files.read(journal)
    with pytest.raises(JournalError, match="of version 1, which is only read"):
        opened.append(Told(0, 0.5))
    opened.close()
