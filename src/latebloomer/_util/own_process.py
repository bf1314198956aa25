"""The end of a forked process that must not continue the race."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

CAME_BACK = (
    "A process that a learner or a callback had forked returned into the race, which continues in "
    "its own process. The forked one ends here: end it with os._exit() where it has done its work."
)


@contextmanager
def in_own_process() -> Iterator[None]:
    """Return a context for users' code, which a process forked in it cannot leave."""
    here = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != here:
            end_fork(error)
        raise
    if os.getpid() != here:
        end_fork()


def end_fork(error: BaseException | None = None) -> NoReturn:
    """End this forked copy of the race's process like Python does, with or without an error.

    The copy must neither continue the race nor run the rest of the program.
    """
    code: Any = 1
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    elif error is None or isinstance(error, StopIteration):
        print(CAME_BACK, file=sys.stderr)
    else:
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the stream may be closed
            stream.flush()
    os._exit(code & 0xFF)
