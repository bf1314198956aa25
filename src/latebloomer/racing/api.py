"""`race`, `resume` and `read_verdict`: the calls.

What they do is in `run_race.py`, which the first call loads: half of this library comes with it,
and whoever imports `race` may not race yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latebloomer.racing.journal import ERROR, RACES

if TYPE_CHECKING:
    from latebloomer.policies.base import Policy
    from latebloomer.racing.callbacks import Callback
    from latebloomer.racing.journal.names import Place
    from latebloomer.racing.learner import Given
    from latebloomer.racing.runners.contract import Runner
    from latebloomer.racing.verdict.verdict import Verdict


def race(
    learners: Mapping[str, Given],
    budget: int | None = None,
    *,
    trainings: float | None = None,
    seconds: float | None = None,
    full_steps: int | Mapping[str, int] | None = None,
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
    winner_share: float = 0.0,
    min_pulls: int = 1,
    callbacks: Sequence[Callback] | None = None,
    isolate: bool = False,
    max_in_memory: int | None = None,
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
    full_steps : int | Mapping[str, int] | None
        How many steps a full training has: one number, or one for each name. Not needed where what
        is given has an attribute `full_steps`.
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
    winner_share : float
        The share of the budget that is kept to train the winner on, once it is named.
    min_pulls : int
        The pull of its own before which no learner is dropped.
    callbacks : Sequence[Callback] | None
        Functions, called as `f(event, view)` with all that happens.
    isolate : bool
        Whether each learner has a local process of its own: one that crashes in compiled code then
        fails like any other.
    max_in_memory : int | None
        At most so many learners in memory at once, for policies with phases.
    score_range : tuple[float | None, float | None] | None
        Lowest and highest possible score, e.g. (0, 1) for accuracy; None for an open end.
        Certificates stay inside it. Default: the `score_range` attribute of the learners.
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
    from latebloomer.racing import run_race

    run_race.check_places(watch, journal, if_exists)
    entries, units = run_race.entries_and_units(
        learners, seed, budget, horizon, trainings, full_steps, pulls_per_training
    )
    if score_range is None:
        score_range = run_race.declared_range(learners)
    settings = run_race.settings_of(
        policy, units, winner_share=winner_share, min_pulls=min_pulls, seconds=seconds, seed=seed,
        trainings=trainings, maximize=maximize, timeout=timeout, retries=retries,
        checkpoint_every=checkpoint_every, durability=durability, score_range=score_range,
        stop=stop,
    )  # fmt: skip
    options = run_race.RunOptions(
        policy, runner, isolate, max_in_memory, progress, callbacks, watch
    )
    return run_race.start(learners, entries, settings, journal, if_exists, options)


def resume(
    journal: Place,
    learners: Mapping[str, Given],
    *,
    budget: int | None = None,
    trainings: float | None = None,
    horizon: int | None = None,
    revive: bool = True,
    add: Mapping[str, Given] | None = None,
    full_steps: int | Mapping[str, int] | None = None,
    policy: Policy | str | None = None,
    runner: str | Runner = "local",
    progress: bool | str = True,
    callbacks: Sequence[Callback] | None = None,
    isolate: bool = False,
    watch: bool = False,
    max_in_memory: int | None = None,
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
    full_steps : int | Mapping[str, int] | None
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
    max_in_memory : int | None
        As in `race`; it may be another number than before.

    Returns
    -------
    Verdict
        That of the race, with the winner restored where it was over.

    Raises
    ------
    JournalMismatch
        The learners or settings are not those of the journal.
    JournalInUse
        Another process races on it.
    JournalError
        It is missing or damaged: `latebloomer repair`.
    BudgetError
        The budget is less than before.
    """
    from latebloomer.racing import run_race

    more = run_race.More(budget, horizon, revive, add, trainings, full_steps)
    options = run_race.RunOptions(
        policy, runner, isolate, max_in_memory, progress, callbacks, watch
    )
    return run_race.go_on(journal, learners, more, options)


def read_verdict(journal: Place | None = None, policy: Policy | str | None = None) -> Verdict:
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
    NoScoresYet
        No pull is finished yet.
    """
    from latebloomer.racing import run_race

    return run_race.look_at(journal, policy)
