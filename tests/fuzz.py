"""`make fuzz`: a million random calls on sessions and journals; only our own errors come out.

    python tests/fuzz.py [--calls 1000000] [--journals 10000] [--seed 0]

Sessions are asked, told, replanned, extended, stopped, explained, pickled and replayed with
arguments of all kinds, sensible and not. Journals have bytes flipped, cut off, swapped or
overwritten, and are then listed, read, repaired and resumed. What must hold: a refused call leaves
the session as it was, no more is spent than the budget, a replay is equal, and a damaged journal
is refused or unharmed.
"""

import argparse
import pickle
import random
import shutil
import sqlite3
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "racing"))

from toys import LEARNERS, rising

from latebloomer import race, read_verdict, resume
from latebloomer.errors import LatebloomerError
from latebloomer.policies.registry import REGISTRY, label_of
from latebloomer.racing.journal import files
from latebloomer.racing.journal.listing import listed_race
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


WITH_NEWCOMER = LEARNERS | {"d": rising(0.8)}


def journals(folder):
    """A finished one, an unfinished one and an extended one."""
    race(LEARNERS, 90, journal=folder / "finished.db", progress=False, winner_share=0.3)
    with suppress(KeyboardInterrupt):
        race(LEARNERS | {"stops": stops}, 90, journal=folder / "unfinished.db", progress=False)
    race(LEARNERS, 60, journal=folder / "extended.db", progress=False)
    resume(folder / "extended.db", LEARNERS, progress=False, budget=90, add={"d": rising(0.8)})
    found = sorted(folder.glob("*.db"))
    for path in found:
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {path.name: (path.read_bytes(), read_verdict(path).summary()) for path in found}


def stops():
    for n in range(1, 9):
        yield n / 10
    raise KeyboardInterrupt


def damage(rng, data):
    """Flip bits, cut off, swap or overwrite pieces."""
    data, how = bytearray(data), rng.random()
    if how < 0.4:
        for _ in range(rng.choice([1, 1, 1, 8])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how < 0.6:
        start, length = rng.randrange(len(data)), rng.choice([1, 16, 512, 4096])
        piece = data[start : start + length]
        data[start : start + length] = rng.randbytes(len(piece))
    elif how < 0.8:
        del data[rng.randrange(len(data)) :]
    else:
        pages = len(data) // 4096
        a, b = (4096 * rng.randrange(pages) for _ in range(2))
        data[a : a + 4096], data[b : b + 4096] = data[b : b + 4096], data[a : a + 4096]
    return bytes(data)


def fuzz_journals(times, seed):
    rng, refused, unharmed, resumed = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="latebloomer-") as place:
        folder = Path(place)
        good = journals(folder)
        for k in range(times):
            name = rng.choice(sorted(good))
            data, summary = good[name]
            path = folder / f"damaged-{k}.db"
            path.write_bytes(damage(rng, data))
            listed_race(path)  # raises nothing, whatever is in the file
            try:
                found = read_verdict(path).summary()
                assert found == summary, "damage went unnoticed"
                unharmed += 1
            except LatebloomerError:
                refused += 1
                with suppress(LatebloomerError):
                    files.repair(path, folder / f"sound-{k}.db")
                    sound = folder / f"sound-{k}.db"
                    more = "d" in read_verdict(sound).pulls
                    resume(sound, WITH_NEWCOMER if more else LEARNERS, progress=False)
                    resumed += 1
            for file in folder.glob(f"*-{k}.db*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
    return {"journals": times, "refused": refused, "unharmed": unharmed,
            "repaired and resumed": resumed}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--journals", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    print("sessions:", fuzz_sessions(wanted.calls, wanted.seed), flush=True)
    print("journals:", fuzz_journals(wanted.journals, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
