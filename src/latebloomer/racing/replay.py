"""The state of a race: its journal replayed into a session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from latebloomer.errors import BudgetError, LatebloomerError, OtherRace, TellError
from latebloomer.racing.clock import PROVISIONAL
from latebloomer.racing.journal.journal import Change, Journal
from latebloomer.racing.settings import Settings
from latebloomer.session.delivery import kept, with_kept
from latebloomer.session.field import FAILED, FINISHED, Field
from latebloomer.session.session import Session


def fresh(settings: Settings, names: list[str]) -> Field:
    """The session of a race that has not begun; by the clock, the first sweep sets its budget."""
    budget, share = settings.budget, settings.deliver
    if budget is None:
        least = settings.policy.advised_budget(len(names))[0]
        budget = with_kept(max(PROVISIONAL * len(names), 2 * least), share)
    try:
        return Field(settings.policy, names, budget, settings.horizon, settings.seed, share)
    except BudgetError as error:
        if share == 0:
            raise
        raise BudgetError(
            f"deliver={share:g} keeps {kept(budget, share)} of budget={budget} for the winner, "
            f"and the rest is too little: {error}"
        ) from None


def replay(journal: Journal, settings: Settings) -> Field:
    """The session as the journal left it; the policy must ask for what the journal says."""
    session = fresh(settings, journal.names)
    changes = [change for change in journal.changes() if change.kind != "note"]
    at = 0
    for change in changes:
        _tell(session, journal.pulls(at, change.t), settings.sign)
        apply(session, change)
        at = change.t
    _tell(session, journal.pulls(at), settings.sign)
    return session


def apply(session: Field, change: Change) -> None:
    """Tell a session what is not a reward."""
    if change.kind in (FAILED, FINISHED) and change.arm is not None:
        session.retire(change.arm, change.kind)
    elif change.kind == "plan" and change.value is not None:
        session.replan(change.value)
    elif change.kind == "batch" and change.value is not None:
        session.ask_phase(change.value)
    elif change.kind == "more" and change.value is not None:
        session.top_up(change.value)
    elif change.kind == "stop":
        session.stop()
    elif change.kind == "deliver" and change.value is not None:
        if change.arm != session.naming.arm:
            raise OtherRace(
                f"the journal says that arm {change.arm} was named the best, but "
                f"{session.policy!r} names arm {session.naming.arm}: it was written by another "
                "version of this rule or has been changed"
            )
        session.deliver(change.arm, change.value)
    else:
        raise OtherRace(
            f"the journal has a change {change.kind!r} that this version cannot replay"
        )


def _tell(session: Field, pulls: Iterable[tuple[int, int, int, float]], sign: float) -> None:
    # Nobody leaves within these pulls: while all are there, a plain session's `tell` will do.
    tell = session.tell if session.any_left else partial(Session.tell, session)
    pulled, t, arm = session._ledger.n, 0, 0
    try:
        for t, arm, n, reward in pulls:  # noqa: B007
            if pulled[arm] != n - 1:
                raise TellError(f"it is numbered {n}, but the arm has had {pulled[arm]}")
            tell(arm, sign * reward)
    except LatebloomerError as error:
        asked = "no arm" if session.over else repr(session.names[session.ask()])
        raise OtherRace(
            f"pull {t} of the journal is of {session.names[arm]!r}, but {session.policy!r} asks "
            f"for {asked} there: the journal was written by another version of this rule or has "
            f"been changed; resume with the version that it names ({error})"
        ) from error
