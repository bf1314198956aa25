"""Claims of the paper: decided by intervals, with more runs where these leave them open."""

import pytest

from latebloomer.core.statistics import share
from latebloomer.paper import AS_WRITTEN, evidence, experiments, reproduction
from latebloomer.paper.claims import CLAIMS
from latebloomer.paper.evidence import Claim, Evidence, Passage, measured
from latebloomer.paper.experiments import ALGORITHMS, BUDGETS, IMDB, SETTING_A
from latebloomer.paper.reproduction import FIGURES
from latebloomer.paper.workbench import Row, Workbench


def row(**changed) -> Row:
    values = dict(
        algorithm="RR", T=100, sigma=0.01, error=0.5, error_low=0.4, error_high=0.6, regret=0.1,
        regret_low=0.1, regret_high=0.1, runs=100, mode=AS_WRITTEN, pulls_best=1.0, best=0,
        recommended=0, pulls_low=1.0, pulls_high=1.0,
    )  # fmt: skip
    return Row(**(values | changed))


def test_every_claim_belongs_to_a_figure_and_says_what_decides_it():
    assert len(CLAIMS) == 32
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
def repeated(monkeypatch):
    """What is repeated: (algorithm, runs); 22.42 % of the runs are wrong, of Prob-1 none."""
    found = []

    def more(bench, setting, rows, runs):
        found.extend((one.algorithm, runs) for one in rows)
        wrong = {row.algorithm: 0.2242 * (row.algorithm != "Prob-1") * runs for row in rows}
        return [share_row(round(wrong[name]), runs, algorithm=name) for name in wrong]

    monkeypatch.setattr(experiments, "more_runs", more)
    return found


def test_a_claim_that_the_interval_leaves_open_gets_more_runs(repeated, tmp_path):
    """20 wrong of 100 says nothing of .2, nor 224 of 1000 [.199, .251]; 2242 of 10,000 does."""
    bench = Workbench(tmp_path, shown=False)
    found = reproduction.decide(bench, ABOVE_A_FIFTH, [share_row(20, 100)])
    assert found.finding.holds is True and repeated == [("RR", 1000), ("RR", 10_000)]
    assert found.finding.runs() == "10,000 runs" and found.numbers == ".224 [.216, .232]"


def test_what_is_not_random_is_not_repeated(repeated, tmp_path):
    """A row without an interval, of one run, stays unchanged next to one that is drawn."""
    exact = row(algorithm="R-SR", error=0.02, error_low=0.02, error_high=0.02, runs=1)
    claim = Claim(
        Passage([], "imdb", "", IMDB), "Prob-1 errs less than R-SR.", "",
        lambda rows: Evidence(measured(rows[1]) < measured(rows[0]), ""),
    )  # fmt: skip
    rows = [exact, share_row(0, 100, algorithm="Prob-1")]
    found = reproduction.decide(Workbench(tmp_path, shown=False), claim, rows)
    assert found.finding.holds is True and repeated == [("Prob-1", 1000)]


@pytest.mark.parametrize("limit", ["MOST_RUNS", "MOST_PULLS"])
def test_a_claim_stays_open_if_the_limits_do_not_decide_it(monkeypatch, tmp_path, limit):
    monkeypatch.setattr(reproduction, limit, 100)
    bench, first = Workbench(tmp_path, shown=False), [share_row(20, 100, algorithm="R-UCBE")]
    found = reproduction.decide(bench, ABOVE_A_FIFTH, first)
    assert found.finding.holds is None and found.finding.rows == tuple(first)


@pytest.mark.slow  # compiles nine policies
def test_two_claims_that_100_runs_cannot_decide_hold_with_more(tmp_path):
    """R-UCBE at T = 100 errs in .2242 [.216, .232] of 10,000 runs: all errors are above .2."""
    bench = Workbench(tmp_path, runs=100, jobs=2, shown=False)
    rows = [
        found
        for budget in (100, 150)
        for found in experiments.play(bench, SETTING_A, ALGORITHMS, 100, budget)
    ]
    for words, runs in (("large errors", "100 to 10,000"), ("large margin", "100 to 1,000")):
        claim = claim_on(words)
        assert claim.check(rows).finding.holds is None
        found = reproduction.decide(bench, claim, rows)
        assert found.finding.holds is True and found.finding.runs() == f"{runs} runs"
        if words == "large errors":
            assert ".224 [.216, .232] (R-UCBE, T = 100)" in found.numbers


def test_the_least_regret_is_counted_by_budgets_not_by_their_mean():
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
    assert found.finding.holds is False and "at 6 of 22" in found.numbers
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
    (found,) = reproduction.with_wilson([row(error=0.0, error_low=0.0, error_high=0.0)])
    assert found.error_high == pytest.approx(1 - 0.05 ** (1 / 100))
    exact = row(error=0.0, error_low=0.0, error_high=0.0, runs=1)  # nothing is random
    assert reproduction.with_wilson([exact]) == [exact]
