"""The winner's lead over each rival on new rows, estimated from the validation rows.

A certificate is about scores on the validation rows. A lead is about models as they are trained
now, on new rows. The two are never mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import ceil, floor, inf, isclose, log10
from typing import TYPE_CHECKING

from latebloomer._util.text import quoted, short_name
from latebloomer.racing.race_state import RaceState
from latebloomer.session.arm_views import LearnerView
from latebloomer.session.events import FAILED, RowsScored
from latebloomer.theory.leads import SignSums, leads

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict

# Maximum relative difference of a score and the mean of its parts, because losses clip
# differently.
SAME = 0.01
ONE_SIDED = 1.96  # minimum standard errors of the leads over all rivals together
CHEAP = 0.6  # mention a rival that takes less than this share of the winner's training time
SHARES = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}


@dataclass(frozen=True)
class NewRowsLead:
    """The lead of the best learner over a rival on new rows, both as they are trained now."""

    rival: str
    lead: float  # in scores; positive if the best learner is ahead
    margin: float  # the ± of the lead with 95 % probability, which accounts for the selection
    error: float  # standard error of the lead
    rows: int  # number of validation rows on which both were scored

    @property
    def is_better(self) -> bool:
        """True if the best learner is better than this rival, with 95 % probability."""
        return self.lead > self.margin

    @property
    def is_tie(self) -> bool:
        """True if neither learner is better with 95 % probability."""
        return abs(self.lead) <= self.margin


def leads_on_new_rows(
    race: RaceState, views: Sequence[LearnerView], best: int
) -> list[NewRowsLead]:
    """Return the lead over each rival scored on the same rows, the smallest lead first."""
    arms = [view.arm for view in views]
    kept = [_sums_of(race, arm) for arm in arms]
    by_place = leads(arms.index(best), kept)
    own = kept[arms.index(best)]
    names = race.names
    return sorted(
        (
            NewRowsLead(names[arms[k]], lead.lead, lead.margin, lead.error, own.rows if own else 0)
            for k, lead in by_place.items()
        ),
        key=lambda lead: lead.lead,
    )


def why_unknown(race: RaceState, best: int) -> str:
    """Return why no lead of the best learner is known."""
    if best not in race.row_sums:
        return "the learner gives no row scores"
    if _sums_of(race, best) is None:
        return "the learner's row scores are not parts of its last score"
    session = race.session
    others = [arm for arm, pulls in enumerate(session.pulls) if pulls and arm != best]
    if all(session.departure(arm) == FAILED for arm in others):
        return "no other learner that could be kept has a score"
    if any(_sums_of(race, arm) for arm in race.row_sums if arm != best):
        return "no other learner was scored on the same rows"
    return "no other learner gives row scores that are parts of its score"


def _sums_of(race: RaceState, arm: int) -> SignSums | None:
    """Return the stored sums of a learner's row scores now, as rewards; None without any."""
    event, scores = race.row_sums.get(arm), race.session.scores(arm)
    if event is None or event.n != len(scores) or race.session.departure(arm) == FAILED:
        return None
    reward = scores[-1] if race.settings.maximize else -scores[-1]
    sums = _as_sums(event)
    for sign in (1.0, -1.0):
        if isclose(sign * sums.score, reward, rel_tol=SAME, abs_tol=1e-9):
            turned = tuple(sign * value for value in sums.sums)
            return replace(sums, score=sign * sums.score, sums=turned)
    return None  # the parts belong to another score


def _as_sums(event: RowsScored) -> SignSums:
    return SignSums(**{field.name: getattr(event, field.name) for field in fields(SignSums)})


def new_rows_lines(verdict: Verdict, every: bool = False) -> list[str]:
    """Return lines about new rows: for the closest rival and in total, or for every rival."""
    if not verdict.leads:
        return [f"Not known for new rows: {verdict.leads_missing}."] if verdict.over else []
    shown = verdict.leads if every else verdict.leads[:1]
    first, *more = [_sentence(verdict, lead) for lead in shown]
    lines = [f"On new rows, models as trained now: {first}", *map(_capital, more)]
    total = [] if every else _of_others(verdict.leads[1:])
    several = len(verdict.leads) > 1  # with one rival, the first sentence already says it
    total = [_best_of_all(verdict)] if several and _is_best_of_all(verdict) else total
    lines = [*lines, *total] if every else [" ".join([*lines, *total])]
    unknown = _unknown(verdict)
    if unknown and every:
        lines.append(
            f"Not known for new rows over {', '.join(map(quoted, unknown))}: no row scores."
        )
    return lines


def _sentence(verdict: Verdict, lead: NewRowsLead) -> str:
    best, rival = verdict[verdict.name], verdict[lead.rival]
    digits = decimals(lead.margin)
    numbers = f"{lead.lead:.{digits}f} ± {lead.margin:.{digits}f}"
    partly = rival.departed and not rival.pulls >= (rival.full_pulls or inf)
    when = f", as it was when dropped ({rival.trained})," if partly else ""
    text = f"the lead over {quoted(short_name(lead.rival))}{when} is {numbers}: "
    if not lead.is_tie:
        better = quoted(short_name(best.name if lead.is_better else lead.rival))
        return f"{text}{better} is better (95 %)."
    return f"{text}a tie.{_cheaper(best, rival)}"


def _cheaper(best: LearnerView, rival: LearnerView) -> str:
    """Return a sentence about how much faster a rival trains, if it is much faster."""
    mine, its = (_training_seconds(view) for view in (best, rival))
    if not 0 < its < CHEAP * mine:
        return ""
    inverse = min(SHARES, key=lambda k: abs(1 / k - its / mine))
    share = (
        f"{SHARES[inverse]} of the time" if its / mine > 0.08 else "less than a tenth of the time"
    )
    return f" {quoted(short_name(rival.name))} trains in {share}."


def _training_seconds(view: LearnerView) -> float:
    """Return the seconds of a full training, or of a pull, by the mean of the pulls so far."""
    return view.seconds / max(1, view.pulls) * (view.full_pulls or 1)


def _is_best_of_all(verdict: Verdict) -> bool:
    """Return whether the winner is better than every other learner, with 95 % probability."""
    sure = all(lead.is_better and lead.lead > ONE_SIDED * lead.error for lead in verdict.leads)
    return sure and not _unknown(verdict)


def _best_of_all(verdict: Verdict) -> str:
    name = quoted(short_name(verdict.name))
    return f"{name} is the best of all {len(verdict.leads) + 1} (95 %)."


def _of_others(leads: Sequence[NewRowsLead]) -> list[str]:
    """Return a sentence about how many other rivals are worse or tie; empty without others."""
    ties, worse = sum(lead.is_tie for lead in leads), sum(lead.is_better for lead in leads)
    tie = "tie" if ties == 1 else "ties"
    counts = {"worse (95 %)": worse, tie: ties, "better (95 %)": len(leads) - ties - worse}
    parts = [f"{count} {what}" for what, count in counts.items() if count]
    return [f"Other learners: {', '.join(parts)}."] if parts else []


def _unknown(verdict: Verdict) -> list[str]:
    """Return the learners that could have won and have no lead."""
    known = {verdict.name, *(lead.rival for lead in verdict.leads)}
    return [
        view.name
        for view in verdict.learners
        if view.name not in known and view.pulls and view.state != FAILED
    ]


def decimals(margin: float) -> int:
    """Return the decimals that show a margin with one digit, or two if the first one is 1.

    >>> decimals(0.0061), decimals(0.013), decimals(2.4), decimals(0.0)
    (3, 3, 0, 3)
    """
    if margin <= 0:
        return 3
    first = floor(log10(margin))
    leading = floor(margin / 10.0**first)
    return max(0, ceil(-first) + (leading == 1))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
