"""The table of the paper's guarantees for one problem at one budget.

Each line is a statement of the paper with its number, or "does not apply, because ..." with the
numbers of the condition that fails. Bounds are stored as logarithms, because many are too small
for a double. `guarantee_lines.py` makes the lines.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from latebloomer._util.text import aligned, data_frame
from latebloomer.errors import SettingError, unknown
from latebloomer.theory import complexity as cx
from latebloomer.theory.complexity import Floats
from latebloomer.theory.guarantee_lines import (
    ABOUT,
    ANY,
    CONDITIONS,
    R_SR,
    R_UCBE,
    RR_SW,
    Case,
    Guarantee,
    statements,
)

# Below LEAST_BETA, budgets are too large to be useful: fit c instead.
LEAST_BETA, USUAL_BETA = 1.1, 1.5
LARGEST_BETA = 10.0  # for curves that hardly rise, which allow any beta

# The orders of sections 4 to 7, without constants and logarithms of T. H is H_{1,eta}, the sum of
# Delta_i^-eta; q = min(beta, 3/2). The paper has them in its text, not in a table.
RATES = (
    ("", "budget needed", "error, the negative exponent", "simple regret"),
    (R_UCBE, "H_{1,1/q}^(q/(q-1))", "a*(0)/10: eps^3 T^(2q-2)/(sigma^2 H_{1,1/q}^(2q))",
     "T^(1-beta)"),
    (R_SR, "(log K max_i i Delta_(i)^(-1/beta))^(beta/(beta-1))", "eps T/(sigma^2 log K H_2)",
     "T^(1-beta)"),
    (RR_SW, "(K^beta/Delta_(2))^(1/(beta-1))", "eps T Delta_(2)^2/(sigma^2 K)", "not stated"),
    (ANY, "H_{1,1/(beta-1)}", "T/(sigma^2 log K H_{1,2})", "T^(1-beta) (K = 2)"),
)  # fmt: skip


@dataclass(frozen=True)
class Guarantees:
    """All statements about one problem at one budget; `print` it.

    Attributes
    ----------
    label : str
        Label of the problem.
    arms : int
        Number of arms, K.
    budget : int
        Total number of pulls, T.
    noise : float
        Sub-Gaussian level of the rewards, sigma.
    window : float
        Share of an arm's pulls whose rewards its rating uses, epsilon.
    beta : float
        Exponent of Assumption 2.
    c : float
        Constant of Assumption 2.
    iota : float
        Share of the budget that the regret bound of R-UCBE promises to the best arm.
    statements : tuple[Guarantee, ...]
        The statements, in the paper's order.
    """

    label: str
    arms: int
    budget: int
    noise: float
    window: float
    beta: float
    c: float
    iota: float
    statements: tuple[Guarantee, ...]

    def __str__(self) -> str:
        head = (
            f"{self.label}: {self.arms} arms, T = {self.budget:,}, sigma = {self.noise:.4g}, "
            f"epsilon = {self.window:g}, beta = {self.beta:.4g}, c = {self.c:.4g}, "
            f"iota = {self.iota:g}"
        )
        rows = [("about", "source", "statement", "value", "condition")]
        rows += [(g.about, g.source, g.statement, shown(g), g.condition) for g in self.statements]
        rates = [f"  {' | '.join(line)}" for line in RATES]
        return "\n".join([head, *aligned(rows, "<<<><"), "Rates, without constants:", *rates])

    def of(self, about: str) -> list[Guarantee]:
        """Return the statements about one algorithm."""
        if about not in ABOUT:
            raise unknown("algorithm of these statements", about, ABOUT)
        return [statement for statement in self.statements if statement.about == about]

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as plain data, with None in place of nan and infinities."""
        lines = [
            asdict(statement) | {"applies": statement.applies} for statement in self.statements
        ]
        return _finite(asdict(self) | {"statements": lines, "rates": [list(x) for x in RATES]})

    def to_frame(self) -> Any:
        """Return the statements as a pandas DataFrame."""
        return data_frame(
            [asdict(statement) | {"applies": statement.applies} for statement in self.statements]
        )


def _finite(value: Any) -> Any:
    """Return plain data with None in place of nan and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def shown(statement: Guarantee) -> str:
    """Return the value as text; a power of ten if it is too small or too large for a double.

    >>> shown(Guarantee("", "", "", 0.0, -1234.5, "")), shown(Guarantee("", "", "", 0.5, -0.3, ""))
    ('10^-1234.5', '0.5')
    """
    if not statement.applies:
        return "-"
    if statement.statement in CONDITIONS:
        return "holds"
    if statement.value.is_integer() and 0 < statement.value < 1e15:
        return f"{statement.value:,.0f}"
    tiny = abs(statement.log10) > 300 and math.isfinite(statement.log10)
    return f"10^{statement.log10:.1f}" if tiny else f"{statement.value:.4g}"


def guarantees(
    problem: cx.Curves,
    budget: int,
    *,
    noise: float | None = None,
    window: float = 0.25,
    exploration: float | None = None,
    beta: float | None = None,
    c: float | None = None,
    iota: float = 0.5,
) -> Guarantees:
    """Return what the paper guarantees for a problem at a budget.

    Parameters
    ----------
    problem : Curves
        A `Problem`, or a table of means, one row per arm.
    budget : int
        Total number of pulls, T.
    noise : float | None
        The sub-Gaussian level sigma of the rewards. Default: that of the problem's noise.
    window : float
        Epsilon, the share of an arm's pulls whose rewards its rating uses.
    exploration : float | None
        Exploration parameter a of R-UCBE. Default: the largest that the theorem allows.
    beta : float | None
        Exponent of Assumption 2. Default: the largest value that is possible with c.
    c : float | None
        Constant of Assumption 2. Default: 1, or the smallest value that is possible with `beta` if
        that is set.
    iota : float
        Share of the budget that the regret bound of R-UCBE promises to the best arm.

    Returns
    -------
    Guarantees
        The statements; `print` them.

    Examples
    --------
    >>> still = [[0.75] * 4000, [0.25] * 4000]
    >>> found = guarantees(still, 4000, noise=0.01)
    >>> [shown(one) for one in found.of("R-SR") if one.source.startswith("Thm 2")]
    ['holds', '10^-67824.6', '10^-33861.4', '10^-33861.4']
    >>> found = guarantees(still, 100, noise=0.1, exploration=50)
    >>> found.of("R-UCBE")[1].condition
    'does not apply, because a = 50 is above a*(0) = 9.766'
    """
    cx.need(window=window, iota=iota)
    means = cx.as_problem(problem, budget)[:, :budget]
    case = Case(
        means,
        cx.gaps(means, budget),
        cx.best_arm(means, budget, cx.TIE),
        budget,
        _noise_of(problem, len(means), noise),
        window,
        *_assumption_2(means, beta, c),
        iota,
        exploration,
        _broken(means),
        problem,
    )
    cx.need(noise=case.noise)
    label = str(getattr(problem, "label", "curves"))
    known = (case.noise, window, case.beta, case.c, iota)
    return Guarantees(label, case.arms, budget, *known, statements(case))


def _noise_of(problem: Any, arms: int, noise: float | None) -> float:
    """Return sigma: the argument, or else the level of the problem's noise."""
    level = noise
    if level is None and hasattr(problem, "noise"):
        level = problem.noise.level(arms)
    if level is None:
        raise SettingError(
            "noise=None, but the bounds need a sub-Gaussian level sigma, and this problem has "
            "none: give noise=, a number"
        )
    return float(level)


def _assumption_2(means: Floats, beta: float | None, c: float | None) -> tuple[float, float]:
    """Return beta and c of Assumption 2: the arguments, with fitted values for missing ones."""
    if beta is None:
        largest = cx.largest_beta(means, 1.0 if c is None else c)
        usable = largest is not None and largest >= LEAST_BETA
        beta = min(float(largest), LARGEST_BETA) if usable and largest else USUAL_BETA
    smallest = cx.smallest_c(means, beta)
    if c is None:
        c = 1.0 if smallest <= 1 else smallest
    cx.need(beta=beta, c=c)
    return beta, c


def _broken(means: Floats) -> str:
    """Return how Assumption 1 is violated; an empty text if it holds."""
    falls, bends = cx.violations(means, cx.TIE)
    for what, violations in (("falls", falls), ("bends up", bends)):
        first = next((violation for violation in violations if violation), None)
        if first is not None:
            return f"arm {first.arm} {what} at pull {first.pull} (Assumption 1)"
    return ""
