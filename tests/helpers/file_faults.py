"""Calls that change files, counted: at one of them the process dies, or the disk is full.

`install` replaces the functions of `os`, `io` and `sqlite3` that write. A program then arms it
with the number of a call; forked children of the armed process are left alone.
"""

import builtins
import errno
import functools
import io
import os
import signal
import sqlite3

NAMES = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "open")
STATEMENTS = ("execute", "executemany", "backup", "close")

calls = 0  # since it was armed or reset
_armed = None  # process, number of the call, how many calls fail from there; 0: the process dies


def arm(number, failing=0):
    """Die before that call, or let that many calls fail from there on."""
    global calls, _armed
    calls, _armed = 0, (os.getpid(), number, failing)


def reset():
    """Count from 0 again; no call fails."""
    global calls, _armed
    calls, _armed = 0, None


def _reach(error):
    global calls
    at, calls = calls, calls + 1
    if _armed is None or _armed[0] != os.getpid():
        return
    _, number, failing = _armed
    if not failing and at == number:
        os.kill(os.getpid(), signal.SIGKILL)
    if number <= at < number + failing:
        raise error


def _full():
    return OSError(errno.ENOSPC, "No space left on device")


class Connection(sqlite3.Connection):
    """A connection whose statements are counted."""


def _counted_statement(name):
    real = getattr(sqlite3.Connection, name)

    @functools.wraps(real)
    def statement(self, *words, **settings):
        if name != "close":  # it must release what it has, full disk or not
            _reach(sqlite3.OperationalError("database or disk is full"))
        elif _armed is not None and not _armed[2]:
            _reach(None)
        return real(self, *words, **settings)

    return statement


def _counted(real):
    @functools.wraps(real)
    def call(*words, **settings):
        _reach(_full())
        return real(*words, **settings)

    return call


def _counted_opening(real):
    @functools.wraps(real)
    def opening(file, mode="r", *words, **settings):
        if set(mode) & set("wxa+"):
            _reach(_full())
        return real(file, mode, *words, **settings)

    return opening


def _counted_os_open(real):
    @functools.wraps(real)
    def opening(path, flags, *words, **settings):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            _reach(_full())
        return real(path, flags, *words, **settings)

    return opening


def install():
    """Count calls from now on."""
    for name in STATEMENTS:
        setattr(Connection, name, _counted_statement(name))
    connect = sqlite3.connect
    sqlite3.connect = lambda *words, **how: connect(*words, **{"factory": Connection} | how)
    for name in NAMES:
        make = _counted_os_open if name == "open" else _counted
        setattr(os, name, make(getattr(os, name)))
    io.open = builtins.open = _counted_opening(io.open)
