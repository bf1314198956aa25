"""What the tests of sessions share."""

import pytest

from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.session.session import Session

ARMS = 5
STOPPING = ("asha", "hyperband")  # by their rules the budget need not be used up
SPECS = [label_of(kind.examples()[0]) for kind in REGISTRY.values()]
policies = pytest.mark.parametrize("policy", SPECS)


def reward(arm: int, n: int) -> float:
    """Rises, crosses and never ties."""
    return (0.4 + 0.11 * arm) * n / (n + 1 + 3 * arm) + 1e-3 * ((7 * n + arm) % 5)


def play(session: Session, stop: int | None = None) -> Session:
    """Pull what is asked, `stop` pulls at most."""
    made = 0
    while not session.over and made != stop:
        arm = session.ask()
        session.tell(arm, reward(arm, session.pulls[arm] + 1))
        made += 1
    return session
