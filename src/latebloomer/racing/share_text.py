"""Shares of full trainings in words: how much one is, and what a pull is."""

from __future__ import annotations

from collections.abc import Mapping

from latebloomer.racing.training_share import Share


def percent(pulls: int, one: int) -> str:
    """A share of a full training of `one` pulls.

    >>> percent(1, 3), percent(25, 100), percent(2, 1000)
    ('33 %', '25 %', '0.2 %')
    """
    share = 100 * pulls / one
    return f"{share:.0f} %" if share >= 1 else f"{share:.1g} %"


def pull_in_words(shares: Mapping[str, Share]) -> str:
    """What a pull is in the learners' own steps, from the shortest training to the longest.

    >>> steps = {"net": 3600, "sgd": 250, "tree": 5}
    >>> print(pull_in_words({name: Share(full, 100) for name, full in steps.items()}))
    A pull is from 2.5 steps of sgd (250 in all) to 36 steps of net (3600 in all).
    tree has 5 steps: the other pulls repeat the last score and cost nothing.
    """
    fine = {name: share for name, share in shares.items() if not share.repeats_scores}
    ends = {name: fine[name] for name in _shortest_and_longest(fine)}
    each = [
        f"{_steps(share)} of {name} ({share.full_steps} in all)" for name, share in ends.items()
    ]
    said = [f"A pull is {'from ' * (len(each) > 1)}{' to '.join(each)}."] if each else []
    repeats_scores = [
        f"{name} has {one.full_steps} steps" for name, one in shares.items() if one.repeats_scores
    ]
    if repeats_scores:
        said.append(
            f"{', '.join(repeats_scores)}: the other pulls repeat the last score and cost nothing."
        )
    return "\n".join(said)


def _shortest_and_longest(shares: Mapping[str, Share]) -> list[str]:
    order = sorted(shares, key=lambda name: shares[name].full_steps)
    return order if len(order) < 2 else [order[0], order[-1]]


def _steps(share: Share) -> str:
    each = f"{share.full_steps / share.pulls:.3g}"
    return f"{each} step{'s' * (each != '1')}"
