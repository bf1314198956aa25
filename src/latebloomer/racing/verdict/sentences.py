"""When and why, with the numbers that decided, in the units of the scores."""

from __future__ import annotations

from latebloomer.errors import AllFailed
from latebloomer.racing.journal.journal import Journal
from latebloomer.session.field import FAILED, Field


def story(session: Field, arm: int, sign: float, left: str | None = None) -> str:
    """How an arm's race went; `left` is what the journal says of one that takes no more pulls."""
    if left is not None and session.left(arm) == FAILED and arm != session.winner:
        return left
    text = _decided(session, arm, sign)
    return f"{left}; {text}" if left else text


def _decided(session: Field, arm: int, sign: float) -> str:
    told = session.explain(arm)
    if told.pulls == 0:
        return "was not pulled"
    if arm == session.recommend().arm:
        text = f"recommended with {sign * told.rating:.6g}"
        if session.winner is None:
            return text
        return f"{text}, then trained on for {session.had(arm) - told.pulls} pulls"
    word = "passed over" if arm in session.racing else "dropped"
    text = f"{word} at pull {told.at} with {sign * told.rating:.6g}"
    if told.rival is None or told.rival_rating is None:
        return text
    return f"{text} against {sign * told.rival_rating:.6g} of {session.names[told.rival]}"


def need_one(session: Field, journal: Journal) -> None:
    """Raise `AllFailed`, with every reason, where no learner is left that has shown a score."""
    if any(session.pulls[i] for i in session.racing) or not session.over:
        return
    failed = [c for c in journal.changes() if c.kind == FAILED and c.arm is not None]
    reasons = "\n".join(f"  {session.names[c.arm or 0]}: {c.why}" for c in failed)
    error = AllFailed(f"every learner has failed, so there is nothing to recommend:\n{reasons}")
    for details in journal.details():
        error.add_note(details)
    raise error
