"""The verdict of a race as data: which learner to keep, why, and how certain that is."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util import text as words
from latebloomer._util.atomic_files import File, need_different, write_file
from latebloomer._util.console import line_width
from latebloomer._util.text import quoted
from latebloomer.errors import LearnerError, UnknownName
from latebloomer.racing.settings import rule_in
from latebloomer.racing.verdict.hindsight import Hindsight
from latebloomer.racing.verdict.learner_about import about
from latebloomer.racing.verdict.new_rows import NewRowsLead
from latebloomer.racing.verdict.race_history import History
from latebloomer.racing.verdict.verdict_text import (
    brief,
    details,
    highest,
    late_bloom,
    standing,
)
from latebloomer.session.arm_views import LearnerView, finite, varying_settings
from latebloomer.theory.curve_tests import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Selection:
    """The learner that the policy selected, when, and by which estimate."""

    name: str
    estimate: float  # estimate by which it was selected
    pulls: int  # pulls of the learner at the selection
    at: int  # pulls of the race then
    final: bool = True  # False as long as the race may still select another learner

    def __str__(self) -> str:
        pulls = f"{self.pulls:,} pull{'s' * (self.pulls != 1)}"
        at = f"at race pull {self.at:,} (estimate {words.score_text(self.estimate)} after {pulls})"
        return f"{'Selected' if self.final else 'Leading:'} {quoted(self.name)} {at}"


@dataclass(frozen=True)
class Training:
    """The training of the winner: how far it is trained, and its score now."""

    score: float  # last one
    pulls: int
    pulls_after_selection: int
    final: bool = True

    def __str__(self) -> str:
        after = f", {self.pulls_after_selection:,} of them after selection"
        word = "Final score" if self.final else "Score so far"
        pulls = f"{self.pulls:,} pull{'s' * (self.pulls != 1)}"
        text = f"{word} {words.score_text(self.score)} after {pulls}"
        return text + after if self.pulls_after_selection else text


@dataclass(frozen=True)
class Ensemble:
    """An ensemble of the winner and a weighted mean of the learners as the race trained them."""

    winner: str
    refitted: bool  # whether the winner was trained again on all rows
    weights: Mapping[str, float]  # weights of the learners as trained, with sum 1
    share: float  # share of the winner in the ensemble; the weighted mean has the rest
    score: float  # score on the validation rows, with the winner as the race trained it

    def __str__(self) -> str:
        by_weight = sorted(self.weights.items(), key=lambda pair: -pair[1])
        parts = ", ".join(f"{quoted(name)} {100 * weight:.0f} %" for name, weight in by_weight)
        again, own = ", trained again on all rows" * self.refitted, 100 * self.share
        return (
            f"Ensemble: {own:.0f} % {quoted(self.winner)}{again}; {100 - own:.0f} % a mean of "
            f"models as raced ({parts}). Its score on the validation rows is "
            f"{words.score_text(self.score)}, but it was chosen on these rows"
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which learner to keep, why, and how certain that is; `print` it.

    Attributes
    ----------
    name : str
        Name of the learner to keep.
    learner : Any
        The trained learner; None if the verdict was read from a journal alone.
    score : float
        Last score of the learner to keep.
    estimate : float
        Value by which the learner was selected.
    selected : Selection
        When the policy selected the learner, and by which estimate.
    trained : Training
        How far the learner is trained, and its score.
    learners : tuple[LearnerView, ...]
        All learners, in the order in which they were passed.
    spent : int
        Number of pulls made so far.
    budget : int
        Total number of pulls of the plan in force.
    horizon : int
        Number of pulls per learner at which learners are compared.
    over : bool
        Whether the race has finished; False for the standings of an unfinished race.
    reason : str
        Why the race ended.
    certified : bool
        Whether the learner is proved best at the horizon, under the stated assumptions.
    certificate : str
        Sentences that say what is certified or what is missing, and under which conditions.
    uncertified_because : str
        What is missing for a certificate; empty if the winner is certified.
    half_time : str | None
        Learner that led when half of the pulls were spent.
    hindsight : tuple[Hindsight, ...]
        Learners that Successive Halving and ASHA would have kept on the recorded curves.
    findings : tuple[Finding, ...]
        Curves that contradict the assumptions, or have reached a plateau.
    warnings : tuple[str, ...]
        Warnings, such as failures, retries and missed times.
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
        Number of pulls from which certificate, findings and hindsight were computed.
    leads : tuple[NewRowsLead, ...]
        The lead over each rival on new rows, the smallest first; empty without row scores.
    leads_missing : str
        Why no lead is known; empty if one is.
    ensemble : Ensemble | None
        The ensemble of learners, if a search has `ensemble=True`.
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
    uncertified_because: str = ""
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
    leads: tuple[NewRowsLead, ...] = ()
    leads_missing: str = "the learner gives no row scores"
    ensemble: Ensemble | None = None
    loader: Callable[[str], Any] | None = field(default=None, repr=False)

    @property
    def late_bloomer(self) -> bool:
        """True if another learner led when half of the pulls were spent."""
        return self.half_time is not None and self.half_time != self.name

    @property
    def unspent(self) -> int:
        """Number of pulls left over at the end; 0 for time-based and unfinished races."""
        budget = self.settings["budget"]
        return max(0, budget - self.spent) if self.over and budget is not None else 0

    @property
    def pulls(self) -> dict[str, int]:
        """Number of pulls, by learner."""
        return {view.name: view.pulls for view in self.learners}

    @property
    def estimates(self) -> dict[str, float]:
        """Value by which each learner is ranked, by learner."""
        return {view.name: view.estimate for view in self.learners}

    def curve(self, name: str) -> list[float]:
        """Return a learner's scores, pull by pull."""
        return self.history.by_arm[self[name].arm].tolist()

    @property
    def policy(self) -> str:
        """The policy as text, after "auto: " if "auto" chose it."""
        return rule_in(self.settings)

    @property
    def sentence(self) -> str:
        """The verdict in one or two sentences."""
        word = "Keep" if self.selected.final else "Leading:"
        bloom = f" {late_bloom(self)}" if self.late_bloomer else ""
        return f"{word} {quoted(self.name)}: {standing(self[self.name], self.horizon)}.{bloom}"

    @property
    def highest(self) -> str:
        """Name of the learner with the best last score, which need not be the winner."""
        return highest(self).name

    def load(self, name: str) -> Any:
        """Return any learner in its state after its last pull.

        It is restored from its last checkpoint. Later pulls are repeated, and their number is
        printed.

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
        for view in self.learners:
            if view.name == name:
                return view
        raise UnknownName(f"name={name!r} is not a learner of this race: {list(self.pulls)}")

    def __str__(self) -> str:
        return brief(self, line_width(sys.stdout))

    def details(self) -> str:
        """Return the full text of the verdict, with every reason and every warning."""
        return details(self, line_width(sys.stdout))

    def summary(self) -> dict[str, Any]:
        """Return the summary for the journal; it is equal for equal races, interrupted or not."""
        return {
            "name": self.name,
            "score": self.score,
            "estimate": self.estimate,
            "highest": self.highest,
            "spent": self.spent,
            "budget": self.budget,
            "horizon": self.horizon,
            "certified": self.certified,
            "certificate": self.certificate,
            "half_time": self.half_time,
            "late_bloomer": self.late_bloomer,
            "pulls": self.pulls,
            "reason": self.reason,
            "selected": asdict(self.selected),
            "trained": asdict(self.trained),
            "estimates": finite(self.estimates),
            "states": {a.name: a.state for a in self.learners},
            "why": {a.name: a.why for a in self.learners},
            "hindsight": {h.rule: h.pick for h in self.hindsight},
            "findings": [str(f) for f in self.findings],
        }

    # --- in other forms ---

    def save(self, path: File) -> None:
        """Pickle the winner; an existing file stays until the new one is complete."""
        need_different({"the journal": self.journal, "the file to write": path})
        try:
            data = pickle.dumps(self.learner)
        except (Exception, SystemExit) as error:  # the learner's own pickling may raise anything
            raise LearnerError(
                f"the winner {self.name!r} cannot be pickled ({words.reason_of(error)}); "
                "nothing is lost: it is verdict.learner, and its scores are in the journal. Give "
                "it save(folder) and load(folder), or save what you need of it yourself"
            ) from error
        write_file(path, data)

    def rows(self) -> list[dict[str, Any]]:
        """Return the tidy table: a row for each learner, with None for missing numbers.

        Columns `param_...` have the settings in which learners differ, from their attribute
        `settings`.
        """
        names = varying_settings(self.learners, of_all=False)
        return [
            view.row() | {f"param_{k}": view.settings[k] for k in names if k in view.settings}
            for view in self.learners
        ]

    def to_json(self) -> str:
        """Return one JSON object with the summary that the journal stores, and `rows`."""
        more = {
            "over": self.over,
            "unspent": self.unspent,
            "policy": self.policy,
            "warnings": list(self.warnings),
            "journal": self.journal,
            "about": about(self),
            "rows": self.rows(),
        }
        return json.dumps(finite(self.summary() | more), allow_nan=False)

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """Return the tidy table as a pandas data frame; `index` names columns for its index."""
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
        from latebloomer.racing.verdict.race_plots import plot

        return plot(self, kind, ax)

    def report(self, path: File) -> Path:
        """Write the report, a self-contained HTML file, and return its path."""
        from latebloomer.page.race_html import race_html
        from latebloomer.racing.verdict.page_data import page_data

        need_different({"the journal": self.journal, "the file to write": path})
        return write_file(path, race_html(page_data(self)))

    def _repr_html_(self) -> str:
        """Return the verdict, the curves and the learners, for a notebook."""
        from latebloomer.page.race_html import race_cell
        from latebloomer.racing.verdict.page_data import page_data

        return race_cell(page_data(self))
