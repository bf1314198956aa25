"""Ask for an arm, train it, report its score."""

import operator
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from latebloomer._util.text import html_table
from latebloomer.core.ledger import OVER, RACERS
from latebloomer.errors import ArmError, NoScoresYet, TellError, need_whole, require
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import policy_for
from latebloomer.session import checked_inputs as inputs
from latebloomer.session import events as session_events
from latebloomer.session import learner_view as views
from latebloomer.session.checked_inputs import LARGEST
from latebloomer.session.events import FAILED, FINISHED, Event, ScoreReported
from latebloomer.session.plan_in_force import Terms
from latebloomer.session.play import Play
from latebloomer.theory.certificate import DELTA, LINES, Certificate, certificate


class Session:
    """Run a policy step by step: ask for an arm, report its score, get a recommendation.

    A session changes by `apply(event)` only; `tell` is the short form of
    `apply(ScoreReported(...))`. So it is determined by its settings and its events: replaying
    them gives an equal session, bit for bit. It can be pickled at any time.

    Parameters
    ----------
    policy : Policy | str
        Policy, or its name with settings such as "r-sr:window=0.5".
    arms : int | Sequence[str]
        Number of arms, or their names.
    budget : int
        Total number of pulls over all arms.
    horizon : int | None
        Number of pulls per arm at which arms are compared; none is pulled further. Default: the
        budget.
    seed : int
        Seed for policies that choose at random.
    maximize : bool
        Whether higher scores are better. If False, scores are losses, and estimates, intervals
        and forecasts have their sign.
    winner_share : float
        Fraction of the budget, at least 0 and below 1, reserved for training the winner after it
        is selected (`WinnerSelected`).
    min_pulls : int
        Number of pulls every arm gets before any arm can be dropped.
    repeats_scores : Iterable[int | str]
        Arms with fewer steps than pulls: they repeat their last score when a pull adds no step.
        No noise or interval is estimated for them.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    UnknownName
        No policy has that name.

    Examples
    --------
    >>> session = Session("r-sr", arms=["slow", "quick"], budget=20)
    >>> while not session.over:
    ...     arm = session.ask()
    ...     n = session.pulls[arm] + 1
    ...     session.tell(arm, [n / 8, n / (n + 2)][arm])
    >>> session.recommend().name
    'slow'
    """

    def __init__(
        self,
        policy: Policy | str,
        arms: int | Sequence[str],
        budget: int,
        horizon: int | None = None,
        seed: int = 0,
        *,
        maximize: bool = True,
        winner_share: float = 0.0,
        min_pulls: int = 1,
        repeats_scores: Iterable[int | str] = (),
    ) -> None:
        inputs.check_share(winner_share)
        self.names = inputs.arm_names(arms)
        self.budget = need_whole("budget", budget)  # total pulls, in force
        deciding = self.budget - inputs.set_aside(self.budget, winner_share)
        # Without a horizon, arms are compared at the total budget, the reserved pulls included:
        # the winner is trained towards it, and a nearer one would end its training.
        self.horizon = self.budget if horizon is None else need_whole("horizon", horizon)
        self.policy = policy_for(policy, len(self.names), deciding, self.horizon)
        self.policy.check(len(self.names), deciding, self.horizon, min_pulls)
        self.seed, self.maximize, self.winner_share = seed, bool(maximize), winner_share
        self.min_pulls = min_pulls
        self._given = (self.budget, horizon, len(self.names))  # what it was made with
        self._horizon_follows_budget = horizon is None
        self._sign = 1.0 if maximize else -1.0
        self._arm_of = {name: i for i, name in enumerate(self.names)}
        self.repeats_scores = frozenset(map(self._index, repeats_scores))
        # Every score, in order, and every other event with the number of scores before it.
        self._arms, self._scores = array("q"), array("d")
        self._pulls = [0] * len(self.names)
        self._last_scores: list[float | None] = [None] * len(self.names)
        self._others: list[tuple[int, Event]] = []
        # The facts that the plan in force rests on, in addition to the scores.
        self.deciding_budget = deciding  # pulls that decide; the rest trains the winner
        self._exits: dict[int, views.Exit] = {}  # arms that were dropped, failed or finished
        self._joining: tuple[session_events.Joined, ...] = ()  # for the next extension to admit
        self._selection: views.WinnerSelection | None = None  # once the winner is trained
        self._stopped: str | None = None  # when and why it was ended permanently
        self._extended = False
        self._phases_done = 0  # before the plan in force was made
        self._play = Play(self._terms(range(len(self.names))))
        self._racing: tuple[int, ...] = ()  # arms that may still be recommended
        self._racers: int | None = None  # arms in play that were not dropped when last noted
        self._note_drops()

    # --- ask and tell ---

    def ask(self) -> int:
        """Return the arm to pull next; the same arm until its score is reported."""
        if self._play.due == OVER:
            raise TellError(f"The session requests no more pulls: {self.reason}.")
        return self._play.due

    def ask_phase(self, batch: int = 1) -> dict[int, int]:
        """Return the pulls per arm that may be made in any order before the next decision.

        For a policy with phases, that is the rest of the phase. For a policy that decides after
        every pull, it is one pull of up to `batch` arms. Empty if the session is over.
        """
        event = self.next_batch(batch)
        if event is not None and not event.more:
            self.apply(event)
        if self._selection is not None:
            return {} if self.over else {self._selection.arm: self._pulls_for_winner()}
        return self._play.remaining()

    def next_batch(self, batch: int) -> session_events.BatchIssued | None:
        """Return the event that brings the arms pulled at the same time to `batch`, if any can.

        Only a policy that decides after every pull issues batches: the pulls of a phase may be
        made in any order anyway. None if no arm can be added.
        """
        play, most = self._play, need_whole("batch", batch, 1, "it is a number of arms")
        size = min(most, self.deciding_budget - self.spent)
        if play.due == OVER or self._selection is not None or not play.picks_now:
            return None
        if play.batch:
            more = play.can_issue_more(size)
            return session_events.BatchIssued(size, more=True) if more else None
        return session_events.BatchIssued(size) if size > 1 else None

    def tell(self, arm: int | str, score: float) -> None:
        """Report the score of a pull that `ask` or `ask_phase` requested."""
        play = self._play
        due = play.due
        i = arm if arm is due and due >= 0 else self._index(arm)
        value = score
        if type(score) is not float or not -LARGEST <= score <= LARGEST:
            value = inputs.as_score(score, f" for arm {self.names[i]}")
        if i != due and not (self._selection is None and play.accepts(i)):
            raise TellError(self._not_requested(i))
        self._arms.append(i)
        self._scores.append(value)
        self._pulls[i] += 1
        self._last_scores[i] = value
        if self._selection is not None:  # no decision rests on what the winner shows
            self._train_winner()
            return
        play.take(i, value if self.maximize else -value)
        if play.ledger.cursor[RACERS] != self._racers:
            self._note_drops()
        if play.waiting is not None:
            self._settle()

    def accepts(self, arm: int) -> bool:
        """Return whether a score of this arm may be reported now."""
        due = self._play.due
        return due == arm >= 0 or (self._selection is None and self._play.accepts(arm))

    def _not_requested(self, i: int) -> str:
        why = (
            f"requests no more pulls: {self.reason}."
            if self.over
            else f"asked for arm {self.names[self._play.due]}. Report scores only for arms that "
            "ask() or ask_phase() returned."
        )
        return f"Received a score for arm {self.names[i]}, but the session {why}"

    def _index(self, arm: int | str) -> int:
        if isinstance(arm, str):
            if arm not in self._arm_of:
                known = inputs.listed(self.names)
                raise ArmError(f"arm={arm!r} does not exist. The arms are {known}.")
            return self._arm_of[arm]
        try:
            i = -1 if isinstance(arm, bool | np.bool_) else operator.index(arm)
        except TypeError:
            raise ArmError(f"arm={arm!r} must be a number or a name.") from None
        if not 0 <= i < len(self.names):
            raise ArmError(f"arm={arm!r} must be a number from 0 to {len(self.names) - 1}.")
        return i

    # --- events other than a score ---

    def apply(self, event: Event) -> None:
        """Let an event happen: the only way in which a session changes.

        An event that is not possible now raises an error and changes nothing. Events that concern
        a race only (`PullFailed`, `Saved`, ...) leave a session unchanged.
        """
        if type(event) is ScoreReported:
            self.tell(event.arm, event.score)
        elif type(event) in CHANGES:
            at = self.spent
            CHANGES[type(event)](self, event)
            self._others.append((at, event))

    def _issue_batch(self, event: session_events.BatchIssued) -> None:
        if event != self.next_batch(event.size):
            raise TellError(f"A batch of {event.size} arms cannot be issued now: {self.reason}.")
        self._play.issue_batch(event.size, event.more)

    def _let_leave(self, event: session_events.LearnerLeft) -> None:
        i = self._index(event.arm)
        right = isinstance(event.how, str) and event.how in (FAILED, FINISHED)
        require(right, "how", event.how, f"{FAILED!r} or {FINISHED!r}", "arms leave in these ways")
        if self.departure(i) is not None:
            raise TellError(f"Arm {self.names[i]} has already {self.departure(i)}.")
        if event.how == FINISHED and not self._pulls[i]:
            raise TellError(f"Arm {self.names[i]} has no score, so it cannot have finished.")
        dropped = self._exits.get(i)
        if dropped is not None:
            self._exits[i] = dropped._replace(how=event.how, why=event.why)
        else:
            estimate = self._final_estimate(i) if event.how == FINISHED else self._estimate(i)
            known = None if isnan(estimate) else estimate  # a nan is not equal to itself
            self._exits[i] = views.Exit(event.how, max(1, self.spent), known, why=event.why)
        if self._selection is not None:  # the selection stays, as trained as the winner is
            self._train_winner()
        elif dropped is None:
            self._play_again()

    def _final_estimate(self, i: int) -> float:
        """Return the estimate of an arm that finished, from its own scores, not extrapolated."""
        if self.decides_every_pull or self.policy.decides_after_sweeps():
            return self.scores(i)[-1]
        alone = Play(self._terms([i]))
        for score in self.scores(i):
            alone.take(i, self._sign * score)
        return self._sign * alone.estimate(i)

    def _replan(self, event: session_events.BudgetReplanned) -> None:
        budget, deciding = need_whole("budget", event.budget), need_whole("budget", event.deciding)
        decided = self._selection is not None  # then the pulls that decide are spent
        possible = deciding >= 0 if decided else self.spent <= deciding <= budget
        if not possible or budget < self.spent:
            raise TellError(f"{event} is impossible: {self.spent} pulls are already spent.")
        self.budget = budget
        if self._horizon_follows_budget:
            self.horizon = max(budget, *self._pulls, 1)
        if self._selection is not None:
            self._train_winner()
        else:
            self.deciding_budget = deciding
            self._play_again()

    def _stop(self, event: session_events.Stopped) -> None:
        if event.final:
            self._stopped = f"after {self.spent:,} of {self.budget:,} pulls: {event.why}"
        self.budget = self.spent
        if self._selection is None:
            self.deciding_budget = self.spent
        self._play.halt()

    def _select_winner(self, event: session_events.WinnerSelected) -> None:
        selection = self.selection
        if self._index(event.arm) != selection.arm:
            why = f"{self.policy!r} selects arm {selection.arm}"
            raise TellError(f"Arm {event.arm} cannot be selected: {why}.")
        self.budget = need_whole("budget", event.budget, self.spent, "that many pulls are spent")
        self._selection = selection
        self._play.halt()
        self._train_winner()

    def _train_winner(self) -> None:
        self._play.due = self.selection.arm if self._pulls_for_winner() else OVER

    def _pulls_for_winner(self) -> int:
        arm = self.selection.arm
        room = min(self.budget - self.spent, self.horizon - self._pulls[arm])
        return 0 if arm in self._exits else max(0, room)

    def _let_join(self, event: session_events.Joined) -> None:
        names = (*self.names, *(new.name for new in self._joining))
        (name,) = inputs.arm_names([event.name])
        if name in names:
            raise TellError(f"{name!r} cannot join: there is an arm of that name already.")
        if event.arm != len(names) or isinstance(event.arm, bool):
            raise TellError(f"{name!r} must join as arm {len(names)}, not as arm {event.arm}.")
        if self.decides_every_pull and not self.policy.picks_by_rating:
            why = f"{self.policy!r} fixes the order of its arms at the start"
            raise TellError(f"{name!r} cannot join: {why}. Start a new race or session with it.")
        self._joining = (*self._joining, event)

    def _extend(self, event: session_events.Extended) -> None:
        self.budget, self.deciding_budget, self.horizon = self._checked_extension(event)
        self._extended = True
        if event.seconds is None:  # with more time, later plans set the budget and the horizon
            self._horizon_follows_budget = False
        self.repeats_scores |= {new.arm for new in self._joining if new.repeats_scores}
        self.names = (*self.names, *(new.name for new in self._joining))
        self._pulls += [0] * len(self._joining)
        self._last_scores += [None] * len(self._joining)
        self._joining = ()
        self._arm_of = {name: i for i, name in enumerate(self.names)}
        self._selection = self._stopped = None
        self._play.batch = []
        if event.revive:
            self._exits = {i: left for i, left in self._exits.items() if left.how != views.DROPPED}
        self._play_again(from_start=event.revive)

    def _checked_extension(self, event: session_events.Extended) -> tuple[int, int, int]:
        budget = need_whole("budget", event.budget, self.budget, "a session is extended, not cut")
        deciding = need_whole("budget", event.deciding)
        if not self.spent <= deciding <= budget:
            raise TellError(f"{event} is impossible: {self.spent} pulls are already spent.")
        most = max(1, *self._pulls)
        horizon = need_whole("horizon", event.horizon, most, "an arm has had that many pulls")
        arms = len(self.names) + len(self._joining)
        self.policy.plan(arms, deciding, horizon, self.min_pulls)  # raises if it cannot be played
        self.policy.settings(arms, deciding, horizon)
        return budget, deciding, horizon

    # --- the plan in force ---

    def _terms(self, arms: Iterable[int], level: int = 0) -> Terms:
        arms, left = tuple(arms), self.deciding_budget - self.spent
        own_pulls = left + sum(self._pulls[i] for i in arms)
        return Terms(
            self.policy, len(self.names), arms, self.deciding_budget, left, own_pulls,
            self.horizon, self.seed, self.min_pulls, level, self.repeats_scores,
        )  # fmt: skip

    def _play_again(self, from_start: bool = False) -> None:
        """Make a play for the arms that are left, from the scores that are known."""
        self._make_play(from_start)
        self._settle()

    def _make_play(self, from_start: bool = False) -> None:
        """Replace the play. What was decided stays, unless all is decided again `from_start`."""
        arms = [i for i in range(len(self.names)) if i not in self._exits]
        level = 0 if from_start or not arms else min(self._pulls[i] for i in arms)
        again = from_start or self.decides_every_pull  # all phases of the plan, in no time
        # A replan must not change the phase that is shown: the time budget replans when it does.
        self._phases_done = 0 if again else self._phases_done + self._play.phase[0]
        reported = zip(self._arms, self._scores, strict=True)
        rewards = ((i, self._sign * score) for i, score in reported)
        self._play = Play(self._terms(arms, level), rewards, before=self._play)
        self._racers = None
        self._note_drops()

    def _settle(self) -> None:
        """Enter the rewards that wait for the plan, and note the arms that it drops.

        An arm that is dropped with more pulls than the plan had for it has used other arms' pulls:
        then the arms that are left get a new plan.
        """
        while True:
            while self._play.enter_waiting():
                self._note_drops()
            if not self._play.overspent:
                return
            self._make_play()

    def _note_drops(self) -> None:
        """Keep the numbers that decided, for every arm that has just been dropped."""
        play = self._play
        racers = play.ledger.cursor[RACERS]
        if racers == self._racers:
            return
        self._racers = racers
        finished = self._finished()
        self._racing = tuple(sorted([*play.racing, *finished]) if finished else play.racing)
        dropped = [(i, rating) for i, rating in play.dropped if i not in self._exits]
        if not dropped:
            return
        # Ranks are cut above the lowest kept; a joint review may keep arms below one it drops.
        rival, bar = play.rival(best=self.policy.decides_after_sweeps())
        for i, rating in dropped:
            at, mine = max(1, self.spent), self._sign * rating
            decision = views.Decision(at, self._pulls[i], self.names[rival], self._sign * bar)
            self._exits[i] = views.Exit(views.DROPPED, at, mine, self._forecast(i, mine), decision)

    # --- where the session stands ---

    @property
    def over(self) -> bool:
        """True if the session requests no more pulls."""
        return self._play.due == OVER

    @property
    def reason(self) -> str:
        """Why the session is over, or how much of the budget is left."""
        left = self.budget - self.spent
        of = f"{left:,} of {self.budget:,} pulls"
        if self.selection_pending:
            return f"the policy has decided; {of} are left to train the winner"
        if not self.over:
            kept = 0 if self._selection is not None else self.budget - self.deciding_budget
            return f"{of} left" + (f", {kept:,} of them for the winner" if kept else "")
        if self._stopped is not None:
            return f"stopped {self._stopped}"
        if left == 0:
            only = "the only pull of the budget is spent"
            many = f"all {self.budget:,} pulls of the budget are spent"
            return only if self.budget == 1 else many
        reached = f"has reached the horizon of {self.horizon:,} pulls"
        if self._selection is not None:
            name, gone = self.names[self._selection.arm], self._selection.arm in self._exits
            why = f"{name} {'takes no more pulls' if gone else reached}"
        elif not self.trainable:
            best, why = self._best(), "no learner that takes pulls remains"
            if best != OVER and self._was_dropped(best):
                why = f"all remaining learners failed; {self.names[best]}, dropped before, is kept"
        else:
            at_end = all(self._pulls[i] >= self.horizon for i in self.racing)
            why = f"every remaining learner {reached}" if at_end else "the plan is complete"
        return f"{why}; {of} are left over"

    @property
    def spent(self) -> int:
        """Number of scores reported so far."""
        return len(self._arms)

    @property
    def pulls(self) -> tuple[int, ...]:
        """Number of scores reported so far, per arm."""
        return tuple(self._pulls)

    def pulls_of(self, arm: int) -> int:
        """Return the number of scores reported for one arm, without listing all arms."""
        return self._pulls[arm]

    @property
    def history(self) -> list[tuple[int, float]]:
        """Every (arm, score) reported, in order."""
        return list(zip(self._arms, self._scores, strict=True))

    def scores(self, arm: int | str) -> list[float]:
        """Return the scores of one arm, in order."""
        i = self._index(arm)
        return [score for j, score in zip(self._arms, self._scores, strict=True) if j == i]

    @property
    def racing(self) -> tuple[int, ...]:
        """The arms that may still be recommended."""
        return self._racing

    def _finished(self) -> list[int]:
        """Return the arms that finished and may still be recommended."""
        left = self._exits.items()
        return [i for i, one in left if one.how == FINISHED and one.decision is None]

    @property
    def trainable(self) -> list[int]:
        """The arms that may still be pulled."""
        racing = self._play.racing if self._selection is None else [self._selection.arm]
        return [i for i in racing if self.departure(i) is None]

    def departure(self, arm: int | str) -> str | None:
        """Return how an arm left: FAILED, FINISHED, or None for an arm that takes pulls."""
        left = self._exits.get(self._index(arm))
        return None if left is None or left.how == views.DROPPED else left.how

    @property
    def phase(self) -> tuple[int, int]:
        """Number of the current phase, from 1, and number of phases."""
        done, phases = self._play.phase
        return self._phases_done + min(done + 1, phases), self._phases_done + phases

    @property
    def levels_to_come(self) -> list[tuple[int, int]]:
        """(arms, pulls each) of this phase and of the later ones, by the plan in force."""
        return [] if self.over or self._selection is not None else self._play.levels_to_come

    @property
    def decides_every_pull(self) -> bool:
        """True if the policy decides after every pull instead of between phases."""
        return self._play.decides_every_pull

    # --- the winner ---

    def recommend(self) -> views.Recommendation:
        """Return the arm to keep, by what is known now."""
        arm, estimates = self.best_arm, tuple(map(self._estimate, range(len(self.names))))
        name, pulls = self.names[arm], self.pulls
        return views.Recommendation(
            arm, name, estimates, pulls, self.spent, self.budget, self.over, self.reason
        )

    @property
    def best_arm(self) -> int:
        """The arm to keep, by what is known now: `recommend().arm` without the rest."""
        best = self._best()
        if best != OVER:
            return best
        raise NoScoresYet(
            "Every arm that had a score has failed, so there is nothing to recommend."
            if self.spent
            else "No scores yet, so there is nothing to recommend. Call ask(), train that arm, "
            "and report its score with tell()."
        )

    @property
    def has_best(self) -> bool:
        """True if an arm can be recommended."""
        return self._best() != OVER

    def _best(self) -> int:
        """Return the arm to keep; OVER if every arm that had a score failed."""
        if self._selection is not None:
            return self._selection.arm
        at = {i: 0 for i in (*self._finished(), self._play.best()) if i != OVER}
        if not at:  # every remaining arm failed: the arms that were dropped last come next
            at = {i: left.at for i, left in self._exits.items() if self._was_dropped(i)}
        return max(at, key=lambda i: (at[i], self._sign * self._estimate(i), -i), default=OVER)

    def _was_dropped(self, i: int) -> bool:
        """Return whether an arm was dropped, and has not failed since."""
        left = self._exits.get(i)
        return left is not None and left.decision is not None and left.how != FAILED

    @property
    def winner(self) -> int | None:
        """The arm that was selected and is trained further; None while the policy decides."""
        return None if self._selection is None else self._selection.arm

    @property
    def selection(self) -> views.WinnerSelection:
        """The selected arm with the numbers of that moment: of now, unless it was selected."""
        if self._selection is not None:
            return self._selection
        arm, n = self.best_arm, self.pulls
        estimates = {i: self._estimate(i) for i in range(len(n)) if n[i]}
        forecasts = {i: self._forecast(i, value) for i, value in estimates.items()}
        departed = {i: left.how for i, left in self._exits.items() if left.how != views.DROPPED}
        return views.WinnerSelection(
            arm, self.spent, n[arm], self.deciding_budget, estimates, forecasts, departed
        )

    @property
    def selection_pending(self) -> bool:
        """True if the policy is done and its winner is still to be selected and trained."""
        if not self.winner_share or self._selection is not None or not self.over:
            return False
        return self._stopped is None and any(self._pulls[i] for i in self.racing)

    def _estimate(self, i: int) -> float:
        if self._selection is not None and i in self._selection.estimates:
            return self._selection.estimates[i]
        if i in self._exits:
            known = self._exits[i].estimate
            return nan if known is None else known
        row = self._play.row(i)
        if row is None or self._play.ledger.n[row] == 0:
            return nan
        return self._sign * self._play.estimate(i)

    def certificate(
        self,
        noise: float | None = None,
        delta: float = DELTA,
        score_range: tuple[float, float] | None = None,
        method: str = LINES,
        budget: int | None = None,
        looks: int = 1,
    ) -> Certificate:
        """Bound every arm's mean at the horizon, all of them together [Mussi24, Lemmas 1, 2].

        The intervals hold with probability 1 - delta if the curves rise and are concave and the
        noise is sub-Gaussian with standard deviation `noise`; if that is None, it is estimated.
        They are intervals of rewards: with `maximize=False`, of scores times -1; the sentences of
        the certificate speak of scores. `score_range` is the lowest and highest possible mean
        score, such as (0, 1). `budget` is the largest number of pulls that an arm could have had,
        as known before the first pull. Default: that of the plan, or the horizon after an early
        end. If you check repeatedly in order to stop, `looks` is the maximum number of checks.
        """
        by_arm = np.argsort(np.array(self._arms), kind="stable")
        scores = np.split(np.array(self._scores)[by_arm], np.cumsum(self._pulls)[:-1])
        rewards = [self._sign * own for own in scores]
        for i in self.repeats_scores:  # a repeated reward is not a new measurement
            rewards[i] = rewards[i][:0]
        window = float(getattr(self.policy, "window", 0.25))
        # An extended or stopped session may have been checked after any number of pulls.
        if budget is None and not self._extended and self._stopped is None:
            budget = self.deciding_budget
        if score_range is not None and not self.maximize:
            score_range = -score_range[1], -score_range[0]
        found = certificate(
            rewards, noise, self.horizon, window, delta, budget, method=method,
            score_range=score_range, looks=looks,
        )  # fmt: skip
        lost = frozenset(i for i, left in self._exits.items() if left.how == FAILED)
        return replace(found, maximize=self.maximize, lost=lost)

    # --- how every arm stands, and why ---

    def standings(self) -> list[views.LearnerView]:
        """Return the best arm, the racing arms by their estimate, then those that left."""
        best = self._best()
        return views.ranked((self._view(i, best) for i in range(len(self.names))), self.maximize)

    def explain(self, arm: int | str) -> views.LearnerView:
        """Return how an arm stands, and the numbers that decided; `print` it."""
        return self._view(self._index(arm), self._best())

    def _view(self, i: int, best: int) -> views.LearnerView:
        left, estimate, last = self._exits.get(i), self._estimate(i), self._last_scores[i]
        decided = left is not None and left.decision is not None
        why = left.why if left else ""
        if left and i == best and self._was_dropped(i):
            why = f"Dropped at race pull {left.at:,}, but every arm that remained then failed"
        return views.LearnerView(
            arm=i,
            name=self.names[i],
            state=self._state(i, best),
            pulls=self._pulls[i],
            score=nan if last is None else last,
            forecast=left.forecast if left and decided else self._forecast(i, estimate),
            estimate=estimate,
            rule=self.policy.name,
            decision=left.decision if left and decided else self._comparison(i, best),
            left_at=left.at if left and i != best and (decided or left.how == FAILED) else None,
            left_why=why,
        )

    def _state(self, i: int, best: int) -> str:
        final = self._selection is not None or (self.over and not self.selection_pending)
        if i == best:
            return views.WINNER if final else views.LEADING
        if i in self._exits:
            return self._exits[i].how
        return views.NOT_SELECTED if final else views.RACING

    def _comparison(self, i: int, best: int) -> views.Decision | None:
        """Return what an arm that was not dropped is compared with: the best one."""
        selected = self._selection
        if not self._pulls[i]:
            return None
        at = self.spent if selected is None else selected.at
        if i == best or best == OVER:
            return views.Decision(at, self._pulls[i] if selected is None else selected.pulls)
        return views.Decision(at, self._pulls[i], self.names[best], self._estimate(best))

    def _forecast(self, i: int, estimate: float) -> views.ForecastView | None:
        """Return the score that the policy expects of an arm in play, as of its last decision."""
        if self._selection is not None:
            return self._selection.forecasts.get(i)
        row = self._play.row(i)
        if row is None or self.departure(i) is not None or isnan(estimate):
            return None
        made = self.policy.forecast(self._play.ledger, row)
        if made is None:
            return None
        trust, gain = made.trust, self._sign * made.gain
        level = estimate - trust * gain
        return views.ForecastView(level + gain, made.ahead, trust, level, made.origin, made.tested)

    # --- events, replay, equality ---

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        found: list[Event] = []
        others = deque(self._others)
        for spent, (arm, score) in enumerate(self.history):
            while others and others[0][0] == spent:
                found.append(others.popleft()[1])
            found.append(ScoreReported(arm, score))
        return [*found, *(event for _, event in others)]

    def replay(self, history: Iterable[tuple[int | str, float]]) -> "Session":
        """Return a new session with the same settings to which `history` is reported.

        The other events of this session happen to it after the same numbers of pulls.
        """
        budget, horizon, arms = self._given
        session, others = Session(
            self.policy, self.names[:arms], budget, horizon, self.seed, maximize=self.maximize,
            winner_share=self.winner_share, min_pulls=self.min_pulls,
            repeats_scores=[i for i in self.repeats_scores if i < arms],
        ), deque(self._others)  # fmt: skip
        for arm, score in history:
            session._catch_up(others)
            session.tell(arm, score)
        session._catch_up(others)
        return session

    def _catch_up(self, others: deque[tuple[int, Event]]) -> None:
        while others and others[0][0] == self.spent:
            self.apply(others.popleft()[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """Return the standings for a notebook."""
        rows = [
            [one.name, one.outcome, f"{one.pulls:,}",
             *("" if isnan(value) else f"{value:.5g}"
               for value in (one.score, one.forecast_score, one.estimate))]
            for one in self.standings()
        ]  # fmt: skip
        head = ["arm", "state", "pulls", "score", "forecast", f"estimate ({self.policy.name})"]
        return html_table(f"{self.policy!r}: {self.reason}", head, rows)

    def __repr__(self) -> str:
        return f"Session({self.policy!r}, {len(self.names)} arms, {self.reason})"


# What an event other than a score does to a session.
CHANGES: dict[type[Event], Callable[[Session, Any], None]] = {
    session_events.BatchIssued: Session._issue_batch,
    session_events.LearnerLeft: Session._let_leave,
    session_events.BudgetReplanned: Session._replan,
    session_events.Stopped: Session._stop,
    session_events.WinnerSelected: Session._select_winner,
    session_events.Joined: Session._let_join,
    session_events.Extended: Session._extend,
}
