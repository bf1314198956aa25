"""Which policy the evidence favours: what `race(policy="auto")`, the default, plays."""

from __future__ import annotations

from latebloomer.policies.adaptive_rejects import AdaptiveRejects
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import AUTO, make_policy


def choose_policy(arms: int, budget: int, horizon: int) -> Policy:
    """The policy for K arms, T pulls in all and arms compared at H pulls.

    Adaptive Rejects: of the twelve policies in docs/which-policy.md it has the lowest mean rank
    loss on recorded curves at every budget from one to eight full trainings. Its levels rise less
    steeply (power 1, R-SR's) where the budget is worth no more than one full training: with so few
    pulls a steep plan drops arms before their curves say anything. It claims no bound on its
    error; where one is asked for, say `policy="r-sr"`.

    >>> choose_policy(arms=8, budget=100, horizon=100), choose_policy(8, 400, 100)
    (AdaptiveRejects(power=1.0, shortest=0.0), AdaptiveRejects(power=1.5, shortest=0.0))
    """
    policy = favoured(arms, budget, horizon)
    policy.check(arms, budget, horizon)
    return policy


def favoured(arms: int, budget: int, horizon: int) -> Policy:
    """The rule itself, whether or not the budget is enough to play it."""
    return AdaptiveRejects(power=1.0) if budget <= horizon else AdaptiveRejects()


def policy_for(policy: str | Policy, arms: int, budget: int, horizon: int) -> Policy:
    """Like `make_policy`, where K, T and H are known and "auto" has a meaning.

    >>> policy_for("auto", 8, 400, 100), policy_for("adaptive-rejects:power=2", 8, 400, 100)
    (AdaptiveRejects(power=1.5, shortest=0.0), AdaptiveRejects(power=2, shortest=0.0))
    """
    return choose_policy(arms, budget, horizon) if is_auto(policy) else make_policy(policy)


def is_auto(policy: object) -> bool:
    """Whether the choice is left to the rule."""
    return isinstance(policy, str) and policy == AUTO
