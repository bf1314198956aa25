"""Small learners, and a look into journals, that tests of races share."""

import sqlite3
from contextlib import closing
from itertools import count


def rising(best, slow=5):
    """A generator function of scores that rise towards `best`."""
    return lambda: (best * n / (n + slow) for n in count(1))


class Saves:
    """Rises in the same way and can be saved; `made` counts the pulls of this object."""

    def __init__(self, best=1.0):
        self.best, self.n, self.made = best, 0, 0

    def pull(self):
        self.n, self.made = self.n + 1, self.made + 1
        return self.best * self.n / (self.n + 5)

    def save(self, folder):
        (folder / "n").write_text(str(self.n).zfill(1000))

    def load(self, folder):
        self.n = int((folder / "n").read_text())


def saves(best):
    return lambda: Saves(best)


def rows(path, query="SELECT arm, n, score FROM pulls ORDER BY arm, n"):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()
