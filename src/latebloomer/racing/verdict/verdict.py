"""What a race ends in."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer._util.atomic_files import File, need_different, write_file
from latebloomer._util.tables import data_frame
from latebloomer._util.text import reason_of
from latebloomer.errors import LearnerError
from latebloomer.racing.journal.journal import near
from latebloomer.racing.settings import rule_in
from latebloomer.racing.share_text import percent
from latebloomer.racing.verdict.curve_tests import Finding
from latebloomer.racing.verdict.hindsight import Hindsight
from latebloomer.racing.verdict.history import History
from latebloomer.racing.verdict.verdict_text import brief, details

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINNER = "winner"  # the state of the recommended learner; the others are session states


@dataclass(frozen=True)
class Selection:
    """Who is best, by the policy."""

    name: str
    estimate: float  # what it was chosen by
    pulls: int  # of its own, then
    at: int  # pulls of the race, then
    final: bool = True  # False while the race may still name another

    def __str__(self) -> str:
        so_far = "" if self.final else " so far"
        return (
            f"Named the best{so_far}: {self.name}, by {self.estimate:.6g} after {self.pulls} "
            f"pulls of its own (pull {self.at} of the race)"
        )


@dataclass(frozen=True)
class Training:
    """What one gets."""

    score: float  # the last one it showed
    pulls: int  # that it has had
    pulls_after_selection: int  # of them, after it was named
    final: bool = True

    def __str__(self) -> str:
        so_far = "" if self.final else " so far"
        since = (
            f", {self.pulls_after_selection} of them since it was named"
            if self.pulls_after_selection
            else ""
        )
        return f"Delivered{so_far}: score {self.score:.6g} after {self.pulls} pulls{since}"


@dataclass(frozen=True)
class LearnerResult:
    """One learner's race.

    Attributes
    ----------
    name : str
        Of the learner.
    state : str
        Winner, racing (to the end), out, failed or finished.
    pulls : int
        That it made.
    score : float
        The last one; nan without any.
    estimate : float
        What the policy judged it by.
    lower : float
        Of the interval for its score at the horizon; the intervals hold together for all learners.
    upper : float
        Of the same interval; below `lower` where the curve contradicts the assumptions.
    left_at : int | None
        The pull of the race at which it was dropped or failed.
    why : str
        When and why, with the numbers that decided.
    seconds : float
        Of training, in counted pulls.
    steps : int | None
        Of its own, where pulls are shares of a full training.
    """

    name: str
    state: str
    pulls: int
    score: float
    estimate: float
    lower: float
    upper: float
    left_at: int | None
    why: str
    seconds: float
    steps: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The recommended learner, trained, and what is known of all of them. `print` it.

    Attributes
    ----------
    name : str
        Of the learner to keep.
    learner : Any
        The trained object; None when read from a journal alone.
    score : float
        The last one it showed: what is delivered.
    estimate : float
        What it was chosen by.
    selected : Selection
        The best, by the policy: when, and by what.
    trained : Training
        What one gets: the score now, after how many pulls.
    learners : tuple[LearnerResult, ...]
        The learners, one by one.
    spent : int
        Pulls that were made.
    budget : int
        Pulls in all, by the plan in force.
    horizon : int
        The pull at which learners are compared.
    over : bool
        False for the standings of an unfinished race.
    reason : str
        Why the race ended.
    certified : bool
        Whether it is proved best at the horizon, under the stated assumptions.
    certificate : str
        That, or what is missing.
    half_time : str | None
        Who led when half of the pulls were spent.
    hindsight : tuple[Hindsight, ...]
        What Successive Halving and ASHA would have kept.
    findings : tuple[Finding, ...]
        Of the test of assumptions.
    warnings : tuple[str, ...]
        Failures, retries, differences.
    settings : Mapping[str, Any]
        Of the race.
    versions : Mapping[str, str]
        Of Python and the library.
    journal : str | None
        Its file; None for memory alone.
    started : float | None
        Seconds since 1970.
    seconds : float
        From the start to the last counted pull.
    history : History
        Every counted pull, in order.
    """

    name: str
    learner: Any = field(repr=False)
    score: float
    estimate: float
    selected: Selection
    trained: Training
    learners: tuple[LearnerResult, ...]
    spent: int
    budget: int
    horizon: int
    over: bool
    reason: str
    certified: bool
    certificate: str
    half_time: str | None
    hindsight: tuple[Hindsight, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    versions: Mapping[str, str] = field(repr=False)
    journal: str | None
    started: float | None
    seconds: float
    history: History = field(repr=False)

    @property
    def late_bloomer(self) -> bool:
        """Whether the winner was not yet ahead at half-time."""
        return self.half_time is not None and self.half_time != self.name

    @property
    def unspent(self) -> int:
        """Pulls of the budget that were not needed; 0 for a race by the clock."""
        budget = self.settings["budget"]
        return max(0, budget - self.spent) if self.over and budget is not None else 0

    @property
    def pulls(self) -> dict[str, int]:
        """Pulls per learner."""
        return {arm.name: arm.pulls for arm in self.learners}

    @property
    def estimates(self) -> dict[str, float]:
        """What each learner was judged by."""
        return {arm.name: arm.estimate for arm in self.learners}

    def curve(self, name: str) -> list[float]:
        """A learner's scores, pull by pull."""
        return [float(x) for x in self.history.scores_of(self.history.names.index(name))]

    @property
    def policy(self) -> str:
        """The policy, after "auto: " where it was left to the library."""
        return rule_in(self.settings)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return f"{'Keep' if self.selected.final else 'Ahead so far,'} {self.name}: {self.detail}."

    @property
    def journal_line(self) -> str:
        """Where every pull is recorded."""
        return "No journal." if self.journal is None else f"Journal: {near(Path(self.journal))}"

    @property
    def both(self) -> tuple[str, str]:
        """Who was named the best, and what is delivered."""
        return f"{self.selected}.", f"{self.trained}."

    @property
    def detail(self) -> str:
        """What the sentence says about the winner."""
        bloom = f"; a late bloomer: {self.half_time} led at half-time" if self.late_bloomer else ""
        own, one = self[self.name].pulls, self.settings.get("pulls_per_training")
        trained = f"{percent(own, one)} of its training" if one else f"{own} of {self.spent} pulls"
        return f"score {self.score:.6g} after {trained}{bloom}"

    def __getitem__(self, name: str) -> LearnerResult:
        return next(arm for arm in self.learners if arm.name == name)

    def __str__(self) -> str:
        return brief(self)

    def details(self) -> str:
        """All that is known, with every reason and every warning."""
        return details(self)

    def summary(self) -> dict[str, Any]:
        """What the journal keeps: the same for the same race, however often it was interrupted."""
        return {
            "name": self.name, "score": self.score, "estimate": self.estimate,
            "selected": asdict(self.selected), "trained": asdict(self.trained),
            "spent": self.spent, "budget": self.budget, "horizon": self.horizon,
            "certified": self.certified, "certificate": self.certificate,
            "half_time": self.half_time, "late_bloomer": self.late_bloomer,
            "pulls": self.pulls, "estimates": {a.name: _plain(a.estimate) for a in self.learners},
            "states": {a.name: a.state for a in self.learners},
            "why": {a.name: a.why for a in self.learners},
            "hindsight": {h.rule: h.pick for h in self.hindsight},
            "findings": [str(f) for f in self.findings], "reason": self.reason,
        }  # fmt: skip

    # --- in other forms ---

    def save(self, path: File) -> None:
        """Pickle the winner; a file that is there stays until the new one is complete."""
        self._need_other_than_journal(path)
        try:
            data = pickle.dumps(self.learner)
        except (Exception, SystemExit) as error:  # whatever the learner's own pickling raises
            raise LearnerError(
                f"the winner {self.name!r} cannot be pickled ({reason_of(error)}); "
                "nothing is lost: it is verdict.learner, and its scores are in the journal. Give "
                "it save(folder) and load(folder), or save what you need of it yourself"
            ) from error
        write_file(path, data)

    def rows(self) -> list[dict[str, Any]]:
        """The tidy table: a row for each learner; None where there is no number."""
        return [_row(arm) for arm in self.learners]

    def to_json(self) -> str:
        """One JSON object: what the journal keeps of the verdict, and `rows`."""
        more = {"over": self.over, "unspent": self.unspent, "policy": self.policy,
                "warnings": list(self.warnings), "journal": self.journal, "rows": self.rows()
                }  # fmt: skip
        return json.dumps(_finite(self.summary() | more), allow_nan=False)

    def to_frame(self, index: str | Sequence[str] | None = None) -> Any:
        """The tidy table as a pandas data frame; `index` names columns to find rows by."""
        return data_frame(self.rows(), index)

    def plot(self, ax: Any = None) -> Figure:
        """The learning curves, with matplotlib."""
        from latebloomer.racing.verdict.curves_plot import plot

        return plot(self, ax)

    def report(self, path: File) -> Path:
        """Write one self-contained HTML file."""
        from latebloomer.page.race_html import race_html
        from latebloomer.racing.verdict.page_data import page_data

        self._need_other_than_journal(path)
        return write_file(path, race_html(page_data(self)))

    def _repr_html_(self) -> str:
        """The verdict, the curves and the learners, in a notebook."""
        from latebloomer.page.race_html import race_cell
        from latebloomer.racing.verdict.page_data import page_data

        return race_cell(page_data(self))

    def _need_other_than_journal(self, path: File) -> None:
        need_different({"the journal": self.journal, "the file to write": path})


def _row(arm: LearnerResult) -> dict[str, Any]:
    """Columns as in tables of simulations: an interval is named after what it is of."""
    ends = {"lower": "at_horizon_low", "upper": "at_horizon_high"}
    found: dict[str, Any] = _finite(asdict(arm))
    return {ends.get(name, name): value for name, value in found.items()}


def _finite(value: Any) -> Any:
    """The same with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(value: float) -> float | None:
    return None if value != value else value
