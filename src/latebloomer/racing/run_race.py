"""What `race`, `resume` and `read_verdict` do: all parts of a race come together here."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from latebloomer.errors import JournalError, JournalMismatch, NoScoresYet, SettingError
from latebloomer.policies.base import Policy
from latebloomer.racing import settings as asked
from latebloomer.racing import training_share
from latebloomer.racing.callbacks import Callback, check_callbacks
from latebloomer.racing.driver import Driver
from latebloomer.racing.extension import Extension, plan_extension, with_new_learners
from latebloomer.racing.journal import RESUME, Place, files
from latebloomer.racing.journal.journal import near
from latebloomer.racing.journal.listing import begin, check_journal_options, journal_at
from latebloomer.racing.learner import Given, entries_of, with_shares
from latebloomer.racing.progress import Progress, print_aside
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners import contract
from latebloomer.racing.runners.contract import Runner, make_runner
from latebloomer.racing.stopping import grace_of
from latebloomer.racing.verdict.build import build_verdict, load_learner
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import Began, Created, Decided, Ended, WarningNoted

CRASHES = (
    "the last processes of this race all ended in its pull. If the cause is a crash in compiled "
    'code or os._exit, resume(..., runner="isolated") makes it a failure of this learner alone'
)

# --- a new race ---


def start(
    learners: Mapping[str, Given],
    journal: Place | None,
    if_exists: str,
    policy: Policy | str,
    runner: str | Runner,
    progress: bool | str,
    callbacks: Sequence[Callback] | None,
    watch: bool,
    *size: Any,
    score_range: tuple[float | None, float | None] | None,
    seed: int,
    **others: Any,
) -> Verdict:
    """Start a race and run it; if `if_exists` says so, resume the race that is there.

    `size` is the rest of what `units_of` takes; `others` are settings.
    """
    if watch and journal is None:
        raise SettingError(
            "watch=True, but journal=None: the live page reads the journal. Pass journal=..., or "
            "omit watch."
        )
    check_journal_options(journal, if_exists)
    made, functions = make_runner(runner), check_callbacks(callbacks)
    given = entries_of(learners, seed)
    settings = asked.settings_of(
        policy, seed=seed, runner=made.as_dict(),
        score_range=asked.declared_range(learners) if score_range is None else score_range,
        learner_settings=asked.described(learners) or None,
        **training_share.units_of(learners, *size), **others,
    )  # fmt: skip
    entries = with_shares(given, settings.shares)
    created = Created(os.urandom(6).hex(), settings.as_dict(), tuple(learners))
    state = RaceState(created, settings.policy)  # raises errors before a file is made
    shown = Progress(state, progress)
    contract.check_memory_limit(made.max_in_memory, entries, state.session, settings)
    resumes = if_exists == RESUME
    there = resumes and asked.holds_race(journal)
    if not there:
        try:
            opened = begin(journal, created, if_exists)
        except JournalMismatch:
            there = resumes and asked.holds_race(journal)  # another process has started it
            if not there:
                raise
    if there:
        asked.need_same_settings(journal or "", settings, policy)
        return continue_race(journal or "", learners, policy, made, progress, callbacks, watch)
    state.started = next(opened.read()).at
    driver = Driver(state, opened, entries, made, shown, functions)
    return _run(driver, watch, Extension())


# --- a race that has started ---


def continue_race(
    journal: Place,
    learners: Mapping[str, Given],
    policy: Policy | str | None,
    runner: str | Runner | None,
    progress: bool | str,
    callbacks: Sequence[Callback] | None,
    watch: bool,
    add: Mapping[str, Given] | None = None,
    **more: Any,
) -> Verdict:
    """Resume the race of a journal; `more` extends it, as `plan_extension` takes it."""
    functions = check_callbacks(callbacks)
    made = None if runner is None else make_runner(runner)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read(), policy)
        settings, shown = state.settings, Progress(state, progress)
        made = contract.recorded_runner(settings.runner) if made is None else made
        learners = with_new_learners(learners, add, state)
        described = asked.described(learners)
        asked.need_same_learners(journal, settings.learner_settings or {}, described)
        extension = plan_extension(state, learners, add, **more)
        given = {entry.name: entry for entry in entries_of(learners, settings.seed)}
        names = (*state.names, *extension.new)
        advice = "Give the same names, or start a new race in another file."
        asked.need_same(journal, {"learners": names}, {"learners": list(given)}, advice)
        ordered = [given[name] for name in names]
        entries = with_shares(ordered, {**state.shares, **extension.shares})
        contract.check_memory_limit(made.max_in_memory, entries, state.session, settings)
    except BaseException:
        opened.close()
        raise
    driver = Driver(state, opened, entries, made, shown, functions)
    return _run(driver, watch, extension)


def look_at(journal: Place | None, policy: Policy | str | None) -> Verdict:
    """Return the verdict of a journal as it stands."""
    with closing(files.read(journal_at(journal), brief=True)) as opened:
        state = RaceState.replayed(opened.read(), policy)
    if state.session.spent == 0 and not state.session.over:
        raise NoScoresYet(
            f"The race of {near(opened.path or Path())} has started, but no pull has finished yet."
        )
    return build_verdict(state, opened.path)


def _run(driver: Driver, watch: bool, extension: Extension) -> Verdict:
    """Run a race to its end, and close all of it."""
    state, progress = driver.race, driver.progress
    if watch and driver.journal.path is not None:
        start_watching(driver.journal.path)
    try:
        driver.record(Began(asked.process_name(), asked.versions()))
        if not extension.events:
            state.need_one_learner()
        driver.start()
        if extension.events:
            cost = f" {driver.cost_of_restoring(extension.revived)}" if extension.revived else ""
            progress.say(f"{extension.why}{cost}")
            driver.extend(*extension.events)
        _announce(driver, progress)
        driver.run()
        driver.check_journal()
        verdict = build_verdict(state, driver.journal.path)
        driver.record(Decided(verdict.summary()))  # before the winner's own code runs again
        noted = len(state.notes)
        learner = driver.winner()
        if len(state.notes) > noted:  # about the winner
            verdict = build_verdict(state, driver.journal.path)
        loader = partial(load_learner, state, driver.entries, driver.states)
        verdict = replace(verdict, learner=learner, loader=loader)
        progress.end(verdict)
        return verdict
    finally:
        try:
            driver.runner.stop()
            driver.states.close()
            with suppress(JournalError):  # a disk that is full or gone: reported before
                driver.record(Ended())
        finally:
            driver.journal.close()


def _announce(driver: Driver, progress: Progress) -> None:
    """Print the plan before the first pull, or what a resume costs."""
    session = driver.session
    crashing = driver.race.crashing_learner()
    if crashing is not None:
        driver.record(WarningNoted(crashing, CRASHES))
    resumed = f"Resumed at pull {session.spent} of {session.budget}."
    cost = f"{resumed} {driver.cost_of_restoring()}" if session.spent else _plan(driver)
    progress.say(cost)
    if driver.journal.path is not None:
        progress.say(f"Journal: {near(driver.journal.path)}")


def _plan(driver: Driver) -> str:
    session, settings, runner = driver.session, driver.settings, driver.runner
    rule = settings.rule.removeprefix("auto: ") + " (chosen by auto)" * settings.auto
    if settings.seconds is not None:
        time = f"{settings.seconds:g} s; the first pull of each learner shows how many pulls fit."
        lines = [f"Racing {len(session.names)} learners with policy {rule}. Budget: {time}"]
        if settings.winner_share:
            share = f"{settings.winner_share:.0%} of the time"
            lines.append(f"{share} is reserved for training the winner further.")
        if runner.interrupts:
            grace = grace_of(settings.seconds)
            lines.append(f"A pull that still runs {grace:.3g} s after the end is interrupted.")
        return "\n".join(lines)
    arms, budget = len(session.names), session.deciding_budget
    plan = session.policy.describe(arms, budget, session.horizon, session.min_pulls)
    aside = session.budget - budget
    said = training_share.plan_in_words(plan, rule, aside, settings.pulls_per_training)
    helps = training_share.workers_in_words(plan, aside) if runner.fragile else []
    return "\n".join([said, *training_share.pull_in_words(settings.shares), *helps])


# --- the live page ---

STAYS = 600  # seconds that the page stays after the race has ended and the last tab was closed
PATIENCE = 20.0  # seconds to wait for the page; after that the race starts without it


def start_watching(journal: Path) -> int | None:
    """Serve the live page in a separate process, which outlives the race, and print its address.

    Return the number of the process; None, with a warning, if it does not start.
    """
    words = ["-m", "latebloomer", "watch", str(journal), "--exit-after-idle", str(STAYS)]
    said: list[str] = []
    try:
        child = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        said.append(str(error))
    else:
        assert child.stdout is not None
        read = child.stdout.readline  # the first line is its address, or what is missing
        reader = Thread(target=lambda: said.append(read()), daemon=True)
        reader.start()
        reader.join(PATIENCE)
        address = said[0].strip() if said else ""
        if address.startswith("http://"):
            child.stdout.close()
            child.returncode = 0  # it outlives this process: no ResourceWarning
            print_aside(f"Watch the race at {address}")
            return child.pid
        child.kill()
        reader.join()
        child.communicate()
    warnings.warn(
        f"The race runs, but cannot be watched ({''.join(said).strip() or 'it did not come up'}). "
        f"Try later: latebloomer watch {near(journal)}",
        RuntimeWarning,
        stacklevel=4,
    )
    return None
