"""The race's durable record: one SQLite file in WAL mode, written by the driver alone.

By the standard library's `sqlite3`, not SQLAlchemy: the tables are few and fixed, the base install
stays small, and a pull costs one prepared INSERT (20 µs here; SQLAlchemy Core adds several times
that). With `synchronous=NORMAL` a committed pull survives whatever happens to the process;
`durability="full"` also waits for the disk, against power loss.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from latebloomer.errors import JournalError
from latebloomer.racing.settings import plain, versions


class Change(NamedTuple):
    """Something besides a pull that the session was told, after pull `t`."""

    t: int
    kind: str
    arm: int | None
    value: int | None
    why: str


class Failure(NamedTuple):
    """A pull that failed, after pull `t` of the race; it is not counted."""

    t: int
    arm: int
    n: int
    kind: str
    reason: str
    details: str


class Kept(NamedTuple):
    """A checkpoint as the journal knows it."""

    arm: int
    n: int
    folder: str
    digest: str


class Journal:
    """An open journal. `opening` gives one: `create`, `reopen` or `read`."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path | None, lock: Any = None
    ) -> None:
        self.path = path
        self._db = connection
        self._lock = lock
        self._insert = "INSERT INTO pulls VALUES (?, ?, ?, ?, ?, ?)"
        self._leg: int | None = None

    # --- writing ---

    def pull(self, t: int, arm: int, n: int, reward: float, seconds: float) -> None:
        """Enter a finished pull. When this returns it is counted, whatever happens next."""
        try:
            self._db.execute(self._insert, (t, arm, n, reward, seconds, time()))
        except sqlite3.Error as error:
            raise self._cannot_write(f"pull {t}", error) from error

    def change(
        self, t: int, kind: str, why: str, arm: int | None = None, value: int | None = None
    ) -> None:
        """Enter what else the session was told."""
        with self._writing(kind):
            self._db.execute(
                "INSERT INTO changes (t, kind, arm, value, why, at) VALUES (?, ?, ?, ?, ?, ?)",
                (t, kind, arm, value, why, time()),
            )

    def failure(self, failure: Failure, out: str | None = None) -> None:
        """Enter a pull that failed, together with the arm's end where `out` says why."""
        with self._writing("failure"):
            self._db.execute("BEGIN")
            self._db.execute(
                "INSERT INTO failures (t, arm, n, kind, reason, details, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*failure, time()),
            )
            if out is not None:
                self.change(failure.t, "failed", out, failure.arm)
            self._db.execute("COMMIT")

    def checkpoint(self, kept: Kept, size: int, seconds: float) -> None:
        """Enter a checkpoint that is complete on disk."""
        with self._writing("checkpoint"):
            self._db.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*kept, size, seconds, time()),
            )

    def forget(self, arm: int, n: int) -> None:
        """Take a checkpoint off the list."""
        with self._writing("checkpoint"):
            self._db.execute("DELETE FROM checkpoints WHERE arm = ? AND n = ?", (arm, n))

    def found(self, values: dict[str, Any], names: list[str], tables: str) -> None:
        """Make the tables and enter who races, all or nothing."""
        with self._writing("the settings"):
            self._db.executescript(f"BEGIN; {tables}")
            rows = [(key, json.dumps(value, default=plain)) for key, value in values.items()]
            rows.append(("id", json.dumps(uuid.uuid4().hex[:12])))
            self._db.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            self._db.executemany("INSERT INTO arms VALUES (?, ?)", list(enumerate(names)))
            self._db.execute("COMMIT")

    def close_with(self, summary: dict[str, Any]) -> None:
        """Enter the verdict."""
        rows = [(key, json.dumps(value)) for key, value in summary.items()]
        with self._writing("verdict"):
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO verdict VALUES (?, ?)", rows)
            self._db.execute("COMMIT")

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._cannot_write(what, error) from error

    def _cannot_write(self, what: str, error: sqlite3.Error) -> JournalError:
        return JournalError(
            f"{what} could not be written to the journal {self.path} ({error}): the race has "
            "stopped; all that was written before is safe. Make room or restore the folder, then "
            f"{resume_call(self.path)}"
        )

    # --- reading ---

    @property
    def values(self) -> dict[str, Any]:
        """The settings as they were written."""
        query = "SELECT key, value FROM settings WHERE key != 'id'"
        return {k: json.loads(v) for k, v in self._db.execute(query)}

    @property
    def id(self) -> str:
        """A name of this race that no other has."""
        rows = self._db.execute("SELECT value FROM settings WHERE key = 'id'").fetchall()
        return str(json.loads(rows[0][0])) if rows else "race"

    @property
    def names(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM arms ORDER BY arm")]

    @property
    def verdict(self) -> dict[str, Any]:
        """The verdict's summary; empty while the race is not over."""
        return {k: json.loads(v) for k, v in self._db.execute("SELECT key, value FROM verdict")}

    @property
    def spent(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(t), 0) FROM pulls").fetchone()[0])

    def pulls(self, after: int = 0, upto: int = 2**62) -> Iterator[tuple[int, int, int, float]]:
        """(t, arm, n, reward) of the pulls `after` < t <= `upto`, in order."""
        query = "SELECT t, arm, n, reward FROM pulls WHERE t > ? AND t <= ? ORDER BY t"
        return self._db.execute(query, (after, upto))

    def rewards(self, arm: int) -> list[float]:
        """What the learner returned, pull by pull."""
        rows = self._db.execute("SELECT reward FROM pulls WHERE arm = ? ORDER BY t", (arm,))
        return [reward for (reward,) in rows]

    def seconds(self) -> dict[int, float]:
        """Time spent in counted pulls, per arm."""
        rows = self._db.execute("SELECT arm, sum(seconds) FROM pulls GROUP BY arm")
        return dict(rows.fetchall())

    def elapsed(self) -> float:
        """Seconds in which at least one pull was being made, by all processes so far."""
        total, reached = 0.0, -inf
        query = "SELECT at - seconds, at FROM pulls ORDER BY at - seconds"
        for began, ended in self._db.execute(query):
            total += max(0.0, ended - max(began, reached))
            reached = max(reached, ended)
        return total

    def pace(self, arm: int, newest: int) -> float:
        """Seconds per pull, over an arm's newest pulls."""
        query = "SELECT seconds FROM pulls WHERE arm = ? ORDER BY t DESC LIMIT ?"
        (mean,) = self._db.execute(f"SELECT avg(seconds) FROM ({query})", (arm, newest)).fetchone()
        return float(mean or 0.0)

    def longest_pull(self) -> float:
        """In seconds."""
        return float(self._db.execute("SELECT coalesce(max(seconds), 0) FROM pulls").fetchone()[0])

    def changes(self) -> list[Change]:
        rows = self._db.execute("SELECT t, kind, arm, value, why FROM changes ORDER BY id")
        return [Change(*row) for row in rows]

    def failures(self) -> list[tuple[int, int, int, str, str]]:
        """(t, arm, n, kind, reason) of every failed pull."""
        rows = self._db.execute("SELECT t, arm, n, kind, reason FROM failures ORDER BY id")
        return rows.fetchall()

    def process(self) -> str | None:
        """Which process raced last."""
        rows = self._db.execute("SELECT process FROM legs ORDER BY id DESC LIMIT 1").fetchall()
        return str(rows[0][0]) if rows else None

    def details(self) -> list[str]:
        """The traceback of the newest failure of each arm."""
        query = "SELECT details, max(id) FROM failures WHERE details != '' GROUP BY arm"
        return [text for text, _ in self._db.execute(query)]

    def tries(self, arm: int, n: int, lost: bool = False) -> int:
        """How often pull `n` of an arm has failed, or how often its process was lost in it."""
        query = "SELECT count(*) FROM failures WHERE arm = ? AND n = ? AND (kind = 'lost') = ?"
        return int(self._db.execute(query, (arm, n, lost)).fetchone()[0])

    def checkpoints(self, arm: int) -> list[Kept]:
        """An arm's checkpoints, the newest first."""
        query = "SELECT arm, n, folder, digest FROM checkpoints WHERE arm = ? ORDER BY n DESC"
        return [Kept(*row) for row in self._db.execute(query, (arm,))]

    # --- a process's time with it ---

    def begin_leg(self) -> None:
        """Note which process races now."""
        process = f"process {os.getpid()} on {socket.gethostname()}"
        with self._writing("leg"):
            made = self._db.execute(
                "INSERT INTO legs (process, versions, began) VALUES (?, ?, ?)",
                (process, json.dumps(versions()), time()),
            )
        self._leg = made.lastrowid

    def close(self) -> None:
        """Let go of the file and of the lock."""
        try:
            if self._leg is not None:
                self._db.execute("UPDATE legs SET ended = ? WHERE id = ?", (time(), self._leg))
        except sqlite3.Error:
            pass  # the disk is full or gone, which was said when a pull could not be written
        finally:
            self._db.close()
            if self._lock is not None:
                self._lock.close()


def resume_call(path: Path | None) -> str:
    """The line that goes on with a race."""
    return "race(...) again" if path is None else f"resume({near(path)!r}, learners)"


def near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
