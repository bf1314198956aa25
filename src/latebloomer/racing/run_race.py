"""What `race`, `resume` and `read_verdict` do: all that a race needs comes together here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from latebloomer.errors import JournalError, JournalMismatch, NoScoresYet
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named, is_auto
from latebloomer.racing.brief_plan import plan_in_pulls, plan_in_trainings
from latebloomer.racing.callbacks import Callback, check_callbacks
from latebloomer.racing.driver import Driver
from latebloomer.racing.extension import Extension, More, plan_extension, with_newcomers
from latebloomer.racing.journal import RESUME, files
from latebloomer.racing.journal.journal import Journal, near
from latebloomer.racing.journal.names import Place, begin, check_journal_options, journal_at
from latebloomer.racing.learner import Entry, Given, entries_of, with_shares
from latebloomer.racing.progress import Progress
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.contract import Runner, make_runner
from latebloomer.racing.runners.memory_limit import limit_memory
from latebloomer.racing.same_race import holds_race, need_same_settings
from latebloomer.racing.settings import Settings, declared_range, process_name, versions
from latebloomer.racing.share_text import pull_in_words
from latebloomer.racing.training_share import Units, units_of
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.load import LearnerLoader
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.racing.watch_process import need_journal, start_watching
from latebloomer.session.events import Began, Created, Decided, Ended, WarningNoted

__all__ = [
    "More",
    "RunOptions",
    "check_places",
    "declared_range",
    "entries_and_units",
    "go_on",
    "look_at",
    "settings_in",
    "settings_of",
    "start",
]

CRASHES = (
    "the last processes of this race all ended in its pull; if that is no chance (a crash in "
    "compiled code, os._exit), race(..., isolate=True) makes it this learner's failure"
)


class RunOptions(NamedTuple):
    """What `race` and `resume` take alike: who decides, where pulls are made, what is shown."""

    policy: Policy | str | None
    runner: str | Runner
    isolate: bool
    max_in_memory: int | None
    progress: bool | str
    callbacks: Sequence[Callback] | None
    watch: bool


# --- a new race ---


def check_places(watch: bool, journal: Place | None, if_exists: str) -> None:
    """Raise an error unless a race can be recorded, and watched, as asked."""
    need_journal(watch, journal)
    check_journal_options(journal, if_exists)


def entries_and_units(
    learners: Mapping[str, Given], seed: int, *size: Any
) -> tuple[list[Entry], Units]:
    """The learners as they are raced, and what a pull is; `size` as `units_of` takes it."""
    given = entries_of(learners, seed)
    units = units_of(learners, *size)
    return with_shares(given, units.shares), units


def settings_of(policy: Policy | str, units: Units, **others: Any) -> Settings:
    """The settings of a race, checked."""
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
    options: RunOptions,
) -> Verdict:
    """Begin a race and run it; go on with the one that is there where `if_exists` says so."""
    functions = check_callbacks(options.callbacks)
    runner = make_runner(options.runner, options.isolate)
    names = tuple(entry.name for entry in entries)
    created = Created(os.urandom(6).hex(), settings.as_dict(), names)
    state = RaceState(created, settings.policy)  # says what is wrong before a file is made
    runner = limit_memory(runner, options.max_in_memory, entries, state.session, settings)
    if if_exists == RESUME and journal is not None and holds_race(journal):
        need_same_settings(journal, settings, options.policy)
        return go_on(journal, learners, More(), options._replace(runner=runner, isolate=False))
    opened = begin(journal, created, if_exists)
    state.started = next(opened.read()).at
    if options.watch:
        start_watching(opened.path)
    return _run(state, opened, entries, runner, Progress(state, options.progress), functions)


# --- a race that has begun ---


def go_on(
    journal: Place, learners: Mapping[str, Given], more: More, options: RunOptions
) -> Verdict:
    """Take up the race of a journal, with a larger budget where `more` has one."""
    functions = check_callbacks(options.callbacks)
    runner = make_runner(options.runner, options.isolate)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read_in_batches(), options.policy)
        given = with_newcomers(learners, more, state.names, state.created.names)
        extension = plan_extension(more, state)
        names = state.names if extension is None else (*state.names, *extension.newcomers)
        entries = _same(entries_of(given, state.settings.seed), names, journal)
        entries = with_shares(entries, state.shares | dict(extension.shares if extension else {}))
        runner = limit_memory(
            runner, options.max_in_memory, entries, state.session, state.settings
        )
    except BaseException:
        opened.close()
        raise
    if options.watch:
        start_watching(opened.path)
    progress = Progress(state, options.progress)
    return _run(state, opened, entries, runner, progress, functions, extension)


def look_at(journal: Place | None, policy: Policy | str | None) -> Verdict:
    """The verdict of a journal as it stands."""
    opened = files.read(journal_at(journal))
    try:
        state = RaceState.replayed(opened.read_in_batches(), policy)
    finally:
        opened.close()
    if state.session.spent == 0 and not state.session.over:
        raise NoScoresYet(
            f"the race of {near(opened.path or Path())} has begun, but no pull is finished yet"
        )
    return build_verdict(state, opened.path)


def settings_in(journal: Place) -> Mapping[str, Any]:
    """The settings of a journal's race, as plain values."""
    opened = files.read(journal)
    try:
        return next(
            dict(entry.event.settings)
            for entry in opened.read()
            if isinstance(entry.event, Created)
        )
    finally:
        opened.close()


def _run(
    state: RaceState,
    journal: Journal,
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
            progress.say(extension.announcement(state, driver.states))
            driver.record(*extension.events)
        _announce(driver, progress)
        driver.run()
        driver.check_journal()
        verdict = build_verdict(state, driver.journal.path)
        driver.record(Decided(verdict.summary()))  # before the winner's own code runs again
        loader = LearnerLoader(state, entries, driver.states)
        verdict = replace(verdict, learner=driver.winner(), loader=loader)
        progress.end(verdict)
        return verdict
    finally:
        try:
            driver.close()
            with suppress(JournalError):  # a disk that is full or gone: said when it mattered
                driver.record(Ended())
        finally:
            driver.journal.close()


def _announce(driver: Driver, progress: Progress) -> None:
    """The plan before the first pull; what a resume costs before it is paid."""
    session = driver.session
    crashing = driver.race.crashing_learner()
    if crashing is not None:
        driver.record(WarningNoted(crashing, CRASHES))
    if session.spent:
        progress.say(f"resumed at pull {session.spent} of {session.budget}; {_repeats(driver)}")
    else:
        progress.say(_plan(driver))
    if driver.journal.path is not None:
        progress.say(f"journal: {near(driver.journal.path)}")


def _plan(driver: Driver) -> str:
    """The plan in a few lines."""
    session, settings = driver.session, driver.settings
    if settings.seconds is not None:
        share = settings.winner_share
        of_it = f", {share:.0%} of them for the winner" if share else ""
        return (
            f"{settings.rule} over {len(session.names)} learners for {settings.seconds:g} s{of_it}"
            ": the first sweep measures how many pulls that is"
        )
    arms, budget = len(session.names), session.deciding_budget
    plan = session.policy.describe(arms, budget, session.horizon, session.min_pulls)
    aside = session.budget - budget
    if not settings.shares:
        return plan_in_pulls(plan, settings.rule, aside)
    said = plan_in_trainings(plan, settings.trainings, settings.rule, aside)
    return f"{said}\n{pull_in_words(settings.shares)}"


def _repeats(driver: Driver) -> str:
    """What restoring the learners will cost."""
    session, race, states = driver.session, driver.race, driver.states
    needed = [session.best_arm] if session.over else session.trainable
    pulls, time, away = 0, 0.0, 0
    for arm in needed:
        n = session.pulls_of(arm)
        saved, listed = states.available(arm, n), states.newest(arm, n)
        saved = saved or (states.model(arm, n) if session.over else None)
        away += bool(listed and not saved)
        missing = n - (saved.n if saved else 0)
        pulls, time = pulls + missing, time + missing * race.seconds[arm] / max(1, n)
    if not pulls:
        return "every learner is restored from its checkpoint"
    text = f"{pulls} pulls are not in checkpoints and are trained again (about {time:.3g} s)"
    if away:
        text += (
            f"; the checkpoints of {away} learners are not in {states.storage}: if "
            "they are elsewhere, stop and give the runner that storage"
        )
    return text


def _same(entries: list[Entry], names: Sequence[str], journal: Place) -> list[Entry]:
    """The learners in the journal's order."""
    given = {entry.name: entry for entry in entries}
    missing = [name for name in names if name not in given]
    more = [name for name in given if name not in names]
    if missing or more:
        parts = [f"{', '.join(missing)} missing"] if missing else []
        parts += [f"{', '.join(more)} not in it"] if more else []
        raise JournalMismatch(
            f"the journal {journal} is of a race over {', '.join(names)}, but the learners given "
            f"differ: {'; '.join(parts)}. Give the same names, or start a new race"
        )
    return [given[name] for name in names]
