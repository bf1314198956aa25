"""The loop of a policy in plain Python: it plays the policy's plan on the remaining arms.

A play is made from its terms (which arms, how many pulls, up to which horizon) and from the
rewards reported so far. Then rewards are entered one by one, and after each of them the play says
which arm is due: the arm to pull next. After any other event, the session makes a new play from
the same rewards, so no ledger is edited in place. Arms that failed, finished or were dropped have
no row in the ledger.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from latebloomer.core.ledger import ANY, OVER, PHASE, PULLS, RACERS, STALE, SWEEPS
from latebloomer.core.policy_moves import plain_intake, plain_moves
from latebloomer.core.run_memory import growing_rows, lists_for
from latebloomer.policies.base import Policy
from latebloomer.policies.priced_levels import drop_order
from latebloomer.session.plan_in_force import Terms, game_for, share_out

Rewards = Iterable[tuple[int, float]]  # (arm, reward) for all arms of the session, in order
OUTSIDE = -1  # row number of an arm that is not in play
COPIED = ("n", "last", "rating", "S", "Q")  # lists of a ledger that sum up an arm's past
# Attributes that a pickle omits: kernels, and values computed from the other attributes.
DERIVED = ("_observe", "_advance", "_recommend", "_final", "_game", "_rows", "_targets", "_row")


class Play:
    """The ledger of the arms in play, the plan in force, and the arm that is due.

    Callers name an arm by its number in the session; private methods use its row in the ledger.
    """

    def __init__(self, terms: Terms, reported: Rewards = (), before: "Play | None" = None) -> None:
        self.terms, self.arms = terms, terms.arms
        self.ledger = lists_for(terms.policy, len(self.arms))
        for row, arm in enumerate(self.arms):
            self.ledger.repeats_scores[row] = int(arm in terms.repeats_scores)
        # By row: rewards already reported that the plan has not reached yet; None if there are
        # none.
        self.waiting: list[deque[float]] | None = None
        self.batch: list[int] = []  # arms issued together whose scores are not reported yet
        self.due: int = OVER
        self._bind()
        if before is not None:
            self._enter_reported(reported, before)
        if self.arms:
            self._find_due(ANY)

    def _bind(self) -> None:
        policy = self.terms.policy
        self._observe, self._advance, self._recommend, self._final = plain_moves(type(policy))
        self._rows = growing_rows(policy, self.ledger)
        self._targets: tuple[tuple[int, ...], list[int]] | None = None
        self._row = [OUTSIDE] * self.terms.session_arms
        for row, arm in enumerate(self.arms):
            self._row[arm] = row
        self._game = game_for(self.terms)
        # True if every arm competes for every pull; False if the plan has phases.
        self.decides_every_pull = ANY in self._game.plan.keep

    # --- rewards reported before this play ---

    def _enter_reported(self, reported: Rewards, before: "Play") -> None:
        """Copy the rows of the previous play, or enter the rewards of the arms in play again.

        Rows must not be copied in three cases: some arms are ahead of others (arms are compared at
        equal pulls); arms are new or revived; or every rating depends on the horizon, and the
        horizon has changed.
        """
        terms, rows = self.terms, [before.row(arm) for arm in self.arms]
        if self.decides_every_pull:
            same = not self._rows or terms.horizon == before.terms.horizon
            self._enter_all(reported, before, self._copy_rows(rows, before) if same else None)
            return
        even = terms.own_pulls - terms.remaining == terms.level * len(rows)
        if even and all(row is not None and before.ledger.n[row] == terms.level for row in rows):
            self._copy_rows(rows, before)
        else:
            self._enter_evenly(reported)

    def _copy_rows(self, rows: Sequence[int | None], before: "Play") -> list[int]:
        """Copy the rows of the previous play; return the number of rewards in each row."""
        ledger, old = self.ledger, before.ledger
        ledger.run[:] = old.run
        for name in COPIED:
            mine, theirs = getattr(ledger, name), getattr(old, name)
            for row, source in enumerate(rows):
                if source is not None:
                    mine[row] = theirs[source]
        for row, source in enumerate(rows):
            if source is not None:
                ledger.arm[row][:] = old.arm[source]
        ledger.cursor[PULLS] = sum(ledger.n)
        self.terms.policy.after_replan(ledger)
        return list(ledger.n)

    def _enter_all(self, reported: Rewards, before: "Play", copied: list[int] | None) -> None:
        """Enter all rewards in the order reported, for a policy that decides after every pull.

        Some notes of `pick` about an arm, such as its turn, do not follow from the rewards. The
        policy's memory declares these cells as kept, and they are copied.
        """
        ledger, old = self.ledger, before.ledger
        sources = [before.row(arm) for arm in self.arms]
        skip = [0] * len(self.arms) if copied is None else copied
        had = self.terms.own_pulls - self.terms.remaining
        for arm, reward in reported if sum(skip) < had else ():
            entered = self._row[arm]
            if entered != OUTSIDE and skip[entered]:
                skip[entered] -= 1
            elif entered != OUTSIDE:
                self._enter(entered, reward)
        for row, source in enumerate(sources if copied is None else ()):
            if source is not None:
                for cell in self.terms.policy.memory.kept_places():
                    ledger.arm[row][cell] = old.arm[source][cell]
        ledger.cursor[PULLS], ledger.cursor[STALE] = self.terms.budget - self.terms.remaining, 1
        batch = [arm for arm in before.batch if self._row[arm] != OUTSIDE]
        self.batch = batch[: self.terms.remaining]

    def _enter_evenly(self, reported: Rewards) -> None:
        """Enter as many rewards of each arm as every arm has; the others wait for the plan."""
        queues = [deque[float]() for _ in self.arms]
        for arm, reward in reported:
            row = self._row[arm]
            if row != OUTSIDE:
                queues[row].append(reward)
        sweeps = range(self.terms.level)
        self._enter_unrated((row, q.popleft()) for _ in sweeps for row, q in enumerate(queues))
        self.waiting = queues if any(queues) else None

    def enter_waiting(self) -> bool:
        """Enter waiting rewards up to the next decision; return whether any was entered."""
        if self.waiting is None or self.due == OVER:
            return False
        entered = False
        for row, target in list(zip(self._racing_rows(), self._shares(), strict=True)):
            queue = self.waiting[row]
            while queue and self.ledger.n[row] < target:
                self._enter(row, queue.popleft())
                entered = True
        if entered:
            self._find_due(ANY)
        if not any(self.waiting):
            self.waiting = None
        elif not entered and self.remaining_pulls <= 0:
            self.due = OVER
        return entered

    @property
    def drop_due(self) -> bool:
        """True if an arm must be dropped by its price now: all arms are at the next level."""
        plan, phase = self._game.plan, self.ledger.cursor[PHASE]
        by_price = bool(self.terms.prices) and self.ledger.cursor[RACERS] > 1
        return by_price and phase < len(plan.upto) and plan.upto[phase] > self.terms.levels[0]

    def most_wasteful(self) -> int:
        """Return the arm with the largest product of its gap to the leader and its price."""
        rows = self._racing_rows()
        ratings = [self.ledger.rating[row] for row in rows]
        order = drop_order(ratings, [self.terms.prices[row] for row in rows], by_waste=True)
        return self.arms[rows[order[0]]]

    @property
    def overspent(self) -> bool:
        """True if an arm was dropped after more pulls than the plan had for it.

        Other arms lack these pulls, so the budget no longer covers the plan.
        """
        out = self.ledger.out
        return self.waiting is not None and any(q and out[k] for k, q in enumerate(self.waiting))

    # --- a reward is reported ---

    def _enter(self, row: int, reward: float) -> None:
        for rows in self._rows:
            rows[row].append(0.0)
        self._observe(self._game, self.ledger, row, reward)

    def _enter_unrated(self, pairs: Rewards) -> None:
        """Enter (row, reward) pairs without decisions; rate each arm once if possible.

        A rating that depends only on an arm's history is needed only after the arm's latest pull.
        """
        policy, ledger = type(self.terms.policy), self.ledger
        rates_later = policy.update_rating is Policy.update_rating
        unrated, update_rating = plain_intake(policy)
        observe, entered = unrated if rates_later else self._observe, set()
        for row, reward in pairs:
            for rows in self._rows:
                rows[row].append(0.0)
            observe(self._game, ledger, row, reward)
            entered.add(row)
        for row in entered if rates_later else ():
            update_rating(self._game.settings, ledger, row, self._game.horizon)

    def take(self, arm: int, reward: float) -> None:
        """Enter a reward and find the arm to pull next."""
        row = self._row[arm]
        for rows in self._rows:
            rows[row].append(0.0)
        self._observe(self._game, self.ledger, row, reward)
        if self.batch:
            self.batch.remove(arm)
            self.ledger.cursor[STALE] = 1
        if self.batch:
            self.due = self.batch[0]
        else:
            due = self._advance(self._game, self.ledger, row, self.terms.run)
            self.due = due if due < 0 else self.arms[due]

    def _find_due(self, pulled: int) -> None:
        due = self._advance(self._game, self.ledger, pulled, self.terms.run)
        self.due = self.batch[0] if self.batch else due if due < 0 else self.arms[due]

    def halt(self) -> None:
        """Request no more pulls."""
        self.batch, self.due = [], OVER

    # --- the arms and the plan ---

    def row(self, arm: int) -> int | None:
        """Return the row of an arm in the ledger; None for an arm that is not in play."""
        row = self._row[arm] if 0 <= arm < len(self._row) else OUTSIDE
        return None if row == OUTSIDE else row

    def _racing_rows(self) -> list[int]:
        return list(self.ledger.racing[: self.ledger.cursor[RACERS]])

    @property
    def racing(self) -> list[int]:
        """The arms that this play has not dropped."""
        return [self.arms[row] for row in self._racing_rows()]

    @property
    def dropped(self) -> list[tuple[int, float]]:
        """Pairs (arm, rating) of the arms that this play has dropped."""
        rows = zip(self.arms, self.ledger.out, self.ledger.rating, strict=True)
        return [(arm, rating) for arm, out, rating in rows if out]

    def rival(self, best: bool) -> tuple[int, float]:
        """Return the best arm that was kept, or the worst one if not `best`, and its rating."""
        ratings = self.ledger.rating
        chosen = max if best else min
        row = chosen(self._racing_rows(), key=lambda k: (ratings[k], -k))
        return self.arms[row], ratings[row]

    @property
    def remaining_pulls(self) -> int:
        """Number of pulls that may still be made."""
        waiting = 0 if self.waiting is None else sum(map(len, self.waiting))
        return int(self._game.budget - self.ledger.cursor[PULLS] - waiting)

    @property
    def picks_now(self) -> bool:
        """True if every arm competes for the next pull."""
        return bool(self.arms) and self._game.plan.keep[self.ledger.cursor[PHASE]] == ANY

    @property
    def phase(self) -> tuple[int, int]:
        """Number of phases done and of all phases.

        A first phase that ends at the level where the play starts is not counted.
        """
        plan, level = self._game.plan, self.terms.level
        before = int(not self.decides_every_pull and level > 0 and plan.upto[0] == level)
        return max(0, int(self.ledger.cursor[PHASE]) - before), len(plan.keep) - before

    @property
    def levels_to_come(self) -> list[tuple[int, int]]:
        """Pairs (arms, pulls per arm) of this and later phases; empty if every arm competes."""
        plan, phase = self._game.plan, int(self.ledger.cursor[PHASE])
        levels = zip(plan.keep[phase:], plan.upto[phase:], strict=True)
        if self.decides_every_pull:
            return []
        if self.terms.prices and len(self.arms) > 1:
            return [(len(self.arms) - j, n) for j, n in enumerate(self.terms.levels)]
        return [(int(k), int(n)) for k, n in levels if k > 1 or n > plan.upto[-2:][0]]

    def estimate(self, arm: int) -> float:
        """Return the value by which an arm in play is ranked for the recommendation."""
        game, row = self._game, self._row[arm]
        return float(self._final(game.settings, self.ledger, row, game.budget, game.horizon))

    def best(self) -> int:
        """Return the arm in play to recommend; OVER if none of them has been pulled."""
        row = int(self._recommend(self._game, self.ledger))
        return row if row < 0 else self.arms[row]

    # --- the scores that are expected now ---

    def _shares(self) -> list[int]:
        """Return, for each racing arm, the number of pulls that it has at the next decision.

        The numbers do not change between two decisions, so they are stored. Else every score that
        is reported out of order would cost O(K).
        """
        cursor, plan = self.ledger.cursor, self._game.plan
        sweeps = cursor[RACERS] > 1 and self.terms.policy.decides_after_sweeps()
        moment = (cursor[PHASE], cursor[RACERS], cursor[SWEEPS] if sweeps else 0)
        if self._targets is None or self._targets[0] != moment:
            upto = cursor[SWEEPS] + 1 if sweeps else plan.upto[cursor[PHASE]]
            had = [min(upto, self._reported(row)) for row in self._racing_rows()]
            self._targets = moment, share_out(had, upto, self.remaining_pulls)
        return self._targets[1]

    def _reported(self, row: int) -> int:
        return self.ledger.n[row] + (0 if self.waiting is None else len(self.waiting[row]))

    def accepts(self, arm: int) -> bool:
        """Return whether the reward of an arm other than the due one may be entered now."""
        row = self.row(arm)
        if self.due == OVER or row is None or self.ledger.out[row]:
            return False
        if self.picks_now:
            return arm in self.batch
        place = bisect_left(self.ledger.racing, row, 0, self.ledger.cursor[RACERS])
        return self._reported(row) < self._shares()[place]

    def remaining(self) -> dict[int, int]:
        """Return the pulls per arm that may be made in any order before the next decision."""
        if self.due == OVER:
            return {}
        if self.picks_now:
            return dict.fromkeys(self.batch or [self.due], 1)
        pairs = zip(self._racing_rows(), self._shares(), strict=True)
        wanted = {self.arms[row]: target - self._reported(row) for row, target in pairs}
        return {arm: pulls for arm, pulls in wanted.items() if pulls > 0}

    # --- several arms at once ---

    def issue_batch(self, size: int, more: bool) -> None:
        """Choose up to `size` arms to pull at the same time, with those already under way."""
        if more:
            self.ledger.cursor[STALE] = 1
            self._advance(
                self._game, self.ledger, ANY, self.terms.run
            )  # brings the ratings up to date
        held = [self._row[arm] for arm in (self.batch if more else [self.due])]
        game = self._game
        picked = self.terms.policy.pick_batch(game.settings, self.ledger, held, size, game)
        self.batch = [self.arms[row] for row in picked]

    def can_issue_more(self, size: int) -> bool:
        """Return whether other arms can be chosen while pulls of a batch are under way."""
        if not self.terms.policy.picks_by_rating or not 0 < len(self.batch) < size:
            return False
        pairs = zip(self.arms, self.ledger.n, strict=True)
        return any(n < self.terms.horizon and arm not in self.batch for arm, n in pairs)

    # --- equality and pickles ---

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Play) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
