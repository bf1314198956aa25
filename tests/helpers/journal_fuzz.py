"""Random damage to journals: each is refused or unharmed, and a repaired one is resumed."""

import random
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

from latebloomer import race, read_verdict, resume
from latebloomer.errors import LatebloomerError
from latebloomer.racing.journal import recovery
from latebloomer.racing.journal.races_folder import listed_race
from tests.helpers.learners import LEARNERS, rising

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
                    recovery.repair(path, folder / f"sound-{k}.db")
                    sound = folder / f"sound-{k}.db"
                    more = "d" in read_verdict(sound).pulls
                    resume(sound, WITH_NEWCOMER if more else LEARNERS, progress=False)
                    resumed += 1
            for file in folder.glob(f"*-{k}.db*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
    return {"journals": times, "refused": refused, "unharmed": unharmed,
            "repaired and resumed": resumed}  # fmt: skip
