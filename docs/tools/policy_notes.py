"""Texts of the policies' pages; the numbers are from docs/choose-a-policy.md."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """What a policy does, when it fails, and the settings that it needs to run."""

    family: str
    fails: str
    settings: str = ""


NOTES = {
    "foresight": Note(
        "The default policy. It drops the lowest-ranked arms phase by phase, and trusts a "
        "forecast only as far as earlier forecasts were right in the same race.",
        "It selects the wrong arm if the best one improves only after its drop (``latebloomer "
        "plan`` shows when the first drop happens), if two arms are about equal at the "
        "horizon, or if noise hides the slopes. Its error has no proven bound. It may select "
        "a late bloomer before its score has risen; ``winner_share=0.3`` trains it further.",
    ),
    "adaptive-rejects": Note(
        "Our variant of ``r-sr``. Its window follows the noise, and its levels follow a power "
        "law.",
        "It makes no forecast. In the paper's setting A with up to 600 pulls it always "
        "selects the wrong arm. Its error has no proven bound unless ``shortest`` is set.",
    ),
    "r-sr": Note(
        "A policy of the paper. It drops the arm with the worst recent mean, phase by phase. "
        "It needs no settings, and its error has a proven bound.",
        "It ranks arms by recent scores, so it drops a late bloomer if the budget is too "
        "small for the curves to cross before that drop. In the last phase, only one arm is "
        "left: these pulls do not change the selection.",
    ),
    "r-ucbe": Note(
        "A policy of the paper. It pulls the arm with the highest extrapolation to the "
        "horizon plus a bonus.",
        "On real curves, which are not concave or have unknown noise, the extrapolation is "
        "far off (rank loss .28 on five public sets, against .076 for the default policy).",
    ),
    "sh": Note(
        "Successive Halving. It keeps the better half of the arms, by the latest score or by "
        "a window mean.",
        'It drops late bloomers. With ``judge="latest"`` one score that is low by chance '
        "drops an arm. By window means (``sh:judge=window``) it is third best on recorded "
        "curves.",
    ),
    "sr": Note(
        "Successive Rejects, a policy for arms whose mean does not change.",
        "It misjudges learners that improve, because a mean over all scores includes the "
        "first ones.",
    ),
    "ucb-e": Note(
        "An upper-confidence rule for arms whose mean does not change.",
        "It misjudges learners that improve, as ``sr`` does. Its bonus needs the gaps between "
        "the arms, which are not known in a race.",
        "ucb-e:exploration=2",
    ),
    "rr": Note(
        "It pulls the arms in turn and selects the largest mean of all scores.",
        "It saves nothing, because no arm is dropped.",
    ),
    "rr-sw": Note(
        "It pulls the arms in turn and selects the best recent mean.",
        "With K arms, each arm gets one K-th of the budget, so the selected arm is trained no "
        "further than the others.",
    ),
    "prob-1": Note(
        "It draws arms at random by their rank. It is made for rewards that an adversary chooses.",
        "It is made for the worst case and does badly almost everywhere else: its sums favor "
        "arms that were pulled early.",
    ),
    "etc": Note(
        "It fits a power law to each arm, sweeps over the arms until one is clearly the best, "
        "and then pulls only that arm.",
        "It misjudges curves that are not power laws. Its confidence intervals rarely "
        "separate two arms before the budget is spent.",
    ),
    "rest-sure": Note(
        "It fits a power law to each arm and drops arms that clearly lose.",
        "As with ``etc``, the confidence intervals never separate arms on real curves.",
    ),
    "asha": Note(
        "Asynchronous halving with the settings of tuners, for comparison.",
        "With a fixed budget and one worker, the first arm is always trained to the end, and "
        "a small budget is spent before all arms were tried.",
    ),
    "hyperband": Note(
        "Several halvings next to each other, from early to late drops, for comparison.",
        "A fixed set of arms is divided among its brackets, so most arms are dropped early in "
        "any case.",
    ),
    "i-epoch": Note(
        "It pulls every arm i times, and then only the best one.",
        "It selects the wrong arm if curves cross after pull i. Where they do not cross, it "
        "is hard to beat.",
    ),
    "rising-bandits": Note(
        "It drops arms that cannot catch up along their own recent slope.",
        "It multiplies the noise of a slope by the distance to the horizon.",
    ),
    "r-ed-ucb": Note(
        "The first policy for rising bandits. It is made to lose little reward while it learns.",
        "It is not made to find the best arm: it pulls the arm that leads now or will lead "
        "soon. A late bloomer is pulled only after its extrapolation has become the highest "
        "one.",
    ),
    "max-ucb": Note(
        "A bandit policy that looks for the largest single reward, made for trials of tuners.",
        "With noisy scores, a maximum favors arms that were pulled often.",
    ),
    "ptrr": Note(
        "It pulls arms one after the other, each while it stays above a power law.",
        "It is made to collect reward, not to select the best arm. The budget may be spent "
        "before every arm was pulled.",
    ),
    "hybrid": Note(
        "It pulls the arm with the highest linear extrapolation, and changes to ``ptrr`` at "
        "half-time.",
        "With noise, a line through two rewards says nothing about the curve.",
    ),
}
