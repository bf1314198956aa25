"""The table of guarantees: each line is what the functions say, or why it says nothing."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from latebloomer import theory
from latebloomer.cli import app
from latebloomer.errors import CurveError, SettingError, UnknownName
from latebloomer.problems import (
    Bernoulli,
    Gaussian,
    Noiseless,
    Problem,
    StudentT,
    Uniform,
    problem,
)
from latebloomer.theory import guarantees
from latebloomer.theory.guarantees import shown


def value_of(found, about, words):
    """The values of the statements about an algorithm that have these words."""
    return [one.value for one in found.of(about) if words in f"{one.source} {one.statement}"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.003, 0.05]), st.integers(40, 300))
def test_each_number_is_that_of_the_function_for_it(seed, noise, budget):
    rng = np.random.default_rng(seed)
    curves = np.cumsum(np.sort(rng.exponential(0.02, (3, budget)) ** 3)[:, ::-1], axis=1)
    curves += 0.5 * rng.random((3, 1))
    found = guarantees(curves, budget, noise=noise, exploration=30.0, beta=2.0)
    same = {
        ("R-UCBE", "error of argmax B"): [
            theory.rising_ucbe.error_bound(curves, budget, a, noise, 0.25)
            for a in (30.0, theory.theory_exploration(3, budget, 0.05))
        ],
        ("R-UCBE", "simple regret"): [
            theory.rising_ucbe.simple_regret_bound(curves, budget, 30.0, noise, 0.25, iota=0.5),
            theory.rising_ucbe.simple_regret_bound_polynomial(
                theory.gaps(curves, budget), budget, 30.0, noise, 0.25, 2.0, found.c, iota=0.5
            ),
        ],
        ("R-SR", "K(K-1)"): [theory.rising_sr.error_bound(curves, budget, noise, 0.25)],
        ("R-SR", "its proof"): [theory.rising_sr.proved_error_bound(curves, budget, noise, 0.25)],
        ("RR-SW", "its proof"): [
            theory.round_robin_window.proved_error_bound(curves, budget, noise, 0.25)
        ],
        ("R-UCBE", "T is at least"): [
            theory.rising_ucbe.minimum_budget(theory.gaps(curves, budget), 0.25, 2.0, found.c)
        ],
    }
    for (about, words), wanted in same.items():
        assert value_of(found, about, words) == pytest.approx(wanted, rel=1e-9, nan_ok=True)
    for one in found.statements:
        assert one.applies or one.condition.startswith("does not apply, because ")
        if one.applies and 0 < one.value < math.inf:
            assert one.log10 == pytest.approx(math.log10(one.value), abs=1e-6)


def test_bounds_that_underflow_are_powers_of_ten():
    """Two arms, N_1 = ceil(3998/2) = 1999, h = 499: exp(-499 * .25 / (16 * 1e-8))."""
    found = guarantees([[0.75] * 4000, [0.25] * 4000], 4000, noise=1e-4)
    (proved,) = (one for one in found.of("R-SR") if "its proof" in one.statement)
    assert proved.value == 0.0
    assert proved.log10 == pytest.approx(-499 * 0.25 / (16 * 1e-8) / math.log(10))
    assert shown(proved) == f"10^{proved.log10:.1f}" and shown(proved) in str(found)


def test_the_lower_bounds_are_given_where_the_theorems_have_instances():
    found = guarantees(problem("theorem-4:K=9:beta=2:sigma=1"), 5000, beta=2.0, c=1.0)
    complexity = theory.h1(problem("theorem-4:K=9:beta=2").gaps(5000))
    wanted = [
        theory.lower_bounds.error_lower_bound(5000, 1.0, complexity),
        theory.lower_bounds.error_lower_bound_many_arms(5000, 1.0, complexity, 9),
    ]
    assert value_of(found, "any algorithm", "Thm 4") == pytest.approx(wanted)
    few = guarantees(problem("paper-a"), 800).of("any algorithm")
    assert [one.applies for one in few] == [False] * 3
    assert "its instances need K >= 372.6 arms" in few[0].condition


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("name", ["paper-a", "paper-b", "lower-bound:K=2", "one-riser:K=3:T=9"])
def test_tiny_budgets_have_a_table_too(name, budget):
    text = str(guarantees(problem(name), budget))
    assert "Thm 1" in text and "Mussi24" not in text and "nan" not in text


def test_a_broken_assumption_takes_the_upper_bounds_away():
    falls = Problem([[0.9, 0.8] * 50, [0.1] * 100], 0.01)
    found = guarantees(falls, 100)
    assert found.statements[0].condition == (
        "does not apply, because arm 0 falls at pull 1 (Assumption 1)"
    )
    for about in ("R-UCBE", "R-SR", "RR-SW"):
        assert not any(one.applies for one in found.of(about))


def test_increments_above_those_of_assumption_2_take_the_corollaries_away():
    curves = [[0.9 * n / (n + 10) for n in range(1, 4001)], [0.3] * 4000]
    holds, fails = (guarantees(curves, 4000, noise=0.005, beta=1.9, c=c) for c in (None, 1.0))
    for before, after in zip(holds.statements, fails.statements, strict=True):
        needs = after.source.startswith(("Assumption 2", "Cor.", "Remark", "App. E, Eq."))
        if needs and after.about != "any algorithm":
            assert after.condition.endswith("beta = 1.9 needs c >= 4.783, and c = 1")
        else:
            assert after.condition == before.condition


def test_the_regret_of_corollary_2_is_that_of_its_formula():
    """A budget above Eq. (timeBudgetLBSR), and noise whose error is not the whole bound."""
    curves = [[0.9 - 0.5 / n for n in range(1, 4001)], [0.3] * 4000]
    found = guarantees(curves, 4000, noise=0.5, beta=2.0)
    error = theory.rising_sr.proved_error_bound(curves, 4000, 0.5, 0.25)
    late = found.c * 4**2 / 4000  # and log(K) = 1 for K = 2
    assert value_of(found, "R-SR", "Cor. 2 simple regret") == [pytest.approx(error + late)]
    assert math.isnan(*value_of(guarantees(curves, 20, noise=0.5), "R-SR", "Cor. 2 simple"))


def test_a_name_in_place_of_a_problem_says_what_to_type():
    with pytest.raises(CurveError, match=r"write problem\('paper-a'\), with `from latebloomer"):
        guarantees("paper-a", 3200, noise=0.1)
    found = guarantees(problem("paper-b"), 800)
    with pytest.raises(UnknownName, match="'RSR'; did you mean 'R-SR'"):
        found.of("RSR")


@pytest.mark.parametrize(
    ("noise", "level"),
    [
        (Gaussian((0.1, 0.3)), 0.3), (Bernoulli(), 0.5), (Uniform(0.3), 0.3 / math.sqrt(3)),
        (Noiseless(), 0.0), (StudentT(3, 0.1), None),
    ],
)  # fmt: skip
def test_the_level_of_a_noise_is_sub_gaussian(noise, level, rng):
    """E exp(x X) <= exp(x^2 sigma^2 / 2), and the problem's own level is used."""
    assert noise.level(2) == pytest.approx(level)
    given = Problem([[0.5] * 50, [0.25] * 50], noise)
    if level is None:
        with pytest.raises(SettingError, match="give noise=, a number"):
            guarantees(given, 50)
        assert guarantees(given, 50, noise=0.2).noise == 0.2
    else:
        assert guarantees(given, 50).noise == pytest.approx(level)
    if isinstance(noise, Uniform):
        x = np.linspace(0.01, 60, 300)
        assert (np.sinh(0.3 * x) / (0.3 * x) <= np.exp(x**2 * level**2 / 2)).all()


def test_the_command_prints_a_table_for_each_budget_or_one_json_object():
    def run(*words):
        return CliRunner().invoke(app, ["guarantees", "--problem", "paper-a", *words])

    text = run("--budget", "200,3200").output
    assert text.count("paper-a: 5 arms, T = ") == 2 and "does not apply, because" in text
    assert "Rates, without constants:" in text
    found = json.loads(run("--budget", "3200", "--json").output)["guarantees"]
    assert [one["budget"] for one in found] == [3200]
    limit = next(one for one in found[0]["statements"] if one["statement"] == "a*(0)")
    assert limit["value"] == pytest.approx(21.93, abs=0.01) and limit["applies"]
    wrong = run("--budget", "3200", "--beta", "0.5")
    assert wrong.exit_code == 2 and "--beta 0.5, but" in wrong.stderr


def test_a_frame_has_a_row_for_each_statement():
    pytest.importorskip("pandas")
    found = guarantees(problem("paper-b"), 3200)
    assert len(found.to_frame()) == len(found.statements)
    assert found.to_frame()["applies"].sum() == sum(one.applies for one in found.statements)
