"""What a policy's page says beyond its docstring; numbers are those of docs/choose-a-policy.md."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What it is in a sentence, when it fails, and settings that it cannot be played without."""

    family: str
    fails: str
    settings: str = ""


NOTES = {
    "foresight": Note(
        "The default. Drops the worst phase by phase, and looks ahead as far as that has proved "
        "right in this very race.",
        "A take-off after the first drop (``latebloomer plan`` says when that is), two arms that "
        "are about equal at the horizon, noise that hides the slopes. It claims no bound, and may "
        "hand out a late bloomer before it has risen: ``winner_share=0.3``.",
    ),
    "adaptive-rejects": Note(
        "Ours: like ``r-sr``, with a window that follows the noise and levels that follow a power "
        "law.",
        "It does not look ahead: of the paper's setting A with up to 600 pulls it names the wrong "
        "arm every time. It claims no bound unless ``shortest`` is set.",
    ),
    "r-sr": Note(
        "The paper's: drops the arm doing worst lately, phase by phase; needs no settings and has "
        "a bound on its error.",
        "Small budgets on curves that cross late: it ranks by the present, so the crossing must "
        "come before the arm is dropped. The last survivor's pulls decide nothing.",
    ),
    "r-ucbe": Note(
        "The paper's: pulls the arm whose projection to the horizon is highest.",
        "Real curves: where they are not concave or the noise is unknown, the projection is far "
        "off (rank loss .28 on five public sets, against .076 for the default).",
    ),
    "sh": Note(
        "Successive Halving: keeps the better half, by the latest value or a window mean.",
        "Late bloomers, and noise with ``judge=\"latest\"``: one unlucky reward drops an arm. By "
        "window means (``sh:judge=window``) it is third best on recorded curves.",
    ),
    "sr": Note(
        "Successive Rejects, for arms that do not change.",
        "Learners that improve: a mean over all samples remembers the beginning for ever.",
    ),
    "ucb-e": Note(
        "The upper-confidence rule for arms that do not change.",
        "Learners that improve, as ``sr``; and its bonus needs the gaps, which nobody knows.",
        "ucb-e:exploration=2",
    ),
    "rr": Note(
        "Pulls the arms in turn and takes the largest mean of all samples.",
        "Everything that a smarter plan can save: no arm is ever dropped.",
    ),
    "rr-sw": Note(
        "Pulls the arms in turn and takes the best of late.",
        "Many arms: each gets a K-th of the budget, and the best is trained no further.",
    ),
    "prob-1": Note(
        "Draws arms by rank, for rewards that an adversary may choose.",
        "Almost everywhere else: it was made for the worst case, and its sums favor who was "
        "pulled early.",
    ),
    "etc": Note(
        "Fits a power law to each arm, sweeps until one is surely best, then stays with it.",
        "Curves that are no power law; its widths hardly ever decide before the budget is spent.",
    ),
    "rest-sure": Note(
        "Fits a power law to each arm and drops those that surely lose.",
        "As ``etc``: on real curves the widths never decide.",
    ),
    "asha": Note(
        "Asynchronous halving as tuners ship it, for comparison.",
        "A fixed budget on one worker: the first arm is always trained to the end, and a small "
        "budget ends before all arms were tried.",
    ),
    "hyperband": Note(
        "Several halvings side by side, from hasty to patient, for comparison.",
        "A fixed set of arms: it hedges over brackets, so most arms are judged hastily anyway.",
    ),
    "i-epoch": Note(
        "Pulls every arm i times and then the best alone.",
        "Whenever curves cross after pull i. It is hard to beat where they do not.",
    ),
    "rising-bandits": Note(
        "Drops arms that cannot catch up along their own recent slope.",
        "Noise: it is multiplied by the distance to the horizon.",
    ),
    "r-ed-ucb": Note(
        "R-ed-UCB, by which rising bandits began: made to lose little reward while it learns.",
        "Finding the best arm: it follows the arm that is ahead now or soon, and a late bloomer "
        "gets its turn when time itself has made its line the highest.",
    ),
    "max-ucb": Note(
        "A bandit that is after the largest single reward, made for tuners' trials.",
        "Noisy scores: a maximum favors who was pulled often.",
    ),
    "ptrr": Note(
        "Pulls arms one after the other while each stays above a power law.",
        "Naming the best: it was made to collect reward, and may end before all had a turn.",
    ),
    "hybrid": Note(
        "Follows the highest straight line, and hands over to ``ptrr`` at half-time.",
        "Noise: a line through two rewards says nothing then.",
    ),
}  # fmt: skip
