"""The process that serves the live page of a race."""

import subprocess
import sys
import warnings
from pathlib import Path
from threading import Thread

from latebloomer._util.console import print_aside
from latebloomer._util.text import near

# Seconds for which the page is served after the race has ended and the last tab was closed.
STAYS = 600
PATIENCE = 20.0  # seconds to wait for the page before the race starts without it


def start_watching(journal: Path) -> int | None:
    """Serve the live page in a process that continues after the race, and print its URL.

    Return the ID of the process; None, with a warning, if it does not start.
    """
    words = ["-m", "latebloomer", "watch", str(journal), "--exit-after-idle", str(STAYS)]
    answers: list[str] = []
    try:
        child = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        answers.append(str(error))
    else:
        assert child.stdout is not None
        read = child.stdout.readline  # the first line is the URL, or what is missing
        reader = Thread(target=lambda: answers.append(read()), daemon=True)
        reader.start()
        try:
            reader.join(PATIENCE)
        except BaseException:  # Ctrl-C: the race does not start
            child.kill()
            child.communicate()
            raise
        address = answers[0].strip() if answers else ""
        if address.startswith("http://"):
            child.stdout.close()
            child.returncode = 0  # it continues after this process: avoid a ResourceWarning
            print_aside(f"Watch the race at {address}")
            return child.pid
        child.kill()
        reader.join()
        child.communicate()
    why = "".join(answers).strip() or "it did not start"
    later = f"Try later: latebloomer watch {near(journal)}"
    text = f"The race runs, but cannot be watched ({why}). {later}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)
    return None
