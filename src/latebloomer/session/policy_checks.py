"""The contract of policies: named checks that tests can run one by one."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.kernel import cpu_jit, plain
from latebloomer.core.ledger import ANY, Game, Ledger
from latebloomer.core.moves import replay
from latebloomer.core.policy_moves import AT_PULLS, game_of, key, moves_of, plain_moves
from latebloomer.core.redrawn_past import (
    is_redrawn,
    ledger_with_table,
    redrawn_kernels,
    reward_in_table,
)
from latebloomer.core.run_memory import NOTHING, SUMS, TOTAL, WINDOW, arrays_for
from latebloomer.errors import BudgetError, ContractError
from latebloomer.policies.base import Policy, cost_of, most_pulls
from latebloomer.session.events import BudgetReplanned
from latebloomer.session.session import Session

Rewards = np.ndarray[Any, np.dtype[np.float64]]

# (arms, budget as a multiple of the advised one, horizon as a fraction of the budget)
SHAPES = ((2, 1.0, 1.0), (5, 3.0, 1.0), (5, 4.0, 0.2), (20, 2.0, 1.0), (5, 2.0, 3.0))


class PolicyCheck(NamedTuple):
    """One check: `run(policy, seed)` raises a `ContractError` if the policy does not pass it."""

    name: str
    run: Callable[[Policy, int], None]


def check_policy(policy: Policy, seed: int = 0) -> list[str]:
    """Raise a `ContractError` unless `policy` keeps the contract; return the names of the checks.

    The checks run sessions of several sizes and horizons on random rising curves. All checks are
    run, and the error names each one that fails.

    Parameters
    ----------
    policy : Policy
        Policy to check.
    seed : int
        Seed for the random curves.

    Returns
    -------
    list[str]
        Names of the checks: `plan_fits`, `horizon_holds`, `replay_is_equal`, `pickle_continues`,
        `any_order`, `replan_keeps_cells` and `share_is_rated`; also `compiled_picks` if numba is
        installed, and `redrawn_picks` if a GPU would draw past rewards of this policy again
        instead of storing them.

    Raises
    ------
    ContractError
        The policy does not do what every policy must.
    """
    checks, broken = policy_checks(policy), []
    for check in checks:
        try:
            check.run(policy, seed)
        except ContractError as error:
            broken.append(f"{check.name}: {error}")
    if broken:
        kept = f"{policy!r} passes {len(checks) - len(broken)} of {len(checks)} checks of a policy"
        raise ContractError("\n- ".join([f"{kept}. It fails", *broken]))
    return [check.name for check in checks]


def policy_checks(policy: Policy) -> list[PolicyCheck]:
    """Return the checks that `check_policy` runs; a test may run them one by one."""
    checks = [plan_fits, horizon_holds, replay_is_equal, pickle_continues, any_order]
    checks += [replan_keeps_cells, share_is_rated]
    if find_spec("numba") is not None:
        checks.append(compiled_picks)
    if is_redrawn(policy):
        checks.append(redrawn_picks)
    return [PolicyCheck(check.__name__, check) for check in checks]


def promised(holds: bool, what: str) -> None:
    """Raise a `ContractError` unless `holds`: every policy or runner must do `what`."""
    if not holds:
        raise ContractError(what)


# --- the sessions that the checks run ---


class Case(NamedTuple):
    """A problem of random rising curves, and the budget and horizon to play on it."""

    arms: int
    budget: int
    horizon: int
    rewards: Rewards  # row i, column n - 1

    def session(self, policy: Policy, seed: int) -> Session:
        """Return a session before its first pull."""
        return Session(policy, self.arms, self.budget, self.horizon, seed)


def cases(policy: Policy, seed: int) -> Iterator[Case]:
    """Yield problems of several sizes and horizons, with budgets that suit the policy."""
    rng = np.random.default_rng(seed)
    for arms, times, share in SHAPES:
        budget = int(np.ceil(times * policy.advised_budget(arms)[0]))
        horizon = max(1, int(share * budget))
        yield Case(arms, budget, horizon, rising_rewards(rng, arms, max(budget, horizon)))


def rising_rewards(rng: np.random.Generator, arms: int, length: int) -> Rewards:
    """Return rewards of random rising curves with a little noise: row i, column n - 1."""
    n = np.arange(1, length + 1)
    level, speed = rng.uniform(0.3, 1, (2, arms, 1))
    noise = 0.02 * rng.standard_normal((arms, length))
    return level * (1 - np.exp(-speed * n / (0.1 * length))) + noise


def finish(session: Session, rewards: Rewards, pulls: int | None = None) -> list[int]:
    """Run a session to its end, or for `pulls` pulls; return the arms that it requested."""
    path: list[int] = []
    while not session.over and (pulls is None or len(path) < pulls):
        arm = session.ask()
        path.append(arm)
        session.tell(arm, float(rewards[arm, session.pulls[arm]]))
    return path


def played(like: Session, rewards: Rewards, jit: Callable[[Any], Any]) -> tuple[int, list[int]]:
    """Return the recommendation and the pulled arms of a run in code that `jit` compiles."""
    policy, (arms, budget, horizon) = like.policy, _size(like)
    game = game_of(policy, arms, budget, horizon, key(like.seed), compiled=True)
    ledger = arrays_for(policy, arms, min(budget, horizon))
    return _replayed(moves_of(type(policy), replay, jit), game, ledger, rewards)


def played_redrawn(like: Session, rewards: Rewards) -> tuple[int, list[int]]:
    """Return the recommendation and the pulled arms of a run that looks past rewards up again.

    Like the code on a GPU, which draws past rewards again, it stores no reward. It is plain
    Python.
    """
    policy, (arms, budget, horizon) = like.policy, _size(like)
    table = rewards.tolist()
    game = game_of(policy, arms, budget, horizon, key(like.seed))
    ledger = ledger_with_table(policy, arms, table)
    drawn = redrawn_kernels(policy, policy.reads_bends(), reward_in_table)
    run = moves_of(type(policy), replay, plain, (*AT_PULLS, *drawn.items()))
    return _replayed(run, game, ledger, table)


def _size(session: Session) -> tuple[int, int, int]:
    return len(session.names), session.budget, session.horizon


def _replayed(run: Any, game: Game, ledger: Ledger, rewards: Any) -> tuple[int, list[int]]:
    path = np.full(game.budget, -1)
    arm = run(game, ledger, rewards, 0, path)
    return int(arm), path[: int(sum(ledger.n))].tolist()


# --- the checks ---


def plan_fits(policy: Policy, seed: int) -> None:
    """Check that plans are valid, and that no budget below `smallest_budget` has a plan."""
    for case in cases(policy, seed):
        plan = policy.plan(case.arms, case.budget, case.horizon)
        keep, upto = plan.keep.tolist(), plan.upto.tolist()
        known = [k for k in keep if k != ANY]
        promised(len(keep) > 0, f"the plan for {case.arms} arms, {case.budget} pulls is empty")
        promised(
            known == sorted(known, reverse=True), f"dropped arms return in the plan: keep={keep}"
        )
        promised(upto == sorted(upto), f"pulls are taken back in the plan: upto={upto}")
        promised(ANY not in keep[:-1], f"only the last phase may be open to any arm: keep={keep}")
    least, _ = policy.smallest_budget(4)
    with suppress(BudgetError):
        policy.plan(4, least - 1)
        raise ContractError(f"budget={least - 1} is accepted, but smallest_budget(4) is {least}")
    Session(policy, 4, least)


def horizon_holds(policy: Policy, seed: int) -> None:
    """Check that a session keeps to budget and horizon, and recommends a pulled arm."""
    for case in cases(policy, seed):
        session = case.session(policy, seed)
        finish(session, case.rewards)
        promised(session.spent <= session.budget, f"{session.spent} pulls of {session.budget}")
        most, room = max(session.pulls), most_pulls(session.policy, *case[:3])
        promised(most <= case.horizon, f"an arm had {most} pulls, beyond {case.horizon}")
        promised(most <= room, f"an arm had {most} pulls, but `most_pulls` says {room}")
        promised(session.spent > 0, f"{case.budget} pulls end before the first one")
        verdict = session.recommend()
        promised(verdict.pulls[verdict.arm] > 0, f"arm {verdict.arm} is kept but was not pulled")
        finite = bool(np.isfinite(verdict.estimates[verdict.arm]))
        promised(finite, "the recommended arm's estimate is not a number")


def replay_is_equal(policy: Policy, seed: int) -> None:
    """Check that half a session, replayed and then continued, ends like the session itself."""
    for case in cases(policy, seed):
        session = case.session(policy, seed)
        path = finish(session, case.rewards)
        half = session.replay(session.history[: len(path) // 2])
        finish(half, case.rewards)
        promised(half == session, "a replayed and continued session is another one")


def pickle_continues(policy: Policy, seed: int) -> None:
    """Check that a pickled session continues as the session itself does."""
    for case in cases(policy, seed):
        session = case.session(policy, seed)
        finish(session, case.rewards, case.budget // 2)
        copy = pickle.loads(pickle.dumps(session))
        promised(copy == session, "a pickled session is another one")
        finish(session, case.rewards)
        finish(copy, case.rewards)
        promised(copy == session, "a pickled session continues in another way")


def any_order(policy: Policy, seed: int) -> None:
    """Check that the pulls of a phase may be made in any order of arms."""
    rng = np.random.default_rng(seed)
    for case in cases(policy, seed):
        session, other = case.session(policy, seed), case.session(policy, seed)
        if session.decides_every_pull:
            return
        finish(session, case.rewards)
        while not other.over:
            due = [arm for arm, pulls in other.ask_phase().items() for _ in range(pulls)]
            for arm in rng.permutation(due).tolist():
                other.tell(arm, float(case.rewards[arm, other.pulls[arm]]))
        same = (other.pulls, other.recommend()) == (session.pulls, session.recommend())
        promised(same, "the order of the pulls within a phase changes the outcome")


def replan_keeps_cells(policy: Policy, seed: int) -> None:
    """Check that a new plan for the same budget, before the first drop, changes nothing.

    If every arm competes for every pull, a plan with a farther horizon is made in between, so that
    the session enters all rewards again. Plans that leave pulls over (because the horizon cuts
    phases short, or by design) are skipped: a new plan would spend these pulls.
    """
    for case in cases(policy, seed):
        horizon = None if case.horizon == case.budget else case.horizon
        undisturbed = Session(policy, case.arms, case.budget, horizon, seed)
        one_by_one = undisturbed.decides_every_pull
        spent = cost_of(undisturbed.policy.plan(*case[:3])) + case.arms > case.budget
        if not (one_by_one or spent):
            continue
        finish(undisturbed, case.rewards)
        for share in (4, 2):
            session = Session(policy, case.arms, case.budget, horizon, seed)
            finish(session, case.rewards, case.budget // share)
            if session.over or len(session.racing) < case.arms:
                continue
            for budget in (case.budget + 1, case.budget) if one_by_one else (case.budget,):
                session.apply(BudgetReplanned(budget, budget))
            finish(session, case.rewards)
            same = session.pulls == undisturbed.pulls
            same = same and session.recommend().arm == undisturbed.recommend().arm
            promised(
                same,
                f"after a new plan for the same budget, made after 1/{share} of the pulls, other "
                "arms are pulled. Name the cells that rewards alone do not determine in the "
                "`kept` of its memory",
            )


def share_is_rated(policy: Policy, seed: int) -> None:
    """Check that each rating is the mean that `rated_share` declares: simulations rely on it."""
    share, past = policy.rated_share(), policy.memory.past
    if share is None:
        return
    promised(
        past in (SUMS, WINDOW, TOTAL, NOTHING),
        "`rated_share` says which of its rewards an arm is rated by, but the memory keeps other "
        "things. Declare Memory(SUMS) or Memory(WINDOW), or omit `rated_share`",
    )
    if past is not SUMS:
        return
    for case in cases(policy, seed):
        arms, length = case.rewards.shape
        game, ledger = game_of(policy, arms, length, length, 0), arrays_for(policy, arms, length)
        observe = plain_moves(type(policy))[0]
        for n in range(1, length + 1):
            observe(game, ledger, 0, float(case.rewards[0, n - 1]))
            span = policy.rated_span(n)
            mean = float(np.mean(case.rewards[0, n - span : n]))
            promised(
                bool(np.isclose(ledger.rating[0], mean)),
                f"the rating after {n} pulls is not the mean of the latest {span} rewards, as "
                "`rated_share` says",
            )


def compiled_picks(policy: Policy, seed: int) -> None:
    """Check that compiled code pulls the same arms as plain Python."""
    _same_picks(policy, seed, "compiled code", partial(played, jit=cpu_jit()))


def redrawn_picks(policy: Policy, seed: int) -> None:
    """Check that the same arms are pulled if past rewards are drawn again, as on a GPU.

    A policy fails this check if it reads the ledger's `S` or `Q` directly, or uses other rewards
    than `rated_share` declares. The check is plain Python and needs no GPU.
    """
    _same_picks(policy, seed, "a GPU, which draws past rewards again,", played_redrawn)


def _same_picks(
    policy: Policy, seed: int, who: str, play: Callable[[Session, Rewards], tuple[int, list[int]]]
) -> None:
    for case in cases(policy, seed):
        session = case.session(policy, seed)
        path = finish(session, case.rewards)
        try:
            arm, pulled = play(session, case.rewards)
        except (IndexError, NotImplementedError) as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise ContractError(f"{who} cannot run the policy's kernels: {what}") from error
        pairs = enumerate(zip(path, pulled, strict=False))
        where = next((t for t, (ours, theirs) in pairs if ours != theirs), None)
        same = where is None and len(path) == len(pulled)
        promised(same, f"{who} pulls other arms from pull {where} on")
        promised(arm == session.recommend().arm, f"{who} recommends another arm")
