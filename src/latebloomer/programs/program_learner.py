"""Learners that run a program: paused between pulls, or run once for each pull."""

import json
import os
import select
import shutil
import warnings
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from latebloomer.errors import LearnerError
from latebloomer.programs.guardian import guardian
from latebloomer.programs.output_log import OutputLog
from latebloomer.programs.process_tree import descendants, started_at, written_files
from latebloomer.programs.score_file import ScoreFile
from latebloomer.programs.score_reader import Lines, NotANumber, Pattern, Score

LABEL = "program.json"
FOLDER = "folder"
CHUNK = 1 << 16  # bytes read at once; more than that waits in the pipe, and the program with it
POLL = 0.002  # seconds between two looks at a file of scores
QUIET = 0.2  # seconds without output after which the program is asked whether it has ended
CLOSED = 1.0  # seconds that a program may run after it has closed its output
BURST = 5  # scores that arrive together at first: a step takes longer than to read them
END = 4.0  # seconds to wait for the end of a program
CLOSE = 1e-6  # relative difference of a repeated score that is rounding


class Program:
    """One program under the guardian: its output as scores, its log, its end."""

    def __init__(self, recipe: "Recipe", steps: int, log: OutputLog, queue: deque[Score]) -> None:
        self.key = f"{os.getpid()}-{id(log)}"
        self._log, self._pattern, self._file = log, recipe.pattern, recipe.file
        self._lines = Lines()
        self._queue = queue
        self.code: int | None = None
        self.ended = self.stopped = False
        if self._file is not None:
            self._file.restart()
        log.begin()
        whole = {**os.environ, "PYTHONUNBUFFERED": "1", **recipe.env}
        started = guardian().start(self.key, recipe.words(steps), whole, recipe.cwd)
        self._output, self.pid = started.output, started.pid
        self._note_process(started.pid, started.since)
        self.close = weakref.finalize(self, _end, self.key, self._output, os.getpid())

    def _note_process(self, pid: int, since: str | None) -> None:
        place = _process_file(self._log)
        if place is not None:
            try:
                place.write_text(json.dumps([pid, since]))
            except OSError:  # a full disk: the guardian still ends the program
                return

    # --- running ---

    def run(self, to_end: bool = False) -> None:
        """Let the program run until it has printed a score, or to its end; then stop it."""
        if self.stopped:
            guardian().resume(self.key)
            self.stopped = False
        closed_at: float | None = None
        while not self.ended and (to_end or not self._queue):
            wait = POLL if self._file is not None else QUIET
            closed = closed_at is not None
            ready = [] if closed else select.select([self._output], [], [], wait)[0]
            if ready:
                data = os.read(self._output, CHUNK)
                if data:
                    self._take(data)
                else:
                    closed_at = monotonic()
            elif closed:
                sleep(POLL)
            if self._file is not None:
                self._queue.extend(self._file.new())
            if not ready or closed_at is not None:
                self._note_end(closed_at)
        if not self.ended:
            guardian().pause(self.key)
            self.stopped = True

    def run_for(self, seconds: float) -> None:
        """Let a stopped program run for a moment; what it prints waits in the pipe."""
        guardian().resume(self.key)
        sleep(seconds)
        guardian().pause(self.key)

    def drain(self) -> None:
        """Take what the stopped program has printed so far."""
        while select.select([self._output], [], [], 0)[0]:
            if not (data := os.read(self._output, CHUNK)):
                return
            self._take(data)
        if self._file is not None:
            self._queue.extend(self._file.new())

    def writes_in(self, folder: Path) -> bool:
        """Return whether the stopped program has a file of a folder open for writing."""
        inside = f"{folder.resolve()}{os.sep}"
        pids = {self.pid, *descendants({self.pid})}
        return any(path.startswith(inside) for path in written_files(pids))

    def _take(self, data: bytes) -> None:
        self._log.write(data)
        for line in self._lines.add(data):
            self._take_line(line)

    def _take_line(self, line: str) -> None:
        self._log.note(line)
        if self._pattern is not None and (score := self._pattern.scores_in(line)) is not None:
            self._queue.append(score)

    def _note_end(self, closed_at: float | None) -> None:
        self.code = guardian().code(self.key)
        if self.code is None:
            if closed_at is not None and self._file is None and monotonic() > closed_at + CLOSED:
                raise LearnerError(
                    "the program has closed its output and still runs, so it can print no more "
                    "scores: give score_file=, or let it print. Its last lines:\n"
                    f"{self._log.ends()}"
                )
            return
        while select.select([self._output], [], [], 0)[0] and (
            data := os.read(self._output, CHUNK)
        ):
            self._take(data)
        for line in self._lines.rest():
            self._take_line(line)
        if self._file is not None:
            self._queue.extend(self._file.new())
        self.ended = True

    def end(self) -> None:
        """End the program, and wait until it is gone."""
        self.close()
        limit = monotonic() + END
        while not guardian().is_gone(self.key) and monotonic() < limit:
            sleep(POLL)
        if (place := _process_file(self._log)) is not None:
            with suppress(OSError):
                place.unlink()


def _end(key: str, output: int, pid: int) -> None:
    if os.getpid() == pid:  # a forked process has neither
        guardian().end(key)
        os.close(output)


def _process_file(log: OutputLog) -> Path | None:
    """Return the file that has the process of a log's program."""
    return None if log.path is None else log.path.with_suffix(".pid")


def end_leftover(log: OutputLog) -> None:
    """End a program that this learner, or an earlier process of the race, has started before."""
    place = _process_file(log)
    if place is None or not place.exists():
        return
    try:
        pid, since = json.loads(place.read_text())
    except (OSError, ValueError):
        return
    if started_at(pid) == since:
        guardian().end_leftover(pid, since)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a learner's program is started, read and kept."""

    words: Callable[[int], list[str]]  # the command, for a number of steps
    pattern: Pattern | None  # of scores in the output, if they are there
    file: ScoreFile | None  # with the scores, if they are in a file
    env: Mapping[str, str]  # what is added to the environment
    cwd: str | None
    log: Path
    folder: Path  # for what the program saves
    saves: bool  # whether the program saves itself there
    temporary: bool  # whether log and folder go with the learner
    full_steps: int | None


class CommandLearner(ABC):
    """What both ways to run a program share."""

    steps = 0

    @abstractmethod
    def pull(self, steps: int = 1) -> float:
        """Train that many more steps and return the score."""

    def __init__(self, recipe: Recipe) -> None:
        self.full_steps, self.log, self.folder = recipe.full_steps, recipe.log, recipe.folder
        self._recipe, self._output = recipe, OutputLog(recipe.log)
        self._score: float | None = None
        self._queue: deque[Score] = deque()  # printed, and not asked for yet
        if recipe.saves:
            self.save, self.load = self._save, self._load
        if recipe.temporary:
            weakref.finalize(self, shutil.rmtree, recipe.log.parent, ignore_errors=True)

    def _start(self, steps: int) -> Program:
        end_leftover(self._output)
        if self._recipe.saves:
            if not self.steps:  # what another process has left there is of later steps
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
        return Program(self._recipe, steps, self._output, self._queue)

    def _save(self, folder: Path) -> None:
        if self.folder.exists():
            shutil.copytree(self.folder, Path(folder) / FOLDER)
        (Path(folder) / LABEL).write_text(json.dumps(self._label()))

    def _load(self, folder: Path) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if (Path(folder) / FOLDER).exists():
            shutil.copytree(Path(folder) / FOLDER, self.folder)
        self._restore(json.loads((Path(folder) / LABEL).read_text()))

    def _label(self) -> dict[str, Any]:
        return {"steps": self.steps, "score": self._score}

    def _restore(self, label: dict[str, Any]) -> None:
        self.steps, self._score = label["steps"], label["score"]

    def _read(self, run: Callable[[], None]) -> None:
        """Run the program; a text where the score should be is an error that shows it."""
        try:
            run()
        except NotANumber as error:
            raise LearnerError(
                f"the score is {error.text!r} in the line {error.line!r}, and that is not a "
                "number: correct score="
            ) from None

    def _no_score(self, code: int) -> LearnerError:
        """Return the error for a program that has ended without a score."""
        lines = list(self._output.last)
        last = self._output.ends()
        if code:
            return LearnerError(f"{_ended(code)}. Its last lines:\n{last}")
        if self._recipe.file is not None:
            return LearnerError(
                f"the program ended and {self._recipe.file.path} has no new row with a score. "
                f"Its last lines:\n{last}"
            )
        numbers = [line for line in lines[-5:] if any(c.isdigit() for c in line)]
        hint = f"{len(numbers)} of them have numbers" if numbers else "none of them has a number"
        pattern = self._recipe.pattern
        assert pattern is not None
        said = f"no line of its output has the score {pattern.text!r}"
        if pattern.has_steps:
            said += " with a step"
        return LearnerError(f"{said}. Its last lines ({hint}):\n{last}\nCorrect score=.")


class ProgramLearner(CommandLearner):
    """A program that is stopped between its pulls."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self._program: Program | None = None
        self._differs = False  # whether repeated scores were others, which is reported once
        self._past: dict[int, float] = {}  # scores by step, where the program numbers them

    def _save(self, folder: Path) -> None:
        self._let_write()
        super()._save(folder)

    def _let_write(self) -> None:
        """Let a program that was stopped while it saves itself complete its files."""
        program, limit = self._program, monotonic() + END
        if program is None or program.ended:
            return
        while program.writes_in(self.folder) and monotonic() < limit:
            program.run_for(POLL)
        self._read(program.drain)  # its files may be of the step that it has printed last

    @property
    def pid(self) -> int | None:
        """Number of the program's process; None if it does not run."""
        return None if self._program is None else self._program.pid

    def pull(self, steps: int = 1) -> float:
        """Let the program run until it has printed the scores of that many more steps."""
        last = self.steps + steps
        if self.full_steps is not None:
            last = min(last, self.full_steps)
        begun = self.steps
        while self.steps < last and self._has_score(last):
            self._note(self._queue.popleft())
        if self.steps == begun:
            raise StopIteration
        assert self._score is not None
        return self._score

    def _has_score(self, last: int) -> bool:
        """Let the program print until there is a score; return False if it has ended."""
        if self._queue:
            return True
        if self._program is None:
            self._program = self._start(last)
        program = self._program
        if not program.ended:
            self._read(program.run)
            self._check_burst()
        if not self._queue:
            self._program = None
            program.end()
            if program.code or not self.steps:
                raise self._no_score(program.code or 0)
        return bool(self._queue)

    def _note(self, score: Score) -> None:
        step = self.steps + 1 if score.step is None else score.step
        if step <= self.steps:  # repeated after a restart
            known = self._past.get(step)
            exact = known is None or abs(known - score.value) <= CLOSE * max(1.0, abs(known))
            if not exact and not self._differs:
                self._differs = True
                warnings.warn(
                    f"after its restart the program printed {score.value:g} for step {step}, and "
                    f"{known:g} before: it does not continue exactly",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return
        self.steps, self._score = step, score.value
        if score.step is not None:
            self._past[step] = score.value

    def _check_burst(self) -> None:
        if not self.steps and len(self._queue) >= BURST:
            warnings.warn(
                f"the first {len(self._queue)} scores arrived at once, so the program trains "
                "ahead of its pulls. If it keeps its output back, start it with stdbuf -oL",
                RuntimeWarning,
                stacklevel=2,
            )

    def _label(self) -> dict[str, Any]:
        return super()._label() | {"past": sorted(self._past.items()), "queue": [*self._queue]}

    def _restore(self, label: dict[str, Any]) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None
        super()._restore(label)
        self._past = dict(map(tuple, label["past"]))
        self._queue = deque(Score(*score) for score in label["queue"])

    def finish(self, write: Callable[[str], Any] = print) -> None:
        """Let the program run to its end; its further output goes to `write`, line by line."""
        program, self._program = self._program, None
        if program is not None:
            self._output.echo = write
            self._read(lambda: program.run(to_end=True))
            program.end()


class UntilLearner(CommandLearner):
    """A program that is run once for each pull, up to a number of steps."""

    def pull(self, steps: int = 1) -> float:
        """Run the program for that many more steps, and return its last score."""
        last = self.steps + steps
        if self.full_steps is not None:
            last = min(last, self.full_steps)
        if last <= self.steps:
            raise StopIteration
        self._queue.clear()
        program = self._start(last)
        try:
            self._read(lambda: program.run(to_end=True))
        finally:
            program.end()
        if program.code or not self._queue:
            raise self._no_score(program.code or 0)
        self.steps, self._score = last, self._queue[-1].value
        return self._score

    def finish(self, write: Callable[[str], Any] = print) -> None:
        """Run the program up to the full training."""
        if self.full_steps is not None and self.steps < self.full_steps:
            self._output.echo = write
            self.pull(self.full_steps - self.steps)


def _ended(code: int) -> str:
    if code < 0:
        return f"the program was ended by signal {-code}"
    return f"the program ended with exit code {code}"
