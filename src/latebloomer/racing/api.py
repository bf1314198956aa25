"""`race` and `resume`: the two calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from latebloomer.errors import NothingYet, OtherRace
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import is_auto
from latebloomer.racing.driver import Driver
from latebloomer.racing.journal import files as opening
from latebloomer.racing.journal.journal import Journal
from latebloomer.racing.learner import Entry, Given, entries_of
from latebloomer.racing.policy_choice import chosen
from latebloomer.racing.progress import Progress
from latebloomer.racing.replay import fresh, replay
from latebloomer.racing.runners.contract import Runner, make_runner
from latebloomer.racing.settings import Settings
from latebloomer.racing.verdict.build import judge
from latebloomer.racing.verdict.sentences import need_one
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.field import Field

Place = str | os.PathLike[str]


def race(
    learners: Mapping[str, Given],
    budget: int | None = None,
    *,
    seconds: float | None = None,
    policy: Policy | str = "auto",
    horizon: int | None = None,
    journal: Place | None = "race.db",
    runner: str | Runner = "local",
    seed: int = 0,
    progress: bool = True,
    maximize: bool = True,
    timeout: float | None = None,
    retries: int = 1,
    checkpoint_every: int | None = None,
    durability: str = "normal",
    deliver: float = 0.0,
) -> Verdict:
    """Spend one budget over learners and return the one to keep, trained.

    `learners` maps names to objects with `pull()`, to functions that build one, or to generator
    functions that yield scores; a function with a parameter `seed` is given one. `budget` counts
    pulls over all learners, or `seconds` the time. Every pull is written to `journal` before the
    next decision, so that `resume` goes on after anything (`journal=None` keeps it in memory).
    `policy="auto"` is what the evidence favours for this race, `policy="r-sr"` has a guarantee.
    `deliver=0.3` keeps that share of the budget to train the winner on once it is named.

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
    entries = entries_of(learners, seed)
    settings = Settings(
        policy=chosen(policy, len(entries), budget, horizon, deliver), auto=is_auto(policy),
        deliver=deliver, budget=budget, seconds=seconds, horizon=horizon, seed=seed,
        maximize=maximize, timeout=timeout, retries=retries, checkpoint_every=checkpoint_every,
        durability=durability,
    )  # fmt: skip
    names = [entry.name for entry in entries]
    fresh(settings, names)  # says what is wrong with the budget before a file is made
    made = make_runner(runner)
    opened = opening.create(journal, settings, names)
    return _run(opened, settings, entries, made, Progress(settings, names, progress))


def resume(
    journal: Place,
    learners: Mapping[str, Given],
    *,
    policy: Policy | str | None = None,
    runner: str | Runner = "local",
    progress: bool = True,
) -> Verdict:
    """Go on with the race of a journal; after its end, the verdict with the winner restored.

    The learners are the same as before, by name. Each one is restored from its newest checkpoint
    and repeats only the pulls that are not in it; a learner without `save` and `load` is trained
    again from the start, which is announced first. `policy` is only needed for one that is not
    the library's own; the journal knows what "auto" became.
    """
    opened = opening.reopen(journal)
    try:
        settings = Settings.from_dict(opened.values, policy)
        entries = _same(entries_of(learners, settings.seed), opened.names, journal)
        made = make_runner(runner)
    except BaseException:
        opened.close()
        raise
    return _run(opened, settings, entries, made, Progress(settings, opened.names, progress))


def look(journal: Place, policy: Policy | str | None = None) -> Verdict:
    """The verdict of a journal, or the standings so far, without its learners.

    It can be called while another process races on the journal.
    """
    opened = opening.read(journal)
    try:
        settings = Settings.from_dict(opened.values, policy)
        session = replay(opened, settings)
        if session.spent == 0 and not session.over:
            raise NothingYet(f"the race of {journal} has begun, but no pull is finished yet")
        return judge(session, settings, opened)
    finally:
        opened.close()


def _run(
    journal: Journal, settings: Settings, entries: list[Entry], runner: Runner, progress: Progress
) -> Verdict:
    driver = None
    try:
        driver = Driver(journal, settings, entries, runner, progress)
        need_one(driver.session, journal)
        driver.start()
        _announce(driver, progress)
        driver.run()
        verdict = judge(driver.session, settings, journal)
        journal.close_with(verdict.summary())  # safe before the winner's own code runs again
        verdict = replace(verdict, learner=driver.trained())
        progress.say(f"\n{verdict}")
        return verdict
    finally:
        runner.stop()
        if driver is not None:
            driver.checkpoints.close()
        journal.close()


def _announce(driver: Driver, progress: Progress) -> None:
    """The plan before the first pull; what a resume costs before it is paid."""
    session = driver.session
    if session.spent:
        progress.say(f"resumed at pull {session.spent} of {session.whole}; {_repeats(driver)}")
    elif driver.settings.seconds is not None:
        progress.say(
            f"{driver.settings.rule} over {len(session.names)} learners for "
            f"{driver.settings.seconds:g} s{_kept(driver)}: the first sweep measures how many "
            "pulls that is"
        )
    else:
        auto = "auto: " if driver.settings.auto else ""
        progress.say(f"{auto}{_plan(session)}{_kept(driver)}")


def _kept(driver: Driver) -> str:
    """What comes after the plan."""
    session, share = driver.session, driver.settings.deliver
    if driver.settings.seconds is not None:
        return f", {share:.0%} of them for the winner" if share else ""
    pulls = session.whole - session.budget
    return f"\nThen {pulls} of {session.whole} pulls train the winner on." if share else ""


def _plan(session: Field) -> Any:
    return session.policy.describe(len(session.names), session.budget, session.horizon)


def _repeats(driver: Driver) -> str:
    """What restoring the learners will cost."""
    session, seconds = driver.session, driver.journal.seconds()
    needed = [session.recommend().arm] if session.over else session.movers
    pulls, time, away = 0, 0.0, 0
    for arm in needed:
        n = session.pulls[arm]
        kept, listed = driver.checkpoints.known(arm, n), driver.checkpoints.listed(arm, n)
        away += bool(listed and not kept)
        missing = n - (kept[0].n if kept else 0)
        pulls, time = pulls + missing, time + missing * seconds.get(arm, 0.0) / max(1, n)
    if not pulls:
        return "every learner is restored from its checkpoint"
    text = f"{pulls} pulls are not in checkpoints and are trained again (about {time:.3g} s)"
    if away:
        text += (
            f"; the checkpoints of {away} learners are not in {driver.checkpoints.storage}: if "
            "they are elsewhere, stop and give the runner that storage"
        )
    return text


def _same(entries: list[Entry], names: list[str], journal: Place) -> list[Entry]:
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
