"""The empirical claims of appendix H."""

from __future__ import annotations

from collections.abc import Sequence

from latebloomer.paper.claims import (
    BASELINES,
    Claim,
    Finding,
    at,
    largest,
    listed,
    mean,
    means,
    over,
    settles,
    short,
)
from latebloomer.paper.experiments import ALGORITHMS, IMDB_BUDGETS, SETTING_A, SETTING_B, SIGMAS
from latebloomer.paper.table_rows import Row, select

CLOSE = 0.02  # two mean errors this near count as close


def _changes(rows: Sequence[Row]) -> Finding:
    last, arm = SETTING_B.problem().changes(3200)[-1]
    return Finding(last == 280, f"arm {arm + 1} from T = {last}")


def _short_budgets(rows: Sequence[Row]) -> Finding:
    found = means(rows, last=279)
    return Finding(list(found)[:2] == ["Rest-Sure", "R-UCBE"], f"means: {listed(found)}")


def _nearly_always(rows: Sequence[Row]) -> Finding:
    worst = largest(over(rows, "R-UCBE", 551))
    return Finding(worst.error < 0.01, f"largest error {short(worst.error)} (T = {worst.T})")


def _unreliable(rows: Sequence[Row]) -> Finding:
    late = over(rows, "Rest-Sure", 1000)
    wrong = [row for row in late if row.error > 0.05]
    said = f"above .05 at {len(wrong)} of {len(late)} budgets from 1000 to 3200"
    return Finding(len(wrong) > 0, f"{said}, T = 3200: {short(late[-1].error)}")


def _later(rows: Sequence[Row]) -> Finding:
    slow, fast = settles(rows, "R-SR", 0.05), settles(rows, "R-UCBE", 0.05)
    holds = slow is not None and fast is not None and fast < slow and 800 <= slow <= 1200
    return Finding(holds, f"below .05 from T = {slow} on, R-UCBE from T = {fast} on")


def _best_of_the_rest(rows: Sequence[Row]) -> Finding:
    found = means(rows)
    holds = all(found["R-SR"] < found[name] for name in BASELINES)
    return Finding(holds, f"means: {listed(found)}")


def _at_150(rows: Sequence[Row]) -> Finding:
    said, holds = [], True
    for sigma in (0.001, 0.005):
        own = over(select(rows, sigma=sigma), "R-UCBE")
        here = at(own, "R-UCBE", 150)
        rest = [row for row in own if row.T != 150]
        holds &= here.error > largest(rest).error
        said.append(f"sigma {short(sigma)}: {short(here.error)}, else {_peak(rest)}")
    return Finding(holds, "; ".join(said))


def _peak(rows: Sequence[Row]) -> str:
    worst = largest(rows)
    return f"at most {short(worst.error)} (T = {worst.T})"


def _three_close(rows: Sequence[Row]) -> Finding:
    gaps = sorted(SETTING_A.problem().gaps(150).tolist())
    said = ", ".join(short(gap) for gap in gaps[1:])
    return Finding(2 * gaps[2] < gaps[3], f"gaps at T = 150: {said}")


def _no_worse_at_150(rows: Sequence[Row]) -> Finding:
    said, holds = [], True
    for sigma in (0.001, 0.005):
        here = {name: at(select(rows, sigma=sigma), name, 150).error for name in ALGORITHMS}
        holds &= here["R-UCBE"] <= min(here.values())
        said.append(f"sigma {short(sigma)}: {listed(_smallest(here, 3), 2)}")
    return Finding(holds, "; ".join(said))


def _smallest(values: dict[str, float], count: int) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: item[1])[:count])


def _degrades(rows: Sequence[Row]) -> Finding:
    found = {
        f"sigma {short(sigma)}": mean(over(select(rows, sigma=sigma), "R-UCBE", 200))
        for sigma in SIGMAS
    }
    values = list(found.values())
    return Finding(values[2] < values[3] < values[4] < values[5], f"means: {listed(found)}")


def _constant(rows: Sequence[Row]) -> Finding:
    own = over(select(rows, sigma=0.5), "R-UCBE")
    errors = [row.error for row in own]
    said = f"from {short(min(errors))} to {short(max(errors))}, mean {short(mean(own))}"
    return Finding(min(errors) >= 0.75 and max(errors) <= 0.85, said)


def _robust(rows: Sequence[Row]) -> Finding:
    worst = {
        f"sigma {short(sigma)}": largest(over(select(rows, sigma=sigma), "R-SR", 1001)).error
        for sigma in SIGMAS
    }
    values = list(worst.values())
    holds = max(values[:-1]) < 0.05 <= values[-1]
    return Finding(holds, f"largest errors above T = 1000: {listed(worst)}")


def _close_to_best(rows: Sequence[Row], sigmas: Sequence[float] = SIGMAS[:-1]) -> Finding:
    said, holds = [], True
    for sigma in sigmas:
        found = means(select(rows, sigma=sigma))
        best = min((found[name], name) for name in BASELINES)
        holds &= found["R-SR"] <= best[0] + CLOSE
        said.append(
            f"sigma {short(sigma)}: {short(found['R-SR'])}, best baseline {short(best[0])} "
            f"({best[1]})"
        )
    return Finding(holds, "; ".join(said))


def _close_at_half(rows: Sequence[Row]) -> Finding:
    return _close_to_best(rows, (0.5,))


def successes(rows: Sequence[Row], first: int = 0) -> dict[str, float]:
    """How many of the budgets each algorithm gets right, the most first; a mean where drawn."""
    found = {name: sum(1 - row.error for row in over(rows, name, first)) for name in ALGORITHMS}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _most_successes(rows: Sequence[Row]) -> Finding:
    found = successes(rows)
    return Finding(next(iter(found)) == "R-UCBE", f"of 11: {listed(found, 2)}")


def _third(rows: Sequence[Row]) -> Finding:
    found = successes(rows)
    better = sum(value > found["R-SR"] for value in found.values())
    return Finding(better == 2, f"R-SR {short(found['R-SR'])}, {better} algorithms above it")


def _issues(rows: Sequence[Row]) -> Finding:
    found, late = successes(rows), successes(rows, 5000)["Rest-Sure"]
    better = [name for name in BASELINES if found[name] > found["R-SR"]]
    said = f"above R-SR: {', '.join(better) or 'none'}; Rest-Sure right at {short(late)} of 6"
    return Finding(better == ["Rest-Sure"] and round(late) == 2, said)


def _progress(rows: Sequence[Row]) -> Finding:
    said, holds = [], True
    for name in ("R-UCBE", "R-SR"):
        early = mean([row for row in over(rows, name, last=4999)])
        late = mean(over(rows, name, 5000))
        holds &= late < early
        said.append(
            f"{name} {short(1 - early, 2)} below T = 5000, {short(1 - late, 2)} from there"
        )
    return Finding(holds, "share right: " + "; ".join(said))


def _both_ahead(rows: Sequence[Row]) -> Finding:
    found = successes(rows)
    best = max(found[name] for name in BASELINES)
    holds = min(found["R-UCBE"], found["R-SR"]) > best
    return Finding(holds, f"of {len(IMDB_BUDGETS)}: {listed(found, 2)}")


B, SIGMA, IMDB_PART = (f"appendix H, {part}" for part in ("challenging", "noise", "IMDB"))
APPENDIX_CLAIMS = (
    Claim(
        "setting-b", B, "The last time the optimal arm changes is T = 280.",
        "the last change of the best arm is at T = 280", _changes,
    ),
    Claim(
        "setting-b", B,
        "For short budgets (T < 280) Rest-Sure is the best and R-UCBE the second best.",
        "their mean errors over T < 280 are the smallest and the second smallest", _short_budgets,
    ),
    Claim(
        "setting-b", B, "For T > 550 R-UCBE has an error < 0.01.",
        "R-UCBE's error is below .01 at every T > 550", _nearly_always,
    ),
    Claim(
        "setting-b", B, "For large T Rest-Sure does not consistently suggest the optimal arm.",
        "Rest-Sure's error is above .05 at some T >= 1000", _unreliable,
    ),
    Claim(
        "setting-b", B, "R-SR starts providing a small error after R-UCBE does, at T about 1000.",
        "R-SR's error stays below .05 from a T in [800, 1200], R-UCBE's from a smaller one",
        _later,
    ),
    Claim(
        "setting-b", B, "R-SR is still better behaving than the other baseline algorithms.",
        "R-SR's mean error over the 22 budgets is below that of every baseline", _best_of_the_rest,
    ),
    Claim(
        "noise", SIGMA, "For sigma < 0.01 R-UCBE degrades at T = 150.",
        "for sigma = .001 and .005 R-UCBE's error is largest at T = 150", _at_150,
    ),
    Claim(
        "noise", SIGMA, "At T = 150 the expected rewards of 3 arms are close to each other.",
        "the third arm is less than half as far from the best as the fourth", _three_close,
    ),
    Claim(
        "noise", SIGMA, "Even there R-UCBE is better than or equal to all the other algorithms.",
        "for sigma = .001 and .005 no error at T = 150 is smaller than R-UCBE's", _no_worse_at_150,
    ),
    Claim(
        "noise", SIGMA, "For sigma >= 0.05 the performance of R-UCBE starts to degrade.",
        "R-UCBE's mean error over T >= 200 grows from sigma = .01 to .05, .1 and .5", _degrades,
    ),
    Claim(
        "noise", SIGMA, "For sigma = 0.5 R-UCBE's error is constant at 0.8.",
        "all of R-UCBE's errors at sigma = .5 are within .05 of .8", _constant,
    ),
    Claim(
        "noise", SIGMA, "Only for sigma = 0.5 is R-SR's error not close to zero for T > 1000.",
        "R-SR's error at T > 1000 is below .05 for sigma up to .1, and not always at .5", _robust,
    ),
    Claim(
        "noise", SIGMA, "Excluding R-UCBE, R-SR is the best or close to the best.",
        f"for sigma up to .1 its mean error is at most {short(CLOSE)} above the best baseline's",
        _close_to_best,
    ),
    Claim(
        "noise", SIGMA, "This is also true for sigma = 0.5.",
        f"for sigma = .5 its mean error is at most {short(CLOSE)} above the best baseline's",
        _close_at_half,
    ),
    Claim(
        "imdb", IMDB_PART, "The algorithm with the largest success rate is R-UCBE.",
        "R-UCBE is right at the most budgets", _most_successes,
    ),
    Claim(
        "imdb", IMDB_PART, "R-SR provides the third best success rate.",
        "two algorithms are right at more budgets than R-SR", _third,
    ),
    Claim(
        "imdb", IMDB_PART,
        "Rest-Sure, the only baseline above R-SR, is right only twice in 6 for T >= 5000.",
        "Rest-Sure alone is above R-SR, and right at 2 of the 6 largest budgets", _issues,
    ),
    Claim(
        "imdb", IMDB_PART, "Our algorithms provide more correct guesses as T increases.",
        "each is right at a larger share of the budgets from 5000 on than below", _progress,
    ),
    Claim(
        "imdb", IMDB_PART, "The proposed algorithms outperform state-of-the-art ones.",
        "both are right at more budgets than every baseline", _both_ahead,
    ),
)  # fmt: skip
