"""The changes of a session by events other than scores, and the plan in force afterwards."""

from collections.abc import Callable
from math import isnan
from typing import Any

from latebloomer.core.ledger import OVER, RACERS
from latebloomer.errors import TellError, need_whole, require
from latebloomer.session import checked_inputs as inputs
from latebloomer.session.decisions import Decision, Exit
from latebloomer.session.estimates import estimate, final_estimate, forecast, selection
from latebloomer.session.events import (
    DROPPED,
    FAILED,
    FINISHED,
    BatchIssued,
    BudgetReplanned,
    Dropped,
    Event,
    Extended,
    Joined,
    LearnerLeft,
    Revived,
    Stopped,
    WinnerSelected,
)
from latebloomer.session.play import Play
from latebloomer.session.session_state import SessionState
from latebloomer.session.standings import reason


def next_batch(state: SessionState, batch: int) -> BatchIssued | None:
    """Return the event after which up to `batch` arms are pulled at the same time, if any."""
    most = need_whole("batch", batch, 1, "it is a number of arms")
    play, size = state.play, min(most, state.deciding_budget - state.spent)
    if play.due == OVER or state.selection is not None or not play.picks_now:
        return None
    if play.batch:
        return BatchIssued(size, more=True) if play.can_issue_more(size) else None
    return BatchIssued(size) if size > 1 else None


def _issue_batch(state: SessionState, event: BatchIssued) -> None:
    """Choose several arms that are pulled at the same time."""
    if event != next_batch(state, event.size):
        raise TellError(f"A batch of {event.size} arms cannot be issued now: {reason(state)}.")
    state.play.issue_batch(event.size, event.more)


def _let_leave(state: SessionState, event: LearnerLeft) -> None:
    """Note that an arm failed or finished: it gets no more pulls."""
    i = state.index(event.arm)
    right = isinstance(event.how, str) and event.how in (FAILED, FINISHED)
    require(right, "how", event.how, f"{FAILED!r} or {FINISHED!r}", "these are the ways to leave")
    if state.departure(i) is not None:
        raise TellError(f"Arm {state.names[i]} has already {state.departure(i)}.")
    if event.how == FINISHED and not state.pulls[i]:
        raise TellError(f"Arm {state.names[i]} has no score, so it cannot have finished.")
    dropped = state.exits.get(i)
    if dropped is not None:
        state.exits[i] = dropped._replace(how=event.how, why=event.why)
    else:
        value = (final_estimate if event.how == FINISHED else estimate)(state, i)
        known = None if isnan(value) else value  # nan is not equal to itself
        state.exits[i] = Exit(event.how, max(1, state.spent), known, why=event.why)
    if state.selection is not None:  # the winner stays selected, however far it was trained
        train_winner(state)
    elif dropped is None:
        _play_again(state)


def _replan(state: SessionState, event: BudgetReplanned) -> None:
    """Change the budget, and plan the pulls that remain of it."""
    budget, deciding = need_whole("budget", event.budget), need_whole("budget", event.deciding)
    decided = state.selection is not None  # then the deciding pulls are spent
    possible = deciding >= 0 if decided else state.spent <= deciding <= budget
    if not possible or budget < state.spent:
        raise TellError(f"{event} is impossible: {state.spent} pulls are already spent.")
    state.levels, state.prices, state.budget = event.levels, event.prices, budget
    if state.horizon_follows_budget:
        state.horizon = max(budget, *state.pulls, 1)
    if state.selection is not None:
        train_winner(state)
    else:
        state.deciding_budget = deciding
        _play_again(state)


def _stop(state: SessionState, event: Stopped) -> None:
    """End the session if the event is final; otherwise end only the decisions."""
    if event.final:
        state.stopped = f"after {state.spent:,} of {state.budget:,} pulls: {event.why}"
    state.budget = state.spent
    if state.selection is None:
        state.deciding_budget = state.spent
    state.play.halt()


def _select_winner(state: SessionState, event: WinnerSelected) -> None:
    """Select the best arm, which is then trained further."""
    selected = selection(state)
    if state.index(event.arm) != selected.arm:
        why = f"{state.policy!r} selects arm {selected.arm}"
        raise TellError(f"Arm {event.arm} cannot be selected: {why}.")
    state.budget = need_whole("budget", event.budget, state.spent, "these pulls are already spent")
    state.selection = selected
    state.play.halt()
    train_winner(state)


def train_winner(state: SessionState) -> None:
    """Make the selected winner the arm that is pulled next, as long as it may be pulled."""
    selected = state.selection
    state.play.due = selected.arm if selected and state.pulls_for_winner else OVER


def _let_join(state: SessionState, event: Joined) -> None:
    """Note a new arm, which joins with the next extension."""
    names = (*state.names, *(new.name for new in state.joining))
    (name,) = inputs.arm_names([event.name])
    if name in names:
        raise TellError(f"{name!r} cannot join: there is an arm of that name already.")
    if event.arm != len(names) or isinstance(event.arm, bool):
        raise TellError(f"{name!r} must join as arm {len(names)}, not as arm {event.arm}.")
    if state.play.decides_every_pull and not state.policy.picks_by_rating:
        why = f"{state.policy!r} fixes the order of its arms at the start"
        raise TellError(f"{name!r} cannot join: {why}. Start a new race or session with it.")
    state.joining = (*state.joining, event)


def _extend(state: SessionState, event: Extended) -> None:
    """Extend the budget, and plan the larger budget from the start."""
    state.budget, state.deciding_budget, state.horizon = _checked_extension(state, event)
    state.extended = True
    # A budget in seconds is replanned later, which sets the budget in pulls and the horizon.
    if event.seconds is None:
        state.horizon_follows_budget = False
    state.repeats_scores |= {new.arm for new in state.joining if new.repeats_scores}
    state.names = (*state.names, *(new.name for new in state.joining))
    state.pulls += [0] * len(state.joining)
    state.last_scores += [None] * len(state.joining)
    state.joining = ()
    state.arm_of = {name: i for i, name in enumerate(state.names)}
    state.selection = state.stopped = None
    state.levels, state.prices, state.play.batch = (), (), []
    back = [i for i, departure in state.exits.items() if departure.how == DROPPED and event.revive]
    state.exits = {i: departure for i, departure in state.exits.items() if i not in back}
    known = len(state.drops)
    _play_again(state, from_start=event.revive)
    # An arm that the new plan drops again at once, without a new pull, was never revived.
    news = {drop.arm: drop for drop in state.drops[known:]}
    revived = [Revived(i, state.spent) for i in sorted(back) if i not in news]
    state.drops[known:] = [*revived, *(drop for i, drop in news.items() if i not in back)]


def _checked_extension(state: SessionState, event: Extended) -> tuple[int, int, int]:
    budget = need_whole(
        "budget", event.budget, state.budget, "a session can be extended but not shortened"
    )
    deciding = need_whole("budget", event.deciding)
    if not state.spent <= deciding <= budget:
        raise TellError(f"{event} is impossible: {state.spent} pulls are already spent.")
    most = max(1, *state.pulls)
    horizon = need_whole("horizon", event.horizon, most, "an arm already has that many pulls")
    arms = len(state.names) + len(state.joining)
    state.policy.plan(arms, deciding, horizon, state.min_pulls)  # may raise an error
    state.policy.settings(arms, deciding, horizon)
    return budget, deciding, horizon


# --- the plan in force ---


def _play_again(state: SessionState, from_start: bool = False) -> None:
    """Make a new play for the remaining arms from the known scores, and apply what it decides."""
    _make_play(state, from_start)
    settle(state)


def _make_play(state: SessionState, from_start: bool = False) -> None:
    """Replace the play. Earlier decisions stay, unless `from_start` decides everything again."""
    arms = [i for i in range(len(state.names)) if i not in state.exits]
    level = 0 if from_start or not arms else min(state.pulls[i] for i in arms)
    again = from_start or state.play.decides_every_pull  # it repeats all phases
    # The phases already done are added, so that a replan does not change the phase number on
    # displays: a time budget replans whenever that number changes.
    state.phases_done = 0 if again else state.phases_done + state.play.phase[0]
    reported = zip(state.arms, state.scores, strict=True)
    rewards = ((i, state.sign * score) for i, score in reported)
    state.play = Play(state.terms(arms, level), rewards, before=state.play)
    state.racers = None
    note_drops(state)


def settle(state: SessionState) -> None:
    """Enter the rewards that are ahead of the plan as it reaches them, and note the drops.

    An arm may be dropped after more pulls than the plan had for it. It has used pulls of other
    arms, so the remaining arms get a new plan.
    """
    while True:
        while state.play.enter_waiting():
            note_drops(state)
        if state.play.drop_due:
            i, rival = state.play.most_wasteful(), state.play.best()
            _drop(state, i, estimate(state, i), state.names[rival], estimate(state, rival))
        elif not state.play.overspent:
            return
        _make_play(state)


def note_drops(state: SessionState) -> None:
    """Store the numbers that decided for every arm that has just been dropped."""
    play = state.play
    racers = play.ledger.cursor[RACERS]
    if racers == state.racers:
        return
    state.racers = racers
    finished = state.finished
    state.racing = tuple(sorted([*play.racing, *finished]) if finished else play.racing)
    dropped = [(i, rating) for i, rating in play.dropped if i not in state.exits]
    if not dropped:
        return
    # By ranks, a dropped arm is compared with the worst arm that is kept. A policy that decides
    # after sweeps may keep arms with lower ratings than an arm that it drops: compare with the
    # best.
    rival, bar = play.rival(best=state.policy.decides_after_sweeps())
    for i, rating in dropped:
        _drop(state, i, state.sign * rating, state.names[rival], state.sign * bar)


def _drop(state: SessionState, i: int, mine: float, rival: str, bar: float) -> None:
    """Note that an arm is dropped, with its estimate and the estimate of its rival."""
    at = max(1, state.spent)
    decision = Decision(at, state.pulls[i], rival, bar)
    state.exits[i] = Exit(DROPPED, at, mine, forecast(state, i, mine), decision)
    state.drops.append(Dropped(i, at, mine, rival, bar))


# The function that applies each kind of event other than a score.
CHANGES: dict[type[Event], Callable[[SessionState, Any], None]] = {
    BatchIssued: _issue_batch,
    LearnerLeft: _let_leave,
    BudgetReplanned: _replan,
    Stopped: _stop,
    WinnerSelected: _select_winner,
    Joined: _let_join,
    Extended: _extend,
}
