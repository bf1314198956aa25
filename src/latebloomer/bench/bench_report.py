"""What a bench found, to read, to compute with and to look at: Markdown, CSV and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder, write_csv, write_file
from latebloomer.bench.curve_sets import Curves, Skipped
from latebloomer.bench.losses import ALL, Line
from latebloomer.errors import extra
from latebloomer.simulation.plots import TEXT, Style, styles_of, write_figure

CAUTION = (
    "± is one standard error, over problems, of the difference to {baseline} on the same problems "
    "and draws. Problems share learners, tasks or data, so it is too small."
)
LEFT_OUT_SCORE = (
    "The first score that TaskSet and YAHPO record is of a model before training; a score before "
    "training is not a pull, and it is left out."
)
SHOWN_SKIPS = 20
EMPHASIZED, WIDE = "auto", 3.0  # the default has the wide line
PANELS_A_ROW = 3


@dataclass(frozen=True)
class BenchReport:
    """What a bench found.

    Attributes
    ----------
    lines : list[Line]
        One for each policy, set and budget.
    skipped : list[Skipped]
        Files and sets that could not be read, with the reason.
    baseline : str
        The policy that others are compared with.
    draws : int
        Of each problem.
    seconds : float
        That it took.
    drawn : str
        What was drawn, in words: `what_is_drawn`.
    notes : list[str]
        On problems that are not quite as they were recorded.
    """

    lines: list[Line]
    skipped: list[Skipped]
    baseline: str
    draws: int
    seconds: float
    drawn: str
    notes: list[str]

    def __str__(self) -> str:
        return markdown(self)

    def loss(self, policy: str, group: str | None = None) -> float:
        """The mean rank loss of a policy over all budgets, of one set or of all."""
        group = self.lines[-1].group if group is None else group
        found = {line.policy: line.rank_loss for line in ranked(self.lines, group)}
        return found[policy]

    def write(self, folder: Path) -> list[Path]:
        """bench.md, bench.csv and bench.png."""
        make_folder(folder)
        paths = [folder / f"bench.{kind}" for kind in ("md", "csv", "png")]
        write_file(paths[0], str(self))
        write_csv(paths[1], [Line._fields, *self.lines])
        draw_picture(self.lines, paths[2])
        return paths


# --- in words ---


def markdown(report: BenchReport) -> str:
    """The whole report."""
    lines, baseline = report.lines, report.baseline
    groups = list(dict.fromkeys(line.group for line in lines))
    top = groups[-1]  # all sets, or the only one
    order = [line.policy for line in ranked(lines, top)]
    counts = ", ".join(f"{_count(lines, group)} of {group}" for group in groups if group != ALL)
    parts = [
        "# Bench",
        f"Rank loss: share of the arms that are truly better than the pick (0 is best), mean over "
        f"budgets. {report.drawn}; {counts} problems; {report.seconds:.0f} s.",
        by_group(lines, groups, order, baseline),
        LEFT_OUT_SCORE if any(g.startswith(("taskset", "yahpo")) for g in groups) else "",
        CAUTION.format(baseline=baseline),
        "## By budget, in full trainings",
        by_budget(lines, top, order),
        "## Other measures",
        other_measures(lines, top, order, baseline),
        "Regret is relative to the range between a problem's worst and best arm; an error is a "
        "pick that is not the best. *Left out*: share of arms that a policy could not look at "
        "because the budget was below its least; it then played a random subset.",
        *(
            part
            for group in groups
            if group != top
            for part in (f"## {group}", other_measures(lines, group, order, baseline))
        ),
        "\n".join(["## Notes", "", *(f"- {note}" for note in report.notes)] * bool(report.notes)),
        what_was_skipped(report.skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def what_is_drawn(problems: Sequence[Curves], draws: int) -> str:
    """What differs from draw to draw: noise, runs, or only the order of the learners."""
    runs = any(curves.runs is not None for curves in problems)
    noise = any(curves.noisy and curves.runs is None for curves in problems)
    if not runs and not noise:
        return f"Rewards are as recorded, the learners in {draws} random orders"
    drawn = ["of the noise"] * noise + ["of one recorded run of each learner"] * runs
    return f"{draws} draws {' and '.join(drawn)}"


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


def other_measures(lines: Sequence[Line], group: str, order: Sequence[str], baseline: str) -> str:
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


def what_was_skipped(skipped: Sequence[Skipped]) -> str:
    """A count, and a reason for each."""
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


# --- in one picture: rank loss against the budget, set by set ---


def draw_picture(lines: Sequence[Line], path: Path) -> None:
    """Write the picture; a panel for each set and one for all."""
    pyplot = extra("matplotlib.pyplot", "pictures", "plots")
    groups = list(dict.fromkeys(line.group for line in lines))
    rows = -(-len(groups) // PANELS_A_ROW)
    wide = min(PANELS_A_ROW, len(groups))
    figure, axes = pyplot.subplots(
        rows, wide, figsize=(4 * wide, 3 * rows), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(groups) :]:
        ax.set_axis_off()
    for ax, group in zip(axes.flat, groups, strict=False):
        _panel(ax, [line for line in lines if line.group == group], group)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=TEXT,
                  handlelength=4)  # fmt: skip
    write_figure(figure, path, dpi=120)
    pyplot.close(figure)


def _panel(ax: Any, lines: Sequence[Line], title: str) -> None:
    styles = line_styles(list(dict.fromkeys(line.policy for line in lines)))
    for place, (policy, style) in enumerate(styles.items()):
        own = [line for line in lines if line.policy == policy]
        own = [line for line in own if line.budget != ALL] or own
        budgets = [1.0 if line.budget == ALL else float(line.budget) for line in own]
        look = style.line(place, len(styles), len(own))
        ax.plot(budgets, [line.rank_loss for line in own], label=policy, **look)
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    ax.set(title=title, xlabel="budget, full trainings", ylabel="rank loss", ylim=(0, None))
    ax.grid(True, color="0.9")


def line_styles(policies: Sequence[str]) -> dict[str, Style]:
    """A colour, a marker and dashes for each policy; the default's line is the widest."""
    styles = styles_of(policies)
    if EMPHASIZED in styles:
        styles[EMPHASIZED] = styles[EMPHASIZED]._replace(width=WIDE)
    return styles
