"""Whose turn it is: a policy's moves played on the arms' histories, arms that have left included.

Plain bookkeeping for `Session`, which checks what it is given and keeps the reasons. Arms leave,
clocks run slow: then the plan that a run began with no longer spends what is there, and the phases
to come are fitted to it (`replanning`). After an extension the plan of the larger budget is played
from its beginning, on the rewards that are known (`known_rewards`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from latebloomer.core.ledger import (
    ANY,
    OVER,
    PHASE,
    PHASE_START,
    PULLS,
    RACERS,
    STALE,
    SWEEP_PLACE,
    SWEEPS,
    Ledger,
    close_ranks,
    fresh_leader,
)
from latebloomer.core.moves import (
    game_of,
    grown,
    lists_for,
    plain_intake,
    plain_moves,
    rows_in_use,
)
from latebloomer.core.moves import key
from latebloomer.policies.base import Policy
from latebloomer.session.events import FAILED, FINISHED, BatchIssued
from latebloomer.session.known_rewards import KnownRewards, share_out
from latebloomer.session.replanning import Position, largest_that_fits, phase_of

# What a pickle leaves out: kernels, and what follows from the rest.
DERIVED = ("_observe", "_advance", "_recommend", "_final_rating", "_game", "_growing", "_quota")


class Turns:
    """The ledger of a run, its plan, and the arm that is due."""

    def __init__(
        self,
        policy: Policy,
        arms: int,
        budget: int,
        horizon: int,
        seed: int,
        min_pulls: int = 1,
        repeats_scores: Iterable[int] = (),
    ) -> None:
        self.policy, self.arms, self.seed, self.min_pulls = policy, arms, seed, min_pulls
        self.budget, self.horizon = budget, horizon
        self.repeats_scores = frozenset(
            repeats_scores
        )  # arms that repeat rewards between their steps
        self.ledger = self._empty_ledger()
        self.batch: list[int] = []  # arms handed out together and not told yet
        self.departed: dict[int, str] = {}  # arms that take no more pulls: FAILED or FINISHED
        self.aside: list[int] = []  # FINISHED ones that sweeps leave out; they may still win
        self.winner: int | None = None  # the arm that is trained on, once the best is named
        self.known: KnownRewards | None = None  # once the session was extended
        self._last_estimates: dict[int, float] = {}  # of arms that failed
        self._planned_budget = budget  # the budget whose plan is played
        self._game: Any = game_of(policy, arms, budget, horizon, key(seed), min_pulls)
        # Whether the policy decides after every pull rather than between phases.
        self.decides_every_pull = ANY in self._game.plan.keep
        self._bind()
        self.due: int = self._advance(self._game, self.ledger, ANY, 0)

    def _empty_ledger(self) -> Ledger:
        return self._flagged(lists_for(self.arms))

    def _flagged(self, ledger: Ledger) -> Ledger:
        """With the arms marked that repeat rewards between their steps."""
        for i in self.repeats_scores:
            ledger.repeats_scores[i] = 1
        return ledger

    def _bind(self) -> None:
        moves = plain_moves(type(self.policy))
        self._observe, self._advance, self._recommend, self._final_rating = moves
        self._growing = rows_in_use(self.policy, self.ledger)
        self._quota: tuple[tuple[int, int, int], tuple[int, int, int]] | None = None

    # --- what is known ---

    @property
    def spent(self) -> int:
        """Rewards told, whether or not the plan in force has come to them."""
        return int(self.ledger.cursor[PULLS]) + (self.known.total if self.known else 0)

    def pulls_of(self, i: int) -> int:
        """Rewards told of one arm."""
        return int(self.ledger.n[i]) + (self.known.count(i) if self.known else 0)

    @property
    def pulls(self) -> tuple[int, ...]:
        """Rewards told, per arm."""
        n = self.ledger.n
        return tuple(n) if self.known is None else tuple(map(self.pulls_of, range(len(n))))

    @property
    def racing_count(self) -> int:
        return int(self.ledger.cursor[RACERS]) + len(self.aside)

    @property
    def racing(self) -> list[int]:
        """The arms that may still be recommended."""
        racing = list(self.ledger.racing[: self.ledger.cursor[RACERS]])
        return sorted([*racing, *self.aside]) if self.aside else racing

    @property
    def trainable(self) -> list[int]:
        """The racing arms that take pulls."""
        racing = self.racing if self.winner is None else [self.winner]
        return [i for i in racing if i not in self.departed] if self.departed else racing

    @property
    def phase(self) -> tuple[int, int]:
        """The phase being played, from 1, and how many there are."""
        phases = len(self._game.plan.keep)
        return min(int(self.ledger.cursor[PHASE]) + 1, phases), phases

    @property
    def levels_to_come(self) -> list[tuple[int, int]]:
        """(arms, pulls each) of this phase and those after it; none where any arm may be next."""
        plan, phase = self._game.plan, int(self.ledger.cursor[PHASE])
        levels = zip(plan.keep[phase:], plan.upto[phase:], strict=True)
        if self.decides_every_pull:
            return []
        return [(int(k), int(n)) for k, n in levels if k > 1 or n > plan.upto[-2:][0]]

    def estimate(self, i: int) -> float:
        """What the recommendation goes by; for an arm that is out what it was dropped on."""
        if i in self._last_estimates:
            return self._last_estimates[i]
        finished = self.departed.get(i) == FINISHED
        if i in self.aside or (finished and self.decides_every_pull):
            return float(self.ledger.last[i])  # no projection: it will not be trained on
        if self.ledger.out[i]:
            return float(self.ledger.rating[i])
        rule = self._game.rule
        return float(self._final_rating(rule, self.ledger, i, self.budget, self.horizon))

    def best(self) -> int:
        """The racing arm to recommend; OVER where none has been pulled."""
        if not self.departed:
            return int(self._recommend(self._game, self.ledger))
        pulled = [i for i in self.racing if self.ledger.n[i]]
        return max(pulled, key=lambda i: (self.estimate(i), -i)) if pulled else OVER

    # --- a reward comes in ---

    def take(self, i: int, reward: float) -> bool:
        """Enter a reward of arm `i` and find whose turn is next; whether a new phase began."""
        ledger, game = self.ledger, self._game
        if self.winner is not None and self.known is not None and self.known.count(i):
            self.known.add(i, reward)  # nothing rests on what the winner shows
            self.due = self._next_after_changes(i)
            return False
        phase, racing = ledger.cursor[PHASE], ledger.cursor[RACERS]
        self._enter(i, reward)
        if self.batch:
            self.due = self._next_of_batch(i)
        elif self.departed or self.winner is not None or self.known is not None:
            self.due = self._next_after_changes(i)
            if ledger.cursor[RACERS] != racing:
                self._game = self._game._replace(budget=self._budget_of_plan())
        else:
            self.due = self._advance(game, ledger, i, 0)
        return bool(ledger.cursor[PHASE] != phase)

    def _enter(self, i: int, reward: float) -> None:
        for rows in self._growing:
            rows[i].append(0.0)
        self._observe(self._game, self.ledger, i, reward)

    def pulls_before_decision(self) -> int:
        """Pulls after which nothing can be decided: all but the last of a phase.

        None where any pull may decide something, or the plan was fitted to changes.
        """
        changed = self.batch or self.refits or self.winner is not None
        if self.due == OVER or changed or self.policy.decides_after_sweeps():
            return 0
        return 0 if self.any_arm_may_be_next() else self._phase_end() - self.spent - 1

    def take_before_decision(self, arms: Sequence[int], rewards: Sequence[float]) -> None:
        """Enter rewards that no decision follows: whose turn it is then is found once."""
        rule, ledger, horizon = self._game.rule, self.ledger, self._game.horizon
        # A rating that is a pure function of an arm's history is needed of its newest pull alone.
        rates_later = type(self.policy).update_rating is Policy.update_rating
        unrated, update_rating = plain_intake(type(self.policy))
        observe = unrated if rates_later else self._observe
        for i, reward in zip(arms, rewards, strict=True):
            for rows in self._growing:
                rows[i].append(0.0)
            observe(self._game, ledger, i, reward)
        for i in set(arms) if rates_later else ():
            update_rating(rule, ledger, i, horizon)
        self.due = self._advance(self._game, ledger, arms[-1], 0)

    def _next_of_batch(self, told: int) -> int:
        self.batch.remove(told)
        self.ledger.cursor[STALE] = 1
        return self.batch[0] if self.batch else self._next_after_changes(told)

    def _next_after_changes(self, pulled: int) -> int:
        """Whose turn it is where arms may have left or a winner is trained on."""
        if self.winner is not None:
            return self.winner if self.pulls_for_winner() else OVER
        if self.departed:
            due = self._next_without_departed(pulled)
        else:
            due = int(self._advance(self._game, self.ledger, pulled, 0))
        return OVER if due != OVER and not self._can_pay(due) else due

    def _can_pay(self, i: int) -> bool:
        """Whether an arm's next reward is known or can be asked for."""
        known = self.known
        return known is None or known.count(i) > 0 or self.spent < self.budget

    @property
    def refits(self) -> bool:
        """Whether each new phase is fitted to what is left: arms have left, or came back."""
        return bool(self.departed) or self.known is not None

    def fit_phase(self) -> None:
        """Fit a new phase to what is left, where the plan may not."""
        if self.refits and not self.decides_every_pull and self.due != OVER:
            self._go_on()

    def next_known(self) -> tuple[int, list[float]] | None:
        """Rewards that the plan asks for and that are known, of one arm; None where none are."""
        known = self.known
        if known is None or not known.total or self.due == OVER or self.winner is not None:
            return None
        if known.count(self.due):
            return self.due, known.take(self.due, 1)
        found = next(((i, k) for i, k in self.remaining().items() if known.count(i)), None)
        return None if found is None else (found[0], known.take(*found))

    # --- what may be told ---

    def accepts(self, i: int) -> bool:
        """Whether a reward of an arm that is not due would be taken now."""
        if self.due == OVER or self.winner is not None or i in self.departed:
            return False
        if self.any_arm_may_be_next():
            return i in self.batch
        if self.refits:
            return i in self.remaining()
        ledger, (upto, more) = self.ledger, self._shares()
        place = bisect_left(ledger.racing, i, 0, ledger.cursor[RACERS])
        return ledger.out[i] == 0 and ledger.n[i] < upto + (place < more)

    def may_take_all(self, arms: Sequence[int]) -> bool:
        """Whether so many rewards of these arms would be taken before the next decision."""
        if set(map(type, arms)) != {int}:  # True counts as 1 below
            return False
        ledger, (upto, more) = self.ledger, self._shares()
        for i, count in Counter(arms).items():
            if not 0 <= i < self.arms or ledger.out[i]:
                return False
            place = bisect_left(ledger.racing, i, 0, ledger.cursor[RACERS])
            if ledger.n[i] + count > upto + (place < more):
                return False
        return True

    def remaining(self) -> dict[int, int]:
        """Pulls per arm that may be made in any order before the next decision."""
        if self.due == OVER:
            return {}
        if self.winner is not None:
            return {self.winner: self.pulls_for_winner()}
        if self.any_arm_may_be_next():
            return dict.fromkeys(self.batch or [self.due], 1)
        if self.known is not None:
            return self._uneven_shares()
        n, (upto, more) = self.ledger.n, self._shares()
        wanted = {i: upto + (place < more) - n[i] for place, i in enumerate(self.trainable)}
        return {i: pulls for i, pulls in wanted.items() if pulls > 0}

    def any_arm_may_be_next(self) -> bool:
        """Whether every arm competes for every pull in this phase."""
        return int(self._game.plan.keep[self.ledger.cursor[PHASE]]) == ANY

    def _uneven_shares(self) -> dict[int, int]:
        """Pulls per arm before the next decision, those that are known among them."""
        cursor, n, trainable = self.ledger.cursor, self.ledger.n, self.trainable
        upto = self._game.plan.upto[cursor[PHASE]]
        if cursor[RACERS] > 1 and self.policy.decides_after_sweeps():
            upto = cursor[SWEEPS] + 1
        had = [min(upto, self.pulls_of(i)) for i in trainable]
        targets = share_out(had, upto, self.budget - self.spent) if had else []
        pairs = zip(trainable, targets, strict=True)
        return {i: target - n[i] for i, target in pairs if target > n[i]}

    def _shares(self) -> tuple[int, int]:
        """The pulls each racing arm comes to before the next decision; how many get one more.

        Where the budget ends within a sweep, the first of the racing arms get the last pulls.
        Between two decisions it stays the same, so it is kept: a tell out of order is not O(K).
        """
        upto, more, _ = self._quota_of_phase()
        return upto, more

    def _phase_end(self) -> int:
        """The rewards told in all when the next decision falls."""
        return self._quota_of_phase()[2]

    def _quota_of_phase(self) -> tuple[int, int, int]:
        cursor = self.ledger.cursor
        # With one arm left there is nothing to decide after a sweep.
        sweep = cursor[RACERS] > 1 and self.policy.decides_after_sweeps()
        base = cursor[SWEEPS] if sweep else cursor[PHASE_START]
        moment = (cursor[PHASE], cursor[RACERS], base)
        if self._quota is None or self._quota[0] != moment:
            upto = base + 1 if sweep else self._game.plan.upto[cursor[PHASE]]
            self._quota = moment, self._shared_out(base, upto)
        return self._quota[1]

    def _shared_out(self, base: int, upto: int) -> tuple[int, int, int]:
        trainable, spent = self.trainable, self.spent
        if not trainable:
            return upto, 0, spent
        made = sum(self.ledger.n[i] - base for i in trainable)
        each, more = divmod(made + self.budget - spent, len(trainable))
        if base + each >= upto:
            each, more = upto - base, 0
        return base + each, more, spent + each * len(trainable) + more - made

    # --- several arms at once ---

    def hand_out(self, handed: BatchIssued) -> None:
        """Choose the arms that are pulled at once, those that are out already among them."""
        if handed.more:
            self.ledger.cursor[STALE] = 1
            self._next_after_changes(ANY)  # the ratings of now
        held, absent = (self.batch if handed.more else [self.due]), list(self.departed)
        picked = self.policy.pick_batch(
            self._game.rule,
            self.ledger,
            [*held, *absent],
            handed.size + len(absent),
            self._game,
        )
        self.batch = [i for i in picked if i not in absent]

    def can_hand_out_more(self, size: int) -> bool:
        """Whether other arms can be chosen while some of a batch are still out."""
        if not self.policy.picks_by_rating or not 0 < len(self.batch) < size:
            return False
        out = {*self.batch, *self.departed}
        return any(n < self.horizon and i not in out for i, n in enumerate(self.ledger.n))

    # --- changes ---

    def remove(self, i: int, how: str) -> None:
        """Let an arm take no more pulls.

        A FAILED arm is out. A FINISHED one keeps its place by the rewards it has shown; where the
        policy judges all arms at equal pulls after every sweep, it stands aside until the end.
        """
        if self.winner is not None:  # who is named stays named, as trained as it is
            self.departed[i] = how
            self.train_winner(self.winner, self.budget)
            return
        self._enter_known(i)
        estimate = self.estimate(i) if self.ledger.n[i] else None
        self.departed[i] = how
        if how == FAILED:
            if estimate is not None:
                self._last_estimates[i] = estimate
            self.ledger.out[i] = max(1, self.spent)
            close_ranks(self.ledger)
        elif self.policy.decides_after_sweeps() and not self.ledger.out[i]:
            self._stand_aside(i)
        self._stand_in(self._growing, i)
        if i in self.batch:
            self.batch.remove(i)
        self._go_on()

    def _stand_aside(self, i: int) -> None:
        """Take an arm from the sweeps without dropping it."""
        self.aside.append(i)
        self.ledger.out[i] = 1
        close_ranks(self.ledger)
        self.ledger.out[i] = 0

    def replan(self, budget: int, horizon: int, told: Iterable[tuple[int, float]]) -> None:
        """Go on with another budget; ratings that look to a horizon that moved are made again."""
        moved = horizon != self.horizon
        self.budget, self.horizon = budget, horizon
        self._game = self._game_in_force()
        if moved and self.decides_every_pull and self._remembers():
            self._rate_anew(told)
        self._go_on()

    def extend(
        self,
        arms: int,
        budget: int,
        horizon: int,
        racing: Iterable[int],
        told: Iterable[tuple[int, float]],
    ) -> None:
        """Play the plan of a larger budget, of more arms perhaps, from its beginning.

        `racing` may still be recommended. Where every arm competes for every pull there is no
        level at which one would come back: nobody was dropped, and newcomers have their turn.
        """
        history, moved = list(told), horizon != self.horizon or arms != self.arms
        self.arms, self.budget, self.horizon = arms, budget, horizon
        self._planned_budget, self.winner, self.batch = budget, None, []
        again = () if self.decides_every_pull else history
        self.known = KnownRewards.from_told(arms, again)
        self._game = self._game_in_force()
        if self.decides_every_pull:
            if len(self.ledger.n) < arms:  # newcomers begin with the first phase
                self.ledger = self._flagged(grown(self.ledger, arms))
                self._growing = rows_in_use(self.policy, self.ledger)
            if moved and self._remembers():
                self._rate_anew(history)
        else:
            self._begin_again(set(racing))
        self._go_on()

    def _begin_again(self, racing: set[int]) -> None:
        """Empty the ledger; who takes no pulls enters at once with all that it has shown."""
        old, new = self.ledger, self._empty_ledger()
        self.ledger, self._growing = new, rows_in_use(self.policy, new)
        for i in range(self.arms):
            if i in racing and i not in self.departed:
                continue
            self._enter_known(i)
            self._stand_in(self._growing, i)
            new.rating[i], new.memo[i] = old.rating[i], old.memo[i]
            new.out[i] = 0 if i in racing else max(1, old.out[i])
        close_ranks(new)

    def _enter_known(self, i: int) -> None:
        """Enter all that is known of an arm, out of turn."""
        if self.known is not None:
            for reward in self.known.take(i, self.known.count(i)):
                self._enter(i, reward)

    def _budget_of_plan(self) -> int:
        """The budget less what was spent on arms beyond what the plan in force has for them."""
        if self.known is None or not self.known.total:
            return self.budget
        out = enumerate(self.ledger.out)
        return self.budget - sum(self.known.count(i) for i, since in out if since)

    def halt(self) -> None:
        """No arm is due any more; the budget is what was spent."""
        self.budget = self.spent
        self._game = self._game._replace(budget=self._budget_of_plan())
        self.batch, self.due = [], OVER

    def train_winner(self, i: int, budget: int) -> None:
        """Train one arm and no other, up to `budget` pulls of all arms together."""
        self.winner, self.budget, self.batch = i, budget, []
        self.due = i if self.pulls_for_winner() else OVER
        self._game = self._game_in_force()

    def pulls_for_winner(self) -> int:
        """Pulls that the winner may still have."""
        if self.winner is None or self.winner in self.departed:
            return 0
        room = min(self.budget - self.spent, self.horizon - self.pulls_of(self.winner))
        return max(0, int(room))

    def _go_on(self) -> None:
        """Fit the plan to what is left, then find whose turn it is."""
        ledger = self.ledger
        cursor, size = ledger.cursor, ledger.cursor[RACERS]
        self._fit_plan()
        if not self.decides_every_pull and size:
            cursor[PHASE] = phase_of(self._game.plan, size)
        cursor[SWEEP_PLACE], cursor[STALE], self._quota = 0, 1, None
        if self.batch:
            self.due = self.batch[0]
        else:
            self.due = self._next_after_changes(ANY) if size else OVER

    def _fit_plan(self) -> None:
        """Play the plan of the largest budget whose phases to come can be paid."""
        self._planned_budget = self.budget
        if not self.decides_every_pull and not self.policy.decides_after_sweeps():
            self._planned_budget = largest_that_fits(
                self.policy, self.arms, self.horizon, self.budget, self._position(), self.min_pulls
            )
            if self.known is not None and not self.departed:
                # Where nothing was spent beyond it, the plan of the larger budget as it is.
                self._planned_budget = min(self._planned_budget, self.budget)
        self._game = self._game_in_force()

    def _position(self) -> Position:
        ledger, trainable, left = self.ledger, self.trainable, self.budget - self.spent
        level = ledger.cursor[SWEEPS]
        if self.known is not None:
            had = tuple(sorted(map(self.pulls_of, trainable), reverse=True))
            return Position(self.racing_count, len(trainable), level, left, had)
        ahead = sum(ledger.n[i] - level for i in trainable)
        return Position(self.racing_count, len(trainable), level, left + ahead)

    def _game_in_force(self) -> Any:
        """The constants of the moves, by the budget and the plan that are in force."""
        least = self.policy.budget_needed(self.arms, self.horizon, self.min_pulls)
        size, luck = (self.arms, self.horizon), key(self.seed)
        planned, whole = (
            game_of(self.policy, size[0], max(budget, least), size[1], luck, self.min_pulls)
            for budget in (self._planned_budget, self.budget)
        )
        return planned._replace(rule=whole.rule, budget=self._budget_of_plan())

    def _rate_anew(self, told: Iterable[tuple[int, float]]) -> None:
        old, new = self.ledger, self._empty_ledger()
        growing = rows_in_use(self.policy, new)
        for i, reward in told:
            for rows in growing:
                rows[i].append(0.0)
            self._observe(self._game, new, i, reward)
        for i in self.departed:
            self._stand_in(growing, i)
        self.ledger = new._replace(racing=old.racing, out=old.out, cursor=old.cursor)
        self._growing = rows_in_use(self.policy, self.ledger)

    def _stand_in(self, growing: Any, i: int) -> None:
        """Give an arm that left before its first pull a reward of 0: rules divide by n."""
        if self.ledger.n[i] == 0:
            for rows in growing:
                rows[i].append(0.0)

    # --- arms that have left have no turn ---

    def _next_without_departed(self, pulled: int) -> int:
        if self.decides_every_pull and self._remembers():
            return self._next_by_rating(pulled)
        # A rule that reads no history here: arms that have left look as if at the horizon.
        ledger = self.ledger
        true = {i: ledger.n[i] for i in self.departed}
        for i in true:
            ledger.n[i] = max(self._game.horizon, *ledger.n)
        due = self._advance(self._game, ledger, pulled, 0)
        for i, n in true.items():
            ledger.n[i] = n
        return int(due)

    def _next_by_rating(self, pulled: int) -> int:
        """For rules that rate every arm by its history: arms that have left lose by rating."""
        ledger, game = self.ledger, self._game
        cursor, crew, trainable = ledger.cursor, list(ledger.racing), self.trainable
        size = cursor[RACERS]
        ledger.racing[: len(trainable)], cursor[RACERS] = trainable, len(trainable)
        unpulled = [i for i in self.departed if ledger.n[i] == 0]
        for i in unpulled:  # see `_stand_in`
            ledger.n[i] = 1
        due = self._advance(game, ledger, pulled, 0)
        if due in self.departed:
            for i in self.departed:
                ledger.rating[i] = -inf
            due = fresh_leader(ledger, game.horizon)
        for i in unpulled:
            ledger.n[i] = 0
        ledger.racing[:], cursor[RACERS] = crew, size
        return int(due)

    def _remembers(self) -> bool:
        return bool(rows_in_use(self.policy, self.ledger))

    # --- the same again ---

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Turns) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
        self._game = self._game_in_force()
