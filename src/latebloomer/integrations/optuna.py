"""Optuna: a study as a learner, a race as the driver of a study, and our policies as a pruner.

Which algorithm *and* which settings is one question. A pull of a `TunerLearner` is one more trial,
and its score is the best value found so far, which only rises.

In `race_study` the study's sampler proposes, and our policy picks and drops. Optuna cannot suspend
a trial, so all trials of a race stay RUNNING until they are dropped. A dropped trial ends as
PRUNED with its values so far, and the winner as COMPLETE.
"""

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from math import ceil, isfinite
from pathlib import Path
from typing import Any

from latebloomer._util.atomic_files import make_folder
from latebloomer._util.text import brief
from latebloomer.errors import SettingError, require
from latebloomer.integrations.hosted_race import need_phases, need_several
from latebloomer.integrations.library_learner import at_least_1, base_class, library
from latebloomer.policies.base import Policy
from latebloomer.racing import api, training_share
from latebloomer.racing.journal import RACES, RESUME, Place, files, listing
from latebloomer.racing.race_state import Callback, RaceState, RaceView, check_callbacks
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.settings import holds_race, need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.learner_view import DROPPED
from latebloomer.session.session import Session

__all__ = ["LatebloomerPruner", "TunerLearner", "race_study"]

FILE = "optuna.pickle"
KEY = "latebloomer"  # prefix of attributes that a race keeps in a study and its trials
LEFT = f"{KEY}:left"  # how and why a trial takes no more pulls


class TunerLearner:
    """Wrap an Optuna study as a learner. One pull is one trial.

    The score is the best value so far, negated with `direction="minimize"`, so that higher is
    better: race with `maximize=True`. A trial that is pruned or ends in NaN is a pull, too, and
    leaves the best value unchanged.

    Parameters
    ----------
    objective : Callable[[Any], float]
        Function of a trial that returns its value, as for `study.optimize`.
    study : Any
        Your own study. Default: a study in memory.
    sampler : Any
        Sampler of the study in memory. Default: TPE, seeded by `seed`.
    direction : str
        "maximize" or "minimize", for the study in memory.
    seed : int | None
        Seed of TPE.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The study has several objectives, or both a study and a sampler are given.

    Examples
    --------
    ::

        from latebloomer import race
        from latebloomer.integrations.optuna import TunerLearner

        def hill(trial):
            return -((trial.suggest_float("x", -10, 10) - 2) ** 2)

        def ridge(trial):
            return -abs(trial.suggest_float("x", -10, 10) - 2) - 5

        tuners = {"hill": lambda seed: TunerLearner(hill, seed=seed),
                  "ridge": lambda seed: TunerLearner(ridge, seed=seed)}
        verdict = race(tuners, budget=20)
    """

    def __init__(
        self,
        objective: Callable[[Any], float],
        *,
        study: Any = None,
        sampler: Any = None,
        direction: str = "maximize",
        seed: int | None = None,
    ) -> None:
        self._optuna = library("optuna", "tuners", "optuna")
        why = "it returns the trial's value"
        require(callable(objective), "objective", objective, "a function of a trial", why)
        if study is None:
            sampler = sampler or self._optuna.samplers.TPESampler(seed=seed)
            study = self._optuna.create_study(sampler=sampler, direction=direction)
        elif sampler is not None:
            raise SettingError("study and sampler are both given, but a study has its own sampler")
        need_one_direction(study)
        self._objective, self.study = objective, study
        self._sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0

    def pull(self) -> float:
        """Run one more trial and return the best value so far."""
        trial = self.study.ask()
        value, state = None, self._optuna.trial.TrialState.FAIL
        try:
            value, state = self._objective(trial), None
        except self._optuna.TrialPruned:
            state = self._optuna.trial.TrialState.PRUNED
        finally:
            self.study.tell(trial, value, state=state)
        return self._sign * float(self.study.best_value)  # an error if no trial is complete

    @property
    def model(self) -> dict[str, Any]:
        """The best settings so far."""
        return dict(self.study.best_params)

    def save(self, folder: Path) -> None:
        """Pickle the trials and the sampler."""
        saved = (self.study.get_trials(), self.study.sampler)
        (Path(folder) / FILE).write_bytes(pickle.dumps(saved))

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`, which you must trust: unpickling can run any code.

        Trials that the study's own storage has kept are not added again.
        """
        trials, self.study.sampler = pickle.loads((Path(folder) / FILE).read_bytes())
        self.study.add_trials(trials[len(self.study.get_trials(deepcopy=False)) :])


def need_one_direction(study: Any) -> None:
    """Raise a `SettingError` if a study has several objectives."""
    if len(study.directions) > 1:
        raise SettingError(f"the study has {len(study.directions)} directions, but a race needs 1")


# --- a race inside a study ---


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
    for given in settings.keys() & {"maximize", "if_exists"}:
        raise SettingError(f"{given} is given, but it follows from the study: remove it")
    runner = settings.get("runner", "local")
    if runner != "local" and (not isinstance(runner, LocalRunner) or runner.isolate):
        why = "trials must run in this process, where their settings reach the study"
        raise SettingError(f"runner is given, but {why}: omit it, or use LocalRunner(...)")
    key = f"{KEY}:{name}"
    builders = _builders(optuna, study, objective, key, n_configs)
    trials = [builder.trial for builder in builders]
    if listing.names_folder(journal):  # the file is named after the study and the race
        words = re.sub(r"[^\w.-]+", "-", f"{study.study_name}-{name}")
        journal = make_folder(Path(str(journal))) / f"{words}.db"
    known = study.user_attrs.get(key)
    if known is not None:
        _need_journal(study, trials, known, journal, settings.get("policy"))
    mirror = StudyMirror(optuna, study, trials, key)
    return api.race(
        {f"trial {builder.trial.number}": builder for builder in builders},
        trainings=trainings, journal=journal, maximize=study.direction.name == "MAXIMIZE",
        if_exists="error" if known is None else RESUME,
        callbacks=[mirror, *check_callbacks(callbacks)], **settings,
    )  # fmt: skip


class TrialBuilder:
    """Builds the learner of a trial; Optuna gives a trial the same settings again."""

    def __init__(self, objective: Callable[[Any], Any], trial: Any, built: Any = None) -> None:
        self._objective, self.trial = objective, trial
        self._built = built  # for the first call
        self.full_steps = training_share.declared(objective)

    def __call__(self) -> Any:
        built, self._built = self._built, None
        return self._objective(self.trial) if built is None else built


def _builders(optuna: Any, study: Any, objective: Any, key: str, n: int) -> list[TrialBuilder]:
    """Return the trials that a killed process asked for, and new ones for the rest."""
    frozen = [one for one in study.get_trials(deepcopy=False) if one.user_attrs.get(KEY) == key]
    if len(frozen) > n or (key in study.user_attrs and len(frozen) < n):
        said = f"n_configs={n}, but this race of the study has {len(frozen)} trials"
        raise SettingError(f"{said}: give that number to resume it, or another name=")
    # Optuna has no public way to continue a trial that another process asked for.
    trials = [optuna.trial.Trial(study, one._trial_id) for one in frozen]
    builders = [TrialBuilder(objective, trial) for trial in trials]
    while len(builders) < n:
        trial, built, pauses = study.ask(), None, True
        if not builders:
            with suppress(Exception):  # the race calls it again, and records why it fails
                built = objective(trial)
                pauses = hasattr(built, "pull") or isinstance(built, Iterator)
        if not pauses:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            said = f"The objective returned {brief(built)}, but race_study needs one that pauses"
            raise SettingError(f"{said}: write `yield value` for `trial.report(...)`, no return")
        trial.set_user_attr(KEY, key)
        builders.append(TrialBuilder(objective, trial, built))
    return builders


class StudyMirror:
    """Shows a race in a study: values as they come, and the state in which each trial ends."""

    def __init__(self, optuna: Any, study: Any, trials: Sequence[Any], key: str) -> None:
        self._states = optuna.trial.TrialState
        self._study, self._trials, self._key = study, trials, key
        frozen = _frozen(study, trials)
        self._shown = [len(one.intermediate_values) for one in frozen]
        self._running = {arm for arm, one in enumerate(frozen) if not one.state.is_finished()}

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if isinstance(event, events.Began):
            self._begin(view)
        else:
            self._show(event, view, view.pulls)
        if isinstance(event, events.Began | events.ScoreReported | events.LearnerLeft):
            for row in view.standings():
                if row.state == DROPPED:
                    self._end(row.arm, state=self._states.PRUNED)

    def _begin(self, view: RaceView) -> None:
        """Record what the race is made of, and report what a kill has left out."""
        if self._key not in self._study.user_attrs:
            kept = {"race": view.id, "settings": view.settings.as_dict(), "names": [*view.names]}
            self._study.set_user_attr(self._key, kept)
        pulls: Counter[int] = Counter()
        for event in view.events():
            if isinstance(event, events.ScoreReported):
                pulls[event.arm] += 1
            self._show(event, view, pulls)

    def _show(self, event: events.Event, view: RaceView, pulls: Any) -> None:
        match event:
            case events.ScoreReported(arm) if pulls[arm] > self._shown[arm]:
                self._shown[arm] = pulls[arm]  # a resumed race repeats the latest
                self._trials[arm].report(event.score, step=pulls[arm])
            case events.LearnerLeft() if event.arm in self._running:
                self._trials[event.arm].set_user_attr(LEFT, [event.how, event.why])
                if event.how == events.FAILED:
                    self._end(event.arm, state=self._states.FAIL)
            case events.Decided():
                self._end(view.names.index(event.summary["name"]), event.summary["score"])
                for arm in sorted(self._running):
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


def _need_journal(
    study: Any, trials: Sequence[Any], known: Mapping[str, Any], place: Place | None, policy: Any
) -> None:
    """Rebuild the journal from the values in the storage, if it is gone."""
    if place is None:
        raise SettingError("journal=None, but the study's race has started: name its file")
    if holds_race(place):
        own, studys = {"race": race_in(place).race}, {"race": known["race"]}
        need_same(place, own, studys, "The study's race needs its own journal: give another.")
        return
    created = events.Created(known["race"], known["settings"], tuple(known["names"]))
    state, curves = RaceState(created, policy), _frozen(study, trials)
    with closing(files.create(place, created)) as journal:
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
            journal.append(event)
            state.apply(event)


# --- a pruner ---


class LatebloomerPruner(base_class("optuna.pruners", "BasePruner")):  # type: ignore[misc]
    """Prune trials by our policies, without the promise of a fixed total.

    Optuna runs one trial to its end before the next starts, so a trial is compared with those
    before it: at each level of the policy's plan it continues if its estimate is among the share
    of trials that the plan keeps there. The first trials meet few others and train further than
    later ones. `race_study` compares all at once and spends exactly its budget.

    Parameters
    ----------
    budget : int
        Number of reports that the plan is made for, over all trials. The total may differ.
    n_trials : int
        Number of trials of the study.
    full_steps : int
        Number of reports of a trial that is not pruned.
    policy : Policy | str
        Policy with phases, as in `race`.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    SettingError
        The policy has no phases.
    BudgetError
        The budget is too small for the trials.

    Examples
    --------
    ::

        import optuna
        from latebloomer.integrations.optuna import LatebloomerPruner

        def objective(trial):
            slow = trial.suggest_float("slow", 1, 50)
            for step in range(1, 28):
                value = (0.5 + slow / 100) * step / (step + slow)
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        pruner = LatebloomerPruner(budget=300, n_trials=30, full_steps=27)
        study = optuna.create_study(direction="maximize", pruner=pruner)
        study.optimize(objective, n_trials=30)
    """

    def __init__(
        self, budget: int, n_trials: int, full_steps: int, policy: Policy | str = "auto"
    ) -> None:
        library("optuna", "pruners", "optuna")
        need_several("n_trials", n_trials)
        at_least_1("full_steps", full_steps, "it is the number of reports of a trial")
        session = Session(policy, n_trials, budget, full_steps)
        need_phases(session)
        self._policy, self._full = session.policy, full_steps
        plan = self._policy.plan(n_trials, budget, full_steps)
        keep, upto = plan.keep.tolist(), plan.upto.tolist()
        # The share of all trials that continues after each level.
        self._shares = {n: k / n_trials for n, k in zip(upto, keep[1:], strict=False)}

    def prune(self, study: Any, trial: Any) -> bool:
        """Return whether a trial ends here, by the values that it and others have reported."""
        values = _curve(trial)
        level = max((n for n in self._shares if n <= len(values)), default=0)
        if not all(map(isfinite, values)):
            return True
        trials = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        curves = [_curve(one)[:level] for one in trials]
        others = [one for one in curves if len(one) == level and all(map(isfinite, one))]
        if not level or not others:
            return False
        ended = sum(one.state.is_finished() and len(_curve(one)) < level for one in trials)
        rank = self._rank([values[:level], *others], study.direction.name == "MAXIMIZE")
        return rank >= ceil((1 + len(others) + ended) * self._shares[level])

    def _rank(self, curves: list[list[float]], maximize: bool) -> int:
        """Return how many curves have a better estimate than the first."""
        count, level = len(curves), len(curves[0])
        # A race that ends at this level, where the policy rates all that are in it.
        own: dict[str, Any] = {"maximize": maximize, "min_pulls": level}
        session = Session(self._policy, count, count * level, self._full, **own)
        for step in range(level):
            for arm, curve in enumerate(curves):
                session.tell(arm, curve[step])
        return [row.arm for row in session.standings()].index(0)


def _curve(trial: Any) -> list[float]:
    return [value for _, value in sorted(trial.intermediate_values.items())]
