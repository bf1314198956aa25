"""What a session says: the recommended arm, the standings, and why an arm was passed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RACING, DROPPED, AT_HORIZON = "racing", "dropped", "at the horizon"


@dataclass(frozen=True)
class Standing:
    """One arm's row in the standings."""

    arm: int
    name: str
    state: str  # RACING, OUT or AT_HORIZON
    pulls: int
    estimate: float  # what the recommendation goes by; nan before the first pull
    left_at: int | None  # pulls told in all when the arm was dropped


@dataclass(frozen=True)
class Recommendation:
    """The arm to keep and what is known of all of them."""

    arm: int
    name: str
    estimates: tuple[float, ...]  # per arm, what the recommendation goes by
    pulls: tuple[int, ...]  # per arm
    spent: int
    budget: int
    over: bool  # whether the policy has no more use for pulls
    reason: str  # why the session is over, or that it is not

    @property
    def budget_spent(self) -> bool:
        """Whether every pull of the budget was made."""
        return self.spent >= self.budget

    def __str__(self) -> str:
        return (
            f"{self.name}: estimate {self.estimates[self.arm]:.6g} after {self.pulls[self.arm]} "
            f"of {self.spent} pulls ({self.reason})"
        )


@dataclass(frozen=True)
class Drop:
    """When an arm was dropped and the two numbers that decided it."""

    at: int  # pulls told in all
    rating: float
    rival: int  # the lowest-rated arm that was kept; the best one where arms are reviewed jointly
    rival_rating: float
    remark: str = ""  # what the policy adds


@dataclass(frozen=True)
class Explanation:
    """Why an arm stands where it stands. `print` it."""

    arm: int
    name: str
    state: str
    pulls: int  # that it had when it was judged last
    rating: float  # what it was judged by
    rival: int | None  # the arm it was compared with
    rival_rating: float | None
    at: int  # pulls told in all when that was decided
    sentence: str
    remark: str = ""  # what the policy adds, also at the end of the sentence

    def __str__(self) -> str:
        return self.sentence


def explained(
    i: int, names: Sequence[str], state: str, pulls: int, judged: Drop, word: str, budget: int
) -> Explanation:
    """Return an arm's explanation from the numbers that decided; `word` is the outcome."""
    own = f"after {pulls} pulls of its own"
    sentence = f"{names[i]}: {word} at pull {judged.at} of {budget} {own}"
    rival = None if judged.rival == i else judged.rival
    if rival is not None:
        against = f"{judged.rival_rating:.6g} of {names[rival]}"
        sentence += f", with {judged.rating:.6g} against {against}"
    elif pulls:
        sentence += f", with {judged.rating:.6g}"
    sentence += f"; {judged.remark}" if judged.remark else ""
    bar = None if pulls == 0 else judged.rival_rating
    return Explanation(
        i, names[i], state, pulls, judged.rating, rival, bar, judged.at, sentence, judged.remark
    )
