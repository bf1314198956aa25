"""Results: rows, files, merging and comparing."""

import csv
import gzip
import json
import sys
from itertools import pairwise

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latebloomer
from latebloomer import UCBE, Results, RisingSR, RisingUCBE, SuccessiveHalving, SuccessiveRejects
from latebloomer.errors import MissingExtra, OutputError, ResultsError, SettingError, UnknownName
from latebloomer.policies.registry import REGISTRY, label_of, make_policy, title
from latebloomer.problems import Problem, paper_a
from tests.helpers.simulations import quiet, results_of, tally_of

POLICIES = {"sh": SuccessiveHalving(), "r-sr": RisingSR(), "sr": SuccessiveRejects()}
BUDGETS = (100, 400)
RUNS = 60
PROBLEM = paper_a()


def game(budget):
    """What all runs at a budget did, the same in every test; any will do."""
    rng = np.random.default_rng(budget)
    recommended = rng.integers(0, 2, (len(POLICIES), RUNS))
    arms, runs = PROBLEM.arms, (len(POLICIES), RUNS)
    return recommended, 1 + rng.multinomial(budget - arms, np.ones(arms) / arms, runs)


def results(first=0, last=RUNS, labels=tuple(POLICIES), budgets=BUDGETS, **settings):
    """Results of some of the runs, policies and budgets."""
    tallies = []
    for budget in budgets:
        rows = [list(POLICIES).index(label) for label in labels]
        recommended, pulls = (table[rows, first:last] for table in game(budget))
        chosen = {label: POLICIES[label] for label in labels}
        tallies.append(tally_of(chosen, PROBLEM.means(budget), budget))
        tallies[-1].add(np.int64(first), recommended, pulls)  # as an engine may have it
    return results_of(settings.get("problem", PROBLEM), tallies, settings.get("seed", 0))


def saved(found):
    return json.dumps(found.as_document())


def test_a_row_says_all_of_a_policy_at_a_budget():
    row, *others = results().rows()
    keys = [(one["policy"], one["budget"]) for one in (row, *others)]
    assert keys == [(label, budget) for label in ("r-sr", "sr", "sh") for budget in BUDGETS]
    names = "policy budget runs error error_low error_high regret regret_low regret_high"
    assert " ".join(row).startswith(names)
    assert row["runs"] == RUNS
    recommended, pulls = (table[1] for table in game(100))
    wrong = recommended != PROBLEM.best(100)
    assert row["errors"] == wrong.sum() and row["error"] == wrong.mean()
    assert row["error_low"] < row["error"] < row["error_high"]
    means, n = PROBLEM.means(100), pulls[np.arange(RUNS), recommended]
    regrets = means[:, -1].max() - means[recommended, n - 1]
    assert row["regret"] == pytest.approx(regrets.mean(), rel=1e-10)
    half = 2.0010 * regrets.std(ddof=1) / np.sqrt(RUNS)  # t of 59 degrees of freedom
    assert row["regret_high"] - row["regret"] == pytest.approx(half, rel=1e-4)
    assert row["pulls"] == pytest.approx(pulls.mean(axis=0))
    missed = PROBLEM.means(100).sum(axis=1).max() - [
        sum(means[arm, :n].sum() for arm, n in enumerate(some)) for some in pulls
    ]  # all arms rise: the best sequence pulls one arm
    assert row["learning_regret"] == pytest.approx(missed.mean(), rel=1e-10)
    wide = row["learning_regret_high"] - row["learning_regret"]
    assert wide == pytest.approx(2.0010 * missed.std(ddof=1) / np.sqrt(RUNS), rel=1e-4)
    assert row["recommendations"] == np.bincount(recommended, minlength=5).tolist()
    assert row["problem"] == "paper-a" and row["noise"] == "Gaussian(sd=0.01)"
    assert row["settings"] == repr(RisingSR()) and row["run_ranges"] == [[0, RUNS]]
    assert row["seed"] == 0 and row["version"] == latebloomer.__version__


def test_a_share_of_runs_is_taken_as_it_is_written():
    """0.07 of 100 runs are seven, though the float 0.07 times 100 is above 7."""
    found = quiet("paper-a:sigma=0.2", "r-ucbe:noise=0.2,exploration=1", 400, 100)
    (cell,) = found.cells
    ranked = [sorted(counts.elements()) for counts in cell.pulls]
    above = [k for k in range(1, 100) if k / 100 * 100 > k]
    for k in above:
        expected = [runs[k - 1] for runs in ranked]
        assert found.quantiles(cell.policy, 400, k / 100) == expected
    assert any(runs[k - 1] < runs[k] for runs in ranked for k in above)


def test_arms_that_differ_by_rounding_alone_are_both_right():
    means = np.tile([[0.3], [0.1 + 0.2], [0.2]], 90)
    assert means[0, 0] != means[1, 0]
    (cell,) = quiet(Problem(means, noise=0.05), "rr", 90, 200).cells
    assert min(cell.recommendations[:2]) > 20
    assert cell.errors == cell.recommendations[2]


def test_quantiles_of_pulls_are_exact():
    pulls = game(400)[1][0]
    found = results().quantiles("sh", 400, [0.1, 0.5])
    assert found == np.quantile(pulls, [0.1, 0.5], axis=0, method="inverted_cdf").tolist()
    assert results().quantiles("sh", 400, 0.5) == found[1]
    with pytest.raises(SettingError, match=r"q=2.0, but q must be in \[0, 1\]"):
        results().quantiles("sh", 400, 2)


def test_one_run_has_no_interval_of_regret_and_is_json_all_the_same():
    found = json.loads(results(0, 1).to_json())
    assert found["rows"] == results(0, 1).rows() and found["seed"] == 0
    assert found["rows"][0]["regret_low"] is None and found["rows"][0]["runs"] == 1
    assert found["version"] == latebloomer.__version__
    assert "[-, -]" in str(results(0, 1))
    lines = str(results()).splitlines()
    assert lines[0] == "paper-a, 5 arms, Gaussian(sd=0.01), seed 0" and len(lines) == 2 + 6
    assert lines[1].index("runs") + 4 == lines[2].index(" 60") + 3 and lines[2].startswith("r-sr ")


def test_without_runs_nothing_is_added_and_what_is_unknown_brings_what_there_is():
    found = results_of(PROBLEM, [tally_of(POLICIES, PROBLEM.means(100), 100)])
    assert found.rows() == [] and found + results() == results()
    assert json.loads(found.to_json())["rows"] == []
    with pytest.raises(UnknownName, match="policy in these results is called 'r-ucbe'"):
        results().cell("r-ucbe", 100)
    with pytest.raises(ResultsError, match="no runs of r-sr at budget 7, but at 100, 400"):
        results().cell(RisingSR(), 7)


def test_a_label_is_what_make_policy_reads_and_tells_policies_apart():
    for policy in (
        RisingSR(window=0.1),
        RisingUCBE(exploration=100.0, noise=0.01),
        RisingUCBE(exploration=1e-7, recommend="bound"),
        RisingUCBE(exploration=1e300),
        SuccessiveHalving(judge="window", window=0.5),
        *(cls() for cls in REGISTRY.values()),
    ):
        assert make_policy(label_of(policy)) == policy
    assert label_of(RisingUCBE(exploration=1)) == label_of(RisingUCBE(exploration=1.0))
    assert label_of(RisingUCBE(exploration=1)) != label_of(RisingUCBE(exploration=2))
    assert label_of(UCBE(gaps=(0, 0.5))) == "ucb-e:gaps=0/0.5"
    assert title("r-ucbe:noise=0.01") == "R-UCBE (noise=0.01)" and title("Mine") == "Mine"


@given(st.sets(st.integers(1, RUNS - 1), max_size=4), st.randoms(use_true_random=False))
def test_any_split_merged_in_any_order_is_equal_to_the_byte(cuts, random):
    edges = [0, *sorted(cuts), RUNS]
    parts = [results(a, b, budgets=(budget,)) for a, b in pairwise(edges) for budget in BUDGETS]
    random.shuffle(parts)
    while len(parts) > 1:  # as a tree, not only from left to right
        parts.append(parts.pop(0) + parts.pop(random.randrange(len(parts))))
    assert saved(parts[0]) == saved(results())


def test_a_pair_counts_only_the_runs_that_both_played():
    found = results(0, 20) + results(20, 50, labels=("sh",)) + results(50, 60)
    assert found.cell("sh", 100).ranges == ((0, 60),)
    assert found.cell("r-sr", 100).ranges == ((0, 20), (50, 60))
    apart = results(0, 20) + results(50, 60)
    assert found.compare("sh", "r-sr") == apart.compare("sh", "r-sr")
    assert found.compare("sh", "r-sr").rows[0]["runs"] == 30


def test_a_run_that_is_in_both_is_refused():
    with pytest.raises(ResultsError, match="r-sr at budget 100: both have the runs 5 to 9"):
        results(0, 10) + results(5, 15)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "seed is 0 in one and 1 in the other"),
        ({"problem": Problem(PROBLEM.curves, 0.5, label="paper-a")}, "noise is 'Gaussian"),
        ({"problem": Problem(PROBLEM.curves, 0.01, label="mine")}, "problem is 'paper-a'"),
        ({"problem": Problem(PROBLEM.means(9), 0.01, label="paper-a")}, "opening is"),
        ({"problem": Problem(PROBLEM.curves, 0.01, list("abcde"), "paper-a")}, "arms is"),
    ],
)
def test_results_of_another_origin_are_refused(other, message):
    with pytest.raises(ResultsError, match=f"Cannot merge results: {message}"):
        results(0, 10).merge(results(10, 20, **other))


def test_a_label_that_means_something_else_is_refused():
    tally = tally_of({"r-sr": RisingSR(window=0.5)}, PROBLEM.means(100), 100)
    tally.add(RUNS, *(table[:1] for table in game(100)))
    with pytest.raises(ResultsError, match=r"r-sr at budget 100: settings is .RisingSR\(window"):
        results() + results_of(PROBLEM, [tally])


def test_versions_and_targets_are_kept_side_by_side():
    tally = tally_of(POLICIES, PROBLEM.means(100), 100)
    tally.add(RUNS, *game(100))
    both = results_of(PROBLEM, [tally], target="gpu") + results()
    assert both.targets == ("cpu", "gpu") and both.rows()[0]["target"] == "cpu+gpu"


def test_a_comparison_counts_the_runs_in_which_one_alone_errs():
    recommended = game(400)[0]
    sh, rising = (recommended[:2] != PROBLEM.best(400)).astype(int)
    row = results().compare("sh", "r-sr", budget=400).rows[0]
    assert row["only_first_errs"] == ((sh == 1) & (rising == 0)).sum()
    assert row["only_second_errs"] == ((sh == 0) & (rising == 1)).sum()
    assert row["error_difference"] == pytest.approx(sh.mean() - rising.mean())
    assert row["error_difference_low"] < row["error_difference"] < row["error_difference_high"]
    assert 0 < row["p"] <= 1
    back = results().compare(RisingSR(), "sh", budget=400).rows[0]
    assert back["p"] == row["p"] and back["error_difference"] == -row["error_difference"]
    assert back["regret_difference_low"] == -row["regret_difference_high"]
    regrets = [results().cell(label, 400).regret().value for label in ("sh", "r-sr")]
    assert row["regret_difference"] == pytest.approx(regrets[0] - regrets[1], abs=1e-12)
    lines = str(results().compare("sh", "r-sr")).splitlines()
    assert lines[0] == "sh minus r-sr, the same runs" and len(lines) == 4
    assert lines[1].split()[0] == "budget"


def test_policies_that_did_not_meet_are_not_compared():
    found = results(labels=("sh",)) + results(labels=("r-sr",))
    with pytest.raises(ResultsError, match=r"sh and r-sr were not simulated .* at any budget"):
        found.compare("sh", "r-sr")
    with pytest.raises(ResultsError, match=r"at budget 7\. Simulate them in one call"):
        results().compare("sh", "r-sr", budget=7)
    with pytest.raises(SettingError, match="another policy than the first"):
        results().compare("sh", SuccessiveHalving())


@pytest.mark.parametrize("name", ["results.json", "results.json.gz"])
def test_what_is_saved_is_loaded(tmp_path, name):
    path = tmp_path / name
    found = results(0, 20) + results(40, 60)
    found.save(path)
    loaded = Results.load(path)
    assert loaded == found and saved(loaded) == saved(found)
    assert loaded.rows() == found.rows() and str(loaded) == str(found)
    bytes_before = path.read_bytes()
    loaded.save(str(path))
    assert path.read_bytes() == bytes_before
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("form", ["save", "to_csv", "to_parquet"])
def test_a_full_disk_leaves_every_kind_of_file(tmp_path, monkeypatch, form):
    file = tmp_path / "results"
    file.write_text("good")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OutputError, match=r"No space.*Existing files are unchanged. Make room"):
        getattr(results(), form)(file)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["good"]


def broken(**changes):
    return json.dumps({**json.loads(saved(results())), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a results file"),
        (b"\x00\xff", "is not a results file"),
        (b"\x1f\x8b broken", "is not a results file"),
        (gzip.compress(b"{}", mtime=0)[:-5], "is not a results file"),
        (b"[1, 2]", "is not a results file"),
        (b'{"format": "other"}', "`Results.save` did not write it"),
        (broken(edition=1), "has edition 1 of the results format, but this version reads 2"),
        (broken(cells=[{"policy": "r-sr"}]), "is damaged"),
        (broken(origin=3), "is damaged"),
        (saved(results()).replace('"recommendations": [', '"recommendations": [1', 1).encode(),
         "is damaged: .* counts of r-sr at budget 100 do not add up"),
    ],
)  # fmt: skip
def test_a_foreign_or_damaged_file_is_named(tmp_path, data, message):
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(ResultsError, match=f"file.json.*{message}"):
        Results.load(path)


def test_csv_parquet_and_pandas_hold_the_same_rows(tmp_path):
    found = results()
    found.to_csv(tmp_path / "rows.csv")
    found.to_parquet(tmp_path / "rows.parquet")
    frame = found.to_frame()
    assert frame.to_dict("records") == found.rows()
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist() == found.rows()
    with open(tmp_path / "rows.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == list(frame.columns)
    assert [float(row["error"]) for row in read] == frame["error"].tolist()
    assert [json.loads(row["pulls"]) for row in read] == frame["pulls"].tolist()


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("pandas", lambda found: found.to_frame()),
        ("pyarrow", lambda found: found.to_parquet("x")),
        ("matplotlib.pyplot", lambda found: found.plot()),
    ],
)
def test_what_is_not_installed_is_named(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install .*\["):
        call(results())


def test_rows_stand_in_the_order_that_was_asked_for_and_pulls_are_printed():
    asked = ["sh", "rr", "r-sr"]
    found = quiet("paper-a", asked, [50, 100], 10)
    assert found.policies == asked
    assert [(row["policy"], row["budget"]) for row in found.rows()] == [
        (label, budget) for label in asked for budget in (50, 100)
    ]
    assert quiet("paper-a", asked[::-1], [50, 100], 10).as_document() == found.as_document()
    assert "20 20 20 20 20" in str(found).splitlines()[5]  # rr at 100


def test_a_label_shows_gaps_in_four_digits():
    gaps = tuple(paper_a().gaps(500).tolist())
    assert label_of(UCBE(gaps=gaps)) == "ucb-e:gaps=0/0.06835/0.1527/0.2448/0.4503"


def test_the_success_rate_is_the_share_of_budgets_with_the_best_arm():
    # Arm "late" is best from pull 5 on; round robin (K = 2) recommends the larger mean of all.
    curves = np.array([[0.1, 0.2, 0.3, 0.4, 0.6, 0.9, 0.9, 0.9], [0.5] * 8])
    found = quiet(Problem(curves, names=["late", "flat"]), ["rr-sw", "rr"], [4, 8], 1)
    last, all_of_them = found.success_rate().rows
    assert (last.recommended, last.right, last.value) == (("flat", "flat"), (1.0, 0.0), 0.5)
    assert all_of_them.budgets == (4, 8)
    shown = str(found.success_rate()).splitlines()
    assert shown[1].split() == ["rr-sw", "flat", "flat", "(wrong)", "0.5"]
    noisy = quiet(Problem(curves, noise=0.3), "rr-sw", [8], 40)
    (row,) = noisy.success_rate().rows
    assert row.value == 1 - noisy.cells[0].errors / 40
    assert f"({row.value:.0%} right)" in str(noisy.success_rate())
