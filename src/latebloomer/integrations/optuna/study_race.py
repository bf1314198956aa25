"""The function `race_study`, and the recovery of its journal after a kill."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder
from latebloomer.errors import SettingError, require
from latebloomer.integrations.hosted_race import need_several
from latebloomer.integrations.library_learner import library
from latebloomer.integrations.optuna.studies import need_one_direction
from latebloomer.integrations.optuna.study_mirror import StudyMirror
from latebloomer.integrations.optuna.study_trials import KEY, LEFT, builders_of, frozen_trials
from latebloomer.policies.base import Policy
from latebloomer.racing.callbacks import Callback, check_callbacks
from latebloomer.racing.journal import files, new_names
from latebloomer.racing.journal.journal_file import ERROR, RACES, RESUME, Place
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.recorded_race import RecordedRace
from latebloomer.racing.request import Budget, RaceRequest, Rules, RunOptions
from latebloomer.racing.run_race import start_race
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.same_race import holds_race, need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.arm_views import NUMBERED


def race_study(
    study: Any,
    objective: Callable[[Any], Any],
    n_configs: int = 64,
    trainings: float | None = None,
    *,
    budget: int | None = None,
    seconds: float | None = None,
    full_steps: int | Mapping[str, int] | None = None,
    pulls_per_training: int | None = None,
    horizon: int | None = None,
    name: str = "race",
    journal: Place | None = RACES,
    policy: Policy | str = "auto",
    runner: str | LocalRunner = "local",
    seed: int = 0,
    winner_share: float = 0.0,
    min_pulls: int | None = None,
    score_range: tuple[float | None, float | None] | None = None,
    stop: str | None = None,
    progress: bool = True,
    callbacks: Sequence[Callback] | None = None,
    watch: bool = False,
) -> Verdict:
    """Race configurations that a study's sampler proposes; the winner is the study's best trial.

    If you call it again after a kill, with a study from the same storage, it continues from its
    journal, or from the values in the storage if the journal is lost.

    Parameters
    ----------
    study : Any
        An Optuna study with one direction. The direction says whether lower or higher values are
        better.
    objective : Callable[[Any], Any]
        Function of a trial. It suggests settings as usual and then yields a value for each step of
        its training, or returns an object with `pull()`.
    n_configs : int
        Number of configurations in the race.
    trainings : float | None
        Budget in full trainings. Give one of `trainings`, `budget` and `seconds`.
    budget : int | None
        Budget in pulls, over all configurations.
    seconds : float | None
        Budget in seconds of wall-clock time.
    full_steps : int | Mapping[str, int] | None
        Number of steps in a full training. Default: the objective's attribute `full_steps`.
    pulls_per_training : int | None
        Number of pulls in a full training, as in `race`.
    horizon : int | None
        Number of pulls per configuration at which they are compared, as in `race`.
    name : str
        Name of the race, if one study has several races.
    journal : Place | None
        Journal that records every pull, as in `race`.
    policy : Policy | str
        Rule that decides which configuration is trained next and which is dropped, as in `race`.
    runner : str | LocalRunner
        "local", or a `LocalRunner` with settings; trials must run in this process.
    seed : int
        Seed for random policies.
    winner_share : float
        Fraction of the budget, at least 0 and below 1, reserved for training the winner further.
    min_pulls : int | None
        Number of pulls every configuration gets before any can be dropped, as in `race`.
    score_range : tuple[float | None, float | None] | None
        Lowest and highest possible value, as in `race`.
    stop : str | None
        "certified" ends the race early, as soon as the winner is certified.
    progress : bool
        Whether to show the race while it runs, as in `race`.
    callbacks : Sequence[Callback] | None
        Functions that are called as `f(event, view)` with every event.
    watch : bool
        Whether to serve a live page of the race on this machine.

    Returns
    -------
    Verdict
        The trial to keep, and the reasons.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The study has several directions, the objective is not a function or returns a number, or
        trials would run in another process.
    JournalMismatch
        The journal holds another race.

    Examples
    --------
    ::

        import optuna
        from latebloomer.integrations.optuna import race_study

        def objective(trial):
            slow = trial.suggest_float("slow", 1, 50)
            best = 0.5 + slow / 100
            for n in range(1, 101):
                yield best * n / (n + slow)

        study = optuna.create_study(direction="maximize")
        verdict = race_study(study, objective, n_configs=8, trainings=3, full_steps=100)
        print(study.best_params, verdict.name)
    """
    optuna = library("optuna", "studies", "optuna")
    need_one_direction(study)
    why = "it yields a value for each step of its training"
    require(callable(objective), "objective", objective, "a function of a trial", why)
    need_several("n_configs", n_configs)
    if runner != "local" and (not isinstance(runner, LocalRunner) or runner.isolate):
        why = "trials must run in this process, where their settings reach the study"
        raise SettingError(f"runner is given, but {why}: omit it, or use LocalRunner(...)")
    key = f"{KEY}:{name}"
    builders = builders_of(optuna, study, objective, key, n_configs)
    trials = [builder.trial for builder in builders]
    if new_names.names_folder(journal):  # the file is named after the study and the race
        words = re.sub(r"[^\w.-]+", "-", f"{study.study_name}-{name}")
        journal = make_folder(Path(str(journal))) / f"{words}.db"
    known = study.user_attrs.get(key)
    if known is not None:
        _need_journal(study, trials, known, journal, policy)
    mirror = StudyMirror(optuna, study, trials, key)
    request = RaceRequest(
        learners={f"{NUMBERED}{builder.trial.number}": builder for builder in builders},
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
            maximize=study.direction.name == "MAXIMIZE",
            winner_share=winner_share,
            min_pulls=min_pulls,
            score_range=score_range,
            stop=stop,
        ),
        options=RunOptions(
            runner=runner,
            progress=progress,
            callbacks=[mirror, *check_callbacks(callbacks)],
            watch=watch,
        ),
    )
    return start_race(request, journal, ERROR if known is None else RESUME)


def _need_journal(
    study: Any, trials: Sequence[Any], known: Mapping[str, Any], place: Place | None, policy: Any
) -> None:
    """Rebuild the journal from the values in the storage, if the journal is lost.

    This is for studies in a database if the machine was lost with its disk, such as a preempted
    machine in a cloud.
    """
    if place is None:
        raise SettingError("journal=None, but the study's race has started: name its file")
    if holds_race(place):
        own, studys = {"race": race_in(place).race}, {"race": known["race"]}
        need_same(place, own, studys, "The study's race needs its own journal: give another.")
        return
    created = events.Created(known["race"], known["settings"], tuple(known["names"]))
    state, curves = RaceState(created, policy), frozen_trials(study, trials)
    with closing(RecordedRace(state, files.create(place, created))) as race:
        while not state.session.over:
            arm = state.session.ask()
            n, trial = state.session.pulls_of(arm) + 1, curves[arm]
            event: events.Event
            if n in trial.intermediate_values:
                share = state.shares.get(state.names[arm])
                steps = None if share is None else share.steps_of(n)
                event = events.ScoreReported(arm, trial.intermediate_values[n], steps=steps)
            elif LEFT in trial.user_attrs:
                event = events.LearnerLeft(arm, *trial.user_attrs[LEFT])
            else:
                break
            race.record(event)
