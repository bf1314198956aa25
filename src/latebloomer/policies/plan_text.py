"""The description of a plan as text, which is shown before pulls are spent."""

import json
from dataclasses import asdict, dataclass

from latebloomer._util.text import html_table
from latebloomer.core.ledger import ANY, Plan
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import label_of

SHOWN = 12  # maximum lines of a printed plan; longer plans are cut in the middle
# Values advised if arms are dropped after one pull and the budget pays for them.
ADVISED_MIN_PULLS = (3, 2)


@dataclass(frozen=True)
class Phase:
    """One phase of a plan: the remaining arms are trained to the same number of pulls."""

    arms: int | None  # remaining arms; None if every arm competes for each pull
    upto: int  # pulls each
    pulls: int  # in total
    more: int = 0  # number of arms that get one more pull, because the budget ends within a sweep

    def __str__(self) -> str:
        if self.arms is None:
            what = "one by one, each for the learner that the policy rates highest"
        else:
            who = "the last learner" if self.arms == 1 else f"{self.arms} learners"
            each = "" if self.arms == 1 else " each"
            more = f", the first {self.more} of them to {self.upto + 1:,}" if self.more else ""
            what = f"train {who} to {counted(self.upto)}{each}{more}"
        return f"{self.pulls:>9,} pull{'s' if self.pulls != 1 else ' '}  {what}"


@dataclass(frozen=True)
class Description:
    """The description of what a policy will do with a budget; `print` it.

    Attributes
    ----------
    policy : Policy
        Policy that was described.
    arms : int
        Number of arms, K.
    budget : int
        Total number of pulls, T.
    horizon : int
        Number of pulls per arm at which arms are compared.
    phases : tuple[Phase, ...]
        The phases, in order.
    unspent : int
        Number of pulls that no phase needs.
    advised_budget : int
        Recommended minimum budget.
    why : str
        Reason for that minimum.
    first_drop : tuple[int, int, int] | None
        (n, m, k): after n pulls each, m of k arms are the first to be dropped. None if no drop is
        planned before the horizon.
    advised_min_pulls : int | None
        Value of `min_pulls` that the budget can pay for; None if none is advised.
    """

    policy: Policy
    arms: int
    budget: int
    horizon: int
    phases: tuple[Phase, ...]
    unspent: int
    advised_budget: int
    why: str
    first_drop: tuple[int, int, int] | None = None
    advised_min_pulls: int | None = None

    @property
    def outlook(self) -> list[str]:
        """Sentences about the first drop, with a warning if it comes after one pull."""
        if self.first_drop is None:
            return []
        n, dropped, arms = self.first_drop
        lines = [first_drop_text(counted(n), dropped, arms)]
        if n == 1:
            min_pulls = f"min_pulls={self.advised_min_pulls}, " if self.advised_min_pulls else ""
            lines.append(
                f"Warning: {dropped} of {arms} learners are dropped after one pull; {min_pulls}"
                "fewer learners or a larger budget gives each more."
            )
        return lines

    def to_json(self) -> str:
        """Return the description as one JSON object."""
        names = ("arms", "budget", "horizon", "unspent", "advised_budget", "why", "outlook")
        phases = [asdict(phase) for phase in self.phases]
        values = {name: getattr(self, name) for name in names}
        return json.dumps({"policy": repr(self.policy)} | values | {"phases": phases})

    def _repr_html_(self) -> str:
        """Return the phases for a notebook."""
        size = f"{self.arms} learners, {self.budget:,} pulls"
        title = f"{label_of(self.policy)}: {size}, compared at {self.horizon:,} pulls"
        rows = [
            [str(j), str(phase.arms or "any"), f"{phase.upto:,}", f"{phase.pulls:,}"]
            for j, phase in enumerate(self.phases, 1)
        ]
        head = ["phase", "learners", "pulls each", "total pulls"]
        return html_table(title, head, rows, [*self.outlook, self.advice])

    @property
    def advice(self) -> str:
        """The recommended minimum budget, and why."""
        return f"Recommended minimum budget: {counted(self.advised_budget)} ({self.why})."

    def __str__(self) -> str:
        shown = [f"{j:>4}.{phase}" for j, phase in enumerate(self.phases, 1)]
        if len(shown) > SHOWN:
            hidden = f"      ... {len(shown) - SHOWN} more phases ..."
            shown = [*shown[: SHOWN - 4], hidden, *shown[-4:]]
        if self.policy.decides_after_sweeps():
            shown.append("      after every sweep, learners that cannot win are dropped")
        spent = counted(self.budget - self.unspent)
        return "\n".join([
            f"Policy: {label_of(self.policy)}",
            f"{self.arms} learners, a budget of {counted(self.budget)}, compared at "
            f"{counted(self.horizon)}",
            *shown,
            f"total: {spent}, {self.unspent:,} left over",
            *self.outlook,
            self.advice,
        ])  # fmt: skip


def counted(pulls: int) -> str:
    """Return a number of pulls as text.

    >>> counted(1), counted(3000)
    ('1 pull', '3,000 pulls')
    """
    return f"{pulls:,} pull{'s' * (pulls != 1)}"


def first_drop_text(after: str, dropped: int, arms: int) -> str:
    """Return a sentence about when the first learners are dropped, and what that means.

    >>> first_drop_text("5 %", 1, 9)
    'First drop: the lowest-ranked learner at 5 %. An improvement after its drop cannot be seen.'
    """
    who = "the lowest-ranked learner" if dropped == 1 else f"the lowest-ranked {dropped} of {arms}"
    whose = "its drop" if dropped == 1 else "their drop"
    return f"First drop: {who} at {after}. An improvement after {whose} cannot be seen."


def describe(
    policy: Policy, arms: int, budget: int, horizon: int | None = None, min_pulls: int = 1
) -> Description:
    """Describe the plan of a policy: its phases, arms, pulls per arm and pulls left over.

    Parameters
    ----------
    policy : Policy
        Policy with its settings.
    arms : int
        Number of arms, K.
    budget : int
        Total number of pulls, T.
    horizon : int | None
        Number of pulls per arm at which arms are compared. Default: the budget.
    min_pulls : int
        Number of pulls every arm gets before any arm can be dropped.

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
    phases, remaining, before = [], budget, 0
    for k, n in zip(plan.keep.tolist(), plan.upto.tolist(), strict=True):
        pulls = min(remaining, (arms if k == ANY else k) * (n - before))
        each, more = divmod(pulls, k)
        phases.append(Phase(None, n, pulls) if k == ANY else Phase(k, before + each, pulls, more))
        remaining, before = remaining - pulls, n
    advised, why = policy.advised_budget(arms)
    return Description(
        policy, arms, budget, horizon, tuple(p for p in phases if p.pulls), remaining, advised,
        why,
        _first_drop(plan, arms, horizon), _advised_min_pulls(policy, arms, budget),
    )  # fmt: skip


def _first_drop(plan: Plan, arms: int, horizon: int) -> tuple[int, int, int] | None:
    keep, upto = plan.keep.tolist(), plan.upto.tolist()
    if len(keep) < 2 or keep[1] == ANY or upto[0] >= horizon:
        return None
    return upto[0], arms - keep[1], arms


def _advised_min_pulls(policy: Policy, arms: int, budget: int) -> int | None:
    """Return the largest advised `min_pulls` that leaves one pull per arm for later phases."""
    if policy.decides_after_sweeps():
        return None
    return next((n for n in ADVISED_MIN_PULLS if budget >= arms * (n + 1)), None)
