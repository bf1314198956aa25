"""What a run is made of: the phases of its plan, its moves for each target, and its memory.

The moves are in `ledger.py`. If a move names one of a policy's kernels, `moves_of` binds it to the
policy's own. A session uses lists, which plain Python indexes fastest; compiled code uses arrays.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from latebloomer.core import ledger as kernels
from latebloomer.core.estimators import PrefixSums
from latebloomer.core.kernel import Jit, kernel, lower, plain
from latebloomer.core.ledger import Game, Ledger, Plan
from latebloomer.errors import BudgetError, require

POOL = 4  # cells of Ledger.pool


# The kernels that a policy may define; the moves call them by these names.
HOOKS = (
    "rating", "final_rating", "update_rating", "rate_jointly", "after_sweep", "pick", "remember",
)  # fmt: skip


def kernels_of(policy: Any) -> dict[str, Callable[..., Any]]:
    """Return a policy's kernels by the names by which the moves call them."""
    return {hook: getattr(policy, hook) for hook in HOOKS}


@cache
def moves_of(
    policy: Any, fn: Callable[..., Any], jit: Jit = plain, **also: Callable[..., Any]
) -> Any:
    """Return `fn` for the target of `jit`, by a policy's rules; `also` binds more names."""
    # A cache file refers to the type that `settings` returns, and cannot be read without it.
    made_by = policy.settings
    numbers = (
        f"{made_by.__module__}.{made_by.__qualname__} {made_by.__annotations__.get('return')}"
    )
    owner = f"{policy.__module__}.{policy.__qualname__} {numbers}"
    return lower(fn, jit, owner=owner, **kernels_of(policy), **also)


@cache
def plain_moves(policy: Any) -> tuple[Any, Any, Any, Any]:
    """Return `observe`, `advance`, `recommend` and `final_rating` in plain Python."""
    moves = (kernels.observe, kernels.advance, kernels.recommend, policy.final_rating)
    return tuple(moves_of(policy, fn) for fn in moves)


@cache
def plain_intake(policy: Any) -> tuple[Any, Any]:
    """Return `observe` without the rating, and `update_rating`, in plain Python."""
    unrated = lower(kernels.observe, plain, remember=policy.remember, update_rating=_leave_unrated)
    return unrated, moves_of(policy, policy.update_rating)


@kernel
def _leave_unrated(*_: Any) -> None:
    """Do nothing, in the place of `update_rating`."""


# --- what stays the same in a run ---


def key(seed: int) -> int:
    """Return the seed as kernels take it: the same 64 bits as a signed number.

    >>> key(7), key(2**64 - 1)
    (7, -1)
    """
    require(
        isinstance(seed, int | np.integer) and 0 <= seed < 2**64,
        "seed", seed, "an integer in [0, 2^64)", "it is the key of a counter-based generator",
    )  # fmt: skip
    return int(seed) - (2**64 if seed >= 2**63 else 0)


def game_of(
    policy: Any,
    arms: int,
    budget: int,
    horizon: int,
    seed: int,
    min_pulls: int = 1,
    compiled: bool = False,
) -> Game:
    """Return what stays the same in a run: with arrays if `compiled`, otherwise with lists."""
    form = _whole if compiled else _listed
    plan = policy.plan(arms, budget, horizon, min_pulls)
    rule = policy.settings(arms, budget, horizon)
    return Game(type(rule)(*map(form, rule)), Plan(*map(form, plan)), budget, horizon, seed)


def _whole(value: Any) -> Any:
    return value.array() if isinstance(value, PrefixSums) else value


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


# --- memory ---


def lists_for(arms: int, past: tuple[int, int] = (1, 1)) -> Ledger:
    """Return an empty ledger of lists; a row of `S` and of `Q` has `past` entries and can grow."""
    ledger = _ledger(arms, past, _listed_zeros)
    kernels.reset(ledger)
    return ledger


def _listed_zeros(shape: tuple[int, ...], kind: Any) -> list[Any]:
    row = [kind(0).item()] * shape[-1]
    return row if len(shape) == 1 else [row.copy() for _ in range(shape[0])]


def arrays_for(
    policy: Any, arms: int, longest: int, zeros: Callable[..., Any] = np.zeros
) -> Ledger:
    """Return a ledger of arrays for arms with up to `longest` pulls; `reset` starts a run."""
    return _ledger(arms, past_lengths(policy, longest), zeros)


def _ledger(arms: int, past: tuple[int, int], zeros: Callable[..., Any]) -> Ledger:
    """Return a ledger whose parts `zeros` makes, given their shape and type."""
    shapes = {
        "S": (arms, past[0]),
        "Q": (arms, past[1]),
        "work": (2 * arms + kernels.FAN,),
        "pool": (POOL,),
        "cursor": (kernels.CELLS,),
    }
    floats = ("last", "rating", "memo", "S", "Q", "pool")
    made = (
        zeros(shapes.get(name, (arms,)), np.float64 if name in floats else np.int64)
        for name in Ledger._fields
    )
    return Ledger(*made)


def ledger_bytes(policy: Any, arms: int, longest: int) -> int:
    """Return the bytes of the ledger of `arrays_for`: every entry has 8."""
    rest = kernels.FAN + POOL + kernels.CELLS
    return 8 * (arms * (sum(past_lengths(policy, longest)) + 9) + rest)


def rows_in_use(policy: Any, ledger: Ledger) -> tuple[Any, ...]:
    """Return the prefix sums that the policy's `remember` fills."""
    return (ledger.S, ledger.Q)[: _rows(policy)]


def past_lengths(policy: Any, longest: int) -> tuple[int, int]:
    """Return the entries of a row of `S` and of `Q` if arms are pulled up to `longest` times."""
    S, Q = (longest + 1 if _rows(policy) > row else 1 for row in (0, 1))
    return S, Q


def _rows(policy: Any) -> int:
    """Return 0 if `remember` fills nothing, 1 if it fills `S` alone, otherwise 2."""
    light = {kernels.remember_nothing: 0, kernels.remember_levels: 1}
    return light.get(policy.remember, 2)


def keeps_levels(policy: Any) -> bool:
    """Return whether `remember` leaves in `S` the prefix sums that window means are made of."""
    ledger = arrays_for(policy, 1, 2)
    for n, reward in ((1, 1.0), (2, 2.0)):
        policy.remember(ledger, 0, n, reward)
    return bool(ledger.S[0].tolist() == [0.0, 1.0, 3.0])


# --- phases of successive rejects: pulls of each remaining arm when a phase ends ---


def log_bar(arms: int) -> float:
    r"""Return the constant :math:`\overline{\log}(K) = \frac12 + \sum_{i=2}^K \frac1i`.

    Phases of successive rejects are shared out by it [Mussi24, below Eq. (chosen_values_nj)].

    Parameters
    ----------
    arms : int
        K, the number of arms.

    Returns
    -------
    float
        The constant.

    Examples
    --------
    >>> log_bar(3)  # 1/2 + 1/2 + 1/3
    1.3333333333333333
    """
    require(arms >= 1, "arms", arms, "at least 1", "the sum runs over the arms")
    return math.fsum([0.5, *(1 / i for i in range(2, arms + 1))])


def phase_lengths(arms: int, budget: int) -> list[int]:
    r"""Return the pulls :math:`N_1 \le \dots \le N_{K-1}` of each remaining arm after phase j.

    .. math:: N_j = \Bigl\lceil \frac{T - K}{\overline{\log}(K)\,(K + 1 - j)} \Bigr\rceil
              \qquad \text{[Mussi24, Eq. (chosen_values_nj)]}

    The ceiling is exact: where the quotient is a whole number no rounding makes it one more.

    Parameters
    ----------
    arms : int
        K, the number of arms.
    budget : int
        T, the total number of pulls.

    Returns
    -------
    list[int]
        One for each phase.

    Examples
    --------
    >>> phase_lengths(arms=3, budget=12)  # log_bar = 4/3: ceil(9 / 4), ceil(27 / 8)
    [3, 4]
    """
    require(arms >= 2, "arms", arms, "at least 2", "there is nothing to reject from one arm")
    if budget < arms:
        raise BudgetError(
            f"budget={budget} for {arms} arms, but successive rejects needs {arms}: "
            "its phases share out what is left after one pull of each arm"
        )
    spare, approximate = budget - arms, log_bar(arms)
    return [_phase_length(arms, spare, approximate, k) for k in range(arms, 1, -1)]


def _phase_length(arms: int, spare: int, approximate: float, survivors: int) -> int:
    quotient = spare / (approximate * survivors)
    # The float is good to a few parts in 10^16. Only this near to a whole number can it be on the
    # wrong side, and only then are the long integers of 100,000 arms worth their price.
    if abs(quotient - round(quotient)) > 1e-12 * (1 + quotient):
        return math.ceil(quotient)
    top, bottom = _log_bar_exact(arms)
    return -(-spare * bottom // (top * survivors))


@lru_cache(maxsize=8)
def _log_bar_exact(arms: int) -> tuple[int, int]:
    """Return numerator and denominator of log_bar(arms), not reduced."""
    top, bottom = _harmonic(1, arms + 1)
    return 2 * top - bottom, 2 * bottom  # 1/2 + (1/2 + ... + 1/K) = H_K - 1/2


def _harmonic(first: int, end: int) -> tuple[int, int]:
    """Return 1/first + ... + 1/(end - 1) as a fraction, by halves so that integers stay small."""
    if end - first == 1:
        return 1, first
    middle = (first + end) // 2
    (p, q), (r, s) = _harmonic(first, middle), _harmonic(middle, end)
    return p * s + r * q, q * s
