"""A look into journals, damage to them, and a disk that is full."""

import sqlite3
from contextlib import closing

from latebloomer.racing.journal import connections, files


def rows(path, query="SELECT arm, n, score FROM pulls ORDER BY arm, n"):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


def entries_in(path):
    with closing(files.read(path)) as journal:
        return list(journal.read())


def change(path, statement):
    """Damage a journal, as SQLite would write it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


def limit_pages(monkeypatch, pages):
    """A disk that is full when a journal has that number of pages."""
    real = connections.connect

    def small(place, durability):
        db = real(place, durability)
        db.execute(f"PRAGMA max_page_count = {pages}")
        return db

    monkeypatch.setattr(connections, "connect", small)
