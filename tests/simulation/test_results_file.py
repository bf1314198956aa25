"""Simulations that keep their results in a file: what is there is not played again."""

import signal
import subprocess
import sys

import pytest

from latebloomer import Results, simulate
from latebloomer.errors import ChunkError, Interrupted, OutputError, ResultsError
from latebloomer.simulation import growing_results, local_runs
from tests.helpers.simulations import before_chunks, content, failing_at

WHOLE = {"problem": "paper-a:sigma=0.1", "policies": ["r-sr", "sh"], "budgets": [60, 150],
         "runs": 40, "method": "pulls", "chunk": 10, "target": "python"}  # fmt: skip


def play(out=None, **other):
    return simulate(**(WHOLE | other), progress=False, out=out)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.json"


@pytest.fixture
def played(monkeypatch):
    """The chunks that are played: (budget, policies, first run, runs)."""
    real, calls = local_runs.play_chunk, []

    def noted(experiment, players, first, runs):
        calls.append((experiment.budget, len(experiment.policies), first, runs))
        return real(experiment, players, first, runs)

    monkeypatch.setattr(local_runs, "play_chunk", noted)
    return calls


def test_what_is_all_there_is_not_played(out, played):
    whole = content(play(out))
    assert out.read_bytes() == whole
    played.clear()
    before = out.stat().st_mtime_ns, out.stat().st_ino
    assert content(play(out)) == whole
    assert content(play(out, runs=5, policies="sh")) == whole  # the file, whole
    assert not played
    assert (out.stat().st_mtime_ns, out.stat().st_ino) == before


def test_more_runs_and_budgets_play_what_is_missing(out, played):
    play(out, runs=5, first_run=12, budgets=60)
    played.clear()
    assert content(play(out)) == content(play()) == out.read_bytes()
    assert played[:5] == [
        (60, 2, 0, 10), (60, 2, 10, 2), (60, 2, 17, 10), (60, 2, 27, 10), (60, 2, 37, 3),
    ]  # fmt: skip


def test_a_policy_that_comes_later_is_compared_in_the_same_runs(out, played):
    play(out, runs=15)
    more = ["rr", "sh", "r-sr"]
    whole = content(play(policies=more))
    assert content(play(out, policies=more)) == whole == out.read_bytes()
    out.unlink()
    play(out, policies="sh", runs=20)  # then both need all runs: the pair has none
    whole = content(play(out))
    assert whole == content(play())
    play(out, policies="r-sr", first_run=40, runs=10)
    played.clear()
    play(out, runs=50)
    assert set(played) == {(60, 2, 40, 10), (150, 2, 40, 10)}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ZeroDivisionError()])
def test_whatever_ends_it_early_the_file_has_what_is_complete(error, out, monkeypatch):
    with monkeypatch.context() as broken:
        before_chunks(broken, failing_at(7, error))
        raised = {KeyboardInterrupt: Interrupted, MemoryError: ChunkError}
        with pytest.raises(raised.get(type(error), ZeroDivisionError)):
            play(out)
    found = Results.load(out)
    assert [(cell.policy, cell.budget, cell.runs) for cell in found.cells] == [
        ("r-sr", 60, 40), ("r-sr", 150, 20), ("sh", 60, 40), ("sh", 150, 20),
    ]  # fmt: skip
    assert content(play(out)) == content(play())


KILLED = """
import os, signal, sys
import pytest
from latebloomer.simulation import growing_results, local_runs
growing_results.EVERY, growing_results.SHARE, local_runs.SECONDS = -1.0, 0, -1.0
from tests.helpers import simulations
from tests.simulation import test_results_file
def deadly(number):
    if number == 6:
        os.kill(os.getpid(), signal.SIGKILL)
simulations.before_chunks(pytest.MonkeyPatch(), deadly)
test_results_file.play(sys.argv[1])
"""


def test_a_kill_costs_only_what_was_not_written(out, played):
    ran = subprocess.run([sys.executable, "-c", KILLED, out])
    assert ran.returncode == -signal.SIGKILL
    assert [cell.runs for cell in Results.load(out).cells] == [40, 10, 40, 10]
    assert content(play(out)) == content(play())
    assert played[:3] == [(150, 2, 10, 10), (150, 2, 20, 10), (150, 2, 30, 10)]


def test_the_file_is_written_now_and_then_not_after_each_chunk(out, monkeypatch):
    saves, now = [], [0.0]
    monkeypatch.setattr(Results, "save", lambda self, path: saves.append(now[0]))
    monkeypatch.setattr(local_runs, "SECONDS", -1.0)
    monkeypatch.setattr(growing_results, "monotonic", lambda: now[0])
    # each chunk takes four seconds of this clock
    before_chunks(monkeypatch, lambda number: now.__setitem__(0, 4.0 * number))
    play(out, runs=100, budgets=60)
    assert saves == [16, 32, 40]


MISMATCHES = [
    ({"problem": "paper-b:sigma=0.1"}, "problem is 'paper-b:sigma=0.1' in one and 'paper-a:sigma"),
    ({"problem": "paper-a:sigma=0.2"}, "paper-a:sigma=0.2"),
    ({"seed": 3}, "this simulation with .*results.json: seed is 3 in one and 0 in the other"),
    ({"horizon": 70}, "r-sr at budget 60 with .*: horizon is 70 in one and 60 in the other"),
    ({"method": "sums"}, "method is 'sums' in one and 'pulls' in the other"),
]


@pytest.mark.parametrize(("other", "words"), MISMATCHES, ids=[w for _, w in MISMATCHES])
def test_another_simulation_is_refused_and_the_file_untouched(other, words, out, played):
    play(out, runs=5)
    before, made = out.read_bytes(), len(played)
    with pytest.raises(ResultsError, match=words):
        play(out, **other)
    assert out.read_bytes() == before
    assert len(played) == made


def test_by_sums_policies_stay_together(out):
    play(out, method="sums", runs=5)
    before = out.read_bytes()
    with pytest.raises(ResultsError, match=r"has r-sr, sh at budget 60 by sums, but .* r-sr\. By"):
        play(out, method="sums", policies="r-sr")
    assert out.read_bytes() == before
    play(out, method="sums", policies="rr")  # never met them


def test_a_foreign_file_and_a_place_that_is_none_are_refused_before_any_work(out, played):
    with pytest.raises(ResultsError, match=r"There is no file .*results.json.* `Results.save` or"):
        Results.load(out)
    out.write_text("my thesis")
    with pytest.raises(ResultsError, match="is not a results file"):
        play(out)
    assert out.read_text() == "my thesis"
    with pytest.raises(OutputError, match=r"there is no folder .*nowhere. Make it"):
        play(out.parent / "nowhere" / "results.json")
    assert not played
