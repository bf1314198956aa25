"""The paper's settings and algorithms, and the runs behind the figures, in both modes.

As written, the library's policies are simulated, and R-UCBE is Algorithm 1. R-UCBE with the
recommendation by the estimate, the default of this library, is a separate series. As published,
the trials of the published algorithms are drawn and counted like the authors did it. Figures and
claims that need the same runs share them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from latebloomer.core.kernel import lower
from latebloomer.core.phases import phase_lengths
from latebloomer.core.statistics import mean
from latebloomer.errors import extra
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN, WINDOW
from latebloomer.paper import published_algorithms as published
from latebloomer.paper.workbench import Row, Workbench, by_budget
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of, make_policy
from latebloomer.policies.rising_ucbe import UCBE, RisingUCBE
from latebloomer.problems import Gaussian, Noiseless, Problem, paper_a, paper_b, problem
from latebloomer.problems.curves import Floats
from latebloomer.theory import NoExploration, exploration_limit, gaps
from latebloomer.theory.complexity import TIE, best_arms

BUDGETS = (
    100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600,
    1800, 2000, 2400, 2800, 3200,
)  # fmt: skip
IMDB_BUDGETS = (500, 1000, 2000, 3000, 4000, 5000, 7000, 10000, 15000, 20000, 30000)
SIGMAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
ALGORITHMS = ("RR", "RR-SW", "UCB-E", "R-UCBE", "SR", "R-SR", "Prob-1", "ETC", "Rest-Sure")
# Additional series as written, where "R-UCBE" is Algorithm 1, which recommends argmax B.
ESTIMATE = "R-UCBE (estimate)"  # the same pulls, but argmax of the estimate is recommended
THEORY = "R-UCBE (theory)"  # Algorithm 1 with a = 10 log(2TK/delta)


def as_written_policies(sigma: float, exploration: float | str) -> dict[str, Policy]:
    """Return the nine algorithms in the paper's order, and R-UCBE with our recommendation.

    `simulate` gives UCB-E the gaps.
    """
    nine = {name: make_policy(name.lower()) for name in ALGORITHMS}
    by_bound = RisingUCBE(exploration=exploration, noise=sigma, recommend="bound")
    return nine | {"R-UCBE": by_bound, ESTIMATE: replace(by_bound, recommend="estimate")}


@dataclass(frozen=True)
class Setting:
    """A problem of the paper with the constants of its experiments."""

    name: str
    sigma: float  # standard deviation of the noise, which R-UCBE knows
    beta: float  # beta in the formula for a
    rho: float  # rho of ETC in the published numbers; the text has .8 everywhere
    make: Callable[[], Problem]
    published_means: Callable[[int], Floats]  # mu_i(n), n = 0, ..., T, as in the authors' code
    scored: Callable[[int], int] | None = None  # arm counted as right, if not the best one
    printed_change: int | None = None  # the paper's last budget at which the best arm changes

    def problem(self) -> Problem:
        """Return the problem with this noise."""
        built = self.make()
        if isinstance(built.noise, Noiseless):
            return built
        return replace(built, noise=Gaussian(self.sigma), label=self.name)

    def gaps(self, budget: int) -> Floats:
        """Return Delta_i(T), from the means of the authors' code."""
        return gaps(self.published_means(budget)[:, 1:], budget)

    def exploration(self, budget: int) -> float:
        r"""Return the authors' a, without the factor 10.

        .. math:: a = \frac{\varepsilon^3}{4 \sigma^2} \Bigl( \frac{T^{\beta - 1}}{\phi^\beta}
                  - (1 - 2\varepsilon)^{-\beta} \Bigr)^2, \qquad \phi = \sum \Delta_i^{-2/3}

        The first term is (T/phi)^(1/2) if beta is at least 3/2. This is not a* of Corollary 1: it
        omits K - 1 and c, it has the exponent 2/3 for every beta, and beta is 1.001 in B and 1.5
        for IMDB, where the text has 1.3. In settings A and B the bracket is negative at all
        budgets, for which the closed form has no a*. At T = 3200, squaring the closed form's
        negative bracket would give 215.6 in A and 73.4 in B, and this formula gives 151.0 and
        118.0. The a* of Theorem 1 itself exists at the larger budgets (`exploration_limits`).

        >>> round(SETTING_A.exploration(100), 6)
        223.289586
        """
        behind = [gap for gap in self.gaps(budget).tolist() if gap != 0]
        phi = sum(gap ** (-2 / 3) for gap in behind)
        beta = self.beta
        first = (budget / phi) ** 0.5 if beta >= 1.5 else budget ** (beta - 1) / phi**beta
        bracket = first - (1 - 2 * WINDOW) ** -beta
        return float(WINDOW**3 / (4 * self.sigma**2) * bracket**2)

    def exploration_limits(self) -> dict[int, float]:
        """Return a*(0) of Theorem 1, Eq. (ucb_can_be_learned), at the budgets that have one.

        >>> {budget: round(a, 2) for budget, a in SETTING_A.exploration_limits().items()}
        {1600: 0.03, 1800: 0.77, 2000: 2.36, 2400: 7.31, 2800: 13.98, 3200: 21.93}
        """
        means = self.problem().means(BUDGETS[-1])
        limits = (exploration_limit(means[:, :T], T, self.sigma, WINDOW) for T in BUDGETS)
        pairs = zip(BUDGETS, limits, strict=True)
        return {budget: a for budget, a in pairs if not isinstance(a, NoExploration)}

    def ucbe_exploration(self, budget: int) -> float:
        """Return UCB-E's a with the gaps of `gaps`."""
        behind = tuple(self.gaps(budget).tolist())
        return UCBE(gaps=behind).settings(len(behind), budget, budget).exploration


def _means_a(budget: int) -> Floats:
    pulls = np.arange(budget + 1)
    return np.array([curve(pulls) for curve in paper_a().curves])


def _means_b(budget: int) -> Floats:
    """Return the means of B; the authors' code caps the first arm at .99 (text: 1)."""
    n = np.arange(budget + 1)
    first, last = np.minimum(0.0025 * n, 0.99), np.minimum(0.004 * n, 0.7)
    return np.array([first, 0.47 * (1 - 10 / (10 + n)), last])


@cache
def _recorded() -> Problem:
    return problem("imdb")


def _means_imdb(budget: int) -> Floats:
    """Return the means of IMDB; the first pull has the first recorded value."""
    return np.asarray(_recorded().means(budget + 1))


def _scored_b(budget: int) -> int:
    """Return the arm counted as right: 0 from T = 200 on, although 2 is best up to 279."""
    return 1 if budget < 108 else 2 if budget < 200 else 0


def _scored_imdb(budget: int) -> int:
    """Return the optimal arm in Table 2, whose row of optimal arms is hard-coded."""
    return 5 if budget < 2000 else 2


SETTING_A = Setting("setting-a", 0.01, 1.3, 0.98, paper_a, _means_a, None, 185)
SETTING_B = Setting("setting-b", 0.01, 1.001, 0.8, paper_b, _means_b, _scored_b, 280)
IMDB = Setting("imdb", 0.05, 1.5, 0.8, _recorded, _means_imdb, _scored_imdb)

Policies: TypeAlias = Mapping[str, Policy]
Algorithms: TypeAlias = Mapping[str, tuple[str, float]]  # series: (algorithm, factor of its a)
MULTIPLES = (0.02, 0.1, 1.0, 10.0, 50.0)  # multiples of R-UCBE's a
FACTORS = {f"R-UCBE {factor:g}".removesuffix(" 1"): factor for factor in MULTIPLES}
BY_ESTIMATE = {name.replace("R-UCBE", ESTIMATE): factor for name, factor in FACTORS.items()}
DETAIL = tuple(range(100, 251, 5))
DETAIL_RUNS = 1000  # as in the paper
# Algorithms with random draws on curves without noise; all others repeat the same run.
RANDOM_ON_RECORDED = {AS_WRITTEN: ("Prob-1",), AS_PUBLISHED: ("Prob-1", "Rest-Sure")}


# --- as written ---


def simulated_rows(
    workbench: Workbench,
    problem: Problem,
    policies: Policies,
    budget: int,
    runs: int,
    panel: str = "",
) -> list[Row]:
    """Return the tidy rows of the library's policies at one budget."""
    results = workbench.simulate(problem, list(policies.values()), budget, runs)
    best = problem.best(budget)
    sigma = problem.noise.sd if isinstance(problem.noise, Gaussian) else 0.0
    rows = []
    for series, policy in policies.items():
        cell = results.cell(label_of(policy), budget)
        often = cell.recommendations.index(max(cell.recommendations))
        counts = cell.pulls[best].items()
        total, squares = (sum(n**power * runs for n, runs in counts) for power in (1, 2))
        pulls, low, high = mean(total, squares, cell.runs)
        measured = (*cell.error(), *cell.regret(), cell.runs, AS_WRITTEN, pulls, best, often)
        rows.append(Row(series, budget, sigma, *measured, 1.0, panel, low, high))  # type: ignore[arg-type]
    return rows


# --- as published ---

KERNELS = {name: getattr(published, name.lower().replace("-", "_")) for name in ALGORITHMS}
SEEDED = "Prob-1"  # its draws are from the stream of the noise
# For these, the authors drew an order or an arm without a seed.
UNSEEDED = ("SR", "R-SR", "Rest-Sure")
UNSEEDED_STREAM = 1  # in place of the unseeded generator: seeds are [trial, this]
ROUNDS_OF_BATCH = 100_000  # rounds drawn before they are played: a few MB


@cache
def compiled(name: str) -> Any:
    """Return `play_trials` compiled for an algorithm."""
    numba = extra("numba", "the published conventions", "sim")
    jit = numba.njit(cache=True, nogil=True, error_model="numpy")
    return lower(published.play_trials, jit, {published.algorithm: KERNELS[name]})


def play_published(
    setting: Setting, algorithms: Algorithms, budget: int, trials: int
) -> dict[str, tuple[Any, Any]]:
    """Run trials 0, 1, ...; return recommended arms (trials,) and pulls (trials, arms)."""
    arms, players, outcomes = len(setting.published_means(1)), {}, {}
    for series, (name, factor) in algorithms.items():
        players[series] = (name, compiled(name), setup_of(setting, name, factor, budget))
        outcomes[series] = (np.zeros(trials, np.int64), np.zeros((trials, arms), np.int64))
    unseeded = any(name in UNSEEDED for name, _, _ in players.values())
    size = max(1, ROUNDS_OF_BATCH // budget)  # calling compiled code takes a while
    for first in range(0, trials, size):
        at = slice(first, min(first + size, trials))
        noise, seeded, ours = random_draws(setting, budget, range(at.start, at.stop), unseeded)
        for series, (name, kernel, setup) in players.items():
            recommended, pulls = outcomes[series]
            uniforms = seeded if name == SEEDED else ours
            kernel(setup, noise, uniforms, recommended[at], pulls[at])
    return outcomes


def setup_of(setting: Setting, name: str, factor: float, budget: int) -> published.Setup:
    """Return the setup that all trials of a series share."""
    means = setting.published_means(budget)
    a = setting.ucbe_exploration if name == "UCB-E" else setting.exploration
    rho = 0.8 if name == "Rest-Sure" else setting.rho
    ends = np.array(phase_lengths(len(means), budget))
    own = (decays(budget, rho), factor * a(budget), setting.sigma, rho)
    return published.Setup(means, ends, *own)


def decays(budget: int, rho: float) -> Floats:
    """Return s^-rho for s = 0 (never read), 1, ..., T."""
    return np.array([0.0, *(s**-rho for s in range(1, budget + 1))])


def random_draws(
    setting: Setting, budget: int, trials: range, unseeded: bool = True
) -> tuple[Floats, ...]:
    """Return by trial: the noise, the uniforms after it in its stream, and our own uniforms.

    The recorded curves of IMDB have no noise, and nothing was seeded for them. Our own uniforms
    take as long as everything else, so unless `unseeded`, the noise is returned in their place.
    """
    recorded, stream, draws = setting.name == "imdb", np.random.RandomState(), []
    for trial in trials:
        stream.seed(trial)
        noise = np.zeros(budget) if recorded else stream.normal(0, setting.sigma, budget)
        ours = noise
        if unseeded:
            ours = np.random.default_rng([trial, UNSEEDED_STREAM]).random(2 * budget)
        draws.append((noise, stream.random_sample(budget), ours))
    return tuple(np.array(rows) for rows in zip(*draws, strict=True))


def published_rows(setting: Setting, algorithms: Algorithms, budget: int, runs: int) -> list[Row]:
    """Return the tidy rows of one budget, with the published intervals."""
    means = setting.published_means(budget)
    best = int(best_arms(means, TIE)[budget])
    against = best if setting.scored is None else setting.scored(budget)
    rows = []
    for series, (chosen, pulls) in play_published(setting, algorithms, budget, runs).items():
        error = _interval(chosen != against, digits=2)
        reached = means[chosen, pulls[np.arange(runs), chosen]]
        regret = _interval(means[best, budget] - reached)
        pulls_best, low, high = _interval(pulls[:, best])
        often, factor = int(np.bincount(chosen).argmax()), algorithms[series][1]
        measured = (*error, *regret, runs, AS_PUBLISHED, pulls_best, best, often)
        rows.append(Row(series, budget, setting.sigma, *measured, factor, "", low, high))
    return rows


def _interval(values: Any, digits: int | None = None) -> tuple[float, float, float]:
    """Return the mean and mean -+ 2 sd / sqrt(trials), rounded as the published errors are."""
    middle, half = float(values.mean()), 2 * float(values.std()) / len(values) ** 0.5
    half = half if digits is None else round(half, digits)
    return middle, middle - half, middle + half


# --- series of either mode ---


def play(
    workbench: Workbench, setting: Setting, names: Iterable[str], runs: int, budget: int
) -> list[Row]:
    """Return rows of a setting at one budget, of algorithms or multiples of R-UCBE's a."""
    factors = {name: (FACTORS | BY_ESTIMATE).get(name, 1.0) for name in names}
    if workbench.mode == AS_PUBLISHED:
        algorithms = {
            name: ("R-UCBE" if name in FACTORS else name, factors[name]) for name in factors
        }
        return published_rows(setting, algorithms, budget, runs)
    a, sigma = setting.exploration(budget), setting.sigma
    theory = RisingUCBE(exploration="theory", noise=sigma, recommend="bound")
    policies = as_written_policies(sigma, a) | {THEORY: theory}
    for name, factor in (FACTORS | BY_ESTIMATE).items():
        by = "estimate" if name in BY_ESTIMATE else "bound"
        policies[name] = RisingUCBE(exploration=factor * a, noise=sigma, recommend=by)
    wanted = {name: policies[name] for name in factors}
    rows = simulated_rows(workbench, setting.problem(), wanted, budget, runs)
    return [row._replace(factor=factors[row.algorithm]) for row in rows]


def _names(mode: str) -> tuple[str, ...]:
    """Return the nine algorithms, and as written the two additional series of R-UCBE."""
    return ALGORITHMS if mode == AS_PUBLISHED else (*ALGORITHMS, ESTIMATE, THEORY)


def as_the_text_says(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without the additional series: R-UCBE is Algorithm 1."""
    return [row for row in rows if not row.algorithm.startswith((ESTIMATE, THEORY))]


def with_our_recommendation(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with R-UCBE's own replaced by those of its estimate."""
    kept = [row for row in rows if not row.algorithm.startswith("R-UCBE")]
    ours = [row for row in rows if row.algorithm.startswith(ESTIMATE)]
    return kept + [as_series(row, ESTIMATE, "R-UCBE") for row in ours]


def as_series(row: Row, old: str, new: str) -> Row:
    """Return the row with another name of its series, if the name begins with `old`."""
    rest = row.algorithm.removeprefix(old)
    return row if rest == row.algorithm else row._replace(algorithm=new + rest)


def _at_budgets(
    workbench: Workbench,
    name: str,
    setting: Setting,
    names: Iterable[str],
    budgets: Sequence[int] = BUDGETS,
    runs: int | None = None,
) -> list[Row]:
    runs = workbench.runs if runs is None else runs
    played = partial(play, workbench, setting, names, runs)
    return _series(workbench, name, runs, budgets, by_budget, played)


def _series(
    workbench: Workbench,
    name: str,
    runs: int,
    keys: Sequence[Any],
    key_of: Callable[[Row], Any],
    played: Callable[[Any], list[Row]],
) -> list[Row]:
    """Return rows by key; finished ones are stored in the folder, so they are not run again."""
    if workbench.mode == AS_PUBLISHED:
        return workbench.trials_of(name, runs, keys, key_of, played)
    return workbench.rows_of(name, keys, played)


def errors(workbench: Workbench, setting: Setting) -> list[Row]:
    """Return the rows of all algorithms at the 22 budgets."""
    return _at_budgets(
        workbench, f"{setting.name}-{setting.sigma:g}", setting, _names(workbench.mode)
    )


def noise(workbench: Workbench) -> list[Row]:
    """Return the rows of setting A at six noise levels."""
    rows = (row for sigma in SIGMAS for row in errors(workbench, replace(SETTING_A, sigma=sigma)))
    return [row._replace(panel=f"sigma={row.sigma:g}") for row in rows]


def multiples(workbench: Workbench) -> list[Row]:
    """Return R-UCBE at multiples of a: near the last change of the best arm, and everywhere."""
    names = FACTORS if workbench.mode == AS_PUBLISHED else FACTORS | BY_ESTIMATE
    detail = _at_budgets(workbench, "exploration-detail", SETTING_A, names, DETAIL, DETAIL_RUNS)
    budgets = _at_budgets(workbench, "exploration-budgets", SETTING_A, names)
    panels = {"detail": detail, "budgets": budgets}
    return [row._replace(panel=name) for name, rows in panels.items() for row in rows]


def imdb(workbench: Workbench) -> list[Row]:
    """Return the rows of IMDB at 11 budgets; without random draws, one run and no interval."""
    IMDB.problem()  # raises an error immediately if the data are missing
    names = _names(workbench.mode)
    drawn = [name for name in names if name in RANDOM_ON_RECORDED[workbench.mode]]
    fixed = [name for name in names if name not in drawn]

    def played(budget: int) -> list[Row]:
        rows = [_exact(row) for row in play(workbench, IMDB, fixed, 1, budget)]
        rows += play(workbench, IMDB, drawn, workbench.runs, budget)
        return sorted(rows, key=lambda row: names.index(row.algorithm))

    return _series(workbench, "imdb", workbench.runs, IMDB_BUDGETS, by_budget, played)


def _exact(row: Row) -> Row:
    """Return the row without intervals: another run would be the same."""
    return row._replace(
        error_low=row.error,
        error_high=row.error,
        regret_low=row.regret,
        regret_high=row.regret,
        pulls_low=row.pulls_best,
        pulls_high=row.pulls_best,
    )


def more_runs(workbench: Workbench, setting: Setting, rows: Sequence[Row], runs: int) -> list[Row]:
    """Return rows of a setting over more runs; they are stored in the folder like others."""

    def key_of(row: Row) -> tuple[str, int, float]:
        return row.algorithm, row.T, row.sigma

    def played(key: tuple[str, int, float]) -> list[Row]:
        name, budget, sigma = key
        return play(
            workbench, replace(setting, sigma=sigma or setting.sigma), [name], runs, budget
        )

    keys = list(dict.fromkeys(map(key_of, rows)))
    series = _series(workbench, f"more-{setting.name}", runs, keys, key_of, played)
    by_key = {key_of(row): row for row in series}
    return [by_key[key_of(row)]._replace(panel=row.panel) for row in rows]
