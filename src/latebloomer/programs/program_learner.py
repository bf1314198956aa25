"""Learners that run a program: paused between pulls, or run once for each pull."""

import json
import shlex
import shutil
import warnings
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from latebloomer._util.text import near
from latebloomer.errors import LearnerError
from latebloomer.programs.missing_score import MissingScore, no_score_in
from latebloomer.programs.output_log import OutputLog
from latebloomer.programs.running_program import (
    Printed,
    Program,
    Recipe,
    end_leftovers_in,
    end_program_of,
)
from latebloomer.programs.score_reader import NotANumber, Score

LABEL = "program.json"
FOLDER = "folder"
BURST = 5  # scores that arrive together at first: a step takes longer than to read them
CLOSE = 1e-6  # relative difference of a repeated score that is rounding


class CommandLearner(ABC):
    """Base of learners that run a program, in either of the two ways below."""

    steps = 0

    @abstractmethod
    def pull(self, steps: int = 1) -> float:
        """Train that many more steps and return the score."""

    @abstractmethod
    def finish(self, write: Callable[[str], Any] = print) -> None:
        """Let the program complete its training."""

    def __init__(self, recipe: Recipe) -> None:
        self.full_steps, self.log, self.folder = recipe.full_steps, recipe.log, recipe.folder
        self._recipe, self._output = recipe, OutputLog(recipe.log)
        self._score: float | None = None
        self._queue: deque[Printed] = deque()  # scores that no pull has asked for yet
        self._program: Program | None = None  # that runs, or is paused
        self._missing = MissingScore(
            repr(recipe.name), self._output, recipe.pattern, recipe.file, self._warn
        )
        if recipe.saves:
            self.save, self.load = self._save, self._load
        if recipe.temporary:
            weakref.finalize(self, shutil.rmtree, recipe.log.parent, ignore_errors=True)
        else:
            end_leftovers_in(recipe.log.parent)

    @property
    def about(self) -> dict[str, str]:
        """What the verdict shows of the program: its command, its values and its places."""
        words, values = self._recipe.words(self.steps), self._recipe.values
        is_shell = words[:2] == ["sh", "-c"] and len(words) == 3
        told = {"Program": words[2] if is_shell else shlex.join(words)}
        if values:
            told["Settings"] = ", ".join(f"{name}={value}" for name, value in values.items())
        told["Runs in"] = near(Path(self._recipe.cwd))
        told["Log"] = near(self.log)
        if self._recipe.saves:
            told["Folder"] = near(self.folder)
        return told

    def give_up(self) -> str:
        """End the program of a pull that took too long, from another thread; return its output."""
        if (program := self._program) is not None:
            program.give_up()
        return f"Its last lines:\n{self._output.ends()}{self._whole_output()}"

    def _whole_output(self) -> str:
        """Return where all of the output is, if it is kept."""
        return "" if self._recipe.temporary else f"\nAll of its output is in {near(self.log)}"

    def _warn(self, text: str) -> None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _start(self, steps: int) -> Program:
        end_program_of(self._output)
        if self._recipe.saves:
            if not self.steps:  # what another process has left there is of later steps
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
        return Program(self._recipe, steps, self._output, self._queue, self._missing)

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
        return {
            "steps": self.steps,
            "score": self._score,
            "lines": self._output.lines,
            "waiting": [*self._output.waiting],
        }

    def _restore(self, label: dict[str, Any]) -> None:
        self.steps, self._score = label["steps"], label["score"]
        self._output.restore(label["lines"], label["waiting"])

    def _read(self, run: Callable[[], None]) -> None:
        """Run the program; raise an error that shows the text if a score is not a number."""
        try:
            run()
        except NotANumber as error:
            raise LearnerError(
                f"the score is {error.text!r} in the line {error.line!r}, and that is not a "
                "number: correct score="
            ) from None

    def _no_score(self, code: int) -> LearnerError:
        """Return the error for a program that has ended without a score."""
        if code:
            return LearnerError(
                f"{_ended(code)}. Its last lines:\n{self._output.ends()}{self._whole_output()}"
            )
        if self._recipe.file is not None:
            return LearnerError(
                f"the program ended and {self._recipe.file.path} has no new row with a score. "
                f"Its last lines:\n{self._output.ends()}{self._whole_output()}"
            )
        assert self._recipe.pattern is not None
        error = LearnerError(no_score_in(self._output, self._recipe.pattern, self._missing))
        error.final = True  # the program has succeeded: it would print the same again
        return error

    def _need_success(self, program: Program) -> None:
        """Raise an error if the winner's program, which ran to its end, has failed."""
        if program.code:
            raise LearnerError(
                f"{_ended(program.code)} after the race, whose verdict stands. All its output is "
                f"in {near(self.log)}"
            )


class ProgramLearner(CommandLearner):
    """A program that is stopped between its pulls."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self._over = False  # whether the program has ended
        self._differs = False  # whether a repeated score was different; this is reported once
        self._past: dict[int, float] = {}  # scores by step, where the program numbers them

    def _save(self, folder: Path) -> None:
        if self._program is not None and not self._program.ended:
            self._program.settle()
            self._read(self._program.drain)  # its files may be of the step that it printed last
        super()._save(folder)

    def __reduce__(self) -> NoReturn:
        raise LearnerError(f"a program has no pickle; what it has written is in {near(self.log)}")

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
            self._program, self._over = None, True
            program.end()
            if program.code or not self.steps:
                raise self._no_score(program.code or 0)
        return bool(self._queue)

    def _note(self, printed: Printed) -> None:
        score = printed.score
        self._output.forget(printed.line)
        step = self.steps + 1 if score.step is None else score.step
        if step <= self.steps:  # repeated after a restart
            known = self._past.get(step)
            exact = known is None or abs(known - score.value) <= CLOSE * max(1.0, abs(known))
            if not exact and not self._differs:
                self._differs = True
                self._warn(
                    f"{self._recipe.name!r} printed {score.value:g} for step {step} after its "
                    f"restart, and {known:g} before: it does not continue exactly"
                )
            return
        self.steps, self._score = step, score.value
        if score.step is not None:
            self._past[step] = score.value

    def _check_burst(self) -> None:
        if not self.steps and len(self._queue) >= BURST:
            self._warn(
                f"the first {len(self._queue)} scores of {self._recipe.name!r} arrived at once, "
                "so the program trains ahead of its pulls. If it keeps its output back, start it "
                "with `stdbuf -oL`"
            )

    def _label(self) -> dict[str, Any]:
        queue = [[*printed.score, printed.line] for printed in self._queue]
        return super()._label() | {"past": sorted(self._past.items()), "queue": queue}

    def _restore(self, label: dict[str, Any]) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None
        super()._restore(label)
        self._over = False
        self._past = dict(map(tuple, label["past"]))
        self._queue.clear()
        self._queue += [Printed(Score(value, step), line) for value, step, line in label["queue"]]

    def finish(self, write: Callable[[str], Any] = print) -> None:
        """Let the program run to its end.

        `write` gets each line that follows the last score of the race.
        """
        if self._program is None and not self._over:
            self._catch_up()
        program, self._program = self._program, None
        self._output.echo(write)
        if program is not None:
            self._over = True
            program.ignore_scores()
            if not program.ended:
                program.run(to_end=True)
            program.end()
            self._need_success(program)

    def _catch_up(self) -> None:
        """Start a program that was saved, up to its first line after a score that counts."""
        while self._has_score(self.steps + 1):
            step = self._queue[0].score.step
            if step is None or step > self.steps:
                return
            self._note(self._queue.popleft())


class UntilLearner(CommandLearner):
    """A program that is run once for each pull, up to a number of steps."""

    def pull(self, steps: int = 1) -> float:
        """Run the program for that many more steps, and return its last score."""
        last = self.steps + steps
        if self.full_steps is not None:
            last = min(last, self.full_steps)
        if last <= self.steps:
            raise StopIteration
        program = self._run(last)
        if program.code or not self._queue:
            raise self._no_score(program.code or 0)
        printed = self._queue[-1]
        self.steps, self._score = last, printed.score.value
        self._output.forget(printed.line)
        return self._score

    def _run(self, last: int, reads_scores: bool = True) -> Program:
        """Run the program up to a step, and return it when it has ended."""
        self._queue.clear()
        program = self._program = self._start(last)
        if not reads_scores:
            program.ignore_scores()
        try:
            self._read(lambda: program.run(to_end=True))
        finally:
            self._program = None
            program.end()
        return program

    def finish(self, write: Callable[[str], Any] = print) -> None:
        """Run the program up to the full training; `write` gets each line of it."""
        if self.full_steps is None:
            raise LearnerError(
                "the length of a full training is unknown, so the program cannot be trained to "
                "its end: give the command full_steps=, its number of steps"
            )
        self._output.echo(write)
        if self.steps < self.full_steps:
            program = self._run(self.full_steps, reads_scores=False)
            self._need_success(program)
            self.steps = self.full_steps


def _ended(code: int) -> str:
    if code < 0:
        return f"the program was ended by signal {-code}"
    return f"the program ended with exit code {code}"
