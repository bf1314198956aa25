"""The lines of `guarantees`: the paper's statements about a problem at a budget."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from latebloomer.core.formulas import window_length
from latebloomer.core.phases import log_bar, phase_lengths
from latebloomer.theory import complexity as cx
from latebloomer.theory import lower_bounds, rising_sr_bounds, round_robin_window_bounds
from latebloomer.theory import rising_ucbe_bounds as ucbe
from latebloomer.theory.complexity import Floats

PROBLEM, R_UCBE, R_SR, RR_SW, ANY = "problem", "R-UCBE", "R-SR", "RR-SW", "any algorithm"
ABOUT = (PROBLEM, R_UCBE, R_SR, RR_SW, ANY)
MOST_MEANS = 10**7  # maximum means computed to find the first budget of Remark 1
DELTA = 0.05  # delta in a = 10 log(2TK/delta)
LN10 = math.log(10)
RISES, INCREMENTS = "curves rise and are concave", "increments are at most c n^-beta"
PHASES = "T gamma <= Delta/2 in every phase"
# Statements without a number; their value is 1 if they hold.
CONDITIONS = (RISES, INCREMENTS, PHASES)


@dataclass(frozen=True)
class Guarantee:
    """A statement of the paper about one problem at one budget.

    Attributes
    ----------
    about : str
        Algorithm, "any algorithm" or "problem".
    source : str
        Place of the statement in the paper.
    statement : str
        The statement as text.
    value : float
        Number in the statement; nan if it does not apply, 0 if it is too small for a double.
    log10 : float
        Logarithm of the value to base 10.
    condition : str
        The condition with its numbers, or why the statement does not apply.
    """

    about: str
    source: str
    statement: str
    value: float
    log10: float
    condition: str

    @property
    def applies(self) -> bool:
        """True if the statement applies."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Case:
    """The numbers of a problem and a budget that all statements use."""

    means: Floats
    gaps: Floats
    best: int
    budget: int
    noise: float
    window: float
    beta: float
    c: float
    iota: float
    exploration: float | None
    broken: str  # how Assumption 1 is violated; empty if it holds
    curves: Any  # the curves as passed: the first budget of Remark 1 may be larger than T

    @property
    def arms(self) -> int:
        return len(self.means)

    @cached_property
    def least_c(self) -> float:
        """Smallest c with which Assumption 2 holds for `beta`."""
        return cx.smallest_c(self.means, self.beta)

    @property
    def steep(self) -> str:
        """How Assumption 2 is violated; empty if it holds."""
        if self.least_c <= self.c * (1 + 1e-12):
            return ""
        return f"beta = {self.beta:.4g} needs c >= {self.least_c:.4g}, and c = {self.c:.4g}"


def _line(about: str, source: str, statement: str, value: float, condition: str) -> Guarantee:
    log10 = math.log10(value) if 0 < value < math.inf else math.copysign(math.inf, value - 0.5)
    return Guarantee(about, source, statement, value, log10, condition)


def _bound(about: str, source: str, statement: str, log: float, condition: str) -> Guarantee:
    """Return a line for a bound, from its natural logarithm."""
    says = f"{condition}; above 1: it says nothing" if log > 0 else condition
    return Guarantee(about, source, statement, cx.exponential(log), log / LN10, says)


def _no(about: str, source: str, statement: str, because: str) -> Guarantee:
    why = f"does not apply, because {because}"
    return Guarantee(about, source, statement, math.nan, math.nan, why)


def _problem(case: Case) -> Iterator[Guarantee]:
    some = ", ".join(f"{gap:.4g}" for gap in np.sort(case.gaps)[1:6].tolist())
    more = ", ..." if case.arms > 6 else ""
    if case.broken:
        yield _no(PROBLEM, "Assumption 1", RISES, case.broken)
    else:
        yield _line(PROBLEM, "Assumption 1", RISES, 1.0, f"at every pull up to {case.budget:,}")
    if case.steep:
        yield _no(PROBLEM, "Assumption 2", INCREMENTS, case.steep)
    else:
        text = f"beta = {case.beta:.4g} needs c >= {case.least_c:.4g}"
        yield _line(PROBLEM, "Assumption 2", INCREMENTS, 1.0, text)
    gaps = f"arm {case.best} is best; gaps {some}{more}"
    yield _line(PROBLEM, "Eq. (complxIndex)", "H_{1,2}", cx.h1(case.gaps), gaps)
    yield _line(PROBLEM, "Thm 2", "H_2", cx.h2(case.gaps), gaps)


def _rising_ucbe(case: Case) -> Iterator[Guarantee]:
    name = f"{R_UCBE}"
    limit = partial(ucbe.exploration_limit, case.means, case.budget, case.noise, case.window)
    zero, half = limit(), limit(iota=case.iota)
    yield _limit_line("a*(0)", zero)
    yield from _ucbe_error(case, zero)
    yield _ucbe_regret(case, half)
    right = ucbe.minimum_budget(case.gaps, case.window, case.beta, case.c)
    yield _budget_line(name, "Cor. 1, Eq. (timeBoundUCB)", right, case)
    first = partial(ucbe.first_budget, window=case.window, beta=case.beta, c=case.c)
    yield _first_line(name, "Remark 1, Eq. (timeBoundUCB)", case, first)
    closed = partial(
        ucbe.exploration_limit_polynomial,
        case.gaps, case.budget, case.noise, case.window, case.beta, case.c,
    )  # fmt: skip
    yield _limit_line("a*(0)", closed(), "Cor. 1, Eq. (aStar)")
    yield _ucbe_closed_regret(case, closed(iota=case.iota))


def _limit_line(
    statement: str, limit: float | ucbe.NoExploration, source: str = "Thm 1, Eq. (implicit_NiT)"
) -> Guarantee:
    if isinstance(limit, ucbe.NoExploration):
        because = re.sub(r" \[Mussi24, [^\]]*\]$", "", limit.reason)
        because = re.sub(r"\[Mussi24, ([^\]]*)\]", r"\1", because)
        return _no(R_UCBE, source, statement, because)
    return _line(R_UCBE, source, statement, limit, "the largest a that is allowed")


def _ucbe_error(case: Case, limit: float | ucbe.NoExploration) -> Iterator[Guarantee]:
    theory = ucbe.theory_exploration(case.arms, case.budget, DELTA)
    log = math.log(2 * case.budget * case.arms)
    own = [("a*(0)", limit if isinstance(limit, float) else math.nan)]
    if case.exploration is not None:
        own = [("the given a", case.exploration)]
    source, statement = "Thm 1, Eq. (ucb_error_prob_ub)", "error of argmax B <= 2TK exp(-a/10)"
    for what, a in (*own, (f"10 log(2TK/{DELTA:g})", theory)):
        because = _too_large(a, limit, "a*(0)")
        if because:
            yield _no(R_UCBE, source, statement, because)
        else:
            yield _bound(R_UCBE, source, statement, log - a / 10, f"at a = {what} = {a:.4g}")


def _too_large(a: float, limit: float | ucbe.NoExploration, name: str) -> str:
    """Return why Thm 1 does not cover an exploration parameter; empty if it does."""
    if isinstance(limit, ucbe.NoExploration):
        return f"there is no {name}"
    return f"a = {a:.4g} is above {name} = {limit:.4g}" if a > limit else ""


def _ucbe_regret(case: Case, limit: float | ucbe.NoExploration) -> Guarantee:
    source, name = "Thm 1, Eq. (simpleRegretUCB)", f"a*({case.iota:g})"
    statement = "simple regret <= error + mu(T) - mu(iota T)"
    promised = math.floor(case.iota * case.budget)
    a = case.exploration
    if a is None:
        a = limit if isinstance(limit, float) else math.nan
    because = _too_large(a, limit, name)
    if not because and promised < 1:
        because = f"iota T = {case.iota * case.budget:g} is below one pull"
    if because:
        return _no(R_UCBE, source, statement, because)
    error = math.log(2 * case.budget * case.arms) - a / 10
    log = _log_sum([error, _log_late(case, promised)])
    return _bound(R_UCBE, source, statement, log, f"at a = {a:.4g}; rewards in [0, 1]")


def _ucbe_closed_regret(case: Case, limit: float | ucbe.NoExploration) -> Guarantee:
    source, name = "Cor. 1", f"a*({case.iota:g}) of Eq. (aStar)"
    statement = "simple regret <= error + c 2^beta iota^-beta T^(1-beta)"
    a = case.exploration
    if a is None:
        a = limit if isinstance(limit, float) else math.nan
    because = _too_large(a, limit, name)
    if not because and case.iota == 0:
        because = "iota = 0 promises no pull"
    if because:
        return _no(R_UCBE, source, statement, because)
    error = math.log(2 * case.budget * case.arms) - a / 10
    late = case.beta * math.log(2 / case.iota) + _log_order(case)
    return _bound(R_UCBE, source, statement, _log_sum([error, late]), f"at a = {a:.4g}")


def _log_order(case: Case) -> float:
    """Return log(c T^(1-beta))."""
    return math.log(case.c) + (1 - case.beta) * math.log(case.budget)


def _rising_sr(case: Case) -> Iterator[Guarantee]:
    if case.budget <= case.arms:
        because = f"its phases need more than K = {case.arms} pulls"
        yield _no(R_SR, "Thm 2, Eq. (SRErrorProb)", "error", because)
        return
    condition = rising_sr_bounds.phase_condition(case.means, case.budget, case.window)
    pairs = enumerate(zip(condition.bias, condition.allowed, strict=True), start=1)
    lines = [f"phase {j}: {bias:.3g} <= {most:.3g}" for j, (bias, most) in pairs]
    failing = [
        f"T gamma in phase {j} is {condition.bias[j - 1]:.3g}, above Delta/2 = "
        f"{condition.allowed[j - 1]:.3g}"
        for j in condition.failing
    ]
    phases = ", ".join(map(str, condition.failing))
    because = f"the condition fails in phases {phases}" if failing else ""
    if failing:
        yield _no(R_SR, "Thm 2, Eq. (timeBudgetLBSR2)", PHASES, _few(failing))
    else:
        yield _line(R_SR, "Thm 2, Eq. (timeBudgetLBSR2)", PHASES, 1.0, _few(lines))
    yield from _sr_bounds(case, because)
    right = rising_sr_bounds.minimum_budget(case.gaps, case.window, case.beta, case.c)
    yield _budget_line(R_SR, "Cor. 2, Eq. (timeBudgetLBSR)", right, case)
    yield _sr_closed_regret(case, right)
    first = partial(rising_sr_bounds.first_budget, window=case.window, beta=case.beta, c=case.c)
    yield _first_line(R_SR, "Remark 1, Eq. (timeBudgetLBSR)", case, first)


def _few(items: list[str], most: int = 3) -> str:
    more = f" ({len(items) - most} more)" if len(items) > most else ""
    return "; ".join(items[:most]) + more


def _sr_bounds(case: Case, because: str) -> Iterator[Guarantee]:
    printed = "Thm 2, Eq. (SRErrorProb)", "error <= K(K-1)/2 exp(...)"
    proved = "Thm 2, proof", "error, as its proof supports it"
    regret = "Thm 2", "simple regret <= error + mu(T) - mu(N_(K-1))"
    if because:
        for place in (printed, proved, regret):
            yield _no(R_SR, *place, because)
        return
    least = float(cx.signal_to_noise(np.array(cx.h2(case.gaps) ** -0.5), case.noise))
    exponent = -case.window / 8 * (case.budget - case.arms) / log_bar(case.arms) * least
    log = math.log(case.arms * (case.arms - 1) / 2) + exponent
    yield _bound(R_SR, *printed, log, "constant 8, as printed")
    error = _log_sum(_sr_terms(case))
    yield _bound(R_SR, *proved, error, "constant 16")
    log = _log_sum([error, _log_late(case, phase_lengths(case.arms, case.budget)[-1])])
    yield _bound(R_SR, *regret, log, "with the error that the proof supports")


def _sr_closed_regret(case: Case, right: float) -> Guarantee:
    source = "Cor. 2"
    statement = "simple regret <= error + c 4^beta T^(1-beta) log(K)^beta"
    if case.budget < right:
        return _no(R_SR, source, statement, f"T = {case.budget:,} is below {right:.4g}")
    late = case.beta * math.log(4 * log_bar(case.arms)) + _log_order(case)
    log = _log_sum([_log_sum(_sr_terms(case)), late])
    return _bound(R_SR, source, statement, log, "with the error that the proof supports")


def _sr_terms(case: Case) -> list[float]:
    """Return the logarithms of the terms of the error in the proof of Thm 2."""
    signal = cx.signal_to_noise(np.sort(case.gaps), case.noise)
    return [
        -max(1, window_length(case.window, n)) / 16 * x
        for j, n in enumerate(phase_lengths(case.arms, case.budget), 1)
        for x in signal[-j:].tolist()
    ]


def _log_late(case: Case, pulls: int) -> float:
    """Return log(mu(T) - mu(pulls)) of the best arm, at least 1 pull."""
    best = case.means[case.best]
    late = float(best[-1] - best[pulls - 1])
    return math.log(late) if late > 0 else -math.inf


def _log_sum(terms: Iterable[float]) -> float:
    """Return log(sum(exp(terms))).

    >>> round(_log_sum([-1000.0, -1000.0]) + 1000, 6)  # log 2
    0.693147
    """
    values = list(terms)
    top = max(values)
    if not math.isfinite(top):
        return top
    return top + math.log(sum(math.exp(x - top) for x in values))


def _round_robin_window(case: Case) -> Iterator[Guarantee]:
    bounds, source = round_robin_window_bounds, "App. E, Thm (thr:ub_error_us)"
    each = case.budget // case.arms
    statement = "error, as its proof supports it"
    gamma = cx.best_increments(case.means, case.budget)
    bias = case.budget * float(gamma[each - window_length(case.window, each)])
    allowed = float(np.sort(case.gaps)[1]) / 2
    fails = f"T gamma = {bias:.3g} is above Delta_(2)/2 = {allowed:.3g}" if bias > allowed else ""
    if fails or each == 0:
        yield _no(RR_SW, source, statement, fails or "there is not one pull for each arm")
    else:
        signal = cx.signal_to_noise(np.sort(case.gaps)[1:], case.noise)
        h = max(1, window_length(case.window, each))
        condition = f"T gamma = {bias:.3g} <= Delta_(2)/2 = {allowed:.3g}; constant 16"
        yield _bound(RR_SW, source, statement, _log_sum((-h / 16 * signal).tolist()), condition)
    right = bounds.minimum_budget(case.gaps, case.window, case.beta, case.c)
    yield _budget_line(RR_SW, "App. E, Eq. (us_horizon_lb)", right, case)


def _budget_line(about: str, source: str, right: float, case: Case) -> Guarantee:
    met = "met" if case.budget >= right else "not met"
    condition = f"{met} at T = {case.budget:,}; the gaps are those at T"
    return _line(about, source, "T is at least", right, condition)


def _first_line(about: str, source: str, case: Case, first_budget: Any) -> Guarantee:
    length = getattr(case.curves, "length", None)
    if not isinstance(case.curves, cx.HasMeans):
        length = np.shape(case.curves)[1]
    most = min(MOST_MEANS // case.arms, length or 10**6, 10**6)
    first = first_budget(case.curves, most=most)
    statement = "first T that satisfies it"
    if first is None:
        return _no(about, source, statement, f"no T up to {most:,} does")
    needed = cx.smallest_c(cx.as_problem(case.curves, max(first, 2))[:, :first], case.beta)
    text = "with the gaps at each T"
    if needed > case.c * (1 + 1e-12):
        text = f"{text}; but up to there the increments need c >= {needed:.4g}"
    return _line(about, source, statement, float(first), text)


def _lower_bounds(case: Case) -> Iterator[Guarantee]:
    arms, beta = case.arms, case.beta
    right = lower_bounds.minimum_budget(case.gaps, beta)
    needed, source = lower_bounds.arms_needed(beta), "Thm 3, Eq. (minTT)"
    statement = "no algorithm is right on all such instances below T ="
    enough = arms >= needed
    few = f"its instances need K >= {needed:.4g} arms at beta = {beta:.4g}, and K = {arms}"
    if enough:
        yield _line(ANY, source, statement, right, f"T = {case.budget:,}")
    else:
        yield _no(ANY, source, statement, few)
    complexity = cx.h1(case.gaps)
    statements = (
        ("some error >= 1/4 exp(-8T/(sigma^2 H))", 8.0, 1.0, "among instances with H_{1,2} up to"),
        ("some error >= 1/4 exp(-32T/(sigma^2 log K H))", 32.0, math.log(arms),
         "on an instance with H_{1,2} ="),
    )  # fmt: skip
    for statement, factor, more, where in statements:
        because = ""
        if arms < needed - 1:
            because = few.replace(f"{needed:.4g}", f"{needed - 1:.4g}")
        elif case.budget < right:
            because = f"T = {case.budget:,} is below Thm 3's {right:.4g}"
        elif case.noise == 0:
            because = "there is no noise: one pull tells the instances apart"
        if because:
            yield _no(ANY, "Thm 4", statement, because)
        else:
            log = math.log(0.25) - factor * case.budget / (case.noise**2 * complexity * more)
            yield _bound(ANY, "Thm 4", statement, log, f"{where} {complexity:.4g}")


def statements(case: Case) -> tuple[Guarantee, ...]:
    """Return all statements, in the paper's order."""
    parts = (_problem, _rising_ucbe, _rising_sr, _round_robin_window, _lower_bounds)
    return tuple(_under_assumptions(line, case) for part in parts for line in part(case))


# Places of statements that need Assumption 2 too.
NEED_ASSUMPTION_2 = ("Cor.", "Remark", "App. E, Eq.")


def _under_assumptions(line: Guarantee, case: Case) -> Guarantee:
    """Return the line, or why it does not apply if an assumption of its theorem is violated."""
    if line.about in (PROBLEM, ANY):  # the lower bounds are about instances of their own
        return line
    steep = case.steep if line.source.startswith(NEED_ASSUMPTION_2) else ""
    because = case.broken or steep
    return _no(line.about, line.source, line.statement, because) if because else line
