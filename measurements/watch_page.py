"""What the live page costs: the first view of a race, and each update after it.

    python -m measurements.watch_page [--quick]

Synthetic races by `foresight` of 10, 100 and 1,000 learners, half of their budget spent. An update
is what a tab receives after 20 more pulls. *First page* is the server's CPU time until the page of
a journal that it has not read before, *read* until it has read all of it. A browser's first paint
is in wall-clock time, if a Chromium is installed.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

from latebloomer.page.race_html import page_file
from latebloomer.policies.registry import make_policy
from latebloomer.racing.journal.files import create
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.settings import Settings
from latebloomer.session.events import Created, ScoreReported
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import LivePage
from latebloomer.watch.race_content import RaceContent

LEARNERS, PULLS = (10, 100, 1000), (1_000, 10_000, 100_000, 1_000_000)
UPDATES, EACH = 9, 20
COLUMNS = (
    "learners", "pulls", "first page, ms", "read, s", "first paint, ms", "page, kB", "update, ms",
    "the longest, ms", "update, kB",
)  # fmt: skip


class Written:
    """A journal written by a race without learners."""

    def __init__(self, path: Path, arms: int, pulls: int) -> None:
        settings = Settings(policy=make_policy("foresight"), budget=2 * pulls)
        created = Created("race", settings.as_dict(), tuple(f"learner {i}" for i in range(arms)))
        self._session, self._rng = RaceState(created).session, random.Random(0)
        self._journal, self._arms = create(path, created), arms

    def pull(self, count: int) -> None:
        reported = []
        for _ in range(count):
            arm = self._session.ask()
            n = self._session.pulls_of(arm) + 1
            best = 0.5 + 0.5 * arm / self._arms
            score = best * n / (n + 20 + 50 * best) + self._rng.gauss(0, 0.01)
            self._session.tell(arm, score)
            reported.append(ScoreReported(arm, score, 0.001))
        self._journal.append(*reported)

    def close(self) -> None:
        self._journal.close()


def measured(arms: int, pulls: int, folder: Path, browser: Any) -> str:
    """Return one row of the table."""
    path = folder / f"{arms}-{pulls}.db"
    written = Written(path, arms, pulls)
    for _ in range(0, pulls, 10_000):
        written.pull(min(10_000, pulls))
    live = LivePage(RaceContent(FollowedRace(path)), "bench")
    began = process_time()
    live.body()
    first = process_time() - began
    while live.content.hurries:
        live.update()
    read = process_time() - began
    body, seen = live.body()
    times, sizes = [], []
    for _ in range(UPDATES):
        written.pull(EACH)
        began = process_time()
        live.update()
        times.append(process_time() - began)
        messages, seen = live.since(seen)
        sizes.append(sum(map(len, messages)))
    paint = "" if browser is None else f"{first_paint(path, browser):.0f}"
    written.close()
    cells = [f"{arms:,}", f"{pulls:,}", f"{1e3 * first:.0f}", f"{read:.1f}", paint,
             f"{len(body) / 1e3:.0f}", f"{1e3 * statistics.median(times):.0f}",
             f"{1e3 * max(times):.0f}", f"{statistics.median(sizes) / 1e3:.1f}"]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def first_paint(path: Path, browser: Any) -> float:
    """Return the milliseconds until the first content, in a new tab of a new server."""
    server = subprocess.Popen(
        [sys.executable, "-m", "latebloomer", "watch", str(path)], stdout=subprocess.PIPE,
        text=True, env={**os.environ, "LATEBLOOMER_WATCH_TOKEN": "0123456789abcdef"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = next(w for w in server.stdout.readline().split() if w.startswith("http"))
        page = browser.page()
        page.open(address)
        paints = "performance.getEntriesByName('first-contentful-paint')"
        page.wait_for(f"{paints}.length > 0")
        found = float(page.value(f"{paints}[0].startTime"))
        page.close()
        return found
    finally:
        server.terminate()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def chromium() -> Any:
    """Return the browser of the tests, or None if there is none."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
    from chromium import CHROMIUM, Chromium

    return None if CHROMIUM is None else Chromium()


def main(quick: bool) -> None:
    browser = chromium()
    script = len(page_file("watch.js"))
    print(f"style {len(page_file('race_page.css')) / 1e3:.1f} kB, script {script / 1e3:.1f} kB\n")
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory() as place:
        for arms in LEARNERS:
            for pulls in PULLS[: 2 if quick else None]:
                print(measured(arms, pulls, Path(place), browser), flush=True)
    if browser is not None:
        browser.close()


if __name__ == "__main__":
    main("--quick" in sys.argv)
