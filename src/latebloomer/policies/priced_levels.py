r"""The plan of a race that pays in seconds: levels follow from prices, and drops may, too.

With :math:`c_i` the price of one pull of learner i and m = K, ..., 2 remaining learners in the
expected order of drops, each is trained to

.. math:: l_m = \mathrm{clip}\Bigl(\Bigl\lfloor C \Bigl(
          \frac{\sum_{\text{all}} c_i}{\sum_{\text{left}} c_i}\Bigr)^q \Bigr\rfloor, n, H\Bigr),
          \qquad q = 1.5,

pulls, with the largest C that the money left pays for. With equal prices that is the plan of
`AdaptiveRejects`. Dropping a dear learner lengthens the race more than dropping a cheap one.

Evidence: `docs/research-log.md`, "Races in seconds".
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

POWER = 1.5  # how steeply levels rise as learners are dropped: that of `AdaptiveRejects`
HALVINGS = 60  # of the interval in which C is searched: to the last digit of a float


def drop_order(ratings: Sequence[float], prices: Sequence[float], by_waste: bool) -> list[int]:
    """Return the places of learners in the order in which they would be dropped; the last is kept.

    By waste, the first is the one with the largest gap to the leader times its price, and the
    leader is never dropped; of learners level with it the dearest goes first. Otherwise the order
    is by rating, the worst first. Of equals the one with the larger place goes first.

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
    """Return the pulls of each learner when the next ones are dropped.

    Parameters
    ----------
    sweeps : Sequence[float]
        Price of one pull of every learner that races in each phase, in the order of drops.
    total : float
        Price of one pull of all learners of the race.
    now : int
        Pulls that each learner has had.
    horizon : float
        Largest number of pulls of a learner.
    money : float
        What the race may still spend.
    least : int
        Smallest level.
    power : float
        How steeply levels rise.

    Examples
    --------
    >>> priced_levels([4, 3, 2], 4, now=0, horizon=20, money=40)  # as with 40 pulls of 4 learners
    [5, 7, 14]
    >>> priced_levels([12, 3, 2], 12, 0, 20, money=60)  # the first to be dropped is the dearest
    [1, 11, 20]
    >>> priced_levels([4, 3, 2], 4, 5, 20, money=60)  # all can be trained to the end
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
    """Raise levels by one, the last phase first, while that is paid for, and return them."""
    for phase in range(len(levels) - 1, -1, -1):
        last = phase + 1 == len(levels)
        price = sweeps[phase] - (0.0 if last else sweeps[phase + 1])
        if levels[phase] < (horizon if last else levels[phase + 1]) and spare >= price:
            levels[phase] += 1
            spare -= price
    return levels
