"""The tables of a journal; `docs/journal.md` explains them to anyone with an SQLite tool."""

APPLICATION = 0x4C425243  # "LBRC": SQLite's application_id of our files
VERSION = 1  # of the tables below, SQLite's user_version

TABLES = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE arms (arm INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE pulls (
    t INTEGER PRIMARY KEY, -- the pull's number in the race, from 1
    arm INTEGER NOT NULL,
    n INTEGER NOT NULL, -- the pull's number of this arm, from 1
    reward REAL NOT NULL, -- what the learner returned
    seconds REAL NOT NULL, -- how long the pull took
    at REAL NOT NULL -- when it ended, in seconds since 1970
);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY,
    t INTEGER NOT NULL, -- it came after this pull
    kind TEXT NOT NULL, -- failed, finished, plan, stop, batch, more, deliver or note
    arm INTEGER,
    value INTEGER, -- plan, deliver: the new budget; batch, more: its size
    why TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE checkpoints (
    arm INTEGER NOT NULL,
    n INTEGER NOT NULL, -- the arm's pulls that are in it
    folder TEXT NOT NULL, -- in the folder <journal>.checkpoints
    digest TEXT NOT NULL, -- SHA-256 of its files
    bytes INTEGER NOT NULL,
    seconds REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (arm, n)
);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY,
    t INTEGER NOT NULL, -- it came after this pull
    arm INTEGER NOT NULL,
    n INTEGER NOT NULL, -- in this pull of the arm
    kind TEXT NOT NULL, -- exception, score, timeout, restore or lost
    reason TEXT NOT NULL,
    details TEXT NOT NULL, -- the traceback
    at REAL NOT NULL
);
CREATE TABLE legs (
    id INTEGER PRIMARY KEY, -- each process that raced on this journal
    process TEXT NOT NULL,
    versions TEXT NOT NULL,
    began REAL NOT NULL,
    ended REAL
);
CREATE TABLE verdict (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
