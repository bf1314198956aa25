"""The text of a verdict: in about a dozen lines, or with every reason.

On recorded curves, the winner's late mean is below the late mean of a dropped learner in about 10
% of races, and by more than 4 standard errors in 1.3 %. In these 1.3 %, the dropped learner was
truly better about half of the time. So the verdict mentions this learner, but does not select it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from latebloomer._util import text as words
from latebloomer._util.fitted_table import Column, fitted
from latebloomer._util.text import near, quoted, score_text, scores_apart
from latebloomer.racing.verdict.learner_about import about_lines
from latebloomer.racing.verdict.new_rows import new_rows_lines
from latebloomer.session.arm_views import NUMBERED, LearnerView, ranked, varying_settings
from latebloomer.session.events import FAILED

if TYPE_CHECKING:
    from latebloomer.racing.verdict.verdict import Verdict

INDENT = "  "  # indentation of the table
SHOWN = 5  # number of learners in the short table
MOST_VALUE = 24  # maximum characters of a setting in a table
# Maximum characters of a failure's reason, in the short and the full text.
MOST_REASON, WHOLE = 300, 10**9


def by_rank(verdict: Verdict) -> list[LearnerView]:
    """Return all learners, the best first."""
    return ranked(verdict.learners, verdict.history.sign > 0)


def brief(verdict: Verdict, width: int | None = None) -> str:
    """Return a text of at most fifteen lines; the last line says where to read the rest.

    If `width` is the width of a terminal, lines are wrapped between words.
    """
    lines = [verdict.sentence, *_candidate(verdict), *beyond(verdict), *explanation(verdict)]
    if verdict.trained.pulls_after_selection:
        lines.append(f"{verdict.selected}. {verdict.trained}.")
    lines += _ensemble(verdict)
    lines += [*_table(by_rank(verdict)[:SHOWN], width), *_failures(verdict, MOST_REASON)]
    cost = words.short_seconds(sum(view.seconds for view in verdict.learners))
    reason = words.as_sentence(f"{verdict.reason} ({cost} s of training)")
    certificate = on_these_rows(verdict, verdict.uncertified_because or verdict.certificate)
    new_rows = new_rows_lines(verdict)
    known = [certificate, *new_rows] if verdict.leads else [" ".join([certificate, *new_rows])]
    lines += [f"{reason} {_policy(verdict)}", *known]
    kept = [
        f"{rival.rule.partition(' (')[0]} would have kept {quoted(words.short_name(rival.pick))} "
        f"({rival.pulls:,} of {verdict.selected.at:,} pulls)"
        for rival in verdict.hindsight
        if rival.pick is not None
    ]
    lines += [f"On these curves, {', and '.join(kept)}."] if kept else []
    last = _not_shown(verdict, len(verdict.learners) - SHOWN, width)
    return "\n".join([_fitted(lines, width), *about_lines(verdict), _fitted(last, width)]).rstrip()


def details(verdict: Verdict, width: int | None = None) -> str:
    """Return all that is known, with every reason and every warning."""
    shown = by_rank(verdict)
    lines = [verdict.sentence, *_candidate(verdict), *beyond(verdict), *explanation(verdict)]
    lines += [f"{verdict.selected}. {verdict.trained}.{_best_score(verdict[verdict.name])}"]
    lines += _ensemble(verdict)
    lines += [f"{words.as_sentence(verdict.reason)} {_policy(verdict)}", ""]
    lines += [*_table(shown, width), "", *_settings_table(verdict, width)]
    lines += [words.stopped(str(view)) for view in shown if view.state != FAILED]
    lines += [*_failures(verdict), "", on_these_rows(verdict, verdict.certificate)]
    lines += new_rows_lines(verdict, every=True)
    lines += [words.stopped(str(rival)) for rival in verdict.hindsight]
    lines += [words.stopped(f"Warning: {warning}") for warning in _warnings(verdict)]
    last = _fitted(_journal(verdict), width)
    return "\n".join([_fitted(lines, width), *about_lines(verdict), last]).rstrip()


def _fitted(lines: Sequence[str], width: int | None) -> str:
    """Return lines as text that fits into a terminal."""
    return words.wrapped(words.printable("\n".join(lines)), width)


def on_these_rows(verdict: Verdict, certificate: str) -> str:
    """Return a certificate as sentences that say that it is about the validation rows."""
    rows = "By these scores, "  # so that no sentence begins with a name
    if verdict.leads:
        rows = f"On these {verdict.leads[0].rows:,} validation rows, "
    elif certificate.startswith("there is "):
        rows = ""
    return words.as_sentence(f"{rows}{certificate}")


def _policy(verdict: Verdict) -> str:
    """Return a sentence about the policy, and whether "auto" chose it."""
    chosen, _, name = verdict.policy.rpartition(": ")
    return f"Policy: {name}, chosen by {chosen}." if chosen else f"Policy: {name}."


def _best_score(view: LearnerView) -> str:
    """Return a sentence about the best score of a learner, if that is not its last one."""
    if not 0 < view.best_at < view.pulls or view.best_score == view.score:
        return ""
    steps = "" if view.best_steps is None else f" ({view.best_steps:,} of its own steps)"
    pulls = f"{view.best_at:,} pull{'s' * (view.best_at != 1)}"
    return f" Its best score was {words.score_text(view.best_score)} after {pulls}{steps}."


def _ensemble(verdict: Verdict) -> list[str]:
    return [] if verdict.ensemble is None else [f"{verdict.ensemble}."]


def _table(shown: Sequence[LearnerView], width: int | None) -> list[str]:
    """Return a table of learners, one per line, below a header."""
    forecasts = [
        "" if isnan(view.forecast_score) else score_text(view.forecast_score) for view in shown
    ]
    trusts = [f" ({100 * view.forecast.trust:.0f} %)" if view.forecast else "" for view in shown]
    trusted = [told and told + trust for told, trust in zip(forecasts, trusts, strict=True)]
    scores, estimates, times = [], [], []
    for view in shown:
        scores.append("" if isnan(view.score) else score_text(view.score))
        estimates.append("" if isnan(view.estimate) else score_text(view.estimate))
        times.append(f"{words.short_seconds(view.seconds)} s")
    columns = [
        Column("learner", [words.short_name(view.name) for view in shown]),
        Column("trained", [view.trained for view in shown], right=True, left_out=1),
        Column("score", scores, right=True),
        Column("forecast (trust)", trusted, True, ("forecast", forecasts), left_out=2),
        Column(f"estimate ({shown[0].rule})", estimates, True, ("estimate", estimates)),
        Column("time", times, right=True, left_out=3),
        Column(
            "outcome",
            [view.outcome for view in shown],
            short=("outcome", [view.state for view in shown]),
        ),
    ]
    return [INDENT + line for line in fitted(columns, width and width - len(INDENT))]


def _candidate(verdict: Verdict) -> list[str]:
    """Return a line with the settings of a winner that is called by a number."""
    best = verdict[verdict.name]
    if not best.name.startswith(NUMBERED):
        return []
    names = varying_settings(verdict.learners)
    text = ", ".join(f"{name}={_value(best.settings[name])}" for name in names)
    return [f"{best.name} has {text}."] if text else []


def _settings_table(verdict: Verdict, width: int | None) -> list[str]:
    """Return a table with the settings of numbered candidates, one candidate per line."""
    shown = by_rank(verdict)
    names = varying_settings(verdict.learners)
    if not names or not all(view.name.startswith(NUMBERED) for view in shown):
        return []
    columns = [Column("candidate", [words.short_name(view.name) for view in shown])]
    for place, name in enumerate(names):
        values = [_value(view.settings[name]) for view in shown]
        columns.append(Column(name, values, right=True, left_out=place))
    return [*(INDENT + line for line in fitted(columns, width and width - len(INDENT))), ""]


def _value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else words.shortened(str(value), MOST_VALUE)


def _failures(verdict: Verdict, most: int = WHOLE) -> list[str]:
    """Return lines that say why learners failed, one for each reason."""
    by_reason: dict[str, list[str]] = {}
    for view in verdict.learners:
        if view.state == FAILED:
            by_reason.setdefault(view.why, []).append(quoted(words.short_name(view.name)))
    return [
        words.stopped(f"{', '.join(names)} failed: {words.shortened(why, most)}")
        for why, names in by_reason.items()
    ]


def _warnings(verdict: Verdict) -> list[str]:
    """Return the warnings, except those about failed learners, which already have a line."""
    failed = [view for view in verdict.learners if view.state == FAILED]
    told = {f"{quoted(view.name)} failed: {view.why}" for view in failed}
    return [warning for warning in verdict.warnings if warning not in told]


def _not_shown(verdict: Verdict, learners: int, width: int | None) -> list[str]:
    """Return lines that count what is not shown and say where to read it, or every pull.

    A command that does not fit into the line is on a separate line, so that it can be copied.
    """
    counts = {"learner": learners, "warning": len(_warnings(verdict))}
    omitted = [f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count > 0]
    if not omitted:
        return _journal(verdict)
    where = "details() of this verdict"
    if verdict.journal is not None:
        where = shlex.join(["latebloomer", "show", "--verbose", near(Path(verdict.journal))])
    text = f"Not shown: {', '.join(omitted)}. See"
    whole = f"{text} {where}"
    return [whole] if width is None or len(whole) <= width else [text, where]


def _journal(verdict: Verdict) -> list[str]:
    return [] if verdict.journal is None else [f"Journal: {near(Path(verdict.journal))}"]


def highest(verdict: Verdict) -> LearnerView:
    """Return the learner with the best last score; the winner wins ties."""
    sign = verdict.history.sign
    scored = [
        view for view in verdict.learners if view.pulls and (view.leads or view.state != FAILED)
    ]
    return max(scored, key=lambda view: (sign * view.score, view.leads))


def late_bloom(verdict: Verdict) -> str:
    """Return the sentence that the winner, or the leader, was not leading at half-time."""
    name, half_time = quoted(verdict.name), quoted(verdict.half_time or "")
    return f"{name} is a late bloomer: {half_time} still led at half-time."


def standing(view: LearnerView, horizon: int) -> str:
    """Return text with a learner's score, how far it is trained, and its forecast.

    An example is "score 0.33 at 50 % of its training, forecast 0.67 at the end".
    """
    share = view.full_pulls is not None
    trained = f"at {view.trained} of its training" if share else f"after {view.trained}"
    text, forecast = f"score {score_text(view.score)} {trained}", view.forecast
    if forecast is None or not forecast.trust or forecast.at <= view.pulls:
        return text
    when = "the end" if forecast.at >= horizon else f"{forecast.at:,.0f} pulls"
    return f"{text}, forecast {score_text(forecast.score)} at {when}"


def beyond(verdict: Verdict) -> list[str]:
    """Return a sentence about a forecast beyond the best possible score (1 or 0 if unknown)."""
    best, known, sign = verdict[verdict.name], highest(verdict).score, verdict.history.sign
    limit = (verdict.settings.get("score_range") or (0, 1))[sign > 0]
    if limit is None or not sign * known <= sign * limit < sign * best.forecast_score:
        return []
    fast = f"the forecast only means that {quoted(best.name)} still improves fast"
    return [f"If {limit:g} is the best possible score, {fast}."]


def explanation(verdict: Verdict) -> list[str]:
    """Return why a learner with a better last score was not kept."""
    best, other = verdict[verdict.name], highest(verdict)
    if other.leads:
        return []
    at = f" at {other.trained}" if other.trained != best.trained else ""
    numbers = score_text(other.score)
    if not (other.departed_at or verdict.selected.final):
        own, its = scores_apart(best.estimate, other.estimate)
        leads = f"{quoted(best.name)} leads by estimate ({own} versus {its})"
        return [f"{quoted(other.name)} has a better score ({numbers}{at}), but {leads}."]
    when = "when it was dropped" if other.departed_at else "but was not selected"
    if other.forecast is not None and other.forecast.trust:
        numbers += f", forecast {score_text(other.forecast.score)}"
    why = _why(verdict, best, other)
    return [f"{quoted(other.name)} scored better {when}{at}: {numbers}.{why}"]


def _why(verdict: Verdict, best: LearnerView, other: LearnerView) -> str:
    sign, decision = verdict.history.sign, other.decision
    told = sign * best.estimate > sign * other.estimate and best.forecast is not None
    if told or decision is None or decision.rival is None or decision.rival_estimate is None:
        return ""  # the two forecasts explain it, or it was not compared
    rival, (own, estimate) = (
        verdict[decision.rival],
        scores_apart(other.estimate, decision.rival_estimate),
    )
    if rival.forecast is not None and sign * rival.score < sign * decision.rival_estimate:
        numbers = f"{quoted(rival.name)}: estimate {estimate}, score {score_text(rival.score)}"
        return f" The learner that displaced it stayed below its forecast ({numbers})."
    return f" It was ranked by its estimate, {own}, versus {estimate} for {quoted(rival.name)}."
