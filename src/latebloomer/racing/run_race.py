"""What `race`, `resume` and `read_verdict` do: all parts of a race come together here."""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from latebloomer import errors
from latebloomer.errors import JournalMismatch, NoScoresYet, SettingError
from latebloomer.policies.base import Policy
from latebloomer.racing import settings as asked
from latebloomer.racing import training_share
from latebloomer.racing.driver import Driver
from latebloomer.racing.journal import RESUME, Place, files
from latebloomer.racing.journal.journal import Entry, near
from latebloomer.racing.journal.listing import begin, check_journal_options, journal_at
from latebloomer.racing.learner import Given, Share, entries_of, need_learners, with_shares
from latebloomer.racing.progress import Progress, print_aside
from latebloomer.racing.race_state import Callback, RaceState, check_callbacks
from latebloomer.racing.runners import contract
from latebloomer.racing.runners.contract import Runner
from latebloomer.racing.stopping import grace_of
from latebloomer.racing.verdict.build import build_verdict, load_learner
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.checked_inputs import set_aside
from latebloomer.session.session import Session

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
        raise SettingError("watch=True needs a journal, which the page reads: omit journal=None")
    check_journal_options(journal, if_exists)
    made, functions = contract.make_runner(runner), check_callbacks(callbacks)
    given = entries_of(learners, seed)
    settings = asked.settings_of(
        policy, seed=seed, runner=made.as_dict(),
        score_range=asked.declared_range(learners) if score_range is None else score_range,
        learner_settings=asked.described(learners) or None,
        **training_share.units_of(learners, *size), **others,
    )  # fmt: skip
    entries = with_shares(given, settings.shares)
    created = events.Created(os.urandom(6).hex(), settings.as_dict(), tuple(learners))
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
    made = None if runner is None else contract.make_runner(runner)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read(), policy)
        settings, shown = state.settings, Progress(state, progress)
        made = contract.recorded_runner(settings.runner) if made is None else made
        if add is not None and not isinstance(add, Mapping):
            raise SettingError(f"add={add!r}, but add must be a dict of names and learners")
        for name in add or {}:  # which may also be among the learners, if the call is repeated
            if name in state.created.names:
                said = f"add={{{name!r}: ...}}, but {name!r} is in this race already"
                raise SettingError(f"{said}. Give a name other than {', '.join(state.names)}.")
        if isinstance(learners, Mapping):
            learners = {**learners, **(add or {})}
        described = asked.described(learners)
        asked.need_same_learners(journal, settings.learner_settings or {}, described)
        extension = plan_extension(state, learners, add, **more)
        given = {entry.name: entry for entry in entries_of(learners, settings.seed)}
        new = [event.name for event in extension.happens if isinstance(event, events.Joined)]
        names = [*state.names, *new]
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
        raise NoScoresYet(f"The race of {near(opened.path)} has started, but has no score yet.")
    return build_verdict(state, opened.path)


def _run(driver: Driver, watch: bool, extension: "Extension") -> Verdict:
    """Run a race to its end, and close all of it."""
    state, progress = driver.race, driver.progress
    if watch and driver.journal.path is not None:
        start_watching(driver.journal.path)
    try:
        driver.record(events.Began(asked.process_name(), asked.versions()))
        if not extension.happens:
            state.need_one_learner()
        driver.start()
        if extension.happens:
            progress.say(extension.why)
            driver.record(*extension.happens)
            driver.set_limits()
        crashing = state.crashing_learner()
        if crashing is not None:
            driver.record(events.WarningNoted(crashing, CRASHES))
        at = f"Resumed at pull {state.session.spent} of {state.session.budget}."
        resumed = state.session.spent > 0
        progress.say(f"{at} {driver.cost_of_restoring()}" if resumed else _plan(driver))
        if driver.journal.path is not None:
            progress.say(f"Journal: {near(driver.journal.path)}")
        driver.run()
        driver.check_journal()
        verdict = build_verdict(state, driver.journal.path)
        driver.record(events.Decided(verdict.summary()))  # before the winner's own code runs again
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
            with suppress(errors.JournalError):  # a disk that is full or gone: reported before
                driver.record(events.Ended())
        finally:
            driver.journal.close()


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
    why = "".join(said).strip() or "it did not come up"
    later = f"Try later: latebloomer watch {near(journal)}"
    text = f"The race runs, but cannot be watched ({why}). {later}"
    warnings.warn(text, RuntimeWarning, stacklevel=4)
    return None


class Extension(NamedTuple):
    """The events of an extension, and what is printed before they are written."""

    happens: tuple[events.Joined | events.Extended, ...] = ()
    shares: Mapping[str, Share] = {}  # fraction of a full training per pull; none: one step
    why: str = ""  # what happens now, in words


def plan_extension(
    race: RaceState,
    learners: Mapping[str, Given],
    add: Mapping[str, Given] | None = None,
    *,
    horizon: int | None = None,
    revive: bool = True,
    full_steps: Any = None,
    **totals: float | None,
) -> Extension:
    """Return the events of a larger budget; none if the race already has what is requested.

    `totals` are budget, trainings and seconds, of which one may be given. It changes nothing. A
    request that is not possible raises an error that says what to do.
    """
    session, settings = race.session, race.settings
    need_learners(learners)
    new = {name: given for name, given in learners.items() if name not in session.names}
    total = _in_pulls({unit: value for unit, value in totals.items() if value is not None}, race)
    if total is None:
        asked = [f"add={{{name!r}: ...}}" for name in add or {} if name in new]
        if horizon not in (None, session.horizon):
            asked.append(f"horizon={horizon}")
        if asked:
            more = f"resume(..., budget=N) with N above {session.budget}"
            raise SettingError(f"{asked[0]} also needs a larger budget, which pays for it: {more}")
        return Extension()
    if horizon is not None:
        most = max(1, *session.pulls)
        errors.need_whole("horizon", horizon, most, "a learner has had that many pulls")
    if not isinstance(revive, bool):
        raise SettingError(f"revive={revive!r}, but revive must be True or False")
    seconds = totals.get("seconds")
    same = total == session.budget and seconds in (None, settings.seconds)
    if same and not new and horizon in (None, session.horizon):
        return Extension()  # the same call again, after an interruption
    if horizon is None:  # without one, a time-based race compares learners at its budget
        follows = seconds is not None and settings.horizon is None
        horizon = total if follows else session.horizon
    spent = session.spent if session.winner is not None else 0
    deciding = total - set_aside(total - spent, session.winner_share)
    one = settings.pulls_per_training
    shares: dict[str, Share] = {}
    if new and one is not None:
        shares = training_share.shares_of(new, full_steps, one, settings.seed)
    joined = []
    for arm, name in enumerate(new, len(session.names)):
        share = shares.get(name)
        steps = (share.full_steps, share.repeats_scores) if share else ()
        joined.append(events.Joined(arm, name, *steps))
    time = None if seconds is None else float(seconds)
    extended = events.Extended(total, deciding, horizon, revive, seconds=time)
    after = deepcopy(session)  # as it will be
    try:
        for event in (*joined, extended):
            after.apply(event)
    except errors.LatebloomerError as error:
        raise type(error)(f"{error} The race is unchanged.") from error
    revived = tuple(i for i in after.racing if i < len(session.names) and i not in session.racing)
    why = _in_words(race, after, revived, tuple(new), time)
    return Extension((*joined, replace(extended, why=why)), shares, why)


def _in_pulls(given: Mapping[str, Any], race: RaceState) -> int | None:
    """Return the new total budget in pulls; None if none is given."""
    session, settings, one = race.session, race.settings, race.settings.pulls_per_training
    if not given:
        return None
    if len(given) > 1:
        asked = " and ".join(f"{unit}={value}" for unit, value in given.items())
        raise SettingError(f"{asked}: give only one of them")
    ((unit, value),) = given.items()
    had: float = session.budget
    kind = "pulls"
    units = ["budget"] if one is None else ["budget", "trainings"]
    if settings.seconds is not None:
        had, kind, units = settings.seconds, "seconds", ["seconds"]
    if unit not in units:
        raise SettingError(
            f"{unit}={value} cannot extend this race, whose budget is in {kind}. Give "
            f"{' or '.join(units)}=, or start a new race."
        )
    check = errors.need_whole if unit == "budget" else errors.need_number
    check(unit, value)
    total = round(value * one) if unit == "trainings" and one and value < inf else value
    if not had <= total < inf:
        raise errors.BudgetError(
            f"{unit}={value} is below the race's budget of {had} {kind}, which cannot be cut. "
            f"Give more, or omit {unit} to resume without extending."
        )
    if kind == "pulls":
        return int(total)
    if total == had:
        return session.budget
    left = max(0.0, total - race.elapsed)  # about how many pulls fit, by the pace so far
    fit = round(left * session.spent / race.elapsed) if race.elapsed else 0
    return max(session.budget, session.spent + fit, session.spent + 1)


def _in_words(
    race: RaceState, after: Session, back: Sequence[int], new: Sequence[str], seconds: float | None
) -> str:
    """Return what the extension does, to be printed before it is done."""
    before, names = race.session, race.session.names
    if seconds is None:
        said = [f"Extending the budget from {before.budget} to {after.budget} pulls."]
    else:
        more = after.budget - before.spent
        said = [f"Extending the time from {race.settings.seconds:g} s to {seconds:g} s."]
        said.append(f"About {more} more pull{'s' * (more != 1)} fit.")
    if back:
        at = [f"{names[i]} (at pull {before.pulls_of(i)})" for i in back]
        said.append(f"Revived: {', '.join(at)}.")
    elif len(before.racing) < len(names):
        said.append("No learner is revived.")
    if new:
        said.append(f"New: {', '.join(new)}.")
    if after.horizon == before.horizon:
        said.append(f"The horizon stays at {before.horizon} pulls.")
    elif seconds is None or race.settings.horizon is not None:  # else later plans set it
        said.append(f"The horizon moves from {before.horizon} to {after.horizon} pulls.")
    return " ".join(said)


EVERY = 1.0  # minimum number of seconds between two reads
SHARE = 0.1  # maximum share of the time that goes into reading: a long race is read less often


class JournalFollower:
    """The state of a race, brought up to date by `read`.

    `on_start` is called when the first event of a race is read: the race may be a new one in the
    place of another. `on_entry` is called after each event, with the state that includes it.
    """

    def __init__(
        self,
        path: Path,
        on_start: Callable[[RaceState], None] = lambda state: None,
        on_entry: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        self.path = path
        self.state: RaceState | None = None
        self.latest = 0.0  # time of the latest event, in seconds since 1970
        self._on_start, self._on_entry = on_start, on_entry
        self._number = 0  # of the latest event

    def read(self, most: int | None = None) -> int:
        """Read up to `most` new events and return their number."""
        with closing(files.read(self.path, brief=True)) as journal:
            with closing(journal.read()) as entries:  # type: ignore[type-var]
                first = next(entries, None)
            if first is None:
                return 0
            if self.state is None or getattr(first.event, "race", "") != self.state.id:
                self.state = RaceState.replayed([first])
                self._number, self.latest = first.number, first.at
                self._on_start(self.state)
            before = self._number
            with closing(journal.read(before)) as entries:  # type: ignore[type-var]
                self.state.replay(self._noted(islice(entries, most)))
        return self._number - before

    def _noted(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            yield entry
            self._number, self.latest = entry.number, entry.at
            self._on_entry(entry)


def follow(journal: Place | None = None) -> Iterator[Verdict]:
    """Yield the standings whenever there is something new, until no process runs the race.

    The last one is the verdict, or the standings of an interrupted race.
    """
    path = journal_at(journal)
    race = JournalFollower(path)
    while True:
        held = files.is_held(path)  # before the read: what is written later is in the next one
        began = time.perf_counter()
        new = race.read()
        if new and race.state is not None and race.state.session.spent:
            yield build_verdict(race.state, path.absolute())
        if not held:
            break
        time.sleep(max(EVERY, (time.perf_counter() - began) / SHARE))
    if race.state is None or not race.state.session.spent:
        raise NoScoresYet(f"the race of {near(path.absolute())} has started but has no score yet")
