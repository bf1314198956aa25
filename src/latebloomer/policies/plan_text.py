"""The plan in words, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from latebloomer.core.ledger import ANY
from latebloomer.policies.base import Policy

SHOWN = 12  # longer plans are cut in the middle when printed


@dataclass(frozen=True)
class Phase:
    """Bring `arms` survivors (all of them where None) to `upto` pulls each, `pulls` in all."""

    arms: int | None
    upto: int
    pulls: int
    more: int = 0  # arms that get one pull beyond `upto`, where the budget ends within a sweep

    def __str__(self) -> str:
        if self.arms is None:
            return (
                f"{self.pulls:>9} pulls  one by one, each to the arm that the policy rates highest"
            )
        who = "the last arm" if self.arms == 1 else f"{self.arms} arms"
        each = "" if self.arms == 1 else " each"
        more = f", the first {self.more} of them to {self.upto + 1}" if self.more else ""
        return f"{self.pulls:>9} pulls  bring {who} to {self.upto} pulls{each}{more}"


@dataclass(frozen=True)
class Description:
    """What a policy will do with a budget. `print` it."""

    policy: Policy
    arms: int
    budget: int
    horizon: int
    phases: tuple[Phase, ...]
    unspent: int
    advised_budget: int
    why: str

    def __str__(self) -> str:
        cut = len(self.phases) > SHOWN
        shown = [f"{j:>4}.{phase}" for j, phase in enumerate(self.phases, 1)]
        if cut:
            shown = [
                *shown[: SHOWN - 4],
                f"      ... {len(shown) - SHOWN} more phases ...",
                *shown[-4:],
            ]
        lines = [
            f"{self.policy!r}",
            f"over {self.arms} arms with a budget of {self.budget} pulls, "
            f"compared at {self.horizon} pulls",
            *shown,
            f"{self.budget - self.unspent:>14} pulls in all, {self.unspent} of the budget unspent",
            f"Smallest budget that makes sense: {self.advised_budget} ({self.why}).",
        ]
        if self.policy.decides_after_sweeps():
            lines.insert(
                3, "      and after every sweep over the arms, drop those that cannot win"
            )
        return "\n".join(lines)


def describe(policy: Policy, arms: int, budget: int, horizon: int | None = None) -> Description:
    """The phases, who survives them, pulls each, and what is left."""
    horizon = budget if horizon is None else horizon
    plan = policy.plan(arms, budget, horizon)
    phases, left, before = [], budget, 0
    for k, n in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
        phase = _open(arms, before, n, left) if k == ANY else _closed(k, before, n, left)
        phases.append(phase)
        left, before = left - phase.pulls, n
    advised, why = policy.advised_budget(arms)
    return Description(
        policy, arms, budget, horizon, tuple(p for p in phases if p.pulls), left, advised, why
    )


def _closed(k: int, before: int, upto: int, left: int) -> Phase:
    pulls = min(left, k * (upto - before))
    each, more = divmod(pulls, k)
    return Phase(k, before + each, pulls, more)


def _open(arms: int, before: int, upto: int, left: int) -> Phase:
    return Phase(None, upto, min(left, arms * (upto - before)))
