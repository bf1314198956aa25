"""The estimate of each arm, in score units, and the arm that is best by these estimates."""

from math import isnan, nan

from latebloomer.core.ledger import OVER
from latebloomer.errors import NoScoresYet
from latebloomer.session.decisions import ForecastView, WinnerSelection
from latebloomer.session.events import DROPPED, FAILED
from latebloomer.session.play import Play
from latebloomer.session.session_state import SessionState


def estimate(state: SessionState, i: int) -> float:
    """Return the value that an arm is ranked by; nan if it has no score."""
    if state.selection is not None and i in state.selection.estimates:
        return state.selection.estimates[i]
    if i in state.exits:
        known = state.exits[i].estimate
        return nan if known is None else known
    row = state.play.row(i)
    if row is None or state.play.ledger.n[row] == 0:
        return nan
    return state.sign * state.play.estimate(i)


def final_estimate(state: SessionState, i: int) -> float:
    """Return the estimate of an arm that finished: from its scores, without a forecast."""
    if state.play.decides_every_pull or state.policy.decides_after_sweeps():
        return state.scores_of(i)[-1]
    alone = Play(state.terms([i]))
    for score in state.scores_of(i):
        alone.take(i, state.sign * score)
    return state.sign * alone.estimate(i)


def forecast(state: SessionState, i: int, value: float) -> ForecastView | None:
    """Return the forecast of an arm in play, as of the policy's last decision; None without one.

    `value` is the arm's estimate.
    """
    if state.selection is not None:
        return state.selection.forecasts.get(i)
    row = state.play.row(i)
    if row is None or state.departure(i) is not None or isnan(value):
        return None
    predicted = state.policy.forecast(state.play.ledger, row)
    if predicted is None:
        return None
    trust, gain = predicted.trust, state.sign * predicted.gain
    level = value - trust * gain
    return ForecastView(
        level + gain, predicted.ahead, trust, level, predicted.origin, predicted.tested
    )


# --- which arm to keep ---


def best_or_none(state: SessionState) -> int:
    """Return the arm to keep, by all scores so far; OVER if no arm has one or all those failed."""
    if state.selection is not None:
        return state.selection.arm
    at = {i: 0 for i in (*state.finished, state.play.best()) if i != OVER}
    if not at:  # every remaining arm failed: choose among the arms that were dropped last
        at = {i: departure.at for i, departure in state.exits.items() if was_dropped(state, i)}
    return max(at, key=lambda i: (at[i], state.sign * estimate(state, i), -i), default=OVER)


def best_arm(state: SessionState) -> int:
    """Return the arm to keep, by all scores so far; raise `NoScoresYet` if there is none."""
    best = best_or_none(state)
    if best != OVER:
        return best
    raise NoScoresYet(
        "Every arm that had a score has failed, so there is nothing to recommend."
        if state.spent
        else "No scores yet, so there is nothing to recommend. Call ask(), train that arm, "
        "and report its score with tell()."
    )


def was_dropped(state: SessionState, i: int) -> bool:
    """Return whether an arm was dropped and has not failed afterwards."""
    departure = state.exits.get(i)
    return departure is not None and departure.decision is not None and departure.how != FAILED


def selection(state: SessionState) -> WinnerSelection:
    """Return the selected arm with its numbers then, or else the best arm with its numbers now."""
    if state.selection is not None:
        return state.selection
    arm, n = best_arm(state), tuple(state.pulls)
    estimates = {i: estimate(state, i) for i in range(len(n)) if n[i]}
    forecasts = {i: forecast(state, i, value) for i, value in estimates.items()}
    departed = {
        i: departure.how for i, departure in state.exits.items() if departure.how != DROPPED
    }
    return WinnerSelection(
        arm, state.spent, n[arm], state.deciding_budget, estimates, forecasts, departed
    )
