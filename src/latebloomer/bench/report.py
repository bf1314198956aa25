"""The report of a bench as Markdown, and as a picture of rank loss against the budget."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

from latebloomer.bench.costs import ALL, PULLS, SECONDS, Line
from latebloomer.bench.curves import Curves, Skipped
from latebloomer.bench.recorded_tables import DESIGN, REPORT
from latebloomer.errors import extra
from latebloomer.page.figures import TEXT
from latebloomer.simulation.results.plots import Style, styles_of, write_figure

CAUTION = (
    "A difference is a policy's number minus that of {baseline}, on the same problems and draws: "
    "above 0 is worse. ± is one standard error over problems. Problems share learners, tasks or "
    "data, so it is too small."
)
LEFT_OUT_SCORE = (
    "The first score that TaskSet and YAHPO record is of a model before training; a score before "
    "training is not a pull, and it is left out."
)
HALVES = (
    "Of the 53 recorded tables, races in seconds were designed on the 27 whose name has an odd "
    "SHA-256 (tables-design); the other 26 are the report half (tables-report), which was opened "
    "once before, to choose how such a race plans by price. tables-fresh was recorded after that. "
    "Means over all sets leave tables-design out."
)
IN_SECONDS = (
    "A budget is c times the seconds of an average full training, training and scoring. *In the "
    "end*: the share of the range of scores on test rows (where they were recorded, else of mean "
    "scores) that the selected learner loses when it is trained to its end. *As returned*: the "
    "same for the model as the race leaves it."
)
MEASURES = (
    "*Rank loss*: share of the arms that are truly better than the pick when all are trained to "
    "the end (0 is best, .5 a blind guess); *own run*: the same by how the drawn curves end. "
    "*Regret* is relative to the range between a problem's worst and best arm, *as returned* "
    "with the pick as it was left; an *error* is a pick that is not the best. *Left out*: share "
    "of arms left out because the budget was below the policy's minimum; the policy then had a "
    "random subset."
)
SHOWN_SKIPS = 20
EMPHASIZED, WIDE = "auto", 3.0  # the default policy has the widest line
PANELS_A_ROW = 3


def markdown(
    lines: Sequence[Line], baseline: str, drawn: str, seconds: float,
    notes: Sequence[str], skipped: Sequence[Skipped],
) -> str:  # fmt: skip
    """Return the whole report as Markdown."""
    problems = {line.group: line.problems for line in lines if line.group != ALL}
    counts = ", ".join(f"{count} of {group}" for group, count in problems.items())
    parts = ["# Bench", f"{drawn}; {counts} problems; {seconds:.0f} s."]
    parts += [HALVES] if {DESIGN, REPORT} <= {*problems} else []
    timed, by_pulls = ([line for line in lines if line.unit == unit] for unit in (SECONDS, PULLS))
    if timed:
        parts += ["## Within the same seconds", IN_SECONDS, losses_in_seconds(timed)]
        parts += [over_all(timed, baseline)]
    if by_pulls:
        parts += _in_pulls(by_pulls, baseline)
    parts.append(CAUTION.format(baseline=baseline))
    shown = [f"{what}: {why}" for what, why in skipped]
    if len(shown) > SHOWN_SKIPS:
        shown[SHOWN_SKIPS:] = [f"and {len(skipped) - SHOWN_SKIPS} more"]
    for title, listed in (("Notes", notes), (f"Skipped: {len(skipped)}", shown)):
        if listed:
            parts += [f"## {title}", "\n".join(f"- {entry}" for entry in listed)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_pulls(lines: Sequence[Line], baseline: str) -> list[str]:
    """Return the parts on budgets in pulls."""
    groups = [*dict.fromkeys(line.group for line in lines)]
    top = ranked(lines, groups[-1])
    order = [line.policy for line in top]
    by_group = losses_by("group", [line for line in lines if line.budget == ALL], order)
    last = [f"minus {baseline}", *(difference(line, line.policy == baseline) for line in top)]
    own = [line for line in lines if line.group == groups[-1]]
    by_budget = losses_by("budget", [line for line in own if line.budget != ALL] or own, order)
    configurations = any(group.startswith(("taskset", "yahpo")) for group in groups)
    return [
        "## With the same pulls: rank loss",
        table([[*row, cell] for row, cell in zip(by_group, last, strict=True)]),
        LEFT_OUT_SCORE if configurations else "",
        "### By budget, in full trainings",
        table(by_budget),
        "### Other measures",
        other_measures(lines, groups[-1], order, baseline),
        MEASURES,
    ]


def what_is_drawn(problems: Sequence[Curves], draws: int) -> str:
    """Return text about what differs between draws: noise, runs, or only the order of learners."""
    runs = any(curves.runs is not None for curves in problems)
    noise = any(curves.noisy and curves.runs is None for curves in problems)
    if not runs and not noise:
        return f"Rewards are as recorded, the learners in {draws} random orders"
    drawn = ["of the noise"] * noise + ["of a recorded run that all learners share"] * runs
    return f"{draws} draw{'s' * (draws > 1)} {' and '.join(drawn)}"


# --- tables ---


def ranked(lines: Sequence[Line], group: str) -> list[Line]:
    """Return one line per policy over all budgets, the best first."""
    whole = [line for line in lines if line.group == group and line.budget == ALL]
    return sorted(whole, key=lambda line: line.rank_loss)


def losses_in_seconds(lines: Sequence[Line]) -> str:
    """Return the table of regret "in the end" and "as returned", set by set."""
    groups = [group for group in dict.fromkeys(line.group for line in lines) if group != ALL]
    by_cell = {(line.policy, line.group): line for line in lines if line.budget == ALL}
    top = sorted(ranked(lines, lines[-1].group), key=lambda line: line.regret)
    heads = [f"{group}: {what}" for group in groups for what in ("in the end", "as returned")]
    rows = [["policy", *heads]]
    for policy in (line.policy for line in top):
        own = [by_cell[policy, group] for group in groups]
        cells = [decimals(value) for line in own for value in (line.regret, line.returned)]
        rows.append([policy, *cells])
    return table(rows)


def over_all(lines: Sequence[Line], baseline: str) -> str:
    """Return the table over all sets, with differences to the baseline."""
    group = lines[-1].group
    minus = f"minus {baseline}"
    rows = [["policy", "in the end", minus, "as returned", minus, "rank loss", minus, "spent"]]
    for line in sorted(ranked(lines, group), key=lambda line: line.regret):
        row = [line.policy]
        for what in ("regret", "returned", "rank_loss"):
            row += [decimals(getattr(line, what)), difference(line, line.policy == baseline, what)]
        rows.append([*row, f"{line.spent:.0%}"])
    title = "Over all sets" if group == ALL else f"On {group}"
    return f"{title}:\n\n{table(rows)}"


def losses_by(what: str, lines: Sequence[Line], order: Sequence[str]) -> list[list[str]]:
    """Return rows of rank losses with a column for each `group` or `budget`, the header first."""
    cells = {(line.policy, getattr(line, what)): decimals(line.rank_loss) for line in lines}
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = [[policy, *(cells[policy, column] for column in columns)] for policy in order]
    return [["policy", *columns], *rows]


def other_measures(lines: Sequence[Line], group: str, order: Sequence[str], baseline: str) -> str:
    """Return the table of all measures on one set."""
    by_policy = {line.policy: line for line in ranked(lines, group)}
    shown = {"rank loss": "rank_loss", "own run": "own_loss", "regret": "regret",
             "as returned": "returned", "error": "error"}  # fmt: skip
    rows = []
    for policy in order:
        line, row = by_policy[policy], [policy]
        for what in shown.values():
            row += [decimals(getattr(line, what)), difference(line, policy == baseline, what)]
        rows.append([*row, f"{line.spent:.0%}", f"{line.left_out:.0%}"])
    heads = [head for what in shown for head in (what, f"minus {baseline}")]
    return table([["policy", *heads, "spent", "left out"], *rows])


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row is its header.

    >>> print(table([["policy", "loss"], ["r-sr", ".089"]]))
    | policy | loss |
    |---|---|
    | r-sr | .089 |
    """
    header, *lines = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *lines])


def decimals(value: float, places: int = 3) -> str:
    """Return a share as the tables print it.

    >>> decimals(0.0764), decimals(1.0), decimals(-0.0004, 4)
    ('.076', '1.000', '-.0004')
    """
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def difference(line: Line, base: bool, what: str = "rank_loss") -> str:
    """Return the difference to the baseline, with its standard error."""
    more, error = getattr(line, f"{what}_difference"), getattr(line, f"{what}_se")
    spread = "?" if isnan(error) else decimals(error, 4)
    sign = "+" if more > 0 else ""
    return "–" if base else f"{sign}{decimals(more, 4)} ± {spread}"


# --- the picture: rank loss against the budget, set by set ---


def draw_picture(lines: Sequence[Line], path: Path) -> None:
    """Write the picture; a panel for each set and one for all, in seconds and in pulls."""
    pyplot = extra("matplotlib.pyplot", "pictures", "plots")
    places = list(dict.fromkeys((line.unit, line.group) for line in lines))
    rows, wide = -(-len(places) // PANELS_A_ROW), min(PANELS_A_ROW, len(places))
    size = (4 * wide, 3 * rows)
    figure, axes = pyplot.subplots(rows, wide, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat[len(places) :]:
        ax.set_axis_off()
    policies = list(dict.fromkeys(line.policy for line in lines))
    for ax, (unit, group) in zip(axes.flat, places, strict=False):
        own = [line for line in lines if (line.unit, line.group) == (unit, group)]
        _panel(ax, own, f"{group}, {unit}", policies)
    look = {"loc": "outside lower center", "ncols": 4, "fontsize": TEXT, "handlelength": 4}
    figure.legend(*axes.flat[len(places) - 1].get_legend_handles_labels(), **look)
    write_figure(figure, path, dpi=120)
    pyplot.close(figure)


def _panel(ax: Any, lines: Sequence[Line], title: str, policies: Sequence[str]) -> None:
    for place, (policy, style) in enumerate(line_styles(policies).items()):
        own = [line for line in lines if line.policy == policy]
        own = [line for line in own if line.budget != ALL] or own
        if not own:
            continue
        budgets = [1.0 if line.budget == ALL else float(line.budget) for line in own]
        look = style.line(place, len(policies), len(own))
        ax.plot(budgets, [line.rank_loss for line in own], label=policy, **look)
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    ax.set(title=title, xlabel="budget, full trainings", ylabel="rank loss", ylim=(0, None))
    ax.grid(True, color="0.9")


def line_styles(policies: Sequence[str]) -> dict[str, Style]:
    """Return a color, a marker and dashes for each policy; the default's line is the widest."""
    styles = styles_of(policies)
    if EMPHASIZED in styles:
        styles[EMPHASIZED] = styles[EMPHASIZED]._replace(width=WIDE)
    return styles
