"""One program that runs under the guardian: its output as scores, its pauses, its end."""

import json
import os
import select
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple
from uuid import uuid4

from latebloomer.errors import LearnerError
from latebloomer.programs.guardian import ProcessMark, guardian
from latebloomer.programs.missing_score import MissingScore
from latebloomer.programs.output_log import OutputLog
from latebloomer.programs.process_tree import OpenFile, descendants, written_files
from latebloomer.programs.score_file import ScoreFile
from latebloomer.programs.score_reader import Lines, Pattern, Score

CHUNK = 1 << 16  # bytes read at once; more than that waits in the pipe, and the program with it
POLL = 0.002  # seconds between two looks at a file of scores
QUIET = 0.2  # seconds without output after which the program is asked whether it has ended
CLOSED = 1.0  # seconds that a program may run after it has closed its output
SUSPENDED = 1.0  # seconds of one look; more than that, and the race itself was stopped meanwhile
END = 4.0  # seconds to wait for the end of a program
LOOKED_AT = 3  # pauses after which open files are looked at, to know logs from checkpoints


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a learner's program is started, read and kept."""

    name: str  # of the learner
    words: Callable[[int], list[str]]  # the command, for a number of steps
    values: Mapping[str, object]  # values of its own placeholders
    pattern: Pattern | None  # of scores in the output, if they are there
    file: ScoreFile | None  # with the scores, if they are in a file
    env: Mapping[str, str]  # what is added to the environment
    cwd: str
    log: Path
    folder: Path  # for what the program saves
    saves: bool  # whether the program saves itself there
    temporary: bool  # whether log and folder go with the learner
    full_steps: int | None


class Printed(NamedTuple):
    """A score, and how many lines of output there were when it came."""

    score: Score
    line: int


class Program:
    """One program under the guardian: its output as scores, its log, its end."""

    def __init__(
        self,
        recipe: Recipe,
        steps: int,
        log: OutputLog,
        queue: deque[Printed],
        missing: MissingScore,
    ) -> None:
        self.key = uuid4().hex
        self._log, self._pattern, self._file = log, recipe.pattern, recipe.file
        self._folder = recipe.folder if recipe.saves else None
        self._lines, self._queue, self._missing = Lines(), queue, missing
        self._pauses = self._seen_at = 0
        self._seen_open = set[OpenFile]()  # at the pause `_seen_at`
        self._kept_open = set[OpenFile]()  # at two pauses: logs, not checkpoints
        self._ask_at = 0.0  # when to ask next whether the program has ended
        self.code: int | None = None
        self.ended = self.stopped = False
        if self._file is not None:
            self._file.restart()
        log.begin()
        whole = {**os.environ, "PYTHONUNBUFFERED": "1", **recipe.env}
        started = guardian().start(self.key, recipe.words(steps), whole, recipe.cwd)
        self._output, self.pid = started.output, started.process.pid
        self._note_process(started.process)
        place = _process_file(self._log)
        self.close = weakref.finalize(self, _end, self.key, self._output, os.getpid(), place)

    def _note_process(self, process: ProcessMark) -> None:
        place = _process_file(self._log)
        if place is not None:
            try:
                place.write_text(json.dumps(process))
            except OSError:  # a full disk: the guardian still ends the program
                return

    # --- running ---

    def run(self, to_end: bool = False) -> None:
        """Let the program run until it has printed a score, or to its end; then stop it."""
        if self.stopped:
            guardian().resume(self.key)
            self.stopped = False
        closed_for: float | None = None  # seconds since it has closed its output
        while not self.ended and (to_end or not self._queue):
            began = monotonic()
            silent = self._look(closed_for is not None)
            took = min(monotonic() - began, SUSPENDED)
            self._missing.wait(took)
            if closed_for is not None:
                closed_for += took
            elif silent is None:
                closed_for, self._ask_at = 0.0, -inf
            if silent is None or (silent and monotonic() >= self._ask_at):
                self._note_end(None if to_end else closed_for)
        if not self.ended:
            self._pause()

    def ignore_scores(self) -> None:
        """Read no more scores: the output is only shown."""
        self._pattern = self._file = None
        self._missing.found()

    def _look(self, closed: bool) -> bool | None:
        """Wait a moment for output; return whether none came, None if it is closed now."""
        silent: bool | None = True
        if closed:
            sleep(POLL)
        elif select.select([self._output], [], [], POLL if self._file else QUIET)[0]:
            data = os.read(self._output, CHUNK)
            self._take(data)
            silent = False if data else None
        self._read_file()
        return silent

    def _pause(self) -> None:
        guardian().pause(self.key)
        self.stopped = True
        self._pauses += 1
        if self._folder is not None and self._pauses <= LOOKED_AT:
            self._note_open_files()

    def settle(self) -> None:
        """Let the stopped program run until it has closed the files that it is saving.

        A file that was open at an earlier pause as well is a log, which stays open.
        """
        self._note_open_files()
        limit = monotonic() + END
        while (saving := self._open_files() - self._kept_open) and monotonic() < limit:
            guardian().resume(self.key)
            sleep(POLL)
            guardian().pause(self.key)
        self._kept_open |= saving  # for longer than saving takes

    def _note_open_files(self) -> None:
        """Note which files are open now, and which were open at another pause as well."""
        now = self._open_files()
        if self._pauses > self._seen_at:
            self._kept_open |= now & self._seen_open
        self._seen_open, self._seen_at = now, self._pauses

    def _open_files(self) -> set[OpenFile]:
        """Return the files in the folder of the program that it has open for writing."""
        assert self._folder is not None
        inside = f"{self._folder.resolve()}{os.sep}"
        pids = {self.pid, *descendants({self.pid})}
        return {one for one in written_files(pids) if one.path.startswith(inside)}

    def drain(self) -> None:
        """Take what the stopped program has printed so far."""
        while select.select([self._output], [], [], 0)[0]:
            if not (data := os.read(self._output, CHUNK)):
                break
            self._take(data)
        self._read_file()

    def _take(self, data: bytes) -> None:
        self._log.write(data)
        for line in self._lines.add(data):
            self._take_line(line)

    def _take_line(self, line: str) -> None:
        self._log.note(line)
        score = None if self._pattern is None else self._pattern.scores_in(line)
        if score is None:
            self._missing.note(line)
        else:
            self._add(score)

    def _read_file(self) -> None:
        if self._file is not None:
            for score in self._file.new():
                self._add(score)

    def _add(self, score: Score) -> None:
        self._missing.found()
        self._queue.append(Printed(score, self._log.lines))

    # --- its end ---

    def _note_end(self, closed_for: float | None) -> None:
        """Ask whether the program has ended; it may not run for long with its output closed."""
        if closed_for is None:
            self._ask_at = monotonic() + QUIET / 2
        self.code = guardian().code(self.key)
        if self.code is not None:
            self.drain()
            for line in self._lines.rest():
                self._take_line(line)
            self.ended = True
        elif closed_for is not None and self._file is None and closed_for > CLOSED:
            raise LearnerError(
                "the program has closed its output and still runs, so it can print no more "
                "scores: give score_file=, or let it print. Its last lines:\n"
                f"{self._log.ends()}"
            )

    def end(self) -> None:
        """End the program, and wait until all of its processes are gone."""
        self.close()
        limit = monotonic() + END
        while not guardian().is_gone(self.key) and monotonic() < limit:
            sleep(POLL)

    def give_up(self) -> None:
        """End the program from another thread than the one that reads its output."""
        guardian().end(self.key)


def _end(key: str, output: int, pid: int, place: Path | None) -> None:
    if os.getpid() != pid:  # a forked process has neither the guardian nor the output
        return
    guardian().end(key)
    os.close(output)
    mark = None if place is None else _mark_in(place)
    if place is not None and mark is not None and mark.key == key:
        with suppress(OSError):
            place.unlink()


def _process_file(log: OutputLog) -> Path | None:
    """Return the file that has the process of a log's program."""
    return None if log.path is None else log.path.with_suffix(".pid")


_swept: set[Path] = set()  # folders of logs whose leftovers this process has ended


def end_leftovers_in(folder: Path) -> None:
    """End programs of a race that an earlier process of the race has left.

    Its guardian ends them. Only if that was killed as well, they are left: of each there is a file
    next to its log. All of them are ended with the first learner that this process builds, also
    those of learners that will not be trained again.
    """
    if folder not in _swept and folder.is_dir():
        _swept.add(folder)
        marks = map(_mark_in, folder.glob("*.pid"))
        guardian().end_leftovers([mark for mark in marks if mark is not None and mark.is_left])


def end_program_of(log: OutputLog) -> None:
    """End the program that was started before with the same log, if it still runs."""
    place = _process_file(log)
    mark = None if place is None else _mark_in(place)
    if mark is not None and mark.is_running:
        guardian().end_leftovers([mark])


def _mark_in(file: Path) -> ProcessMark | None:
    try:
        return ProcessMark(*json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # there is none, or the disk was full
        return None
