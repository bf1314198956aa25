"""The standings of a race as a table, for terminals and notebooks."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan

from latebloomer._util.fitted_table import Column
from latebloomer._util.text import quoted, score_text, short_name, short_seconds
from latebloomer.page.race_page import ThinnedCurve
from latebloomer.racing.race_state import RaceState
from latebloomer.session import events
from latebloomer.session.arm_views import LearnerView

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # maximum cells of a sparkline
STATE = 12  # characters of the longest state
MOST = 40  # maximum rows; with more learners, the table shows the best


def sparkline(points: Sequence[float], low: float, high: float, width: int = WIDTH) -> str:
    """Return a curve as a text of at most `width` block characters.

    >>> sparkline([0.0, 0.5, 1.0], 0.0, 1.0)
    '▁▅█'
    """
    scale = (len(BLOCKS) - 1) / ((high - low) or 1.0)
    every = -(-len(points) // width) or 1
    shown = points[::-every][::-1]  # always includes the latest point
    return "".join(BLOCKS[round((point - low) * scale)] for point in shown)


def is_in_the_table(event: events.Event) -> bool:
    """Return whether a table of the standings shows an event anyway."""
    finished = isinstance(event, events.LearnerLeft) and event.how == events.FINISHED
    return finished or isinstance(event, events.BudgetReplanned | events.WinnerSelected)


class StandingsTable:
    """The learners of a race, the best first, as of the latest call of `look`."""

    def __init__(self, race: RaceState) -> None:
        self._race = race
        self._curves = defaultdict[int, ThinnedCurve](lambda: ThinnedCurve(WIDTH))  # by arm
        self.look()

    def add(self, score: events.ScoreReported) -> None:
        """Add a score to its learner's curve."""
        self._curves[score.arm].add(score.score)

    def look(self) -> None:
        """Copy the data to show, because another thread draws them and must not read the race."""
        self.rows, self._phase = self._race.learners(), self._race.session.phase

    def title(self, elapsed: float, waiting: str) -> str:
        """Return the title: progress, remaining time, and learners that the race waits for."""
        session, (phase, phases) = self._race.session, self._phase
        what = f"phase {phase} of {phases}"
        if session.winner is not None:
            what = f"training {quoted(short_name(session.names[session.winner]))} further"
        trusts = [row.forecast.trust for row in self.rows if row.forecast and not row.departed]
        parts = [
            self._race.progress(elapsed),
            "" if session.over else what,
            f"trust in forecasts {100 * trusts[0]:.0f} %" if trusts else "",
            self._race.time_left(elapsed),
            waiting,
        ]
        return " · ".join(filter(None, parts))

    def columns(self, shown: Sequence[LearnerView]) -> list[Column]:
        """Return the columns of the table for some learners."""
        curves = list(self._curves.items())  # another thread may add to them
        points = {arm: [point.score for point in curve.raw()] for arm, curve in curves}
        known = [score for scores in points.values() for score in scores] or [0.0]
        low, high = min(known), max(known)

        # Full width from the start, so that columns do not move.
        def drawn(width: int) -> list[str]:
            lines = (sparkline(points.get(row.arm, []), low, high, width) for row in shown)
            return [line.ljust(width) for line in lines]

        def numbers(values: Iterable[float]) -> list[str]:
            return ["" if isnan(value) else score_text(value) for value in values]

        states = [self._state_of(row) for row in shown]
        words = [self._word_of(row).ljust(STATE) for row in shown]
        seconds = [f"{short_seconds(row.seconds)} s" for row in shown]
        forecasts = numbers(row.forecast_score for row in shown)
        return [
            Column("learner", [short_name(row.name) for row in shown]),
            Column("curve", drawn(WIDTH), short=("curve", drawn(WIDTH // 2)), left_out=2),
            Column("pulls", [f"{row.pulls:,}" for row in shown], right=True, left_out=1),
            Column("time", seconds, right=True, left_out=4),
            Column("score", numbers(row.score for row in shown), right=True),
            Column("forecast", forecasts, right=True, left_out=3),
            Column("estimate", numbers(row.estimate for row in shown), right=True),
            Column("state", states, short=("state", words)),
        ]

    def _word_of(self, row: LearnerView) -> str:
        return "trained" if self._trains_further(row) else row.state

    def _state_of(self, row: LearnerView) -> str:
        return "trained further" if self._trains_further(row) else row.outcome

    def _trains_further(self, row: LearnerView) -> bool:
        session = self._race.session
        return not session.over and row.arm == session.winner
