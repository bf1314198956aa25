"""The plan in words, before anything is spent."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from latebloomer._util.tables import html_table
from latebloomer.core.ledger import ANY, Plan
from latebloomer.policies.base import Policy

SHOWN = 12  # longer plans are cut in the middle when printed
ADVISED_GRACE = (3, 2)  # what a plan that drops arms on one pull advises, if it can be paid


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
    """What a policy will do with a budget. `print` it.

    Attributes
    ----------
    policy : Policy
        That was asked.
    arms : int
        K, how many arms there are.
    budget : int
        T, pulls in all.
    horizon : int
        The pull at which arms are compared.
    phases : tuple[Phase, ...]
        One by one.
    unspent : int
        Pulls that no phase needs.
    advised_budget : int
        The least at which its ratings mean something.
    why : str
        That is so.
    last_seen : tuple[int, int, int] | None
        (n, m, k): after n pulls m of k arms are dropped first.
    advised_grace : int | None
        A grace that the budget can pay; None where none is advised.
    """

    policy: Policy
    arms: int
    budget: int
    horizon: int
    phases: tuple[Phase, ...]
    unspent: int
    advised_budget: int
    why: str
    last_seen: tuple[int, int, int] | None = None
    advised_grace: int | None = None

    @property
    def outlook(self) -> list[str]:
        """Until when a late bloomer can still be seen, and a warning where that is at once."""
        if self.last_seen is None:
            return []
        n, dropped, arms = self.last_seen
        who = (
            "Whoever is last" if dropped == 1 else f"Whoever is among the last {dropped} of {arms}"
        )
        said = (
            f"{who} after {n} pull{'s' * (n > 1)} is dropped; a take-off after that is not seen."
        )
        if n > 1:
            return [said]
        min_pulls = f"min_pulls={self.advised_grace}, " if self.advised_grace else ""
        return [said, f"Warning: {dropped} of {arms} arms are dropped on one pull; {min_pulls}fewer "
                "arms or a larger budget gives each more."]  # fmt: skip

    def to_json(self) -> str:
        """One JSON object: the phases, and all that is said of them."""
        phases = [asdict(phase) for phase in self.phases]
        return json.dumps({
            "policy": repr(self.policy), "arms": self.arms, "budget": self.budget,
            "horizon": self.horizon, "phases": phases, "unspent": self.unspent,
            "advised_budget": self.advised_budget, "why": self.why, "outlook": self.outlook,
        })  # fmt: skip

    def _repr_html_(self) -> str:
        """The phases, in a notebook."""
        title = (
            f"{self.policy!r} over {self.arms} arms, {self.budget:,} pulls, compared at "
            f"{self.horizon:,}"
        )
        rows = [
            [
                str(j),
                "any" if one.arms is None else str(one.arms),
                f"{one.upto:,}",
                f"{one.pulls:,}",
            ]
            for j, one in enumerate(self.phases, 1)
        ]
        advised = f"Smallest budget that makes sense: {self.advised_budget} ({self.why})."
        return html_table(title, ["phase", "arms", "pulls each", "pulls in all"], rows,
                          [*self.outlook, advised])  # fmt: skip

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
            *self.outlook,
            f"Smallest budget that makes sense: {self.advised_budget} ({self.why}).",
        ]
        if self.policy.decides_after_sweeps():
            lines.insert(
                3, "      and after every sweep over the arms, drop those that cannot win"
            )
        return "\n".join(lines)


def describe(
    policy: Policy, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1
) -> Description:
    """The phases, who survives them, pulls each, and what is left.

    Parameters
    ----------
    policy : Policy
        With its settings.
    arms : int
        K, how many arms there are.
    budget : int
        T, pulls in all.
    horizon : int | None
        The budget if None.
    min_pulls : int
        The pull before which no arm is dropped.

    Returns
    -------
    Description
        The plan; `print` it.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    """
    horizon = budget if horizon is None else horizon
    plan = policy.plan(arms, budget, horizon, min_pulls)
    phases, left, before = [], budget, 0
    for k, n in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
        phase = _open(arms, before, n, left) if k == ANY else _closed(k, before, n, left)
        phases.append(phase)
        left, before = left - phase.pulls, n
    advised, why = policy.advised_budget(arms)
    return Description(
        policy, arms, budget, horizon, tuple(p for p in phases if p.pulls), left, advised, why,
        _last_seen(plan, arms, horizon), _advised_grace(policy, arms, budget),
    )  # fmt: skip


def _last_seen(plan: Plan, arms: int, horizon: int) -> tuple[int, int, int] | None:
    """After how many pulls how many of the arms are dropped first; None where none is in time."""
    keep, upto = plan.keep.tolist(), plan.upto.tolist()
    if len(keep) < 2 or keep[1] == ANY or upto[0] >= horizon:
        return None
    return upto[0], arms - keep[1], arms


def _advised_grace(policy: Policy, arms: int, budget: int) -> int | None:
    """The largest that the budget pays and after which a pull of each arm is left for phases."""
    if policy.decides_after_sweeps():
        return None
    return next(
        (min_pulls for min_pulls in ADVISED_GRACE if budget >= arms * (min_pulls + 1)), None
    )


def _closed(k: int, before: int, upto: int, left: int) -> Phase:
    pulls = min(left, k * (upto - before))
    each, more = divmod(pulls, k)
    return Phase(k, before + each, pulls, more)


def _open(arms: int, before: int, upto: int, left: int) -> Phase:
    return Phase(None, upto, min(left, arms * (upto - before)))
