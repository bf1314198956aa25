"""The moves of one policy for one target, and the constants of its runs."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from latebloomer.core import moves
from latebloomer.core.formulas import PrefixSums
from latebloomer.core.kernel import Jit, lower, numbers_read, plain
from latebloomer.core.ledger import ANY, Game, Plan
from latebloomer.errors import ContractError, require

Kernel: TypeAlias = Callable[..., Any]
# Pairs (placeholder, kernel that replaces it).
Bound: TypeAlias = tuple[tuple[Kernel, Kernel], ...]

# Kernels that a policy may define; each replaces the placeholder of this name in `moves.py`.
HOOKS: tuple[Kernel, ...] = (
    moves.rating,
    moves.final_rating,
    moves.update_rating,
    moves.rate_jointly,
    moves.after_sweep,
    moves.pick,
)

# Arms are rated at each pull, because sessions show ratings, or only before decisions, which is
# enough for simulations.
AT_PULLS: Bound = ((moves.rate_before_decision, moves.rate_none),)
AT_DECISIONS: Bound = (
    (moves.rate_before_decision, moves.rate_racing),
    (moves.rate_pulled, moves.rate_pulled_later),
)


def kernels_of(policy: Any, also: Bound = AT_PULLS) -> dict[Kernel, Kernel]:
    """Return the kernel for each placeholder in the moves of a policy."""
    past = policy.memory.past
    hooks: dict[Kernel, Kernel] = {hook: getattr(policy, hook.__name__) for hook in HOOKS}
    hooks |= {moves.remember: past.remember, moves.rate_pulled: policy.update_rating}
    return hooks | dict(past.readers) | dict(also)


@cache
def moves_of(policy: Any, fn: Kernel, jit: Jit = plain, also: Bound = AT_PULLS) -> Any:
    """Return `fn` for the target of `jit` with a policy's kernels; `also` binds more kernels."""
    # A cache file refers to the type that `settings` returns; without it, the file cannot be read.
    made_by = policy.settings
    numbers = (
        f"{made_by.__module__}.{made_by.__qualname__} {made_by.__annotations__.get('return')}"
    )
    owner = f"{policy.__module__}.{policy.__qualname__} {numbers}"
    # A user's noise has its own kernel, and `source` has numbers of the user's own type.
    bound_from = {f"{kernel.__module__}.{kernel.__qualname__}" for _, kernel in also}
    foreign = sorted(name for name in bound_from if not name.startswith("latebloomer."))
    owners = dict.fromkeys(("self", "settings", "game"), owner) | {"source": " ".join(foreign)}
    return lower(fn, jit, kernels_of(policy, also), owners=owners)


@cache
def plain_moves(policy: Any) -> tuple[Any, Any, Any, Any]:
    """Return `observe`, `advance`, `recommend` and `final_rating` in plain Python."""
    several = (moves.observe, moves.advance, moves.recommend, policy.final_rating)
    return tuple(moves_of(policy, fn) for fn in several)


@cache
def plain_intake(policy: Any) -> tuple[Any, Any]:
    """Return `observe` without rating, and `update_rating`, in plain Python."""
    return moves_of(policy, moves.observe, also=AT_DECISIONS), moves_of(
        policy, policy.update_rating
    )


def when_rated(policy: Any, plan: Plan) -> Bound:
    """Return the kernels that rate arms in simulations: only at decisions, if that is possible."""
    return AT_DECISIONS if policy.rates_by_history() and ANY not in plan.keep else AT_PULLS


# --- the constants of a run ---


def key(seed: int) -> int:
    """Return the seed for kernels: the same 64 bits as a signed integer.

    >>> key(7), key(2**64 - 1)
    (7, -1)
    """
    require(
        isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < 2**64,
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
    """Return the constants of a run: with arrays if `compiled`, otherwise with lists."""
    form = _whole if compiled else _listed
    plan = policy.plan(arms, budget, horizon, min_pulls)
    settings = policy.settings(arms, budget, horizon)
    kind: Any = type(policy)
    numbers_type: Any = type(settings)
    _need_numbers(kind, numbers_type)
    numbers, phases = numbers_type(*map(form, settings)), Plan(*map(form, plan))
    return Game(numbers, phases, budget, horizon, seed, running_window(policy))


def running_window(policy: Any) -> float:
    """Return the window of the running sums; 0 if all rewards or only the latest one count."""
    share = policy.rated_share()
    return 0.0 if share is None or share >= 1 else float(share)


@cache
def _need_numbers(policy: Any, numbers: Any) -> None:
    """Raise a `ContractError` if a policy's kernels read numbers that they do not get."""
    for hook in HOOKS:
        name = hook.__name__
        missing = sorted(numbers_read(getattr(policy, name)) - set(dir(numbers)))
        if missing:
            kind, read, made_by = policy.__name__, missing[0], policy.settings.__qualname__
            raise ContractError(
                f"{kind}.{name} reads self.{read}, but kernels receive the numbers that {made_by} "
                f"returns: {', '.join(numbers._fields) or 'none'}. Let {kind}.settings return a "
                f"named tuple of these and {read}."
            )


def _whole(value: Any) -> Any:
    return value.array() if isinstance(value, PrefixSums) else value


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
