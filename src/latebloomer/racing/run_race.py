"""The implementation of `race`, `resume` and `read_verdict`: it combines the parts of a race."""

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace

from latebloomer import errors
from latebloomer._util.text import near
from latebloomer.errors import JournalMismatch, NoScoresYet, SettingError
from latebloomer.policies.base import Policy
from latebloomer.racing.announcement import announced_plan
from latebloomer.racing.callbacks import check_callbacks
from latebloomer.racing.displays.display_names import make_display
from latebloomer.racing.driver import Driver
from latebloomer.racing.extension import Extension, plan_extension
from latebloomer.racing.journal import files
from latebloomer.racing.journal.event_log import EventLog
from latebloomer.racing.journal.journal_file import ERROR, RESUME, Place, need_path
from latebloomer.racing.journal.new_names import begin, check_journal_options
from latebloomer.racing.journal.races_folder import journal_at
from latebloomer.racing.learners.entries import (
    Entry,
    described,
    entries_of,
    with_logs,
    with_shares,
)
from latebloomer.racing.learners.learner import Given
from latebloomer.racing.live_page_process import start_watching
from latebloomer.racing.race_result import result_of
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.recorded_race import process_started
from latebloomer.racing.request import RaceRequest, ResumeRequest
from latebloomer.racing.runners.process_state import program_numbers_kept
from latebloomer.racing.runners.runner_names import (
    check_memory_limit,
    make_runner,
    runner_of,
)
from latebloomer.racing.same_race import (
    holds_race,
    need_same,
    need_same_learners,
    need_same_settings,
)
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events

CRASHES = (
    "the last processes of this race all ended in its pull. If the cause is a crash in compiled "
    'code or os._exit, resume(..., runner="isolated") makes it a failure of this learner alone'
)


def start_race(request: RaceRequest, journal: Place | None, if_exists: str = ERROR) -> Verdict:
    """Start a race and run it, or resume an existing race if `if_exists` is "resume"."""
    options, learners = request.options, request.learners
    if options.watch and journal is None:
        raise SettingError("watch=True needs a journal, which the page reads: omit journal=None")
    check_journal_options(journal, if_exists)
    runner = make_runner("local" if options.runner is None else options.runner)
    functions = check_callbacks(options.callbacks)
    passed = entries_of(learners, request.rules.seed)
    with program_numbers_kept():  # a learner may be built to read the length of its training
        settings = request.settings(runner.as_dict())
    entries = with_shares(passed, settings.shares)
    created = events.Created(os.urandom(6).hex(), settings.as_dict(), tuple(learners))
    state = RaceState(created, settings.policy)  # raises errors before a file is created
    display = make_display(options.progress, state)
    check_memory_limit(runner.max_in_memory, entries, state.session, settings)
    opened = _begun(journal, created, if_exists)
    if opened is None:
        policy, place = request.rules.policy, journal or ""
        need_same_settings(place, settings, policy)
        options = replace(options, runner=runner)
        again = ResumeRequest(learners=learners, policy=policy, options=options)
        return resume_race(place, again)
    state.started = next(opened.read()).at
    entries = with_logs(entries, opened.path)
    driver = Driver(state, opened, entries, runner, display, functions)
    return _run(driver, options.watch, Extension())


def _begun(journal: Place | None, created: events.Created, if_exists: str) -> EventLog | None:
    """Create the journal of a new race; return None if there is a race to resume."""
    resumes = if_exists == RESUME
    if resumes and holds_race(journal):
        return None
    try:
        return begin(journal, created, if_exists)
    except JournalMismatch:
        if resumes and holds_race(journal):  # another process has just started it
            return None
        raise


def resume_race(journal: Place, request: ResumeRequest) -> Verdict:
    """Resume the race of a journal; extend it if the request has a larger budget."""
    options = request.options
    functions = check_callbacks(options.callbacks)
    runner = None if options.runner is None else make_runner(options.runner)
    need_path("journal", journal)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read(), request.policy)
        display = make_display(options.progress, state)
        runner = runner_of(state.settings.runner, opened.path) if runner is None else runner
        learners = _with_new(request, state)
        need_same_learners(journal, state.settings.learner_settings or {}, described(learners))
        with program_numbers_kept():
            extension = plan_extension(state, replace(request, learners=learners))
        entries = _same_entries(journal, state, learners, extension)
        check_memory_limit(runner.max_in_memory, entries, state.session, state.settings)
    except BaseException:
        opened.close()
        raise
    entries = with_logs(entries, opened.path)
    driver = Driver(state, opened, entries, runner, display, functions)
    return _run(driver, options.watch, extension)


def _with_new(request: ResumeRequest, race: RaceState) -> Mapping[str, Given]:
    """Return the learners of a request, including those to add."""
    learners, add = request.learners, request.add
    if add is not None and not isinstance(add, Mapping):
        raise SettingError(f"add={add!r}, but add must be a dict of names and learners")
    for name in add or {}:  # they may also be in `learners`, if the call is repeated
        if name in race.created.names:
            problem = f"add={{{name!r}: ...}}, but {name!r} is in this race already"
            raise SettingError(f"{problem}. Give a name other than {', '.join(race.names)}.")
    return {**learners, **(add or {})} if isinstance(learners, Mapping) else learners


def _same_entries(
    journal: Place, race: RaceState, learners: Mapping[str, Given], extension: Extension
) -> list[Entry]:
    """Return the learners in the order of the race; raise an error if they differ from its own."""
    passed = {entry.name: entry for entry in entries_of(learners, race.settings.seed)}
    new = [event.name for event in extension.happens if isinstance(event, events.Joined)]
    names = [*race.names, *new]
    advice = "Give the same names, or start a new race in another file."
    need_same(journal, {"learners": names}, {"learners": list(passed)}, advice)
    shares = {**race.shares, **extension.shares}
    return with_shares([passed[name] for name in names], shares)


def look_at(journal: Place | None, policy: Policy | str | None) -> Verdict:
    """Return the verdict of a journal, or its standings so far."""
    with closing(files.read(journal_at(journal), brief=True)) as opened:
        state = RaceState.replayed(opened.read(), policy)
    if state.session.spent == 0 and not state.session.over:
        raise NoScoresYet(f"The race of {near(opened.path)} has started, but has no score yet.")
    return build_verdict(state, opened.path)


def _run(driver: Driver, watch: bool, extension: Extension) -> Verdict:
    """Run a race to its end, and close everything."""
    state, display = driver.race, driver.display
    try:
        driver.record(process_started())
        if watch and driver.journal.path is not None:
            start_watching(driver.journal.path)
        if not extension.happens:
            state.need_one_learner()
        driver.start()
        if extension.happens:
            display.say(extension.why)
            driver.record(*extension.happens)
        crashing = state.crashing_learner()
        if crashing is not None:
            driver.record(events.WarningNoted(crashing, CRASHES))
        at = f"Resumed at pull {state.session.spent} of {state.session.budget}."
        resumed = state.session.spent > 0
        display.say(
            f"{at} {driver.cost_of_restoring()}"
            if resumed
            else announced_plan(state, driver.runner)
        )
        if driver.journal.path is not None:
            display.say(f"Journal: {near(driver.journal.path)}")
        driver.run()
        driver.follow_journal()
        return result_of(driver)
    finally:
        try:
            driver.runner.stop()
            driver.states.close()
            # Disk full or gone: already reported when the write failed.
            with suppress(errors.JournalError):
                driver.record(events.ProcessClosed())
        finally:
            driver.recorded.close()
