"""Fills docs/comparison.md: its tables and pictures are made here, of what was measured.

    python docs/tools/comparison_page.py    after `python -m benchmarks.other_libraries`

Between `<!-- made: NAME -->` and `<!-- end -->` stands what a function here says. In the
repository that is what the kept files say. While the site is built the sample is played, by the
libraries themselves, where the recorded curves are at hand; what was just measured is then shown,
and the build fails where it is not what the kept file says of the same problems.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from benchmarks import kill_survival, other_libraries  # noqa: E402
from benchmarks.other_libraries import (  # noqa: E402
    BEST,
    BUDGETS,
    PLAYERS,
    PROBLEMS,
    SAMPLE,
    SETS,
    Row,
    recorded,
)
from latebloomer.bench.curve_sets import data_folder  # noqa: E402
from latebloomer.errors import CurveError  # noqa: E402

PAGE = ROOT / "docs" / "comparison.md"
PICTURE = ROOT / "docs" / "comparison.png"
LIBRARIES = {"Optuna": "optuna", "Ray": "ray", "scikit-learn": "scikit-learn"}
OURS = ("latebloomer auto", "latebloomer r-sr")
# A mean over 20 problems may move by that much with other versions: one pick of them, all others.
CELL, WHOLE = 0.05, 0.01


# --- means ---


def mean(table: Sequence[Row], player: str, what: str, **where: str) -> float:
    """Over the sets and budgets that are meant, each counted once."""
    found = [
        float(row[what])
        for row in table
        if row["player"] == player and all(row[key] == value for key, value in where.items())
    ]
    return sum(found) / len(found)


Place = tuple[str, str, dict[str, str]]  # a head, what is meant, where

BY_BUDGET: list[Place] = [
    *((f"c = {budget}", "rank_loss", {"budget": str(budget)}) for budget in BUDGETS),
    ("all", "rank_loss", {}),
    ("regret", "regret", {}),
]


def decimal(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if value < 0.9995 else f"{value:.3f}"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rest))


# --- tables ---


def means(table: Sequence[Row], places: Sequence[Place], spent: bool = False) -> str:
    """A line for each player; the best of a column is bold."""
    best = [min(mean(table, one, what, **where) for one in PLAYERS) for _, what, where in places]
    lines = [["", *(head for head, _, _ in places), *(["spent"] if spent else [])]]
    for player in PLAYERS:
        values = [mean(table, player, what, **where) for _, what, where in places]
        shown = [
            f"**{decimal(value)}**" if value == least else decimal(value)
            for value, least in zip(values, best, strict=True)
        ]
        share = [f"{mean(table, player, 'spent'):.0%}"] if spent else []
        lines.append([player, *shown, *share])
    return markdown(lines)


class Defeat(NamedTuple):
    """A set and a budget where somebody else picks better than `auto`."""

    group: str
    budget: str
    who: str
    loss: float
    ours: float
    error: float  # of the difference


def defeats(table: Sequence[Row]) -> Iterator[Defeat]:
    for group in SETS:
        for budget in map(str, BUDGETS):
            where = {"set": group, "budget": budget}
            losses = {one: mean(table, one, "rank_loss", **where) for one in PLAYERS}
            who = min((one for one in PLAYERS if one not in OURS), key=losses.__getitem__)
            if losses[who] < losses[BEST]:
                error = mean(table, who, "error", **where)
                yield Defeat(group, budget, who, losses[who], losses[BEST], error)


def lost(table: Sequence[Row]) -> str:
    heads = ["set", "budget", "best method", "its rank loss", BEST, "difference"]
    return markdown(
        [heads]
        + [
            [one.group, f"c = {one.budget}", one.who, decimal(one.loss), decimal(one.ours),
             f"{decimal(one.ours - one.loss)} ± {decimal(one.error)}"]
            for one in defeats(table)
        ]
    )  # fmt: skip


def result(table: Sequence[Row], timed: Sequence[Row]) -> str:
    """The page in four sentences."""
    losses = {one: mean(table, one, "rank_loss") for one in PLAYERS}
    next_best = min((one for one in PLAYERS if one not in OURS), key=losses.__getitem__)
    pruners = [one for one in PLAYERS if one.startswith(("Optuna", "Ray"))]
    alone = [losses[one] for one in pruners if "one worker" in one]
    together = [losses[one] for one in pruners if "one worker" not in one]
    found = list(defeats(table))
    most = max(((one.ours - one.loss) / one.error for one in found), default=0.0)
    ours, ray, optuna = (
        " to ".join(f"{cost:.0f}" for cost in sorted(cost_of(timed, one) for one in players))
        for players in (TIMED[:2], TIMED[2:3], TIMED[3:5])
    )
    return f"""\
- **`auto` selects best on average**: its rank loss is {decimal(losses[BEST])} over \
{PROBLEMS * len(SETS)} problems. The next is {next_best} with {decimal(losses[next_best])}.
  Optuna's pruners and Ray's ASHA have {decimal(min(together))} to {decimal(max(together))} with \
one worker per model and {decimal(min(alone))} to {decimal(max(alone))} with one worker.
- **Another method is ahead** in {len(found)} of {len(SETS) * len(BUDGETS)} sets and budgets, by \
at most {most:.1f} standard errors ([where](#where-another-method-wins)).
- **A decision** takes {ours} microseconds of CPU; Ray's takes {ray}, Optuna's {optuna}.
- **After a `kill -9`** a race repeats only what was not saved, and its verdict is the same \
([counted](#what-survives-a-kill))."""


TIMED = (
    *OURS, "Ray Tune ASHA, side by side", "Optuna halving, side by side",
    "Optuna Hyperband, side by side", "scikit-learn halving",
)  # fmt: skip


def cost_of(table: Sequence[Row], player: str) -> float:
    """The median over sets and budgets of the microseconds that a decision takes."""
    return median(float(row["microseconds"]) for row in table if row["player"] == player)


def costs(table: Sequence[Row]) -> str:
    lines = [[player, f"{cost_of(table, player):,.0f}"] for player in TIMED]
    return markdown([["", "microseconds of CPU per decision"], *lines])


def after_a_kill(rows: Sequence[Row]) -> str:
    """A line for each player, with a number for each moment of the kill."""
    heads = ["", "version", "steps", "repeated", "missing", "additional", "selection"]
    lines = [heads]
    for player in kill_survival.PLAYERS:
        of_player = [row for row in rows if row["player"] == player]
        several = [
            ", ".join(row[what] for row in of_player) for what in ("again", "never", "more")
        ]
        picks = Counter(row["pick"] for row in of_player)
        said = "the same" if picks["same"] == picks.total() else (
            f"the same {picks['same']} of {picks.total()} times"
        )  # fmt: skip
        first = of_player[0]
        lines.append([player, first["version"], first["steps"], *several, said])
    return markdown(lines)


# --- the picture ---

INKS = {"latebloomer": "#c1272d", "Optuna halving": "#1f4e79", "Optuna Hyperband": "#5fa2d9",
        "Ray Tune": "#2e8b57", "scikit-learn": "#e08a00", "i-epoch": "#8a63a8",
        "nobody": "#777777", "random": "#bbbbbb"}  # fmt: skip
STROKES = {"one worker": ":", "side by side": "--", "r-sr": "--", "(i = 1)": "--"}


def draw(table: Sequence[Row], file: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.6, 5.6), layout="constrained")
    for player in PLAYERS:
        losses = [mean(table, player, "rank_loss", budget=str(budget)) for budget in BUDGETS]
        ink = next(ink for word, ink in INKS.items() if word in player)
        stroke = next((stroke for word, stroke in STROKES.items() if word in player), "-")
        ours = player == BEST
        axes.plot(
            BUDGETS, losses, marker="o", ms=5 if ours else 3, lw=3 if ours else 1.4, color=ink,
            ls=stroke, zorder=3 if ours else 2, label=player,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(BUDGETS, [f"{budget}" for budget in BUDGETS])
    axes.set(xlabel="budget, in full trainings", ylabel="rank loss (0 is best)", ylim=(0, 0.52))
    figure.legend(fontsize=8.5, frameon=False, loc="outside lower center", ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=130)
    plt.close(figure)


# --- the sample, played while the site is built ---


def played(folder: Path) -> list[Row] | None:
    """What the sample shows; from `folder` where nothing that matters has changed since."""
    try:
        now = key()
        file, mark = folder / "played.csv", folder / "played.key"
        if not (file.exists() and mark.exists() and mark.read_text() == now):
            problems = other_libraries.chosen(SAMPLE)
            if len(problems) < SAMPLE * len(SETS):
                return None
            folder.mkdir(parents=True, exist_ok=True)
            found = list(other_libraries.rows(problems))
            other_libraries.write(list(other_libraries.summed(found)), file)
            mark.write_text(now)
    except CurveError:  # the curves are not at hand
        return None
    return recorded(SAMPLE, file)


def key() -> str:
    """Of all that decides: our sources, the libraries' versions, where the curves are."""
    digest = hashlib.sha256(str(data_folder()).encode())
    for name in (*LIBRARIES.values(), "numpy"):
        digest.update(f"{name} {version(name)}".encode())
    packages = ("core", "theory", "policies", "session", "bench")
    sources = [file for one in packages for file in (ROOT / "src/latebloomer" / one).rglob("*.py")]
    for file in sorted([*sources, Path(other_libraries.__file__)]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def check(found: Sequence[Row], kept: Sequence[Row]) -> float:
    """The largest difference of a mean to the kept file; an error where that is too large.

    Not of Optuna's Hyperband: it draws brackets by the name of a study, here a checksum of the
    rewards, whose last bits depend on the processor.
    """
    found, kept = (
        [row for row in rows if "Hyperband" not in row["player"]] for rows in (found, kept)
    )
    players = [one for one in PLAYERS if "Hyperband" not in one]
    known = {(row["player"], row["set"], row["budget"]): float(row["rank_loss"]) for row in kept}
    gaps = [
        abs(float(row["rank_loss"]) - known[row["player"], row["set"], row["budget"]])
        for row in found
    ]
    whole = [abs(mean(found, one, "rank_loss") - mean(kept, one, "rank_loss")) for one in players]
    if len(found) != len(kept) or max(gaps) > CELL or max(whole) > WHOLE:
        raise ValueError(
            f"docs/comparison.csv is not what the sample shows now: a mean of {SAMPLE} problems "
            f"moved by {max(gaps):.4f} ({CELL} may be), one over all by {max(whole):.4f} ({WHOLE} "
            "may be); python -m benchmarks.other_libraries plays all again"
        )
    return max(gaps)


# --- the page ---


def kept_sample() -> str:
    return (
        "The recorded curves were not available when this page was built, so nothing was run "
        "again."
    )


def measured_sample(found: Sequence[Row], gap: float, day: date) -> str:
    names = ", ".join(f"{name} {version(module)}" for name, module in LIBRARIES.items())
    agrees = "exactly" if gap == 0 else f"to within {gap:.4f} in each set and budget"
    return (
        f"Run again on {day}, when this page was built, with {names}: {SAMPLE * len(SETS)} "
        f"problems agree with the kept file {agrees}."
    )


def kept_blocks() -> dict[str, Callable[[], str]]:
    return {
        "result": lambda: result(recorded(PROBLEMS), recorded(SAMPLE)),
        "by budget": lambda: means(recorded(PROBLEMS), BY_BUDGET, spent=True),
        "lost": lambda: lost(recorded(PROBLEMS)),
        "played": kept_sample,
        "costs": lambda: costs(recorded(SAMPLE)),
        "after a kill": lambda: after_a_kill(kill_survival.recorded()),
    }


def built_blocks(folder: Path) -> dict[str, Callable[[], str]]:
    """As kept, but for what could be played now."""
    found = played(folder)
    if found is None:
        return kept_blocks()
    gap = check(found, recorded(SAMPLE))
    day = date.fromtimestamp((folder / "played.csv").stat().st_mtime)
    now = {"played": lambda: measured_sample(found, gap, day), "costs": lambda: costs(found)}
    return kept_blocks() | now


def filled(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """A page with its blocks made anew."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- made: {found[1]} -->\n{blocks[found[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- made: ([\w ]+) -->\n.*?\n<!-- end -->", block, text, flags=re.DOTALL)


def main() -> None:
    draw(recorded(PROBLEMS), PICTURE)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), kept_blocks()), encoding="utf-8")


if __name__ == "__main__":
    main()
