"""When and why, with the numbers that decided, in the units of the scores."""

from __future__ import annotations

from collections.abc import Callable

from latebloomer._util.text import short_name
from latebloomer.session.events import FAILED, LearnerLeft
from latebloomer.session.reasons import Explanation
from latebloomer.session.session import Session


def why_it_stands_there(
    session: Session, arm: int, left: LearnerLeft | None = None, brief: bool = False
) -> str:
    """How an arm's race went; `left` says why one takes no more pulls.

    A brief one has the numbers that decided, and not what the policy remarks about them.
    """
    if left is not None and left.how == FAILED and arm != session.winner:
        return left.why
    told = session.explain(arm)
    named = short_name if brief else str
    text = _decided(session, arm, told, named)
    text += f"; {told.remark}" if told.remark and not brief else ""
    return f"{left.why}; {text}" if left is not None else text


def _decided(session: Session, arm: int, told: Explanation, named: Callable[[str], str]) -> str:
    if told.pulls == 0:
        return "was not pulled"
    if arm == session.best_arm:
        text = f"recommended with {told.rating:.6g}"
        if session.winner is None:
            return text
        return f"{text}, then trained on for {session.pulls_of(arm) - told.pulls} pulls"
    word = "passed over" if arm in session.racing else "dropped"
    text = f"{word} at pull {told.at} with {told.rating:.6g}"
    if told.rival is None or told.rival_rating is None:
        return text
    return f"{text} against {told.rival_rating:.6g} of {named(session.names[told.rival])}"
