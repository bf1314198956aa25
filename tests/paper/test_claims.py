"""Claims of the paper: decided by intervals, with more runs where these leave them open."""

from functools import partial

import pytest

from latebloomer.core.statistics import share
from latebloomer.paper import evidence, experiments, verdicts
from latebloomer.paper.claims import CLAIMS
from latebloomer.paper.conventions import CONVENTIONS
from latebloomer.paper.evidence import Claim, Evidence, Finding, Passage, measured
from latebloomer.paper.experiments import ALGORITHMS, BUDGETS, ESTIMATE, IMDB, SETTING_A, SETTING_B
from latebloomer.paper.reproduction import FIGURES, chosen
from latebloomer.paper.workbench import Row, Workbench, read_rows, write_rows
from latebloomer.policies.rising_ucbe import RisingUCBE
from latebloomer.theory import (
    NoExploration,
    exploration_limit_polynomial,
    h1,
    theory_exploration,
)
from tests.helpers.paper_rows import row
from tests.helpers.repository import ROOT


def test_every_claim_belongs_to_a_figure_and_says_what_decides_it():
    assert len(CLAIMS) == 34
    for claim in CLAIMS:
        assert claim.passage.figure in {figure.name for figure in FIGURES}
        assert claim.sentence.endswith(".") and claim.decided_by
    with pytest.raises(TypeError, match="may be open"):  # `if` would take it for a yes
        bool(measured(row()) < 0.5)


def claim_on(words: str) -> Claim:
    """The claim whose sentence has these words."""
    (found,) = (claim for claim in CLAIMS if words in claim.sentence)
    return found


def share_row(wrong: int, runs: int, **changed) -> Row:
    """A row with so many wrong runs, and Wilson's interval."""
    found = share(wrong, runs)
    ends = dict(error=found.value, error_low=found.low, error_high=found.high)
    return row(runs=runs, **(ends | changed))


ABOVE_A_FIFTH = Claim(
    Passage([], "setting-a", "", SETTING_A), "It errs in more than a fifth of runs.", "",
    lambda rows: Evidence(measured(rows[0]) > 0.2, f"{measured(rows[0])}"),
)  # fmt: skip


@pytest.fixture
def repeat():
    """What is repeated: (algorithm, runs); 22.42 % of the runs are wrong, of Prob-1 none."""
    found = []

    def more(setting, rows, runs):
        found.extend((one.algorithm, runs) for one in rows)
        wrong = {row.algorithm: 0.2242 * (row.algorithm != "Prob-1") * runs for row in rows}
        return [share_row(round(wrong[name]), runs, algorithm=name) for name in wrong]

    more.asked = found
    return more


def test_a_claim_that_the_interval_leaves_open_gets_more_runs(repeat, tmp_path):
    """20 wrong of 100 says nothing of .2, nor 224 of 1000 [.199, .251]; 2242 of 10,000 does."""
    workbench = Workbench(tmp_path, shown=False)
    found = verdicts.decide(workbench, [share_row(20, 100)], repeat, ABOVE_A_FIFTH)
    assert found.finding.holds is True and repeat.asked == [("RR", 1000), ("RR", 10_000)]
    assert found.finding.runs() == "10,000 runs" and found.numbers == ".224 [.216, .232]"


def test_what_is_not_random_is_not_repeated(repeat, tmp_path):
    """A row without an interval, of one run, stays unchanged next to one that is drawn."""
    exact = row(algorithm="R-SR", error=0.02, error_low=0.02, error_high=0.02, runs=1)
    claim = Claim(
        Passage([], "imdb", "", IMDB), "Prob-1 errs less than R-SR.", "",
        lambda rows: Evidence(measured(rows[1]) < measured(rows[0]), ""),
    )  # fmt: skip
    rows = [exact, share_row(0, 100, algorithm="Prob-1")]
    found = verdicts.decide(Workbench(tmp_path, shown=False), rows, repeat, claim)
    assert found.finding.holds is True and repeat.asked == [("Prob-1", 1000)]


@pytest.mark.parametrize("limit", ["MOST_RUNS", "MOST_PULLS"])
def test_a_claim_stays_open_if_the_limits_do_not_decide_it(monkeypatch, tmp_path, limit):
    monkeypatch.setattr(verdicts, limit, 100)
    workbench, first = Workbench(tmp_path, shown=False), [share_row(20, 100, algorithm="R-UCBE")]
    found = verdicts.decide(workbench, first, lambda *asked: first, ABOVE_A_FIFTH)
    assert found.finding.holds is None and found.finding.rows == tuple(first)


@pytest.mark.slow  # compiles ten policies
def test_a_claim_that_100_runs_cannot_decide_holds_with_more_and_our_recommendation(tmp_path):
    """R-UCBE (estimate) at T = 100 errs in .2242 [.216, .232] of 10,000 runs, more than .2."""
    workbench = Workbench(tmp_path, runs=100, jobs=2, shown=False)
    names = (*ALGORITHMS, ESTIMATE)
    rows = experiments.with_our_recommendation(
        [
            found
            for budget in (100, 150)
            for found in experiments.play(workbench, SETTING_A, names, 100, budget)
        ]
    )
    claim = claim_on("large errors")
    assert claim.check(rows).finding.holds is None
    found = verdicts.decide(workbench, rows, partial(verdicts._more_ours, workbench), claim)
    assert found.finding.holds is True and found.finding.runs() == "100 to 10,000 runs"
    assert ".224 [.216, .232] (R-UCBE, T = 100)" in found.numbers


def test_a_sentence_about_several_budgets_is_read_by_means_and_strictly_next_to_it():
    """R-SR has the smallest mean of all, and the smallest regret at 6 budgets of 22."""
    rows = []
    for place, budget in enumerate(BUDGETS):
        for name in ALGORITHMS:
            ahead = 0.0 if place < 6 else 0.11
            regret = ahead if name == "R-SR" else 0.9 if place < 6 else 0.1
            rows.append(row(algorithm=name, T=budget, regret=regret, regret_low=regret,
                            regret_high=regret))  # fmt: skip
    assert next(iter(evidence.means(rows, "regret"))) == "R-SR"
    found = claim_on("In simple regret").check(rows)
    assert found.finding.holds is True and "at 6 of 22" in found.numbers
    assert found.strictly.holds is False
    assert claim_on("error < 0.05").check(rows).strictly is None  # it states a limit
    rows = [row(T=t, error=e) for t, e in ((1, 0.0), (2, 0.3), (3, 0.01), (4, 0.0))]
    assert evidence.settles(rows, "RR", 0.05) == 3  # from where its error stays below
    assert evidence.settles(rows[:2], "RR", 0.05) is None
    beta = claim_on("largest value of beta").check([])  # of setting A is not the paper's
    assert beta.finding.holds is False and beta.numbers == "it is 1.351"


@pytest.mark.parametrize(
    ("wrong", "holds"),
    [((1000,), False), ((2400,), False), ((1000, 1200), False), ((1200, 2400), True)],
)
def test_rest_sure_is_unreliable_only_if_more_than_one_large_budget_is_wrong(wrong, holds):
    rows = [share_row(50 * (T in wrong), 100, algorithm="Rest-Sure", T=T) for T in BUDGETS]
    assert claim_on("does not consistently").check(rows).finding.holds is holds


def test_published_rows_are_judged_by_wilsons_interval():
    """The printed interval of 0 wrong in 100 has no width, and would decide anything."""
    (found,) = verdicts.with_wilson([row(error=0.0, error_low=0.0, error_high=0.0)])
    assert found.error_high == pytest.approx(1 - 0.05 ** (1 / 100))
    exact = row(error=0.0, error_low=0.0, error_high=0.0, runs=1)  # nothing is random
    assert verdicts.with_wilson([exact]) == [exact]


def test_as_written_is_algorithm_1_and_our_recommendation_has_a_verdict_of_its_own():
    """R-UCBE's rows are argmax B as the text says, and those of its estimate as we recommend."""
    rows = [row(algorithm=name, error=error) for name, error in (
        ("R-UCBE", 0.6), (ESTIMATE, 0.0), (experiments.THEORY, 0.7), ("RR", 1.0),
        ("R-UCBE 10", 0.5), (f"{ESTIMATE} 10", 0.1),
    )]  # fmt: skip
    written = {one.algorithm: one.error for one in experiments.as_the_text_says(rows)}
    assert written == {"R-UCBE": 0.6, "RR": 1.0, "R-UCBE 10": 0.5}
    ours = {one.algorithm: one.error for one in experiments.with_our_recommendation(rows)}
    assert ours == {"R-UCBE": 0.0, "RR": 1.0, "R-UCBE 10": 0.1}
    policies = experiments.as_written_policies(0.01, 3.0)
    assert [*policies] == [*ALGORITHMS, ESTIMATE]
    assert policies["R-UCBE"] == RisingUCBE(exploration=3.0, noise=0.01, recommend="bound")
    assert policies[ESTIMATE] == RisingUCBE(exploration=3.0, noise=0.01, recommend="estimate")


def test_missing_data_leave_the_earlier_verdicts_in_the_file(monkeypatch, tmp_path):
    """`reproduce imdb` without its data must not delete what was decided with them."""
    workbench = Workbench(tmp_path, shown=False)
    found = [Evidence(Finding(True), "numbers")] * 3
    before = [verdicts.result_of(claim_on("third best"), *found)]
    write_rows(tmp_path / "claims.csv", before)
    monkeypatch.delenv("LATEBLOOMER_DATA", raising=False)
    experiments._recorded.cache_clear()
    assert verdicts.decide_claims(workbench, chosen(["imdb"])) == before
    assert read_rows(tmp_path / "claims.csv", verdicts.ClaimResult) == before


def test_values_of_a_mode_that_the_table_states():
    """The a of each mode at T = 3200, and R-UCBE's recommendation."""
    text = " ".join(cell for line in CONVENTIONS for cell in line)
    for setting in (SETTING_A, SETTING_B):
        a = setting.exploration(3200)
        assert f"{a:.1f}" in text
        arms = setting.problem().arms
        assert f"{theory_exploration(arms, 3200, 0.05):.1f}" in text
        closed = (3200 ** (1 - 1 / 1.3) - (arms - 1)) / h1(setting.problem().gaps(3200), 1 / 1.3)
        bracket = closed**1.3 - 0.5**-1.3
        assert bracket < 0 and f"{0.25**3 / 4e-4 * bracket**2:.1f}" in text
        assert isinstance(
            exploration_limit_polynomial(setting.problem().gaps(3200), 3200, 0.01, 0.25, 1.3, 1.0),
            NoExploration,
        )
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for line in CONVENTIONS:
        assert "| " + " | ".join(line).replace("*", "\\*") + " |" in page


def test_the_page_counts_the_verdicts_that_the_file_has():
    docs = ROOT / "docs"
    results = read_rows(docs / "results" / "claims.csv", verdicts.ClaimResult)
    assert [one.claim for one in results] == [claim.sentence for claim in CLAIMS]
    assert all(one.where and one.decided_by for one in results)
    page = (docs / "reproduction.md").read_text()
    for view in ("as_written", "as_published", "with_our_recommendation"):
        words = [getattr(one, view) for one in results]
        holds, fails, undecided = (words.count(word) for word in ("holds", "fails", "open"))
        line = next(x for x in page.splitlines() if x.startswith(f"| **{view.replace('_', ' ')}"))
        assert line.endswith(f"| **{holds}** | {fails} | {undecided} |")
    counts = [[one.verdict for one in results].count(word) for word in verdicts.VERDICTS]
    said = " ".join(page.split())
    assert (
        "{} claims are *reproduced* (they hold as the text is written), {} hold *only as "
        "published*, {} are *not reproduced*, and {} are *undecided*".format(*counts)
    ) in said
