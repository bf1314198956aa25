"""What every policy must do, as one function to call in tests."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np

from latebloomer.core.kernel import cpu_jit
from latebloomer.core.ledger import ANY, replay
from latebloomer.core.moves import arrays_for, game_of, keeps_levels, key, moves_of, plain_moves
from latebloomer.errors import BudgetError, ContractError
from latebloomer.policies.base import Policy, most_pulls
from latebloomer.session.session import Session

Rewards = np.ndarray[Any, np.dtype[np.float64]]

# (arms, budget as a multiple of the advised one, horizon as a fraction of the budget)
SHAPES = ((2, 1.0, 1.0), (5, 3.0, 1.0), (5, 4.0, 0.2), (20, 2.0, 1.0), (5, 2.0, 3.0))


def check_policy(policy: Policy, seed: int = 0, compiled: bool | None = None) -> list[str]:
    """Raise a `ContractError` unless `policy` keeps the contract; return what was checked.

    It runs sessions on random rising curves, of several sizes and horizons. The plan fits the
    budget, no arm is pulled beyond the horizon, every (arm, reward) history replays to an equal
    session, a pickled session continues in the same way, the pulls of a phase may be made in any
    order, and compiled code pulls the same arms. If `rated_window` returns a number, ratings are
    means of that many rewards.

    Parameters
    ----------
    policy : Policy
        Policy to check.
    seed : int
        Seed for the random curves.
    compiled : bool | None
        Whether to check compiled code. Default: if numba is installed.

    Returns
    -------
    list[str]
        What was checked.

    Raises
    ------
    ContractError
        The policy does not do what every policy must.
    """
    rng = np.random.default_rng(seed)
    done = []
    for arms, times, share in SHAPES:
        budget = int(np.ceil(times * policy.advised_budget(arms)[0]))
        horizon = max(1, int(share * budget))
        rewards = rising_rewards(rng, arms, max(budget, horizon))
        _check_plan(policy, arms, budget, horizon)
        session = Session(policy, arms, budget, horizon, seed)
        path = _play(session, rewards)
        _check_end(session)
        half = session.replay(session.history[: len(path) // 2])
        copy = pickle.loads(pickle.dumps(half))
        _play(copy, rewards)
        promised(copy == session, "a replayed, pickled and continued session is another one")
        _check_any_order(session, rewards, rng)
        done.append(f"{arms} arms, {budget} pulls, horizon {horizon}: {len(path)} pulls played")
        if compiled or (compiled is None and find_spec("numba") is not None):
            _check_compiled(session, rewards, path)
            done.append("the same pulls and the same arm by compiled code")
    _check_window(policy, rewards)
    _check_least(policy)
    return done


def rising_rewards(rng: np.random.Generator, arms: int, length: int) -> Rewards:
    """Return rewards of random rising curves with a little noise: row i, column n - 1."""
    n = np.arange(1, length + 1)
    level, speed = rng.uniform(0.3, 1, (2, arms, 1))
    noise = 0.02 * rng.standard_normal((arms, length))
    return level * (1 - np.exp(-speed * n / (0.1 * length))) + noise


def promised(holds: bool, what: str) -> None:
    """Raise a `ContractError` unless what every policy or runner promises holds."""
    if not holds:
        raise ContractError(what)


def _check_plan(policy: Policy, arms: int, budget: int, horizon: int) -> None:
    plan = policy.plan(arms, budget, horizon)
    keep, upto = plan.keep.tolist(), plan.upto.tolist()
    known = [k for k in keep if k != ANY]
    promised(len(keep) > 0, f"the plan for {arms} arms and {budget} pulls is empty")
    promised(known == sorted(known, reverse=True), f"arms come back in the plan: keep={keep}")
    promised(upto == sorted(upto), f"pulls are taken back in the plan: upto={upto}")
    promised(ANY not in keep[:-1], f"only the last phase may be open to any arm: keep={keep}")


def _play(session: Session, rewards: Rewards) -> list[int]:
    """Run a session to its end; return the arms in the order in which it asked for them."""
    path = []
    while not session.over:
        arm = session.ask()
        path.append(arm)
        session.tell(arm, float(rewards[arm, session.pulls[arm]]))
    return path


def _check_end(session: Session) -> None:
    verdict = session.recommend()
    promised(session.spent <= session.budget, f"{session.spent} pulls of {session.budget}")
    most = max(session.pulls)
    promised(most <= session.horizon, f"an arm had {most} pulls, beyond {session.horizon}")
    room = most_pulls(session.policy, len(session.names), session.budget, session.horizon)
    promised(most <= room, f"an arm had {most} pulls, but `most_pulls` says {room}")
    best = verdict.arm
    promised(verdict.pulls[best] > 0, f"arm {best} is recommended but was not pulled")
    finite = np.isfinite(verdict.estimates[best])
    promised(finite, "the recommended arm's estimate is not a number")


def _check_any_order(session: Session, rewards: Rewards, rng: np.random.Generator) -> None:
    """Make each phase's pulls in a random order of arms."""
    if session.decides_every_pull:
        return
    arms, budget, horizon = len(session.names), session.budget, session.horizon
    other = Session(session.policy, arms, budget, horizon, session.seed)
    while not other.over:
        due = [arm for arm, pulls in other.ask_phase().items() for _ in range(pulls)]
        for arm in rng.permutation(due).tolist():
            other.tell(arm, float(rewards[arm, other.pulls[arm]]))
    same = (other.pulls, other.recommend()) == (session.pulls, session.recommend())
    promised(same, "the order of the pulls within a phase changes the outcome")


def _check_compiled(session: Session, rewards: Rewards, path: list[int]) -> None:
    arm, pulled = played(session, rewards, cpu_jit())
    where = next((t for t, (a, b) in enumerate(zip(path, pulled, strict=False)) if a != b), None)
    same = where is None and len(path) == len(pulled)
    promised(same, f"compiled code differs from pull {where} on")
    promised(arm == session.recommend().arm, "compiled code recommends another arm")


def played(like: Session, rewards: Rewards, jit: Callable[[Any], Any]) -> tuple[int, list[int]]:
    """Return the recommendation and the pulls of a run by the code that `jit` makes."""
    policy, arms, budget, horizon = like.policy, len(like.names), like.budget, like.horizon
    game = game_of(policy, arms, budget, horizon, key(like.seed), compiled=True)
    ledger, path = arrays_for(policy, arms, min(budget, horizon)), np.full(budget, -1)
    run = moves_of(type(policy), replay, jit)
    arm = run(game, ledger, rewards, 0, path)
    return int(arm), path[: int(ledger.n.sum())].tolist()


def _check_window(policy: Policy, rewards: Rewards) -> None:
    """Check that a rating that is said to be a window mean is one: simulations rely on it."""
    if policy.rated_window(1) is None:
        return
    promised(
        keeps_levels(policy),
        "`rated_window` says how many rewards a rating is the mean of, but `remember` keeps no "
        "sums of rewards. Use remember_levels, or omit `rated_window`.",
    )
    arms, length = rewards.shape
    game, ledger = game_of(policy, arms, length, length, 0), arrays_for(policy, arms, length)
    observe = plain_moves(type(policy))[0]
    for n in range(1, length + 1):
        observe(game, ledger, 0, float(rewards[0, n - 1]))
        span = policy.rated_window(n) or n
        mean = float(np.mean(rewards[0, n - span : n]))
        promised(
            bool(np.isclose(ledger.rating[0], mean)),
            f"the rating after {n} pulls is not the mean of the latest {span} rewards, as "
            "`rated_window` says",
        )


def _check_least(policy: Policy) -> None:
    least, _ = policy.smallest_budget(4)
    with suppress(BudgetError):
        policy.plan(4, least - 1)
        raise ContractError(f"budget={least - 1} is accepted, but smallest_budget(4) is {least}")
    Session(policy, 4, least)
