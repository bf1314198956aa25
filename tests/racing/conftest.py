"""What tests of races share."""

import pytest

from latebloomer.racing.journal.journal import FileJournal
from latebloomer.session.events import Told


class Cut(BaseException):
    """The process ends here, as far as the race can tell."""


@pytest.fixture
def cut(monkeypatch):
    """Run a race until a number of pulls are in its journal, and not a moment longer."""

    def run_until(pulls, run):
        real, counted = FileJournal.append, []

        def append(journal, *events, elapsed=0.0):
            if len(counted) >= pulls:
                raise Cut  # nothing is written after a kill
            real(journal, *events, elapsed=elapsed)
            counted.extend(event for event in events if isinstance(event, Told))
            if len(counted) >= pulls:
                raise Cut

        with monkeypatch.context() as patched:
            patched.setattr(FileJournal, "append", append)
            with pytest.raises(Cut):
                run()

    return run_until
