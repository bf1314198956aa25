"""Fill tables of docs/comparison.md, choose-a-policy.md and budget.md from docs/results.

    python docs/tools/evidence_pages.py

Between `<!-- made: NAME -->` and `<!-- end -->` stands what a function here makes of the CSV
files; the pictures of the first two pages are drawn too. `python -m measurements.other_libraries`,
`measurements.policies` and `measurements.kill_survival` measure again and write the files.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))


from equal_cpu_section import equal_cpu  # noqa: E402
from readme_pictures import kept_as_the_budget_grows  # noqa: E402

from latebloomer.bench.report import decimals, table  # noqa: E402
from measurements import kill_survival, other_libraries  # noqa: E402
from measurements.other_libraries import BEST, recorded  # noqa: E402

DOCS = ROOT / "docs"
COMPARISON, POLICIES = DOCS / "comparison.md", DOCS / "choose-a-policy.md"
SIZES = DOCS / "budget.md"
RESULTS = DOCS / "results" / "policies"
REPORT, FRESH, DESIGN = "tables-report", "tables-fresh", "tables-design"
OURS = ("latebloomer auto", "latebloomer r-sr")
WALL, RANDOM = "all in full, whatever it costs", "one at random"
LIBRARIES = ("Optuna", "Ray Tune", "scikit-learn")
Row = dict[str, Any]


# --- numbers ---


def one(rows: Sequence[Row], **where: str) -> Row:
    """Return the only row of that kind."""
    (found,) = (row for row in rows if all(row[key] == value for key, value in where.items()))
    return found


def signed(row: Row, what: str) -> str:
    """Return the difference to the baseline with its standard error."""
    more, error = float(row[f"{what}_difference"]), float(row[f"{what}_se"])
    return f"{'+' if more > 0 else ''}{decimals(more)} ± {decimals(error)}".replace("-", "−")


def number(row: Row, what: str) -> str:
    return decimals(float(row[what]))


class Pooled(NamedTuple):
    """A measure over the report and the fresh problems, which are equally many."""

    mean: float
    difference: float
    error: float


def pooled(player: str, what: str, unit: str = "seconds") -> Pooled:
    rows = [
        one(recorded("tables"), player=player, set=group, unit=unit, budget="all")
        for group in (REPORT, FRESH)
    ]
    first, second = ([float(row[what + part]) for part in ("", "_difference", "_se")]
                     for row in rows)  # fmt: skip
    error = (first[2] ** 2 + second[2] ** 2) ** 0.5 / 2
    return Pooled((first[0] + second[0]) / 2, (first[1] + second[1]) / 2, error)


def fair(library: str) -> list[str]:
    """Return the ways of a library that suit it: side by side, or tuned, no single worker."""
    names = [player for player in other_libraries.PLAYERS if player.startswith(library)]
    return [name for name in names if "one worker" not in name]


def ends(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(decimals(value) for value in (min(values), max(values))))


# --- the comparison with other libraries ---


def lost_in_seconds(player: str, group: str, what: str = "regret") -> float:
    """Return what the model that a method keeps loses of the range of test scores."""
    rows = recorded("tables")
    return float(one(rows, player=player, set=group, unit="seconds", budget="all")[what])


def rank_loss_on_public_sets(player: str) -> float:
    rows = [row for row in recorded("public") if (row["player"], row["budget"]) == (player, "all")]
    return sum(float(row["rank_loss"]) for row in rows) / len(rows)


def result() -> str:
    """Return the page in five sentences."""
    peers = [name for library in LIBRARIES for name in fair(library)]
    ours, walls, times = (
        [shown(player, group) for group in (REPORT, FRESH)]
        for player, shown in (
            (BEST, lambda *place: decimals(lost_in_seconds(*place))),
            (WALL, lambda *place: decimals(lost_in_seconds(*place))),
            (WALL, lambda *place: f"{lost_in_seconds(*place, 'spent'):.1f}"),
        )
    )
    ranges = "; ".join(
        f"{library} "
        + " and ".join(
            ends([lost_in_seconds(name, group) for name in fair(library)])
            for group in (REPORT, FRESH)
        )
        for library in LIBRARIES
    )
    best = min(peers, key=lambda name: pooled(name, "regret").mean)
    gap, paper = plus(pooled(best, "regret")), plus(pooled("latebloomer r-sr", "regret"))
    ahead = sum(cell.group in (REPORT, FRESH) for cell in defeats())
    designed = decimals(rank_loss_on_public_sets(BEST))
    least = decimals(min(rank_loss_on_public_sets(name) for name in peers))
    return "\n".join((
        "- **In the same CPU seconds, on tables on which no rule was designed,** the model that "
        "`auto` keeps loses",
        f"  {ours[0]} of the range of test scores on the 26 report problems and {ours[1]} on the "
        "26 fresh ones. Side by side or tuned, the others",
        f"  lose more on average: {ranges}.",
        f"- **The lead over the best of them is small**: over these 52 problems {best} loses",
        f"  {gap} more than `auto`. Our own `r-sr` is level with `auto` ({paper}).",
        "- **Validation rows decide more than rules**: to train every model to its end, for "
        f"{times[0]} and {times[1]} times the seconds,",
        f"  still loses {walls[0]} and {walls[1]}, because the best on validation rows is not the "
        "best on test rows.",
        f"- **Another method is ahead of `auto`** in {ahead} of 6 budgets of these two sets "
        "([where](#where-another-method-wins)).",
        "- On five public sets of curves, **on which our policies were designed**, the rank loss "
        f"of `auto` is {designed}, the best",
        f"  other method's {least}.",
    ))  # fmt: skip


def plus(gap: Pooled) -> str:
    sign = "+" if gap.difference > 0 else ""
    return f"{sign}{decimals(gap.difference)} ± {decimals(gap.error)}".replace("-", "−")


def in_seconds() -> str:
    rows = [
        row for row in recorded("tables") if (row["unit"], row["budget"]) == ("seconds", "all")
    ]
    head = ["", "report half: in the end", "minus auto", "as returned",
            "fresh: in the end", "minus auto", "as returned", "design half: in the end",
            "spent"]  # fmt: skip
    lines = [head]
    for player in other_libraries.PLAYERS:
        cells = []
        for group in (REPORT, FRESH, DESIGN):
            row = one(rows, player=player, set=group)
            cells.append(number(row, "regret"))
            if group != DESIGN:
                cells.append("–" if player == BEST else signed(row, "regret"))
                cells.append("–" if player == RANDOM else number(row, "returned"))
        spent = [float(one(rows, player=player, set=group)["spent"]) for group in (REPORT, FRESH)]
        lines.append([player, *cells, f"{sum(spent) / 2:.0%}"])
    return table(bold(lines))


def bold(lines: list[list[str]]) -> list[list[str]]:
    """Return lines with the least number of each column in bold, the wall aside."""
    for column in range(1, len(lines[0])):
        cells = [line[column] for line in lines[1:] if line[0] != WALL]
        if all(re.fullmatch(r"1?\.\d+|–|\d\.\d+", cell) for cell in cells):
            least = min((cell for cell in cells if cell != "–"), key=float)
            for line in lines[1:]:
                if line[column] == least and line[0] != WALL:
                    line[column] = f"**{least}**"
    return lines


def in_pulls() -> str:
    rows = [row for row in recorded("tables") if (row["unit"], row["budget"]) == ("pulls", "all")]
    lines = [["", "report half", "minus auto", "fresh", "minus auto", "design half"]]
    for player in other_libraries.PLAYERS:
        cells = []
        for group in (REPORT, FRESH, DESIGN):
            row = one(rows, player=player, set=group)
            cells.append(number(row, "rank_loss"))
            if group != DESIGN:
                cells.append("–" if player == BEST else signed(row, "rank_loss"))
        lines.append([player, *cells])
    return table(bold(lines))


def on_public_sets() -> str:
    rows, budgets = recorded("public"), ("1", "2", "4", "8", "all")
    lines = [["", *(f"c = {c}" if c != "all" else c for c in budgets), "regret", "spent"]]
    for player in other_libraries.PLAYERS:
        if player == "scikit-learn halving, tuned":
            continue  # factor 3, the default, is the best on these sets
        own = [row for row in rows if row["player"] == player]

        def mean(what: str, budget: str, own: list[Row] = own) -> float:
            found = [float(row[what]) for row in own if row["budget"] == budget]
            return sum(found) / len(found)

        cells = [decimals(mean("rank_loss", budget)) for budget in budgets]
        lines.append(
            [player, *cells, decimals(mean("regret", "all")), f"{mean('spent', 'all'):.0%}"]
        )
    return table(bold(lines))


class Defeat(NamedTuple):
    """A set and a budget where somebody else keeps a better model than `auto`."""

    group: str
    what: str
    budget: str
    player: str
    row: Row


def defeats() -> Iterator[Defeat]:
    """Yield where a method of another library loses less than `auto`."""
    tables = [row for row in recorded("tables") if row["unit"] == "seconds"]
    for rows, what in ((tables, "regret"), (recorded("public"), "rank_loss")):
        for group, budget in dict.fromkeys((row["set"], row["budget"]) for row in rows):
            here = [row for row in rows if (row["set"], row["budget"]) == (group, budget)]
            others = [row for row in here if row["player"] not in (*OURS, WALL, RANDOM)]
            best = min(others, key=lambda row: float(row[what]))
            if budget != "all" and float(best[f"{what}_difference"]) < 0:
                yield Defeat(group, what, budget, best["player"], best)


def lost() -> str:
    names = {"regret": "regret in the end, in seconds", "rank_loss": "rank loss, in pulls"}
    lines = [["set", "measure", "budget", "best other method", "its loss", "minus auto"]]
    for cell in defeats():
        shown = [number(cell.row, cell.what), signed(cell.row, cell.what)]
        lines.append([cell.group, names[cell.what], f"c = {cell.budget}", cell.player, *shown])
    return table(lines)


TIMED = (
    *OURS, "Ray Tune ASHA, side by side", "Optuna halving, side by side",
    "Optuna Hyperband, side by side", "scikit-learn halving",
)  # fmt: skip


def costs() -> str:
    lines = [["", "microseconds of CPU per decision"]]
    for player in TIMED:
        found = [float(row["microseconds"]) for row in recorded("public")
                 if row["player"] == player and row["budget"] != "all"]  # fmt: skip
        lines.append([player, f"{sorted(found)[len(found) // 2]:,.0f}"])
    return table(lines)


def after_a_kill() -> str:
    """A line for each player, with a number for each moment of the kill."""
    rows = kill_survival.recorded()
    lines = [["", "version", "steps", "repeated", "missing", "additional", "selection"]]
    for player in kill_survival.PLAYERS:
        own = [row for row in rows if row["player"] == player]
        several = [", ".join(row[what] for row in own) for what in ("again", "never", "more")]
        picks = Counter(row["pick"] for row in own)
        said = "the same"
        if picks["same"] < picks.total():
            said += f" {picks['same']} of {picks.total()} times"
        lines.append([player, own[0]["version"], own[0]["steps"], *several, said])
    return table(lines)


# --- which policy ---

SHOWN = {  # policies of the page, and how it calls them
    "auto": "`auto` (foresight)",
    "adaptive-rejects": "`adaptive-rejects`",
    "r-sr": "`r-sr`, the paper's",
    "sh:judge=window": "`sh:judge=window`, halving by window means",
    "sh": "`sh`, halving by the last score",
    "rr-sw": "`rr-sw`, no learner is dropped",
    "hyperband": "`hyperband`",
    "asha:eta=2,grace=4,workers=1000": "`asha`, the best of 13 settings",
    "r-ucbe": "`r-ucbe`, the paper's",
}
BOUNDS = {"adaptive-rejects": "with its setting `shortest`", "r-sr": "**yes**",
          "r-ucbe": "where it applies"}  # fmt: skip


def bench_rows(name: str, unit: str = "pulls") -> list[Row]:
    """Return what `measurements.policies` wrote of a run."""
    with (RESULTS / name / "bench.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["unit"] == unit]


def overview() -> str:
    heads = ["policy", "tables, report half", "fresh tables", "five public sets", "lcdb10",
             "16 to 128 candidates", "setting A: error", "error bound"]  # fmt: skip
    places = [("tables", REPORT, "rank_loss"), ("tables", FRESH, "rank_loss"),
              ("public", "all", "rank_loss"), ("lcdb10", "lcdb10", "rank_loss"),
              ("many", "all", "rank_loss"), ("made", "paper-a", "error")]  # fmt: skip
    lines = [heads]
    for policy, name in SHOWN.items():
        cells = [
            number(one(bench_rows(file), group=group, policy=policy, budget="all"), what)
            for file, group, what in places
        ]
        lines.append([name, *cells, BOUNDS.get(policy, "no")])
    return table(bold(lines))


def policies_in_seconds() -> str:
    rows = [row for row in bench_rows("tables", "seconds") if row["budget"] == "all"]
    heads = ["policy"]
    for name in ("report half", "fresh", "design half"):
        heads += [f"{name}: in the end", "minus auto", "as returned"]
    names = {**SHOWN, "foresight": "`foresight`, as if prices were equal"}
    shown = [policy for policy in names if any(row["policy"] == policy for row in rows)]
    lines = [heads]
    for policy in shown:
        cells = []
        for group in (REPORT, FRESH, DESIGN):
            row = one(rows, group=group, policy=policy)
            gap = "–" if policy == "auto" else signed(row, "regret")
            cells += [number(row, "regret"), gap, number(row, "returned")]
        lines.append([names[policy], *cells])
    return table(bold(lines))


def by_budget() -> str:
    small, public = bench_rows("small"), bench_rows("public")
    budgets = ("0.5", "1", "2", "4", "8")
    lines = [["policy", *(f"c = {budget}" for budget in budgets)]]
    for policy, name in SHOWN.items():
        cells = [
            number(one(small if budget == "0.5" else public, group="all", policy=policy,
                       budget=budget), "rank_loss")
            for budget in budgets
        ]  # fmt: skip
        lines.append([name, *cells])
    return table(bold(lines))


def synthetic() -> str:
    rows = [row for row in bench_rows("made") if row["budget"] == "all"]
    families = sorted({row["group"] for row in rows if row["group"].startswith("random-")})
    lines = [["policy", "six families: rank loss, error", "paper-a: error", "paper-b: error",
              "imdb: error"]]  # fmt: skip
    for policy, name in SHOWN.items():
        own = [one(rows, group=group, policy=policy) for group in families]
        means = [decimals(sum(float(row[what]) for row in own) / len(own))
                 for what in ("rank_loss", "error")]  # fmt: skip
        errors = [number(one(rows, group=group, policy=policy), "error")
                  for group in ("paper-a", "paper-b", "imdb")]  # fmt: skip
        lines.append([name, ", ".join(means), *errors])
    return table(lines)


def own_runs() -> str:
    """How the loss changes if a pick is judged by the run that the race saw."""
    rows = [row for row in bench_rows("lcdb10") if row["budget"] == "all"]
    lines = [["policy", "mean of ten runs", "minus auto", "the run that was drawn", "minus auto"]]
    for policy, name in SHOWN.items():
        row, cells = one(rows, group="lcdb10", policy=policy), []
        for what in ("rank_loss", "own_loss"):
            cells += [number(row, what), "–" if policy == "auto" else signed(row, what)]
        lines.append([name, *cells])
    return table(bold(lines))


# --- pictures ---

INKS = {"latebloomer auto": "#c1272d", "latebloomer r-sr": "#7a1116", "Optuna halving": "#1f4e79",
        "Optuna Hyperband": "#5fa2d9", "Ray Tune": "#2e8b57", "scikit-learn": "#b06c00",
        "one after": "#555555", WALL: "#000000"}  # fmt: skip
STROKES = {"tuned": "-", "side by side": "--", "halving": "--", "r-sr": "--", WALL: ":"}


def draw(file: Path) -> None:
    """Draw the regret in the end against the budget in seconds, report half and fresh."""
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 5.2), layout="constrained")
    rows = [row for row in recorded("tables") if row["unit"] == "seconds"]
    for axes, group, title in zip(
        panels, (REPORT, FRESH), ("26 report problems", "26 fresh problems"), strict=True
    ):
        for player in other_libraries.PLAYERS:
            ink = next((ink for word, ink in INKS.items() if player.startswith(word)), None)
            if ink is None or "one worker" in player:
                continue
            stroke = next((dash for word, dash in STROKES.items() if word in player), "-")
            own = [row for row in rows if (row["player"], row["set"]) == (player, group)]
            values = {row["budget"]: float(row["regret"]) for row in own}
            look = {"lw": 3 if player == BEST else 1.4, "zorder": 3 if player == BEST else 2}
            axes.plot((1, 2, 4), [values[c] for c in ("1", "2", "4")], color=ink, ls=stroke,
                      marker="o", ms=3, label=player, **look)  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks((1, 2, 4), ("1", "2", "4"))
        axes.minorticks_off()
        axes.set(title=title, xlabel="CPU seconds, in mean full trainings", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of the range of test scores that is lost")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, fontsize=8.5, frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(file, dpi=130)
    plt.close(figure)


# --- how large a budget ---


def by_size() -> str:
    """A line for each budget: what the learner loses that `auto` keeps, by what is raced."""
    heads = [
        "budget, in full trainings",
        "12 models of a table: trained to the end",
        "as returned",
    ]
    lines = [[*heads, *(f"{arms} candidates: as returned" for arms in (16, 32, 64))]]
    for budget in ("1", "2", "4", "8", "16"):
        tables = [
            number(row, what)
            for row in bench_rows("tables", "seconds")
            for what in ("regret", "returned")
            if (row["group"], row["policy"], row["budget"]) == ("all", "auto", budget)
        ]
        many = [decimals(returned_by_candidates(arms, budget)) for arms in (16, 32, 64)]
        lines.append([budget, *(tables or ["", ""]), *many])
    whole = [
        row for row in recorded("tables") if (row["player"], row["unit"]) == (WALL, "seconds")
    ]
    both = [one(whole, set=group, budget="all") for group in (REPORT, FRESH)]  # 26 tables each
    means = [
        decimals(sum(float(row[what]) for row in both) / 2) for what in ("regret", "returned")
    ]
    return table([*lines, ["all models in full", *means, "", "", ""]])


def returned_by_candidates(arms: int, budget: str) -> float:
    """Return the mean regret of the returned learner over the sets with that many candidates."""
    rows = [
        row for row in bench_rows("many")
        if row["group"].endswith(f"-{arms}") and (row["policy"], row["budget"]) == ("auto", budget)
    ]  # fmt: skip
    problems = sum(int(row["problems"]) for row in rows)
    return sum(float(row["returned"]) * int(row["problems"]) for row in rows) / problems


# --- the pages ---

BLOCKS: dict[Path, dict[str, Callable[[], str]]] = {
    COMPARISON: {
        "result": result, "in seconds": in_seconds, "in pulls": in_pulls,
        "public sets": on_public_sets, "lost": lost, "costs": costs,
        "after a kill": after_a_kill, "equal cpu": equal_cpu,
    },
    POLICIES: {
        "overview": overview, "in seconds": policies_in_seconds, "by budget": by_budget,
        "own runs": own_runs, "synthetic": synthetic,
    },
    SIZES: {"by size": by_size},
}  # fmt: skip


def filled(page: Path) -> str:
    """Return a page with its blocks made again."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- made: {found[1]} -->\n{BLOCKS[page][found[1]]()}\n<!-- end -->"

    pattern = r"<!-- made: ([\w ]+) -->\n.*?\n?<!-- end -->"
    return re.sub(pattern, block, page.read_text(encoding="utf-8"), flags=re.DOTALL)


def main() -> None:
    for page in BLOCKS:
        page.write_text(filled(page), encoding="utf-8")
    draw(DOCS / "comparison.png")
    kept_as_the_budget_grows()


if __name__ == "__main__":
    main()
