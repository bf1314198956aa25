"""The certificate of a session, and the rewards that it is computed from."""

from dataclasses import replace
from typing import Any

import numpy as np

from latebloomer.session.events import FAILED, FINISHED
from latebloomer.session.session_state import SessionState
from latebloomer.theory.certificate import Certificate
from latebloomer.theory.certificate import certificate as certificate_of

Rewards = np.ndarray[Any, np.dtype[np.float64]]


def rewards_by_arm(state: SessionState) -> list[Rewards]:
    """Return the rewards of each arm, in order; an arm that repeats its scores has none."""
    by_arm = np.argsort(np.array(state.arms), kind="stable")
    scores = np.split(np.array(state.scores)[by_arm], np.cumsum(state.pulls)[:-1])
    rewards = [state.sign * own for own in scores]
    for i in state.repeats_scores:  # a repeated reward is not a new measurement
        rewards[i] = rewards[i][:0]
    return rewards


def certificate(
    state: SessionState,
    noise: float | None,
    delta: float,
    score_range: tuple[float, float] | None,
    method: str,
    budget: int | None,
    looks: int,
) -> Certificate:
    """Bound every arm's mean at the horizon; the parameters are those of `Session.certificate`.

    The score of a finished arm no longer changes, so its interval is its last reward alone.
    """
    window = float(getattr(state.policy, "window", 0.25))
    # The pulls of an extended or stopped session may depend on scores, so any number is possible.
    if budget is None and not state.extended and state.stopped is None:
        budget = state.deciding_budget
    if score_range is not None and not state.maximize:
        score_range = -score_range[1], -score_range[0]
    proof = certificate_of(
        rewards_by_arm(state),
        noise,
        state.horizon,
        window,
        delta,
        budget,
        method=method,
        score_range=score_range,
        looks=looks,
    )
    for i, departure in state.exits.items():
        if departure.how == FINISHED and state.pulls[i]:
            proof.lower[i] = proof.upper[i] = state.sign * state.scores_of(i)[-1]
    lost = frozenset(i for i, departure in state.exits.items() if departure.how == FAILED)
    return replace(proof, maximize=state.maximize, lost=lost)
