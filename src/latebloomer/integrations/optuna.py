"""Optuna: a study as a learner, a race as the driver of a study, and our policies as a pruner.

Which algorithm *and* which settings is one question. A pull of a `TunerLearner` is one more trial,
or a slice of time, and its score is the best value found so far, which only rises.

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
from time import process_time
from typing import Any, NamedTuple

from latebloomer._util.atomic_files import make_folder
from latebloomer._util.interrupts import TimeIsOver, interrupted_after
from latebloomer._util.text import brief, plain_or_text
from latebloomer.errors import LearnerError, SettingError, need_in, require
from latebloomer.integrations.hosted_race import need_phases, need_several
from latebloomer.integrations.library_learner import at_least_1, base_class, library
from latebloomer.policies.base import Policy
from latebloomer.racing.callbacks import Callback, RaceView, check_callbacks
from latebloomer.racing.journal import files, new_names
from latebloomer.racing.journal.journal_file import ERROR, RACES, RESUME, Place
from latebloomer.racing.learners import full_training
from latebloomer.racing.learners.learner import ScoreStream
from latebloomer.racing.race_state import RaceState
from latebloomer.racing.recorded_race import RecordedRace
from latebloomer.racing.request import Budget, RaceRequest, Rules, RunOptions
from latebloomer.racing.run_race import start_race
from latebloomer.racing.runners.local import LocalRunner
from latebloomer.racing.same_race import holds_race, need_same, race_in
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session import events
from latebloomer.session.arm_views import NUMBERED, SETTINGS
from latebloomer.session.session import Session

__all__ = ["LatebloomerPruner", "TunerLearner", "best_configuration", "race_study"]

FILE = "optuna.pickle"
FIRST_TRIALS = 4  # further ones in a pull, at most, until one is complete
KEY = "latebloomer"  # prefix of attributes that a race keeps in a study and its trials
LEFT = f"{KEY}:left"  # how and why a trial takes no more pulls


class TunerLearner:
    """Wrap an Optuna study as a learner. One pull is one trial, or as many as fit into a time.

    The score is the best value so far, negated with `direction="minimize"`, so that higher is
    better: race with `maximize=True`. A trial that is pruned, takes too long or ends in NaN is a
    pull, too, and leaves the best value unchanged. `best_configuration` returns the best settings
    of all learners of a race: a learner that was dropped may have found them.

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
    default : Mapping[str, Any] | None
        Settings of the first trial: good ones that you know, such as a library's own.
    seconds_per_pull : float | None
        CPU seconds of this process per pull: n pulls are the trials that fit into n times that,
        the last of which may take longer. Default: one trial per pull, whatever it takes.
    timeout : float | None
        Seconds after which a trial is interrupted, at its next Python instruction; it ends as
        pruned. Compiled code is interrupted when it returns. Default: no limit.

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
        default: Mapping[str, Any] | None = None,
        seconds_per_pull: float | None = None,
        timeout: float | None = None,
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
        for name, seconds in (("seconds_per_pull", seconds_per_pull), ("timeout", timeout)):
            if seconds is not None:
                need_in(name, seconds, "(0, inf)", "it is a time in seconds")
        self._objective, self.study = objective, study
        self._sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        self._default, self._slice, self._timeout = default, seconds_per_pull, timeout
        self._pulls, self._spent = 0, 0.0  # the second in CPU seconds of trials

    def pull(self) -> float:
        """Run more trials and return the best value so far."""
        if self._default is not None and not self.study.get_trials(deepcopy=False):
            self.study.enqueue_trial(dict(self._default))
        self._pulls += 1
        if self._slice is None:
            self._try_one()
        while self._slice is not None and self._spent < self._pulls * self._slice:
            self._try_one()
        for _ in range(FIRST_TRIALS):  # the first ones may be pruned
            if not self._has_value():
                self._try_one()
        return self._sign * float(self.study.best_value)  # an error if no trial is complete

    def _try_one(self) -> None:
        """Run one more trial."""
        trial, began = self.study.ask(), process_time()
        value, state = None, self._optuna.trial.TrialState.FAIL
        try:
            with interrupted_after(self._timeout):
                value = self._objective(trial)
            state = None
        except (self._optuna.TrialPruned, TimeIsOver):
            value, state = None, self._optuna.trial.TrialState.PRUNED
        finally:
            self._spent += process_time() - began
            self.study.tell(trial, value, state=state)

    def _has_value(self) -> bool:
        done = self._optuna.trial.TrialState.COMPLETE
        return bool(self.study.get_trials(deepcopy=False, states=(done,)))

    @property
    def score_details(self) -> dict[str, Any]:
        """The best settings so far, for the journal of a race."""
        return settings_details(self.model)

    @property
    def model(self) -> dict[str, Any]:
        """The best settings so far."""
        return dict(self.study.best_params)

    def save(self, folder: Path) -> None:
        """Pickle the trials and the sampler."""
        saved = (self.study.get_trials(), self.study.sampler, self._pulls, self._spent)
        (Path(folder) / FILE).write_bytes(pickle.dumps(saved))

    def load(self, folder: Path) -> None:
        """Restore the state saved in `folder`, which you must trust: unpickling can run any code.

        Trials that the study's own storage has kept are not added again.
        """
        trials, self.study.sampler, self._pulls, self._spent = pickle.loads(
            (Path(folder) / FILE).read_bytes()
        )
        self.study.add_trials(trials[len(self.study.get_trials(deepcopy=False)) :])


def settings_details(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a learner reports with a score so that the journal has its settings."""
    return {SETTINGS: {str(key): plain_or_text(value) for key, value in params.items()}}


class Configuration(NamedTuple):
    """The best settings that a race of tuners has found.

    Attributes
    ----------
    learner : str
        Name of the learner that found them.
    params : dict[str, Any]
        The settings.
    score : float
        Their score.
    """

    learner: str
    params: dict[str, Any]
    score: float


def best_configuration(verdict: Verdict) -> Configuration:
    """Return the best settings that any learner of a race has found, dropped ones included.

    A race keeps the learner that promises most. What you use is a configuration, and a learner
    that was dropped may have found the best one.

    Parameters
    ----------
    verdict : Verdict
        Verdict of a race of tuners (`TunerLearner`); it may be read from a journal.

    Returns
    -------
    Configuration
        The learner's name, its best settings and their score.

    Raises
    ------
    MissingExtra
        Optuna is not installed, or too old.
    LearnerError
        No learner of the race is a `TunerLearner`.

    Examples
    --------
    ::

        verdict = race(tuners, budget=20)
        name, params, score = best_configuration(verdict)
    """
    library("optuna", "tuners", "optuna")
    tuned = [view for view in verdict.learners if SETTINGS in view.details]
    if not tuned:
        raise LearnerError("No learner of this race is a TunerLearner: they have no settings.")
    best = max(tuned, key=lambda view: view.score if verdict.history.sign > 0 else -view.score)
    return Configuration(best.name, dict(best.details[SETTINGS]), best.score)


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
        Budget in full trainings; or give `budget` or `seconds`.
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
        Name of the race, which tells several races of one study apart.
    journal : Place | None
        Journal that records every pull, as in `race`.
    policy : Policy | str
        Rule that decides which configuration trains next and which is dropped.
    runner : str | LocalRunner
        "local", or a `LocalRunner` with settings: trials run in this process.
    seed : int
        Seed for random policies.
    winner_share : float
        Fraction of the budget reserved for training the winner further.
    min_pulls : int | None
        Number of pulls every configuration gets before any can be dropped, as in `race`.
    score_range : tuple[float | None, float | None] | None
        Lowest and highest possible value, as in `race`.
    stop : str | None
        "certified" ends the race early, once the winner is certified.
    progress : bool
        Whether to show the race while it runs, as in `race`.
    callbacks : Sequence[Callback] | None
        Functions that are called as `f(event, view)` with every event.
    watch : bool
        Whether to serve a live page of the race on this machine.

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
    builders = _builders(optuna, study, objective, key, n_configs)
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


class TrialBuilder:
    """Builds the learner of a trial; Optuna gives a trial the same settings again."""

    def __init__(self, objective: Callable[[Any], Any], trial: Any, built: Any = None) -> None:
        self._objective, self.trial = objective, trial
        self._built = built  # for the first call
        self.full_steps = full_training.declared(objective)

    def __call__(self) -> Any:
        built, self._built = self._built, None
        if built is None:
            built = self._objective(self.trial)
        if isinstance(built, Iterator):
            # It asks for settings while it runs.
            return ScoreStream(built, lambda: settings_details(self.trial.params))
        if not hasattr(built, "score_details"):
            with suppress(AttributeError):  # an object that takes no attributes
                built.score_details = settings_details(self.trial.params)
        return built


def _builders(optuna: Any, study: Any, objective: Any, key: str, n: int) -> list[TrialBuilder]:
    """Return the trials that a killed process asked for, and new ones for the rest."""
    frozen = [
        stored for stored in study.get_trials(deepcopy=False) if stored.user_attrs.get(KEY) == key
    ]
    if len(frozen) > n or (key in study.user_attrs and len(frozen) < n):
        problem = f"n_configs={n}, but this race of the study has {len(frozen)} trials"
        raise SettingError(f"{problem}: give that number to resume it, or another name=")
    waits = optuna.trial.TrialState.WAITING
    # Optuna has no public way to continue a trial that another process asked for.
    trials = [
        study.ask() if stored.state == waits else optuna.trial.Trial(study, stored._trial_id)
        for stored in frozen
    ]
    builders = [TrialBuilder(objective, trial) for trial in trials]
    while len(builders) < n:
        trial, built, pauses = _new_trial(optuna, study, key), None, True
        if not builders:
            with suppress(Exception):  # the race calls it again, and records why it fails
                built = objective(trial)
                pauses = hasattr(built, "pull") or isinstance(built, Iterator)
        if not pauses:
            trial.set_user_attr(KEY, "")  # it is not a trial of the race
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            problem = (
                f"The objective returned {brief(built)}, but race_study needs one that pauses"
            )
            raise SettingError(
                f"{problem}: write `yield value` for `trial.report(...)`, no return"
            )
        builders.append(TrialBuilder(objective, trial, built))
    return builders


def _new_trial(optuna: Any, study: Any, key: str) -> Any:
    """Return a new trial that has the race's name from its first moment, so that no kill loses it.

    A trial that the user has enqueued comes first, as with `study.ask()`.
    """
    states = optuna.trial.TrialState
    waiting = study.get_trials(deepcopy=False, states=(states.WAITING,))
    if waiting:
        # Optuna has no public way to name a trial that waits.
        study._storage.set_trial_user_attr(waiting[0]._trial_id, KEY, key)
        trial = study.ask()
        if trial.user_attrs.get(KEY) != key:  # another process was faster
            trial.set_user_attr(KEY, key)
        return trial
    study.add_trial(optuna.trial.create_trial(state=states.RUNNING, user_attrs={KEY: key}))
    own = [
        stored for stored in study.get_trials(deepcopy=False) if stored.user_attrs.get(KEY) == key
    ]
    return optuna.trial.Trial(study, own[-1]._trial_id)


class StudyMirror:
    """Shows a race in a study: values as they come, and the state in which each trial ends."""

    def __init__(self, optuna: Any, study: Any, trials: Sequence[Any], key: str) -> None:
        self._states = optuna.trial.TrialState
        self._study, self._trials, self._key = study, trials, key
        frozen = _frozen(study, trials)
        self._shown = [len(trial.intermediate_values) for trial in frozen]
        self._running = {arm for arm, trial in enumerate(frozen) if not trial.state.is_finished()}

    def __call__(self, event: events.Event, view: RaceView) -> None:
        if isinstance(event, events.ProcessStarted):
            self._begin(view)
        else:
            self._show(event, view, view.pulls)

    def _begin(self, view: RaceView) -> None:
        """Record what the race is made of, and report what a kill has left out."""
        known = self._study.user_attrs.get(self._key)
        if known is None or known["race"] != view.id:  # one that ended before its first pull
            kept = {"race": view.id, "settings": view.settings.as_dict(), "names": [*view.names]}
            self._study.set_user_attr(self._key, kept)
        pulls: Counter[int] = Counter()
        for event in view.events():
            if isinstance(event, events.ScoreReported):
                pulls[event.arm] += 1
            self._show(event, view, pulls)
        for row in view.standings():
            if row.state == events.DROPPED:
                self._end(row.arm, state=self._states.PRUNED)

    def _show(self, event: events.Event, view: RaceView, pulls: Any) -> None:
        match event:
            case events.ScoreReported(arm) if pulls[arm] > self._shown[arm]:
                self._shown[arm] = pulls[arm]  # a resumed race repeats the latest
                self._trials[arm].report(event.score, step=pulls[arm])
            case events.LearnerLeft() if event.arm in self._running:
                self._trials[event.arm].set_user_attr(LEFT, [event.how, event.why])
                if event.how == events.FAILED:
                    self._end(event.arm, state=self._states.FAIL)
            case events.Dropped():
                self._end(event.arm, state=self._states.PRUNED)
            case events.RaceFinished():
                self._end(view.names.index(event.summary["name"]), event.summary["score"])
                for arm in sorted(self._running):
                    self._end(arm, state=self._states.PRUNED)

    def _end(self, arm: int, value: float | None = None, state: Any = None) -> None:
        if arm in self._running:
            self._study.tell(self._trials[arm], value, state=state)
            self._running.remove(arm)


def _frozen(study: Any, trials: Sequence[Any]) -> list[Any]:
    """Return the trials as the storage has them."""
    by_number = {stored.number: stored for stored in study.get_trials(deepcopy=False)}
    return [by_number[trial.number] for trial in trials]


# --- after a kill ---


def _need_journal(
    study: Any, trials: Sequence[Any], known: Mapping[str, Any], place: Place | None, policy: Any
) -> None:
    """Rebuild the journal from the values in the storage, if it is gone.

    For studies in a database whose machine is gone with its disk, as a preempted one in a cloud.
    """
    if place is None:
        raise SettingError("journal=None, but the study's race has started: name its file")
    if holds_race(place):
        own, studys = {"race": race_in(place).race}, {"race": known["race"]}
        need_same(place, own, studys, "The study's race needs its own journal: give another.")
        return
    created = events.Created(known["race"], known["settings"], tuple(known["names"]))
    state, curves = RaceState(created, policy), _frozen(study, trials)
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
        trials = [
            other for other in study.get_trials(deepcopy=False) if other.number != trial.number
        ]
        curves = [_curve(other)[:level] for other in trials]
        others = [curve for curve in curves if len(curve) == level and all(map(isfinite, curve))]
        if not level or not others:
            return False
        ended = sum(other.state.is_finished() and len(_curve(other)) < level for other in trials)
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
