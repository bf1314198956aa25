"""The display as plain lines on stderr: for a log, a pipe, or a terminal without a cursor."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from latebloomer._util.console import line_width
from latebloomer._util.text import printable, quoted, score_text, short_name, wrapped
from latebloomer.racing.displays import display
from latebloomer.racing.displays.display import Display
from latebloomer.racing.race_state import RaceState
from latebloomer.session.events import Dropped, PullStarted, ScoreReported


class PlainLines(Display):
    """Print which learners are dropped and, from time to time, which learner leads."""

    def __init__(self, race: RaceState, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(race, now)
        self._said = now()  # time of the latest line

    def say(self, text: str) -> None:
        """Print a line."""
        print(wrapped(printable(text), line_width(sys.stderr)), file=sys.stderr, flush=True)

    def _on_score(self, score: ScoreReported) -> None:
        now = self.now()
        if now - self._said >= display.EVERY:
            self.say(self._leader())
            self._said = now

    def _on_drop(self, drop: Dropped) -> None:
        view = self.race.session.explain(drop.arm)
        self.say(f"{quoted(short_name(view.name))}: {view.why}")
        self._said = self.now()

    def _leader(self) -> str:
        session, best = self.race.session, self.race.learners()[0]
        verb = "leads" if session.winner is None else "is selected and trained further,"
        at = self.race.progress(self.clock.elapsed)
        score = f"score {score_text(best.score)}"
        if best.forecast_score == best.forecast_score:
            score += f", forecast {score_text(best.forecast_score)}"
        time_left = self.race.time_left(self.clock.elapsed)
        return f"{at}: {quoted(short_name(best.name))} {verb} with {score}; {time_left}"

    def _is_worth_saying(self, pull: PullStarted, now: float) -> bool:
        """Return whether a pull is longer than the learner's others and no line is recent.

        If so, the time of the latest line becomes now.
        """
        pace = self.race.seconds[pull.arm] / max(1, pull.n - 1)
        if now - self._said < display.EVERY or now - pull.at < 2 * pace:
            return False
        self._said = now
        return True

    def _show_waiting(self) -> None:
        self.say(self.waiting)
