"""Ask for an arm, tell its score."""

from __future__ import annotations

import operator
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf, isnan, nan
from typing import Any

import numpy as np

from latebloomer._util.html_table import html_table
from latebloomer._util.text import brief
from latebloomer.core.ledger import OVER, RACERS
from latebloomer.errors import (
    ArmError,
    NoScoresYet,
    RewardError,
    SettingError,
    TellError,
    need_whole,
    require,
)
from latebloomer.policies.base import Forecast, Policy
from latebloomer.policies.registry import policy_for
from latebloomer.session.checked_inputs import arm_names, as_number, batch_size, listed
from latebloomer.session.events import (
    FAILED,
    FINISHED,
    BatchIssued,
    BudgetReplanned,
    Event,
    Extended,
    Joined,
    LearnerLeft,
    ScoreReported,
    Stopped,
    WinnerSelected,
)
from latebloomer.session.reasons import (
    AT_HORIZON,
    DROPPED,
    RACING,
    Drop,
    Explanation,
    Recommendation,
    Standing,
    explained,
)
from latebloomer.session.turns import Turns
from latebloomer.session.winner_training import WinnerSelection, check_share, set_aside
from latebloomer.theory.certificate import DELTA, LINES, Certificate, certificate

MANY = 8  # scores from which entering them at once is faster
LARGEST = 1e100  # squares of larger scores would leave the range of a double


class Session:
    """One run of a policy: it asks for pulls, is told scores, and recommends an arm.

    It changes in one way only, by `apply(event)`; `tell` is the short form of `apply(ScoreReported(...))`.
    So it is a pure function of its settings and its events: replayed, it is equal bit for bit. It
    can be pickled at any time. With `maximize=False` scores are losses, and everything it says is
    in their sign. `winner_share=0.3` sets that share of the budget aside: once the best is named
    (`WinnerSelected`), it alone is trained on with it. `min_pulls=5` drops no arm before its fifth pull.
    `repeats_scores` names arms that repeat their last score between steps of their own: no noise is read
    from them, and nothing is certified of them.

    Parameters
    ----------
    policy : Policy | str
        A name with settings, or a policy.
    arms : int | Sequence[str]
        How many, or their names.
    budget : int
        Pulls in all.
    horizon : int | None
        The pull at which arms are compared; the budget if None.
    seed : int
        Of a policy's own luck.
    maximize : bool
        False where scores are losses.
    winner_share : float
        The share of the budget for the best, once it is named.
    min_pulls : int
        The pull before which no arm is dropped.
    repeats_scores : Iterable[int | str]
        Arms that repeat their last score between steps of their own.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    UnknownName
        No policy of that name.

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
        check_share(winner_share)
        self.names = arm_names(arms)
        self.budget = need_whole("budget", budget)  # pulls in all
        deciding = self.budget - set_aside(self.budget, winner_share)
        # Without a horizon, arms are compared at the whole budget, what is set aside included: the
        # winner is trained towards it, cannot pass it, and a nearer one would end its training.
        horizon_at = self.budget if horizon is None else need_whole("horizon", horizon)
        self.policy = policy_for(policy, len(self.names), deciding, horizon_at)
        self.seed, self.maximize, self.winner_share = seed, bool(maximize), winner_share
        self.min_pulls = min_pulls  # pulls before which no arm is dropped
        self._given = (self.budget, horizon, len(self.names))  # what it was made with
        self._asked = self.budget  # the budget that was asked for last
        self._own_horizon = horizon  # None where arms are compared at the budget
        self._joining: tuple[Joined, ...] = ()  # newcomers that wait to be let in
        self._sign = 1.0 if maximize else -1.0
        self._arm_of = {name: i for i, name in enumerate(self.names)}
        self._told_arms, self._told_scores = array("q"), array("d")
        self._others: list[tuple[int, Event]] = []  # what else happened, after how many pulls
        self._drops: dict[int, Drop] = {}
        self._naming: WinnerSelection | None = None  # once the winner is trained on
        self._stopped: str | None = None  # when and why it was ended for good
        self.repeats_scores = frozenset(map(self._index, repeats_scores))
        self._turns = Turns(
            self.policy,
            len(self.names),
            deciding,
            horizon_at,
            seed,
            min_pulls,
            self.repeats_scores,
        )
        self._raced = self._turns.racing  # who raced before the last drop

    # --- ask and tell ---

    def ask(self) -> int:
        """The arm to pull next. Asking again before telling gives the same arm."""
        if self._turns.due == OVER:
            raise TellError(f"asked for an arm, but the session is over: {self.reason}")
        return self._turns.due

    def ask_phase(self, batch: int = 1) -> dict[int, int]:
        """Pulls per arm that may be made in any order, or in parallel, before the next decision.

        For a policy with phases that is what is left of the phase; for one that decides after
        every pull it is one pull of up to `batch` arms. Empty when the session is over.
        """
        event = self.next_batch(batch)
        if event is not None and not event.more:
            self.apply(event)
        return self._turns.remaining()

    def top_up(self, batch: int) -> None:
        """Hand out more arms, up to `batch` at once, while pulls of others are still awaited.

        For policies that choose by rating alone; the others wait for all arms of a batch, as
        every policy does for the pulls of a phase.
        """
        event = self.next_batch(batch)
        if event is not None and event.more:
            self.apply(event)

    def next_batch(self, batch: int) -> BatchIssued | None:
        """The event that would bring the arms handed out at once to `batch`; None where none can.

        Only a policy that decides after every pull hands out arms; the pulls of a phase are free.
        """
        size, turns = batch_size(batch), self._turns
        size = min(size, turns.budget - turns.spent)
        if turns.due == OVER or not self._picks_one_by_one():
            return None
        if turns.batch:
            return BatchIssued(size, more=True) if turns.can_hand_out_more(size) else None
        return BatchIssued(size) if size > 1 else None

    def tell(self, arm: int | str, score: float) -> None:
        """Enter the score of a pull that was asked for (higher is better, unless minimized)."""
        turns = self._turns
        due = turns.due
        i = arm if arm is due and due >= 0 else self._index(arm)
        value = score if type(score) is float else as_number(score)
        if not -LARGEST <= value <= LARGEST:
            raise RewardError(
                f"reward={brief(score)} for arm {self.names[i]}, but a reward must be a finite "
                f"number of at most {LARGEST:g}: check what the pull returned"
            )
        if i != due and not turns.accepts(i):
            raise TellError(self._not_asked(i))
        self._told_arms.append(i)
        self._told_scores.append(value)
        self._enter(i, value if self.maximize else -value)
        if turns.known is not None:
            self._enter_known()

    def tell_many(self, arms: Sequence[int], scores: Sequence[float]) -> None:
        """Enter the scores of many pulls, as `tell` would one after the other, but faster.

        Where one is refused, those before it count.
        """
        start = 0
        while start < len(arms):
            end = min(len(arms), start + self._turns.pulls_before_decision())
            if end - start < MANY or not self._tell_at_once(arms[start:end], scores[start:end]):
                end = max(end, start + 1)
                for arm, score in zip(arms[start:end], scores[start:end], strict=True):
                    self.tell(arm, score)
            start = end

    def _tell_at_once(self, arms: Sequence[int], scores: Sequence[float]) -> bool:
        """Enter pulls that no decision follows, all or none; whether they are as they should."""
        sound = all(type(x) is float and -LARGEST <= x <= LARGEST for x in scores)
        if not sound or not self._turns.may_take_all(arms):
            return False
        self._told_arms.extend(arms)
        self._told_scores.extend(scores)
        rewards = scores if self.maximize else [-x for x in scores]
        self._turns.take_before_decision(arms, rewards)
        return True

    def _enter(self, i: int, reward: float) -> None:
        turns, cursor = self._turns, self._turns.ledger.cursor
        racing = cursor[RACERS]
        new_phase = turns.take(i, reward)
        if turns.ledger.cursor[RACERS] != racing:
            self._note_drops()
        if new_phase and turns.refits:
            turns.fit_phase()
            self._note_drops()

    def _enter_known(self) -> None:
        """Answer the plan with what was told before it was made."""
        while (found := self._turns.next_known()) is not None:
            for reward in found[1]:
                self._enter(found[0], reward)

    def apply(self, event: Event) -> None:
        """Let something happen: the only way in which a session changes.

        An event that makes no sense now raises an error and changes nothing. What concerns a race
        alone (`PullFailed`, `Saved`, ...) leaves a session as it is.
        """
        at = self.spent
        match event:
            case ScoreReported():
                self.tell(event.arm, event.score)
                return
            case BatchIssued():
                self._hand_out(event)
            case LearnerLeft():
                self._let_leave(event)
            case BudgetReplanned():
                self._replan(event)
            case Stopped():
                self._stop(event)
            case WinnerSelected():
                self._name_best(event)
            case Joined():
                self._let_join(event)
            case Extended():
                self._extend(event)
            case _:
                return
        self._others.append((at, event))

    # --- what besides a score changes it ---

    def _hand_out(self, event: BatchIssued) -> None:
        open_now, size = self._turns.due != OVER, batch_size(event.size)
        open_now = open_now and self._picks_one_by_one()
        more = bool(self._turns.batch)
        if not open_now or event.more is not more or size < len(self._turns.batch):
            raise TellError(f"{size} arms cannot be handed out now: {self.reason}")
        self._turns.hand_out(event)

    def _let_leave(self, event: LearnerLeft) -> None:
        i, turns = self._index(event.arm), self._turns
        if not isinstance(event.how, str) or event.how not in (FAILED, FINISHED):
            raise SettingError(f"how={brief(event.how)}, but an arm has {FAILED} or {FINISHED}")
        if i in turns.departed:
            raise TellError(f"{self.names[i]} has left already ({turns.departed[i]})")
        if event.how == FINISHED and not turns.pulls_of(i):
            raise TellError(f"{self.names[i]} has no score yet: without one it has failed")
        if self._naming is None and event.how == FAILED:
            self._raced = [j for j in self._raced if j != i]  # it is out, but not dropped
        turns.remove(i, event.how)
        self._note_drops()
        self._enter_known()

    def _replan(self, event: BudgetReplanned) -> None:
        budget, deciding = need_whole("budget", event.budget), need_whole("budget", event.deciding)
        if not (self.spent <= deciding <= budget or self._naming is not None):
            raise TellError(f"{event}, but {self.spent} pulls are spent already")
        turns, horizon = self._turns, self.horizon
        self.budget = budget
        if self._own_horizon is None:  # arms are compared at the budget, also when that moves
            horizon = max(budget, *turns.pulls, 1)
        if self._naming is not None:
            turns.horizon = horizon
            turns.train_winner(self._naming.arm, budget)
        else:
            turns.replan(deciding, horizon, self._told_rewards())
            self._note_drops()
            self._enter_known()

    def _stop(self, event: Stopped) -> None:
        if event.final:
            self._stopped = f"after {self.spent} of {self.budget} pulls: {event.why}"
        self._turns.halt()
        self.budget = self.spent

    def _name_best(self, event: WinnerSelected) -> None:
        naming = self.naming
        if self._index(event.arm) != naming.arm:
            raise TellError(
                f"arm {event.arm} was named the best, but {self.policy!r} names arm {naming.arm}"
            )
        budget = need_whole("budget", event.budget)
        require(budget >= self.spent, "budget", budget, f"at least {self.spent}", "spent already")
        self._naming, self.budget = naming, budget
        self._turns.train_winner(naming.arm, budget)

    def _let_join(self, event: Joined) -> None:
        names = (*self.names, *(waits.name for waits in self._joining))
        (name,) = arm_names([event.name])
        if name in names:
            raise TellError(f"{name!r} joins, but there is an arm of that name already")
        if event.arm != len(names) or isinstance(event.arm, bool):
            raise TellError(f"{name!r} joins as arm {event.arm}, but the next arm is {len(names)}")
        if self.decides_every_pull and not self.policy.picks_by_rating:
            raise TellError(
                f"{name!r} cannot join: {self.policy!r} gives arms their turns by an order that "
                "has no room for another; race anew with it"
            )
        self._joining = (*self._joining, event)

    def _extend(self, event: Extended) -> None:
        budget, deciding, horizon = self._checked_extension(event)
        names, turns = (*self.names, *(new.name for new in self._joining)), self._turns
        self.repeats_scores |= {new.arm for new in self._joining if new.repeats_scores}
        keeps_place = () if self.policy.decides_after_sweeps() else (FINISHED,)
        lost = {i for i, how in turns.departed.items() if how not in keeps_place}
        racing = [i for i in range(len(names)) if i not in lost]
        if not event.revive:
            out = turns.ledger.out
            racing = [i for i in racing if i >= len(out) or out[i] == 0]
        self._naming = self._stopped = None
        self.budget = self._asked = budget
        self._own_horizon, self._joining, self.names = horizon, (), names
        self._arm_of = {name: i for i, name in enumerate(names)}
        self._drops = {i: drop for i, drop in self._drops.items() if i not in racing}
        self._raced = racing
        turns.repeats_scores = self.repeats_scores
        turns.extend(len(names), deciding, horizon, racing, self._told_rewards())
        self._note_drops()
        self._enter_known()

    def _checked_extension(self, event: Extended) -> tuple[int, int, int]:
        budget, deciding = need_whole("budget", event.budget), need_whole("budget", event.deciding)
        horizon, most = need_whole("horizon", event.horizon), max(self.pulls)
        require(budget >= self.budget, "budget", budget, f"at least {self.budget}",
                "a session is extended, not cut")  # fmt: skip
        if not self.spent <= deciding <= budget:
            raise TellError(f"{event}, but {self.spent} pulls are spent already")
        require(horizon >= max(1, most), "horizon", horizon, f"at least {most}",
                "an arm has had so many pulls")  # fmt: skip
        arms = len(self.names) + len(self._joining)
        self.policy.plan(
            arms, deciding, horizon, self.min_pulls
        )  # raises where it cannot be played
        self.policy.settings(arms, deciding, horizon)
        return budget, deciding, horizon

    # --- what may be told ---

    def _index(self, arm: int | str) -> int:
        if isinstance(arm, str):
            if arm not in self._arm_of:
                raise ArmError(f"arm={arm!r}, but the arms are {listed(self.names)}")
            return self._arm_of[arm]
        try:
            i = -1 if isinstance(arm, bool | np.bool_) else operator.index(arm)
        except TypeError:
            raise ArmError(f"arm={arm!r}, but an arm is a number or a name") from None
        if not 0 <= i < len(self.names):
            raise ArmError(f"arm={arm!r}, but arms are numbered from 0 to {len(self.names) - 1}")
        return i

    def accepts(self, arm: int) -> bool:
        """Whether a score of this arm would be taken now."""
        due = self._turns.due
        return due == arm >= 0 or (due != OVER and self._turns.accepts(arm))

    def _picks_one_by_one(self) -> bool:
        return self._naming is None and self._turns.any_arm_may_be_next()

    def _not_asked(self, i: int) -> str:
        if self.over:
            return f"told arm {self.names[i]}, but the session is over: {self.reason}"
        return (
            f"told arm {self.names[i]}, but arm {self.names[self._turns.due]} was asked: tell "
            "what ask() or ask_phase() returned"
        )

    # --- what is known ---

    @property
    def over(self) -> bool:
        """Whether no arm is to be pulled any more."""
        return self._turns.due == OVER

    @property
    def reason(self) -> str:
        """Why the session is over, or how much of the budget is left."""
        left, of = self.budget - self.spent, f"of {self.budget} pulls"
        if self.delivery_pending:
            return f"the best is named; {left} {of} are left to train it on"
        if not self.over:
            aside = 0 if self._naming is not None else self.budget - self.deciding_budget
            return f"{left} {of} left" + (f", {aside} of them for the winner" if aside else "")
        if self._stopped is not None:
            return f"stopped {self._stopped}"
        if left == 0:
            return f"all {self.budget} pulls of the budget are spent"
        if self._naming is not None:
            name, gone = self.names[self._naming.arm], self._naming.arm in self._turns.departed
            why = "takes no more pulls" if gone else f"is at the horizon of {self.horizon} pulls"
            return f"{name} {why}; {left} {of} are not spent"
        if all(self.pulls_of(i) >= self.horizon for i in self._turns.racing):
            return (
                f"every arm that could be pulled is at the horizon of {self.horizon} pulls; "
                f"{left} {of} are not needed"
            )
        return f"the plan is complete; {left} {of} are not needed"

    @property
    def spent(self) -> int:
        """Scores told so far."""
        return self._turns.spent

    @property
    def horizon(self) -> int:
        """The number of pulls at which arms are compared."""
        return self._turns.horizon

    @property
    def deciding_budget(self) -> int:
        """Pulls that name the best; the rest of the budget is set aside to train it on."""
        return self._naming.budget if self._naming is not None else self._turns.budget

    @property
    def pulls(self) -> tuple[int, ...]:
        """Scores told so far, per arm."""
        return self._turns.pulls

    def pulls_of(self, arm: int) -> int:
        """Scores told of one arm: `pulls[arm]` without listing them all."""
        turns = self._turns
        return turns.ledger.n[arm] if turns.known is None else turns.pulls_of(arm)

    @property
    def history(self) -> list[tuple[int, float]]:
        """Every (arm, score) told, in order."""
        return list(zip(self._told_arms, self._told_scores, strict=True))

    def history_arrays(self) -> tuple[Any, Any]:
        """The arms and the scores told, in order, as two arrays."""
        return np.array(self._told_arms, np.int64), np.array(self._told_scores, np.float64)

    def scores(self, arm: int | str) -> list[float]:
        """The scores of one arm, in order."""
        i = self._index(arm)
        pairs = zip(self._told_arms, self._told_scores, strict=True)
        return [score for told, score in pairs if told == i]

    def rewards(self, arm: int | str) -> list[float]:
        """The same with the sign that makes higher better."""
        return [self._sign * score for score in self.scores(arm)]

    def _told_rewards(self) -> Iterator[tuple[int, float]]:
        pairs = zip(self._told_arms, self._told_scores, strict=True)
        return ((i, self._sign * score) for i, score in pairs)

    @property
    def racing(self) -> list[int]:
        """The arms that may still be recommended."""
        return self._turns.racing

    def is_racing(self, arm: int) -> bool:
        """Whether an arm may still be recommended."""
        return self._turns.ledger.out[arm] == 0

    @property
    def racing_count(self) -> int:
        """How many arms may still be recommended."""
        return self._turns.racing_count

    @property
    def trainable(self) -> list[int]:
        """The arms that may still be pulled."""
        return self._turns.trainable

    def departure(self, arm: int | str) -> str | None:
        """How an arm left: FAILED, FINISHED, or None for one that takes pulls."""
        return self._turns.departed.get(self._index(arm))

    @property
    def handed_out(self) -> tuple[int, ...]:
        """The arms that were handed out together and not told yet."""
        return tuple(self._turns.batch)

    @property
    def phase(self) -> tuple[int, int]:
        """The phase being played, from 1, and how many there are."""
        return self._turns.phase

    @property
    def levels_to_come(self) -> list[tuple[int, int]]:
        """(arms, pulls each) of this phase and of those after it, as the plan stands now."""
        return [] if self.over or self._naming is not None else self._turns.levels_to_come

    @property
    def decides_every_pull(self) -> bool:
        """Whether the policy decides after every pull rather than between phases."""
        return self._turns.decides_every_pull

    @property
    def is_even(self) -> bool:
        """Whether all arms that take pulls have had the same number, or need not have."""
        return self.decides_every_pull or len({*map(self.pulls_of, self.trainable)}) <= 1

    # --- the winner ---

    def recommend(self) -> Recommendation:
        """The arm to keep, by what is known now."""
        arm = self.best_arm
        return Recommendation(
            arm=arm,
            name=self.names[arm],
            estimates=tuple(self._estimate(i) for i in range(len(self.names))),
            pulls=self.pulls,
            spent=self.spent,
            budget=self.budget,
            over=self.over,
            reason=self.reason,
        )

    @property
    def best_arm(self) -> int:
        """The arm to keep, by what is known now: `recommend().arm` without the rest."""
        if self.spent == 0:
            raise NoScoresYet(
                "no reward was told yet, but a recommendation needs one: ask and tell"
            )
        return self._turns.best() if self._naming is None else self._naming.arm

    @property
    def winner(self) -> int | None:
        """The arm that was named the best and is trained on; None while the policy decides."""
        return None if self._naming is None else self._naming.arm

    @property
    def naming(self) -> WinnerSelection:
        """Who is named the best and what stood then; that is now, unless it is trained on."""
        if self._naming is not None:
            return self._naming
        arm, n = self.best_arm, self.pulls
        estimates = {i: self._estimate(i) for i in range(len(n)) if n[i]}
        budget, departed = self._turns.budget, dict(self._turns.departed)
        return WinnerSelection(arm, self.spent, n[arm], budget, estimates, departed)

    @property
    def extended(self) -> bool:
        """Whether it was given a larger budget than it began with, and planned anew."""
        return self._turns.known is not None

    @property
    def delivery_pending(self) -> bool:
        """Whether the policy is done and its winner is still to be named and trained on."""
        if not self.winner_share or self._naming is not None or not self.over:
            return False
        return self._stopped is None and any(self._turns.ledger.n[i] for i in self._turns.racing)

    def _estimate(self, i: int) -> float:
        if self._turns.ledger.n[i] == 0:
            return nan
        if self._naming is not None and i in self._naming.estimates:
            return self._naming.estimates[i]
        return self._sign * self._turns.estimate(i)

    def standings(self) -> list[Standing]:
        """All arms: the racing ones by their estimate, then the dropped ones, the last first."""
        rows = [self._standing(i) for i in range(len(self.names))]

        def place(row: Standing) -> tuple[float, float]:
            unknown = row.estimate != row.estimate
            return -(row.left_at or inf), inf if unknown else -self._sign * row.estimate

        return sorted(rows, key=place)

    def _standing(self, i: int) -> Standing:
        ledger = self._turns.ledger
        return Standing(
            arm=i,
            name=self.names[i],
            state=self._state(i),
            pulls=self.pulls_of(i),
            estimate=self._estimate(i),
            left_at=ledger.out[i] or None,
        )

    def _state(self, i: int) -> str:
        if self._turns.ledger.out[i]:
            return DROPPED
        return AT_HORIZON if self.pulls_of(i) >= self.horizon else RACING

    def certificate(
        self,
        noise: float | None = None,
        delta: float = DELTA,
        score_range: tuple[float, float] | None = None,
        method: str = LINES,
        budget: int | None = None,
        looks: int = 1,
    ) -> Certificate:
        """Intervals for every arm's mean at the horizon that hold together [Mussi24, Lemmas 1, 2].

        They hold with probability 1 - delta if the curves rise and are concave and the noise is
        sub-Gaussian with standard deviation `noise`; where that is None it is estimated. They are
        of rewards: with `maximize=False`, of scores times -1; its sentences speak of the scores
        themselves. `score_range` is what a score's mean
        cannot leave, such as (0, 1). `budget` is the most pulls that an arm could have had, by
        what was known before the first; if not given, that of the plan, or the horizon after an
        early end. Who looks again and again to end it says how often at most (`looks`).
        """
        arms, scores = self.history_arrays()
        order = np.argsort(arms, kind="stable")
        rewards = np.split(self._sign * scores[order], np.cumsum(self.pulls)[:-1])
        for i in self.repeats_scores:  # a repeated reward is no new measurement
            rewards[i] = rewards[i][:0]
        window = float(getattr(self.policy, "window", 0.25))
        # Extended, or ended by what was seen, it was perhaps looked at after any pull count.
        if budget is None and not self.extended and self._stopped is None:
            budget = self._turns.budget
        if score_range is not None and not self.maximize:
            score_range = -score_range[1], -score_range[0]
        found = certificate(
            rewards, noise, self.horizon, window, delta, budget, method=method,
            score_range=score_range, looks=looks,
        )  # fmt: skip
        lost = frozenset(i for i, how in self._turns.departed.items() if how == FAILED)
        return replace(found, maximize=self.maximize, lost=lost)

    # --- why ---

    def _note_drops(self) -> None:
        """Keep the numbers that decided, for every arm that has just been dropped."""
        turns = self._turns
        if turns.racing_count == len(self._raced):
            return
        ratings, racing = turns.ledger.rating, turns.racing
        # Ranks are cut above the lowest kept; a joint review may keep arms below one it drops.
        jointly = self.policy.decides_after_sweeps()
        rivals, chosen = (turns.trainable, max) if jointly else (racing, min)
        rival = chosen(rivals, key=lambda i: (ratings[i], -i))
        for i in self._raced:
            if turns.ledger.out[i]:
                if turns.known is not None:  # the plan's own count of pulls is not the session's
                    turns.ledger.out[i] = max(1, self.spent)
                mine, bar = self._sign * ratings[i], self._sign * ratings[rival]
                self._drops[i] = Drop(self.spent, mine, rival, bar, self._remark(i, mine))
        self._raced = racing

    def explain(self, arm: int | str) -> Explanation:
        """Why an arm was dropped or passed over: the numbers that decided, and when."""
        i = self._index(arm)
        drop = self._drops.get(i)
        if drop is not None:
            return self._explained(i, drop, "dropped")
        if self._turns.ledger.n[i] == 0:
            return self._explained(i, Drop(self._judged_at(), nan, i, nan), "not pulled yet")
        best = self.best_arm
        mine, bar = self._estimate(i), self._estimate(best)
        numbers = Drop(self._judged_at(), mine, best, bar, self._remark(i, mine))
        return self._explained(i, numbers, "recommended" if i == best else "passed over")

    def _remark(self, i: int, rating: float) -> str:
        if self.departure(i) is not None:  # nothing is forecast for it
            return ""
        return self.policy.remark(self._turns.ledger, i, self.names[i], rating, self._sign)

    def forecast(self, arm: int | str) -> Forecast | None:
        """What the policy expects of an arm that races, in scores; None where it does not."""
        i = self._index(arm)
        if not self.is_racing(i) or self.departure(i) is not None or self._naming is not None:
            return None
        seen = self.policy.forecast(self._turns.ledger, i)
        return None if seen is None else seen._replace(gain=self._sign * seen.gain)

    def _judged_at(self) -> int:
        return self.spent if self._naming is None else self._naming.at

    def _explained(self, i: int, judged: Drop, word: str) -> Explanation:
        n = self.pulls_of(i)
        if self._naming is not None and i == self._naming.arm:
            n = self._naming.pulls
        judged = replace(judged, at=min(judged.at, self._judged_at()))
        return explained(i, self.names, self._state(i), n, judged, word, self.budget)

    # --- the same again ---

    @property
    def events(self) -> list[Event]:
        """All that happened, in order."""
        found: list[Event] = []
        others = deque(self._others)
        for told, (arm, score) in enumerate(self.history):
            while others and others[0][0] == told:
                found.append(others.popleft()[1])
            found.append(ScoreReported(arm, score))
        return [*found, *(event for _, event in others)]

    def fresh(self) -> Session:
        """A session of the same settings to which nothing has happened yet."""
        budget, horizon, arms = self._given
        return Session(
            self.policy, list(self.names[:arms]), budget, horizon, self.seed,
            maximize=self.maximize, winner_share=self.winner_share, min_pulls=self.min_pulls,
            repeats_scores=[i for i in self.repeats_scores if i < arms],
        )  # fmt: skip

    def replay(self, history: Iterable[tuple[int | str, float]]) -> Session:
        """A new session of the same settings that is told `history`.

        What else happened to this one happens to it after the same pulls.
        """
        session, others = self.fresh(), deque(self._others)
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
        """The standings, in a notebook."""
        rows = [
            [row.name, self.departure(row.arm) or row.state, f"{row.pulls:,}",
             "" if isnan(row.estimate) else f"{row.estimate:.5g}",
             "" if row.left_at is None else f"{row.left_at:,}"]
            for row in self.standings()
        ]  # fmt: skip
        head = ["arm", "state", "pulls", "estimate", "out at pull"]
        return html_table(f"{self.policy!r}: {self.reason}", head, rows)

    def __repr__(self) -> str:
        return f"Session({self.policy!r}, {len(self.names)} arms, {self.reason})"
