"""Our policies as a scheduler of Syne Tune: trials are paused at our levels and resumed.

All state is in the journal: after a kill, a new tuner with the same arguments continues the race.
A trial and its arm have the same number.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from latebloomer.errors import SettingError
from latebloomer.integrations.hosted_race import END, GO_ON, WAIT, HostedRace
from latebloomer.integrations.library_learner import base_class, library
from latebloomer.racing.journal.journal_file import Place
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED, FINISHED

__all__ = ["RaceCallback", "RaceScheduler"]


SCHEDULER = "syne_tune.optimizer.scheduler"
Suggestion: Any = base_class(SCHEDULER, "TrialSuggestion")
STALE = ("pause", "stop", "end")  # files that a local back end leaves next to a trial
WORKER_TIME = "st_worker_time"  # seconds since a script was started, added to every result


class RaceScheduler(base_class(SCHEDULER, "TrialScheduler")):  # type: ignore[misc]
    """Race `n_trials` configurations that `searcher` proposes in the first phase.

    A pull is one result of a trial. The script reads from its configuration, under
    `max_resource_attr`, up to which result it may train now; then it saves its state and ends. If
    the tuner has several workers, it needs `callbacks=[RaceCallback(), ...]`.

    Parameters
    ----------
    config_space : dict[str, Any]
        Settings, and the spaces from which they are drawn, as in Syne Tune.
    n_trials : int
        Number of configurations that race.
    journal : Place
        File in which every result is recorded.
    metric : str
        Name under which a script reports its score.
    do_minimize : bool
        Whether lower values of the metric are better.
    time_attr : str
        Name of the script's own counter of results: 1, 2, 3, ...
    max_resource_attr : str
        Name of the setting that contains the number of the result up to which a script trains.
    searcher : Any
        Name of one of Syne Tune's searchers, or an object with `suggest()`.
    searcher_kwargs : Mapping[str, Any] | None
        Settings of the searcher, if `searcher` is a name.
    seed : int
        Seed for the searcher and the race.
    settings : Any
        The budget, as `budget=` (total results) or `trainings=8, full_steps=81`; and `policy`,
        `horizon` and `min_pulls` as in `race`.

    Raises
    ------
    MissingExtra
        Syne Tune is not installed, or too old.
    SettingError
        There is no budget, or fewer than two trials.

    Examples
    --------
    ::

        from latebloomer.integrations.syne_tune import RaceScheduler
        from syne_tune.config_space import uniform

        scheduler = RaceScheduler(
            {"slow": uniform(1, 50), "epochs": 20}, 4, "race.db", metric="accuracy",
            do_minimize=False, trainings=2, full_steps=20,
        )
        first = scheduler.suggest()  # a `Tuner(scheduler=scheduler, ...)` calls this
        assert first.config["epochs"] < 20  # it is paused there and compared
    """

    def __init__(
        self,
        config_space: dict[str, Any],
        n_trials: int,
        journal: Place,
        *,
        metric: str,
        do_minimize: bool = True,
        time_attr: str = "epoch",
        max_resource_attr: str = "epochs",
        searcher: Any = "random_search",
        searcher_kwargs: Mapping[str, Any] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        library("syne_tune", "trials of Syne Tune", "syne-tune")
        super().__init__(random_seed=seed)
        self.race = HostedRace(n_trials, journal, maximize=not do_minimize, seed=seed, **settings)
        self.config_space, self.metric, self.do_minimize = config_space, metric, do_minimize
        self.time_attr, self.max_resource_attr = time_attr, max_resource_attr
        self._searcher = searcher
        if isinstance(searcher, str):
            factory = import_module("syne_tune.optimizer.schedulers.searchers.searcher_factory")
            options = {"random_seed": seed, **(searcher_kwargs or {})}
            self._searcher = factory.searcher_factory(searcher, config_space, **options)
        self._started = 0  # number of trials started in this process
        self._caps: dict[int, int] = {}  # the result up to which each running trial trains
        self._paused: set[int] = set()
        self._worker_times: dict[int, float] = {}  # worker time at each trial's last result
        self._tuner: Any = None  # set by the callback

    def verdict(self) -> Verdict:
        """Return which trial to keep, and why."""
        return self.race.verdict()

    def best_config(self) -> dict[str, Any]:
        """Return the winner's configuration."""
        return dict(self.race.state.trials[self.race.session.best_arm].config)

    def is_over(self, status: Any = None) -> bool:
        """Return whether the race has finished, for a tuner's `stop_criterion`."""
        return self.race.session.over

    # --- methods that Syne Tune calls ---

    def suggest(self) -> Any:
        """Start the next trial, or resume one that may train; None if the race has finished."""
        while not self.race.session.over:
            arm = self._started
            if arm == len(self.race.names):
                return self._resume(self._wanted())
            self._started += 1
            if self._has_config(arm):
                return Suggestion.start_suggestion(self._capped(arm))
            self.race.leave(arm, FAILED, "the searcher has no configuration for it")
        return None

    def _has_config(self, arm: int) -> bool:
        """Return whether a trial has a configuration, from before a kill or newly proposed."""
        if arm in self.race.state.trials:
            return True
        config = self._searcher.suggest()
        if config is not None:
            spaces = import_module("syne_tune.config_space")
            config = spaces.cast_config_values(config, self.config_space)
            self.race.assign(str(arm), spaces.postprocess_config(config, self.config_space))
        return config is not None

    def _capped(self, arm: int) -> dict[str, Any]:
        """Return a trial's configuration, with the number of the result at which it ends now.

        A trial that may not be trained further repeats its results.
        """
        waits = self.race.next_of(arm) != GO_ON
        cap = max(1, self.race.session.pulls_of(arm)) if waits else self.race.level(arm)
        self._caps[arm] = cap
        self._paused.discard(arm)
        return {**self.race.state.trials[arm].config, self.max_resource_attr: cap}

    def _wanted(self) -> list[int]:
        return [arm for arm in sorted(self._paused) if self.race.next_of(arm) == GO_ON]

    def _resume(self, wanted: list[int]) -> Any:
        if not wanted:
            cure = "Tuner(n_workers=1), or callbacks=[RaceCallback(), StoreResultsCallback()]"
            raise SettingError(f"a worker is free, but its trials wait for others: {cure}")
        return Suggestion.resume_suggestion(wanted[0], self._capped(wanted[0]))

    def on_trial_result(self, trial: Any, result: Mapping[str, Any]) -> str:
        """Count a result; a trial is paused at its level, and stopped if it was dropped."""
        arm = int(trial.trial_id)
        before, now = self._worker_times.get(arm, 0.0), float(result.get(WORKER_TIME, 0.0))
        self._worker_times[arm] = now
        # The worker time of a new script starts at 0.
        seconds = now - before if now >= before else now
        decision = self.race.on_result(arm, result, self.time_attr, self.metric, seconds)
        if decision == GO_ON and result[self.time_attr] >= self._caps[arm]:
            decision = WAIT  # its script ends now and is started again for the next phase
        if decision != GO_ON:
            self._caps.pop(arm, None)
        if decision == WAIT:
            self._paused.add(arm)
        self.fit_workers()
        return {GO_ON: "CONTINUE", WAIT: "PAUSE", END: "STOP"}[decision]

    def on_trial_complete(self, trial: Any, result: Mapping[str, Any]) -> None:
        """Record a trial whose script ended before its level as finished; it can still win."""
        self._gone(int(trial.trial_id), FINISHED, "finished")

    def on_trial_error(self, trial: Any) -> None:
        """Record a trial as failed."""
        self._gone(int(trial.trial_id), FAILED, "its trial failed")

    def _gone(self, arm: int, how: str, why: str) -> None:
        self._caps.pop(arm, None)
        self.race.leave(arm, how, why)
        self.fit_workers()

    def metric_names(self) -> list[str]:
        """Return a list with the name of the metric that decides."""
        return [self.metric]

    def metric_mode(self) -> str:
        """Return "min" or "max"."""
        return "min" if self.do_minimize else "max"

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that Syne Tune stores with the results."""
        own = {"policy": repr(self.race.settings.policy), "journal": str(self.race.place)}
        metric = {"metric_names": self.metric_names(), "metric_mode": self.metric_mode()}
        return super().metadata() | {"scheduler_kwargs": own} | metric

    # --- several workers ---

    def attend(self, tuner: Any) -> None:
        """Limit a tuner's workers to the trials that may train now: a tuner cannot wait."""
        self._tuner, self._workers = tuner, tuner.n_workers
        self.fit_workers()

    def fit_workers(self) -> None:
        """Set the number of workers to the number of trials that run or may be started."""
        if self._tuner is not None:
            waiting = len(self.race.names) - self._started + len(self._wanted())
            self._tuner.n_workers = max(1, min(self._workers, len(self._caps) + waiting))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_tuner": None}


class RaceCallback(base_class("syne_tune.tuner_callback", "TunerCallback")):  # type: ignore[misc]
    """Let a tuner use several workers, or continue in the folder of a killed tuner.

    Examples
    --------
    ::

        from latebloomer.integrations.syne_tune import RaceCallback
        from syne_tune.results_callback import StoreResultsCallback

        callbacks = [RaceCallback(), StoreResultsCallback()]  # of a `Tuner`
    """

    def on_tuning_start(self, tuner: Any) -> None:
        """Remove the files that a killed tuner left, and limit the workers."""
        for arm in range(len(tuner.scheduler.race.names)):
            for name in STALE if hasattr(tuner.trial_backend, "trial_path") else ():
                (tuner.trial_backend.trial_path(arm) / name).unlink(missing_ok=True)
        tuner.scheduler.attend(tuner)
