r"""Early stops: a race may stop before its budget is spent if its winner is certified.

`stop="certified"` ends a race as soon as its winner is certified. If a test is repeated until it
succeeds, it is wrong more often than its error probability says. So the stated probability must
hold for all checks together.

- Checks are made at pull counts that are fixed before the first pull: after three pulls of each
learner, and then whenever the count has grown by a tenth. So checks cost little (all of them
together about eleven times the cost of the last one), and at most a tenth of the pulls is wasted.
- A certificate's intervals hold for all pull counts up to its horizon together, at any check
  (`theory/certificate.py`), if neither the horizon nor the largest count depends on rewards. Here
  both follow from the original budget, however early the race ends. The noise level is estimated
  again at each check, so the share of delta for that is divided among the checks.
- In a time-based race without a horizon, the horizon changes with the budget. In this case the
k-th check uses :math:`\delta / (k (k + 1))`, and the sum over all checks is less than delta. - If
the test of assumptions contradicts a curve, the race continues: the certificate is based on the
assumption that the test contradicts.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from math import ceil

import numpy as np

from latebloomer._util.text import quoted
from latebloomer.errors import SettingError
from latebloomer.racing.settings import Settings
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.session import Session
from latebloomer.theory.certificate import DELTA, Certificate
from latebloomer.theory.curve_tests import check_curves

GROWTH = 1.1  # ratio of the pull counts of successive checks
FIRST = 3  # pulls of each learner at the first check: fewer show nothing about the noise


def looks(arms: int) -> Iterator[int]:
    """Yield the numbers of pulls after which the race is checked; the sequence has no end.

    >>> from itertools import islice
    >>> list(islice(looks(arms=2), 8))
    [6, 7, 8, 9, 10, 11, 13, 15]
    """
    pulls = FIRST * arms
    while True:
        yield pulls
        pulls = max(pulls + 1, ceil(GROWTH * pulls))


def certificate_of(session: Session, settings: Settings) -> Certificate | None:
    """Return the certificate now; None if no arm has three rewards for a noise estimate."""
    bounds, budget = settings.score_bounds, settings.horizon  # budget: the maximum pulls of an arm
    if settings.budget is not None:
        budget = max(settings.budget, session.budget)
    last = session.spent - 1 if budget is None else budget
    count = sum(1 for _ in takewhile(lambda pulls: pulls <= last, looks(len(session.names)))) + 1
    try:
        if settings.stop is None:
            return session.certificate(score_range=bounds)
        if budget is not None:
            return session.certificate(score_range=bounds, budget=budget, looks=count)
        delta = DELTA / (count * (count + 1))
        return replace(session.certificate(delta=delta, score_range=bounds), delta=DELTA)
    except SettingError:
        return None


def next_look(arms: int, pulls: int) -> int:
    """Return the number of pulls of the first check at `pulls` pulls or later.

    >>> next_look(arms=2, pulls=11), next_look(arms=2, pulls=12)
    (11, 13)
    """
    return next(n for n in looks(arms) if n >= pulls)


class EarlyStop:
    """Decide when a race may end early; its state need not be in the journal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0  # number of pulls at the next check

    def reason(self, settings: Settings, elapsed: float) -> str | None:
        """Return the reason to stop now; None without a due check or a certificate."""
        session, arms = self._session, len(self._session.names)
        if settings.stop is None or session.over or session.winner is not None:
            return None
        self._next = self._next or next_look(arms, session.spent)
        if session.spent < self._next:
            return None
        self._next = next_look(arms, session.spent + 1)
        proof = certificate_of(session, settings)
        if proof is None or not proof.certified(session.best_arm):
            return None
        sign = 1.0 if session.maximize else -1.0
        rewards = [sign * np.array(session.scores(i)) for i in range(arms)]
        findings = check_curves(session.names, rewards)
        if any(finding.contradicts for finding in findings):
            return None
        kept = set_aside(session.budget, settings.winner_share)
        unneeded = f"{session.budget - session.spent - kept:,} of {session.budget:,} pulls"
        if settings.seconds is not None:
            unneeded = f"{max(0.0, settings.seconds - elapsed):.3g} s of {settings.seconds:g}"
        name = session.names[session.best_arm]
        return f"{quoted(name)} is certified the best, {unneeded} were not needed"
