"""A page that is open in any number of tabs: drawn once, and changed by small messages.

Each change has a number. A tab sends the last one it has received and gets those after it, written
once for all tabs. A tab that is too far behind, or comes from another server, gets the whole page.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from html import escape
from threading import Lock
from time import perf_counter
from typing import Any

from latebloomer.page.race_html import RaceDrawing
from latebloomer.page.svg import curve_paths, describe_curves, path_of
from latebloomer.watch.followed_race import FollowedRace

INTERVAL = 0.5  # seconds between two reads of a journal
KEPT = 64  # messages for tabs that come back
MOST_ROWS = 100  # of the table of learners
Message = dict[str, Any]


class LivePage:
    """Number the changes of a content and keep the latest."""

    def __init__(self, content: RaceContent | ListContent, server: str) -> None:
        self.content = content
        self._server = server  # a name that another server does not have
        self._number = 0
        self._messages: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._due = 0.0  # when to look again

    def is_due(self) -> bool:
        """Return whether it is time to look for changes; True for one caller only."""
        now = perf_counter()
        if now < self._due:
            return False
        self._due = now + INTERVAL
        return True

    @property
    def seen(self) -> str:
        """Number of the last change, with the name of this server."""
        return f"{self._server}-{self._number}"

    def update(self) -> None:
        """Look for changes."""
        with self._lock:
            self._update()

    def _update(self) -> None:
        changes = self.content.changes()
        if self.content.hurries:
            self._due = 0.0
        if changes is not None:
            self._number += 1
            self._messages.append((self._number, json.dumps(changes, separators=(",", ":"))))

    def body(self) -> tuple[str, str]:
        """Return the page and the number of the last change in it."""
        with self._lock:
            self._update()
            return self.content.body(), self.seen

    def since(self, seen: str) -> tuple[list[str], str]:
        """Return the messages that a tab has not received, and the number of the last one."""
        with self._lock:
            server, _, number = seen.partition("-")
            last = int(number) if server == self._server and number.isdigit() else -1
            if last == self._number:
                return [], seen
            missing = [text for k, text in self._messages if k > last]
            if last < 0 or len(missing) != self._number - last:
                missing = [json.dumps({"whole": self.content.body()})]
            return missing, self.seen


class RaceContent:
    """A race, drawn; or why it cannot be read."""

    def __init__(self, race: FollowedRace) -> None:
        self.race = race
        self._drawn: RaceDrawing | None = None
        self._sent: dict[str, Any] = {}  # places and rows as tabs have them
        self._grown: dict[int, tuple[int, int]] = {}  # of each curve: width and points
        self._wrong = ""

    def body(self) -> str:
        """Return the whole page."""
        if self._drawn is None:
            return f"<h1>Nothing to show</h1><p>{escape(self._wrong)}</p>"
        return self._drawn.body()

    @property
    def hurries(self) -> bool:
        """True if there is more to read immediately."""
        return not self.race.caught_up and not self.race.wrong

    def changes(self) -> Message | None:
        """Return what has changed since the last call; None if nothing has."""
        self.race.update()
        if self.race.state is None:
            changed, self._wrong = self.race.wrong != self._wrong, self.race.wrong
            return {"whole": self.body()} if changed else None
        before, page = self._drawn, self.race.page()
        if before is not None and before.page is page:  # it is over
            return None
        drawn = self._drawn = RaceDrawing(page, before, MOST_ROWS)
        rows = drawn.rows()
        message: Message = {
            "html": self._new("html", drawn.pieces() | drawn.marks()),
            "rows": self._cells(rows),
            "look": self._new("look", drawn.looks),
            **self._whole("order", list(rows)),
            **self._whole("box", drawn.view.box),
            **self._whole("label", describe_curves(page)),
            **self._curves(drawn),
        }
        if before is None:
            return {"whole": drawn.body()}
        return {name: value for name, value in message.items() if value} or None

    def _new(self, kind: str, values: dict[Any, str]) -> dict[Any, str]:
        before = self._sent.get(kind, {})
        self._sent[kind] = values
        return {key: text for key, text in values.items() if before.get(key) != text}

    def _cells(self, rows: dict[int, list[str]]) -> dict[int, dict[int, str]]:
        """Return the cells of each row that are new."""
        before = self._sent.get("rows", {})
        self._sent["rows"] = rows
        changed = {arm: cells for arm, cells in rows.items() if before.get(arm) != cells}
        return {
            arm: {
                k: cell
                for k, cell in enumerate(cells)
                if arm not in before or before[arm][k] != cell
            }
            for arm, cells in changed.items()
        }

    def _whole(self, kind: str, value: Any) -> Message:
        same = self._sent.get(kind) == value
        self._sent[kind] = value
        return {} if same else {kind: value}

    def _curves(self, drawn: RaceDrawing) -> Message:
        """Return points to add to curves, and curves to draw again because they were thinned."""
        grow: dict[int, list[str]] = {}
        draw: dict[int, str] = {}
        for one in drawn.page.learners:
            arm, curve = one.arm, drawn.page.curves[one.arm]
            width, points = self._grown.get(arm, (0, 0))
            if (width, points) == (curve.width, len(curve)):
                continue
            if width != curve.width or points < 2:
                draw[arm] = curve_paths(one, curve, drawn.view, drawn.looks[arm], drawn.raw)
            else:
                faint = path_of(curve.raw(points), drawn.view, more=True) if drawn.raw else ""
                grow[arm] = [path_of(curve.smoothed(points), drawn.view, more=True), faint]
            self._grown[arm] = curve.width, len(curve)
        return {"grow": grow, "draw": draw}


class ListContent:
    """A page that is one piece of HTML."""

    hurries = False

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._text = ""

    def body(self) -> str:
        return f'<div id="races">{self._text}</div>'

    def changes(self) -> Message | None:
        text = self._draw()
        same, self._text = text == self._text, text
        return None if same else {"html": {"races": text}}
