"""Problems: the paper's facts, families that keep their promises, noise of the stated law.

Statistical tests state the rate at which a correct library would fail them.
"""

import math
import os
import sys
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from latebloomer import problems
from latebloomer.core.kernel import cpu_jit, lower
from latebloomer.errors import ArmError, CurveError, MissingExtra, SettingError, UnknownName
from latebloomer.problems import Problem, lower_bound, one_riser, paper_a, paper_b, problem
from latebloomer.problems import noise as noise_module
from latebloomer.problems.curves import Exponential, PaperF, PiecewiseLinear, SShaped, Stationary
from latebloomer.problems.noise import Bernoulli, Gaussian, Noiseless, StudentT, Uniform
from latebloomer.problems.public_curves import DATA, IMDB_FILE

FALSE_ALARMS = 1e-6  # of each statistical test


def data_file(*parts):
    folder = os.environ.get(DATA)
    if not folder:
        pytest.skip(f"{DATA} is not set: it names the folder that holds {'/'.join(parts)}")
    file = Path(folder, *parts)
    if not file.is_file():
        pytest.skip(f"there is no {file}")
    return file


# The paper's settings.


@pytest.mark.parametrize("setting", [paper_a(), paper_b()])
def test_the_settings_have_the_papers_noise_and_rise_concavely(setting):
    assert setting.noise == Gaussian(0.01)
    assert setting.check(3200).assumption_1


def test_imdb_holds_the_seven_recorded_curves():
    data_file(*IMDB_FILE.parts)
    imdb = problem("imdb")
    assert imdb.names == ("NN112", "NN1", "NN2", "NN22", "NN222", "OGD", "LR")
    assert (imdb.arms, imdb.length, imdb.noise) == (7, 50_000, Noiseless())
    assert not imdb.check(1000).assumption_1  # means of 1000 outcomes: neither rising nor concave
    assert problem("imdb:noise=bernoulli").noise == Bernoulli()
    with pytest.raises(CurveError, match="budget=50001, but the curves of imdb end at pull 50000"):
        imdb.means(50_001)


def test_imdb_says_what_to_set_and_where_to_find_it(monkeypatch, tmp_path):
    monkeypatch.delenv(DATA, raising=False)
    with pytest.raises(CurveError, match=f"{DATA} is not set: type .*2b49e82.*set {DATA}=FOLDER"):
        problem("imdb")
    monkeypatch.setenv(DATA, str(tmp_path))
    told = r"there is no .*imdb_curves.npz: type .latebloomer download imdb"
    with pytest.raises(CurveError, match=told):
        problem("imdb")
    (tmp_path / IMDB_FILE).parent.mkdir()
    np.savez(tmp_path / IMDB_FILE, one=np.ones(3), two=np.ones(3))
    with pytest.raises(CurveError, match="these are not the paper's curves"):
        problem("imdb")


def test_the_lower_bound_instances_differ_only_beyond_the_cap():
    beta, gap = 2.0, 0.1
    cap = ((0.5 + gap) / (2 * gap)) ** (1 / (beta - 1))  # [Mussi24, Thm 3, proof]: n* = 3
    base, other = lower_bound([gap] * 8, beta), lower_bound([gap] * 8, beta, winner=3)
    same = np.isclose(base.means(100), other.means(100), rtol=0, atol=1e-15)
    assert np.all(same[[0, 1, 2, 4]])
    assert same[3].nonzero()[0].tolist() == [*range(int(cap + 1e-9))]
    assert (base.best(1000), other.best(1000)) == (0, 3)
    report = base.check(1000, c=beta - 1, beta=beta)
    assert report.assumption_1 and report.smallest_c <= beta - 1


# Families.

rising = ["F", "exponential", "power", "piecewise", "stationary"]
names = st.builds(
    "random:{}:K={}:seed={}".format,
    st.sampled_from(rising),
    st.integers(2, 6),
    st.integers(0, 2**32),
)


@given(names, names)
@settings(max_examples=150)
def test_random_instances_rise_are_concave_and_functions_of_their_names(name, other):
    found = problem(name)
    report, means = found.check(2000), found.means(500)
    assert report.assumption_1, report
    assert found.label == name and means.min() >= 0 and means.max() <= 1
    assert np.array_equal(problem(name).means(500), means)
    assert name == other or not np.array_equal(problem(other).means(500), means)


@given(st.integers(0, 2**32))
def test_s_shaped_instances_rise_but_are_not_concave(seed):
    report = problems.random_problem("sshaped", arms=4, seed=seed).check(2000)
    assert set(report.falls) == {None}
    assert None not in report.bends_up
    assert "bends up at pull" in str(report)


def test_curves_match_their_formulas_one_by_one_and_all_at_once():
    pulls = np.arange(1, 300)
    for curve in (
        *(PaperF(10, 0.88, 1.5), Exponential(0.9, 30, 0.1), problems.PowerLaw(0.9, 0.4, 0.5)),
        *(PiecewiseLinear(((0, 0.0), (175, 0.7))), Stationary(0.3), SShaped(0.8, 50, 10)),
        problems.LowerBound(1.5, 0.1),
    ):
        assert np.allclose(curve(pulls), [curve(int(n)) for n in pulls], rtol=1e-14), curve
    b, c, psi, n = 10, 0.88, 1.5, 7
    assert PaperF(b, c, psi)(n) == pytest.approx(c * (1 - b / (b ** (1 / psi) + n) ** psi))
    assert Exponential(0.9, 30, 0.1)(n) == pytest.approx(0.1 + 0.8 * (1 - math.exp(-n / 30)))
    assert SShaped(0.8, 5, 10, 0.2)(n) == pytest.approx(0.2 + 0.6 / (1 + math.exp(-0.2)))
    assert np.all(np.isfinite(SShaped(0.8, 1e6, 1e-3)([1, 10**9])))
    # App. G has b in [0, infinity). At n = 0 it is 0 / 0 then, and 0 for every other b.
    assert PaperF(b=0, c=0.88, psi=0.5)([0, 1, 2, 100]).tolist() == [0, 0.88, 0.88, 0.88]
    assert PaperF(b=1e-12, c=0.88)([0, 1]).tolist() == pytest.approx([0, 0.88])


REFUSED = [
    *((SettingError, make, message) for make, message in [
        (lambda: PaperF(-1, 1), "b=-1, but b must be at least 0"),
        (lambda: PaperF("1", 1), "b='1', but b must be a number"),
        (lambda: Exponential(math.nan, 1), "limit=nan, but limit must be finite"),
        (lambda: Exponential(0.1, 5, 0.2), "limit=0.1, but limit must be at least start=0.2"),
        (lambda: PiecewiseLinear(()), "one or more finite"),
        (lambda: PiecewiseLinear(((2, 0.1), (1, 0.2))), "in order of n"),
        (lambda: SShaped(1, 50, 0), "width=0, but width must be above 0"),
        (lambda: problems.LowerBound(1), "beta=1, but beta must be above 1"),
        (lambda: problems.LowerBound(2, 0.6), "gap must be at least 0 and at most 0.5"),
        (lambda: lower_bound([0.1], 2, winner=2), r"winner=2, but winner must be in 1\.\.1"),
        (lambda: one_riser(arms=9, budget=8), "T=8, but T must be at least 9"),
        (lambda: problems.random_problem("F", seed=-1), "seed=-1, but seed must be"),
        (lambda: Gaussian(-1), "sd=-1, but sd must be finite and at least 0"),
        (lambda: Gaussian("loud"), "sd='loud', but sd must be a number, or one per arm"),
        (lambda: StudentT(1, 0.1), "df=1, but df must be above 1"),
        (lambda: Problem(np.ones((2, 3)), (0.1, 0.2, 0.3)), "one for each of 2 arms"),
        (lambda: Problem(np.ones((2, 3)), names=["a", "a"]), "all different"),
        (lambda: paper_a().means(0), "budget=0, but budget must be at least 1"),
        (lambda: paper_a().best(1.5), "horizon=1.5, but horizon must be"),
        (lambda: paper_a().check(100, c=0), "c=0, but c must be above 0"),
        (lambda: paper_a().check(100, beta=1), "beta=1, but beta must be above 1"),
        (lambda: problem("paper-a:loud"), "'loud' in 'paper-a:loud', but a setting is key=value"),
        (lambda: problem("paper-a:sigma=1:noise=none"), "both sigma and noise are given"),
        (lambda: problem("random:F:K=2.5"), "K=2.5, but K must be a whole number"),
        (lambda: problem(7), "problem=7, but problem must be a Problem or a name"),
    ]),
    *((CurveError, partial(Problem, curves), message) for curves, message in [
        (np.ones((1, 5)), "1 arm, but a problem needs at least 2"),
        ([[0.1, 0.2], [0.1]], "unequal length: 'arm 0' ends at pull 2, 'arm 1' ends at pull 1"),
        ([[0.1, 0.2], [0.1, math.nan]], "arm 'arm 1' is nan at pull 2"),
        ([0.1, 0.2], r"'arm 0' has shape \(\), but a curve is a list"),
        (np.ones((2, 0)), "the curves are empty"),
        ([Stationary(1), [0.1]], "give numbers, or one function per arm"),
        (None, "curves=None, but they must be a table"),
    ]),
    *((UnknownName, partial(problem, name), message) for name, message in [
        ("paper-c", "no problem is called 'paper-c'; did you mean 'paper-"),
        ("random", "no problem is called 'random'"),
        ("random:exponental", "no family of curves is called 'exponental'; did you mean 'expon"),
        ("random:F:k=3", "no setting of random:F is called 'k'"),
        ("paper-a:sgma=1", "no setting of paper-a is called 'sgma'; did you mean 'sigma'"),
        ("paper-a:noise=bernouli", "no noise is called 'bernouli'; did you mean 'bernoulli'"),
        ("gone.csv:K=3", r"no setting of gone.csv is called 'K'"),
    ]),
    (CurveError, lambda: Problem([Stationary(0.5), lambda n: [1.0, 2.0]]).means(5),
     "'arm 1' must return one finite mean for each pull"),
    (CurveError, lambda: Problem([Stationary(0.5), lambda n: n / 0.0 * 0]).means(5), "one finite"),
    (CurveError, lambda: Problem([Stationary(0.5), lambda n: 0.5 if n > 3 else 0.1]).means(5),
     "'arm 1' raised ValueError: The truth value .* put a function of one number into"),
    (CurveError, lambda: Problem([]), "0 arms, but a problem needs at least 2"),
    (SettingError, lambda: paper_a().draw(0, 1, run=-1), "run=-1, but run must be from 0 to"),
    (CurveError, lambda: problem("gone.csv"), r"gone.csv: there is no such file"),
    (UnknownName, lambda: problems.load("a.cvs"), r"no layout of curves is called '.cvs'; did"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*encountered")
@pytest.mark.parametrize(("error", "make", "message"), REFUSED, ids=[case[2] for case in REFUSED])
def test_what_makes_no_sense_is_refused(error, make, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("module", "use"),
    [("matplotlib.pyplot", lambda _: paper_a().plot(10)), ("pyarrow.parquet", problems.load)],
)
def test_what_is_not_installed_is_named(module, use, monkeypatch, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"need {module.partition('.')[0]}: pip install"):
        use(tmp_path / "a.parquet")


# Problems.


def test_a_table_cannot_be_changed_behind_the_problems_back():
    table = np.ones((2, 3))
    given = Problem(table, label="mine")
    table[0, 0] = 7
    assert given.length == 3 and paper_a().length is None
    for ask in (given.means, given.best, given.gaps, given.check, given.plot):
        with pytest.raises(CurveError, match="=4, but the curves of mine end at pull 3"):
            ask(4)
    assert given.means(1)[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        given.curves[0, 0] = 7


@given(st.integers(2, 5), st.integers(1, 30), st.integers(0, 2**32))
def test_changes_tell_the_best_arm_at_every_horizon(arms, budget, seed):
    given_ = Problem(np.random.default_rng(seed).integers(0, 4, (arms, budget)))
    told = np.zeros(budget, int)
    for horizon, arm in given_.changes(budget):
        told[horizon - 1 :] = arm
    assert told.tolist() == given_.means(budget).argmax(axis=0).tolist()
    assert told.tolist() == [given_.best(horizon) for horizon in range(1, budget + 1)]
    assert given_.gaps(budget)[given_.best(budget)] == 0


def test_a_curve_of_many_is_evaluated_at_many_pulls_at_once(monkeypatch):
    """Claim: with blocks of 64 means, curves of 640 pulls are called 10 times, or twice that.

    With 64 arms it was once more 64 times as often, at one pull each: 10,000 arms took minutes.
    """
    monkeypatch.setattr(sys.modules[Problem.__module__], "BLOCK", 64)
    calls = [0] * 64

    def curve(arm, n):
        calls[arm] += 1
        return (arm + 1) * np.asarray(n)

    crowd = Problem([partial(curve, arm) for arm in range(64)])
    assert crowd.changes(640) == ((1, 63),)
    assert max(calls) <= 20


def test_a_report_says_what_is_broken_and_the_tight_constants_of_assumption_2():
    curves = [[0.1, 0.3, 0.2, 0.2], [0.0, 0.1, 0.2, 0.4]]
    report = Problem(curves, names=["dips", "bends"]).check(4)
    assert report.falls == (2, None) and report.bends_up == (2, 2)
    assert "dips falls at pull 2" in str(report) and "bends bends up at pull 2" in str(report)
    assert "gaps at 4: dips 0.2, bends 0" in str(report)
    assert "best arm by horizon: dips from 1, bends from 4" in str(report)
    curve = [0.0, 0.5, 0.75]  # increments 0.5 = 0.5 * 1^-beta and 0.25 = 2^-2
    report = Problem([curve, curve[::-1]]).check(3, c=1.0, beta=2)
    assert (report.largest_beta, report.smallest_c) == (2.0, 1.0)
    assert report.assumption_2 and "c = 1 allows beta <= 2; beta = 2 needs c >= 1" in str(report)
    steep = Problem([curve, curve]).check(3, c=0.4)
    assert steep.largest_beta is None and not steep.assumption_2
    assert "c = 0.4 is below the first increment" in str(steep)
    flat = Problem([Stationary(0.1), Stationary(0.2)]).check(50)
    assert flat.largest_beta == math.inf and flat.smallest_c == 0
    text = str(Problem(np.random.default_rng(0).random((40, 500))).check(500))
    assert "more)" in text and len(text) < 3000


def test_a_plot_has_a_line_per_arm():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    assert paper_a().plot(300, ax) is ax
    assert len(ax.get_legend().texts) == 5
    assert len(ax.lines) == 5 + 2  # and a mark where the best arm changes
    pyplot.close(figure)


def test_a_problem_draws_what_the_kernel_draws():
    mine = Problem(np.array([[0.1, 0.2], [0.3, 0.4]]), (0.5, 2.0))
    expected = noise_module.draw(mine.noise.kind, 2.0, 0.0, 0.4, seed=-1, run=7, arm=1, pull=1)
    assert mine.draw(arm=1, pull=2, seed=2**64 - 1, run=7) == expected
    with pytest.raises(ArmError, match="no arm 2: there are 2, from 0 to 1"):
        mine.draw(arm=2, pull=1)


# Noise.

KINDS = {
    "Gaussian": (Gaussian(0.3), 0.4, stats.norm(0.4, 0.3)),
    "Uniform": (Uniform(0.3), 0.4, stats.uniform(0.1, 0.6)),
    "StudentT": (StudentT(5, 0.3), 0.4, stats.t(5, 0.4, 0.3)),
    "StudentT, heavy": (StudentT(1.5, 0.3), 0.4, stats.t(1.5, 0.4, 0.3)),
    "StudentT, light": (StudentT(1e6, 0.3), 0.4, stats.t(1e6, 0.4, 0.3)),
}
every_noise = [Gaussian(0.3), Bernoulli(), Uniform(0.3), StudentT(3.5, 0.3), Noiseless()]
kinds = pytest.mark.parametrize("noise", every_noise, ids=lambda noise: type(noise).__name__)
draw = lower(noise_module.draw, cpu_jit())
variates = lower(noise_module.variates, cpu_jit())


@numba.njit
def many(draw, count, kind, scale, shape, mean, seed):
    out = np.empty(count)
    for pull in range(count):
        out[pull] = draw(kind, scale, shape, mean, seed, 0, 0, pull)
    return out


def sample(noise, mean, seed, count=200_000):
    return many(draw, count, noise.kind, noise.scales(1)[0], noise.shape, mean, seed)


@pytest.mark.parametrize("case", KINDS)
def test_rewards_follow_the_stated_law(case, seed):
    noise, mean, law = KINDS[case]
    rewards = sample(noise, mean, seed)
    assert stats.kstest(rewards, law.cdf).pvalue > FALSE_ALARMS / 4
    p_mean = stats.binomtest(int(np.sum(rewards > mean)), len(rewards)).pvalue  # the median too
    assert p_mean > FALSE_ALARMS / 4
    for upper in (law.isf(1e-3), law.isf(1e-4)):
        beyond = int(np.sum(np.abs(rewards - mean) > upper - mean))
        assert stats.binomtest(beyond, len(rewards), 2 * law.sf(upper)).pvalue > FALSE_ALARMS / 4


@pytest.mark.parametrize("mean", [0.0, 1e-4, 0.3, 1.0])
def test_bernoulli_rewards_are_ones_with_the_probability_of_the_mean(mean, seed):
    rewards = sample(Bernoulli(), mean, seed)
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    assert stats.binomtest(int(rewards.sum()), len(rewards), mean).pvalue > FALSE_ALARMS


def test_bernoulli_means_outside_0_to_1_are_refused():
    with pytest.raises(CurveError, match=r"means from 0 to 1.5 with Bernoulli noise"):
        Problem([[0.0, 1.0], [0.5, 1.5]], Bernoulli())
    grows = Problem([Exponential(1.5, 10), Stationary(0.5)], Bernoulli())
    assert grows.means(10).max() < 1
    with pytest.raises(CurveError, match="the probability of a reward of 1"):
        grows.means(20)


addresses = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**48 - 1),
    st.integers(0, 2**32 - 2),
    st.integers(0, 2**32 - 1),
)


@kinds
@given(addresses, st.floats(0, 1))
@settings(max_examples=50)
def test_python_and_compiled_rewards_are_the_same(noise, address, mean):
    arguments = (noise.kind, 0.3, noise.shape, mean, *address)
    exact = 1e-12 if isinstance(noise, StudentT) else 0  # libm's log and cos
    python, compiled = noise_module.draw(*arguments), draw(*arguments)
    assert python == pytest.approx(compiled, rel=exact, abs=exact * 0.3)


@kinds
def test_batches_hold_the_single_variates(noise):
    out, again = np.empty(21), np.empty(21)
    variates(out, noise.kind, noise.shape, 5, 6, 7, 8)
    noise_module.variates(again, noise.kind, noise.shape, 5, 6, 7, 8)
    single = [noise_module.variate(noise.kind, noise.shape, 5, 6, 7, 8 + i) for i in range(21)]
    assert again.tolist() == single
    assert out == pytest.approx(single, rel=1e-12)


def test_different_kinds_and_addresses_are_different_luck():
    rewards = {
        (noise.kind, seed, run, arm, pull): draw(
            noise.kind, 0.3, noise.shape, 0.0, seed, run, arm, pull
        )
        for noise in (Gaussian(0.3), Uniform(0.3), StudentT(3.5, 0.3))
        for seed in (0, 1) for run in (0, 1) for arm in (0, 1) for pull in (0, 1)
    }  # fmt: skip
    assert len(set(rewards.values())) == len(rewards)


# Names.


def test_names_and_settings_mean_what_they_say():
    assert problem("paper-a:sigma=0.5").noise == Gaussian(0.5)
    assert problem("paper-b:noise=none").noise == Noiseless()
    assert problem("random:f:K=3:seed=1:sigma=0.2").noise == Gaussian(0.2)
    assert problem("lower-bound:K=4:beta=1.5:gap=0.2").arms == 4
    assert problem("one-riser:K=4:T=80").best(80) == 3
    mine = paper_a()
    assert problem(mine) is mine
    assert problem("paper-a").label == "paper-a"
    for name in {*problems.known_problems()} - {"imdb"}:
        assert problem(name).means(10).shape[1] == 10


# Recorded curves.

MEANS = np.array([[0.1, 0.2, 0.25], [0.3, 0.3, 0.3]])
NAMES = np.array(["late", "flat"])
FILES = {
    ".npz": {"flat": MEANS[1], "late": MEANS[0], "order": NAMES},
    "_in_a_table.npz": {"curves": MEANS, "names": NAMES},
    ".csv": "pull,late,flat\n1,0.1,0.3\n2,0.2,0.3\n3,0.25,0.3\n",
    ".parquet": {"late": MEANS[0], "flat": MEANS[1]},
}


@pytest.mark.parametrize("ending", FILES)
def test_curves_survive_the_way_through_a_file(tmp_path, ending):
    file = tmp_path / f"curves{ending}"
    save(file, FILES[ending])
    loaded = problem(f"{file}:sigma=0.25")
    assert loaded.names == ("late", "flat") and loaded.length == 3
    assert np.array_equal(loaded.means(3), MEANS)
    assert loaded.noise == Gaussian(0.25) and problems.load(file).noise == Noiseless()
    np.savez(tmp_path / "unnamed.npz", curves=MEANS)
    assert problems.load(tmp_path / "unnamed.npz").names == ("arm 0", "arm 1")


def save(file, content):
    """Text and bytes as they are; columns in the layout of the file's name."""
    if isinstance(content, bytes | str):
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    elif file.suffix == ".npz":
        np.savez(file, **content)
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(content), file)


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        (".csv", "a,b\n1,2\n3,nan\n", "arm 'b' is nan at pull 2"),
        (".csv", "a,b\n1,2\n,3\n4,5\n", "arm 'a' is nan at pull 2"),
        (".csv", "a,b\n1,2\n3,\n", "unequal length: 'a' ends at pull 2, 'b' ends at pull 1"),
        (".csv", "a,b\n1,2\n3\n", "line 3 has 1 cells for 2 columns"),
        (".csv", "a,b\n1,two\n", "'two' of 'b' at pull 1 is not a number"),
        (".csv", "pull,a\n1,2\n", "1 arm, but a problem needs at least 2"),
        (".csv", "pull,a,b\n0,2,3\n1,3,4\n", "the column 'pull' must count 1, 2"),
        (".csv", "a,Step,b\n0,2,3\n1,2,4\n", "the column 'Step' numbers the rows, so its numbers"),
        (".csv", ",a\n0,1\n1,2\n", "1 arm"),
        (".csv", "a,a\n1,2\n", "two columns of its header have the same name"),
        (".csv", "a,b\n", "the curves are empty"),
        (".csv", "", "0 arm"),
        (".npz", {"a": MEANS[0], "b": MEANS[1, :2]}, "'a' ends at pull 3, 'b' ends at pull 2"),
        (".npz", {"a": MEANS, "b": MEANS}, "2 runs of each arm, but a problem has one curve of"),
        (".npz", {"a": MEANS, "b": MEANS[:1]}, "every arm must have as many runs"),
        (".npz", {"a": MEANS, "b": MEANS[0]}, "every arm must have as many runs"),
        (".npz", {"a": MEANS[None], "b": MEANS[None]}, r"arm 'a' has shape \(1, 2, 3\)"),
        (".npz", {"a": MEANS[0], "order": np.array(["a", "b"])}, "its `order` names 'b'"),
        (".npz", {"curves": MEANS[0]}, r"`curves` has shape \(3,\)"),
        (".npz", {"curves": MEANS, "names": np.array(["a"])}, "`names` must hold 2 different"),
        (".npz", {"a": MEANS[0], "b": np.array([1, None, 2])}, "not an .npz of plain arrays"),
        (".npz", b"this is no such file", "not an .npz"),
        (".parquet", {"a": [1.0, 2.0], "b": [1.0, None]}, "unequal length"),
        (".parquet", {"a": [1.0, 2.0], "b": [None, 1.0]}, "arm 'b' is nan at pull 1"),
        (".parquet", {"a": [1.0, 2.0], "b": ["x", "y"]}, "something other than numbers"),
        (".parquet", b"this is no such file", "not a Parquet file"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, ending, content, message):
    save(tmp_path / f"bad{ending}", content)
    with pytest.raises(CurveError, match=f"bad{ending}: .*{message}"):
        problems.load(tmp_path / f"bad{ending}")
