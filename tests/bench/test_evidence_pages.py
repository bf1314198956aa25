"""Pages of evidence show what the stored files have; other libraries are used as intended."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from measurements import other_libraries

    return other_libraries


@pytest.fixture
def pages(comparison, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "tools"))
    import evidence_pages

    return evidence_pages


@pytest.fixture
def case(comparison):
    def make(rewards, steps=None, scores=None):
        steps = np.ones_like(rewards) if steps is None else steps
        scores = np.zeros_like(rewards) if scores is None else scores
        return comparison.Case(rewards, steps, scores, "pulls")

    return make


# --- the pages ---


def test_the_generated_parts_of_the_pages_are_made_of_the_stored_files(pages):
    for page, blocks in pages.BLOCKS.items():
        text = page.read_text(encoding="utf-8")
        assert pages.filled(page) == text, f"run docs/tools/evidence_pages.py: {page.name}"
        assert set(re.findall("<!-- made: (.*) -->", text)) == set(blocks)


@pytest.mark.parametrize("what", ["tables", "public"])
def test_the_file_has_every_method_set_unit_and_budget_once(comparison, what):
    table = comparison.recorded(what)
    units = ("seconds", "pulls") if what == "tables" else ("pulls",)
    groups = comparison.SETS if what == "tables" else comparison.PUBLIC
    places = [(row["player"], row["set"], row["unit"], row["budget"]) for row in table]
    assert sorted(places) == sorted(
        (player, group, unit, str(budget))
        for player in comparison.PLAYERS
        for group in groups
        for unit in units
        for budget in (*comparison.BUDGETS[unit], "all")
    )


def test_readme_says_what_the_files_say_with_the_caveat_in_the_cell(pages):
    """Ranges over the ways in which a library suits the task: side by side, or tuned."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = (
        line for line in readme.splitlines() if "range of test scores that the selected" in line
    )
    what, *cells = (cell.replace("*", "").strip() for cell in line.strip("|").split("|"))
    for caveat in ("no rule was designed", "26 of them were opened once before", "tuned"):
        assert caveat in what
    ours, *others = ([name] for name in (pages.BEST, *pages.LIBRARIES))
    players = [ours, *(pages.fair(library) for (library,) in others)]
    for cell, names in zip(cells, players, strict=True):
        assert cell == pages.ends([pages.pooled(name, "regret").mean for name in names])
    best = min((name for names in players[1:] for name in names),
               key=lambda name: pages.pooled(name, "regret").mean)  # fmt: skip
    assert pages.plus(pages.pooled(best, "regret")).lstrip("+") in readme


def by_seed(method):
    """Seconds and test accuracies of a method of the first example, each a mean for each seed."""
    path = ROOT / "docs" / "results" / "first-example.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == method]
    found = {}
    for row in rows:
        numbers = float(row["seconds"]), float(row["test_accuracy"])
        found.setdefault(row["seed"], []).append((*numbers, row["kept"] != row["half_time"]))
    return np.array([np.mean(runs, axis=0) for runs in found.values()]).T


def test_readme_and_home_page_have_the_numbers_of_the_first_example():
    (seconds, accuracy, late), (whole, _, _) = map(by_seed, ("race", "training all"))

    def ahead(method):
        gaps = accuracy - by_seed(method)[1]
        return [f"{number:.4f}"[-5:] for number in (abs(gaps.mean()), gaps.std(ddof=1) / 20**0.5)]

    halving = by_seed("successive halving")[0]
    share, most, less = (seconds / whole).mean(), (seconds / whole).max(), (halving / whole).mean()
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for said in (
        f"takes {seconds.mean():.1f} s of processor time", f"takes {whole.mean():.1f} s",
        f"{share:.2f} times as much on average, {most:.2f} times at worst".replace("0.", "."),
        f"is {' ± '.join(ahead('training all'))} lower than after training all",
        f"{' ± '.join(ahead('random subset'))} higher than after training a random subset",
        f"{' ± '.join(ahead('successive halving'))}, for {less:.2f} times".replace("0.", "."),
        f"In {late.sum():.0f} races the winner did not lead at half-time",
    ):  # fmt: skip
        assert said in readme, said
    home = " ".join((ROOT / "docs" / "index.md").read_text(encoding="utf-8").split())
    assert f"takes {share:.2f} of the processor time".replace("0.", ".") in home
    assert f"is {' ± '.join(ahead('training all'))} lower (20 seeds)" in home


def test_pooled_differences_are_of_both_sets_of_problems(pages, monkeypatch):
    rows = [
        {"player": "x", "set": group, "unit": "seconds", "budget": "all", "regret": mean,
         "regret_difference": more, "regret_se": error}
        for group, mean, more, error in
        (("tables-report", "0.2", "0.1", "0.03"), ("tables-fresh", "0.1", "0.0", "0.04"))
    ]  # fmt: skip
    monkeypatch.setattr(pages, "recorded", lambda what: rows)
    assert pages.pooled("x", "regret") == pytest.approx((0.15, 0.05, 0.025))


# --- the methods ---


def test_differences_of_a_file_are_paired_over_problems(comparison):
    found = [
        {"player": player, "set": "s", "problem": str(k), "unit": "seconds", "budget": budget,
         "spent": 1.0, "microseconds": 1.0, **dict.fromkeys(comparison.MEASURES, loss)}
        for player, losses in ((comparison.BEST, (0.1, 0.1, 0.4)), ("other", (0.3, 0.2, 0.4)))
        for k, loss in enumerate(losses) for budget in (1, 2)
    ]  # fmt: skip
    rows = {(row["player"], row["budget"]): row for row in comparison.summed(found)}
    row = rows["other", "all"]
    gaps = np.array([0.2, 0.1, 0.0])
    assert float(row["regret"]) == pytest.approx(0.3)
    assert float(row["regret_difference"]) == pytest.approx(gaps.mean())
    assert float(row["regret_se"]) == pytest.approx(gaps.std(ddof=1) / 3**0.5, abs=1e-4)
    assert row["problems"] == 3 and set(rows) == {
        (player, budget) for player in (comparison.BEST, "other") for budget in ("1", "2", "all")
    }


def test_a_pruner_is_stopped_when_the_budget_is_spent(comparison, case, rng):
    none = comparison.pruned(comparison.keep_all, together=True)
    played = none(case(rng.random((3, 10))), 20)
    assert played.spent == played.decisions == 20
    at_once = comparison.pruned(lambda *_: lambda arm, n, score: True, together=False)
    assert at_once(case(rng.random((3, 10))), 20).spent == 3
    # With steps of 2 and scores of 1, six pulls cost 18, and 18 is nearer to 19 than 21 is.
    rewards = rng.random((3, 10))
    timed = none(case(rewards, 2 * np.ones_like(rewards), np.ones_like(rewards)), 19)
    assert (timed.spent, timed.decisions) == (18, 6)


def test_a_search_in_full_scores_each_arm_once(comparison, case):
    rewards = np.array([[0.1, 0.9], [0.2, 0.95], [0.3, 0.99]])
    timed = case(rewards, 2 * np.ones_like(rewards), np.ones_like(rewards))
    played = comparison.in_full(timed, 10)  # an arm costs 2 + 2 + 1
    assert played == (1, 2, 10, 2)
    assert comparison.in_full(timed, 1).spent == 5  # the first in any case
    assert comparison.all_in_full(timed, 1).pick == 2


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


def test_brackets_of_hyperband_are_the_same_whenever_it_is_played(comparison, case, rng):
    pytest.importorskip("optuna")
    play = comparison.PLAYERS["Optuna Hyperband, side by side"]
    rewards = rng.random((12, 30)).cumsum(axis=1)
    assert play(case(rewards), 90) == play(case(rewards), 90)


def test_scikit_learns_halving_has_fewer_arms_if_its_rungs_cost_too_much(comparison, case, rng):
    pytest.importorskip("sklearn")
    rewards = rng.random((28, 60))
    sizes = comparison.rung_sizes(28)
    assert sizes == [28, 10, 4, 2]  # 28 + 3 * 10 + 9 * 4 + 27 * 2 = 148 pulls at least
    halving = comparison.halving(3)
    played = comparison.play_some(halving, case(rewards), 60)
    assert 0 < played.spent <= 60
    assert comparison.play_some(halving, case(rewards), 300).spent == 2 * 148


def test_scikit_learns_halving_is_charged_whole_trainings_and_a_score_at_each_rung(
    comparison, case, rng
):
    pytest.importorskip("sklearn")
    rewards = rng.random((3, 3))
    timed = case(rewards, np.full((3, 3), 2.0), np.full((3, 3), 0.5))
    played = comparison.halving(3)(timed, 100)
    # Three arms for one step, then one from scratch for three: 3 * 2.5 + 3 * 2 + .5
    assert played.spent == pytest.approx(14.0) and played.trained == 3
    assert played.pick == int(np.argmax(rewards[:, 0]))


def test_recorded_tables_are_played_by_split_with_their_seconds(comparison):
    problems = comparison.read_sets([comparison.DESIGN])[0][:1]
    some = {name: comparison.PLAYERS[name] for name in (comparison.BEST, "one at random")}
    found = list(comparison.rows(problems, some, ["seconds"]))
    assert [(row["player"], row["budget"]) for row in found] == [
        (name, budget) for name in some for budget in (1, 2, 4)
    ]
    for row in found:
        assert row["set"] == comparison.DESIGN and 0 <= row["rank_loss"] < 1
        assert row["spent"] <= 1.05
