"""The commands race and resume: real learners, and what is kept of them."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latebloomer.cli import options as o
from latebloomer.cli.learner_source import learners_at
from latebloomer.errors import MOST, Interrupted, SettingError
from latebloomer.racing.journal import ERROR, IF_EXISTS, RACES

if TYPE_CHECKING:
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.verdict.verdict import Verdict

LEARNERS_HELP = (
    "Learners to race: `module:name` or `path/to/file.py:name`, a dict of learners or a function "
    "that returns one."
)
RESUME_HELP = (
    f"Journal of the race, if it is not the latest in {RACES}; then the learners, as in `race`."
)


def carry_out(
    call: Callable[..., Any],
    learners: str,
    journal: Path,
    runner: str | None,
    retries: int | None,
    *,
    report: Annotated[Path | None, o.text("report")] = None,
    save: Annotated[Path | None, o.text("save")] = None,
    timeout: Annotated[float | None, o.number("timeout")] = None,
    checkpoint_every: Annotated[int | None, o.count("checkpoint_every")] = None,
    isolate: Annotated[bool, o.flag("isolate")] = False,
    max_in_memory: Annotated[int | None, o.count("max_in_memory")] = None,
    address: Annotated[str | None, o.text("address")] = None,
    storage: Annotated[str | None, o.text("storage")] = None,
    cpus: Annotated[float, o.number("cpus")] = 1.0,
    gpus: Annotated[float, o.number("gpus")] = 0.0,
    watch: Annotated[bool, o.flag("watch")] = False,
    json: Annotated[bool, o.flag("json")] = False,
    quiet: Annotated[bool, o.flag("quiet")] = False,
    verbose: Annotated[bool, o.flag("verbose")] = False,
) -> None:
    """Run a race, print its verdict and write its files; the options are those of both commands.

    `call` receives the learners and the settings that these options make.
    """
    from latebloomer.racing.journal.journal import near
    from latebloomer.racing.learner import can_save
    from latebloomer.racing.progress import WHILE_RUNNING, display_mode
    from latebloomer.racing.verdict.verdict import brief

    o.check_outputs({"--report": report, "--save": save}, journal=journal)
    where = runner_at(
        runner, isolate, (address, storage, cpus, gpus), timeout=timeout, retries=retries,
        checkpoint_every=checkpoint_every, max_in_memory=max_in_memory,
    )  # fmt: skip
    # The verdict is printed while the race is shown only if stdout has it in another form.
    shown = False if quiet else True if json else WHILE_RUNNING
    try:
        given = learners_at(learners, need_models=save is not None)
        verdict = call(given, runner=where, progress=shown, watch=watch)
    except Interrupted as stop:
        if stop.journal is None:
            raise
        again = o.command("resume", near(Path(stop.journal)), learners)
        raise Interrupted(stop.state, stop.journal, f"\nResume with: {again}") from None
    if json or verbose:
        o.say(verdict.to_json() if json else verdict.details())
    else:  # without the learners that a live table has just shown
        seen = not quiet and display_mode() == "live" and sys.stdout.isatty()
        o.say(brief(verdict, table=not seen))
    if save is None and not can_save(verdict.learner):
        o.say("The trained winner is lost when this command ends: --save FILE keeps it.", err=True)
    place = near(Path(str(verdict.journal)))
    resumed = o.command("resume", place, learners, "--save", save)
    reported = o.command("report", place, "--out", report)
    o.write_each((save, verdict.save, resumed), (report, verdict.report, reported), err=json)


def runner_at(name: str | None, isolate: bool, ray: Any, **faults: Any) -> Runner | None:
    """Return the runner that the options describe; None if they describe none."""
    settings = {key: value for key, value in faults.items() if value is not None}
    if name == "ray":
        if isolate:
            raise SettingError(
                "--isolate cannot be used with --runner ray, where every learner has its own "
                "process anyway. Omit it."
            )
        from latebloomer.racing.runners.ray_runner import RayRunner

        address, storage, cpus, gpus = ray
        return RayRunner(address, {"num_cpus": cpus, "num_gpus": gpus}, storage, **settings)
    if ray != (None, None, 1.0, 0.0):
        raise SettingError("--address, --storage, --cpus and --gpus need --runner ray. Add it.")
    if name is None and not isolate and not settings:
        return None
    from latebloomer.racing.runners.local import LocalRunner

    return LocalRunner(isolate=isolate or name == "isolated", **settings)


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in place of its `**shared`, the options of `carry_out`."""
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(carry_out, eval_str=True).parameters.values()
    options = [one.replace(kind=own[0].kind) for one in shared if one.kind is one.KEYWORD_ONLY]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    return command


@with_shared_options
def race(
    learners: Annotated[str, typer.Argument(metavar="LEARNERS", help=LEARNERS_HELP)],
    trainings: Annotated[float | None, o.number("trainings")] = None,
    budget: Annotated[int | None, o.count("budget")] = None,
    seconds: Annotated[float | None, o.number("seconds")] = None,
    full_steps: Annotated[str | None, o.text("full_steps")] = None,
    pulls_per_training: Annotated[int | None, o.count("pulls_per_training")] = None,
    winner_share: Annotated[float, o.number("winner_share")] = 0.0,
    policy: Annotated[str, o.policies("policy")] = "auto",
    horizon: Annotated[int | None, o.count("horizon")] = None,
    min_pulls: Annotated[int, o.count("min_pulls")] = 1,
    stop: Annotated[str | None, o.choice("stop", "certified")] = None,
    maximize: Annotated[bool, o.text("maximize", "--maximize/--minimize")] = True,
    seed: Annotated[int, o.count("seed", -MOST)] = 0,
    journal: Annotated[str, o.text("journal")] = RACES,
    if_exists: Annotated[str, o.choice("if_exists", *IF_EXISTS)] = ERROR,
    retries: Annotated[int, o.count("retries", 0)] = 1,
    runner: Annotated[str, o.choice("runner", *o.RUNNERS)] = "local",
    **shared: Any,
) -> None:
    """Train learners under one budget and print which to keep.

    Exit codes: 2 on an error, including one in your module (its traceback is shown); 130 after
    Ctrl-C (the command to resume is shown).
    """
    from latebloomer.racing.api import race as run

    def call(given: Any, **more: Any) -> Verdict:
        return run(
            given, budget, trainings=trainings, seconds=seconds,
            full_steps=parse_full_steps(full_steps), pulls_per_training=pulls_per_training,
            winner_share=winner_share, policy=policy, horizon=horizon, min_pulls=min_pulls,
            stop=stop, maximize=maximize, seed=seed, journal=journal, if_exists=if_exists, **more,
        )  # fmt: skip

    carry_out(call, learners, Path(journal), runner, retries, **shared)


@with_shared_options
def resume(
    words: Annotated[list[str], typer.Argument(metavar="[JOURNAL] LEARNERS", help=RESUME_HELP)],
    budget: Annotated[int | None, o.count("resume.budget")] = None,
    trainings: Annotated[float | None, o.number("resume.trainings")] = None,
    seconds: Annotated[float | None, o.number("resume.seconds")] = None,
    full_steps: Annotated[str | None, o.text("resume.full_steps")] = None,
    horizon: Annotated[int | None, o.count("resume.horizon")] = None,
    revive: Annotated[bool, o.text("revive")] = True,
    add: Annotated[list[str] | None, o.text("add")] = None,
    retries: Annotated[int | None, o.count("retries", 0)] = None,
    runner: Annotated[str | None, o.choice("resume.runner", *o.RUNNERS)] = None,
    **shared: Any,
) -> None:
    """Resume a race, or extend it.

    A larger budget extends a race, finished or not, and pays for new learners. Without a journal,
    the latest race in races/ is resumed. An interrupted call can be repeated unchanged.
    """
    from latebloomer.racing.api import resume as run
    from latebloomer.racing.journal.listing import journal_at

    if len(words) > 2:
        raise SettingError(
            f"{shlex.join(words)} is too much: give a journal and the learners, or the learners "
            "alone for the latest race."
        )
    journal = journal_at(words[0] if len(words) == 2 else None)

    def call(given: Any, **more: Any) -> Verdict:
        if missing := [name for name in add or [] if name not in given]:
            raise SettingError(
                f"--add {missing[0]} is not one of the learners given: {', '.join(given)}."
            )
        return run(
            journal, given, budget=budget, trainings=trainings, seconds=seconds, horizon=horizon,
            revive=revive, add={name: given[name] for name in add or []},
            full_steps=parse_full_steps(full_steps), **more,
        )  # fmt: skip

    carry_out(call, words[-1], journal, runner, retries, **shared)


def parse_full_steps(text: str | None) -> int | dict[str, int] | None:
    """Return the steps of a full training: one number, or some by name.

    >>> parse_full_steps("200"), parse_full_steps("net=3600,forest=200")
    (200, {'net': 3600, 'forest': 200})
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {name.strip(): int(steps) for name, _, steps in pairs}
    except ValueError:
        raise SettingError(
            f"--full-steps {text!r} must be an integer, or one per name: net=3600,forest=200."
        ) from None
