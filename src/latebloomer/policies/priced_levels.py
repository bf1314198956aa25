r"""The plan of a race with a budget in seconds: levels, and optionally drops, depend on prices.

Let :math:`c_i` be the price of one pull of learner i. While m = K, ..., 2 learners remain, in the
expected order of drops, each is trained to

.. math:: l_m = \mathrm{clip}\Bigl(\Bigl\lfloor C \Bigl(
          \frac{\sum_{\text{all}} c_i}{\sum_{\text{left}} c_i}\Bigr)^q \Bigr\rfloor, n, H\Bigr),
          \qquad q = 1.5,

pulls, with the largest C that the remaining money pays for; the money is seconds. With equal
prices, this is the plan of `AdaptiveRejects`. Dropping an expensive learner raises later levels
more than dropping a cheap one.

Evidence: `docs/research-log.md`, "Races in seconds".
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

POWER = 1.5  # how steeply levels rise as learners are dropped, as in `AdaptiveRejects`
HALVINGS = 60  # halvings of the interval in which C is searched: to the precision of a float


def drop_order(ratings: Sequence[float], prices: Sequence[float], by_waste: bool) -> list[int]:
    """Return the places of learners in the order of drops; the last one is kept.

    With `by_waste`, the learner with the largest product of its gap to the leader and its price is
    dropped first, and the leader is never dropped; of learners with the leader's rating, the most
    expensive is dropped first. Otherwise, the learner with the worst rating is dropped first. In a
    tie, the learner with the larger place is dropped first.

    >>> drop_order([0.5, 0.9, 0.8, 0.7], [1, 9, 9, 1], by_waste=False)
    [0, 3, 2, 1]
    >>> drop_order([0.5, 0.9, 0.8, 0.7], [1, 9, 9, 1], by_waste=True)
    [2, 0, 3, 1]
    """
    top = max(ratings)

    def key(place: int) -> tuple[float, float, int]:
        if not by_waste:
            return ratings[place], 0.0, -place
        waste = (top - ratings[place]) * prices[place]
        return -waste, -prices[place], -place

    return sorted(range(len(ratings)), key=key)


def priced_levels(
    sweeps: Sequence[float],
    total: float,
    now: int,
    horizon: float,
    money: float,
    least: int = 1,
    power: float = POWER,
) -> list[int]:
    """Return the levels: the pulls per learner at which the next learners are dropped.

    Parameters
    ----------
    sweeps : Sequence[float]
        For each phase, the price of one pull of every learner that still races in it.
    total : float
        Price of one pull of every learner of the race.
    now : int
        Number of pulls that each learner has had.
    horizon : float
        Largest number of pulls of a learner.
    money : float
        Amount that the race may still spend, in the unit of the prices.
    least : int
        Minimum level.
    power : float
        How steeply levels rise as learners are dropped (the exponent q).

    Examples
    --------
    >>> priced_levels([4, 3, 2], 4, now=0, horizon=20, money=40)  # like 40 pulls for 4 learners
    [5, 7, 14]
    >>> priced_levels([12, 3, 2], 12, 0, 20, money=60)  # the most expensive is dropped first
    [1, 11, 20]
    >>> priced_levels([4, 3, 2], 4, 5, 20, money=60)  # all can be fully trained
    [20, 20, 20]
    """
    lowest, steep = min(horizon, max(now, least)), [(total / sweep) ** power for sweep in sweeps]

    def at(scale: float) -> list[int]:
        return [int(min(horizon, max(lowest, scale * rise))) for rise in steep]

    def cost(levels: Sequence[int]) -> float:
        added = [level - before for before, level in pairwise([now, *levels])]
        return sum(sweep * more for sweep, more in zip(sweeps, added, strict=True))

    low, high = 0.0, horizon if horizon < inf else now + money / min(sweeps) + 1.0
    if cost(at(high)) <= money:
        return at(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(at(middle)) <= money else (low, middle)
    return _raised(at(low), sweeps, horizon, money - cost(at(low)))


def _raised(levels: list[int], sweeps: Sequence[float], horizon: float, spare: float) -> list[int]:
    """Raise levels by one, the last phase first, while the money pays for it; return them."""
    for phase in range(len(levels) - 1, -1, -1):
        last = phase + 1 == len(levels)
        price = sweeps[phase] - (0.0 if last else sweeps[phase + 1])
        if levels[phase] < (horizon if last else levels[phase + 1]) and spare >= price:
            levels[phase] += 1
            spare -= price
    return levels
