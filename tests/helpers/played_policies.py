"""Sessions and ledgers that the tests of policies share."""

import numpy as np

from latebloomer.core.ledger import SWEEPS
from latebloomer.core.policy_moves import game_of, plain_moves
from latebloomer.core.run_memory import growing_rows, lists_for
from latebloomer.session.session import Session


def play(policy, rewards, budget=None, horizon=None, seed=0, batch=1, pulls=None):
    """A session, or that of a policy, with `rewards` (arms, pulls); up to some pulls if given."""
    session = policy
    if not isinstance(policy, Session):
        session = Session(policy, len(rewards), budget, horizon, seed)
    while not session.over and (pulls is None or session.spent < pulls):
        for arm in session.ask_phase(batch) if batch > 1 else [session.ask()]:
            session.tell(arm, float(rewards[arm][session.pulls[arm]]))
    return session


def asked(session):
    return [arm for arm, _ in session.history]


def rated(policy, rewards, horizon=None):
    """The ledger after all arms have had their rewards and were rated."""
    arms, n = np.shape(rewards)
    horizon = n if horizon is None else horizon
    ledger, game = lists_for(policy, arms), game_of(policy, arms, arms * n, horizon, 0)
    observe = plain_moves(type(policy))[0]
    for i, row in enumerate(rewards):
        for x in row:
            for rows in growing_rows(policy, ledger):
                rows[i].append(0.0)
            observe(game, ledger, i, float(x))
    ledger.cursor[SWEEPS] = n
    type(policy).rate_jointly(policy, ledger, horizon)
    return ledger
