"""The commands race and resume, which train real learners."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from latebloomer._util.text import near
from latebloomer.cli import option_types as o
from latebloomer.cli.learner_source import Source, source_of
from latebloomer.cli.option_checks import parse_full_steps, parse_score_range
from latebloomer.cli.output import (
    check_outputs,
    command,
    plain_warnings,
    say,
    say_in_lines,
    write_each,
)
from latebloomer.errors import Interrupted, LearnerError, SettingError
from latebloomer.racing.journal.journal_file import ERROR, RACES

if TYPE_CHECKING:
    from latebloomer.racing.request import Budget, Rules
    from latebloomer.racing.runners.runner import Runner
    from latebloomer.racing.verdict.verdict import Verdict

Asked = TypeVar("Asked", "Budget", "Rules")


def race(
    learners: o.Learners = None,
    run: o.Run = None,
    score: o.Score = None,
    step: o.Step = None,
    trainings: o.Trainings = None,
    budget: o.Budget = None,
    seconds: o.Seconds = None,
    full_steps: o.FullSteps = None,
    pulls_per_training: o.PullsPerTraining = None,
    winner_share: o.WinnerShare = 0.0,
    policy: o.PolicyName = "auto",
    horizon: o.Horizon = None,
    min_pulls: o.MinPulls = None,
    stop: o.Stop = None,
    drops: o.Drops = None,
    maximize: o.Maximize = True,
    score_range: o.ScoreRange = None,
    seed: o.Seed = 0,
    journal: o.Journal = RACES,
    if_exists: o.IfExists = ERROR,
    retries: o.Retries = 1,
    runner: o.RunnerName = "local",
    report: o.Report = None,
    save: o.Save = None,
    timeout: o.Timeout = None,
    checkpoint_every: o.CheckpointEvery = None,
    isolate: o.Isolate = False,
    max_in_memory: o.MaxInMemory = None,
    threads: o.LearnerThreads = None,
    address: o.Address = None,
    storage: o.Storage = None,
    cpus: o.Cpus = 1.0,
    gpus: o.Gpus = 0.0,
    watch: o.Watch = False,
    finish: o.Finish = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Train learners under one budget and print which to keep.

    The exit code is 2 after an error, including errors in your module (their traceback is shown),
    and 130 after Ctrl-C (the command to resume is shown).
    """
    from latebloomer.racing.request import Budget, RaceRequest, Rules, RunOptions
    from latebloomer.racing.run_race import start_race

    steps = parse_full_steps(full_steps)
    source = source_of(learners, run or [], score, step, save is not None, steps)
    need_programs(source, finish)
    amount, rules = with_file(
        Budget(
            pulls=budget,
            trainings=trainings,
            seconds=seconds,
            horizon=horizon,
            full_steps=steps,
            pulls_per_training=pulls_per_training,
        ),
        Rules(
            policy=policy,
            seed=seed,
            maximize=maximize,
            score_range=parse_score_range(score_range),
            winner_share=winner_share,
            min_pulls=min_pulls,
            stop=stop,
            drops=drops,
        ),
        source.settings,
    )
    wanted = Wanted(report, save, finish, json, quiet, verbose)
    wanted.check(Path(journal))
    faults = Faults(timeout, retries, checkpoint_every, max_in_memory, threads)
    chosen_runner = runner_at(runner, isolate, RayPlace(address, storage, cpus, gpus), faults)
    options = RunOptions(runner=chosen_runner or "local", progress=wanted.progress, watch=watch)
    request = RaceRequest(learners=source.learners, budget=amount, rules=rules, options=options)
    carry_out(lambda: start_race(request, journal, if_exists), source, wanted)


def resume(
    words: o.JournalAndLearners,
    run: o.RunAgain = None,
    score: o.ScoreAgain = None,
    step: o.StepAgain = None,
    budget: o.TotalBudget = None,
    trainings: o.TotalTrainings = None,
    seconds: o.TotalSeconds = None,
    full_steps: o.FullStepsOfNew = None,
    horizon: o.NewHorizon = None,
    revive: o.Revive = True,
    add: o.Add = None,
    retries: o.OtherRetries = None,
    runner: o.OtherRunner = None,
    report: o.Report = None,
    save: o.Save = None,
    timeout: o.Timeout = None,
    checkpoint_every: o.CheckpointEvery = None,
    isolate: o.Isolate = False,
    max_in_memory: o.MaxInMemory = None,
    threads: o.LearnerThreads = None,
    address: o.Address = None,
    storage: o.Storage = None,
    cpus: o.Cpus = 1.0,
    gpus: o.Gpus = 0.0,
    watch: o.Watch = False,
    finish: o.Finish = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Resume a race, or extend it.

    A larger budget extends a race, whether it has finished or not, and pays for new learners.
    Without JOURNAL, the latest race in races/ is resumed. You can repeat an interrupted command
    unchanged.
    """
    from latebloomer.racing.request import Budget, ResumeRequest, RunOptions
    from latebloomer.racing.run_race import resume_race

    journal, learners = journal_and_learners(words, bool(run))
    source = source_of(learners, run or [], score, step, save is not None)
    need_programs(source, finish)
    if missing := [name for name in add or [] if name not in source.learners]:
        known = ", ".join(source.learners)
        raise SettingError(f"--add {missing[0]} is not one of the learners given: {known}.")
    wanted = Wanted(report, save, finish, json, quiet, verbose)
    wanted.check(journal)
    faults = Faults(timeout, retries, checkpoint_every, max_in_memory, threads)
    chosen_runner = runner_at(runner, isolate, RayPlace(address, storage, cpus, gpus), faults)
    request = ResumeRequest(
        learners=source.learners,
        budget=Budget(
            pulls=budget,
            trainings=trainings,
            seconds=seconds,
            horizon=horizon,
            full_steps=parse_full_steps(full_steps),
        ),
        add={name: source.learners[name] for name in add or []},
        revive=revive,
        options=RunOptions(runner=chosen_runner, progress=wanted.progress, watch=watch),
    )
    carry_out(lambda: resume_race(journal, request), source, wanted)


def journal_and_learners(words: list[str], programs: bool) -> tuple[Path, str | None]:
    """Return the journal to resume, and the place of its learners; None if they are programs."""
    from latebloomer.racing.journal.races_folder import journal_at

    if programs:
        if len(words) > 1:
            raise SettingError(f"{words[-1]!r} and --run both name learners. Give one of them.")
        return journal_at(Path(words[0])), None
    if len(words) > 2:
        raise SettingError(f"{shlex.join(words)} has too many arguments. Give [JOURNAL] LEARNERS.")
    is_file = Path(words[-1]).is_file() and not words[-1].endswith((".py", ".toml"))
    if words[-1].endswith(".db") or is_file:
        again = command("resume", words[-1], "mine.py:learners")
        raise LearnerError(f"The learners are missing. Write: {again}.")
    return journal_at(Path(words[0]) if len(words) == 2 else None), words[-1]


def with_file(budget: Budget, rules: Rules, file: Mapping[str, Any]) -> tuple[Budget, Rules]:
    """Return the budget and the rules of a race: from a file, unless an option sets them.

    >>> from latebloomer.racing.request import Budget, Rules
    >>> amount, rules = with_file(Budget(seconds=60), Rules(), {"budget": 90, "seed": 3})
    >>> amount.pulls, amount.seconds, rules.seed
    (None, 60, 3)
    """
    values = {"pulls" if name == "budget" else name: value for name, value in file.items()}
    if budget.amounts:  # an amount in an option replaces all amounts of the file
        totals = ("pulls", "trainings", "seconds")
        values = {name: value for name, value in values.items() if name not in totals}
    return filled(budget, values), filled(rules, values)


def filled(asked: Asked, values: Mapping[str, Any]) -> Asked:
    """Return `asked` with `values` in place of its defaults."""
    default = type(asked)()
    unset = [
        field.name
        for field in fields(asked)
        if getattr(asked, field.name) == getattr(default, field.name)
    ]
    return replace(asked, **{name: values[name] for name in unset if name in values})


@dataclass(frozen=True)
class Wanted:
    """The output of a race: what is printed, and which files are written."""

    report: Path | None
    save: Path | None
    finish: bool
    json: bool
    quiet: bool
    verbose: bool

    def check(self, journal: Path) -> None:
        """Raise an error before the race if a file cannot be written."""
        check_outputs({"--report": self.report, "--save": self.save}, journal=journal)

    @property
    def progress(self) -> bool:
        """True if `race` shows progress."""
        return not self.quiet


def need_programs(source: Source, finish: bool) -> None:
    """Raise an error before the race if its winner is none that could run to its end."""
    if finish and not all(hasattr(one, "build_in_race") for one in source.learners.values()):
        raise SettingError("--finish is for programs (--run, or a .toml file). Omit it.")


def carry_out(run: Callable[[], Verdict], source: Source, wanted: Wanted) -> None:
    """Run a race, print its verdict and write its files."""
    try:
        with plain_warnings():
            verdict = run()
    except Interrupted as stop:
        if stop.journal is None:
            raise
        again = command("resume", near(Path(stop.journal)), *source.words)
        raise Interrupted(stop.state, stop.journal, f"\nResume with: {again}") from None
    say(_shown(verdict, wanted))
    _say_of_winner(verdict, wanted)
    place, save, report = near(Path(str(verdict.journal))), wanted.save, wanted.report
    resumed = command("resume", place, *source.words, "--save", save)
    reported = command("report", place, "--out", report)
    write_each((save, verdict.save, resumed), (report, verdict.report, reported), err=wanted.json)


def _shown(verdict: Verdict, wanted: Wanted) -> str:
    if wanted.json:
        return verdict.to_json()
    return verdict.details() if wanted.verbose else str(verdict)


def _say_of_winner(verdict: Verdict, wanted: Wanted) -> None:
    """Say how to keep the winner; let its program run to its end if that was asked for."""
    from latebloomer.racing.checkpoints.restored_learners import is_bare
    from latebloomer.racing.learners.learner import can_save

    winner = verdict.learner
    if is_bare(winner):
        text = f"{verdict.name} yields only scores: yield (score, model) to get a model."
        say_in_lines(text, err=True)
    elif wanted.finish:
        winner.finish(partial(say, err=wanted.json))
    elif hasattr(winner, "finish"):  # a program; the verdict has its log
        return
    elif wanted.save is None and not can_save(winner):
        say("To keep the trained winner as a file, add --save FILE.", err=True)


@dataclass(frozen=True)
class Faults:
    """Settings of runners for faults; None: the default of the runner."""

    timeout: float | None
    retries: int | None
    checkpoint_every: int | None
    max_in_memory: int | None
    threads: int | None

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class RayPlace:
    """The Ray cluster, and the resources of a learner."""

    address: str | None = None
    storage: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0


def runner_at(name: str | None, isolate: bool, place: RayPlace, faults: Faults) -> Runner | None:
    """Return the runner that the options describe; None if there are no such options."""
    settings = faults.given()
    if name == "ray":
        if isolate:
            raise SettingError("--runner ray isolates every learner anyway. Omit --isolate.")
        from latebloomer.racing.runners.ray_runner import RayRunner

        resources = {"num_cpus": place.cpus, "num_gpus": place.gpus}
        return RayRunner(place.address, resources, place.storage, **settings)
    if place != RayPlace():
        raise SettingError("--address, --storage, --cpus and --gpus need --runner ray. Add it.")
    if name is None and not isolate and not settings:
        return None
    from latebloomer.racing.runners.local import LocalRunner

    return LocalRunner(isolate=isolate or name == "isolated", **settings)
