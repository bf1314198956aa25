"""A kept learner whose last score is below another one's: why, and how certain that is.

On recorded curves the winner's late mean is below that of a dropped learner in about 10 % of
races, and by more than 4 standard errors in 1.3 %. There the dropped learner was truly better
about half of the time, so the verdict names it and does not swap it in.
"""

from __future__ import annotations

from copy import deepcopy
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer.core.statistics import pooled_noise
from latebloomer.racing.journal.journal import resume_call
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import FAILED, Extended
from latebloomer.session.session import Session
from latebloomer.session.winner_training import set_aside

if TYPE_CHECKING:
    from latebloomer.racing.verdict.history import Floats
    from latebloomer.racing.verdict.verdict import Verdict
    from latebloomer.session.learner_view import LearnerView

FAR = 4.0  # standard errors beyond which a higher score is also a warning
NOISE_PULLS = 3  # pulls that a noise estimate needs
MOST_PULLS = 20_000  # of an extended race that is run to see which learners it trains: 0.1 s


def highest(verdict: Verdict) -> LearnerView:
    """Return the learner with the highest last score; the winner, if others have as high a one."""
    sign = verdict.history.sign
    scored = [one for one in verdict.learners if one.pulls and (one.leads or one.state != FAILED)]
    return max(scored, key=lambda one: (sign * one.score, one.leads))


def standing(one: LearnerView, horizon: int) -> str:
    """Return a learner's score, how far it is trained, and its forecast.

    "score 0.33 at 50 % of its training, forecast 0.67 at the end".
    """
    trained = f"after {one.trained}"
    if one.full_pulls is not None:
        trained = f"at {one.trained} of its training"
    text, made = f"score {one.score:.5g} {trained}", one.forecast
    if made is None or not made.trust or made.at <= one.pulls:
        return text
    when = "the end" if made.at >= horizon else f"{made.at:,.0f} pulls"
    return f"{text}, forecast {made.score:.4g} at {when}"


def explanation(verdict: Verdict) -> list[str]:
    """Return why a learner with a higher last score was not kept, and how to train it further."""
    best, other = verdict[verdict.name], highest(verdict)
    if other.leads:
        return []
    when = "when it was dropped" if other.left_at else "but was not selected"
    at = f" at {other.trained}" if other.trained != best.trained else ""
    numbers = f"{other.score:.4g}"
    if other.forecast is not None and other.forecast.trust:
        numbers += f", forecast {other.forecast.score:.4g}"
    told = [f"{other.name} scored higher {when}{at}: {numbers}.", *_why(verdict, best, other)]
    return [" ".join(told), *([verdict.advice] if verdict.advice else [])]


def _why(verdict: Verdict, best: LearnerView, other: LearnerView) -> list[str]:
    sign, made = verdict.history.sign, other.decision
    if sign * best.estimate > sign * other.estimate and best.forecast is not None:
        return []  # the two forecasts say why
    if made is None or made.rival is None or made.rival_estimate is None:
        return []
    rival = verdict[made.rival]
    if rival.forecast is not None and sign * rival.score < sign * made.rival_estimate:
        return [f"The learner that displaced it stayed below its forecast ({rival.name}: "
                f"estimate {made.rival_estimate:.4g}, score {rival.score:.4g})."]  # fmt: skip
    return [f"It was ranked by its estimate, {other.estimate:.4g}, versus "
            f"{made.rival_estimate:.4g} for {rival.name}."]  # fmt: skip


def warnings_of_scores(verdict: Verdict, race: RaceState) -> list[str]:
    """Return a warning if another learner's late mean is higher by more than 4 standard errors."""
    best, other = verdict[verdict.name], highest(verdict)
    if other.leads or {best.arm, other.arm} & race.session.repeats_scores:
        return []
    ours, theirs = (verdict.history.scores_of(one.arm) for one in (best, other))
    if min(len(ours), len(theirs)) < NOISE_PULLS:
        return []
    gap = verdict.history.sign * (_late(theirs).mean() - _late(ours).mean())
    error = sqrt(sum(pooled_noise([x]) ** 2 / len(_late(x)) for x in (ours, theirs)))
    if not gap > FAR * error:
        return []
    many = "over 1000" if gap > 1000 * error else f"{gap / error:.0f}"
    return [
        f"{other.name} was ahead of {best.name} by {gap:.3g}, {many} standard errors, when it was "
        "last trained: in recorded races such a learner was truly better about half of the time. "
        f"verdict.load({other.name!r}) returns it"
    ]


def _late(scores: Floats) -> Floats:
    return scores[-max(1, len(scores) // 4) :]


def resume_advice(race: RaceState, journal: Path | None, other: LearnerView) -> str:
    """Return the call that trains another learner further; empty if its plan would not."""
    session, settings = race.session, race.settings
    if journal is None or settings.seconds is not None or not other.left_at:
        return ""
    one, trainings = settings.pulls_per_training, settings.trainings
    if one is not None and trainings is not None:
        budget, more = round((trainings + 1) * one), f"trainings={trainings + 1:g}"
    else:
        budget, more = 2 * session.budget, f"budget={2 * session.budget}"
    if not _would_train(session, other.arm, budget):
        return ""
    call = resume_call(journal).removesuffix(")")
    return f"Train {other.name} further with {call}, {more})."


def _would_train(session: Session, arm: int, budget: int) -> bool:
    """Run the extended session, if curves rise to their estimates, until the arm is pulled."""
    views = {view.arm: view for view in session.standings()}
    reserved = set_aside(
        budget - session.spent if session.winner is not None else budget, session.winner_share
    )
    after, before = deepcopy(session), session.pulls_of(arm)
    after.apply(Extended(budget, budget - reserved, session.horizon))
    for _ in range(MOST_PULLS):
        if after.pulls_of(arm) > before:
            return True
        if after.over or arm not in after.racing:
            return False
        due = after.ask()
        after.tell(due, _expected(views[due], after.pulls_of(due) + 1))
    return False


def _expected(one: LearnerView, pull: int) -> float:
    """Return the score of a later pull: on the line from the last score to the estimate."""
    if one.forecast is None or one.forecast.at <= one.pulls:
        return one.score if one.pulls else 0.0
    way = min(1.0, (pull - one.pulls) / (one.forecast.at - one.pulls))
    return one.score + way * (one.estimate - one.score)
