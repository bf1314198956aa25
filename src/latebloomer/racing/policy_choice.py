"""Which policy a race plays where it is left to the library: `policy="auto"`."""

from __future__ import annotations

from latebloomer.errors import need_whole
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import favoured, is_auto, make_policy
from latebloomer.session.delivery import check_share, kept


def chosen(
    policy: str | Policy,
    arms: int,
    budget: int | None,
    horizon: int | None,
    deliver: float = 0.0,
) -> Policy:
    """The policy itself, made of its name; "auto" by the rule in docs/which-policy.md.

    Its T is what names the best: the budget without what `deliver` keeps for the winner.

    >>> chosen("auto", 8, 400, None), chosen("auto", 8, None, 100)
    (AdaptiveRejects(power=1.0, shortest=0.0), AdaptiveRejects(power=1.5, shortest=0.0))
    """
    if not is_auto(policy):
        return make_policy(policy)
    if budget is None:
        return _by_the_clock(arms, horizon)
    check_share(deliver)
    whole = need_whole("budget", budget)
    at = whole if horizon is None else need_whole("horizon", horizon)
    return favoured(arms, whole - kept(whole, deliver), at)


def _by_the_clock(arms: int, horizon: int | None) -> Policy:
    """Where T is not known before the first sweep.

    Without a horizon, H is T whatever T becomes, which the rule knows. With one, the plan for
    T > H: played by mistake it costs .004 of rank loss (at T = H), the other .010 (at T = 2 H).
    """
    return favoured(arms, 1, 1) if horizon is None else favoured(arms, 2, 1)
