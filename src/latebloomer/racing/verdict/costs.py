"""What each learner's training took, and a warning where that is unfair to the others."""

from __future__ import annotations

from latebloomer.racing.race_state import RaceState

WORTH_A_WORD = 1.0  # second of training in all: below that nobody cares
HALF = 0.5  # of the time, taken by one learner
TENFOLD = 10.0  # between the cheapest pull and the dearest


def unequal_costs(race: RaceState) -> list[str]:
    """A warning, with numbers and what to set, where the time went to few.

    A survivor has more pulls than the others, so it is the length of pulls that counts: one that
    takes more than half of the time, at twice the time per pull of all, or pulls ten times apart.
    """
    total, pulls = sum(race.seconds), race.session.pulls
    paces = {i: race.seconds[i] / n for i, n in enumerate(pulls) if n}
    if total < WORTH_A_WORD or len(paces) < 2:
        return []
    dear, cheap = max(paces, key=lambda i: paces[i]), min(paces, key=lambda i: paces[i])
    apart = paces[dear] > TENFOLD * paces[cheap]
    greedy = race.seconds[dear] > HALF * total and paces[dear] * sum(pulls) > 2 * total
    if not (apart or greedy):
        return []
    return [
        f"{race.names[dear]} took {race.seconds[dear]:.3g} of the {total:.3g} s of training, "
        f"{paces[dear]:.3g} s a pull; {race.names[cheap]} took {paces[cheap]:.3g} s a pull. "
        f"{_advice(race)}"
    ]


def _advice(race: RaceState) -> str:
    if race.shares:
        return (
            "Each pull is the same share of a full training: it is longer as a whole. Shorten it "
            "(full_steps=), or race those apart that cost so much"
        )
    return (
        "If steps differ, trainings=3 with full_steps={...} makes a pull the same share of "
        "each learner's full training"
    )
