"""A session finds the late bloomer of the paper's setting A, which halving drops.

Five arms rise at different speeds; which one is best depends on how long they are trained. Arm
"late" leads only from pull 188 on.
"""

import random

from rich.console import Console
from rich.table import Table

import latebloomer as lb

ARMS = {  # name: (b, c) of the curve c (1 - b / (b + n))
    "late": (37, 1.0),
    "second": (10, 0.88),
    "early": (1, 0.78),
    "weak": (10, 0.7),
    "slow": (20, 0.5),
}
BUDGET, NOISE = 800, 0.01


def mean(arm: str, n: int) -> float:
    b, c = ARMS[arm]
    return c * (1 - b / (b + n))


def reward(arm: str, n: int, noise: random.Random) -> float:
    """Return the n-th reward of an arm of setting A [Mussi24, App. G]."""
    return mean(arm, n) + noise.gauss(0, NOISE)


def play(policy: str) -> lb.Session:
    """Spend the budget by one policy; every policy sees the same random rewards."""
    noise = {name: random.Random(name) for name in ARMS}
    session = lb.Session(policy, arms=list(ARMS), budget=BUDGET)
    while not session.over:
        arm = session.ask()
        name = session.names[arm]
        session.tell(arm, reward(name, session.pulls[arm] + 1, noise[name]))
    return session


def sparkline(values: list[float], longest: int, width: int = 40) -> str:
    """Return a learning curve in one line of text, as long as its share of the longest."""
    cells = max(1, round(width * len(values) / longest))
    picked = [values[(k * len(values)) // cells] for k in range(cells)]
    return "".join(" ▁▂▃▄▅▆▇█"[min(8, max(0, round(8 * value)))] for value in picked)


def show(console: Console, policy: str) -> None:
    session = play(policy)
    verdict = session.recommend()
    table = Table(
        title=f"{policy} with {BUDGET} pulls keeps: [bold]{verdict.name}[/]", title_style=""
    )
    for column in ("arm", "pulls", "estimate", "state", "scores"):
        table.add_column(column)
    for row in session.standings():
        picture = sparkline(session.scores(row.arm), max(session.pulls))
        style = "bold green" if row.arm == verdict.arm else ""
        table.add_row(
            row.name, str(row.pulls), f"{row.estimate:.3f}", row.state, picture, style=style
        )
    console.print(table)
    best = max(ARMS, key=lambda name: mean(name, BUDGET))
    right = verdict.name == best
    console.print(
        "  right" if right else f"  wrong: after {BUDGET} pulls {best} is best", end="\n\n"
    )


if __name__ == "__main__":
    for name in ("r-ucbe:noise=0.01", "r-sr", "sh"):
        show(Console(width=110), name)
