"""The comparison in the same CPU seconds: its clocks, and what the page says of its file."""

import subprocess
import sys

import pytest

from tests.helpers.repository import ROOT


@pytest.fixture
def section(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "tools"))
    import equal_cpu_section

    return equal_cpu_section


def test_every_clock_counts_the_seconds_of_the_process():
    code = """if True:
        from measurements import equal_cpu
        import time
        used = 3
        equal_cpu.cpu_seconds = lambda: used
        equal_cpu.count_cpu_only()
        clocks = time.time, time.monotonic, time.perf_counter
        before = [clock() for clock in clocks]
        used = 7
        print([round(clock() - was) for clock, was in zip(clocks, before)])
    """
    asked = [sys.executable, "-c", code]
    assert subprocess.check_output(asked, cwd=ROOT, text=True).strip() == "[4, 4, 4]"


def test_each_method_was_run_on_every_table_with_the_same_first_seeds(section):
    from measurements.equal_cpu import METHODS, TABLES

    scores = section.values("score")
    assert set(scores) == {*METHODS, "race with ensemble"}
    for found in scores.values():
        for name in TABLES:
            seeds = sorted(int(seed) for table, seed in found if table == name)
            assert seeds == list(range(len(seeds))) != []


def test_a_lead_is_paired_and_needs_two_standard_errors(section, monkeypatch):
    scores = {"a": {("t", "0"): 0.5, ("t", "1"): 0.7}, "b": {("t", "0"): 0.4, ("t", "1"): 0.5}}
    monkeypatch.setattr(section, "values", lambda what: scores)
    lead = section.lead("a", "b")
    assert (lead.mean, lead.error) == pytest.approx((0.15, 0.05))
    assert lead.verdict == "ahead of"
    assert section.lead("b", "a").verdict == "behind"
    assert lead.better == "2 of 2"
    scores["b"]["t", "1"] = 0.65
    assert section.lead("a", "b").verdict == "ahead of"  # .075 ± .025
    scores["b"]["t", "1"] = 0.72
    assert section.lead("a", "b").verdict == "level with"
