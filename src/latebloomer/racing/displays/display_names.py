"""The choice of a display, by the call and by where the output goes."""

from collections.abc import Callable

from latebloomer._util.console import display_mode
from latebloomer.racing.displays.display import Display, NoDisplay
from latebloomer.racing.displays.live_table import LiveTable
from latebloomer.racing.displays.notebook import NotebookOutput
from latebloomer.racing.displays.plain_lines import PlainLines
from latebloomer.racing.race_state import RaceState

DISPLAYS: dict[str, Callable[[RaceState], Display]] = {
    "notebook": NotebookOutput,
    "live": LiveTable,
    "lines": PlainLines,
}


def make_display(progress: bool, race: RaceState) -> Display:
    """Return the display of a race; `progress` is the argument of `race`."""
    return (DISPLAYS[display_mode()] if progress else NoDisplay)(race)
