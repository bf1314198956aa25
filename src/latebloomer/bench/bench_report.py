"""The bench in words and numbers: Markdown to read, CSV to compute with."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from latebloomer.bench.curve_files import Skipped
from latebloomer.bench.losses import ALL, Line

CAUTION = (
    "± is one standard error, over problems, of the difference to {baseline} on the same problems "
    "and draws. Problems share learners, tasks or data, so it is too small."
)
SHOWN_SKIPS = 20


def markdown(
    lines: Sequence[Line], skipped: Sequence[Skipped], baseline: str, draws: int, seconds: float
) -> str:
    """The whole report."""
    groups = list(dict.fromkeys(line.group for line in lines))
    top = groups[-1]  # all sets, or the only one
    order = [line.policy for line in ranked(lines, top)]
    counts = ", ".join(f"{_count(lines, group)} of {group}" for group in groups if group != ALL)
    parts = [
        "# Bench",
        f"Rank loss: share of the arms that are truly better than the pick (0 is best), mean over "
        f"budgets. {draws} draws of the noise; {counts} problems; {seconds:.0f} s.",
        by_group(lines, groups, order, baseline),
        CAUTION.format(baseline=baseline),
        "## By budget, in full trainings",
        by_budget(lines, top, order),
        "## Other measures",
        others(lines, top, order, baseline),
        "Regret is relative to the range between a problem's worst and best arm; an error is a "
        "pick that is not the best. *Left out*: share of arms that a policy could not look at "
        "because the budget was below its least; it then played a random subset.",
        *(
            part
            for group in groups
            if group != top
            for part in (f"## {group}", others(lines, group, order, baseline))
        ),
        said(skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def ranked(lines: Sequence[Line], group: str) -> list[Line]:
    """One line per policy over all budgets, the best first."""
    whole = [line for line in lines if line.group == group and line.budget == ALL]
    return sorted(whole, key=lambda line: line.rank_loss)


def by_group(
    lines: Sequence[Line], groups: Sequence[str], order: Sequence[str], baseline: str
) -> str:
    found = {(line.policy, line.group): line for line in lines if line.budget == ALL}
    header = ["policy", *groups, f"less than {baseline}"]
    rows = [
        [
            policy,
            *(decimals(found[policy, group].rank_loss) for group in groups),
            difference(found[policy, groups[-1]], policy == baseline),
        ]
        for policy in order
    ]
    return table(header, rows)


def by_budget(lines: Sequence[Line], group: str, order: Sequence[str]) -> str:
    found = {(line.policy, line.budget): line for line in lines if line.group == group}
    budgets = list(dict.fromkeys(budget for _, budget in found if budget != ALL)) or [ALL]
    rows = [[p, *(decimals(found[p, b].rank_loss) for b in budgets)] for p in order]
    return table(["policy", *budgets], rows)


def others(lines: Sequence[Line], group: str, order: Sequence[str], baseline: str) -> str:
    found = {line.policy: line for line in ranked(lines, group)}
    rows = []
    for policy in order:
        line, base = found[policy], policy == baseline
        rows.append([
            policy, decimals(line.rank_loss), difference(line, base), decimals(line.regret),
            difference(line, base, "regret"), decimals(line.error),
            difference(line, base, "error"), f"{line.spent:.0%}", f"{line.left_out:.0%}",
        ])  # fmt: skip
    less = f"less than {baseline}"
    return table(
        ["policy", "rank loss", less, "regret", less, "error", less, "spent", "left out"], rows
    )


def said(skipped: Sequence[Skipped]) -> str:
    """What was skipped: a count, and a reason for each."""
    if not skipped:
        return ""
    more = len(skipped) - SHOWN_SKIPS
    return "\n".join([
        f"## Skipped: {len(skipped)}", "",
        *(f"- {what}: {why}" for what, why in skipped[:SHOWN_SKIPS]),
        *([f"- and {more} more"] if more > 0 else []),
    ])  # fmt: skip


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["policy", "loss"], [["r-sr", ".089"]]))
    | policy | loss |
    |---|---|
    | r-sr | .089 |
    """
    marks = ["---"] * len(header)
    return "\n".join(
        ["| " + " | ".join(header) + " |", "|" + "|".join(marks) + "|"]
        + ["| " + " | ".join(row) + " |" for row in rows]
    )


def decimals(value: float, places: int = 3) -> str:
    """A share as the tables print it.

    >>> decimals(0.0764), decimals(1.0), decimals(-0.0004, 4)
    ('.076', '1.000', '-.0004')
    """
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def difference(line: Line, base: bool, what: str = "rank_loss") -> str:
    """How much less than the baseline, with its standard error."""
    less, error = getattr(line, f"{what}_less"), getattr(line, f"{what}_se")
    if base:
        return "–"
    spread = "?" if isnan(error) else decimals(error, 4)
    return f"{decimals(less, 4)} ± {spread}"


def _count(lines: Sequence[Line], group: str) -> int:
    return next(line.problems for line in lines if line.group == group)
