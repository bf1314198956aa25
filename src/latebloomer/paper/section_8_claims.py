"""The claims of section 8, and one of appendix G: setting A, its simple regret, multiples of a."""

from __future__ import annotations

from collections.abc import Sequence

from latebloomer.paper import evidence as ev
from latebloomer.paper.evidence import SMALL, Evidence, Finding, Quantity, Rows, measured, short
from latebloomer.paper.experiments import ALGORITHMS, BUDGETS, SETTING_A
from latebloomer.paper.workbench import Row, select
from latebloomer.theory import largest_beta

PRINTED = 185  # the last change of the best arm in setting A, according to the text
LARGE = 0.1  # a difference of errors above this is large

CLAIMS: list[ev.Claim] = []  # in the order of the paper
on_setting_a = ev.Passage(CLAIMS, "setting-a", "section 8", SETTING_A)
on_details = ev.Passage(CLAIMS, "setting-a", "appendix G", SETTING_A)
on_simple_regret = ev.Passage(CLAIMS, "simple-regret", "section 8", SETTING_A)
on_exploration = ev.Passage(CLAIMS, "exploration", "section 8", SETTING_A)


# --- section 8: error in setting A ---


@on_setting_a(
    "The optimal arm changes depending on whether T is in [1, 185] or beyond.",
    "the best arm has one change, from T = 185 to 186",
)
def _changes(rows: Rows) -> Evidence:
    changes = SETTING_A.problem().changes(3200)[1:]
    said = ", ".join(f"arm {arm + 1} from {start}" for start, arm in changes)
    holds = [start for start, _ in changes] == [PRINTED + 1]
    return Evidence(Finding(holds), f"arm 3 up to 69, {said}")


@on_details(
    "The largest value of beta satisfying Assumption 2 is 1.3.",
    "the largest beta with every increment at most n^-beta (c = 1) up to n = 3200 rounds to 1.3",
)
def _largest_beta(rows: Rows) -> Evidence:
    beta = largest_beta(SETTING_A.problem().means(BUDGETS[-1]), c=1.0)
    return Evidence(Finding(beta is not None and round(beta, 1) == 1.3), f"it is {beta:.3f}")


@on_setting_a(
    "Before T = 185 all the algorithms provide large errors (> 0.2).",
    "every error at T = 100 and 150 is above .2",
)
def _all_large(rows: Rows) -> Evidence:
    early = [row for name in ALGORITHMS for row in ev.over(rows, name, last=PRINTED)]
    least = min(early, key=lambda row: row.error)
    said = f"smallest error {measured(least)} ({least.algorithm}, T = {least.T})"
    return Evidence(ev.all_of(measured(row) > 0.2 for row in early), said)


@on_setting_a(
    "Before T = 185 R-UCBE outperforms the others by a large margin.",
    f"at T = 100 and 150 R-UCBE's error is more than {short(LARGE)} below that of each other",
)
def _ahead_early(rows: Rows) -> Evidence:
    said, found = [], []
    for row in ev.over(rows, "R-UCBE", last=PRINTED):
        others = {name: ev.at(rows, name, row.T) for name in ALGORITHMS if name != "R-UCBE"}
        found += [other - measured(row) > LARGE for other in others.values()]
        said.append(f"T = {row.T}: {measured(row)}, next {ev.least(others, list(others))}")
    return Evidence(ev.all_of(found), "; ".join(said))


@on_setting_a(
    "Shortly after T = 185 R-UCBE starts providing the correct suggestion consistently.",
    "R-UCBE's error is below .05 at every T >= 200",
)
def _consistent(rows: Rows) -> Evidence:
    late = ev.over(rows, "R-UCBE", 200)
    return Evidence(ev.errors_below(SMALL, late), ev.largest_error(late))


@on_setting_a(
    "R-SR begins to identify the optimal arm (error < 0.05) for T > 1000.",
    "R-SR's error is below .05 at every T > 1000",
)
def _rising_sr_begins(rows: Rows) -> Evidence:
    start, late = ev.settles(rows, "R-SR", SMALL), ev.over(rows, "R-SR", 1001)
    said = f"above T = 1000: {ev.largest_error(late)}; below .05 from T = {start} on"
    return Evidence(ev.errors_below(SMALL, late), said)


@on_setting_a(
    "Both algorithms perform significantly better than the baselines.",
    "the mean error over the 22 budgets of each is below that of every baseline",
)
def _better_than_baselines(rows: Rows) -> Evidence:
    found = ev.means(rows)
    ahead = ev.all_of(found[ours] < found[other] for ours in ev.OURS for other in ev.BASELINES)
    return Evidence(ahead, f"means: {ev.values_of(found)}")


# --- section 8: simple regret in setting A ---


# A mean over budgets would be decided by the smallest ones, where every regret is largest. The
# sentence compares algorithms at the budgets of a figure, so it is decided budget by budget.
@on_simple_regret(
    "In simple regret R-SR outperforms R-UCBE and all the other algorithms.",
    "at more than half of the 22 budgets no regret is smaller than R-SR's",
)
def _least_regret(rows: Rows) -> Evidence:
    by_budget = [_no_regret_below(rows, row) for row in ev.over(rows, "R-SR")]
    said = f"R-SR has the smallest at {ev.holding(by_budget)} of {len(by_budget)} budgets"
    means = ev.values_of(ev.means(rows, "regret"))
    return Evidence(ev.at_least(len(by_budget) // 2 + 1, by_budget), f"{said}; means: {means}")


def _no_regret_below(rows: Rows, ours: Row) -> Finding:
    return ev.all_of(
        ~(ev.at(rows, name, ours.T, "regret") < measured(ours, "regret"))
        for name in ALGORITHMS
        if name != ours.algorithm
    )


@on_simple_regret(
    "For T > 185 R-UCBE detects the optimal arm but suffers a large simple regret.",
    "at every T > 185 its error is below .05 and its regret above R-SR's",
)
def _large_regret(rows: Rows) -> Evidence:
    late = ev.over(rows, "R-UCBE", PRINTED)
    theirs = [ev.at(rows, "R-SR", row.T, "regret") for row in late]
    more = [one < measured(row, "regret") for one, row in zip(theirs, late, strict=True)]
    ends = f"{short(late[-1].regret, 4)} against {short(theirs[-1].value, 4)}"
    return Evidence(
        ev.all_of((ev.errors_below(SMALL, late), *more)),
        f"above R-SR's at {ev.holding(more)} of {len(late)}; T = {late[-1].T}: {ends}",
    )


@on_simple_regret(
    "This is explained by a small number of pulls of the optimal arm.",
    "R-UCBE pulls the best arm less than R-SR at every T > 1000, where R-SR is right too",
)
def _few_pulls(rows: Rows) -> Evidence:
    late, theirs = (ev.over(rows, name, 1001) for name in ev.OURS)
    fewer = [
        measured(one, "pulls") < measured(other, "pulls")
        for one, other in zip(late, theirs, strict=True)
    ]
    said = (
        f"fewer than R-SR's at {ev.holding(fewer)} of {len(late)} budgets; share of T at most "
        f"{short(max(row.pulls_best / row.T for row in late))}, R-SR's at least "
        f"{short(min(row.pulls_best / row.T for row in theirs))}"
    )
    return Evidence(ev.all_of(fewer), said)


# --- section 8: multiples of R-UCBE's a ---


def _from_usual(rows: Rows, row: Row) -> Quantity:
    """Return the error at a multiple of a minus the error at a itself."""
    usual = select(rows, panel=row.panel, T=row.T, factor=1.0)[0]
    return measured(row) - measured(usual)


def _early(rows: Rows, factors: Sequence[float]) -> list[Quantity]:
    """Return the differences up to the change of the best arm, on the fine grid of budgets."""
    return [
        _from_usual(rows, row)
        for factor in factors
        for row in select(rows, panel="detail", factor=factor)
        if row.T <= PRINTED
    ]


def _range(differences: Sequence[Quantity]) -> str:
    values = [one.value for one in differences]
    return f"differences from {short(min(values))} to {short(max(values))}"


# With enough runs any two settings differ: "no impact" is a difference too small to matter.
def _no_impact(differences: Sequence[Quantity]) -> Evidence:
    largest_first = sorted(differences, key=lambda one: -abs(one.value))
    inside = [(one > -SMALL) & (one < SMALL) for one in largest_first]
    outside = ev.holding(~finding for finding in inside)
    said = f"more than {short(SMALL)} apart in {outside} of {len(inside)} pairs"
    return Evidence(ev.all_of(inside), f"{said}; {_range(differences)}")


@on_exploration(
    "For T <= 185 values larger than a do not significantly impact R-UCBE.",
    f"the errors at 10a and 50a are within {short(SMALL)} of that at a at every T up to 185",
)
def _larger_a(rows: Rows) -> Evidence:
    return _no_impact(_early(rows, (10.0, 50.0)))


@on_exploration(
    "For T <= 185 smaller values slightly decrease the performance.",
    "the mean over T up to 185 of the error at a/50 and a/10 less that at a is positive",
)
def _smaller_a(rows: Rows) -> Evidence:
    differences = _early(rows, (0.02, 0.1))
    average = ev.mean(differences)
    return Evidence(average > 0.0, f"mean difference {average}, {_range(differences)}")


@on_exploration(
    "For T > 185 different values of a seem not to impact the performance.",
    f"the errors at multiples of a are within {short(SMALL)} of that at a at every T above 185",
)
def _any_a_late(rows: Rows) -> Evidence:
    late = [row for row in rows if row.T > PRINTED and row.factor != 1.0]
    return _no_impact([_from_usual(rows, row) for row in late])
