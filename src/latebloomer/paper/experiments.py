"""The paper's settings and algorithms, and the formula behind its exploration parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from latebloomer.policies.base import Policy
from latebloomer.policies.registry import make_policy
from latebloomer.policies.rising_ucbe import UCBE, RisingUCBE
from latebloomer.problems import Gaussian, Noiseless, Problem, imdb, paper_a, paper_b
from latebloomer.problems.curves import Floats
from latebloomer.theory import NoExploration, exploration_limit, gaps

WINDOW = 0.25
BUDGETS = (
    100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600,
    1800, 2000, 2400, 2800, 3200,
)  # fmt: skip
IMDB_BUDGETS = (500, 1000, 2000, 3000, 4000, 5000, 7000, 10000, 15000, 20000, 30000)
SIGMAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
ALGORITHMS = ("RR", "RR-SW", "UCB-E", "R-UCBE", "SR", "R-SR", "Prob-1", "ETC", "Rest-Sure")
THEORY = "R-UCBE (theory)"  # the additional series: a = 10 log(2TK/delta)


def the_nine(sigma: float, exploration: float | str) -> dict[str, Policy]:
    """Return the nine algorithms in the paper's order; `simulate` gives UCB-E the gaps."""
    nine = {name: make_policy(name.lower()) for name in ALGORITHMS}
    return nine | {"R-UCBE": RisingUCBE(exploration=exploration, noise=sigma)}


@dataclass(frozen=True)
class Setting:
    """A problem of the paper with the constants of its experiments."""

    name: str
    sigma: float  # standard deviation of the noise, which R-UCBE knows
    beta: float  # in the formula for a
    rho: float  # of ETC in the published numbers; the text has .8 everywhere
    make: Callable[[], Problem]
    published_means: Callable[[int], Floats]  # mu_i(n), n = 0, ..., T, as in the authors' code
    scored: Callable[[int], int] | None = None  # arm counted as right, if not the best one
    printed_change: int | None = None  # the paper's last budget at which the best arm changes

    def problem(self) -> Problem:
        """Return the problem with this noise."""
        made = self.make()
        if isinstance(made.noise, Noiseless):
            return made
        return replace(made, noise=Gaussian(self.sigma), label=self.name)

    def gaps(self, budget: int) -> Floats:
        """Return Delta_i(T), from the means of the authors' code."""
        return gaps(self.published_means(budget)[:, 1:], budget)

    def exploration(self, budget: int) -> float:
        r"""Return the authors' a, without the factor 10.

        .. math:: a = \frac{\varepsilon^3}{4 \sigma^2} \Bigl( \frac{T^{\beta - 1}}{\phi^\beta}
                  - (1 - 2\varepsilon)^{-\beta} \Bigr)^2, \qquad \phi = \sum \Delta_i^{-2/3}

        The first term is (T/phi)^(1/2) if beta is at least 3/2. This is not a* of Corollary 1: it
        leaves out K - 1 and c and has the exponent 2/3 for every beta, and in settings A and B the
        bracket is negative at all budgets, where the closed form has no a*. Theorem 1's own a*
        exists at the larger budgets (`exploration_limits`).

        >>> round(SETTING_A.exploration(100), 6)
        223.289586
        """
        behind = [gap for gap in self.gaps(budget).tolist() if gap != 0]
        phi = sum(gap ** (-2 / 3) for gap in behind)
        rising = (1 - 2 * WINDOW) ** -self.beta
        if self.beta >= 1.5:
            bracket = (budget / phi) ** 0.5 - rising
        else:
            bracket = budget ** (self.beta - 1) / phi**self.beta - rising
        return float(WINDOW**3 / (4 * self.sigma**2) * bracket**2)

    def exploration_limits(self) -> dict[int, float]:
        """Return a*(0) of Theorem 1, Eq. (ucb_can_be_learned), at the budgets that have one.

        >>> {budget: round(a, 2) for budget, a in SETTING_A.exploration_limits().items()}
        {1600: 0.03, 1800: 0.77, 2000: 2.36, 2400: 7.31, 2800: 13.98, 3200: 21.93}
        """
        means = self.problem().means(BUDGETS[-1])
        found = {
            budget: exploration_limit(means[:, :budget], budget, self.sigma, WINDOW)
            for budget in BUDGETS
        }
        return {budget: a for budget, a in found.items() if not isinstance(a, NoExploration)}

    def ucbe_exploration(self, budget: int) -> float:
        """Return UCB-E's a with these gaps."""
        behind = tuple(self.gaps(budget).tolist())
        return UCBE(gaps=behind).settings(len(behind), budget, budget).exploration


def _means_a(budget: int) -> Floats:
    pulls = np.arange(budget + 1)
    return np.array([curve(pulls) for curve in paper_a().curves])


def _means_b(budget: int) -> Floats:
    """Return the means of B; the authors' code caps the first arm at .99 (text: 1)."""
    n = np.arange(budget + 1)
    return np.array(
        [np.minimum(0.0025 * n, 0.99), 0.47 * (1 - 10 / (10 + n)), np.minimum(0.004 * n, 0.7)]
    )


@cache
def _recorded() -> Problem:
    return imdb()


def _means_imdb(budget: int) -> Floats:
    """Return the means of IMDB; the first pull has the first recorded value."""
    return np.asarray(_recorded().means(budget + 1))


def _scored_b(budget: int) -> int:
    """Return arm 0 from T = 200 on, although arm 2 is the best up to 279."""
    if budget >= 200:
        return 0
    return 1 if budget < 108 else 2


def _scored_imdb(budget: int) -> int:
    """Return the optimal arm in Table 2, whose row of optimal arms is hard-coded."""
    return 5 if budget < 2000 else 2


SETTING_A = Setting("setting-a", 0.01, 1.3, 0.98, paper_a, _means_a, printed_change=185)
SETTING_B = Setting(
    "setting-b", 0.01, 1.001, 0.8, paper_b, _means_b, _scored_b, printed_change=280
)
IMDB = Setting("imdb", 0.05, 1.5, 0.8, _recorded, _means_imdb, _scored_imdb)
