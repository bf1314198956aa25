"""What can go wrong in a race; part of the tree of `latebloomer.errors`.

::

    LatebloomerError
    ├── LearnerError      (TypeError)        something that cannot be trained pull by pull
    ├── AllFailed         (RuntimeError)     no learner is left; each one's reason is in the text
    └── JournalError      (RuntimeError)     a journal that cannot be written, read or continued
        ├── JournalInUse                     another process races on it
        └── OtherRace                        it does not belong to these learners or settings
"""

from __future__ import annotations

from latebloomer.errors import LatebloomerError


class LearnerError(LatebloomerError, TypeError):
    """Something that cannot be trained pull by pull."""


class AllFailed(LatebloomerError, RuntimeError):
    """No learner is left; the text has each one's reason."""


class JournalError(LatebloomerError, RuntimeError):
    """A journal that cannot be written, read or continued."""


class JournalInUse(JournalError):
    """Another process races on this journal."""


class OtherRace(JournalError):
    """The journal does not belong to these learners or settings."""


class TooLong(Exception):
    """A pull took longer than `timeout`; a runner catches it and reports the pull as failed."""

    def __init__(self, timeout: float) -> None:
        super().__init__(f"a pull took longer than timeout={timeout:g} s")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the race after a finished pull. Not an error: the text says how to go on."""

    def __init__(self, text: str, journal: str | None) -> None:
        super().__init__(text)
        self.journal = journal
