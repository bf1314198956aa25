"""docs/comparison.md shows what the stored files have; libraries are used as they should be."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import other_libraries

    return other_libraries


@pytest.fixture
def page(comparison, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "tools"))
    import comparison_page

    return comparison_page


def test_the_generated_parts_of_the_page_are_made_of_the_stored_files(page):
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.kept_blocks()) == text
    assert set(re.findall("<!-- made: (.*) -->", text)) == set(page.kept_blocks())


@pytest.mark.parametrize("problems", ["PROBLEMS", "SAMPLE"])
def test_the_file_has_every_player_set_and_budget_once(comparison, problems):
    table = comparison.recorded(getattr(comparison, problems))
    places = [(row["player"], row["set"], int(row["budget"])) for row in table]
    assert sorted(places) == sorted(
        (player, group, budget)
        for player in comparison.PLAYERS
        for group in comparison.SETS
        for budget in comparison.BUDGETS
    )


def test_readme_says_the_same_as_the_file(page, comparison):
    """Ranges over the ways in which a library was used, tuned or not."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = comparison.recorded()
    words = f"{comparison.PROBLEMS * len(comparison.SETS)} recorded problems"
    (line,) = (one for one in readme.splitlines() if words in one)
    said = [cell.replace("*", "").strip() for cell in line.split("|")[2:6]]
    for cell, library in zip(said, ("latebloomer auto", "Optuna", "Ray", "scikit"), strict=True):
        players = [one for one in comparison.PLAYERS if one.startswith(library)]
        losses = [page.mean(table, one, "rank_loss") for one in players]
        ends = [page.decimal(min(losses)), page.decimal(max(losses))]
        assert cell == " to ".join(dict.fromkeys(ends))


def test_a_sample_that_differs_from_the_stored_file_stops_the_build(page, comparison):
    kept = comparison.recorded(comparison.SAMPLE)
    assert page.check(kept, kept) == 0
    moved = [dict(row) for row in kept]
    moved[7]["rank_loss"] = str(float(moved[7]["rank_loss"]) + 0.04)  # as other versions may
    assert page.check(moved, kept) == pytest.approx(0.04)
    moved[7]["rank_loss"] = str(float(kept[7]["rank_loss"]) + 0.06)
    with pytest.raises(ValueError, match="plays all again"):
        page.check(moved, kept)
    with pytest.raises(ValueError, match="not what the sample shows"):
        page.check(kept[:-1], kept)


def test_without_the_curves_the_page_shows_the_stored_file(page, monkeypatch, tmp_path):
    monkeypatch.delenv("LATEBLOOMER_DATA", raising=False)
    assert page.played(tmp_path) is None
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("LATEBLOOMER_DATA", str(tmp_path))  # a folder without these sets
    assert page.played(tmp_path) is None
    assert "were not available" in page.built_blocks(tmp_path)["played"]()


def test_a_pruner_is_stopped_when_the_budget_is_spent(comparison, rng):
    never = comparison.pruned(comparison.keep_all, together=True)
    played = never(rng.random((3, 10)), 20)
    assert played.spent == played.decisions == 20
    at_once = comparison.pruned(lambda *_: lambda arm, n, score: True, together=False)
    assert at_once(rng.random((3, 10)), 20).spent == 3


def test_optunas_halving_prunes_once_a_trial_is_complete_and_rays_the_third_at_a_rung(comparison):
    """Only the first complete trial shows Optuna where its rungs are; before, none is pruned."""
    ray = comparison.ray_asha(20, "a run")
    stopped = [ray(arm, 1, score) for arm, score in enumerate((0.1, 0.2, 0.05))]
    assert stopped == [False, False, True]
    pytest.importorskip("optuna")
    stops = comparison.optuna_halving(20, "a study")
    assert not any(stops(0, n, 0.5) for n in range(1, 21))
    assert not stops(1, 1, 0.2)  # the first at the first rung
    assert stops(2, 1, 0.1)


def test_brackets_of_hyperband_are_the_same_whenever_it_is_played(comparison, rng):
    pytest.importorskip("optuna")
    play = comparison.PLAYERS["Optuna Hyperband, side by side"]
    rewards = rng.random((12, 30)).cumsum(axis=1)
    assert play(rewards, 90) == play(rewards, 90)


def test_scikit_learns_halving_has_fewer_arms_if_its_rungs_cost_too_much(comparison, rng):
    pytest.importorskip("sklearn")
    rewards = rng.random((28, 60))
    sizes = comparison.rung_sizes(28)
    assert sizes == [28, 10, 4, 2]  # 28 + 3 * 10 + 9 * 4 + 27 * 2 = 148 pulls at least
    played = comparison.play_some(comparison.sklearn_halving, rewards, 60)
    assert 0 < played.spent <= 60
    assert comparison.play_some(comparison.sklearn_halving, rewards, 300).spent == 2 * 148
