"""The plan of a race with a budget in seconds, from recorded prices.

If the budget is in seconds and the policy is "auto", the plan depends on prices: the price of a
learner is the mean duration of its latest pulls, and levels are computed from prices
(`policies/priced_levels.py`). Until every learner has had its second pull, prices count as equal,
because first pulls are often slow. The plan is an event (`BudgetReplanned` with levels), so that a
replay needs neither a clock nor prices.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from latebloomer._util.text import span_of_time
from latebloomer.policies.priced_levels import drop_order, priced_levels
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import WASTE
from latebloomer.session.events import FAILED

MEASURED = 2  # minimum pulls of a learner for its price to be known


class PricedPlan(NamedTuple):
    """The levels of the remaining arms, and their prices."""

    levels: tuple[int, ...]  # pulls per arm at which one of k, ..., 2 arms is dropped
    # Per arm of the race, seconds of its next pull, if drops depend on prices.
    prices: tuple[float, ...]
    pulls: int  # total pulls of all arms, including those already spent
    trains_all: bool  # whether every remaining arm can be trained to the horizon


def plans_by_price(state: RaceState) -> bool:
    """Return whether levels depend on prices: with a budget in seconds and policy "auto"."""
    session, settings = state.session, state.settings
    deciding = session.winner is None and not session.over
    return settings.auto and settings.seconds is not None and deciding


def prices_known(state: RaceState) -> bool:
    """Return whether every learner that can still be trained has had its second pull."""
    return all(state.session.pulls_of(i) >= MEASURED for i in state.session.trainable)


def priced_plan(
    state: RaceState, arms: Sequence[int], money: float, between: float, parallel: int
) -> PricedPlan:
    """Return the plan for arms that have had equally many pulls.

    `money` is the number of seconds left, `between` the cost of each pull in addition to its
    price, in seconds, and `parallel` the number of pulls that can be made at the same time.
    """
    session, settings = state.session, state.settings
    now = session.pulls_of(arms[0])
    every = [i for i, n in enumerate(session.pulls) if n and session.departure(i) != FAILED]
    price = {i: state.times.price(i) + between for i in every}
    known = prices_known(state)
    by_waste = settings.drops == WASTE and known
    if not known:
        mean = sum(price[i] for i in arms) / len(arms)
        price = dict.fromkeys(every, mean)
    horizon = inf if settings.horizon is None else session.horizon
    sign = 1.0 if settings.maximize else -1.0
    estimates = session.recommend().estimates
    order = drop_order([sign * estimates[i] for i in arms], [price[i] for i in arms], by_waste)
    ordered = [price[arms[place]] for place in order]
    sweeps = [_sweep(ordered[j:], parallel) for j in range(len(ordered) - 1)]
    total = _sweep(list(price.values()), parallel)
    # No learner is dropped after a single pull if the money pays for a second pull of each.
    patient = not known and money >= sweeps[0]
    least = max(settings.min_pulls, MEASURED if patient else 1)
    levels = priced_levels(sweeps, total, now, horizon, money, least)
    added = [level - before for before, level in pairwise([now, *levels])]
    pulls = sum(k * more for k, more in zip(range(len(arms), 1, -1), added, strict=True))
    prices = tuple(price.get(i, 0.0) for i in range(len(session.names))) if by_waste else ()
    return PricedPlan(tuple(levels), prices, session.spent + pulls, levels[0] >= horizon)


def _sweep(prices: Sequence[float], parallel: int) -> float:
    """Return the seconds of one pull of each arm; with enough workers, those of the longest.

    >>> _sweep([4.0, 2.0, 1.0], parallel=1), _sweep([4.0, 2.0, 1.0], parallel=2)
    (7.0, 4.0)
    """
    return max(sum(prices) / parallel, max(prices))


# --- costs as text ---

WORTH_SAYING = 1.0  # show no cost if training all learners takes less than this many seconds
SHOWN = 3  # maximum levels in the text of a plan; of more, the first ones and the last one


def costs_in_words(state: RaceState) -> str:
    """Return text with the time to train all learners, and the plan; empty if neither is known.

    Prices are the durations of second and later pulls.
    """
    lines = []
    full = state.settings.pulls_per_training
    if full is not None:
        every = seconds_of_all(state, full)
        if every >= WORTH_SAYING:
            text = f"Training all {len(state.names)}: about {_about(every)}."
            own = min(every, seconds_of_race(state))
            lines.append(f"{text} This race: about {_about(own)}.")
    levels = state.session.levels_to_come
    if state.session.levels_given and levels:
        lines.append(levels_in_words(levels, full, state.session.horizon))
    return "\n".join(lines)


def _about(seconds: float) -> str:
    """Return a duration as text, with two digits below a minute.

    >>> _about(0.8765), _about(19.4), _about(75)
    ('0.88 s', '19 s', '1 min 15 s')
    """
    return f"{seconds:.2g} s" if seconds < 59.5 else span_of_time(seconds)


def seconds_of_all(state: RaceState, full: int) -> float:
    """Return the estimated seconds of all full trainings, by the prices so far."""
    session, times = state.session, state.times
    open_arms = [i for i in range(len(state.names)) if session.departure(i) is None]
    rest = sum(times.price(i) * (full - session.pulls_of(i)) for i in open_arms)
    return times.training + max(0.0, rest)


def seconds_of_race(state: RaceState) -> float:
    """Return the seconds of the race: its time budget, or an estimate for its pulls."""
    session, times = state.session, state.times
    if state.settings.seconds is not None:
        return state.settings.seconds
    prices = [times.price(i) for i in session.trainable] or [0.0]
    return times.training + (session.budget - session.spent) * sum(prices) / len(prices)


def levels_in_words(levels: Sequence[tuple[int, int]], full: int | None, horizon: int) -> str:
    """Return the plan of a race in seconds as text.

    >>> levels_in_words([(5, 7), (4, 9), (3, 12), (2, 20)], None, 100)
    'Plan by price: all 5 to 7 pulls each, then 4 to 9, 3 to 12, 2 to 20.'
    >>> levels_in_words([(9, 25), (8, 28), (7, 31), (6, 40), (2, 90)], 100, 100)
    'Plan by price: all 9 to 25 % of their training, then 8 to 28 %, 7 to 31 %, ..., 2 to 90 %.'
    >>> levels_in_words([(3, 100)], 100, 100)
    'The time pays for all trainings that are left: all 3 are trained to the end.'
    """
    first, level = levels[0]
    each = "both" if first == 2 else f"all {first}"
    if full is not None and level >= horizon:
        pays = "The time pays for all trainings that are left"
        return f"{pays}: {each} are trained to the end."
    unit, scale = (" pulls each", 1.0) if full is None else (" % of their training", 100.0 / full)
    short = "" if full is None else " %"
    later = [f"{k} to {n * scale:.0f}{short}" for k, n in levels[1:]]
    if len(later) > SHOWN:
        later = [*later[: SHOWN - 1], "...", later[-1]]
    then = f", then {', '.join(later)}" if later else ""
    return f"Plan by price: {each} to {level * scale:.0f}{unit}{then}."
