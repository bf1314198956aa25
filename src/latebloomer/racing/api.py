"""The functions `race`, `resume` and `read_verdict`.

They are implemented in `run_race.py`. It imports half of this library, so it is imported by the
first call and not together with this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latebloomer.errors import names_arguments
from latebloomer.racing.journal.journal_file import ERROR, RACES

if TYPE_CHECKING:
    from latebloomer.policies.base import Policy
    from latebloomer.racing.callbacks import Callback
    from latebloomer.racing.journal.journal_file import Place
    from latebloomer.racing.learners.learner import Given
    from latebloomer.racing.runners.runner import Runner
    from latebloomer.racing.verdict.verdict import Verdict


@names_arguments(verbose="progress", n_jobs="runner", random_state="seed", epochs="full_steps")
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
    progress: bool = True,
    maximize: bool = True,
    winner_share: float = 0.0,
    min_pulls: int | None = None,
    callbacks: Sequence[Callback] | None = None,
    score_range: tuple[float | None, float | None] | None = None,
    stop: str | None = None,
    drops: str | None = None,
    watch: bool = False,
) -> Verdict:
    """Train learners under one shared budget and return the one to keep.

    Learners are trained in turn, one *pull* at a time. Learners that fall behind are dropped; the
    others keep what they have learned. Give the budget in one of three ways: `trainings`, `budget`
    or `seconds`. Every pull is written to the journal before the next decision, so `resume` can
    continue the race after any interruption.

    Parameters
    ----------
    learners : Mapping[str, Given]
        The learners by name. A learner is an object with `pull()`, a function that builds one, or
        a generator function that yields scores or `(score, model)`. A function with a parameter
        `seed` receives the learner's seed.
    budget : int | None
        Total number of pulls over all learners. One pull is one step, or a fraction of a full
        training if `full_steps` is given.
    trainings : float | None
        Budget in full trainings. One pull is then the same fraction of every learner's full
        training.
    seconds : float | None
        Budget in seconds of wall-clock time.
    full_steps : int | Mapping[str, int] | None
        Number of steps in a full training: one integer, or one per name. Default: the
        `full_steps` attribute of each learner.
    pulls_per_training : int | None
        Number of pulls in a full training. Default: 100, or the shortest training's steps if these
        are 10 to 99.
    policy : Policy | str
        Rule that decides which learner is trained next and which is dropped. "auto" is the policy
        that did best in our measurements, and "r-sr" has a proven guarantee. It can be any name
        that `latebloomer policies` lists, with settings if needed ("r-sr:window=0.5"), or your own
        policy.
    horizon : int | None
        Number of pulls per learner at which learners are compared; no learner is trained further.
        Default: the budget, or one full training if a pull is a fraction of a full training.
    journal : Place | None
        Journal that records every pull. It is a file, a folder that ends in a slash (the race
        creates a file there), a `JournalFile` that also sets the durability, or None to keep the
        race in memory only. Default: a new file in `races/`.
    if_exists : str
        What to do if the journal already holds a race: "error", "resume" it, or "new" to write a
        new file next to it.
    runner : str | Runner
        Where and how pulls run: "local" (this process), "isolated" (one local process per
        learner), "ray" (one Ray actor per learner), or a runner object with settings, such as
        `LocalRunner(timeout=60, retries=2)`.
    seed : int
        Seed for random policies. Each learner's seed is derived from it and the learner's name.
    progress : bool
        Whether to show the race on stderr while it runs. The verdict is not printed: print the
        returned object.
    maximize : bool
        Whether higher scores are better. False if scores are losses.
    winner_share : float
        Fraction of the budget, at least 0 and below 1, reserved for training the winner after it
        is selected.
    min_pulls : int | None
        Number of pulls every learner gets before any learner can be dropped. Default: 2 with
        policy "auto" and a budget, without the winner's share, of at least four pulls per learner;
        otherwise the policy decides.
    callbacks : Sequence[Callback] | None
        Functions called as `f(event, view)` with every event. Each event is delivered at least
        once: after a resume, the latest score is delivered again.
    score_range : tuple[float | None, float | None] | None
        Lowest and highest possible score, such as (0, 1) for accuracy; None for no limit on that
        side. Certificates and all displayed numbers stay inside this range; it does not change how
        learners are ranked. Default: the `score_range` attribute of the learners.
    stop : str | None
        "certified" ends the race early, as soon as the winner is certified. Default: the race uses
        its whole budget.
    drops : str | None
        Which learner is dropped first if the budget is in seconds and the policy is "auto".
        "worst" is the learner with the worst estimate. "waste" is the learner with the largest
        product of its gap to the leader and the seconds that it would still cost. Default:
        "worst".
    watch : bool
        Whether to serve a live page of the race on this machine.

    Returns
    -------
    Verdict
        The trained winner, the reasons for the choice, and how certain it is.

    Raises
    ------
    BudgetError
        The budget is too small for the policy.
    SettingError
        A setting is outside its range, or several budgets are given.
    LearnerError
        A learner cannot be trained pull by pull.
    AllFailed
        Every learner has failed; the message has the reason of each.
    JournalError
        The journal cannot be written, or already holds a race.
    Interrupted
        Ctrl-C was pressed; the message says how to continue.

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
    from latebloomer.racing.request import Budget, RaceRequest, Rules, RunOptions

    request = RaceRequest(
        learners=learners,
        budget=Budget(
            pulls=budget,
            trainings=trainings,
            seconds=seconds,
            horizon=horizon,
            full_steps=full_steps,
            pulls_per_training=pulls_per_training,
        ),
        rules=Rules(
            policy=policy,
            seed=seed,
            maximize=maximize,
            winner_share=winner_share,
            min_pulls=min_pulls,
            score_range=score_range,
            stop=stop,
            drops=drops,
        ),
        options=RunOptions(runner=runner, progress=progress, callbacks=callbacks, watch=watch),
    )
    return run_race.start_race(request, journal, if_exists)


@names_arguments(verbose="progress", n_jobs="runner")
def resume(
    journal: Place,
    learners: Mapping[str, Given],
    *,
    budget: int | None = None,
    trainings: float | None = None,
    seconds: float | None = None,
    horizon: int | None = None,
    revive: bool = True,
    add: Mapping[str, Given] | None = None,
    full_steps: int | Mapping[str, int] | None = None,
    policy: Policy | str | None = None,
    runner: str | Runner | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] | None = None,
    watch: bool = False,
) -> Verdict:
    """Continue the race of a journal, or return its verdict and winner if it has finished.

    Each learner is restored from its latest checkpoint and repeats only the pulls made after that
    checkpoint. A learner without `save` and `load` is trained again from the start. The race
    prints the cost of these repetitions before it starts. A larger `budget`, `trainings` or
    `seconds` extends the race, whether it has finished or not: the race is planned again, and
    learners that the new plan would have kept are revived.

    Parameters
    ----------
    journal : Place
        Journal of the race.
    learners : Mapping[str, Given]
        The learners of the race, by the names that they had. Learners with new names join the race
        if it is extended.
    budget : int | None
        New total budget in pulls, including pulls already spent.
    trainings : float | None
        New total budget in full trainings.
    seconds : float | None
        New total time of a time-based race, including the time already spent.
    horizon : int | None
        New number of pulls per learner at which learners are compared. Default: unchanged.
    revive : bool
        Whether dropped learners may rejoin if the new plan would have kept them.
    add : Mapping[str, Given] | None
        New learners by name. They may be in `learners` instead. The new budget pays for the pulls
        with which they catch up.
    full_steps : int | Mapping[str, int] | None
        Number of steps in a full training of the new learners. Only needed if a pull is a fraction
        of a full training.
    policy : Policy | str | None
        Only needed for a policy that is not part of this library.
    runner : str | Runner | None
        As in `race`; it may differ from the runner that started the race. Default: the runner and
        settings in the journal.
    progress : bool
        As in `race`.
    callbacks : Sequence[Callback] | None
        As in `race`. They first receive the latest score again, then every new event.
    watch : bool
        As in `race`.

    Returns
    -------
    Verdict
        The verdict of the race with the trained winner, which is restored if the race had
        finished.

    Raises
    ------
    JournalMismatch
        The learners or settings differ from the journal's.
    JournalInUse
        Another process is writing to the journal.
    JournalError
        The journal is missing or damaged; see `latebloomer repair`.
    BudgetError
        The new budget is smaller than the old one.
    """
    from latebloomer.racing import run_race
    from latebloomer.racing.request import Budget, ResumeRequest, RunOptions

    request = ResumeRequest(
        learners=learners,
        budget=Budget(
            pulls=budget,
            trainings=trainings,
            seconds=seconds,
            horizon=horizon,
            full_steps=full_steps,
        ),
        add=add,
        revive=revive,
        policy=policy,
        options=RunOptions(runner=runner, progress=progress, callbacks=callbacks, watch=watch),
    )
    return run_race.resume_race(journal, request)


def read_verdict(journal: Place | None = None, policy: Policy | str | None = None) -> Verdict:
    """Return a race's verdict, or its standings so far, from the journal alone.

    You can call it while another process runs the race.

    Parameters
    ----------
    journal : Place | None
        Journal, or a folder, of which the latest journal is read. Default: `races/`.
    policy : Policy | str | None
        Only needed for a policy that is not part of this library.

    Returns
    -------
    Verdict
        The verdict without the winner's learner; its `over` is True if the race has finished.

    Raises
    ------
    JournalError
        There is no journal, or it is damaged.
    NoScoresYet
        No pull has finished yet.
    """
    from latebloomer.racing import run_race

    return run_race.look_at(journal, policy)
