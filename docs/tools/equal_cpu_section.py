"""The part of docs/comparison.md about a table and a few seconds of CPU.

It is made of docs/results/equal-cpu.csv, which `python -m measurements.equal_cpu` writes;
`evidence_pages.py` puts it on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latebloomer.bench.report import decimals, table
from measurements.equal_cpu import TABLES, recorded

OURS = ("race", "race with ensemble")
CLEAR = 2  # standard errors from which one method is called better
METRICS = {"loans": "R²", "friedman": "R²"}  # of the others: AUC

Values = dict[tuple[str, str], float]  # by table and seed


class Lead(NamedTuple):
    """How much better one method is than another on the same tables with the same seeds."""

    gaps: Values

    @property
    def mean(self) -> float:
        return float(np.mean([*self.gaps.values()]))

    @property
    def error(self) -> float:
        return float(np.std([*self.gaps.values()], ddof=1)) / len(self.gaps) ** 0.5

    @property
    def better(self) -> str:
        return f"{sum(gap > 0 for gap in self.gaps.values())} of {len(self.gaps)}"

    @property
    def size(self) -> str:
        return f"{signed(self.mean)} ± {decimals(self.error, 4)}"

    @property
    def verdict(self) -> str:
        if abs(self.mean) <= CLEAR * self.error:
            return "level with"
        return "ahead of" if self.mean > 0 else "behind"

    def on(self, name: str) -> float:
        """Return the mean on a table."""
        return float(np.mean([gap for (one, _), gap in self.gaps.items() if one == name]))


def values(what: str) -> dict[str, Values]:
    """Return the scores or the CPU seconds of each method, of all runs that ended."""
    found: dict[str, Values] = {}
    for row in recorded():
        if row["score"]:
            place = row["table"], row["seed"]
            found.setdefault(row["method"], {})[place] = float(row[what])
    return found


def lead(one: str, other: str) -> Lead:
    """Return how much better `one` is than `other`."""
    scores = values("score")
    ours, theirs = scores[one], scores[other]
    return Lead({place: ours[place] - theirs[place] for place in ours if place in theirs})


def signed(value: float, places: int = 4) -> str:
    text = decimals(abs(value), places)
    sign = "" if not text.strip(".0") else "+" if value > 0 else "−"
    return f"{sign}{text}"


def others() -> list[str]:
    """Return the other methods, the best first."""
    names = [name for name in values("score") if name not in OURS]
    return sorted(names, key=lambda name: lead(OURS[0], name).mean)


def who_is_ahead(ours: str) -> str:
    """Return a sentence: which methods it is ahead of, level with and behind."""
    leads = {name: lead(ours, name) for name in others()}
    parts = []
    for verdict in ("ahead of", "level with", "behind"):
        names = [name for name, one in leads.items() if one.verdict == verdict]
        if names:
            parts.append(f"{verdict} {listed(names)}")
    return f"- **{ours[0].upper()}{ours[1:]}** is {'; '.join(parts)}."


def how_often() -> str:
    """Return a sentence: how many pairs of table and seed each method has."""
    by_pairs: dict[int, list[str]] = {}
    for name, found in values("score").items():
        by_pairs.setdefault(len(found), []).append(name)
    first, *fewer = sorted(by_pairs, reverse=True)
    text = f"- **Pairs of table and seed**: {first}"
    return "; ".join([text, *(f"{listed(by_pairs[count])} only {count}" for count in fewer)]) + "."


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def equal_cpu() -> str:
    """Return the sentences and the table."""
    cpu, scores = values("cpu_seconds"), values("score")
    heads = [f"{name}, {METRICS.get(name, 'AUC')}" for name in TABLES]
    rows = [
        [
            "",
            *heads,
            "all: minus the race",
            "better",
            "minus the ensemble",
            "better",
            "CPU s, mean (most)",
        ]
    ]
    for method in (*OURS, *others()):
        used = [*cpu[method].values()]
        spent = f"{np.mean(used):.1f} ({max(used):.1f})"
        if method == OURS[0]:
            ours = Lead(scores[method])
            means = [decimals(ours.on(name)) for name in TABLES]
            rows.append([method, *means, "–", "–", "", "", spent])
            continue
        gap = lead(method, OURS[0])
        cells = [signed(gap.on(name)) for name in TABLES]
        more = lead(method, OURS[1]) if method != OURS[1] else None
        last = ["–", "–"] if more is None else [more.size, more.better]
        rows.append([method, *cells, gap.size, gap.better, *last, spent])
    sentences = "\n".join([*(who_is_ahead(ours) for ours in OURS), how_often()])
    return f"{sentences}\n\n{table(rows)}"
