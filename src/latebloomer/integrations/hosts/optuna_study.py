"""A race as the driver of an Optuna study: its sampler proposes, our policy picks and drops.

Optuna cannot suspend a trial, so all trials of a race stay RUNNING until they are dropped. A
dropped trial ends as PRUNED with its values so far, and the winner as COMPLETE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from numbers import Real
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder
from latebloomer.errors import SettingError, need_whole, require
from latebloomer.integrations.library_learner import library
from latebloomer.integrations.optuna import need_one_direction
from latebloomer.racing.api import race
from latebloomer.racing.callbacks import Callback, RaceView, check_callbacks
from latebloomer.racing.journal import RACES, RESUME, Place, files
from latebloomer.racing.journal.names import (
    check_journal_options,
    names_folder,
)
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.runners.contract import make_runner
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.settings import holds_race, need_same, race_in
from latebloomer.racing.training_share import declared
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.learner_view import DROPPED

__all__ = ["race_study"]

KEY = "latebloomer"  # prefix of attributes that a race keeps in a study and its trials
LEFT = f"{KEY}:left"  # how and why a trial takes no more pulls
OURS = {  # settings of a race that are not the caller's here, and why
    "maximize": "follows from the study's direction",
    "if_exists": "follows from the study",
}


def race_study(
    study: Any,
    objective: Callable[[Any], Any],
    n_configs: int = 64,
    trainings: float | None = None,
    *,
    name: str = "race",
    journal: Place | None = RACES,
    callbacks: Sequence[Callback] | None = None,
    **settings: Any,
) -> Verdict:
    """Race configurations that a study's sampler proposes; the winner is the study's best trial.

    Called again after a kill, with a study from the same storage, it continues from its journal,
    or from the values in the storage if the journal is gone.

    Parameters
    ----------
    study : Any
        An Optuna study with one direction, which says whether lower or higher values are better.
    objective : Callable[[Any], Any]
        Function of a trial that asks for settings as usual and then yields a value for each step
        of its training, or returns an object with `pull()`.
    n_configs : int
        Number of configurations that race.
    trainings : float | None
        Budget in full trainings of `full_steps` steps each; or give `budget` or `seconds`.
    name : str
        Name of the race, which tells several races of one study apart.
    journal : Place | None
        Journal that records every pull, as in `race`.
    callbacks : Sequence[Callback] | None
        Functions that are called as `f(event, view)` with every event.
    settings : Any
        All other settings are those of `race`: `budget`, `full_steps`, `policy`, `seed`.

    Returns
    -------
    Verdict
        The trial to keep, and why.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The study has several directions, the objective is not a function or returns a number, or
        a setting is given that follows from the study.
    JournalMismatch
        The journal holds another race.

    Examples
    --------
    ::

        import optuna
        from latebloomer.integrations.hosts.optuna_study import race_study

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
    _check(study, objective, n_configs, settings)
    key = f"{KEY}:{name}"
    builders = _trials_of_race(optuna, study, objective, key, n_configs)
    trials = [builder.trial for builder in builders]
    check_journal_options(journal, RESUME)
    place = _file_of(journal, study, name)
    known = study.user_attrs.get(key)
    if known is not None:
        _need_journal(study, trials, known, place, settings.get("policy"))
    mirror = StudyMirror(optuna, study, trials, key)
    return race(
        {_name_of(builder.trial): builder for builder in builders},
        trainings=trainings, journal=place, maximize=study.direction.name == "MAXIMIZE",
        if_exists="error" if known is None else RESUME,
        callbacks=[mirror, *check_callbacks(callbacks)], **settings,
    )  # fmt: skip


def _check(study: Any, objective: Any, n_configs: Any, settings: Mapping[str, Any]) -> None:
    need_one_direction(study)
    require(
        callable(objective), "objective", objective, "a function of a trial",
        "it yields a value for each step of its training",
    )  # fmt: skip
    require(need_whole("n_configs", n_configs) >= 2, "n_configs", n_configs, "at least 2",
            "with one there is nothing to choose")  # fmt: skip
    given = [one for one in OURS if one in settings]
    if given:
        raise SettingError(f"{given[0]} is given, but it {OURS[given[0]]}: remove it")
    runner = make_runner(settings.get("runner", "local"))
    if not isinstance(runner, LocalRunner) or runner.isolate:
        raise SettingError(
            "runner is given, but trials must run in this process, where their settings reach the "
            "study: omit it, or use LocalRunner(...) without isolate"
        )


class TrialBuilder:
    """Builds the learner of a trial; Optuna gives a trial the same settings again."""

    def __init__(self, objective: Callable[[Any], Any], trial: Any) -> None:
        self._objective, self.trial = objective, trial
        self._built: Any = None
        self.full_steps = declared(objective)

    def __call__(self) -> Any:
        built, self._built = self._built, None
        return self._objective(self.trial) if built is None else built

    def build_first(self, study: Any, failed: Any) -> None:
        """Build the learner for the first call; refuse an objective that trains to the end."""
        built = self._objective(self.trial)
        if isinstance(built, Real):
            study.tell(self.trial, state=failed)
            raise SettingError(
                f"The objective returned {built}, but race_study needs one that can pause after "
                "each step. In the training loop, write `yield value` in place of "
                "`trial.report(value, step)`, and remove should_prune() and the return."
            )
        self._built = built


# --- the trials of a race ---


def _trials_of_race(
    optuna: Any, study: Any, objective: Callable[[Any], Any], key: str, n_configs: int
) -> list[TrialBuilder]:
    """Return the trials that a killed process asked for, and new ones for the rest."""
    frozen = [one for one in study.get_trials(deepcopy=False) if one.user_attrs.get(KEY) == key]
    if len(frozen) > n_configs or (key in study.user_attrs and len(frozen) < n_configs):
        raise SettingError(
            f"n_configs={n_configs}, but {key.partition(':')[2]!r} of this study has "
            f"{len(frozen)} trials: give that number to resume it, or another name="
        )
    # Optuna has no public way to continue a trial that another process asked for.
    trials = [optuna.trial.Trial(study, one._trial_id) for one in frozen]
    builders = [TrialBuilder(objective, trial) for trial in trials]
    while len(builders) < n_configs:
        builder = TrialBuilder(objective, study.ask())
        if not builders:
            builder.build_first(study, optuna.trial.TrialState.FAIL)
        builder.trial.set_user_attr(KEY, key)
        builders.append(builder)
    return builders


def _name_of(trial: Any) -> str:
    return f"trial {trial.number}"


class StudyMirror:
    """Shows a race in a study: values as they come, and the state in which each trial ends."""

    def __init__(self, optuna: Any, study: Any, trials: Sequence[Any], key: str) -> None:
        self._states = optuna.trial.TrialState
        self._study, self._trials, self._key = study, trials, key
        self._pulls = [0] * len(trials)
        frozen = _frozen(study, trials)
        self._shown = [len(one.intermediate_values) for one in frozen]  # before a kill
        self._running = {arm for arm, one in enumerate(frozen) if not one.state.is_finished()}

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if isinstance(event, events.Began):
            self._begin(view)
        elif not (isinstance(event, events.ScoreReported) and self._has(event, view)):
            self._show(event)
        if isinstance(event, events.Began | events.ScoreReported | events.LearnerLeft):
            self._end_dropped(view)

    def _has(self, event: events.ScoreReported, view: RaceView) -> bool:
        """Return whether a score is shown already: a resumed race repeats the latest."""
        return self._pulls[event.arm] >= view.pulls[event.arm]

    def _begin(self, view: RaceView) -> None:
        """Record what the race is made of, and report what a kill has left out."""
        if self._key not in self._study.user_attrs:
            settings = json.loads(json.dumps(view.settings.as_dict()))
            kept = {"race": view.id, "settings": settings, "names": list(view.names)}
            self._study.set_user_attr(self._key, kept)
        for event in view.events():
            self._show(event)

    def _show(self, event: events.Event) -> None:
        match event:
            case events.ScoreReported():
                self._pulls[event.arm] += 1
                if self._pulls[event.arm] > self._shown[event.arm]:
                    self._trials[event.arm].report(event.score, step=self._pulls[event.arm])
            case events.LearnerLeft() if event.arm in self._running:
                self._trials[event.arm].set_user_attr(LEFT, [event.how, event.why])
                if event.how == events.FAILED:
                    self._end(event.arm, state=self._states.FAIL)
            case events.Decided():
                winner = list(map(_name_of, self._trials)).index(event.summary["name"])
                self._end(winner, event.summary["score"])
                for arm in sorted(self._running):
                    self._end(arm, state=self._states.PRUNED)

    def _end_dropped(self, view: RaceView) -> None:
        dropped = {row.arm for row in view.standings() if row.state == DROPPED}
        for arm in sorted(dropped & self._running):
            self._end(arm, state=self._states.PRUNED)

    def _end(self, arm: int, value: float | None = None, state: Any = None) -> None:
        if arm in self._running:
            self._study.tell(self._trials[arm], value, state=state)
            self._running.remove(arm)


def _frozen(study: Any, trials: Sequence[Any]) -> list[Any]:
    """Return the trials as the storage has them."""
    found = {one.number: one for one in study.get_trials(deepcopy=False)}
    return [found[trial.number] for trial in trials]


# --- after a kill ---


def _file_of(journal: Place | None, study: Any, name: str) -> Path | None:
    """Return the journal's file; in a folder it is named after the study and the race."""
    if journal is None or not names_folder(journal):
        return None if journal is None else Path(journal)
    words = re.sub(r"[^\w.-]+", "-", f"{study.study_name}-{name}")
    return make_folder(Path(journal)) / f"{words}.db"


def _need_journal(
    study: Any, trials: Sequence[Any], known: Mapping[str, Any], place: Path | None, policy: Any
) -> None:
    """Rebuild the journal from the values in the storage, if it is gone."""
    if place is None:
        raise SettingError(
            "journal=None, but the study has a race that has started: name a file to resume it, "
            "or give another name="
        )
    if holds_race(place):
        own, studys = {"race": race_in(place).race}, {"race": known["race"]}
        need_same(place, own, studys, "The study's race needs its own journal: give another.")
        return
    created = events.Created(known["race"], known["settings"], tuple(known["names"]))
    state, curves = RaceState(created, policy), _frozen(study, trials)
    with closing(files.create(place, created)) as journal:
        while (event := _next_event(state, curves)) is not None:
            journal.append(event)
            state.apply(event)


def _next_event(state: RaceState, curves: Sequence[Any]) -> events.Event | None:
    """Return what came next in a race, by the values that its trials have reported."""
    if state.session.over:
        return None
    arm = state.session.ask()
    n, one = state.session.pulls_of(arm) + 1, curves[arm]
    if n in one.intermediate_values:
        share = state.shares.get(state.names[arm])
        steps = None if share is None else share.steps_of(n)
        return events.ScoreReported(arm, one.intermediate_values[n], steps=steps)
    return events.LearnerLeft(arm, *one.user_attrs[LEFT]) if LEFT in one.user_attrs else None
