"""The screenshots of docs/watch.md: the demo's twelve models, watched in a headless Chromium.

python docs/tools/watch_pictures.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]

from race_digits import digits, models  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from latebloomer import race  # noqa: E402
from latebloomer.integrations.sklearn import SklearnLearner  # noqa: E402
from latebloomer.session.events import ScoreReported  # noqa: E402
from tests.helpers.chromium import Chromium  # noqa: E402

AT = 75  # the pull of the race at which it is looked at


class Photographer:
    """Looks at a race from its own callback, so that it stands still meanwhile."""

    def __init__(self, journal: Path) -> None:
        self._journal, self._browser = journal, Chromium()

    def __call__(self, event: Any, view: Any) -> None:
        if isinstance(event, ScoreReported) and view.spent == AT:
            self.take("watch-live.png", 1100, 1180)
            self.take("watch-phone.png", 360, 1180, dark=True)

    def take(self, name: str, width: int, height: int, dark: bool = False) -> None:
        words = [sys.executable, "-m", "latebloomer", "watch", str(self._journal)]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert server.stdout is not None
        try:
            self.photograph(server.stdout.readline().strip(), name, width, height, dark)
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()

    def photograph(
        self, address: str, name: str, width: int, height: int, dark: bool = False
    ) -> None:
        page = self._browser.page(width=width, height=height, dark=dark)
        page.open(address)
        page.screenshot(ROOT / "docs" / name, whole=False)
        page.close()

    def close(self) -> None:
        self._browser.close()


def main() -> None:
    X, y, (train, validate), _, _ = digits()
    rows = {"batch": None, "validation": (X[validate], y[validate]), "random_state": 0}
    given = {
        name: SklearnLearner(model, X[train], y[train], **rows) for name, model in models().items()
    }
    with tempfile.TemporaryDirectory() as place, threadpool_limits(1):
        journal = Path(place) / "digits.db"
        camera = Photographer(journal)
        verdict = race(given, trainings=3, journal=journal, progress=False, callbacks=[camera])
        file = verdict.report(Path(place) / "race.html")
        camera.photograph(file.as_uri(), "watch-report.png", 1100, 1180)
        camera.close()


if __name__ == "__main__":
    main()
