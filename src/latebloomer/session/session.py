"""Ask for an arm, tell its reward."""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from latebloomer.core.ledger import ANY, OVER, PHASE, PHASE_START, PULLS, RACERS, STALE, SWEEPS
from latebloomer.core.moves import game_of, lists_for, plain_moves, rows_in_use
from latebloomer.core.random import key
from latebloomer.errors import (
    ArmError,
    NothingYet,
    RewardError,
    SettingError,
    TellError,
    need_whole,
    require,
)
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import policy_for
from latebloomer.session.reasons import DONE, OUT, RACING, Drop, Explanation, Standing, Verdict
from latebloomer.theory.certificate import Certificate, certificate

LARGEST = 1e100  # squares of larger rewards would leave the range of a double
# What a pickle leaves out: kernels, and what follows from the settings and the ledger.
MADE = (
    "_observe",
    "_advance",
    "_recommend",
    "_worth",
    "_game",
    "_places",
    "_growing",
    "_quota_memo",
)


class Handed(NamedTuple):
    """Several arms were handed out to be pulled at once."""

    after: int  # pulls told before
    size: int  # arms that could be out then, in all
    more: bool  # while others were out


class Session:
    """One run of a policy: it asks for pulls, is told rewards, and recommends an arm.

    A session is a pure function of its settings, the (arm, reward) pairs told, in order, and the
    batches handed out: replayed, it is equal bit for bit. It can be pickled at any time.

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
    ) -> None:
        self.names = _names(arms)
        self.budget = need_whole("budget", budget)
        self.horizon = self.budget if horizon is None else need_whole("horizon", horizon)
        self.policy = policy_for(policy, len(self.names), self.budget, self.horizon)
        self.seed = seed
        self._game = game_of(self.policy, len(self.names), self.budget, self.horizon, key(seed))
        self._ledger = lists_for(len(self.names))
        self._places = {name: i for i, name in enumerate(self.names)}
        self._told_arms, self._told_rewards = array("q"), array("d")
        self._drops: dict[int, Drop] = {}
        self._crew = list(self._ledger.racing)  # who raced before the last drop
        self._batch: list[int] = []  # arms handed out together and not told yet
        self._handed: list[Handed] = []  # every batch, in order
        self._bind()
        self._due: int = self._advance(self._game, self._ledger, ANY, 0)

    def _bind(self) -> None:
        steps = plain_moves(type(self.policy))
        self._observe, self._advance, self._recommend, self._worth = steps
        self._growing = rows_in_use(self.policy, self._ledger)
        self._quota_memo: tuple[tuple[int, int, int], tuple[int, int]] | None = None

    # --- ask and tell ---

    def ask(self) -> int:
        """The arm to pull next. Asking again before telling gives the same arm."""
        if self._due == OVER:
            raise TellError(f"asked for an arm, but the session is over: {self.reason}")
        return self._due

    def ask_phase(self, batch: int = 1) -> dict[int, int]:
        """Pulls per arm that may be made in any order, or in parallel, before the next decision.

        For a policy with phases that is what is left of the phase; for one that decides after
        every pull it is one pull of up to `batch` arms. Empty when the session is over.
        """
        batch = _at_once(batch)
        if self._due == OVER:
            return {}
        if self._phase_keep() != ANY:
            return self._left_of_phase()
        count = min(batch, self.budget - self.spent)
        if not self._batch and count > 1:
            self._hand_out(Handed(self.spent, count, False), [self._due])
        return dict.fromkeys(self._batch or [self._due], 1)

    def top_up(self, batch: int) -> None:
        """Hand out more arms, up to `batch` at once, while pulls of others are still awaited.

        For policies that choose by rating alone; the others wait for all arms of a batch, as
        every policy does for the pulls of a phase.
        """
        count = min(_at_once(batch), self.budget - self.spent)
        if not self.policy.picks_by_rating or not 0 < len(self._batch) < count:
            return
        out = {*self._batch, *self._absent()}
        if any(n < self.horizon and i not in out for i, n in enumerate(self._ledger.n)):
            self._ledger.cursor[STALE] = 1
            self._advance(self._game, self._ledger, ANY, 0)  # the ratings of now
            self._hand_out(Handed(self.spent, count, True), self._batch)

    def _hand_out(self, handed: Handed, held: list[int]) -> None:
        self._handed.append(handed)
        absent = self._absent()
        picked = self.policy.pick_batch(
            self._game.rule,
            self._ledger,
            [*held, *absent],
            handed.size + len(absent),
            self._game,
        )
        self._batch = [i for i in picked if i not in absent]

    def _absent(self) -> list[int]:
        """Arms that take no pulls."""
        return []

    def tell(self, arm: int | str, reward: float) -> None:
        """Enter the reward of a pull that was asked for (higher is better)."""
        due = self._due
        i = arm if arm is due and due >= 0 else self._index(arm)
        value = reward if type(reward) is float else _number(reward)
        if not -LARGEST <= value <= LARGEST:
            raise RewardError(
                f"reward={reward!r} for arm {self.names[i]}, but a reward must be a finite number "
                f"of at most {LARGEST:g}: check what the pull returned"
            )
        if i != due and not self._may_tell(i):
            raise TellError(self._not_asked(i))
        ledger, game = self._ledger, self._game
        for rows in self._growing:
            rows[i].append(0.0)
        crew = ledger.cursor[RACERS]
        self._observe(game, ledger, i, value)
        self._told_arms.append(i)
        self._told_rewards.append(value)
        self._due = self._next_of_batch(i) if self._batch else self._advance(game, ledger, i, 0)
        if ledger.cursor[RACERS] != crew:
            self._note_drops()

    def _next_of_batch(self, told: int) -> int:
        self._batch.remove(told)
        self._ledger.cursor[STALE] = 1
        if self._batch:
            return self._batch[0]
        return self._advance(self._game, self._ledger, told, 0)

    def _index(self, arm: int | str) -> int:
        if isinstance(arm, str):
            if arm not in self._places:
                raise ArmError(f"arm={arm!r}, but the arms are {_listed(self.names)}")
            return self._places[arm]
        try:
            i = operator.index(arm)
        except TypeError:
            raise ArmError(f"arm={arm!r}, but an arm is a number or a name") from None
        if isinstance(arm, bool) or not 0 <= i < len(self.names):
            raise ArmError(f"arm={arm!r}, but arms are numbered from 0 to {len(self.names) - 1}")
        return i

    # --- what may be told ---

    def _phase_keep(self) -> int:
        return int(self._game.plan.keep[self._ledger.cursor[PHASE]])

    def _may_tell(self, i: int) -> bool:
        if self._due == OVER:
            return False
        if self._phase_keep() == ANY:
            return i in self._batch
        ledger, (upto, more) = self._ledger, self._quota()
        place = bisect_left(ledger.racing, i, 0, ledger.cursor[RACERS])
        return ledger.out[i] == 0 and ledger.n[i] < upto + (place < more)

    def _left_of_phase(self) -> dict[int, int]:
        """Pulls that the racing arms still lack before the next decision."""
        ledger, (upto, more) = self._ledger, self._quota()
        crew = ledger.racing[: ledger.cursor[RACERS]]
        wanted = {i: upto + (place < more) - ledger.n[i] for place, i in enumerate(crew)}
        return {i: pulls for i, pulls in wanted.items() if pulls > 0}

    def _quota(self) -> tuple[int, int]:
        """The pulls each racing arm comes to before the next decision; how many get one more.

        Where the budget ends within a sweep, the first arms of the crew get the last pulls.
        Between two decisions it stays the same, so it is kept: a tell out of order is not O(K).
        """
        cursor = self._ledger.cursor
        sweep = (
            cursor[RACERS] > 1 and self.policy.decides_after_sweeps()
        )  # one arm left: nothing to decide
        base = cursor[SWEEPS] if sweep else cursor[PHASE_START]
        moment = (cursor[PHASE], cursor[RACERS], base)
        if self._quota_memo is None or self._quota_memo[0] != moment:
            upto = base + 1 if sweep else self._game.plan.upto[cursor[PHASE]]
            self._quota_memo = moment, self._shared_out(base, upto)
        return self._quota_memo[1]

    def _shared_out(self, base: int, upto: int) -> tuple[int, int]:
        ledger = self._ledger
        crew = ledger.racing[: ledger.cursor[RACERS]]
        made = sum(ledger.n[i] - base for i in crew)
        each, more = divmod(made + self.budget - self.spent, len(crew))
        return (upto, 0) if base + each >= upto else (base + each, more)

    def _not_asked(self, i: int) -> str:
        if self._due == OVER:
            return f"told arm {self.names[i]}, but the session is over: {self.reason}"
        return (
            f"told arm {self.names[i]}, but arm {self.names[self._due]} was asked: tell what "
            "ask() or ask_phase() returned"
        )

    # --- what is known ---

    @property
    def over(self) -> bool:
        """Whether the policy has no more use for pulls."""
        return self._due == OVER

    @property
    def reason(self) -> str:
        """Why the session is over, or how much of the budget is left."""
        left = self.budget - self.spent
        if not self.over:
            return f"{left} of {self.budget} pulls left"
        if left == 0:
            return f"all {self.budget} pulls of the budget are spent"
        racing = self._ledger.racing[: self._ledger.cursor[RACERS]]
        if all(self._ledger.n[i] >= self.horizon for i in racing):
            return (
                f"every arm that could be pulled is at the horizon of {self.horizon} pulls; "
                f"{left} of {self.budget} pulls are not needed"
            )
        return f"the plan is complete; {left} of {self.budget} pulls are not needed"

    @property
    def spent(self) -> int:
        """Rewards told so far."""
        return int(self._ledger.cursor[PULLS])

    @property
    def pulls(self) -> tuple[int, ...]:
        """Rewards told so far, per arm."""
        return tuple(self._ledger.n)

    @property
    def history(self) -> list[tuple[int, float]]:
        """Every (arm, reward) told, in order."""
        return list(zip(self._told_arms, self._told_rewards, strict=True))

    def rewards(self, arm: int | str) -> list[float]:
        """The rewards of one arm, in order."""
        i = self._index(arm)
        pairs = zip(self._told_arms, self._told_rewards, strict=True)
        return [reward for told, reward in pairs if told == i]

    def recommend(self) -> Verdict:
        """The arm to keep, by what is known now."""
        if self.spent == 0:
            raise NothingYet(
                "no reward was told yet, but a recommendation needs one: ask and tell"
            )
        arm = int(self._recommend(self._game, self._ledger))
        return Verdict(
            arm=arm,
            name=self.names[arm],
            estimates=tuple(self._estimate(i) for i in range(len(self.names))),
            pulls=self.pulls,
            spent=self.spent,
            budget=self.budget,
            over=self.over,
            reason=self.reason,
        )

    def _estimate(self, i: int) -> float:
        """What the recommendation goes by; for a dropped arm what it was dropped on."""
        if self._ledger.n[i] == 0:
            return nan
        if self._ledger.out[i]:
            return float(self._ledger.rating[i])
        return float(self._worth(self._game.rule, self._ledger, i, self.budget, self.horizon))

    def standings(self) -> list[Standing]:
        """All arms: the racing ones by their estimate, then the dropped ones, the last first."""
        rows = [
            Standing(
                i, name, self._state(i), self._ledger.n[i], self._estimate(i), self._out_at(i)
            )
            for i, name in enumerate(self.names)
        ]
        return sorted(rows, key=lambda row: (-(row.out_at or inf), -_low_if_nan(row.estimate)))

    def _state(self, i: int) -> str:
        if self._ledger.out[i]:
            return OUT
        return DONE if self._ledger.n[i] >= self.horizon else RACING

    def _out_at(self, i: int) -> int | None:
        return self._ledger.out[i] or None

    def certificate(self, noise: float | None = None, delta: float = 0.05) -> Certificate:
        """Intervals for every arm's mean at the horizon that hold together [Mussi24, Lemmas 1, 2].

        They hold with probability 1 - delta if the curves rise and are concave and the noise is
        sub-Gaussian with standard deviation `noise`; where that is None it is estimated.
        """
        arms, told = np.asarray(self._told_arms), np.asarray(self._told_rewards)
        order = np.argsort(arms, kind="stable")
        rewards = np.split(told[order], np.cumsum(self.pulls)[:-1])
        window = float(getattr(self.policy, "window", 0.25))
        return certificate(
            rewards, noise, self.horizon, window=window, delta=delta, budget=self.budget
        )

    # --- why ---

    def _note_drops(self) -> None:
        """Keep the numbers that decided, for every arm that has just been dropped."""
        ledger = self._ledger
        crew = ledger.racing[: ledger.cursor[RACERS]]
        # Ranks are cut above the lowest kept; a joint review may keep arms below one it drops.
        chosen = max if self.policy.decides_after_sweeps() else min
        rival = chosen(crew, key=lambda i: (ledger.rating[i], -i))
        bar = ledger.rating[rival]
        for i in self._crew:
            if ledger.out[i]:
                self._drops[i] = Drop(self.spent, ledger.rating[i], rival, bar)
        self._crew = crew

    def explain(self, arm: int | str) -> Explanation:
        """Why an arm was dropped or passed over: the numbers that decided, and when."""
        i = self._index(arm)
        drop = self._drops.get(i)
        if drop is not None:
            return self._explained(
                i, drop.rating, drop.rival, drop.rival_rating, drop.at, "dropped"
            )
        if self._ledger.n[i] == 0:
            return self._explained(i, nan, None, None, self.spent, "not pulled yet")
        best = self.recommend().arm
        mine, theirs = self._estimate(i), self._estimate(best)
        word = "recommended" if i == best else "passed over"
        return self._explained(i, mine, None if i == best else best, theirs, self.spent, word)

    def _explained(
        self,
        i: int,
        rating: float,
        rival: int | None,
        rival_rating: float | None,
        at: int,
        word: str,
    ) -> Explanation:
        n = self._had_then(i)
        sentence = (
            f"{self.names[i]}: {word} at pull {at} of {self.budget} after {n} pulls of its own"
        )
        if rival is not None:
            sentence += f", with {rating:.6g} against {rival_rating:.6g} of {self.names[rival]}"
        elif n:
            sentence += f", with {rating:.6g}"
        return Explanation(
            i, self.names[i], self._state(i), n, rating, rival, rival_rating, at, sentence
        )

    def _had_then(self, i: int) -> int:
        """Pulls that an arm had when it was judged last."""
        return self._ledger.n[i]

    # --- the same again ---

    def replay(self, history: Iterable[tuple[int | str, float]]) -> Session:
        """A new session of the same settings that is told `history`.

        Batches that this session has handed out are handed out again at the same pulls.
        """
        names, horizon = list(self.names), self.horizon
        session = Session(self.policy, names, self.budget, horizon, self.seed)
        left = deque(self._handed)
        for arm, reward in history:
            session._hand_out_again(left)
            session.tell(arm, reward)
        session._hand_out_again(left)
        return session

    def _hand_out_again(self, left: deque[Handed]) -> None:
        while left and left[0].after == self.spent:
            handed = left.popleft()
            if handed.more:
                self.top_up(handed.size)
            else:
                self.ask_phase(handed.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        """All but the kernels and what follows from the settings."""
        state = dict(vars(self))
        for made in MADE:
            del state[made]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        arms = len(self.names)
        self._game = game_of(self.policy, arms, self.budget, self.horizon, key(self.seed))
        self._places = {name: i for i, name in enumerate(self.names)}
        self._bind()

    def __repr__(self) -> str:
        return f"Session({self.policy!r}, {len(self.names)} arms, {self.reason})"


def _at_once(batch: int) -> int:
    batch = need_whole("batch", batch)
    require(batch >= 1, "batch", batch, "at least 1", "it is how many arms may be pulled at once")
    return batch


def _names(arms: int | Sequence[str]) -> tuple[str, ...]:
    if hasattr(arms, "__index__"):
        count = need_whole("arms", arms)
        require(count >= 2, "arms", count, "at least 2", "with one arm there is nothing to choose")
        return tuple(map(str, range(count)))
    listed = isinstance(arms, Sequence) and not isinstance(arms, str)
    if not listed or not all(isinstance(name, str) for name in arms):
        raise SettingError(f"arms={arms!r}, but arms must be a number or a list of names")
    twice = [name for name, count in Counter(arms).items() if count > 1]
    require(not twice, "arms", list(arms), "named differently", f"{_listed(twice)} stands twice")
    return tuple(arms)


def _number(reward: object) -> float:
    if isinstance(reward, str | bytes | bytearray):
        raise RewardError(f"reward={reward!r}, but a reward must be a number, not text")
    if isinstance(reward, complex | np.complexfloating):  # NumPy would drop the imaginary part
        raise RewardError(f"reward={reward!r}, but a reward must be a real number")
    try:
        return float(reward)  # type: ignore[arg-type]
    except OverflowError:
        return inf  # a whole number beyond the range of a double: `tell` says what is allowed
    except (TypeError, ValueError):
        raise RewardError(f"reward={reward!r}, but a reward must be a number") from None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _low_if_nan(value: float) -> float:
    return -inf if value != value else value
