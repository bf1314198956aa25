"""A session whose arms may leave it and whose budget may move, as happens with real learners.

It stays a pure function of its settings and of what it was told, in order: rewards (`tell`), arms
that take no more pulls (`retire`), new budgets (`replan`) and whose turn it is once the best is
named (`deliver`). A journal holds all four.
"""

from __future__ import annotations

from math import inf
from typing import Any

from latebloomer.core.ledger import (
    ANY,
    OVER,
    PHASE,
    RACERS,
    STALE,
    SWEEP_PLACE,
    SWEEPS,
    close_ranks,
    fresh_leader,
)
from latebloomer.core.moves import game_of, lists_for, rows_in_use
from latebloomer.core.random import key
from latebloomer.policies.base import Policy
from latebloomer.session.delivery import with_kept
from latebloomer.session.finale import Finale
from latebloomer.session.replanning import Place, largest_that_fits, phase_of

FAILED, FINISHED = "failed", "finished"


class Field(Finale):
    """A `Session` with `retire`, `replan` and `deliver`. It may move to the engine.

    >>> field = Field("r-sr", ["a", "b", "c"], 30)
    >>> for arm in "abc":
    ...     field.tell(arm, 0.5)
    >>> field.retire("a", FAILED)
    >>> while not field.over:
    ...     field.tell(field.ask(), 0.5)
    >>> field.pulls, field.spent
    ((1, 15, 14), 30)
    """

    def __init__(
        self,
        policy: Policy | str,
        arms: int | list[str],
        budget: int,
        horizon: int | None = None,
        seed: int = 0,
        deliver: float = 0.0,
    ) -> None:
        self._left: dict[int, str] = {}  # arms that take no more pulls: FAILED or FINISHED
        self._last_words: dict[int, float] = {}  # estimates of the failed ones
        self._follows = horizon is None  # the horizon is the budget, also when that moves
        super().__init__(policy, arms, budget, horizon, seed, deliver)
        self._effective = self.budget  # whose plan is played
        self._open = ANY in self._game.plan.keep

    def _bind(self) -> None:
        super()._bind()
        self._step = self._advance
        if self._left and self._naming is None:
            self._look_past_the_left()

    def _look_past_the_left(self) -> None:
        self._advance, self._recommend = self._advance_past_the_left, self._best_of_crew

    # --- what a session cannot do ---

    def retire(self, arm: int | str, kind: str = FAILED) -> None:
        """Let an arm take no more pulls; what it would have had goes to the others.

        A FAILED arm is out. A FINISHED one keeps its place by the rewards it has shown, except
        where the policy judges all arms at equal pulls after every sweep (`policy.reviews`).
        """
        i = self._index(arm)
        self._left[i] = kind
        if self._naming is not None:  # who is named stays named, as trained as it is
            self._go_on(self.budget)
            return
        self._look_past_the_left()
        if kind == FAILED or self.policy.decides_after_sweeps():
            if self._ledger.n[i]:
                self._last_words[i] = self._estimate(i)
            self._ledger.out[i] = max(1, self.spent)
            close_ranks(self._ledger)
            self._crew = self._ledger.racing[: self._ledger.cursor[RACERS]]
        self._stand_in(self._growing, i)
        if i in self._batch:
            self._batch.remove(i)
        self._move_on()

    def replan(self, budget: int) -> None:
        """Go on with another budget (in all); the phases to come are fitted to what is left."""
        before = self.horizon
        self.budget = budget
        self.whole = with_kept(budget, self._share) if self._naming is None else budget
        if self._follows:
            self.horizon = max(self.whole, *self._ledger.n, 1)
        if self._naming is not None:
            self._go_on(budget)
            return
        self._game = self._made()
        if self._open and before != self.horizon and self._remembers():
            self._score_anew()
        self._move_on()

    def stop(self) -> None:
        """End now (what is kept for the winner is still to come): the budget is what was spent."""
        self.budget = self.whole = self.spent
        self._game = self._game._replace(budget=self.budget)
        self._batch, self._due = [], OVER

    def tell(self, arm: int | str, reward: float) -> None:
        """Enter the reward of a pull; where arms have left, each new phase is fitted again."""
        phase = self._ledger.cursor[PHASE]
        super().tell(arm, reward)
        new = self._ledger.cursor[PHASE] != phase
        if new and self._left and not (self._open or self.over):
            self._move_on()

    def _absent(self) -> list[int]:
        return list(self._left)

    def left(self, arm: int | str) -> str | None:
        """FAILED, FINISHED, or None for an arm that takes pulls."""
        return self._left.get(self._index(arm))

    @property
    def any_left(self) -> bool:
        """Whether an arm has failed or finished."""
        return bool(self._left)

    def takes(self, arm: int) -> bool:
        """Whether a reward of this arm would be taken now."""
        return not self.over and (arm == self._due or self._may_tell(arm))

    @property
    def racing(self) -> list[int]:
        """The arms that may still be recommended."""
        return list(self._ledger.racing[: self._ledger.cursor[RACERS]])

    @property
    def racing_count(self) -> int:
        return int(self._ledger.cursor[RACERS])

    @property
    def movers(self) -> list[int]:
        """The racing arms that take pulls."""
        if self._naming is not None:
            return [self._naming.arm] if self._naming.arm not in self._left else []
        return [i for i in self.racing if i not in self._left]

    @property
    def phase(self) -> tuple[int, int]:
        """The phase being played, from 1, and how many there are."""
        phases = len(self._game.plan.keep)
        return min(int(self._ledger.cursor[PHASE]) + 1, phases), phases

    @property
    def opens(self) -> bool:
        """Whether the policy decides after every pull rather than between phases."""
        return self._open

    @property
    def level(self) -> bool:
        """Whether a new plan would be fair now: all movers have had the same number of pulls."""
        return self._open or len({self._ledger.n[i] for i in self.movers}) <= 1

    # --- how ---

    def _who_left(self) -> dict[int, str]:
        return dict(self._left)

    def _go_on(self, budget: int) -> None:
        super()._go_on(budget)
        self._game = self._made()

    def _move_on(self) -> None:
        """Fit the plan to what is left, then find whose turn it is."""
        ledger = self._ledger
        cursor, size = ledger.cursor, ledger.cursor[RACERS]
        self._refit()
        if not self._open and size:
            cursor[PHASE] = phase_of(self._game.plan, size)
        cursor[SWEEP_PLACE], cursor[STALE], self._quota_memo = 0, 1, None
        if not self._batch:
            self._due = self._advance(self._game, ledger, ANY, 0) if size else OVER
        else:
            self._due = self._batch[0]
        if cursor[RACERS] != size:
            self._note_drops()

    def _refit(self) -> None:
        """Play the plan of the largest budget whose phases to come can be paid."""
        self._effective = self.budget
        if not self._open and not self.policy.decides_after_sweeps():
            ledger, movers = self._ledger, self.movers
            level = ledger.cursor[SWEEPS]
            ahead = sum(ledger.n[i] - level for i in movers)
            place = Place(self.racing_count, len(movers), level, self.budget - self.spent + ahead)
            self._effective = largest_that_fits(
                self.policy, len(self.names), self.horizon, self.budget, place
            )
        self._game = self._made()

    def _made(self) -> Any:
        """The game of the settings, the budget and the plan that are in force."""
        arms, least = len(self.names), self.policy.smallest_budget(len(self.names))[0]
        planned, whole = (
            game_of(self.policy, arms, max(budget, least), self.horizon, key(self.seed))
            for budget in (self._effective, self.budget)
        )
        return planned._replace(rule=whole.rule, budget=self.budget)

    def _score_anew(self) -> None:
        """Ratings that look to the horizon are made again when it has moved."""
        old, new = self._ledger, lists_for(len(self.names))
        growing = rows_in_use(self.policy, new)
        for i, reward in zip(self._told_arms, self._told_rewards, strict=True):
            for rows in growing:
                rows[i].append(0.0)
            self._observe(self._game, new, i, reward)
        for i in self._left:
            self._stand_in(growing, i)
        self._ledger = new._replace(racing=old.racing, out=old.out, cursor=old.cursor)
        self._growing = rows_in_use(self.policy, self._ledger)

    def _stand_in(self, growing: Any, i: int) -> None:
        """Give an arm that left before its first pull a reward of 0: rules divide by n."""
        if self._ledger.n[i] == 0:
            for rows in growing:
                rows[i].append(0.0)

    def _advance_past_the_left(self, game: Any, ledger: Any, pulled: int, run: int) -> int:
        """Whose turn it is, never that of an arm that has left."""
        if self._open and self._remembers():
            return self._advance_open(game, ledger, pulled, run)
        # A rule that reads no history here: arms that have left look as if at the horizon.
        true = {i: ledger.n[i] for i in self._left}
        for i in true:
            ledger.n[i] = max(game.horizon, *ledger.n)
        due = self._step(game, ledger, pulled, run)
        for i, n in true.items():
            ledger.n[i] = n
        return int(due)

    def _advance_open(self, game: Any, ledger: Any, pulled: int, run: int) -> int:
        """For rules that rating every arm by its history: arms that have left lose by rating."""
        cursor, crew, movers = ledger.cursor, list(ledger.racing), self.movers
        ledger.racing[: len(movers)], cursor[RACERS] = movers, len(movers)
        unpulled = [i for i in self._left if ledger.n[i] == 0]
        for i in unpulled:  # see `_stand_in`
            ledger.n[i] = 1
        due = self._step(game, ledger, pulled, run)
        if due in self._left:
            for i in self._left:
                ledger.rating[i] = -inf
            due = fresh_leader(ledger, game.horizon)
            due = due if ledger.rating[due] > -inf else OVER
        for i in unpulled:
            ledger.n[i] = 0
        ledger.racing[:], cursor[RACERS] = crew, len(self._crew)
        return int(due)

    def _remembers(self) -> bool:
        return bool(rows_in_use(self.policy, self._ledger))

    def _best_of_crew(self, game: Any, ledger: Any) -> int:
        pulled = [i for i in self.racing if ledger.n[i]]
        return max(pulled, key=lambda i: (self._estimate(i), -i)) if pulled else OVER

    def _estimate(self, i: int) -> float:
        if self._naming is not None:
            return super()._estimate(i)
        if i in self._last_words:
            return self._last_words[i]
        if self._open and self._left.get(i) == FINISHED:
            return float(self._ledger.last[i])  # no projection: it will not be trained on
        return super()._estimate(i)

    # --- phases without the arms that have left ---

    def _left_of_phase(self) -> dict[int, int]:
        upto, more = self._quota()
        n = self._ledger.n
        wanted = {i: upto + (place < more) - n[i] for place, i in enumerate(self.movers)}
        return {i: pulls for i, pulls in wanted.items() if pulls > 0}

    def _shared_out(self, base: int, upto: int) -> tuple[int, int]:
        movers = self.movers
        if not movers:
            return upto, 0
        made = sum(self._ledger.n[i] - base for i in movers)
        each, more = divmod(made + self.budget - self.spent, len(movers))
        return (upto, 0) if base + each >= upto else (base + each, more)

    def _may_tell(self, i: int) -> bool:
        if not self._left or self._naming is not None:
            return super()._may_tell(i)
        if i in self._left or self._due == OVER:
            return False
        if self._phase_keep() == ANY:
            return i in self._batch
        return i in self._left_of_phase()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_step"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._places = {name: i for i, name in enumerate(self.names)}
        self._game = self._made()
        self._bind()
