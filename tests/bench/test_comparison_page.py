"""docs/comparison.md shows what docs/comparison.csv has, and all players are described."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import other_libraries

    return other_libraries


def test_the_tables_of_the_page_are_made_of_the_file(comparison):
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    table = comparison.recorded()
    assert comparison.tables(table) in page
    assert comparison.lost(table) in page


def test_the_file_has_every_player_set_and_budget_once(comparison):
    places = [(row["player"], row["set"], int(row["budget"])) for row in comparison.recorded()]
    assert sorted(places) == sorted(
        (player, group, budget)
        for player in comparison.PLAYERS
        for group in comparison.SETS
        for budget in comparison.BUDGETS
    )


def test_a_pruner_is_stopped_when_the_budget_is_spent(comparison, rng):
    never = comparison.pruned(lambda arms, length: lambda arm, n, score: False, together=True)
    played = never(rng.random((3, 10)), 20)
    assert played.spent == played.decisions == 20
    at_once = comparison.pruned(lambda arms, length: lambda arm, n, score: True, together=False)
    assert at_once(rng.random((3, 10)), 20).spent == 3
