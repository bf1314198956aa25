"""The standings of a session: the state of each arm and why, and how far the session is."""

from math import isnan, nan

from latebloomer._util.text import html_table, quoted, score_text
from latebloomer.core.ledger import OVER
from latebloomer.session import arm_views
from latebloomer.session.arm_views import LearnerView, Recommendation
from latebloomer.session.decisions import Decision
from latebloomer.session.estimates import best_arm, best_or_none, estimate, forecast, was_dropped
from latebloomer.session.events import FAILED
from latebloomer.session.session_state import SessionState, Stage


def standings(state: SessionState) -> list[LearnerView]:
    """Return the best arm, then the others by their estimates, and failed ones last."""
    best = best_or_none(state)
    views = (_view(state, i, best) for i in range(len(state.names)))
    return arm_views.ranked(views, state.maximize)


def explain(state: SessionState, arm: int | str) -> LearnerView:
    """Return the view of an arm: its state, and the numbers that decided."""
    return _view(state, state.index(arm), best_or_none(state))


def recommendation(state: SessionState) -> Recommendation:
    """Return the arm to keep, by all scores so far."""
    arm = best_arm(state)
    estimates = tuple(estimate(state, i) for i in range(len(state.names)))
    name, pulls = state.names[arm], tuple(state.pulls)
    return Recommendation(
        arm, name, estimates, pulls, state.spent, state.budget, state.over, reason(state)
    )


def _view(state: SessionState, i: int, best: int) -> LearnerView:
    departure, value, last = state.exits.get(i), estimate(state, i), state.last_scores[i]
    decided = departure is not None and departure.decision is not None
    why = departure.why if departure else ""
    if departure and i == best and was_dropped(state, i):
        why = f"Dropped at race pull {departure.at:,}, but every arm that remained then failed"
    return LearnerView(
        arm=i,
        name=state.names[i],
        state=_word(state, i, best),
        pulls=state.pulls[i],
        score=nan if last is None else last,
        forecast=departure.forecast if departure and decided else forecast(state, i, value),
        estimate=value,
        rule=state.policy.name,
        decision=departure.decision if departure and decided else _comparison(state, i, best),
        departed_at=departure.at
        if departure and i != best and (decided or departure.how == FAILED)
        else None,
        departed_why=why,
    )


def _word(state: SessionState, i: int, best: int) -> str:
    """Return the state of an arm as text."""
    final = state.selection is not None or state.stage is Stage.OVER
    if i == best:
        return arm_views.WINNER if final else arm_views.LEADING
    if i in state.exits:
        return state.exits[i].how
    return arm_views.NOT_SELECTED if final else arm_views.RACING


def _comparison(state: SessionState, i: int, best: int) -> Decision | None:
    """Return the comparison of an arm that was not dropped with the best arm."""
    selected = state.selection
    if not state.pulls[i]:
        return None
    at = state.spent if selected is None else selected.at
    if i == best or best == OVER:
        return Decision(at, state.pulls[i] if selected is None else selected.pulls)
    return Decision(at, state.pulls[i], state.names[best], estimate(state, best))


def reason(state: SessionState) -> str:
    """Return why the session is over, or how much of the budget is left."""
    remaining = state.budget - state.spent
    of = f"{remaining:,} of {state.budget:,} pulls"
    match state.stage:
        case Stage.SELECTING:
            return f"the policy has decided; {of} are left to train the winner"
        case Stage.DECIDING if kept := state.budget - state.deciding_budget:
            return f"{of} left, {kept:,} of them for the winner"
        case Stage.DECIDING | Stage.TRAINING_WINNER:
            return f"{of} left"
    if state.stopped is not None:
        return f"stopped {state.stopped}"
    if remaining == 0:
        only = "the only pull of the budget is spent"
        many = f"all {state.budget:,} pulls of the budget are spent"
        return only if state.budget == 1 else many
    return f"{why_over(state)}; {of} {'is' if remaining == 1 else 'are'} left over"


def why_over(state: SessionState) -> str:
    """Return why no more pulls are requested, although pulls of the budget are left over."""
    reached = f"has reached the horizon of {state.horizon:,} pulls"
    if state.selection is not None:
        name, gone = quoted(state.names[state.selection.arm]), state.selection.arm in state.exits
        return f"{name} {'takes no more pulls' if gone else reached}"
    if not state.trainable:
        best = best_or_none(state)
        if best != OVER and was_dropped(state, best):
            kept = quoted(state.names[best])
            return f"all remaining learners failed; {kept}, dropped before, is kept"
        return "no learner is left to train"
    return (
        f"every remaining learner {reached}" if all_at_horizon(state) else "the plan is complete"
    )


def all_at_horizon(state: SessionState) -> bool:
    """Return whether every remaining arm has reached the horizon."""
    return all(state.pulls[i] >= state.horizon for i in state.racing)


def as_html(state: SessionState) -> str:
    """Return the standings as a table for a notebook."""
    rows = [
        [
            view.name,
            view.outcome,
            f"{view.pulls:,}",
            *(
                "" if isnan(value) else score_text(value)
                for value in (view.score, view.forecast_score, view.estimate)
            ),
        ]
        for view in standings(state)
    ]
    head = ["arm", "state", "pulls", "score", "forecast", f"estimate ({state.policy.name})"]
    return html_table(f"{state.policy!r}: {reason(state)}", head, rows)
