"""One race as the content of a live page: the whole page, and then differences."""

from collections.abc import Mapping
from html import escape
from typing import Any

from latebloomer.page.curve_chart import curve_paths, describe_curves, path_of
from latebloomer.page.race_html import RaceDrawing
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import Message

MOST_ROWS = 100  # maximum rows in the table of learners


class RaceContent:
    """The drawn page of a race, or the reason why it cannot be read."""

    def __init__(self, race: FollowedRace) -> None:
        self.race = race
        self._drawn: RaceDrawing | None = None
        self._sent: Message = {}  # pieces that tabs already have
        # Bin width and number of points of each curve.
        self._grown: dict[int, tuple[int, int]] = {}
        self._wrong = ""

    def body(self) -> str:
        """Return the whole page."""
        if self._drawn is None:
            return f"<h1>Nothing to show</h1><p>{escape(self._wrong)}</p>"
        return self._drawn.body()

    @property
    def hurries(self) -> bool:
        """True if there is more to read without waiting."""
        return not self.race.caught_up and not self.race.wrong

    def changes(self) -> Message | None:
        """Return the changes since the last call; None if there are none."""
        self.race.update()
        if self.race.state is None:
            changed, self._wrong = self.race.wrong != self._wrong, self.race.wrong
            return {"whole": self.body()} if changed else None
        before, page = self._drawn, self.race.page()
        if before is not None and before.page is page:  # the race is over
            return None
        drawn = self._drawn = RaceDrawing(page, before, MOST_ROWS)
        rows = drawn.rows()
        shown: Message = {
            "html": drawn.pieces() | drawn.marks(),
            "rows": {arm: dict(enumerate(cells)) for arm, cells in rows.items()},
            "look": drawn.looks,
            "order": list(rows),
            "box": drawn.view.box,
            "label": describe_curves(page),
        }
        message = _different(shown, self._sent) | self._curves(drawn)
        self._sent = shown
        if before is None:
            return {"whole": drawn.body()}
        return {name: value for name, value in message.items() if value} or None

    def _curves(self, drawn: RaceDrawing) -> Message:
        """Return points to add to curves, and whole curves that were thinned again."""
        grow: dict[int, list[str]] = {}
        draw: dict[int, str] = {}
        for learner in drawn.page.learners:
            arm, curve = learner.arm, drawn.page.curves[learner.arm]
            width, points = self._grown.get(arm, (0, 0))
            if (width, points) == (curve.width, len(curve)):
                continue
            view, look = drawn.view, drawn.looks[arm]
            if width != curve.width or points < 2:
                draw[arm] = curve_paths(learner, curve, view, look, drawn.raw)
            else:
                faint = path_of(curve.raw(points), view, more=True) if drawn.raw else ""
                grow[arm] = [path_of(curve.smoothed(points), view, more=True), faint]
            self._grown[arm] = curve.width, len(curve)
        return {"grow": grow, "draw": draw}


def _different(new: Mapping[Any, Any], old: Mapping[Any, Any]) -> Message:
    """Return the new or changed entries of nested dicts.

    >>> _different({"a": {1: "x", 2: "y"}, "b": "z"}, {"a": {1: "x", 2: "w"}, "b": "z"})
    {'a': {2: 'y'}}
    """
    return {
        key: _different(value, old.get(key, {})) if isinstance(value, dict) else value
        for key, value in new.items()
        if key not in old or old[key] != value
    }
