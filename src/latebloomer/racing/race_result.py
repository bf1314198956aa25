"""The end of a race: its verdict and its trained learners."""

from dataclasses import replace
from functools import partial
from typing import Any

from latebloomer._util.console import print_aside
from latebloomer.errors import LearnerError
from latebloomer.racing.checkpoints.saved_states import SavedStates
from latebloomer.racing.driver import Driver
from latebloomer.racing.learners.entries import Entry
from latebloomer.racing.learners.learner import trained
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.learner_host import LearnerHost
from latebloomer.racing.runners.process_state import OwnStates
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events


def result_of(driver: Driver) -> Verdict:
    """Record the verdict of a race that has ended and return it with the trained winner."""
    state, path = driver.race, driver.journal.path
    verdict = build_verdict(state, path)
    driver.record(
        events.RaceFinished(verdict.summary())
    )  # record first: restoring the winner runs user code that may fail
    noted = len(state.notes)
    learner = driver.winner()
    if len(state.notes) > noted:  # warnings about the winner are new
        verdict = build_verdict(state, driver.journal.path)
    loader = partial(load_learner, state, driver.entries, driver.states)
    verdict = replace(verdict, learner=learner, loader=loader)
    driver.display.end(verdict)
    return verdict


def load_learner(race: RaceState, entries: list[Entry], states: SavedStates, name: str) -> Any:
    """Restore a learner of a finished race in this process, with all of its pulls.

    Print how many pulls were repeated.
    """
    arm = race.names.index(name)
    done, own = race.session.pulls_of(arm), OwnStates()
    host = LearnerHost(arm, entries[arm], own)
    try:
        prepared = host.prepare(states.restorable(arm, done))
    finally:
        own.leave()
    if isinstance(prepared, events.PullFailed):
        error = LearnerError(f"learner {name!r} cannot be restored ({prepared.reason})")
        error.add_note(prepared.details)
        raise error
    again = f"; {prepared.repeated:,} of them were trained again" if prepared.repeated else ""
    for text in (f"restored to its {done:,} pulls{again}", *prepared.notes):
        print_aside(f"{name}: {text}")
    return trained(host.learner)
