"""The commands race and resume: real learners, and what is kept of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latebloomer.cli import options as o
from latebloomer.cli.learner_source import learners_at
from latebloomer.errors import MOST, Interrupted, LearnerError, SettingError
from latebloomer.racing.journal import ERROR, IF_EXISTS, RACES

if TYPE_CHECKING:
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.verdict.verdict import Verdict


def carry_out(
    call: Callable[..., Any],
    learners: str,
    journal: Path,
    runner: str | None,
    retries: int | None,
    *,
    report: Path | None = None,
    save: Path | None = None,
    timeout: float | None = None,
    checkpoint_every: int | None = None,
    isolate: bool = False,
    max_in_memory: int | None = None,
    address: str | None = None,
    storage: str | None = None,
    cpus: float = 1.0,
    gpus: float = 0.0,
    watch: bool = False,
    json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Run a race, print its verdict and write its files; the options are those of both commands.

    `call` receives the learners and the settings that these options make.

    Parameters
    ----------
    report
        Write an HTML report to this file.
    save
        Pickle the trained winner to this file.
    timeout
        Give up on a pull after this many seconds and count it as failed.
    checkpoint_every
        Save each learner every N pulls. Default: when 20 s of its training would be
        lost.
    isolate
        Run each learner in its own process, so that a crash ends only that learner.
    max_in_memory
        Maximum number of learners in memory; the others wait in checkpoints.
    address
        Ray cluster: auto or ray://host:10001. Default: `RAY_ADDRESS`, or start one.
    storage
        Checkpoint folder or URL for all Ray nodes. Default: next to the journal.
    cpus
        CPUs for one learner.
    gpus
        GPUs for one learner.
    watch
        Serve a live page on this machine and print its URL.
    json
        Print one JSON object.
    quiet
        Show no progress.
    verbose
        Print the full verdict: every learner, reason and warning.
    """
    from latebloomer.racing.checkpoints.saved_states import is_bare
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
    if is_bare(verdict.learner):
        o.say(f"{verdict.name} yields only scores: yield (score, model) to get a model.", err=True)
    elif save is None and not can_save(verdict.learner):
        o.say("To keep the trained winner as a file, add --save FILE.", err=True)
    place = near(Path(str(verdict.journal)))
    resumed = o.command("resume", place, learners, "--save", save)
    reported = o.command("report", place, "--out", report)
    o.write_each((save, verdict.save, resumed), (report, verdict.report, reported), err=json)


def runner_at(name: str | None, isolate: bool, ray: Any, **faults: Any) -> Runner | None:
    """Return the runner that the options describe; None if they describe none."""
    settings = {key: value for key, value in faults.items() if value is not None}
    if name == "ray":
        if isolate:
            raise SettingError("--runner ray isolates every learner anyway. Omit --isolate.")
        from latebloomer.racing.runners.ray_runner import RayRunner

        address, storage, cpus, gpus = ray
        return RayRunner(address, {"num_cpus": cpus, "num_gpus": gpus}, storage, **settings)
    if ray != (None, None, 1.0, 0.0):
        raise SettingError("--address, --storage, --cpus and --gpus need --runner ray. Add it.")
    if name is None and not isolate and not settings:
        return None
    from latebloomer.racing.runners.local import LocalRunner

    return LocalRunner(isolate=isolate or name == "isolated", **settings)


def race(
    learners: Annotated[str, typer.Argument(metavar="LEARNERS")],
    trainings: float | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    full_steps: str | None = None,
    pulls_per_training: int | None = None,
    winner_share: float = 0.0,
    policy: Annotated[str, o.policies()] = "auto",
    horizon: int | None = None,
    min_pulls: int = 1,
    stop: Annotated[str | None, o.choice("certified")] = None,
    maximize: Annotated[bool, typer.Option("--maximize/--minimize")] = True,
    seed: Annotated[int, o.count(-MOST)] = 0,
    journal: str = RACES,
    if_exists: Annotated[str, o.choice(*IF_EXISTS)] = ERROR,
    retries: Annotated[int, o.count(0)] = 1,
    runner: Annotated[str, o.choice(*o.RUNNERS)] = "local",
    **shared: Any,
) -> None:
    """Train learners under one budget and print which to keep.

    Exit codes: 2 on an error, including one in your module (its traceback is shown); 130 after
    Ctrl-C (the command to resume is shown).

    Parameters
    ----------
    learners
        Learners to race: `module:name` or `path/to/file.py:name`, a dict of learners or a function
        that returns one.
    trainings
        Budget in full trainings. Give one of --trainings, --budget and --seconds.
    budget
        Budget in pulls, over all learners. One pull is one step, or a fraction of a full training
        with --full-steps.
    seconds
        Budget in seconds of wall-clock time.
    full_steps
        Steps in a full training: 200 for all, or net=3600,forest=200. Default: each learner's
        `full_steps` attribute.
    pulls_per_training
        Pulls in a full training. Default: 100, or the shortest training's steps if 10 to 99.
    winner_share
        Fraction of the budget reserved for training the winner further.
    policy
        Rule that decides which learner trains next and which is dropped: NAME or
        NAME:SETTING=VALUE,... of POLICIES
    horizon
        Pulls at which learners are compared. Default: the budget or a full training.
    min_pulls
        Pulls every learner gets before any can be dropped.
    stop
        Stop early. `certified`: once the winner is proved best (95 %).
    maximize
        Whether higher scores are better, or lower ones.
    seed
        Random seed for the policy and for learners that take a seed.
    journal
        Journal of every pull: a file, or a folder ending in / for a new file.
    if_exists
        If the journal holds a race: error, resume, or new (a new file next to it).
    retries
        Times to retry a failed pull before the learner counts as failed.
    runner
        Where pulls run: local (this process), isolated (one local process per learner) or ray (one
        Ray actor per learner).
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


def resume(
    words: Annotated[list[str], typer.Argument(metavar="[JOURNAL] LEARNERS")],
    budget: int | None = None,
    trainings: float | None = None,
    seconds: float | None = None,
    full_steps: str | None = None,
    horizon: int | None = None,
    revive: bool = True,
    add: list[str] | None = None,
    retries: Annotated[int | None, o.count(0)] = None,
    runner: Annotated[str | None, o.choice(*o.RUNNERS)] = None,
    **shared: Any,
) -> None:
    """Resume a race, or extend it.

    A larger budget extends a race, finished or not, and pays for new learners. Without a journal,
    the latest race in races/ is resumed. An interrupted call can be repeated unchanged.

    Parameters
    ----------
    words
        Journal of the race, if it is not the latest in races/; then the learners, as in `race`.
    budget
        New total budget in pulls, including pulls already spent.
    trainings
        New total budget in full trainings.
    seconds
        New total time in seconds, including the time already spent.
    full_steps
        Steps in a full training of the added learners, as in `race`.
    horizon
        New number of pulls at which learners are compared.
    revive
        Let dropped learners rejoin if the new plan would have kept them.
    add
        Name of a learner to add; repeat for several.
    runner
        Where pulls run: local, isolated or ray. Default: as recorded, unless another option of the
        runner is given.
    """
    from latebloomer.racing.api import resume as run
    from latebloomer.racing.journal.listing import journal_at

    if len(words) > 2:
        raise SettingError(f"{shlex.join(words)} is too much. Give [JOURNAL] LEARNERS.")
    if words[-1].endswith(".db") or (Path(words[-1]).is_file() and words[-1][-3:] != ".py"):
        again = o.command("resume", words[-1], "mine.py:learners")
        raise LearnerError(f"The learners are missing. Write: {again}.")
    journal = journal_at(words[0] if len(words) == 2 else None)

    def call(given: Any, **more: Any) -> Verdict:
        if missing := [name for name in add or [] if name not in given]:
            known = ", ".join(given)
            raise SettingError(f"--add {missing[0]} is not one of the learners given: {known}.")
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
        needed = "an integer, or one per name: net=3600,forest=200"
        raise SettingError(f"--full-steps {text!r} must be {needed}.") from None
