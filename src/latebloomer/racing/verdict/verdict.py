"""What a race ends in, as data and as text: in about a dozen lines, or with every reason.

On recorded curves the winner's late mean is below that of a dropped learner in about 10 % of
races, and by more than 4 standard errors in 1.3 %. There the dropped learner was truly better
about half of the time, so the verdict names it and does not swap it in.
"""

from __future__ import annotations

import json
import pickle
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util import text as words
from latebloomer._util.atomic_files import File, need_different, write_file
from latebloomer.errors import LearnerError, UnknownName
from latebloomer.racing.journal.journal import near
from latebloomer.racing.settings import rule_in, varying_settings
from latebloomer.racing.verdict.history import Finding, Hindsight, History
from latebloomer.session.events import FAILED
from latebloomer.session.learner_view import LearnerView, finite, ranked

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Selection:
    """Which learner the policy selected, when, and by what estimate."""

    name: str
    estimate: float  # that it was selected by
    pulls: int  # of the learner then
    at: int  # pulls of the race then
    final: bool = True  # False while the race may still select another

    def __str__(self) -> str:
        pulls = f"{self.pulls:,} pull{'s' * (self.pulls != 1)}"
        at = f"at race pull {self.at:,} (estimate {self.estimate:.6g} after {pulls})"
        return f"{'Selected' if self.final else 'Leading:'} {self.name} {at}"


@dataclass(frozen=True)
class Training:
    """How far the winner is trained, and the score it has now."""

    score: float  # last one
    pulls: int
    pulls_after_selection: int
    final: bool = True

    def __str__(self) -> str:
        after = f", {self.pulls_after_selection:,} of them after selection"
        word = "Final score" if self.final else "Score so far"
        text = f"{word} {self.score:.6g} after {self.pulls:,} pull{'s' * (self.pulls != 1)}"
        return text + after if self.pulls_after_selection else text


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which learner to keep, why, and how certain that is. `print` it.

    Attributes
    ----------
    name : str
        Name of the learner to keep.
    learner : Any
        The trained learner; None if the verdict was read from a journal alone.
    score : float
        Last score of the learner to keep.
    estimate : float
        Value that it was selected by.
    selected : Selection
        When the policy selected it, and by which estimate.
    trained : Training
        How far it is trained, and its score.
    learners : tuple[LearnerView, ...]
        All learners, in the order in which they were passed.
    spent : int
        Pulls made so far.
    budget : int
        Total pulls of the plan in force.
    horizon : int
        Number of pulls per learner at which learners are compared.
    over : bool
        False for the standings of an unfinished race.
    reason : str
        Why the race ended.
    certified : bool
        Whether it is proved best at the horizon, under the stated assumptions.
    certificate : str
        What is certified, or what is missing, and on what conditions.
    missing : str
        What is missing for a certificate; empty if the winner is certified.
    half_time : str | None
        Learner that led when half of the pulls were spent.
    hindsight : tuple[Hindsight, ...]
        What Successive Halving and ASHA keep on the recorded curves.
    findings : tuple[Finding, ...]
        Curves that contradict the assumptions, or have reached a plateau.
    warnings : tuple[str, ...]
        Failures, retries, differences.
    settings : Mapping[str, Any]
        Settings of the race.
    versions : Mapping[str, str]
        Versions of Python and the library.
    journal : str | None
        Journal file; None for a race kept in memory.
    started : float | None
        Start of the race, in seconds since 1970.
    seconds : float
        Time from the start to the last counted pull.
    history : History
        Every counted pull, in order.
    assessed_at : int
        Pulls that certificate, findings and hindsight are based on.
    advice : str
        How to train a learner with a higher last score further; empty if there is none.
    loader : Callable[[str], Any] | None
        Function behind `load`; None if the verdict was read from a journal alone.
    """

    name: str
    learner: Any = field(default=None, repr=False)
    score: float
    estimate: float
    selected: Selection
    trained: Training
    learners: tuple[LearnerView, ...]
    spent: int
    budget: int
    horizon: int
    over: bool
    reason: str
    certified: bool = False
    certificate: str = ""
    missing: str = ""
    half_time: str | None = None
    hindsight: tuple[Hindsight, ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    versions: Mapping[str, str] = field(repr=False)
    journal: str | None
    started: float | None
    seconds: float
    history: History = field(repr=False)
    assessed_at: int = 0
    advice: str = ""
    loader: Callable[[str], Any] | None = field(default=None, repr=False)

    @property
    def late_bloomer(self) -> bool:
        """True if another learner led at half-time."""
        return self.half_time is not None and self.half_time != self.name

    @property
    def unspent(self) -> int:
        """Pulls of the budget left over at the end; 0 for time-based and unfinished races."""
        budget = self.settings["budget"]
        return max(0, budget - self.spent) if self.over and budget is not None else 0

    @property
    def pulls(self) -> dict[str, int]:
        """Pulls per learner."""
        return {one.name: one.pulls for one in self.learners}

    @property
    def estimates(self) -> dict[str, float]:
        """Value that each learner is ranked by."""
        return {one.name: one.estimate for one in self.learners}

    def curve(self, name: str) -> list[float]:
        """Return a learner's scores, pull by pull."""
        return self.history.by_arm[self[name].arm].tolist()

    @property
    def policy(self) -> str:
        """The policy, after "auto: " if the library chose it."""
        return rule_in(self.settings)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence or two."""
        word = "Keep" if self.selected.final else "Leading:"
        bloom = f" Late bloomer: {self.half_time} led at half-time." if self.late_bloomer else ""
        return f"{word} {self.name}: {standing(self[self.name], self.horizon)}.{bloom}"

    @property
    def highest(self) -> str:
        """Name of the learner with the highest last score, which need not be the winner."""
        return highest(self).name

    def load(self, name: str) -> Any:
        """Return any learner as it was after its last pull.

        It is restored from its last checkpoint; pulls that are in none are trained again, and
        their number is printed.

        Raises
        ------
        LearnerError
            The verdict was read from a journal alone, without the learners.
        """
        if self[name].name == self.name and self.learner is not None:
            return self.learner
        if self.loader is None:
            call = f"resume(journal, learners).load({name!r})"
            raise LearnerError(f"{name!r} cannot be restored from a journal alone. Call {call}.")
        return self.loader(name)

    def __getitem__(self, name: str) -> LearnerView:
        for one in self.learners:
            if one.name == name:
                return one
        raise UnknownName(f"name={name!r} is not a learner of this race: {list(self.pulls)}")

    def __str__(self) -> str:
        return brief(self)

    def details(self) -> str:
        """Return all that is known, with every reason and every warning."""
        shown = by_rank(self)
        lines = [self.sentence, *beyond(self), *explanation(self)]
        lines += [f"{self.selected}. {self.trained}."]
        lines += _both_scores(self.learner)
        lines += [f"{words.as_sentence(self.reason)} {_policy(self)}", "", *_table(shown), ""]
        lines += [f"{one}." for one in shown]
        lines += ["", words.as_sentence(self.certificate)]
        lines += [f"{rival}." for rival in self.hindsight]
        lines += [f"Warning: {warning}." for warning in self.warnings]
        return words.printable("\n".join([*lines, *_journal(self)]))

    def summary(self) -> dict[str, Any]:
        """Return what the journal keeps: equal for equal races, whether interrupted or not."""
        same = ("name", "score", "estimate", "highest", "spent", "budget", "horizon", "certified",
                "certificate", "half_time", "late_bloomer", "pulls", "reason")  # fmt: skip
        return {name: getattr(self, name) for name in same} | {
            "selected": asdict(self.selected), "trained": asdict(self.trained),
            "estimates": finite(self.estimates),
            "states": {a.name: a.state for a in self.learners},
            "why": {a.name: a.why for a in self.learners},
            "hindsight": {h.rule: h.pick for h in self.hindsight},
            "findings": [str(f) for f in self.findings],
        }  # fmt: skip

    # --- in other forms ---

    def save(self, path: File) -> None:
        """Pickle the winner; an existing file stays until the new one is complete."""
        need_different({"the journal": self.journal, "the file to write": path})
        try:
            data = pickle.dumps(self.learner)
        except (Exception, SystemExit) as error:  # whatever the learner's own pickling raises
            raise LearnerError(
                f"the winner {self.name!r} cannot be pickled ({words.reason_of(error)}); "
                "nothing is lost: it is verdict.learner, and its scores are in the journal. Give "
                "it save(folder) and load(folder), or save what you need of it yourself"
            ) from error
        write_file(path, data)

    def rows(self) -> list[dict[str, Any]]:
        """Return the tidy table: a row for each learner; None where there is no number.

        What learners say of themselves (an attribute `settings`) is in columns `param_...`, if
        they differ in it.
        """
        said = varying_settings(self.settings)
        return [
            one.row() | {f"param_{k}": value for k, value in said.get(one.name, {}).items()}
            for one in self.learners
        ]

    def to_json(self) -> str:
        """Return one JSON object: what the journal keeps of the verdict, and `rows`."""
        more = {"over": self.over, "unspent": self.unspent, "policy": self.policy,
                "warnings": list(self.warnings), "journal": self.journal, "rows": self.rows()
                }  # fmt: skip
        return json.dumps(finite(self.summary() | more), allow_nan=False)

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """Return the tidy table as a pandas data frame; `index` names columns to find rows by."""
        return words.data_frame(self.rows(), index)

    def plot(self, kind: str = "curves", ax: Any = None) -> Figure:
        """Draw the verdict with matplotlib and return the figure.

        Parameters
        ----------
        kind : str
            "curves" for learning curves with forecasts up to the horizon, "budget" for the pulls
            that each learner got.
        ax : Any
            Axes to draw on. Default: a new figure.
        """
        from latebloomer.racing.verdict.pictures import plot

        return plot(self, kind, ax)

    def report(self, path: File) -> Path:
        """Write one self-contained HTML file."""
        from latebloomer.page.race_html import race_html
        from latebloomer.racing.verdict.pictures import page_data

        need_different({"the journal": self.journal, "the file to write": path})
        return write_file(path, race_html(page_data(self)))

    def _repr_html_(self) -> str:
        """Return the verdict, the curves and the learners, for a notebook."""
        from latebloomer.page.race_html import race_cell
        from latebloomer.racing.verdict.pictures import page_data

        return race_cell(page_data(self))


SHOWN = 5  # learners in the short table: the best ones


def by_rank(verdict: Verdict) -> list[LearnerView]:
    """Return all learners, the best first."""
    return ranked(verdict.learners, verdict.history.sign > 0)


def brief(verdict: Verdict, table: bool = True) -> str:
    """Return the result first, in at most fifteen lines; the last names the place of the rest."""
    lines = [verdict.sentence, *beyond(verdict), *explanation(verdict)]
    if verdict.trained.pulls_after_selection:
        lines.append(f"{verdict.selected}. {verdict.trained}.")
    lines += _table(by_rank(verdict)[:SHOWN]) if table else []
    cost = words.short_seconds(sum(one.seconds for one in verdict.learners))
    reason = words.as_sentence(f"{verdict.reason} ({cost} s of training)")
    certificate = words.as_sentence(verdict.missing or verdict.certificate)
    lines += [f"{reason} {_policy(verdict)}", certificate]
    kept = [
        f"{rival.rule.partition(' (')[0]} ({rival.pulls:,} of {verdict.selected.at:,} pulls) "
        f"keeps {words.short_name(rival.pick)}"
        for rival in verdict.hindsight
        if rival.pick is not None
    ]
    lines += [f"Replayed on these curves: {'; '.join(kept)}."] if kept else []
    lines += _not_shown(verdict, len(verdict.learners) - SHOWN if table else 0)
    return words.printable("\n".join(lines))


def _policy(verdict: Verdict) -> str:
    """Return which policy raced, and whether it was chosen by "auto"."""
    chosen, _, name = verdict.policy.rpartition(": ")
    return f"Policy: {name}, chosen by {chosen}." if chosen else f"Policy: {name}."


def _both_scores(learner: Any) -> list[str]:
    """Return the scores of averaged weights and of the model as trained, if a learner has both."""
    with suppress(Exception):  # whatever an evaluation raises, the verdict is shown
        if learner.averages:
            own, average = (learner.last_scores[name] for name in ("model", "averaged_model"))
            return [f"Last scores: {average:.6g} (averaged weights), {own:.6g} (as trained)."]
    return []


def _table(shown: Sequence[LearnerView]) -> list[str]:
    """Return learners, one a line, below a header."""
    head = ("learner", "trained", "score", "forecast (trust)", f"estimate ({shown[0].rule})",
            "time", "outcome")  # fmt: skip
    return [f"  {line}" for line in words.aligned([head, *map(_cells, shown)], "<>>>>><")]


def _cells(one: LearnerView) -> tuple[str, ...]:
    score, estimate = ("" if x != x else f"{x:.4g}" for x in (one.score, one.estimate))
    forecast = ""
    if one.forecast is not None and one.forecast.trust:
        forecast = f"{one.forecast.score:.4g} ({100 * one.forecast.trust:.0f} %)"
    time = f"{words.short_seconds(one.seconds)} s"
    return words.short_name(one.name), one.trained, score, forecast, estimate, time, one.outcome


def _not_shown(verdict: Verdict, learners: int) -> list[str]:
    """Return what was left out, counted, and where to read it; or where every pull is."""
    counts = {"learner": learners, "warning": len(verdict.warnings)}
    left = [f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count > 0]
    if not left:
        return _journal(verdict)
    where = "details() of this verdict"
    if verdict.journal is not None:
        where = shlex.join(["latebloomer", "show", "--verbose", near(Path(verdict.journal))])
    return [f"Not shown: {', '.join(left)}. See {where}"]


def _journal(verdict: Verdict) -> list[str]:
    return [] if verdict.journal is None else [f"Journal: {near(Path(verdict.journal))}"]


# --- a kept learner whose last score is below another one's ---


def highest(verdict: Verdict) -> LearnerView:
    """Return the learner with the highest last score; the winner, if others have as high a one."""
    sign = verdict.history.sign
    scored = [one for one in verdict.learners if one.pulls and (one.leads or one.state != FAILED)]
    return max(scored, key=lambda one: (sign * one.score, one.leads))


def standing(one: LearnerView, horizon: int) -> str:
    """Return a learner's score, how far it is trained, and its forecast.

    "score 0.33 at 50 % of its training, forecast 0.67 at the end".
    """
    share = one.full_pulls is not None
    trained = f"at {one.trained} of its training" if share else f"after {one.trained}"
    text, made = f"score {one.score:.5g} {trained}", one.forecast
    if made is None or not made.trust or made.at <= one.pulls:
        return text
    when = "the end" if made.at >= horizon else f"{made.at:,.0f} pulls"
    return f"{text}, forecast {made.score:.4g} at {when}"


def beyond(verdict: Verdict) -> list[str]:
    """Return what a forecast means that is beyond the best possible score; 1 or 0 if unknown."""
    best, known, sign = verdict[verdict.name], highest(verdict).score, verdict.history.sign
    limit = (verdict.settings.get("score_range") or (0, 1))[sign > 0]
    if limit is None or not sign * known <= sign * limit < sign * best.forecast_score:
        return []
    fast = f"the forecast only means that {best.name} still improves fast"
    return [f"If {limit:g} is the best possible score, {fast}."]


def explanation(verdict: Verdict) -> list[str]:
    """Return why a learner with a better last score was not kept, and how to train it further."""
    best, other = verdict[verdict.name], highest(verdict)
    if other.leads:
        return []
    at = f" at {other.trained}" if other.trained != best.trained else ""
    numbers = f"{other.score:.4g}"
    if not (other.left_at or verdict.selected.final):
        leads = f"{best.name} leads by estimate ({best.estimate:.4g} versus {other.estimate:.4g})"
        return [f"{other.name} has a better score ({numbers}{at}), but {leads}."]
    when = "when it was dropped" if other.left_at else "but was not selected"
    if other.forecast is not None and other.forecast.trust:
        numbers += f", forecast {other.forecast.score:.4g}"
    text = f"{other.name} scored better {when}{at}: {numbers}.{_why(verdict, best, other)}"
    return [text, *filter(None, [verdict.advice])]


def _why(verdict: Verdict, best: LearnerView, other: LearnerView) -> str:
    sign, made = verdict.history.sign, other.decision
    told = sign * best.estimate > sign * other.estimate and best.forecast is not None
    if told or made is None or made.rival is None or made.rival_estimate is None:
        return ""  # the two forecasts say why, or it was not compared
    rival, estimate = verdict[made.rival], f"{made.rival_estimate:.4g}"
    if rival.forecast is not None and sign * rival.score < sign * made.rival_estimate:
        numbers = f"{rival.name}: estimate {estimate}, score {rival.score:.4g}"
        return f" The learner that displaced it stayed below its forecast ({numbers})."
    own = f"{other.estimate:.4g}"
    return f" It was ranked by its estimate, {own}, versus {estimate} for {rival.name}."
