"""A scheduler for Ray Tune: trials pause at levels of a policy, then continue or stop.

Ray Tune does not save schedulers, so all state of this scheduler is in its journal: after a kill
of the driver, `Tuner.restore` creates the scheduler again, and it reads the journal.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from latebloomer.errors import SettingError, require
from latebloomer.integrations.hosted_race import END, WAIT, HostedRace
from latebloomer.integrations.library_learner import base_class, library
from latebloomer.racing.journal.journal_file import Place
from latebloomer.racing.verdict.verdict import Verdict
from latebloomer.session.events import FAILED, FINISHED

__all__ = ["RaceScheduler"]


class RaceScheduler(base_class("ray.tune.schedulers", "FIFOScheduler")):  # type: ignore[misc]
    """Race trials: `tune.TuneConfig(scheduler=RaceScheduler(...), num_samples=64)`.

    A pull is one result of a trial. A trainable must save and load its state, because paused
    trials leave their process. All state is in the journal: after a kill, `Tuner.restore`
    continues the race, and `latebloomer.read_verdict(journal)` returns its verdict.

    Parameters
    ----------
    n_trials : int
        Total number of trials.
    journal : Place
        File in which every result is recorded.
    metric : str | None
        Name under which a trial reports its score. Default: `metric` of the `TuneConfig`.
    mode : str | None
        "max" or "min". Default: `mode` of the `TuneConfig`.
    time_attr : str
        Name of the trial's own counter of results: 1, 2, 3, ...
    settings : Any
        The budget, as `budget=` (total number of results) or `trainings=8, full_steps=81`; also
        `policy`, `horizon`, `min_pulls` and `seed` as in `race`.

    Raises
    ------
    MissingExtra
        Ray Tune is not installed, or too old.
    SettingError
        There is no budget, no metric or no mode, or fewer than two trials.

    Examples
    --------
    ::

        from pathlib import Path

        from latebloomer.integrations.ray_tune import RaceScheduler
        from ray import tune

        class Curve(tune.Trainable):
            def setup(self, config):
                self.n = 0

            def step(self):
                self.n += 1
                slow = self.config["slow"]
                return {"score": (0.5 + slow / 100) * self.n / (self.n + slow)}

            def save_checkpoint(self, folder):
                return {"n": self.n}

            def load_checkpoint(self, state):
                self.n = state["n"]

        scheduler = RaceScheduler(3, "race.db", trainings=2, full_steps=10, policy="sh")
        tuner = tune.Tuner(
            Curve,
            param_space={"slow": tune.grid_search([1, 10, 40])},
            tune_config=tune.TuneConfig(scheduler=scheduler, metric="score", mode="max"),
            run_config=tune.RunConfig("race", storage_path=str(Path("runs").resolve())),
        )
        best = scheduler.best_result(tuner.fit())
        print(best.config, scheduler.verdict())
    """

    _supports_buffered_results = False  # no result may arrive after the last one of a phase

    def __init__(
        self,
        n_trials: int,
        journal: Place,
        *,
        metric: str | None = None,
        mode: str | None = None,
        time_attr: str = "training_iteration",
        **settings: Any,
    ) -> None:
        library("ray.tune", "trials of Ray Tune", "tune")
        super().__init__()
        self._metric, self._mode, self._time_attr = metric, mode, time_attr
        self._arms: dict[str, int | None] = {}  # arms by trial, in this process
        self.race = HostedRace(n_trials, journal, **settings)  # `mode` sets the direction later

    def verdict(self) -> Verdict:
        """Return the verdict: which trial to keep, and why."""
        return self.race.verdict()

    def best_result(self, results: Any) -> Any:
        """Return the winner's result among the results of `Tuner.fit`."""
        trial = self.race.state.trials[self.race.session.best_arm].trial
        return next(
            result for result in results if result.metrics and result.metrics["trial_id"] == trial
        )

    # --- methods that Ray Tune calls ---

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Use metric and mode of the `TuneConfig`; return False if they are already set."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric, self._mode = self._metric or metric, self._mode or mode
        if self._metric is None:
            raise SettingError("metric=None, but a race needs one: TuneConfig(metric='accuracy')")
        require(
            self._mode in ("max", "min"),
            "mode",
            self._mode,
            "'max' or 'min'",
            "it says which scores are better",
        )
        self.race.settings = replace(self.race.settings, maximize=self._mode == "max")
        return True

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Assign an arm to the trial; a trial that may not be trained now is paused or ended."""
        # After a failure, the trial is already in the controller's lists.
        again = trial.trial_id in self._arms
        if not again:
            self._arms[trial.trial_id] = self.race.assign(trial.trial_id, trial.config)
        status = {END: trial.TERMINATED, WAIT: trial.PAUSED}.get(self._next_of(trial))
        if trial.status == trial.PENDING and status is not None:
            if again:
                # Ray Tune has no public method that also moves the trial in its lists.
                tune_controller._set_trial_status(trial, status)
            else:  # the controller adds it to its lists by its status
                trial.init_local_path()
                trial.set_status(status)

    def _next_of(self, trial: Any) -> str:
        return self.race.next_of(self._arms.get(trial.trial_id))

    def on_trial_result(self, tune_controller: Any, trial: Any, result: Mapping[str, Any]) -> str:
        """Record a result; the trial continues, is paused at its level, or is stopped."""
        arm = self._arms.get(trial.trial_id)
        if arm is None:
            return str(self.STOP)
        seconds = float(result.get("time_this_iter_s", 0.0))
        now = self.race.on_result(arm, result, self._time_attr, str(self._metric), seconds)
        return str({END: self.STOP, WAIT: self.PAUSE}.get(now, self.CONTINUE))

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: Any) -> None:
        """Record that a trial has finished; it can still win."""
        told = {self._time_attr, self._metric} <= set(result)
        if told and self._next_of(trial) != END:  # the last result, if a stopper ended the trial
            self.on_trial_result(tune_controller, trial, result)
        self._leave(trial, FINISHED, "finished")

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """Record a trial as failed if Ray Tune does not try it again."""
        if trial.status != trial.ERROR:  # otherwise Ray Tune puts it back into its queue
            self._leave(trial, FAILED, "its trial failed")

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """Record that a paused trial was stopped, by this scheduler or the user."""
        self._leave(trial, FAILED, "its trial was stopped")

    def _leave(self, trial: Any, how: str, why: str) -> None:
        self.race.leave(self._arms.get(trial.trial_id), how, why)

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Return a trial that may be trained, and stop paused trials that were dropped."""
        trials = list(tune_controller.get_trials())
        for trial in trials:
            if trial.status == trial.PAUSED and self._next_of(trial) == END:
                tune_controller.stop_trial(trial)
        for trial in trials:
            waiting = trial.status in (trial.PENDING, trial.PAUSED)
            if waiting and self._next_of(trial) not in (WAIT, END):
                return trial
        if trials and tune_controller.search_alg.is_finished():
            self._give_up_lost(trials)
        return None

    def _give_up_lost(self, trials: list[Any]) -> None:
        """Record arms as failed if they have no trial, or lost it with an earlier driver."""
        met = {self._arms.get(trial.trial_id) for trial in trials if not trial.is_finished()}
        for arm in range(len(self.race.names)):
            if arm not in met and self.race.next_of(arm) not in (WAIT, END):
                came = arm in self.race.state.trials
                why = "its trial was lost" if came else "it had no trial"
                self.race.leave(arm, FAILED, why)

    def debug_string(self) -> str:
        """Return the progress of the race in one line."""
        return f"latebloomer: {len(self.race.session.racing)} trials; {self.race.session.reason}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the trials, which are in the journal."""
        return {**vars(self), "_arms": {}}
