r"""Stop when sure: `stop="certified"` ends a race once its winner is certified.

Looking again and again until the answer pleases is a way to be wrong more often than one says. So
what is said holds for all looks together.

- Looks are at pull counts that are fixed before the first pull: after three pulls of each learner,
  and then whenever the count has grown by a tenth. So a look costs little (all of them together
  about eleven times what the last one does), and at most a tenth of the pulls is spent in vain.
- A certificate's intervals hold for all pull counts up to its horizon together, at any check
  (`theory/certificate.py`), as long as neither the horizon nor the largest count depends on
  rewards. Here they are those of the budget that was given, however early the race ends. The noise
  level is estimated again at each check: the share of delta for that is divided among the checks.
- In a time-based race without a horizon, the horizon moves with the budget. There the k-th check
  has the delta :math:`\delta / (k (k + 1))`, which sums up to less than delta.
- If the test of assumptions contradicts a curve, the race continues: the certificate assumes
  what that test doubts.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

from latebloomer.errors import SettingError
from latebloomer.racing.live_display import print_aside
from latebloomer.racing.settings import CERTIFIED, Settings
from latebloomer.racing.verdict.history import History, check_curves
from latebloomer.session.session import Session
from latebloomer.session.winner_training import set_aside
from latebloomer.theory.certificate import DELTA, Certificate

GROWTH = 1.1  # from one look to the next
FIRST = 3  # pulls of each learner: fewer tell nothing about the noise


def looks(arms: int) -> Iterator[int]:
    """Yield the numbers of pulls after which the race is checked, without end.

    >>> from itertools import islice
    >>> list(islice(looks(arms=2), 8))
    [6, 7, 8, 9, 10, 11, 13, 15]
    """
    pulls = FIRST * arms
    while True:
        yield pulls
        pulls = max(pulls + 1, math.ceil(GROWTH * pulls))


def certificate_of(session: Session, settings: Settings) -> Certificate | None:
    """Return what is proved now; None if no arm has the three rewards for a noise estimate."""
    try:
        return _certificate(session, settings)
    except SettingError:
        return None


def _certificate(session: Session, settings: Settings) -> Certificate:
    bounds, budget = settings.score_bounds, _fixed_budget(session, settings)
    if settings.stop is None:
        return session.certificate(score_range=bounds)
    if budget is not None:
        count = _count_looks(session, budget) + 1  # and the one at the end
        return session.certificate(score_range=bounds, budget=budget, looks=count)
    number = _count_looks(session, session.spent - 1) + 1
    delta = DELTA / (number * (number + 1))
    return replace(session.certificate(delta=delta, score_range=bounds), delta=DELTA)


def _fixed_budget(session: Session, settings: Settings) -> int | None:
    """Return the maximum pulls of an arm as known before the first; None if time sets it."""
    if settings.budget is not None:
        return max(settings.budget, session.budget)
    return settings.horizon


def _count_looks(session: Session, upto: int) -> int:
    count = 0
    for pulls in looks(len(session.names)):
        if pulls > upto:
            break
        count += 1
    return count


class StopWhenSure:
    """Says when a race may end; nothing of it needs to be kept in a journal."""

    def __init__(self, session: Session, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._looks = looks(len(session.names))
        self._next = next(n for n in self._looks if n >= session.spent)

    def reason(self, elapsed: float) -> str | None:
        """Return why to stop now; None if no check is due, or nothing is certain."""
        session = self._session
        if session.spent < self._next or session.over or session.winner is not None:
            return None
        self._next = next(n for n in self._looks if n > session.spent)
        proof = certificate_of(session, self._settings)
        if proof is None or not proof.certified(session.best_arm) or self._doubted():
            return None
        name = session.names[session.best_arm]
        return f"{name} is certified the best, {self._not_needed(elapsed)} were not needed"

    def _doubted(self) -> bool:
        session = self._session
        found = check_curves(session.names, History.of(session).rewards())
        return any(finding.contradicts for finding in found)

    def _not_needed(self, elapsed: float) -> str:
        settings, session = self._settings, self._session
        if settings.seconds is not None:
            return f"{max(0.0, settings.seconds - elapsed):.3g} s of {settings.seconds:g}"
        kept = set_aside(session.budget, settings.winner_share)
        return f"{session.budget - session.spent - kept:,} of {session.budget:,} pulls"


def stopping_rule(session: Session, settings: Settings) -> StopWhenSure | None:
    """Return the stopping rule of a race, if it has one."""
    return StopWhenSure(session, settings) if settings.stop == CERTIFIED else None


# --- Ctrl-C ---


class Interrupt:
    """Lets the first Ctrl-C finish the running pull; the second one stops immediately.

    While it is open, the first SIGINT only sets `wanted`.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._before: Any = None
        self._ours = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may set handlers; a program's own handler is left alone.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._before = signal.signal(signal.SIGINT, self._note)
            self._ours = True
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True
        print_aside("\nStopping after the running pull. Ctrl-C again stops immediately.")

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)
