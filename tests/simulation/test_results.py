"""Results: rows, files, merging and comparing."""

import csv
import gzip
import json
import sys
from itertools import pairwise

import numpy as np
import pyarrow.parquet
import pytest
from counted import results_of, tally_of
from hypothesis import given
from hypothesis import strategies as st

import latebloomer
from latebloomer import UCBE, Results, RisingSR, RisingUCBE, SuccessiveHalving, SuccessiveRejects
from latebloomer.errors import MissingExtra, OutputError, ResultsError, SettingError, UnknownName
from latebloomer.policies.registry import REGISTRY, label_of, make_policy, title
from latebloomer.problems import Problem, paper_a

POLICIES = {"sh": SuccessiveHalving(), "r-sr": RisingSR(), "sr": SuccessiveRejects()}
BUDGETS = (100, 400)
RUNS = 60
PROBLEM = paper_a()


def game(budget):
    """What all runs at a budget did, the same in every test; any arms and pulls will do."""
    rng = np.random.default_rng(budget)
    recommended = rng.integers(0, 2, (len(POLICIES), RUNS))
    return recommended, rng.integers(1, budget, (len(POLICIES), RUNS, PROBLEM.arms))


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
    names = "policy budget runs error error_low error_high regret regret_low regret_high pulls"
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
    assert row["recommendations"] == np.bincount(recommended, minlength=5).tolist()
    assert row["problem"] == "paper-a" and row["noise"] == "Gaussian(sd=0.01)"
    assert row["settings"] == repr(RisingSR()) and row["run_ranges"] == [[0, RUNS]]
    assert row["seed"] == 0 and row["version"] == latebloomer.__version__


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
        (broken(edition=2), "has edition 2 of the results format, but this version reads 1"),
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
    with pytest.raises(MissingExtra, match=r"pip install 'latebloomer\["):
        call(results())
