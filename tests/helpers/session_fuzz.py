"""Random calls on sessions, sensible and not; a refused call leaves the session as it was."""

import pickle
import random
from contextlib import suppress

import numpy as np

from latebloomer.errors import LatebloomerError
from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.session import events
from latebloomer.session.session import Session

ARMS = (2, 3, 5, 9)
JUNK = (None, "", "x", -1, 99, 10**400, 0.5, float("nan"), float("inf"), 1e300, True, [], {}, b"1",
        1j, np.complex64(1j), np.float32(0.25), np.array([0.5]), "a", object())  # fmt: skip
POLICIES = [label_of(kind.examples()[0]) for kind in REGISTRY.values()]


def junk(rng, sensible):
    """Mostly what makes sense, now and then anything."""
    return rng.choice(JUNK) if rng.random() < 0.05 else sensible


def event(rng, session):
    arm = junk(rng, rng.randrange(len(session.names)))
    more = junk(rng, session.spent + rng.randrange(-5, 60))
    size, once = junk(rng, rng.randrange(1, 5)), rng.random() < 0.5
    budget = junk(rng, session.budget + rng.randrange(-5, 60))
    kind, *values = rng.choice(
        [
            (events.ScoreReported, arm, junk(rng, rng.random())),
            (events.BatchIssued, size, once),
            (events.LearnerLeft, arm, junk(rng, rng.choice(["failed", "finished"]))),
            (events.BudgetReplanned, more, junk(rng, more)),
            (events.Stopped, "enough", once),
            (events.WinnerSelected, arm, more),
            (events.Joined, junk(rng, len(session.names)), junk(rng, f"new {size}")),
            (events.Extended, budget, more, junk(rng, session.horizon), once),
            (events.WarningNoted, arm, "hello"),
            (events.Restored, 0, 0, 0.0),
        ]
    )
    return kind(*values)


def call(rng, session):
    """One random call; a session that is over is extended now and then."""
    kind = rng.random()
    if session.over and kind < 0.2:
        more = session.budget + rng.randrange(60)
        session.apply(events.Extended(more, more, session.horizon, rng.random() < 0.8))
    elif kind < 0.7:
        session.tell(junk(rng, session.ask()), junk(rng, rng.random()))
    elif kind < 0.8:
        arms = list(session.ask_phase(junk(rng, rng.randrange(1, 4))))
        session.tell(rng.choice(arms) if arms else 0, rng.random())
    elif kind < 0.84:
        session.apply(event(rng, session))
    elif kind < 0.88:
        if (more := session.next_batch(junk(rng, rng.randrange(1, 4)))) is not None:
            session.apply(more)
    elif kind < 0.92:
        session.explain(junk(rng, rng.randrange(len(session.names))))
    elif kind < 0.985:
        rng.choice(
            [session.recommend, session.recommend, session.standings, session.certificate]
        )()
    else:
        session.scores(junk(rng, 0))


def fuzz_sessions(calls, seed):
    rng, made, refused, checked = random.Random(seed), 0, 0, 0
    while made < calls:
        session = new_session(rng)
        for _ in range(rng.randrange(20, 400)):
            made += 1
            check = rng.random() < 0.01
            before = pickle.dumps(session) if check else b""
            try:
                call(rng, session)
            except LatebloomerError:
                refused += 1
                if check:
                    assert pickle.loads(before) == session, "a refused call changed the session"
                    checked += 1
            assert session.spent == sum(session.pulls) <= session.budget, "overspent"
            assert max(session.pulls) <= session.horizon, "trained beyond the horizon"
        assert session.over != bool(session.ask_phase()), "over, but pulls are requested"
        assert session.replay(session.history) == session, "a replay differs"
        assert pickle.loads(pickle.dumps(session)) == session, "a pickle differs"
    return {"calls": made, "refused": refused, "checked unchanged": checked}


def new_session(rng):
    while True:
        with suppress(LatebloomerError):
            return Session(
                rng.choice(POLICIES), rng.choice(ARMS), rng.randrange(5, 150),
                rng.choice([None, rng.randrange(1, 60)]), rng.randrange(9),
                maximize=rng.random() < 0.7, winner_share=rng.choice([0.0, 0.0, 0.3]),
            )  # fmt: skip
