"""Races that are killed at chosen moments, and resumed.

A process forks a victim for each moment, which lives one life of a race and is ended by SIGKILL at
that moment, so that no Python start-up is paid for any of them.
"""

import json
import os
import random
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from latebloomer import LocalRunner, race, resume
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.checks.check_runner import Rising
from latebloomer.racing.journal.event_log import SqliteLog
from latebloomer.session import events
from tests.helpers.journals import rows

WRITTEN = {
    events.ScoreReported: "commit", events.WinnerSelected: "naming", events.Saved: "checkpoint",
    events.Joined: "extension", events.Extended: "extension",
}  # fmt: skip
MOMENTS = (
    "before the pull", "after the pull", "before the commit", "after the commit", "in a save",
    "before the rename", "before the checkpoint", "before the old one is removed",
    "before the naming", "after the naming", "before the extension", "after the extension",
)  # fmt: skip


class Saved(Rising):
    """Deterministic, with state that only a checkpoint carries."""

    def pull(self):
        reach("before the pull")
        score = super().pull()
        reach("after the pull")
        return score

    def save(self, folder):
        (folder / "state.json").write_text("[")
        reach("in a save")
        super().save(folder)


class Plain(Saved):
    """Without save and load; few in memory, it is pickled."""

    save = load = None


def stream(best, slow, last=10**9):
    """Without save and load; ends by itself after `last` pulls."""

    def scores(seed):
        rng = random.Random(seed)
        for n in range(1, last + 1):
            reach("before the pull")
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores


def moody(seed):
    """Fails for good at its fifth pull."""
    rng = random.Random(seed)
    for n in range(1, 5):
        yield 0.1 * n + rng.gauss(0, 0.01)
    raise RuntimeError("no fifth pull")


SAVED = {"saved-late": lambda: Saved(1.0, 20.0), "saved-early": lambda: Saved(0.6, 1.0)}
LEARNERS = SAVED | {"stream": stream(0.8, 6.0), "ends": stream(0.55, 1.0, 7), "moody": moody}
MANY = SAVED | {
    "plain": lambda: Plain(0.8, 6.0),
    "plain too": lambda: Plain(0.5, 1.0),
    "saved-third": lambda: Saved(0.7, 4.0),
}
ADD = {"add": {"new": lambda: Saved(0.9, 8.0)}}
# Pulls that are shares of a full training: two steps, one, one or two, none.
SHARES = {
    "full_steps": {"saved-late": 90, "saved-early": 45, "stream": 60, "ends": 45, "moody": 10},
    "pulls_per_training": 45,
}


class Way(NamedTuple):
    """How a race is run, and how it is extended when it is over."""

    runner: dict
    settings: dict
    more: dict | None = None

    @property
    def learners(self):
        return LEARNERS if self.more is None else MANY

    @property
    def budget(self):
        return 90 if self.more is None else 60


LAST = 130  # pulls after an extension
NAMED_AT = 45  # pulls of the third way when it selects the winner
WAYS = [
    Way({"checkpoint_every": 3}, {"policy": "r-sr"}),
    Way({"checkpoint_every": 4}, {"policy": "r-ucbe", "maximize": False}),
    Way({"checkpoint_every": 3}, {"policy": "auto", "winner_share": 0.5}),
    Way({"checkpoint_every": 3}, SHARES),
    Way({"max_in_memory": 2}, {"policy": "r-sr", "horizon": 99}, {}),
    Way({"checkpoint_every": 4}, {"policy": "auto"}, ADD | {"horizon": 99}),
    Way({"max_in_memory": 1}, {"policy": "r-sr", "winner_share": 0.3, "horizon": 99}, ADD),
    Way({"checkpoint_every": 5}, {"policy": "r-sr", "horizon": 130}, {"revive": False}),
]


def live(path, way, **runner):
    """One life: the race, and when that is over, its extension. Repeated, it goes on."""
    settings, verdict, how = way.settings, None, LocalRunner(**way.runner | runner)
    if not told(path):
        budget = {} if "seconds" in settings else {"budget": way.budget}
        verdict = race(way.learners, journal=path, progress=False, seed=5, runner=how,
                       **budget, **settings)  # fmt: skip
    elif way.more is None or len(told(path)) < way.budget:
        verdict = resume(path, way.learners, progress=False, runner=how,
                         callbacks=settings.get("callbacks"))  # fmt: skip
    if way.more is None:
        return verdict
    return resume(path, way.learners, budget=LAST, progress=False, **way.more)


def told(path):
    """The pulls in a journal; none of one that is not there, or was killed while it was made."""
    with suppress(sqlite3.Error):
        return rows(path, "SELECT t, arm, n, score FROM pulls ORDER BY t") if path.exists() else []
    return []


def calm(path, way):
    """The pulls of a race that nothing disturbs, and what came of it.

    In which order the pulls of a phase are made is free where few learners are in memory.
    """
    summary = live(path, way).summary()
    return sorted(row[1:] for row in told(path)), summary


doomed = None  # (moment, how many times it is still passed unharmed)


def reach(moment):
    global doomed
    if doomed is None or doomed[0] != moment:
        return
    if doomed[1] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    doomed = (moment, doomed[1] - 1)


def arm_moments():
    append, drop, rename = SqliteLog.append, SavedStates.drop_older, Path.rename

    def appending(self, *events, elapsed=0.0):
        what = WRITTEN.get(type(events[0]))
        reach(f"before the {what}")
        append(self, *events, elapsed=elapsed)
        reach(f"after the {what}")

    def dropping(self, *args):
        reach("before the old one is removed")
        drop(self, *args)

    def renaming(self, target):
        reach("before the rename")
        return rename(self, target)

    SqliteLog.append, SavedStates.drop_older, Path.rename = appending, dropping, renaming


def victim(folder, seed):
    """Race until each moment, in a process of its own; what became of them goes to stdout."""
    global doomed
    arm_moments()
    rng = random.Random(seed)
    for way, one in enumerate(WAYS):
        step = 1 if one.more is None else 4  # more of them: `make storm`
        for k, moment in list(enumerate(MOMENTS))[way % step :: step]:
            often = one.budget if "pull" in moment or "commit" in moment else 12
            once = "naming" in moment or "extension" in moment
            doomed = (moment, 0 if once else rng.randrange(often))
            code = died(live, Path(folder) / f"{way}-{k}.db", one)
            print(json.dumps([way, k, *doomed, code]))


def died(function, *args):
    child = os.fork()
    if child == 0:
        function(*args)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
