"""`race` and `resume`: the two calls."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from latebloomer.errors import JournalError, NothingYet, OtherRace
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import default_or_named, is_auto
from latebloomer.racing.brief_plan import plan_in_pulls, plan_in_trainings
from latebloomer.racing.callbacks import Callback, check_callbacks
from latebloomer.racing.driver import Driver
from latebloomer.racing.extension import Extension, More, plan_extension, with_newcomers
from latebloomer.racing.journal import files
from latebloomer.racing.journal.journal import Journal, near
from latebloomer.racing.journal.names import (
    ERROR,
    RACES,
    RESUME,
    Place,
    begin,
    check_journal_options,
    journal_at,
)
from latebloomer.racing.learner import Entry, Given, entries_of, with_shares
from latebloomer.racing.progress import Progress
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.contract import Runner, make_runner
from latebloomer.racing.runners.resident import keep_resident
from latebloomer.racing.same_race import holds_race, need_same_settings
from latebloomer.racing.settings import Settings, process_name, versions
from latebloomer.racing.share_text import pull_in_words
from latebloomer.racing.training_share import units_of
from latebloomer.racing.verdict.build import build_verdict
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.racing.watch_process import need_journal, start_watching
from latebloomer.session.events import Began, Created, Decided, Ended, Noted

CRASHES = (
    "the last processes of this race all ended in its pull; if that is no chance (a crash in "
    "compiled code, os._exit), race(..., isolate=True) makes it this learner's failure"
)


def race(
    learners: Mapping[str, Given],
    budget: int | None = None,
    *,
    trainings: float | None = None,
    seconds: float | None = None,
    full: int | Mapping[str, int] | None = None,
    pulls_per_training: int | None = None,
    policy: Policy | str = "auto",
    horizon: int | None = None,
    journal: Place | None = RACES,
    if_exists: str = ERROR,
    runner: str | Runner = "local",
    seed: int = 0,
    progress: bool | str = True,
    maximize: bool = True,
    timeout: float | None = None,
    retries: int = 1,
    checkpoint_every: int | None = None,
    durability: str = "normal",
    deliver: float = 0.0,
    grace: int = 1,
    callbacks: Sequence[Callback] | None = None,
    isolate: bool = False,
    resident: int | None = None,
    score_range: tuple[float | None, float | None] | None = None,
    stop: str | None = None,
    watch: bool = False,
) -> Verdict:
    """Spend one budget over learners and return the one to keep, trained.

    Learners are trained in turn, a *pull* at a time; those that fall behind are dropped, the
    others keep what they have learned. Say what the race may cost in one of three ways:
    `trainings`, `budget` or `seconds`. Every pull is in the journal before the next decision, so
    that `resume` goes on after anything.

    Parameters
    ----------
    learners : Mapping[str, Given]
        Names, and for each an object with `pull()`, a function that builds one, or a generator
        function that yields scores or `(score, model)`. A function with a parameter `seed` is
        given one.
    budget : int | None
        What the race may cost in pulls, each one step of a learner.
    trainings : float | None
        What it may cost in full trainings: 3 is worth three. A pull is then the same share of each
        learner's own.
    seconds : float | None
        What it may cost in time.
    full : int | Mapping[str, int] | None
        How many steps a full training has: one number, or one for each name. Not needed where what
        is given has an attribute `full`.
    pulls_per_training : int | None
        Into how many pulls a full training is cut; 100, or as many as the shortest has steps if
        these are 10 to 99.
    policy : Policy | str
        The rule that decides: "auto" is what the evidence favours, "r-sr" has a guarantee; any
        name of the registry with settings, or a policy of your own.
    horizon : int | None
        The pull at which learners are compared; the budget, or one full training, if None.
    journal : Place | None
        Where every pull is recorded: a folder with a slash at its end (a new file there), a file,
        or None for memory alone.
    if_exists : str
        Where the file holds a race already: "error", "resume" it, or make a "new" file beside it.
    runner : str | Runner
        Where pulls are made: "local", "ray", or a `Runner` such as `RayRunner(...)`.
    seed : int
        Of what is random; learners get seeds made of it and their names.
    progress : bool | str
        Whether a live table and the verdict are shown; "running" shows the race and leaves the
        verdict to you.
    maximize : bool
        False where scores are losses.
    timeout : float | None
        Seconds after which a pull is abandoned and counts as a failure.
    retries : int
        How often a failed pull is tried again before the learner is out.
    checkpoint_every : int | None
        Pulls of a learner between checkpoints; by time if None: when 20 s of training would be
        lost.
    durability : str
        "full" waits for the disk after every pull; "normal" outlives a killed process, not a power
        cut.
    deliver : float
        The share of the budget that is kept to train the winner on, once it is named.
    grace : int
        The pull of its own before which no learner is dropped.
    callbacks : Sequence[Callback] | None
        Functions, called as `f(event, view)` with all that happens.
    isolate : bool
        Whether each learner has a local process of its own: one that crashes in compiled code then
        fails like any other.
    resident : int | None
        At most so many learners in memory at once, for policies with phases.
    score_range : tuple[float | None, float | None] | None
        What a score cannot leave, (0, 1) for an accuracy: no certificate then speaks of more.
    stop : str | None
        "certified" ends the race once its winner is certified; the verdict says what was not
        needed.
    watch : bool
        Whether a page in a browser shows the race as it runs.

    Returns
    -------
    Verdict
        The learner to keep, trained, why, and how sure that is.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    SettingError
        A setting is outside its range, or there are several budgets.
    LearnerError
        Something given cannot be trained pull by pull.
    AllFailed
        No learner is left; the text has each one's reason.
    JournalError
        The journal cannot be written, or holds a race already.
    Interrupted
        Ctrl-C; the text says how to go on.

    Examples
    --------
    >>> def learner(speed, best):
    ...     def scores():
    ...         for n in range(1, 1000):
    ...             yield best * n / (n + speed)
    ...     return scores
    >>> verdict = race(
    ...     {"hare": learner(1, 0.7), "tortoise": learner(20, 1.0)},
    ...     budget=200, journal=None, progress=False,
    ... )
    >>> verdict.name, verdict.pulls, verdict.late_bloomer
    ('tortoise', {'hare': 100, 'tortoise': 100}, False)
    """
    need_journal(watch, journal)
    check_journal_options(journal, if_exists)
    given = entries_of(learners, seed)
    units = units_of(learners, budget, horizon, trainings, full, pulls_per_training)
    entries = with_shares(given, units.shares)
    settings = Settings(
        policy=default_or_named(policy), auto=is_auto(policy), deliver=deliver, grace=grace,
        budget=units.budget, seconds=seconds, horizon=units.horizon, seed=seed,
        trainings=trainings, **units.settings,
        maximize=maximize, timeout=timeout, retries=retries, checkpoint_every=checkpoint_every,
        durability=durability, score_range=score_range, stop=stop,
    )  # fmt: skip
    functions, made = check_callbacks(callbacks), make_runner(runner, isolate)
    names = tuple(entry.name for entry in entries)
    created = Created(uuid.uuid4().hex[:12], settings.as_dict(), names)
    state = RaceState(created, settings.policy)  # says what is wrong before a file is made
    made = keep_resident(made, resident, entries, state.session, settings)
    if if_exists == RESUME and journal is not None and holds_race(journal):
        need_same_settings(journal, settings, policy)
        return resume(
            journal,
            learners,
            policy=policy,
            runner=made,
            progress=progress,
            callbacks=callbacks,
            watch=watch,
            resident=resident,
        )
    opened = begin(journal, created, if_exists)
    state.started = next(opened.read()).at
    if watch:
        start_watching(opened.path)
    return _run(state, opened, entries, made, Progress(names, progress), functions)


def resume(
    journal: Place,
    learners: Mapping[str, Given],
    *,
    budget: int | None = None,
    trainings: float | None = None,
    horizon: int | None = None,
    revive: bool = True,
    add: Mapping[str, Given] | None = None,
    full: int | Mapping[str, int] | None = None,
    policy: Policy | str | None = None,
    runner: str | Runner = "local",
    progress: bool | str = True,
    callbacks: Sequence[Callback] | None = None,
    isolate: bool = False,
    watch: bool = False,
    resident: int | None = None,
) -> Verdict:
    """Go on with the race of a journal; after its end, the verdict with the winner restored.

    Each learner is restored from its newest checkpoint and repeats only the pulls that are not in
    it; one without `save` and `load` is trained again from the start. What that costs is announced
    first. A larger `budget` (or `trainings`) extends the race, finished or not: it is planned
    anew, and whoever the new plan would still have at its level comes back.

    Parameters
    ----------
    journal : Place
        The file of the race.
    learners : Mapping[str, Given]
        The same as before, by name.
    budget : int | None
        A larger one than before, in pulls.
    trainings : float | None
        A larger one than before, in full trainings.
    horizon : int | None
        Another pull at which learners are compared; as before if None.
    revive : bool
        False where survivors alone are trained on.
    add : Mapping[str, Given] | None
        Newcomers by name, who catch up from the new budget.
    full : int | Mapping[str, int] | None
        Of newcomers, where pulls are shares of a full training.
    policy : Policy | str | None
        Only needed for one that is not the library's own.
    runner : str | Runner
        As in `race`; any runner may go on with a race.
    progress : bool | str
        As in `race`.
    callbacks : Sequence[Callback] | None
        As in `race`; they are told what happens from now on.
    isolate : bool
        As in `race`.
    watch : bool
        As in `race`.
    resident : int | None
        As in `race`; it may be another number than before.

    Returns
    -------
    Verdict
        That of the race, with the winner restored where it was over.

    Raises
    ------
    OtherRace
        The learners or settings are not those of the journal.
    JournalInUse
        Another process races on it.
    JournalError
        It is missing or damaged: `latebloomer repair`.
    BudgetError
        The budget is less than before.
    """
    more = More(budget, horizon, revive, add, trainings, full)
    functions, made = check_callbacks(callbacks), make_runner(runner, isolate)
    opened = files.reopen(journal)
    try:
        state = RaceState.replayed(opened.read_in_batches(), policy)
        given = with_newcomers(learners, more, state.names, state.created.names)
        extension = plan_extension(more, state)
        names = state.names if extension is None else (*state.names, *extension.newcomers)
        entries = _same(entries_of(given, state.settings.seed), names, journal)
        entries = with_shares(entries, state.shares | dict(extension.shares if extension else {}))
        made = keep_resident(made, resident, entries, state.session, state.settings)
    except BaseException:
        opened.close()
        raise
    if watch:
        start_watching(opened.path)
    return _run(state, opened, entries, made, Progress(names, progress), functions, extension)


def look(journal: Place | None = None, policy: Policy | str | None = None) -> Verdict:
    """The verdict of a journal, or the standings so far, without its learners.

    Of a folder it is the newest, that of `races/` if none is named. It can be called while
    another process races on the journal.

    Parameters
    ----------
    journal : Place | None
        A file, or a folder whose newest is meant; `races/` if None.
    policy : Policy | str | None
        Only needed for one that is not the library's own.

    Returns
    -------
    Verdict
        Without its learner; `over` says whether it is final.

    Raises
    ------
    JournalError
        There is no journal, or it is damaged.
    NothingYet
        No pull is finished yet.
    """
    opened = files.read(journal_at(journal))
    try:
        state = RaceState.replayed(opened.read_in_batches(), policy)
    finally:
        opened.close()
    if state.session.spent == 0 and not state.session.over:
        raise NothingYet(
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
        verdict = replace(verdict, learner=driver.winner())
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
        driver.record(Noted(crashing, CRASHES))
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
        share = settings.deliver
        of_it = f", {share:.0%} of them for the winner" if share else ""
        return (
            f"{settings.rule} over {len(session.names)} learners for {settings.seconds:g} s{of_it}"
            ": the first sweep measures how many pulls that is"
        )
    arms, budget = len(session.names), session.deciding_budget
    plan = session.policy.describe(arms, budget, session.horizon, session.grace)
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
        saved, listed = states.at_hand(arm, n), states.newest(arm, n)
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
        raise OtherRace(
            f"the journal {journal} is of a race over {', '.join(names)}, but the learners given "
            f"differ: {'; '.join(parts)}. Give the same names, or start a new race"
        )
    return [given[name] for name in names]
