"""What a race ends in."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latebloomer.core.atomic_files import File, need_different, write_file
from latebloomer.core.text import printable, reason_of
from latebloomer.errors import LearnerError, extra
from latebloomer.racing.verdict.curve_tests import Finding
from latebloomer.racing.verdict.hindsight import Hindsight
from latebloomer.racing.verdict.history import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINNER = "winner"  # the state of the recommended learner; the others are session states


@dataclass(frozen=True)
class NamedBest:
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
class Delivered:
    """What one gets."""

    score: float  # the last one it showed
    pulls: int  # that it has had
    since: int  # of them, after it was named
    final: bool = True

    def __str__(self) -> str:
        so_far = "" if self.final else " so far"
        since = f", {self.since} of them since it was named" if self.since else ""
        return f"Delivered{so_far}: score {self.score:.6g} after {self.pulls} pulls{since}"


@dataclass(frozen=True)
class ArmResult:
    """One learner's race."""

    name: str
    state: str  # winner, racing (to the end), out, failed, finished
    pulls: int
    score: float  # the last one; nan without any
    estimate: float  # what the policy judged it by
    lower: float  # its score at the horizon lies between these, together for all learners;
    upper: float  # lower > upper: the curve contradicts the assumptions
    out_at: int | None  # the pull of the race at which it was dropped or failed
    why: str  # when and why, with the numbers that decided
    seconds: float  # of training, in counted pulls


@dataclass(frozen=True)
class Verdict:
    """The recommended learner, trained, and what is known of all of them. `print` it."""

    name: str
    learner: Any = field(repr=False)  # the trained object; None when read from a journal alone
    score: float  # the last one it showed: what is delivered
    estimate: float  # what it was chosen by
    named: NamedBest  # the best, by the policy: when, and by what
    delivered: Delivered  # what one gets: the score now, after how many pulls
    arms: tuple[ArmResult, ...]
    spent: int
    budget: int
    horizon: int
    over: bool  # False for the standings of an unfinished race
    reason: str
    certified: bool  # whether it is proved best at the horizon, under the stated assumptions
    certificate: str  # that, or what is missing
    half_time: str | None  # who led when half of the pulls were spent
    hindsight: tuple[Hindsight, ...]
    findings: tuple[Finding, ...]  # of the test of assumptions
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    versions: Mapping[str, str] = field(repr=False)
    journal: str | None
    started: float | None  # seconds since 1970
    seconds: float  # from the start to the last counted pull
    history: History = field(repr=False)

    @property
    def late_bloomer(self) -> bool:
        """Whether the winner was not yet ahead at half-time."""
        return self.half_time is not None and self.half_time != self.name

    @property
    def pulls(self) -> dict[str, int]:
        """Pulls per learner."""
        return {arm.name: arm.pulls for arm in self.arms}

    @property
    def estimates(self) -> dict[str, float]:
        """What each learner was judged by."""
        return {arm.name: arm.estimate for arm in self.arms}

    def curve(self, name: str) -> list[float]:
        """A learner's scores, pull by pull."""
        return [float(x) for x in self.history.scores_of(self.history.names.index(name))]

    @property
    def policy(self) -> str:
        """The policy, after "auto: " where it was left to the library."""
        text: str = self.settings["policy"]["repr"]
        return f"auto: {text}" if self.settings["auto"] else text

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return f"{'Keep' if self.named.final else 'Ahead so far,'} {self.name}: {self.detail}."

    @property
    def both(self) -> tuple[str, str]:
        """Who was named the best, and what is delivered."""
        return f"{self.named}.", f"{self.delivered}."

    @property
    def detail(self) -> str:
        """What the sentence says about the winner."""
        bloom = f"; a late bloomer: {self.half_time} led at half-time" if self.late_bloomer else ""
        own = self[self.name].pulls
        return f"score {self.score:.6g} after {own} of {self.spent} pulls{bloom}"

    def __getitem__(self, name: str) -> ArmResult:
        return next(arm for arm in self.arms if arm.name == name)

    def __str__(self) -> str:
        lines = [self.sentence, *self.both, f"{self.reason}, by {self.policy}.", ""]
        width = max(len(arm.name) for arm in self.arms)
        for arm in self.arms:
            lines.append(
                f"  {arm.name:<{width}}  {arm.pulls:>7} pulls  {arm.score:>11.6g}  {arm.why}"
            )
        lines += ["", f"How sure is this? {self.certificate}."]
        lines += [f"{rival}." for rival in self.hindsight]
        lines += [f"Warning: {warning}." for warning in self.warnings]
        return printable("\n".join(lines))

    def summary(self) -> dict[str, Any]:
        """What the journal keeps: the same for the same race, however often it was interrupted."""
        return {
            "name": self.name, "score": self.score, "estimate": self.estimate,
            "named": asdict(self.named), "delivered": asdict(self.delivered),
            "spent": self.spent, "budget": self.budget, "horizon": self.horizon,
            "certified": self.certified, "certificate": self.certificate,
            "half_time": self.half_time, "late_bloomer": self.late_bloomer,
            "pulls": self.pulls, "estimates": {a.name: _plain(a.estimate) for a in self.arms},
            "states": {a.name: a.state for a in self.arms},
            "why": {a.name: a.why for a in self.arms},
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

    def to_frame(self) -> Any:
        """One row per learner, as a pandas data frame."""
        pandas = extra("pandas", "data frames", "pandas")
        return pandas.DataFrame([asdict(arm) for arm in self.arms]).set_index("name")

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


def _plain(value: float) -> float | None:
    return None if value != value else value
