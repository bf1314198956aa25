"""A session whose winner is trained on after it was named; see `delivery`."""

from __future__ import annotations

from typing import Any

from latebloomer.core.ledger import OVER, RACERS
from latebloomer.errors import need_whole
from latebloomer.policies.base import Policy
from latebloomer.session.delivery import Naming, check_share, kept
from latebloomer.session.reasons import Explanation
from latebloomer.session.session import Session


class Finale(Session):
    """What `Field` adds for `deliver`: first the policy decides, then the winner has the rest.

    `budget` is given in all; before the best is named it is what the policy has, and `whole` is
    all. Who was named, and by which numbers, does not change any more.
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
        check_share(deliver)
        self._share, self.whole = deliver, need_whole("budget", budget)
        self._naming: Naming | None = None  # once the winner is trained on
        # Without a horizon, arms are compared at the whole budget, what is kept included: the
        # winner is trained towards it, cannot pass it, and a nearer one would end its training.
        at = self.whole if horizon is None else horizon
        super().__init__(policy, arms, self.whole - kept(self.whole, deliver), at, seed)

    def _bind(self) -> None:
        super()._bind()
        if self._naming is not None:
            self._advance, self._recommend = self._winner_due, self._winner_named

    # --- the winner ---

    def deliver(self, arm: int | str, budget: int) -> None:
        """Name an arm the best and train it on, up to `budget` pulls of the race in all."""
        self._naming = self.naming._replace(arm=self._index(arm))
        self._batch = []
        self._bind()
        self._go_on(budget)

    def _go_on(self, budget: int) -> None:
        """Train the winner up to another number of pulls in all."""
        self.budget = self.whole = budget
        self._due = self._winner_due()

    @property
    def naming(self) -> Naming:
        """Who is named the best and what stood then; that is now, unless it is trained on."""
        if self._naming is not None:
            return self._naming
        arm, n = self.recommend().arm, self._ledger.n
        judged = {i: self._estimate(i) for i in range(len(n)) if n[i]}
        return Naming(arm, self.spent, n[arm], self.budget, judged, self._who_left())

    @property
    def winner(self) -> int | None:
        """The arm that is trained on; None while the policy decides."""
        return None if self._naming is None else self._naming.arm

    @property
    def owes(self) -> bool:
        """Whether the policy is done and its winner is still to be trained on."""
        if self._share == 0 or self._naming is not None or not self.over:
            return False
        return any(self._ledger.n[i] for i in self._ledger.racing[: self._ledger.cursor[RACERS]])

    def _who_left(self) -> dict[int, str]:
        """Arms that take no more pulls, and why."""
        return {}

    def _for_winner(self) -> int:
        """Pulls that the winner may still have."""
        i = self.naming.arm
        room = min(self.budget - self.spent, self.horizon - self._ledger.n[i])
        return 0 if i in self._who_left() else max(0, room)

    def _winner_due(self, *_: Any) -> int:
        return self.naming.arm if self._for_winner() else OVER

    def _winner_named(self, *_: Any) -> int:
        return self.naming.arm

    # --- what a session says, of a winner that is trained on ---

    def ask_phase(self, batch: int = 1) -> dict[int, int]:
        """Pulls per arm that may be made in parallel; all that is left for a named winner."""
        if self._naming is None:
            return super().ask_phase(batch)
        return {self._naming.arm: self._for_winner()} if self._for_winner() else {}

    def _may_tell(self, i: int) -> bool:
        return self._naming is None and super()._may_tell(i)  # else the arm that is due, no other

    @property
    def reason(self) -> str:
        """Why the session is over, or how much of the budget is left."""
        left = self.budget - self.spent
        if self._naming is None and self._share and (self.owes or not self.over):
            return self._still_to_come()
        if self._naming is None or not self.over or left == 0:
            return super().reason
        gone = self._naming.arm in self._who_left()
        why = "takes no more pulls" if gone else f"is at the horizon of {self.horizon} pulls"
        name = self.names[self._naming.arm]
        return f"{name} {why}; {left} of {self.budget} pulls are not spent"

    def _still_to_come(self) -> str:
        left, of = self.whole - self.spent, f"of {self.whole} pulls"
        if self.owes:
            return f"the best is named; {left} {of} are left to train it on"
        return f"{left} {of} left, {self.whole - self.budget} of them for the winner"

    def _estimate(self, i: int) -> float:
        if self._naming is not None and i in self._naming.estimates:
            return self._naming.estimates[i]
        return super()._estimate(i)

    def _had_then(self, i: int) -> int:
        return self._naming.pulls if self._naming is not None and i == self.winner else self.had(i)

    def had(self, arm: int) -> int:
        """Pulls that an arm has had: `pulls[arm]` without listing them all."""
        return int(self._ledger.n[arm])

    def _explained(
        self,
        i: int,
        rating: float,
        rival: int | None,
        rival_rating: float | None,
        at: int,
        word: str,
    ) -> Explanation:
        at = at if self._naming is None else min(at, self._naming.at)
        return super()._explained(i, rating, rival, rival_rating, at, word)
