"""The plan of two policies: levels rise by a power as learners are dropped.

`adaptive-rejects` and `foresight` use it. While m = K, ..., 2 learners remain, each is trained to
C (K/m)^q pulls, with the largest C that the budget pays for.
"""

from collections.abc import Sequence

from latebloomer.policies.late_window import NOISE_PULLS

# Reason for the upper limit of `power`.
STEEP = "above it, all but a few pulls go to the last two learners"


def scaled(C: float, arms: int, m: int, power: float) -> int:
    """Return C (K/m)^q, rounded down but at least 1."""
    return max(1, int(C * (arms / m) ** power))


def power_plan(arms: int, budget: int, horizon: int, power: float) -> list[tuple[int, int]]:
    """Return a plan that drops one arm at each of `power_levels`."""
    upto = power_levels(arms, budget, horizon, power)
    return [*zip(range(arms, 1, -1), upto, strict=True), (1, upto[-1])]


def budget_for_noise(arms: int, power: float) -> tuple[int, str]:
    """Return the smallest budget with which noise can be estimated before a drop, and why."""
    upto = [scaled(NOISE_PULLS, arms, m, power) for m in range(arms, 1, -1)]
    return cost(upto), f"{NOISE_PULLS} pulls of each learner before the first drop"


def cost(upto: Sequence[int]) -> int:
    """Return the cost in pulls of phases with K, ..., 2 arms; two arms reach the last level."""
    return sum(upto) + upto[-1]


def power_levels(arms: int, budget: int, horizon: int, power: float) -> list[int]:
    """Return the levels of K, K - 1, ..., 2 remaining arms.

    >>> power_levels(arms=4, budget=40, horizon=20, power=1.5)
    [5, 7, 14]
    >>> power_levels(4, 80, 20, 1.5), power_levels(4, 5, 20, 1.5)  # enough for all, hardly any
    ([20, 20, 20], [1, 1, 1])
    """

    def levels(C: float) -> list[int]:
        return [min(horizon, scaled(C, arms, m, power)) for m in range(arms, 1, -1)]

    low, high = 0.0, float(horizon)
    if cost(levels(high)) <= budget:
        return levels(high)
    while (middle := (low + high) / 2) not in (low, high):
        if cost(levels(middle)) <= budget:
            low = middle
        else:
            high = middle
    return raised(levels(low), budget, horizon)


def raised(upto: list[int], budget: int, horizon: int) -> list[int]:
    """Raise levels by one, the last phase first, while pulls are left over; return the levels."""
    remaining = budget - cost(upto)
    for phase in range(len(upto) - 1, -1, -1):
        price = 2 if phase == len(upto) - 1 else 1
        follows = upto[phase + 1] if phase + 1 < len(upto) else horizon
        if remaining >= price and upto[phase] < follows:
            upto[phase] += 1
            remaining -= price
    return upto
