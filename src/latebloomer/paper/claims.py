"""The paper's empirical claims: each sentence beside the check that decides it.

A check is given the rows of a figure's runs and says whether the sentence holds in them;
`claim_results.py` asks it twice, of the runs as written and of those as published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from latebloomer.paper.experiments import ALGORITHMS, IMDB_BUDGETS, SETTING_A, SETTING_B, SIGMAS
from latebloomer.paper.figure import Row, select
from latebloomer.paper.series import apart, at, largest, mean, means, over, settles, successes

OURS = ("R-UCBE", "R-SR")
BASELINES = tuple(name for name in ALGORITHMS if name not in OURS)
PRINTED = 185  # the last change of the best arm in setting A, as the text has it
CLOSE = 0.02  # two mean errors this near count as close


class Evidence(NamedTuple):
    """Whether a claim holds in some runs, and the numbers that say so."""

    holds: bool
    numbers: str


Rows: TypeAlias = Sequence[Row]
Check: TypeAlias = Callable[[Rows], Evidence]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it."""

    figure: str  # whose runs decide it
    where: str
    sentence: str
    decided_by: str
    check: Check


CLAIMS: list[Claim] = []  # in the order of the paper


def claim(figure: str, where: str, sentence: str, decided_by: str) -> Callable[[Check], Check]:
    """Mark a check as what decides a sentence."""

    def add(check: Check) -> Check:
        CLAIMS.append(Claim(figure, where, sentence, decided_by, check))
        return check

    return add


on_setting_a = partial(claim, "setting-a", "section 8")
on_simple_regret = partial(claim, "simple-regret", "section 8")
on_exploration = partial(claim, "exploration", "section 8")
on_setting_b = partial(claim, "setting-b", "appendix H, challenging")
on_noise = partial(claim, "noise", "appendix H, noise")
on_imdb = partial(claim, "imdb", "appendix H, IMDB")


def listed(values: dict[str, float], digits: int = 3) -> str:
    """'RR .123, SR .4' of names with numbers."""
    return ", ".join(f"{name} {short(value, digits)}" for name, value in values.items())


def short(value: float, digits: int = 3) -> str:
    """A number without its leading zero.

    >>> short(0.0625), short(1.0), short(-0.5)
    ('.062', '1', '-.5')
    """
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text or "0"


# --- section 8: error in setting A ---


@on_setting_a(
    "The optimal arm changes depending on whether T is in [1, 185] or beyond.",
    "the best arm has one change, from T = 185 to 186",
)
def _changes(rows: Rows) -> Evidence:
    changes = SETTING_A.problem().changes(3200)[1:]
    said = ", ".join(f"arm {arm + 1} from {start}" for start, arm in changes)
    return Evidence([start for start, _ in changes] == [PRINTED + 1], f"arm 3 up to 69, {said}")


@on_setting_a(
    "Before T = 185 all the algorithms provide large errors (> 0.2).",
    "every error at T = 100 and 150 is above .2",
)
def _all_large(rows: Rows) -> Evidence:
    early = [row for name in ALGORITHMS for row in over(rows, name, last=PRINTED)]
    low = min(early, key=lambda row: row.error)
    said = f"smallest error {short(low.error)} ({low.algorithm}, T = {low.T})"
    return Evidence(low.error > 0.2, said)


@on_setting_a(
    "Before T = 185 R-UCBE outperforms the others by a large margin.",
    "at T = 100 and 150 R-UCBE's interval is below that of each other algorithm",
)
def _ahead_early(rows: Rows) -> Evidence:
    said, holds = [], True
    for row in over(rows, "R-UCBE", last=PRINTED):
        others = [at(rows, name, row.T) for name in ALGORITHMS if name != "R-UCBE"]
        best = min(others, key=lambda other: other.error)
        holds &= all(apart(row, other) for other in others)
        said.append(
            f"T = {row.T}: {short(row.error)}, next {short(best.error)} ({best.algorithm})"
        )
    return Evidence(holds, "; ".join(said))


def _stays_below(limit: float, rows: Rows) -> Evidence:
    worst = largest(rows)
    return Evidence(worst.error < limit, f"largest error {short(worst.error)} (T = {worst.T})")


@on_setting_a(
    "Shortly after T = 185 R-UCBE starts providing the correct suggestion consistently.",
    "R-UCBE's error is below .05 at every T >= 200",
)
def _consistent(rows: Rows) -> Evidence:
    return _stays_below(0.05, over(rows, "R-UCBE", 200))


@on_setting_a(
    "R-SR begins to identify the optimal arm (error < 0.05) for T > 1000.",
    "R-SR's error is below .05 at every T > 1000",
)
def _rising_sr_begins(rows: Rows) -> Evidence:
    worst, start = largest(over(rows, "R-SR", 1001)), settles(rows, "R-SR", 0.05)
    said = f"largest error above T = 1000: {short(worst.error)}; below .05 from T = {start} on"
    return Evidence(worst.error < 0.05, said)


@on_setting_a(
    "Both algorithms perform significantly better than the baselines.",
    "the mean error over the 22 budgets of each is below that of every baseline",
)
def _better_than_baselines(rows: Rows) -> Evidence:
    found = means(rows)
    best = min(found[name] for name in BASELINES)
    return Evidence(all(found[name] < best for name in OURS), f"means: {listed(found)}")


# --- section 8: simple regret in setting A ---


@on_simple_regret(
    "In simple regret R-SR outperforms R-UCBE and all the other algorithms.",
    "R-SR's mean regret over the 22 budgets is the smallest",
)
def _least_regret(rows: Rows) -> Evidence:
    found = means(rows, "regret")
    budgets = [row.T for row in over(rows, "R-SR")]
    first = sum(
        all(at(rows, "R-SR", t).regret <= at(rows, name, t).regret for name in ALGORITHMS)
        for t in budgets
    )
    said = f"R-SR has the smallest at {first} of {len(budgets)} budgets; means: {listed(found)}"
    return Evidence(next(iter(found)) == "R-SR", said)


@on_simple_regret(
    "For T > 185 R-UCBE detects the optimal arm but suffers a large simple regret.",
    "at every T > 185 its error is below .05 and its regret's interval above R-SR's",
)
def _large_regret(rows: Rows) -> Evidence:
    late = over(rows, "R-UCBE", PRINTED)
    more = [row for row in late if apart(at(rows, "R-SR", row.T), row, "regret")]
    right = all(row.error < 0.05 for row in late)
    ends = f"T = 3200: {short(late[-1].regret)} against {short(at(rows, 'R-SR', 3200).regret)}"
    return Evidence(
        right and len(more) == len(late), f"above R-SR's at {len(more)} of {len(late)}; {ends}"
    )


@on_simple_regret(
    "This is explained by a small number of pulls of the optimal arm.",
    "where R-SR's error stays below .05, R-UCBE pulls the best arm less than R-SR at every T",
)
def _few_pulls(rows: Rows) -> Evidence:
    late = over(rows, "R-UCBE", settles(rows, "R-SR", 0.05) or 3201)
    fewer = [row for row in late if row.pulls_best < at(rows, "R-SR", row.T).pulls_best]
    shares = [row.pulls_best / row.T for row in late] or [0.0]
    theirs = [at(rows, "R-SR", row.T).pulls_best / row.T for row in late] or [0.0]
    said = (
        f"fewer than R-SR's at {len(fewer)} of {len(late)} budgets; share of T at most "
        f"{short(max(shares))}, R-SR's at least {short(min(theirs))}"
    )
    return Evidence(bool(late) and len(fewer) == len(late), said)


# --- section 8: multiples of R-UCBE's a ---


def _at_multiple(rows: Rows, factor: float, budget: int) -> Row:
    return select(rows, panel="detail", factor=factor, T=budget)[0]


def _detail_until_change(rows: Rows) -> list[Row]:
    """With the usual a, on the fine grid of budgets."""
    return [row for row in select(rows, panel="detail", factor=1.0) if row.T <= PRINTED]


def _range(differences: Sequence[float]) -> str:
    return f"differences from {short(min(differences))} to {short(max(differences))}"


@on_exploration(
    "For T <= 185 values larger than a do not significantly impact R-UCBE.",
    "no T up to 185 (1000 runs) where the interval at 10a or 50a is apart from that at a",
)
def _larger_a(rows: Rows) -> Evidence:
    differences, disjoint = [], 0
    for usual in _detail_until_change(rows):
        for factor in (10.0, 50.0):
            other = _at_multiple(rows, factor, usual.T)
            differences.append(other.error - usual.error)
            disjoint += apart(other, usual) or apart(usual, other)
    said = f"intervals apart in {disjoint} of {len(differences)} pairs; {_range(differences)}"
    return Evidence(disjoint == 0, said)


@on_exploration(
    "For T <= 185 smaller values slightly decrease the performance.",
    "the mean over T up to 185 of the error at a/50 and a/10 less that at a is positive",
)
def _smaller_a(rows: Rows) -> Evidence:
    differences = [
        _at_multiple(rows, factor, usual.T).error - usual.error
        for factor in (0.02, 0.1)
        for usual in _detail_until_change(rows)
    ]
    average = sum(differences) / len(differences)
    return Evidence(average > 0, f"mean difference {short(average)}, {_range(differences)}")


@on_exploration(
    "For T > 185 different values of a seem not to impact the performance.",
    "no T above 185 where the interval at a multiple is apart from that at a",
)
def _any_a_late(rows: Rows) -> Evidence:
    late = [row for row in rows if row.T > PRINTED]
    pairs = [
        (row, other)
        for row in late
        for other in select(late, panel=row.panel, T=row.T, factor=1.0)
        if row.factor != 1.0
    ]
    disjoint = sum(apart(*pair) or apart(*pair[::-1]) for pair in pairs)
    differences = [row.error - other.error for row, other in pairs]
    said = f"intervals apart in {disjoint} of {len(pairs)} pairs; {_range(differences)}"
    return Evidence(disjoint == 0, said)


# --- appendix H: setting B, the challenging scenario ---


@on_setting_b(
    "The last time the optimal arm changes is T = 280.",
    "the last change of the best arm is at T = 280",
)
def _last_change(rows: Rows) -> Evidence:
    last, arm = SETTING_B.problem().changes(3200)[-1]
    return Evidence(last == 280, f"arm {arm + 1} from T = {last}")


@on_setting_b(
    "For short budgets (T < 280) Rest-Sure is the best and R-UCBE the second best.",
    "their mean errors over T < 280 are the smallest and the second smallest",
)
def _short_budgets(rows: Rows) -> Evidence:
    found = means(rows, last=279)
    return Evidence(list(found)[:2] == ["Rest-Sure", "R-UCBE"], f"means: {listed(found)}")


@on_setting_b(
    "For T > 550 R-UCBE has an error < 0.01.",
    "R-UCBE's error is below .01 at every T > 550",
)
def _nearly_always(rows: Rows) -> Evidence:
    return _stays_below(0.01, over(rows, "R-UCBE", 551))


@on_setting_b(
    "For large T Rest-Sure does not consistently suggest the optimal arm.",
    "Rest-Sure's error is above .05 at some T >= 1000",
)
def _unreliable(rows: Rows) -> Evidence:
    late = over(rows, "Rest-Sure", 1000)
    wrong = [row for row in late if row.error > 0.05]
    said = f"above .05 at {len(wrong)} of {len(late)} budgets from 1000 to 3200"
    return Evidence(len(wrong) > 0, f"{said}, T = 3200: {short(late[-1].error)}")


@on_setting_b(
    "R-SR starts providing a small error after R-UCBE does, at T about 1000.",
    "R-SR's error stays below .05 from a T in [800, 1200], R-UCBE's from a smaller one",
)
def _later(rows: Rows) -> Evidence:
    slow, fast = settles(rows, "R-SR", 0.05), settles(rows, "R-UCBE", 0.05)
    holds = slow is not None and fast is not None and fast < slow and 800 <= slow <= 1200
    return Evidence(holds, f"below .05 from T = {slow} on, R-UCBE from T = {fast} on")


@on_setting_b(
    "R-SR is still better behaving than the other baseline algorithms.",
    "R-SR's mean error over the 22 budgets is below that of every baseline",
)
def _best_of_the_rest(rows: Rows) -> Evidence:
    found = means(rows)
    holds = all(found["R-SR"] < found[name] for name in BASELINES)
    return Evidence(holds, f"means: {listed(found)}")


# --- appendix H: setting A at six noise levels ---


@on_noise(
    "For sigma < 0.01 R-UCBE degrades at T = 150.",
    "for sigma = .001 and .005 R-UCBE's error is largest at T = 150",
)
def _at_150(rows: Rows) -> Evidence:
    said, holds = [], True
    for sigma in (0.001, 0.005):
        own = over(select(rows, sigma=sigma), "R-UCBE")
        here = at(own, "R-UCBE", 150)
        rest = largest([row for row in own if row.T != 150])
        holds &= here.error > rest.error
        elsewhere = f"else at most {short(rest.error)} (T = {rest.T})"
        said.append(f"sigma {short(sigma)}: {short(here.error)}, {elsewhere}")
    return Evidence(holds, "; ".join(said))


@on_noise(
    "At T = 150 the expected rewards of 3 arms are close to each other.",
    "the third arm is less than half as far from the best as the fourth",
)
def _three_close(rows: Rows) -> Evidence:
    gaps = sorted(SETTING_A.problem().gaps(150).tolist())
    said = ", ".join(short(gap) for gap in gaps[1:])
    return Evidence(2 * gaps[2] < gaps[3], f"gaps at T = 150: {said}")


def _smallest(values: dict[str, float], count: int) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: item[1])[:count])


@on_noise(
    "Even there R-UCBE is better than or equal to all the other algorithms.",
    "for sigma = .001 and .005 no error at T = 150 is smaller than R-UCBE's",
)
def _no_worse_at_150(rows: Rows) -> Evidence:
    said, holds = [], True
    for sigma in (0.001, 0.005):
        here = {name: at(select(rows, sigma=sigma), name, 150).error for name in ALGORITHMS}
        holds &= here["R-UCBE"] <= min(here.values())
        said.append(f"sigma {short(sigma)}: {listed(_smallest(here, 3), 2)}")
    return Evidence(holds, "; ".join(said))


def _by_sigma(rows: Rows, value: Callable[[Rows], float]) -> dict[str, float]:
    return {f"sigma {short(sigma)}": value(select(rows, sigma=sigma)) for sigma in SIGMAS}


@on_noise(
    "For sigma >= 0.05 the performance of R-UCBE starts to degrade.",
    "R-UCBE's mean error over T >= 200 grows from sigma = .01 to .05, .1 and .5",
)
def _degrades(rows: Rows) -> Evidence:
    found = _by_sigma(rows, lambda own: mean(over(own, "R-UCBE", 200)))
    values = list(found.values())
    return Evidence(values[2] < values[3] < values[4] < values[5], f"means: {listed(found)}")


@on_noise(
    "For sigma = 0.5 R-UCBE's error is constant at 0.8.",
    "all of R-UCBE's errors at sigma = .5 are within .05 of .8",
)
def _constant(rows: Rows) -> Evidence:
    own = over(select(rows, sigma=0.5), "R-UCBE")
    errors = [row.error for row in own]
    said = f"from {short(min(errors))} to {short(max(errors))}, mean {short(mean(own))}"
    return Evidence(min(errors) >= 0.75 and max(errors) <= 0.85, said)


@on_noise(
    "Only for sigma = 0.5 is R-SR's error not close to zero for T > 1000.",
    "R-SR's error at T > 1000 is below .05 for sigma up to .1, and not always at .5",
)
def _robust(rows: Rows) -> Evidence:
    worst = _by_sigma(rows, lambda own: largest(over(own, "R-SR", 1001)).error)
    values = list(worst.values())
    holds = max(values[:-1]) < 0.05 <= values[-1]
    return Evidence(holds, f"largest errors above T = 1000: {listed(worst)}")


def _close_to_best(rows: Rows, sigmas: Sequence[float]) -> Evidence:
    said, holds = [], True
    for sigma in sigmas:
        found = means(select(rows, sigma=sigma))
        best = min((found[name], name) for name in BASELINES)
        holds &= found["R-SR"] <= best[0] + CLOSE
        said.append(
            f"sigma {short(sigma)}: {short(found['R-SR'])}, best baseline {short(best[0])} "
            f"({best[1]})"
        )
    return Evidence(holds, "; ".join(said))


@on_noise(
    "Excluding R-UCBE, R-SR is the best or close to the best.",
    f"for sigma up to .1 its mean error is at most {short(CLOSE)} above the best baseline's",
)
def _close_below_half(rows: Rows) -> Evidence:
    return _close_to_best(rows, SIGMAS[:-1])


@on_noise(
    "This is also true for sigma = 0.5.",
    f"for sigma = .5 its mean error is at most {short(CLOSE)} above the best baseline's",
)
def _close_at_half(rows: Rows) -> Evidence:
    return _close_to_best(rows, (0.5,))


# --- appendix H: IMDB ---


@on_imdb(
    "The algorithm with the largest success rate is R-UCBE.",
    "R-UCBE is right at the most budgets",
)
def _most_successes(rows: Rows) -> Evidence:
    found = successes(rows)
    return Evidence(next(iter(found)) == "R-UCBE", f"of 11: {listed(found, 2)}")


@on_imdb(
    "R-SR provides the third best success rate.",
    "two algorithms are right at more budgets than R-SR",
)
def _third(rows: Rows) -> Evidence:
    found = successes(rows)
    better = sum(value > found["R-SR"] for value in found.values())
    return Evidence(better == 2, f"R-SR {short(found['R-SR'])}, {better} algorithms above it")


@on_imdb(
    "Rest-Sure, the only baseline above R-SR, is right only twice in 6 for T >= 5000.",
    "Rest-Sure alone is above R-SR, and right at 2 of the 6 largest budgets",
)
def _issues(rows: Rows) -> Evidence:
    found, late = successes(rows), successes(rows, 5000)["Rest-Sure"]
    better = [name for name in BASELINES if found[name] > found["R-SR"]]
    said = f"above R-SR: {', '.join(better) or 'none'}; Rest-Sure right at {short(late)} of 6"
    return Evidence(better == ["Rest-Sure"] and round(late) == 2, said)


@on_imdb(
    "Our algorithms provide more correct guesses as T increases.",
    "each is right at a larger share of the budgets from 5000 on than below",
)
def _progress(rows: Rows) -> Evidence:
    said, holds = [], True
    for name in ("R-UCBE", "R-SR"):
        early = mean(over(rows, name, last=4999))
        late = mean(over(rows, name, 5000))
        holds &= late < early
        said.append(
            f"{name} {short(1 - early, 2)} below T = 5000, {short(1 - late, 2)} from there"
        )
    return Evidence(holds, "share right: " + "; ".join(said))


@on_imdb(
    "The proposed algorithms outperform state-of-the-art ones.",
    "both are right at more budgets than every baseline",
)
def _both_ahead(rows: Rows) -> Evidence:
    found = successes(rows)
    best = max(found[name] for name in BASELINES)
    holds = min(found["R-UCBE"], found["R-SR"]) > best
    return Evidence(holds, f"of {len(IMDB_BUDGETS)}: {listed(found, 2)}")
