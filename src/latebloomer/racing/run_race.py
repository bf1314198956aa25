"""What `race`, `resume` and `read_verdict` do: all parts of a race come together here."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from latebloomer.errors import JournalError, JournalMismatch, NoScoresYet
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named, is_auto
from latebloomer.racing.brief_plan import plan_in_words, pull_in_words, workers_in_words
from latebloomer.racing.callbacks import Callback, check_callbacks
from latebloomer.racing.driver import Driver
from latebloomer.racing.extension import Extension, plan_extension, with_new_learners
from latebloomer.racing.journal import RESUME, Place, files
from latebloomer.racing.journal.journal import EventLog, near
from latebloomer.racing.journal.listing import begin, check_journal_options, journal_at
from latebloomer.racing.learner import Entry, Given, bare, entries_of, with_shares
from latebloomer.racing.progress import Progress
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.contract import (
    Runner,
    check_memory_limit,
    make_runner,
    recorded_runner,
)
from latebloomer.racing.same_race import (
    described,
    holds_race,
    need_same,
    need_same_learners,
    need_same_settings,
)
from latebloomer.racing.settings import Settings, declared_range, process_name, versions
from latebloomer.racing.time_budget import grace_of
from latebloomer.racing.training_share import Units, declared, units_of
from latebloomer.racing.verdict.build import build_verdict, load_learner
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.racing.watch_process import need_journal, start_watching
from latebloomer.session.events import Began, Created, Decided, Ended, WarningNoted

__all__ = [
    "check_places",
    "continue_race",
    "declared_range",
    "described",
    "entries_and_units",
    "look_at",
    "make_runner",
    "settings_of",
    "start",
]

CRASHES = (
    "the last processes of this race all ended in its pull. If the cause is a crash in compiled "
    'code or os._exit, resume(..., runner="isolated") makes it a failure of this learner alone'
)

# --- a new race ---


def check_places(watch: bool, journal: Place | None, if_exists: str) -> None:
    """Raise an error unless a race can be recorded, and watched, as requested."""
    need_journal(watch, journal)
    check_journal_options(journal, if_exists)


def entries_and_units(
    learners: Mapping[str, Given], seed: int, *size: Any
) -> tuple[list[Entry], Units]:
    """Return the learners as they are raced, and what a pull is; `size` as for `units_of`."""
    given = entries_of(learners, seed)
    budget, horizon, trainings, full_steps, pulls_per_training = size
    if trainings is not None or full_steps is not None:
        full_steps = _with_asked(given, full_steps)
    units = units_of(learners, budget, horizon, trainings, full_steps, pulls_per_training)
    return with_shares(given, units.shares), units


def _with_asked(entries: Sequence[Entry], full_steps: Any) -> Any:
    """Return `full_steps` with what learners say that are made by a function: each is built once.

    A function may say it itself, which costs nothing; see `full_training`.
    """
    if full_steps is not None and not isinstance(full_steps, Mapping):
        return full_steps
    known = dict(full_steps or {})
    for entry in entries:
        silent = entry.name not in known and declared(entry.given) is None
        if silent and entry.rebuilds and not inspect.isgeneratorfunction(entry.given):
            with suppress(Exception):  # of the user's own function: the race reports it
                known[entry.name] = declared(bare(entry.build()))
    known = {name: steps for name, steps in known.items() if steps is not None}
    return known or None


def settings_of(policy: Policy | str, units: Units, **others: Any) -> Settings:
    """Return the settings of a race, checked."""
    return Settings(
        policy=default_or_named(policy), auto=is_auto(policy),
        budget=units.budget, horizon=units.horizon, **units.settings, **others,
    )  # fmt: skip


def start(
    learners: Mapping[str, Given],
    entries: list[Entry],
    settings: Settings,
    journal: Place | None,
    if_exists: str,
    policy: Policy | str,
    runner: Runner,
    progress: bool | str,
    callbacks: Sequence[Callback] | None,
    watch: bool,
) -> Verdict:
    """Start a race and run it; if `if_exists` says so, resume the race that is there."""
    functions = check_callbacks(callbacks)
    names = tuple(entry.name for entry in entries)
    created = Created(os.urandom(6).hex(), settings.as_dict(), names)
    state = RaceState(created, settings.policy)  # raises errors before a file is made
    check_memory_limit(runner.max_in_memory, entries, state.session, settings)
    opened = _begin_unless_there(journal, created, if_exists)
    if opened is None:
        need_same_settings(journal or "", settings, policy)
        return continue_race(journal or "", learners, policy, runner, progress, callbacks, watch)
    state.started = next(opened.read()).at
    if watch:
        start_watching(opened.path)
    return _run(state, opened, entries, runner, Progress(state, progress), functions)


def _begin_unless_there(
    journal: Place | None, created: Created, if_exists: str
) -> EventLog | None:
    """Return the journal of a new race; None if there is a race that is to be resumed."""
    if if_exists != RESUME:
        return begin(journal, created, if_exists)
    if holds_race(journal):
        return None
    try:
        return begin(journal, created, if_exists)
    except JournalMismatch:
        if not holds_race(journal):
            raise
        return None  # another process has started it meanwhile


# --- a race that has started ---


def continue_race(
    journal: Place,
    learners: Mapping[str, Given],
    policy: Policy | str | None,
    runner: str | Runner | None,
    progress: bool | str,
    callbacks: Sequence[Callback] | None,
    watch: bool,
    *,
    add: Mapping[str, Given] | None = None,
    **more: Any,
) -> Verdict:
    """Resume the race of a journal; `more` extends it, as `plan_extension` takes it."""
    functions = check_callbacks(callbacks)
    made = None if runner is None else make_runner(runner)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read_in_batches(), policy)
        made = recorded_runner(state.settings.runner) if made is None else made
        given = with_new_learners(learners, add, state)
        need_same_learners(journal, state.settings.learner_settings or {}, described(given))
        extension = plan_extension(state, given, add=add, **more)
        names = state.names if extension is None else (*state.names, *extension.new_names)
        entries = _same(entries_of(given, state.settings.seed), names, journal)
        entries = with_shares(entries, state.shares | dict(extension.shares if extension else {}))
        check_memory_limit(made.max_in_memory, entries, state.session, state.settings)
    except BaseException:
        opened.close()
        raise
    if watch:
        start_watching(opened.path)
    return _run(state, opened, entries, made, Progress(state, progress), functions, extension)


def look_at(journal: Place | None, policy: Policy | str | None) -> Verdict:
    """Return the verdict of a journal as it stands."""
    opened = files.read(journal_at(journal), brief=True)
    try:
        state = RaceState.replayed(opened.read_in_batches(), policy)
    finally:
        opened.close()
    if state.session.spent == 0 and not state.session.over:
        raise NoScoresYet(
            f"The race of {near(opened.path or Path())} has started, but no pull has finished yet."
        )
    return build_verdict(state, opened.path)


def _run(
    state: RaceState,
    journal: EventLog,
    entries: list[Entry],
    runner: Runner,
    progress: Progress,
    callbacks: list[Callback],
    extension: Extension | None = None,
) -> Verdict:
    driver = Driver(state, journal, entries, runner, progress, callbacks)
    try:
        driver.record(Began(process_name(), versions()))
        if extension is None:
            state.need_one_learner()
        driver.start()
        if extension is not None:
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
        loader = partial(load_learner, state, entries, driver.states)
        verdict = replace(verdict, learner=learner, loader=loader)
        progress.end(verdict)
        return verdict
    finally:
        try:
            driver.close()
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
    if session.spent:
        at = f"Resumed at pull {session.spent} of {session.budget}."
        progress.say(f"{at} {driver.cost_of_restoring()}")
    else:
        progress.say(_plan(driver))
    if driver.journal.path is not None:
        progress.say(f"Journal: {near(driver.journal.path)}")


def _plan(driver: Driver) -> str:
    session, settings, runner = driver.session, driver.settings, driver.runner
    rule = settings.rule.removeprefix("auto: ") + " (chosen by auto)" * settings.auto
    if settings.seconds is not None:
        share = settings.winner_share
        lines = [
            f"Racing {len(session.names)} learners with policy {rule}. Budget: "
            f"{settings.seconds:g} s; the first pull of each learner shows how many pulls fit."
        ]
        if share:
            lines.append(f"{share:.0%} of the time is reserved for training the winner further.")
        if runner.interrupts:
            grace = grace_of(settings.seconds)
            lines.append(f"A pull that still runs {grace:.3g} s after the end is interrupted.")
        return "\n".join(lines)
    arms, budget = len(session.names), session.deciding_budget
    plan = session.policy.describe(arms, budget, session.horizon, session.min_pulls)
    aside, one = session.budget - budget, settings.pulls_per_training
    said = plan_in_words(plan, rule, aside, one, settings.trainings)
    helps = workers_in_words(plan, aside) if runner.fragile else []
    return "\n".join([said, *pull_in_words(settings.shares), *helps])


def _same(entries: list[Entry], names: Sequence[str], journal: Place) -> list[Entry]:
    """Return the learners in the journal's order; raise an error if their names differ."""
    given = {entry.name: entry for entry in entries}
    advice = "Give the same names, or start a new race in another file."
    need_same(journal, {"learners": names}, {"learners": list(given)}, advice)
    return [given[name] for name in names]
